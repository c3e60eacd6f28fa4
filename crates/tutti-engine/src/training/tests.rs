//! Injected bytes, reads and rates derived by hand; the representative NPU against all NPUs.

use proptest::prelude::*;

use super::*;
use crate::endpoint::ace::{Ace, Division, Exchanges, Fsms, Handover};
use crate::endpoint::agent::Agent;
use crate::endpoint::baseline::Baseline;
use crate::endpoint::ideal::Ideal;
use crate::endpoint::{Admission, Chunks, Endpoint, ServerUse};
use crate::workload::{Layer, Rings, TrainingLoop, Transfer, What};
use tutti_schedule::collective::Collective;
use tutti_units::TimePerByte;

mod arbiter;
mod graphs;
mod ideal;
mod pipelines;
mod relays;
mod scaling;

fn rate(text: &str) -> TimePerByte {
    TimePerByte::parse(text).unwrap()
}

/// Rashidi et al. 2021: 200 GB/s per direction inside a package, 25 GB/s between packages.
fn torus(nodes: [u32; 3]) -> Torus {
    let ring = |nodes, per_byte: &str, ps| Ring {
        nodes,
        per_byte: rate(per_byte),
        latency: Time::from_ps(ps),
    };
    let [local, vertical, horizontal] = nodes;
    Torus::new(vec![
        ring(local, "200 GB/s", 72_289),
        ring(vertical, "25 GB/s", 401_606),
        ring(horizontal, "25 GB/s", 401_606),
    ])
    .unwrap()
}

fn ideal() -> Endpoint {
    let cycle = Time::from_ps(803);
    Ideal { packet: Bytes(256), cycle, chunks: Chunks::default() }.endpoint().unwrap()
}

fn baseline(memory: &str, sms: u32) -> Endpoint {
    let settings = Baseline {
        memory: rate(memory),
        per_sm: rate("80 GB/s"),
        sms,
        bus: rate("500 GB/s"),
        message: Bytes(8 << 10),
        overhead: Time::ZERO,
        chunks: Chunks::default(),
        fused: true,
        charge_writes: false,
    };
    settings.endpoint().unwrap()
}

fn ace(torus: &Torus, memory: &str) -> Endpoint {
    ace_that(torus, memory, Handover::Ahead)
}

fn ace_that(torus: &Torus, memory: &str, handover: Handover) -> Endpoint {
    ace_on(&fabric(torus.clone(), ideal(), Population::One), memory, handover)
}

