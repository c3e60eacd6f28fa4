//! How fast training runs are: `cargo bench -p tutti-engine --bench training [-- PART OF A NAME
//! ...]`.
//!
//! A line per run: case, run, seconds, simulated milliseconds, million packets handled per second,
//! with tabs between. Nothing here passes or fails.
#![expect(clippy::print_stdout, reason = "its output is data")]
#![expect(clippy::disallowed_methods, reason = "measures the wall clock")]
#![expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]

use std::time::Instant;

use tutti_engine::endpoint::ace::{Ace, Division, Exchanges, Fsms, Handover};
use tutti_engine::endpoint::ideal::Ideal;
use tutti_engine::endpoint::{Chunks, Endpoint};
use tutti_engine::training::{
    Algorithms, Detail, Order, Population, Ring, StepNetwork, Torus, TrainingFabric, TrainingRun,
};
use tutti_engine::workload::{Layer, Program, TrainingLoop, Transfer};
use tutti_schedule::collective::Collective;
use tutti_units::{Bytes, Time, TimePerByte};

/// NPUs along each side, layers, megabytes of gradients of each layer.
const CASES: &[([u32; 3], u32, u64)] =
    &[([4, 4, 4], 50, 1), ([4, 8, 4], 16, 20), ([16, 16, 16], 50, 1)];
const RUNS: u32 = 3;

fn main() {
    let requested: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    for &(nodes, layers, megabytes) in CASES {
        let [l, v, h] = nodes;
        let name = format!("ace {l}x{v}x{h}, {layers} layers of {megabytes} MB");
        if !requested.is_empty() && !requested.iter().any(|part| name.contains(part)) {
            continue;
        }
        let (fabric, program) = (fabric(nodes), program(layers, megabytes));
        for run in 1..=RUNS {
            let clock = Instant::now();
            let window = Time::ZERO;
            let programs = std::slice::from_ref(&program);
            let run_of =
                TrainingRun { programs, of: &[], unreserved: &[], fabric: &fabric, window };
            let outcome = run_of.run().expect("the case is sound");
            let seconds = clock.elapsed().as_secs_f64();
            let pieces: u64 = outcome.npus[0].links.iter().map(|(_, link)| link.pieces).sum();
            let (ms, rate) = (outcome.end.ps() as f64 / 1e9, pieces as f64 / seconds / 1e6);
            println!("{name}\t{run}\t{seconds:.2}\t{ms:.3}\t{rate:.2}");
        }
    }
}

fn rate(text: &str) -> TimePerByte {
    TimePerByte::parse(text).expect("the rate is well written")
}

fn torus(nodes: [u32; 3]) -> Torus {
    let ring = |nodes, per_byte, ps| Ring { nodes, per_byte, latency: Time::from_ps(ps) };
    let [local, vertical, horizontal] = nodes;
    let (inside, between) = (rate("188 GB/s"), rate("23.5 GB/s"));
    let rings = vec![
        ring(local, inside, 72_289),
        ring(vertical, between, 401_606),
        ring(horizontal, between, 401_606),
    ];
    Torus::new(rings).expect("the torus is sound")
}

fn fabric(nodes: [u32; 3]) -> TrainingFabric {
    let chunk = Bytes(64 << 10);
    let ideal = Ideal { packet: Bytes(256), cycle: Time::from_ps(803), chunks: Chunks::default() };
    let fabric = TrainingFabric {
        network: StepNetwork::Torus(torus(nodes)),
        sizes: nodes.to_vec(),
        algorithms: Algorithms::default(),
        endpoint: ideal.endpoint().expect("the endpoint is sound"),
        chunk,
        parts: None,
        message: Bytes(8 << 10),
        order: Order::Lifo,
        population: Population::One,
        detail: Detail::Packets,
        launch: Time::ZERO,
    };
    TrainingFabric { endpoint: ace(&fabric, chunk), ..fabric }
}

fn ace(fabric: &TrainingFabric, chunk: Bytes) -> Endpoint {
    let packet = Bytes(256);
    let loads = fabric.phase_loads(&[], packet).expect("the all_reduce has a schedule");
    let settings = Ace {
        memory: rate("128 GB/s"),
        bus: rate("500 GB/s"),
        sram: Bytes(4 << 20),
        division: Division::RateTimesChunk,
        handover: Handover::AtEnd,
        sram_read: rate("318.72 GB/s"),
        sram_write: rate("318.72 GB/s"),
        fsms: Fsms::ByTime(16),
        exchanges: Exchanges::AnyFsm,
        alu: rate("318.72 GB/s"),
        packet,
        loads: 2,
        port: 16,
        cycle: Time::from_ps(803),
        charge_writes: false,
    };
    settings.endpoint(&loads, chunk).expect("the endpoint is sound")
}

fn program(layers: u32, megabytes: u64) -> Program {
    let layer = |index| Layer {
        name: format!("layer {index}"),
        forward: Time::from_ps(50_000_000),
        input_gradient: Time::from_ps(50_000_000),
        weight_gradient: Time::from_ps(50_000_000),
        after_weight_gradient: Some(Transfer::new(
            Collective::AllReduce,
            Bytes(megabytes * 1_000_000),
        )),
        ..Layer::default()
    };
    let layers = (0..layers).map(layer).collect();
    let plan = TrainingLoop { layers, ..TrainingLoop::default() };
    plan.program().expect("the loop is sound")
}
