//! Compute under a work-conserving memory arbiter, compared with the busy intervals of the memory server.

use super::super::arbiter::Pace;
use super::*;

fn ps(time: Time) -> u128 {
    u128::from(time.ps())
}

/// The end of a task by its definition: walks through the intervals in which the server is busy.
fn walked(pace: Pace, start: Time, busy: &[(Time, Time)]) -> Time {
    let mut left = ps(pace.shared) * ps(pace.alone);
    let mut now = start;
    let after = |now: Time, work: u128, per_ps: Time| {
        now + Time::from_ps(u64::try_from(work.div_ceil(ps(per_ps))).unwrap())
    };
    for &(from, until) in busy.iter().filter(|(_, until)| *until > start) {
        let from = from.max(now);
        let idle = ps(from - now) * ps(pace.shared);
        if left <= idle {
            return after(now, left, pace.shared);
        }
        left -= idle;
        let served = ps(until - from) * ps(pace.alone);
        if left <= served {
            return after(from, left, pace.alone);
        }
        left -= served;
        now = until;
    }
    after(now, left, pace.shared)
}

/// The program with compute tasks shortened to `part` of 16.
fn shortened(program: &Program, part: u64) -> Program {
    let mut plan = small_loop(program.iterations());
    for layer in &mut plan.layers {
        for time in [&mut layer.forward, &mut layer.input_gradient, &mut layer.weight_gradient] {
            *time = Time::from_ps(time.ps() * part / 16);
        }
    }
    plan.program().unwrap()
}

fn pace_of(shared: &Program, alone: &Program, task: TaskId) -> Option<Pace> {
    match (shared.tasks()[task.index()].what, alone.tasks()[task.index()].what) {
        (What::Compute { time: shared, .. }, What::Compute { time: alone, .. }) => {
            Some(Pace { shared, alone })
        }
        _ => None,
    }
}

fn arbitrated(fabric: &TrainingFabric, shared: &Program, alone: &Program) -> TrainingOutcome {
    let (programs, unreserved) = (std::slice::from_ref(shared), std::slice::from_ref(alone));
    TrainingRun { programs, of: &[], unreserved, fabric, window: Time::ZERO }.run().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every task ends in the picosecond in which its work is done, by the intervals in which the
    /// memory server of the run was busy.
    #[test]
    fn tasks_end_when_their_work_is_done(
        nodes in prop::array::uniform3(1_u32..5),
        which in 1_u8..4,
        part in 1_u64..=16,
        iterations in 1_u32..3,
    ) {
        prop_assume!(nodes.iter().any(|nodes| *nodes > 1));
        let torus = torus(nodes);
        let endpoint = any_endpoint(&torus, which);
        let memory = endpoint.memory.unwrap();
        let fabric = fabric(torus, endpoint, Population::One);
        let shared = small_loop(iterations).program().unwrap();
        let alone = shortened(&shared, part);
        let (programs, unreserved) = (std::slice::from_ref(&shared), std::slice::from_ref(&alone));
        let run =
            TrainingRun { programs, of: &[], unreserved, fabric: &fabric, window: Time::ZERO };
        let mut state = State::new(&run).unwrap();
        state.start();
        while state.step() {}
        let Communication::Endpoints(running) = &state.fabric else { panic!("endpoints") };
        let busy = &running.npus[0].servers[memory].intervals;
        prop_assert!(!busy.is_empty());
        for span in &state.processors[0].spans {
            if let Some(pace) = pace_of(&shared, &alone, span.task) {
                prop_assert_eq!(span.end, walked(pace, span.start, busy), "{:?}", span.task);
            }
        }
    }

    /// The estimate of a task is the walk through one interval that starts now.
    #[test]
    fn the_remaining_time_follows_the_definition(
        alone in 1_u64..400,
        longer in 0_u64..400,
        ahead in 0_u64..900,
    ) {
        let [alone, shared, ahead] = [alone, alone + longer, ahead].map(Time::from_ps);
        let pace = Pace { shared, alone };
        let start = Time::from_ps(7);
        let left = pace.left((Time::ZERO, Time::ZERO), ahead);
        prop_assert_eq!(start + left, walked(pace, start, &[(start, start + ahead)]));
        prop_assert!(alone <= left && left <= shared);
    }

    /// The arbiter changes nothing if the reservation costs nothing, never exceeds a static
    /// reservation, and one NPU represents all.
    #[test]
    fn the_arbiter_is_between_all_and_nothing(which in 1_u8..4, part in 1_u64..=16) {
        let torus = torus([4, 2, 1]);
        let endpoint = any_endpoint(&torus, which);
        let fabric = fabric(torus, endpoint, Population::One);
        let shared = small_loop(2).program().unwrap();
        let alone = shortened(&shared, part);
        prop_assert_eq!(arbitrated(&fabric, &shared, &shared), run(&fabric, &shared));
        let one = arbitrated(&fabric, &shared, &alone);
        let computed = |outcome: &TrainingOutcome| outcome.npus[0].breakdown.computing();
        prop_assert!(computed(&one) <= computed(&run(&fabric, &shared)));
        prop_assert!(computed(&one) >= computed(&run(&fabric, &alone)));
        let all = TrainingFabric { population: Population::All, ..fabric };
        let all = arbitrated(&all, &shared, &alone);
        prop_assert_eq!(all.end, one.end);
        for npu in &all.npus {
            prop_assert_eq!(npu, &one.npus[0]);
        }
    }
}

