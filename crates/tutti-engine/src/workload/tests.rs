//! Training loops as programs: the dependencies of each task.

use super::*;
use tutti_schedule::collective::Collective;
use tutti_units::{Bytes, Time};

fn layer(name: &str, bytes: u64) -> Layer {
    Layer {
        name: name.to_owned(),
        forward: Time::from_ps(1),
        input_gradient: Time::from_ps(1),
        weight_gradient: Time::from_ps(1),
        after_weight_gradient: Some(Transfer::new(Collective::AllReduce, Bytes(bytes))),
        ..Layer::default()
    }
}

fn plan(iterations: u32) -> TrainingLoop {
    let mut first = layer("a", 10);
    first.input_gradient = Time::ZERO;
    TrainingLoop {
        layers: vec![first, layer("b", 20), layer("c", 30)],
        iterations,
        ..TrainingLoop::default()
    }
}

/// A short form of each task: pass and layer, a collective in brackets.
fn listed(program: &Program) -> Vec<String> {
    let one = |task: &Task| {
        let pass = match task.pass {
            Pass::Forward => "f",
            Pass::InputGradient => "i",
            Pass::WeightGradient => "w",
            Pass::Update => "u",
        };
        let name = &program.names()[task.layer as usize];
        match task.what {
            What::Compute { lane: Lane::Main, .. } => format!("{pass}{name}"),
            What::Compute { .. } => format!("behind {pass}{name}"),
            What::Collective(transfer) => format!("[{pass}{name} {}]", transfer.bytes.0),
            What::Send(message) => format!("{pass}{name} ->{}", message.ahead),
            What::Recv(message) => format!("{pass}{name} <-{}", message.ahead),
        }
    };
    program.tasks().iter().map(one).collect()
}

/// The short forms of the tasks that depend on a task.
fn after(program: &Program, listed: &[String], task: &str) -> Vec<String> {
    let index = listed.iter().position(|one| one == task).unwrap();
    let id = TaskId(u32::try_from(index).unwrap());
    program.followers(id).iter().map(|task| listed[task.index()].clone()).collect()
}

#[test]
fn gradients_leave_before_the_input_gradient() {
    let program = plan(1).program().unwrap();
    let expected =
        ["fa", "fb", "fc", "wc", "[wc 30]", "ic", "wb", "[wb 20]", "ib", "wa", "[wa 10]"];
    assert_eq!(listed(&program), expected);
}

#[test]
fn a_forward_pass_waits_for_the_gradients_of_its_layer() {
    let program = plan(2).program().unwrap();
    let listed = listed(&program);
    assert_eq!(after(&program, &listed, "[wa 10]"), ["fa"]);
    assert_eq!(after(&program, &listed, "[wb 20]"), ["fb"]);
    let second = listed.iter().rposition(|task| task == "fb").unwrap();
    let gradients = listed.iter().position(|task| task == "[wb 20]").unwrap();
    let followers = program.followers(TaskId(u32::try_from(gradients).unwrap()));
    assert_eq!(followers, [TaskId(u32::try_from(second).unwrap())]);
}

#[test]
fn without_overlap_one_collective_ends_the_backward_pass() {
    let program = TrainingLoop { overlap: false, ..plan(2) }.program().unwrap();
    let listed = listed(&program);
    let expected = ["fa", "fb", "fc", "wc", "ic", "wb", "ib", "wa", "[wa 60]"];
    assert_eq!(listed[..9], expected);
    assert!(after(&program, &listed, "[wa 60]").contains(&"fa".to_owned()));
}

#[test]
fn a_bucket_gathers_gradients() {
    let program = TrainingLoop { bucket: Some(Bytes(45)), ..plan(1) }.program().unwrap();
    let sent: Vec<String> =
        listed(&program).into_iter().filter(|task| task.starts_with('[')).collect();
    assert_eq!(sent, ["[wb 50]", "[wa 10]"]);
}

fn embedding(background: bool) -> Embedding {
    let (lookup, update) = (Time::from_ps(5), Time::from_ps(6));
    Embedding { bottom: 1, lookup, first_lookup: lookup, update, bytes: Bytes(64), background }
}

#[test]
fn top_layers_wait_for_embedding_lookups() {
    let program = TrainingLoop { embedding: Some(embedding(false)), ..plan(2) }.program().unwrap();
    let listed = listed(&program);
    let expected = [
        "fembedding",
        "[fembedding 64]",
        "fa",
        "fb",
        "fc",
        "wc",
        "[wc 30]",
        "ic",
        "wb",
        "[wb 20]",
        "ib",
        "[iembedding 64]",
        "wa",
        "[wa 10]",
        "uembedding",
    ];
    assert_eq!(listed[..15], expected);
    assert_eq!(after(&program, &listed, "[fembedding 64]"), ["fb"]);
    assert_eq!(after(&program, &listed, "[iembedding 64]"), ["uembedding"]);
    assert!(after(&program, &listed, "uembedding").contains(&"fembedding".to_owned()));
}

