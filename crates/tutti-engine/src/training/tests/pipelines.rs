//! Programs that differ by NPU, messages between them, and transfers without endpoints.

use super::graphs::{flows, on_graph, routes};
use super::*;
use crate::workload::{Message, Pass, Pipeline, PipelineOrder, Task};
use std::collections::BTreeMap;

const MESSAGE: Bytes = Bytes(100_000);

/// `stages` x `chunks` equal layers, whose passes take 30, 20 and 40 us in all on each stage.
fn piped(stages: u32, chunks: u32, micro_batches: u32, order: PipelineOrder) -> TrainingLoop {
    let us = |us: u64| Time::from_ps(us * 1_000_000 / u64::from(chunks));
    let layer = Layer {
        name: "one".to_owned(),
        forward: us(30),
        input_gradient: us(20),
        weight_gradient: us(40),
        ..Layer::default()
    };
    let all = (stages * chunks) as usize;
    let pipeline = Pipeline {
        stages,
        micro_batches,
        order,
        rings: Rings(1),
        ends: (1..=all).collect(),
        messages: vec![MESSAGE; all - 1],
    };
    TrainingLoop { layers: vec![layer; all], pipeline: Some(pipeline), ..TrainingLoop::default() }
}

fn run_stages(fabric: &TrainingFabric, plan: &TrainingLoop) -> TrainingOutcome {
    let stages = plan.pipeline.as_ref().unwrap().stages;
    let programs: Vec<Program> = (0..stages).map(|stage| plan.stage(stage).unwrap()).collect();
    let of: Vec<u32> = (0..fabric.network.npus()).map(|npu| npu % stages).collect();
    TrainingRun { programs: &programs, of: &of, unreserved: &[], fabric, window: Time::ZERO }
        .run()
        .unwrap()
}

/// Messages of no time.
fn isolated(npus: u32) -> TrainingFabric {
    let messages = BTreeMap::from([(MESSAGE, Time::ZERO)]);
    let network = Isolated { npus, messages, ..Isolated::default() };
    TrainingFabric {
        network: StepNetwork::Isolated(network),
        sizes: vec![npus],
        ..fabric(torus([2, 1, 1]), ideal(), Population::All)
    }
}

/// An iteration takes (m + s - 1) passes in both directions (Huang et al. 2019, section 2); with v chunks
/// per stage m + (s - 1) / v (Narayanan et al. 2021, section 2.2).
#[test]
fn pipelines_have_their_bubbles() {
    let per_micro_batch = 90_000_000;
    for order in [PipelineOrder::GPipe, PipelineOrder::OneForwardOneBackward] {
        for (stages, micro_batches) in [(2, 2), (4, 4), (4, 8), (3, 7)] {
            let outcome = run_stages(&isolated(stages), &piped(stages, 1, micro_batches, order));
            let passes = u64::from(micro_batches + stages - 1);
            assert_eq!(outcome.end, Time::from_ps(per_micro_batch * passes));
            let bubble = per_micro_batch * u64::from(stages - 1);
            for npu in &outcome.npus {
                assert_eq!(npu.breakdown.total(), outcome.end);
            }
            assert_eq!(outcome.npus[0].breakdown.idle, Time::from_ps(bubble));
        }
    }
    for (stages, chunks, micro_batches) in [(2, 2, 4), (4, 2, 8), (3, 2, 6)] {
        let order = PipelineOrder::OneForwardOneBackward;
        let plan = piped(stages, chunks, micro_batches, order);
        let outcome = run_stages(&isolated(stages), &plan);
        let passes = u64::from(micro_batches * chunks + stages - 1);
        assert_eq!(outcome.end, Time::from_ps(per_micro_batch / u64::from(chunks) * passes));
    }
}

