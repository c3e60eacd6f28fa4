//! How fast the engine and the verifier are: `cargo bench --bench spine [-- PART OF A NAME ...]`.
//!
//! Each case runs several times in a separate process, so that its peak memory is measured separately. Each run
//! writes a line of tab-separated fields: case, aim, run, messages, seconds, peak MiB. `benchmarks/run.py`
//! makes a table of them. There are no pass criteria.
#![expect(clippy::print_stdout, reason = "its output is data")]
#![expect(clippy::disallowed_methods, reason = "measures the wall clock")]

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tutti_analysis::search::{Effort, Flat, best};
use tutti_engine::{Conditions, LocalCosts, Ranks, Silent, Simulation};
use tutti_network::flow::{FlowLevel, FlowNetwork, FlowRouting};
use tutti_network::packet::{Ends, PacketNetwork, PacketRouting, Packets};
use tutti_network::{Carrier, Distribution, Noise};
use tutti_network::{LogGP, MessageModel, Model, PipeliningPostal};
use tutti_noc::{ChannelParameters, FlitCarrier, Network, Packing, Settings, Wiring, routing};
use tutti_schedule::algorithm::search::{self as schedules, Kind, Order};
use tutti_schedule::algorithm::{self, REGISTRY};
use tutti_schedule::collective::Collective;
use tutti_schedule::notation::Notation;
use tutti_schedule::{Layout, verify};
use tutti_topology::{LinkParameters, Routes};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time, TimePerByte};

struct Case {
    name: &'static str,
    /// What was set out to be reached.
    aim: &'static str,
    runs: usize,
    /// Does the work once; how many messages were simulated or verified.
    work: fn() -> u64,
}

const CASES: &[Case] = &[
    Case {
        name: "engine, recursive_doubling, 4096 ranks, 8 B, LogGP",
        aim: "10 M messages/s",
        runs: 200,
        work: || loggp("recursive_doubling", 4096, 8),
    },
    Case {
        name: "engine, ring, 1024 ranks, 8 KiB, LogGP",
        aim: "5 M messages/s",
        runs: 21,
        work: || loggp("ring", 1024, 8192),
    },
    Case {
        name: "engine, ring, 1024 ranks, 8 B, LogGP",
        aim: "5 M messages/s",
        runs: 21,
        work: || loggp("ring", 1024, 8),
    },
    Case {
        name: "engine, ring, 4096 ranks, 64 MiB, LogGP",
        aim: "6 s, 500 MB",
        runs: 5,
        work: || loggp("ring", 4096, 64 << 20),
    },
    Case {
        name: "engine, recursive_multiplying a4 x 10, 1048576 ranks, 8 B, pipelining postal, noise",
        aim: "15 s, 6 GB",
        runs: 3,
        work: noisy_million,
    },
    Case {
        name: "packets, ring all_reduce, ring of 512, 64 MB (packet-hops)",
        aim: "3 s, 5 M/s",
        runs: 3,
        work: || packets("ring", "all_reduce", "ring:512", 64_000_000),
    },
    Case {
        name: "packets, ring all_reduce, switch of 512, 64 MB (packet-hops)",
        aim: "5 M/s",
        runs: 3,
        work: || packets("ring", "all_reduce", "switch:512", 64_000_000),
    },
    Case {
        name: "packets, direct all_to_all, torus 8x8x8, 4 MiB (packet-hops)",
        aim: "5 M/s",
        runs: 3,
        work: || packets("direct", "all_to_all", "torus:8x8x8", 4 << 20),
    },
    Case {
        name: "flows, pairwise all_to_all, fat tree of 512, 4 MiB (starts and ends)",
        aim: "1 M/s",
        runs: 3,
        work: || flows("pairwise", "all_to_all", "fat_tree:k=8,n=3", 4 << 20),
    },
    Case {
        name: "flows, direct all_to_all, fat tree of 512, oversubscribed (starts and ends)",
        aim: "1 M/s",
        runs: 3,
        work: || flows("direct", "all_to_all", "fat_tree:m=8x8x8,w=1x4x2", 4 << 20),
    },
    Case {
        name: "flows, ring all_reduce, dragonfly of 4096, 64 MiB (starts and ends)",
        aim: "10 s",
        runs: 3,
        work: || flows("ring", "all_reduce", "dragonfly:p=8,a=16,h=8,g=32", 64 << 20),
    },
    Case {
        name: "flits, ring all_reduce, mesh 8x8, 2 MB, flits of 68 B (flit-hops)",
        aim: "10 s",
        runs: 3,
        work: || flits("ring", "mesh:8x8", 2_000_000),
    },
    Case { name: "verifier, every algorithm, N = 2..128", aim: "20 s", runs: 3, work: verify_all },
    Case {
        name: "verifier, ring, 4096 ranks",
        aim: "5 s",
        runs: 3,
        work: || verify_one("ring", 4096),
    },
    Case {
        name: "verifier, recursive_doubling, 4096 ranks",
        aim: "5 s",
        runs: 3,
        work: || verify_one("recursive_doubling", 4096),
    },
    Case {
        name: "verifier, recursive_halving_doubling, 4096 ranks",
        aim: "5 s",
        runs: 3,
        work: || verify_one("recursive_halving_doubling", 4096),
    },
    Case {
        name: "verifier, direct, 4096 ranks",
        aim: "5 s",
        runs: 3,
        work: || verify_one("direct", 4096),
    },
    Case {
        name: "search, all 32 factored schedules of 64 ranks, scored",
        aim: "2 s",
        runs: 21,
        work: || score(schedules::factored(64, Order::Ordered)),
    },
    Case {
        name: "search, all 32 factored schedules of 64 ranks, simulated",
        aim: "2 s",
        runs: 21,
        work: simulate_factored,
    },
    Case {
        name: "search, all 34749 schedules of 256 ranks, scored",
        aim: "",
        runs: 3,
        work: || score(schedules::all(256, Order::Ordered)),
    },
    Case {
        name: "search, best schedule of 999983 ranks, ratio 4",
        aim: "5 s",
        runs: 5,
        work: || best_of(999_983, "400 ns"),
    },
    Case {
        name: "search, best schedule of 720720 ranks, ratio 1",
        aim: "5 s",
        runs: 5,
        work: || best_of(720_720, "100 ns"),
    },
];