#[test]
fn the_next_lookup_overlaps_with_the_loop_in_the_background() {
    let program = TrainingLoop { embedding: Some(embedding(true)), ..plan(3) }.program().unwrap();
    let listed = listed(&program);
    let count = |task: &str| listed.iter().filter(|one| *one == task).count();
    assert_eq!(count("fembedding"), 1, "the first lookup cannot overlap");
    assert_eq!(count("behind fembedding"), 2);
    assert_eq!(count("behind uembedding"), 2, "the last update is not in the program");
    assert_eq!(after(&program, &listed, "[iembedding 64]"), ["behind uembedding"]);
}

fn gathering(bytes: u64) -> Option<Transfer> {
    Some(Transfer::new(Collective::AllGather, Bytes(bytes)))
}

#[test]
fn weights_are_gathered_a_pass_ahead() {
    let mut plan = TrainingLoop { prefetch: Some(1), ..plan(1) };
    for (layer, bytes) in plan.layers.iter_mut().zip([1, 2, 3]) {
        layer.before_forward = gathering(bytes);
        layer.before_backward = gathering(10 * bytes);
    }
    let program = plan.program().unwrap();
    let listed = listed(&program);
    assert_eq!(after(&program, &listed, "[fa 1]"), ["fa"]);
    assert_eq!(after(&program, &listed, "[fb 2]"), ["fb"]);
    assert_eq!(after(&program, &listed, "fa"), ["fb", "[fc 3]"], "gathered while b computes");
    assert_eq!(after(&program, &listed, "fb"), ["fc", "[wc 30]"]);
    assert_eq!(after(&program, &listed, "[wc 30]"), ["wc"]);
    assert_eq!(after(&program, &listed, "wc"), ["[wc 30]", "ic", "[wa 10]"]);
}

#[test]
fn stored_weights_are_gathered_after_each_update() {
    let mut plan = plan(2);
    plan.layers[1].before_forward = gathering(7);
    plan.layers[1].update = Time::from_ps(1);
    let program = plan.program().unwrap();
    let listed = listed(&program);
    assert_eq!(after(&program, &listed, "[wb 20]"), ["ub"]);
    assert_eq!(after(&program, &listed, "ub"), ["[fb 7]", "fb"]);
    assert_eq!(listed.iter().filter(|task| *task == "[fb 7]").count(), 2);
}

#[test]
fn collectives_of_a_pass_are_sequential() {
    let mut plan = plan(1);
    let hand = |bytes| Transfer::new(Collective::AllToAll, Bytes(bytes));
    plan.layers[0].after_forward = vec![hand(5), hand(6)];
    plan.layers[2].after_input_gradient = vec![hand(8)];
    let program = plan.program().unwrap();
    let listed = listed(&program);
    assert_eq!(after(&program, &listed, "fa"), ["[fa 5]", "fb"]);
    assert_eq!(after(&program, &listed, "[fa 5]"), ["[fa 6]"]);
    assert_eq!(after(&program, &listed, "[fa 6]"), ["fb"]);
    assert_eq!(after(&program, &listed, "[ic 8]"), ["wb"]);
}

/// A ring exchange: part of the pass runs meanwhile, and the rest waits for both.
#[test]
fn covered_collectives_run_with_the_pass() {
    let mut plan = plan(1);
    let exchange = |bytes| Transfer::new(Collective::AllGather, Bytes(bytes));
    plan.layers[1].with_forward = vec![exchange(5)];
    plan.layers[1].covered_forward = Time::from_ps(3);
    plan.layers[2].with_backward = vec![exchange(7), exchange(8)];
    plan.layers[2].covered_backward = Time::from_ps(2);
    let program = plan.program().unwrap();
    let listed = listed(&program);
    let at = |task: &str| listed.iter().position(|one| one == task).unwrap();
    let start = at("fb");
    assert_eq!(listed[start..start + 4], ["fb", "[fb 5]", "fb", "fc"]);
    let all = TaskId(u32::try_from(start).unwrap());
    let ids = |range: std::ops::Range<usize>| -> Vec<TaskId> {
        range.map(|task| TaskId(u32::try_from(task).unwrap())).collect()
    };
    assert_eq!(program.followers(all), ids(start + 1..start + 3));
    assert_eq!(program.followers(TaskId(all.0 + 1)), ids(start + 3..start + 4));
    assert_eq!(after(&program, &listed, "fc"), ["[ic 7]", "ic"]);
    assert_eq!(after(&program, &listed, "[ic 8]"), ["wc"]);
}