fn ace_on(fabric: &TrainingFabric, memory: &str, handover: Handover) -> Endpoint {
    let packet = Bytes(256);
    let loads = fabric.phase_loads(&[], packet).unwrap();
    let settings = Ace {
        memory: rate(memory),
        bus: rate("500 GB/s"),
        sram: Bytes(4 << 20),
        division: Division::RateTimesChunk,
        handover,
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
    settings.endpoint(&loads, Bytes(64 << 10)).unwrap()
}

fn fabric(torus: Torus, endpoint: Endpoint, population: Population) -> TrainingFabric {
    let (chunk, message) = (Bytes(64 << 10), Bytes(8 << 10));
    TrainingFabric {
        sizes: torus.rings().iter().map(|ring| ring.nodes).collect(),
        network: StepNetwork::Torus(torus),
        algorithms: Algorithms::default(),
        endpoint,
        chunk,
        parts: None,
        message,
        order: Order::Lifo,
        population,
        detail: Detail::Packets,
        launch: Time::ZERO,
    }
}

/// An all-to-all takes any FSM, or waits for those of the last phase.
#[test]
fn any_fsm_processes_all_to_alls() {
    let [any, last] = [Exchanges::AnyFsm, Exchanges::OfPhase].map(|exchanges| {
        let mut endpoint = ace_that(&torus([4, 4, 2]), "900 GB/s", Handover::AtEnd);
        if let Admission::Partitions(partitions) = &mut endpoint.admission {
            partitions.exchanges = exchanges;
            assert_eq!(partitions.fsms.last(), Some(&2));
        }
        let fabric = fabric(torus([4, 4, 2]), endpoint, Population::One);
        let outcome = run(&fabric, &alone(Collective::AllToAll, 16 * (64 << 10)));
        let stalls = &outcome.npus[0].stalls;
        let fsm = stalls.iter().find(|(cause, _)| *cause == "fsm").map(|(_, stall)| stall.time);
        (outcome.end, fsm.unwrap())
    });
    assert!(any.0 < last.0, "{any:?} {last:?}");
    assert!(any.1 < last.1, "{any:?} {last:?}");
}

/// A run that may end at its end is complete, one that may not ends early: with computation left,
/// before its last event.
#[test]
fn runs_end_early_once_they_take_too_long() {
    let layer = Layer {
        name: "one".to_owned(),
        forward: Time::from_ps(5_000_000),
        after_forward: vec![Transfer::new(Collective::AllReduce, Bytes(1 << 20))],
        weight_gradient: Time::from_ps(3_000_000),
        ..Layer::default()
    };
    let plan = TrainingLoop { layers: vec![layer; 3], ..TrainingLoop::default() };
    let program = plan.program().unwrap();
    let fabric = fabric(torus([2, 2, 2]), ideal(), Population::One);
    let complete = run(&fabric, &program);
    let programs = std::slice::from_ref(&program);
    let of =
        TrainingRun { programs, of: &[], unreserved: &[], fabric: &fabric, window: Time::ZERO };
    let never = AtomicBool::new(false);
    let before = |ps| of.run_before(Time::from_ps(ps), &never).map(|outcome| outcome.end);
    assert_eq!(before(complete.end.ps()), Ok(complete.end));
    for latest in [complete.end.ps() - 1, complete.end.ps() / 2, 0] {
        assert_eq!(before(latest), Err(TrainingRunError::TooLate));
    }
}

/// A program of one collective.
fn alone(collective: Collective, bytes: u64) -> Program {
    let layer = Layer {
        name: "one".to_owned(),
        weight_gradient: Time::from_ps(1),
        after_weight_gradient: Some(Transfer::new(collective, Bytes(bytes))),
        ..Layer::default()
    };
    let plan = TrainingLoop { layers: vec![layer], ..TrainingLoop::default() };
    plan.program().unwrap()
}

fn run(fabric: &TrainingFabric, program: &Program) -> TrainingOutcome {
    let programs = std::slice::from_ref(program);
    TrainingRun { programs, of: &[], unreserved: &[], fabric, window: Time::ZERO }.run().unwrap()
}

fn sent(npu: &NpuRecord) -> u64 {
    npu.links.iter().map(|(_, link)| link.bytes).sum()
}

fn server(npu: &NpuRecord, name: &str) -> ServerUse {
    npu.servers.iter().find(|(server, _)| &**server == name).unwrap().1
}

/// X = 2 (L-1)/L + 2 (V-1)/(VL) + 2 (H-1)/(HL): Rashidi et al. 2021, section V.
#[test]
fn injected_bytes_are_those_of_the_formula() {
    let cases = [([4, 2, 2], 32), ([4, 4, 2], 34), ([4, 4, 4], 36), ([4, 8, 4], 37)];
    for (nodes, sixteenths) in cases {
        let bytes = 1 << 20;
        for endpoint in [ideal(), baseline("450 GB/s", 80), ace(&torus(nodes), "128 GB/s")] {
            let fabric = fabric(torus(nodes), endpoint, Population::One);
            let outcome = run(&fabric, &alone(Collective::AllReduce, bytes));
            assert_eq!(16 * sent(&outcome.npus[0]), sixteenths * bytes, "{nodes:?}");
        }
    }
}

/// 3 (N - 1) reads for 2 (N - 1) sends, for every N and for every hierarchy of rings.
#[test]
fn the_baseline_reads_three_bytes_for_two_sent() {
    for nodes in [[2, 1, 1], [3, 1, 1], [8, 1, 1], [4, 2, 2], [4, 4, 4], [1, 5, 1]] {
        let fabric = fabric(torus(nodes), baseline("900 GB/s", 80), Population::One);
        let bytes: u64 = nodes.iter().map(|n| u64::from(*n)).product::<u64>() * 3072;
        let outcome = run(&fabric, &alone(Collective::AllReduce, bytes));
        let npu = &outcome.npus[0];
        assert_eq!(2 * server(npu, "memory").bytes, 3 * sent(npu), "{nodes:?}");
    }
}

/// Each payload byte is read once and written once.
#[test]
fn ace_reads_each_byte_once() {
    let torus = torus([4, 4, 4]);
    let endpoint = ace(&torus, "128 GB/s");
    let fabric = fabric(torus, endpoint, Population::One);
    let outcome = run(&fabric, &alone(Collective::AllReduce, 1 << 20));
    assert_eq!(server(&outcome.npus[0], "memory").bytes, 1 << 20);
    assert_eq!(server(&outcome.npus[0], "memory_writes").bytes, 1 << 20);
}

/// Peak injection rate of each size: X / the maximum over the rings of the time per byte.
#[test]
fn ideal_reaches_the_peak() {
    let cases =
        [([4, 2, 2], 400_000), ([4, 4, 2], 283_334), ([4, 4, 4], 300_000), ([4, 8, 4], 264_286)];
    for (nodes, peak) in cases {
        let fabric = fabric(torus(nodes), ideal(), Population::One);
        let outcome = run(&fabric, &alone(Collective::AllReduce, 64 << 20));
        // Bytes in a microsecond.
        let reached = sent(&outcome.npus[0]) * 1_000_000 / outcome.end.ps();
        let expected = peak * 97 / 100..=peak;
        assert!(expected.contains(&reached), "{nodes:?}: {reached} of {peak}");
    }
}

/// A ring of n NPUs, with the packets of a chunk back to back: steps x (latency + a packet), plus
/// the remaining packets of one step.
#[test]
fn one_chunk_takes_the_closed_form() {
    let ring = Ring { nodes: 5, per_byte: rate("25 GB/s"), latency: Time::from_ps(400_000) };
    let torus = Torus::new(vec![ring]).unwrap();
    let endpoint = ideal();
    let fabric = fabric(torus, endpoint, Population::One);
    let outcome = run(&fabric, &alone(Collective::AllReduce, 5 * 1024));
    // 8 steps of four packets of 256 B, each 10,240 ps on the link; steps are
    // sequential.
    let small = TrainingFabric { chunk: Bytes(5 * 1024), ..fabric };
    let load = small.phase_loads(&[], Bytes(256)).unwrap()[0];
    assert_eq!(load.time.ps(), 8 * (400_000 + 10_240) + 3 * 10_240);
    let step = 400_000 + 803 + 10_240;
    assert_eq!(outcome.end.ps(), 1 + 8 * step + 3 * 10_240);
}

#[test]
fn parts_sum_to_the_total() {
    let torus = torus([4, 2, 2]);
    let endpoint = ace(&torus, "128 GB/s");
    let fabric = fabric(torus, endpoint, Population::One);
    let program = small_loop(3).program().unwrap();
    let outcome = run(&fabric, &program);
    let breakdown = outcome.npus[0].breakdown;
    assert_eq!(breakdown.total(), outcome.end);
    let compute: u64 = program
        .tasks()
        .iter()
        .map(|task| match task.what {
            What::Compute { time, .. } => time.ps(),
            _ => 0,
        })
        .sum();
    assert_eq!(breakdown.computing().ps(), compute);
}

fn small_loop(iterations: u32) -> TrainingLoop {
    let layer = |name: &str, us: u64, bytes| Layer {
        name: name.to_owned(),
        forward: Time::from_ps(us * 1_000_000),
        input_gradient: Time::from_ps(us * 1_000_000),
        weight_gradient: Time::from_ps(us * 1_000_000),
        after_weight_gradient: Some(Transfer::new(Collective::AllReduce, Bytes(bytes))),
        ..Layer::default()
    };
    TrainingLoop {
        layers: vec![layer("a", 3, 40_000), layer("b", 5, 300_000), layer("c", 2, 100_000)],
        iterations,
        ..TrainingLoop::default()
    }
}

/// Reduce-scatter on all rings but the last, all-reduce on the last, all-gather in reverse order.
fn nested(sizes: [u32; 3], rings: Rings) -> Algorithms {
    let rings = rings.of(&sizes);
    let live = (0..3).filter(|&ring| rings.contains(ring)).map(|ring| sizes[ring]);
    let live: Vec<u32> = live.collect();
    let levels: Vec<String> = live.iter().map(u32::to_string).collect();
    let notation = match levels.len() {
        1 => "ring".to_owned(),
        _ => format!("hierarchical:{}:ring", levels.join("x")),
    };
    let (collective, ranks) = (Collective::AllReduce, live.iter().product());
    let channels = vec![tutti_schedule::algorithm::build(&notation, collective, ranks).unwrap()];
    let chosen = vec![Chosen { collective: collective.name(), rings, channels }];
    Algorithms { chosen, ..Algorithms::default() }
}

#[test]
fn a_nested_all_reduce_sends_decreasing_shards() {
    let fabric = fabric(torus([4, 2, 8]), ideal(), Population::One);
    let algorithms = nested([4, 2, 8], Rings(7));
    let nested = TrainingFabric { algorithms, ..fabric };
    assert_eq!(nested.phase_loads(&[], Bytes(256)).unwrap().len(), 5);
    let outcome = run(&nested, &alone(Collective::AllReduce, 1 << 16));
    // 2 (3/4 + 1/8 + 7/64) of the payload.
    assert_eq!(sent(&outcome.npus[0]), 2 * (48 + 8 + 7) * (1 << 10));
}

/// With one chunk per dimension, the all-gather of a chunk waits for the reduce-scatters of all.
#[test]
fn phases_along_a_dimension_share_a_limit() {
    let (sizes, delay) = ([1, 4, 4], Time::from_ps(1000));
    let time = |chunks: u32| {
        let endpoint = Agent { delay, memory: TimePerByte::ZERO, chunks }.endpoint().unwrap();
        let given = fabric(torus(sizes), endpoint, Population::One);
        let algorithms = nested(sizes, Rings(7));
        let given = TrainingFabric { algorithms, parts: Some(4), ..given };
        run(&given, &alone(Collective::AllReduce, 4 << 20)).end - Time::from_ps(1)
    };
    let step = |bytes: u64| {
        let Ring { per_byte, latency, .. } = torus(sizes).rings()[1];
        per_byte.of(Bytes(bytes)) + latency + delay
    };
    let (inner, outer) = (step(1 << 18).times(3), step(1 << 16).times(6));
    assert!(outer < inner);
    assert_eq!(time(1), inner.times(8));
    // Four chunks at a time: the second dimension works while the first does.
    assert!(time(4) < inner.times(8));
}

#[test]
fn programs_with_different_collectives_are_rejected() {
    let torus = torus([2, 1, 1]);
    let fabric = fabric(torus, ideal(), Population::All);
    let (program, other) = (alone(Collective::AllReduce, 8), alone(Collective::AllReduce, 16));
    let programs = [program, other];
    let refused = |of: &[u32]| {
        TrainingRun {
            programs: &programs,
            of,
            unreserved: &[],
            fabric: &fabric,
            window: Time::ZERO,
        }
        .run()
        .unwrap_err()
    };
    let wrong = |given| TrainingRunError::WrongPrograms { programs: 2, given, npus: 2 };
    assert_eq!(refused(&[]), wrong(0));
    assert_eq!(refused(&[0, 2]), wrong(2));
    let error = refused(&[0, 1]).to_string();
    assert!(error.contains("NPU 1") && error.contains("16 B"), "{error}");
}

fn any_endpoint(torus: &Torus, which: u8) -> Endpoint {
    match which {
        0 => ideal(),
        1 => baseline("128 GB/s", 2),
        2 => ace(torus, "128 GB/s"),
        _ => ace_that(torus, "128 GB/s", Handover::AtEnd),
    }
}

/// A single collective of one chunk with one packet per step is never queued.
#[test]
fn one_packet_per_step_is_never_queued() {
    for which in 0..4 {
        let torus = torus([4, 4, 4]);
        let endpoint = any_endpoint(&torus, which);
        let fabric = fabric(torus, endpoint, Population::One);
        let bytes = 4 * 256;
        let transfer = Transfer::new(Collective::AllReduce, Bytes(bytes));
        let limit = fabric.limit(transfer).unwrap();
        let alone = run(&fabric, &alone(Collective::AllReduce, bytes));
        let computing = Time::from_ps(1);
        assert_eq!(alone.end, limit.latency + computing, "{which}");
        assert_eq!(limit.time(), limit.latency, "{which}");
    }
}

/// Baseline on a ring of N, memory-bound: 3 (N - 1) m/N bytes over the memory rate.
#[test]
fn a_large_collective_is_bound_by_its_busiest_server() {
    let torus = torus([4, 4, 4]);
    let transfer = Transfer::new(Collective::AllReduce, Bytes(64 << 20));
    let endpoint = baseline("128 GB/s", 80);
    let fabric = fabric(torus, endpoint, Population::One);
    let limit = fabric.limit(transfer).unwrap();
    // X = 2.25 sent, 1.5 reads each, at 7.8125 ps a byte.
    let reads = (64 << 20) * 27 / 8;
    assert_eq!(limit.time().ps(), reads * 125 / 16);
    let end = run(&fabric, &alone(Collective::AllReduce, 64 << 20)).end;
    assert!(end.ps() <= limit.time().ps() * 102 / 100, "{end} of {}", limit.time());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The counted packets equal the handled packets, and no run is below the bound.
    #[test]
    fn no_run_is_below_the_limit(
        nodes in prop::array::uniform3(1_u32..5),
        which in 0_u8..4,
        collective in prop::sample::select(vec![
            Collective::AllReduce,
            Collective::ReduceScatter,
            Collective::AllGather,
            Collective::AllToAll,
        ]),
        bytes in 1_u64..600_000,
    ) {
        prop_assume!(nodes.iter().any(|nodes| *nodes > 1));
        let torus = torus(nodes);
        let endpoint = any_endpoint(&torus, which);
        let fabric = fabric(torus, endpoint, Population::One);
        let limit = fabric.limit(Transfer::new(collective, Bytes(bytes))).unwrap();
        let outcome = run(&fabric, &alone(collective, bytes));
        prop_assert!(limit.time() <= outcome.end);
        let npu = &outcome.npus[0];
        let servers: Vec<Time> = npu.servers.iter().map(|(_, used)| used.busy).collect();
        let counted: Vec<Time> = limit.servers.iter().map(|(_, time)| *time).collect();
        prop_assert_eq!(servers, counted);
        let links: Vec<Time> = npu.links.iter().map(|(_, link)| link.busy).collect();
        prop_assert_eq!(links, limit.links);
    }

    /// The representative NPU has the times of every other NPU.
    #[test]
    fn one_npu_represents_all(
        nodes in prop::array::uniform3(1_u32..5),
        which in 0_u8..4,
        collective in prop::sample::select(vec![
            Collective::AllReduce,
            Collective::ReduceScatter,
            Collective::AllGather,
            Collective::AllToAll,
        ]),
        bytes in 1_u64..400_000,
        rings in 1_u8..8,
        is_nested in any::<bool>(),
        relayed in any::<bool>(),
    ) {
        let live = (0..3).any(|ring| Rings(rings).contains(ring) && nodes[ring] > 1);
        prop_assume!(live);
        let torus = torus(nodes);
        let torus = if relayed { torus.relayed(1, rate("25 GB/s")) } else { torus };
        let endpoint = any_endpoint(&torus, which);
        let algorithms =
            if is_nested { nested(nodes, Rings(rings)) } else { Algorithms::default() };
        // ACE has partitions for the phases of the default.
        prop_assume!(!is_nested || which < 2);
        let one = fabric(torus, endpoint, Population::One);
        let one = TrainingFabric { algorithms, ..one };
        let all = TrainingFabric { population: Population::All, ..one.clone() };
        let mut plan = small_loop(1);
        let rings = Rings(rings);
        let transfer = Transfer { rings, ..Transfer::new(collective, Bytes(bytes)) };
        plan.layers[1].after_weight_gradient = Some(transfer);
        let program = plan.program().unwrap();
        let (one, all) = (run(&one, &program), run(&all, &program));
        prop_assert_eq!(one.end, all.end);
        for npu in &all.npus {
            prop_assert_eq!(npu, &one.npus[0]);
        }
    }
}