/// Compute that is bound by memory and hides an all_reduce moves its own bytes and those of the
/// endpoint at the complete bandwidth.
#[test]
fn hidden_communication_costs_the_bytes_that_it_moves() {
    let torus = torus([4, 4, 4]);
    let endpoint = ace(&torus, "128 GB/s");
    let fabric = fabric(torus, endpoint, Population::One);
    let layer = |name: &str, forward: &str, bytes| Layer {
        name: name.to_owned(),
        weight_gradient: rate(forward).of(Bytes(900 << 20)),
        after_weight_gradient: (bytes > 0)
            .then(|| Transfer::new(Collective::AllReduce, Bytes(bytes))),
        ..Layer::default()
    };
    let program = |rate| {
        let plan = TrainingLoop {
            layers: vec![layer("hides", rate, 0), layer("sends", rate, 8 << 20)],
            ..TrainingLoop::default()
        };
        plan.program().unwrap()
    };
    let (shared, alone) = (program("772 GB/s"), program("900 GB/s"));
    let end = arbitrated(&fabric, &shared, &alone).end;
    let expected = rate("900 GB/s").of(Bytes((2 * 900 + 8) << 20));
    let packets = (8 << 20) / (8 << 10);
    assert!(end.ps().abs_diff(expected.ps()) <= packets, "{end} {expected}");
    assert_eq!(run(&fabric, &shared).end, rate("772 GB/s").of(Bytes(900 << 20)).times(2));
}

#[test]
fn other_programs_and_endpoints_without_memory_are_refused() {
    let torus = torus([2, 1, 1]);
    let refused = |endpoint, shared: &Program, alone: &Program| {
        let fabric = fabric(torus.clone(), endpoint, Population::One);
        let (programs, unreserved) = (std::slice::from_ref(shared), std::slice::from_ref(alone));
        let run =
            TrainingRun { programs, of: &[], unreserved, fabric: &fabric, window: Time::ZERO };
        run.run().unwrap_err()
    };
    let (one, two) = (small_loop(1).program().unwrap(), small_loop(2).program().unwrap());
    let memory = || baseline("128 GB/s", 2);
    let other = TrainingRunError::OtherUnreserved { program: 0, task: TaskId(0) };
    assert_eq!(refused(memory(), &one, &two), other);
    assert_eq!(refused(memory(), &shortened(&one, 8), &one), other);
    let name = "ideal".to_owned();
    assert_eq!(refused(ideal(), &one, &one), TrainingRunError::NoMemoryServer { name });
}