#[test]
fn gradients_of_each_kind_have_separate_buckets() {
    let mut mixed = TrainingLoop { bucket: Some(Bytes(1000)), ..plan(1) };
    mixed.layers[1].after_weight_gradient =
        Some(Transfer::new(Collective::ReduceScatter, Bytes(9)));
    let listed = listed(&mixed.program().unwrap());
    assert_eq!(listed[listed.len() - 2..], ["[wa 40]", "[wb 9]"]);
}

/// Two stages of one layer each.
fn piped(micro_batches: u32) -> TrainingLoop {
    let pipeline = Pipeline {
        stages: 2,
        micro_batches,
        order: PipelineOrder::OneForwardOneBackward,
        rings: Rings(1),
        ends: vec![1, 2],
        messages: vec![Bytes(4)],
    };
    let layers = vec![layer("a", 10), layer("b", 20)];
    TrainingLoop { layers, pipeline: Some(pipeline), ..TrainingLoop::default() }
}

#[test]
fn stages_pass_micro_batches() {
    let first = piped(2).stage(0).unwrap();
    let expected =
        ["fa", "fa ->1", "fa", "fa ->1", "ia <-1", "wa", "ia", "ia <-1", "wa", "[wa 10]", "ia"];
    assert_eq!(listed(&first), expected);
    assert_eq!(after(&first, &expected.map(str::to_owned), "ia <-1"), ["wa"]);
    let last = piped(2).stage(1).unwrap();
    let expected =
        ["fb <-1", "fb", "wb", "ib", "ib ->1", "fb <-1", "fb", "wb", "[wb 20]", "ib", "ib ->1"];
    assert_eq!(listed(&last), expected);
}

/// The first layer of a unit gathers in the forward pass, the last one in the backward pass.
#[test]
fn each_micro_batch_gathers_sharded_weights() {
    let mut plan = TrainingLoop { prefetch: Some(1), ..piped(2) };
    plan.layers = vec![layer("a", 10), layer("b", 20), layer("c", 30), layer("d", 40)];
    if let Some(pipeline) = &mut plan.pipeline {
        pipeline.ends = vec![2, 4];
    }
    plan.layers[0].before_forward = gathering(7);
    plan.layers[1].before_backward = gathering(8);
    let sharded = listed(&plan.stage(0).unwrap());
    let count = |listed: &[String], task| listed.iter().filter(|one| *one == task).count();
    assert_eq!((count(&sharded, "[fa 7]"), count(&sharded, "[wb 8]")), (2, 2));
    let stored = TrainingLoop { prefetch: None, ..plan };
    assert_eq!(count(&listed(&stored.stage(0).unwrap()), "[fa 7]"), 1);
}

#[test]
fn invalid_pipelines_are_rejected() {
    let few = piped(1).program().unwrap_err();
    let source = PipelineError::TooFew { stages: 2, micro_batches: 1 };
    assert_eq!(few, TrainingError::Pipeline { source });
    let tables = TrainingLoop { embedding: Some(embedding(false)), ..piped(2) };
    let tables =
        TrainingLoop { layers: [plan(1).layers, tables.layers.clone()].concat(), ..tables };
    assert!(matches!(tables.program(), Err(TrainingError::Pipeline { .. })));
}

#[test]
fn invalid_training_loops_are_rejected() {
    let none = TrainingLoop { layers: Vec::new(), ..plan(1) };
    assert_eq!(none.program().unwrap_err(), TrainingError::NoLayers);
    assert_eq!(plan(0).program().unwrap_err(), TrainingError::NoIterations);
    let top = Embedding { bottom: 3, ..embedding(false) };
    let error = TrainingLoop { embedding: Some(top), ..plan(1) }.program().unwrap_err();
    assert_eq!(error, TrainingError::NoTop { bottom: 3, layers: 3 });
}

#[test]
fn a_cycle_is_listed() {
    let task = |_| Task {
        what: What::Compute { time: Time::from_ps(1), lane: Lane::Main },
        layer: 0,
        pass: Pass::Forward,
        iteration: 0,
    };
    let waits = [vec![], vec![TaskId(3), TaskId(0)], vec![TaskId(1)], vec![TaskId(2)]];
    let tasks = (0..4).map(task).zip(waits).collect();
    let error = Program::new(vec!["x".to_owned()], tasks).unwrap_err();
    let expected = "tasks have a cyclic dependency: task 1 -> task 3 -> task 2 -> task 1";
    assert_eq!(error.to_string(), expected);
    let missing = Program::new(Vec::new(), vec![(task(0), vec![TaskId(7)])]).unwrap_err();
    assert!(matches!(missing, ProgramError::NoSuchTask { tasks: 1, .. }));
    assert_eq!(Program::new(Vec::new(), Vec::new()).unwrap_err(), ProgramError::Empty);
}