/// On a torus, on flows, packet by packet and in bulk: all bytes are sent, and no run is shorter than
/// one with messages of no time.
#[test]
fn messages_pass_every_network() {
    let plan = piped(4, 1, 6, PipelineOrder::OneForwardOneBackward);
    let least = run_stages(&isolated(4), &plan).end;
    let routes = routes("switch:8", "25 GB/s", 400_000);
    let graph = on_graph(&routes, flows(), (Collective::AllReduce, "ring"), ideal());
    let graph = TrainingFabric { sizes: vec![4, 2], ..graph };
    let bulk = TrainingFabric { detail: Detail::Flows, ..graph.clone() };
    let torus = torus([4, 2, 1]);
    let fabrics = [
        fabric(torus.clone(), ideal(), Population::All),
        fabric(torus.clone(), baseline("450 GB/s", 80), Population::All),
        fabric(torus.clone(), ace(&torus, "128 GB/s"), Population::All),
        graph,
        bulk,
    ];
    for fabric in fabrics {
        let outcome = run_stages(&fabric, &plan);
        assert!(outcome.end >= least, "{} < {least}", outcome.end);
        assert_eq!(sent(&outcome.npus[0]), 6 * MESSAGE.0);
        assert_eq!(sent(&outcome.npus[5]), 2 * 6 * MESSAGE.0);
        for npu in &outcome.npus {
            assert_eq!(npu.breakdown.total(), outcome.end);
        }
    }
}

/// Non-neighbours of a torus are reached through relays.
#[test]
fn a_message_is_relayed() {
    let send = |what: fn(Message) -> What, ahead| {
        let message = Message { rings: Rings::ALL, ahead, bytes: Bytes(1000), tag: 0 };
        let task = Task { what: what(message), layer: 0, pass: Pass::Forward, iteration: 0 };
        Program::new(vec!["x".to_owned()], vec![(task, Vec::new())]).unwrap()
    };
    let idle = alone_of(1);
    let programs = [idle, send(What::Send, 2), send(What::Recv, 6)];
    let fabric = fabric(torus([8, 1, 1]), ideal(), Population::All);
    let of = [1, 0, 2, 0, 0, 0, 0, 0];
    let run = TrainingRun {
        programs: &programs,
        of: &of,
        unreserved: &[],
        fabric: &fabric,
        window: Time::ZERO,
    };
    let outcome = run.run().unwrap();
    let links: Vec<u64> = outcome.npus.iter().map(sent).collect();
    assert_eq!(links[..3], [1000, 1000, 0]);
    assert_eq!(outcome.npus[2].spans[0].end, outcome.npus[0].spans[0].end.max(outcome.end));
}

/// A program of one compute task.
fn alone_of(ps: u64) -> Program {
    let what = What::Compute { time: Time::from_ps(ps), lane: crate::workload::Lane::Main };
    let task = Task { what, layer: 0, pass: Pass::Forward, iteration: 0 };
    Program::new(vec!["x".to_owned()], vec![(task, Vec::new())]).unwrap()
}

/// A group performs one collective of activations at a time; those of weights overlap with it.
#[test]
fn activations_and_weights_have_separate_communicators() {
    let transfer = Transfer { rings: Rings(1), ..Transfer::new(Collective::AllReduce, Bytes(8)) };
    let collectives = BTreeMap::from([(transfer, Time::from_ps(10))]);
    let network = Isolated { npus: 2, collectives, ..Isolated::default() };
    let fabric = TrainingFabric { network: StepNetwork::Isolated(network), ..isolated(2) };
    let end = |second: Transfer| {
        let task = |transfer| {
            let what = What::Collective(transfer);
            (Task { what, layer: 0, pass: Pass::Forward, iteration: 0 }, Vec::new())
        };
        let tasks = vec![task(transfer), task(second)];
        run(&fabric, &Program::new(vec!["x".to_owned()], tasks).unwrap()).end
    };
    assert_eq!(end(transfer), Time::from_ps(20));
    assert_eq!(end(transfer.of_weights()), Time::from_ps(10));
}

