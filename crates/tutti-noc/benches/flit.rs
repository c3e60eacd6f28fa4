//! How fast the flit network is: `cargo bench -p tutti-noc --bench flit [-- PART OF A NAME ...]`.
//!
//! A line per run: case, run, cycles per second, million flit-hops per second, with tabs between. A
//! flit-hop is a flit that leaves a router. The network is warm when the clock starts, except in the
//! measured cases: complete runs of the measurement API. Nothing here passes or fails.
#![expect(clippy::print_stdout, reason = "its output is data")]
#![expect(clippy::disallowed_methods, reason = "measures the wall clock")]
#![expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tutti_noc::measure::{self, MeasurementPlan, Phases, Traffic};
use tutti_noc::routing::{Compass, DimensionOrder};
use tutti_noc::smart::{self, Fabric};
use tutti_noc::traffic::{Arrivals, PacketSize, Pattern, Process};
use tutti_noc::{ChannelParameters, Delivery, Network, Order, Settings, Source, Wiring};
use tutti_topology::LinkParameters;
use tutti_units::{Bytes, Time, TimePerByte};

/// Routers along a side, load in flits per node and cycle in percent, flits of a packet, cycles.
const CASES: &[(u32, u32, u32, u64)] = &[
    (8, 2, 1, 400_000),
    (8, 20, 1, 100_000),
    (8, 40, 1, 60_000),
    (8, 60, 1, 60_000),
    (8, 20, 4, 100_000),
    (16, 10, 1, 40_000),
    (64, 2, 1, 4_000),
];

/// Measurements: routers along a side, load in percent, cycles of the window.
const MEASURED_CASES: &[(u32, u32, u64)] = &[(8, 2, 400_000), (8, 20, 100_000)];

/// The same load over a mesh with so many hops per cycle: side, hops, load in percent, cycles.
const SMART_CASES: &[(u32, u32, u32, u64)] =
    &[(8, 1, 20, 100_000), (8, 8, 2, 400_000), (8, 8, 20, 100_000), (8, 8, 40, 60_000)];

const WARMUP: u64 = 2_000;
const RUNS: u32 = 3;

struct Load {
    pattern: Pattern,
    arrivals: Arrivals,
    size: PacketSize,
    /// Per node, packets sent, and the cycle from which the next is looked for.
    nodes: Vec<(u64, u64)>,
}

impl Source for Load {
    fn next_at(&mut self, node: u32, _: u8) -> Option<u64> {
        self.arrivals.next(node, self.nodes[node as usize].1)
    }

    fn take(&mut self, node: u32, class: u8, _: u64) -> Order {
        let (serial, from) = self.nodes[node as usize];
        let created = self.arrivals.next(node, from).unwrap_or(from);
        self.nodes[node as usize] = (serial + 1, created + 1);
        let destination = self.pattern.destination(1, node, serial).unwrap_or(node);
        let flits = self.size.draw(1, node, serial);
        Order { created, destination, flits, class, priority: 0, tag: 0 }
    }

    fn delivered(&mut self, _: &Delivery) {}

    fn refilled(&mut self, _: &mut Vec<(u32, u8)>) {}
}

fn main() {
    let filters: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let show = |name: &str, cycles: u64, timed: &dyn Fn() -> (f64, u64)| {
        if !filters.is_empty() && !filters.iter().any(|part| name.contains(part)) {
            return;
        }
        for run in 1..=RUNS {
            let (seconds, hops) = timed();
            let rate = cycles as f64 / seconds;
            println!("{name}\t{run}\t{rate:.0}\t{:.2}", hops as f64 / seconds / 1e6);
        }
    };
    for &(side, percent, flits, cycles) in CASES {
        let name = format!("mesh {side}x{side}, {flits}-flit packets, load 0.{percent:02}");
        show(&name, cycles, &|| timed(side, f64::from(percent) / 100.0, flits, cycles));
    }
    for &(side, percent, cycles) in MEASURED_CASES {
        let name = format!("mesh {side}x{side}, measured, load 0.{percent:02}");
        show(&name, cycles, &|| timed_measurement(side, f64::from(percent) / 100.0, cycles));
    }
    for &(side, hops, percent, cycles) in SMART_CASES {
        let name = format!("mesh {side}x{side}, {hops} hops per cycle, load 0.{percent:02}");
        show(&name, cycles, &|| timed_smart(side, hops, f64::from(percent) / 100.0, cycles));
    }
}