fn simulate<M: MessageModel>(
    notation: &str,
    ranks: u32,
    size: u64,
    model: &M,
    conditions: Conditions,
) -> u64 {
    let schedule = algorithm::build(notation, Collective::AllReduce, ranks).expect("is laid out");
    let layout = Layout::new(Bytes(size), 8, schedule.shape().chunks).expect("divides");
    let costs = LocalCosts::FREE;
    Simulation { schedule: &*schedule, layout, model, costs, conditions }
        .run()
        .expect("finishes")
        .messages
}

fn time(text: &str) -> Time {
    Time::parse(text).expect("is a time")
}

fn loggp(notation: &str, ranks: u32, size: u64) -> u64 {
    let per_byte = TimePerByte::parse("6 ns/B").expect("is a time per byte");
    let model = LogGP { L: time("2.5 us"), o: time("1.5 us"), g: time("1 us"), G: per_byte }
        .checked()
        .expect("is a model");
    simulate(notation, ranks, size, &model, Conditions::default())
}

fn noisy_million() -> u64 {
    let beta = TimePerByte::parse("0.1 ns/B").expect("is a time per byte");
    let model = PipeliningPostal { alpha_p: time("1.34 us"), alpha_r: time("0.34 us"), beta }
        .checked()
        .expect("is a model");
    let step = Distribution::Exponential(time("200 ns"));
    let noise = Noise { seed: 7, step, ..Noise::default() };
    let ranks = Ranks { noise, ..Ranks::default() };
    let conditions = Conditions { disturbance: Some(&ranks), distance: None };
    let notation = format!("recursive_multiplying:{}", ["a4"; 10].join(","));
    simulate(&notation, 1 << 20, 8, &model, conditions)
}

/// Packets of 4 KiB over links of 50 GB/s; how many packets crossed how many links.
fn packets(notation: &str, collective: &str, topology: &str, size: u64) -> u64 {
    let rate = TimePerByte::parse("50 GB/s").expect("is a rate");
    let link = LinkParameters::new(rate, time("500 ns"));
    let topology = tutti_topology::build(topology, &[link]).expect("is a topology");
    let routes = Routes::shortest_path(Arc::new(topology));
    let packets = Packets::new(Bytes(4096), Bytes(0), Bytes(32768)).expect("fit");
    let mut fabric = PacketNetwork::new(PacketRouting::Routed(&routes), packets, Ends::FREE);
    through(notation, collective, (routes.topology().npus(), size), &mut fabric);
    fabric.link_use().map(|link| link.packets).sum()
}

/// Flows over links of 50 GB/s; how many flows started and ended.
fn flows(notation: &str, collective: &str, topology: &str, size: u64) -> u64 {
    let rate = TimePerByte::parse("50 GB/s").expect("is a rate");
    let link = LinkParameters::new(rate, time("500 ns"));
    let topology = Arc::new(tutti_topology::build(topology, &[link]).expect("is a topology"));
    let routes = Routes::d_mod_k(Arc::clone(&topology))
        .or_else(|_| Routes::minimal(Arc::clone(&topology)))
        .unwrap_or_else(|_| Routes::shortest_path(topology));
    let routing = FlowRouting::Routed(&routes);
    let mut network = FlowNetwork::new(routing, FlowLevel::default(), Ends::FREE);
    2 * through(notation, collective, (routes.topology().npus(), size), &mut network)
}