/// All steps of a ring are one flow per link: 2 (n - 1) times a message of 1 / n and its latency.
#[test]
fn flows_take_the_time_of_their_messages() {
    let routes = routes("switch:8", "25 GB/s", 400_000);
    let of = |algorithm| {
        let graph = on_graph(&routes, flows(), (Collective::AllReduce, algorithm), ideal());
        let bulk = TrainingFabric { detail: Detail::Flows, parts: Some(1), ..graph };
        run(&bulk, &alone(Collective::AllReduce, 8 << 20)).end.ps() - 1
    };
    // 1 MiB at 25 GB/s takes 41.94304 us; a path has two links of 400 ns.
    assert_eq!(of("ring"), 14 * (41_943_040 + 800_000));
    assert_eq!(of("recursive_halving_doubling"), 14 * 41_943_040 + 6 * 800_000);
    assert_eq!(of("direct:two_step"), 14 * 41_943_040 + 2 * 800_000);
}

/// Endpoints forward each packet at once, flows each step of a piece: they differ by the latencies
/// and the first pieces of the phases.
#[test]
fn large_collectives_take_as_long_in_flows_as_in_packets() {
    let routes = routes("fat_tree:k=4,n=2", "25 GB/s", 400_000);
    let graph = on_graph(&routes, flows(), (Collective::AllReduce, "ring"), ideal());
    let graph = TrainingFabric { sizes: vec![4, 4], algorithms: Algorithms::default(), ..graph };
    let bulk = TrainingFabric { detail: Detail::Flows, ..graph.clone() };
    for collective in [Collective::AllReduce, Collective::AllGather, Collective::AllToAll] {
        let program = alone(collective, 8 << 20);
        let packets = run(&graph, &program).end.ps();
        let percent = 100 * run(&bulk, &program).end.ps() / packets;
        assert!((95..110).contains(&percent), "{collective:?}: {percent} %");
    }
}

#[test]
fn messages_without_counterpart_are_refused() {
    let program = |what: What| {
        let task = Task { what, layer: 0, pass: Pass::Forward, iteration: 0 };
        Program::new(vec!["x".to_owned()], vec![(task, Vec::new())]).unwrap()
    };
    let message = |ahead, bytes| Message { rings: Rings(1), ahead, bytes: Bytes(bytes), tag: 3 };
    let fabric = isolated(2);
    let refused = |first: What, second: What| {
        let programs = [program(first), program(second)];
        let run = TrainingRun {
            programs: &programs,
            of: &[0, 1],
            unreserved: &[],
            fabric: &fabric,
            window: Time::ZERO,
        };
        run.run().unwrap_err()
    };
    let error = refused(What::Send(message(1, 8)), What::Recv(message(1, 9)));
    let (sent, received) = ("8 B".to_owned(), "9 B".to_owned());
    assert_eq!(error, TrainingRunError::OtherMessages { from: 0, to: 1, index: 0, sent, received });
    let error = refused(What::Send(message(1, 8)), What::Send(message(1, 8))).to_string();
    assert!(error.contains("the receiver has missing"), "{error}");
    let error = refused(What::Send(message(2, 8)), What::Recv(message(2, 8)));
    assert_eq!(error, TrainingRunError::SelfMessage { npu: 0 });
    let error = refused(What::Send(message(1, 8)), What::Recv(message(1, 8)));
    assert_eq!(error, TrainingRunError::NoTime { name: "message", bytes: Bytes(8) });
    let torus = TrainingFabric {
        detail: Detail::Flows,
        ..super::fabric(torus([2, 1, 1]), ideal(), Population::All)
    };
    let program = alone(Collective::AllReduce, 8);
    let run = TrainingRun {
        programs: &[program],
        of: &[],
        unreserved: &[],
        fabric: &torus,
        window: Time::ZERO,
    };
    assert_eq!(run.run().unwrap_err(), TrainingRunError::NoFlows);
}