/// Uniform packets, so many per node and cycle.
fn load_of(nodes: u32, rate: f64, flits: u32) -> Load {
    Load {
        pattern: Pattern::parse("uniform", nodes, None).unwrap(),
        arrivals: Arrivals::new(Process::bernoulli(rate).unwrap(), nodes, 1),
        size: PacketSize::fixed(flits).unwrap(),
        nodes: vec![(0, 0); nodes as usize],
    }
}

/// As [`timed`], of a mesh with several hops per cycle.
fn timed_smart(side: u32, hops_per_cycle: u32, load: f64, cycles: u64) -> (f64, u64) {
    let settings = smart::Settings { hops_per_cycle, ..smart::Settings::new(side, side) };
    let mut mesh = smart::Mesh::new(&settings).unwrap();
    let mut source = load_of(mesh.nodes(), load, 1);
    let mut arrivals = Vec::new();
    let mut due: Vec<Option<u64>> = (0..mesh.nodes()).map(|node| source.next_at(node, 0)).collect();
    let (mut before, mut start) = (0, Instant::now());
    for cycle in 0..WARMUP + cycles {
        if cycle == WARMUP {
            (before, start) = (mesh.counts().link_hops, Instant::now());
        }
        for node in 0..mesh.nodes() {
            while due[node as usize].is_some_and(|at| at <= cycle) {
                let order = source.take(node, 0, cycle);
                let cast = smart::Cast::One(order.destination);
                let (created, flits) = (order.created, order.flits);
                let message =
                    smart::Message { created, source: node, cast, class: 0, flits, tag: 0 };
                mesh.send(message).unwrap();
                due[node as usize] = source.next_at(node, 0);
            }
        }
        arrivals.clear();
        mesh.step(&mut arrivals);
    }
    (start.elapsed().as_secs_f64(), mesh.counts().link_hops - before)
}

/// How long so many cycles of a warm network take, and the flit-hops in them.
fn timed(side: u32, load: f64, flits: u32, cycles: u64) -> (f64, u64) {
    let (wiring, _, mut network) = mesh(side);
    let nodes = wiring.nodes();
    let mut source = load_of(nodes, load / f64::from(flits), flits);
    network.run_until(WARMUP, &mut source);
    let before = hops(&network.sent(), &wiring);
    let start = Instant::now();
    network.run_until(WARMUP + cycles, &mut source);
    (start.elapsed().as_secs_f64(), hops(&network.sent(), &wiring) - before)
}

/// How long a measurement takes whose window has so many cycles, and the flit-hops in the window.
fn timed_measurement(side: u32, load: f64, cycles: u64) -> (f64, u64) {
    let (wiring, settings, mut network) = mesh(side);
    let load = measure::Load {
        pattern: Pattern::parse("uniform", wiring.nodes(), None).unwrap(),
        process: Process::bernoulli(load).unwrap(),
        size: PacketSize::fixed(1).unwrap(),
        priority: 0,
    };
    let plan = MeasurementPlan {
        phases: Phases { warmup: WARMUP, measure: cycles, drain: WARMUP },
        batches: 20,
        patience: 5_000,
        sample: 100,
        keep_vcs: false,
    };
    let (loads, stop) = ([load], AtomicBool::new(false));
    let traffic = Traffic::Synthetic(&loads);
    let start = Instant::now();
    let found = measure::measure(&wiring, &settings, &mut network, traffic, &plan, &stop).unwrap();
    (start.elapsed().as_secs_f64(), hops(&found.sent, &wiring))
}

/// A mesh, its routers' settings, and the network of both, empty.
fn mesh(side: u32) -> (Wiring, Settings, Network) {
    let cycle = Time::from_ps(1000);
    let link = LinkParameters::new(TimePerByte::new(1000, 16).unwrap(), cycle);
    let topology = tutti_topology::build(&format!("mesh:{side}x{side}"), &[link, link]).unwrap();
    let port = ChannelParameters { latency: 1, credit_latency: 1, flit_time: cycle, length: None };
    let wiring = Wiring::of(Arc::new(topology), cycle, Bytes(16), port).unwrap();
    let compass = Compass::of(&wiring, &[side, side], false).unwrap();
    let settings = Settings::new(4, 8);
    let routing = Arc::new(DimensionOrder::new(compass, false));
    let network = Network::new(&wiring, &settings, routing).unwrap();
    (wiring, settings, network)
}

/// Flits that have left routers, given those sent over each channel.
fn hops(sent: &[u64], wiring: &Wiring) -> u64 {
    let outputs = (0..wiring.routers()).flat_map(|router| wiring.outputs(router));
    outputs.map(|&channel| sent[channel as usize]).sum()
}