/// Runs a schedule through a network with contention; how many messages were sent.
fn through(
    notation: &str,
    collective: &str,
    (ranks, size): (u32, u64),
    network: &mut impl Carrier,
) -> u64 {
    let collective = Collective::from_name(collective, RankId(0)).expect("is a collective");
    let schedule = algorithm::build(notation, collective, ranks).expect("is laid out");
    let layout = Layout::new(Bytes(size), 4, schedule.shape().chunks).expect("divides");
    let model =
        PipeliningPostal { alpha_p: Time::ZERO, alpha_r: time("100 ns"), beta: TimePerByte::ZERO }
            .checked()
            .expect("is a model");
    let (costs, conditions) = (LocalCosts::FREE, Conditions::default());
    let simulation = Simulation { schedule: &*schedule, layout, model: &model, costs, conditions };
    let run = simulation.run_through(network, &AtomicBool::new(false), &mut Silent);
    run.expect("finishes").messages
}

/// Packets of 16 flits of 68 B over links of one flit per cycle; how many flits left routers.
fn flits(notation: &str, topology: &str, size: u64) -> u64 {
    let (cycle, flit) = (time("1 ns"), Bytes(68));
    let link = LinkParameters::new(TimePerByte::parse("68 GB/s").expect("is a rate"), cycle);
    let graph = Arc::new(tutti_topology::build(topology, &[link, link]).expect("is a topology"));
    let schedule = algorithm::build(notation, Collective::AllReduce, graph.npus());
    let schedule = schedule.expect("is laid out");
    let layout = Layout::new(Bytes(size), 4, schedule.shape().chunks).expect("divides");
    let port = ChannelParameters { latency: 1, credit_latency: 1, flit_time: cycle, length: None };
    let wiring = Arc::new(Wiring::of(graph, cycle, flit, port).expect("is a network"));
    let routing = routing::parse("dimension_order", &wiring).expect("suits a mesh");
    let settings = Settings::new(4, 8);
    let network = Network::new(&wiring, &settings, routing).expect("is a network");
    let packing = Packing::new(flit, 16, 0).expect("carries something");
    let routers = Arc::clone(&wiring);
    let mut carrier = FlitCarrier::new(network, wiring, &settings, packing, Ends::FREE);
    let zero = Time::ZERO;
    let model =
        LogGP { L: cycle, o: zero, g: zero, G: TimePerByte::ZERO }.checked().expect("is a model");
    let (costs, conditions) = (LocalCosts::FREE, Conditions::default());
    Simulation { schedule: &*schedule, layout, model: &model, costs, conditions }
        .run_through(&mut carrier, &AtomicBool::new(false), &mut Silent)
        .expect("finishes");
    let sent = carrier.network().sent();
    let outputs = (0..routers.routers()).flat_map(|router| routers.outputs(router));
    outputs.map(|&channel| sent[channel as usize]).sum()
}

fn verify_one(notation: &str, ranks: u32) -> u64 {
    let schedule = algorithm::build(notation, Collective::AllReduce, ranks).expect("is laid out");
    verify(&*schedule).expect("is right").messages
}

fn verify_all() -> u64 {
    let mut messages = 0;
    for entry in REGISTRY {
        for collective in Collective::ALL {
            let build = |ranks| algorithm::build(entry.name, collective, ranks).ok();
            for schedule in (2..=128).filter_map(build) {
                messages += verify(&*schedule).expect("is right").messages;
            }
        }
    }
    messages
}

fn flat(alpha_p: &str) -> Flat {
    let beta = TimePerByte::parse("0.4 ns/B").expect("is a time per byte");
    let model = PipeliningPostal { alpha_p: time(alpha_p), alpha_r: time("100 ns"), beta }
        .checked()
        .expect("is a model");
    Flat { model: Model::PipeliningPostal(model), bytes: Bytes(8), costs: LocalCosts::FREE }
}

/// Without simulating a message.
fn score(schedules: impl Iterator<Item = Notation>) -> u64 {
    assert!(!flat("400 ns").rank(schedules).is_empty());
    0
}

fn simulate_factored() -> u64 {
    let notations = schedules::factored(64, Order::Ordered);
    let names = notations.map(|notation| format!("recursive_multiplying:{notation}"));
    names.map(|name| loggp(&name, 64, 8)).sum()
}

fn best_of(ranks: u32, alpha_p: &str) -> u64 {
    best(&flat(alpha_p), ranks, &Kind::ALL, Effort::default()).messages
}

/// The process's largest resident size so far, in MiB.
fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) / 1024.0
}

/// One line per run; the first, which warms up, has none.
fn measure(case: &Case) {
    for run in 0..=case.runs {
        let start = Instant::now();
        let messages = (case.work)();
        let seconds = start.elapsed().as_secs_f64();
        if run > 0 {
            let Case { name, aim, .. } = case;
            println!("{name}\t{aim}\t{run}\t{messages}\t{seconds}\t{:.1}", peak_mib());
        }
    }
}

fn main() {
    let selected: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    if let [only] = &selected[..]
        && let Some(case) = CASES.iter().find(|case| case.name == only)
    {
        return measure(case);
    }
    let this = std::env::current_exe().expect("a running program has a path");
    let chosen = |case: &&Case| {
        selected.is_empty() || selected.iter().any(|w| case.name.contains(w.as_str()))
    };
    for case in CASES.iter().filter(chosen) {
        let status = Command::new(&this).arg(case.name).status().expect("runs itself");
        assert!(status.success(), "{} failed", case.name);
    }
}
