//! Runs with a latest end, compared with complete runs.

use super::*;

fn before(run: &TrainingRun<'_>, latest: Time) -> Option<TrainingOutcome> {
    run.run_before(latest, &AtomicBool::new(false)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A run ends with its outcome at its end or later, and without one before.
    #[test]
    fn only_a_run_that_ends_in_time_has_an_outcome(
        iterations in 1_u32..4,
        part in 0_u64..=1000,
        is_ideal in any::<bool>(),
    ) {
        let endpoint = if is_ideal { ideal() } else { baseline("100 GB/s", 6) };
        let fabric = fabric(torus([4, 2, 1]), endpoint, Population::One);
        let program = small_loop(iterations).program().unwrap();
        let programs = std::slice::from_ref(&program);
        let window = Time::ZERO;
        let run = TrainingRun { programs, of: &[], unreserved: &[], fabric: &fabric, window };
        let complete = run.run().unwrap();
        let end = complete.end;
        let early = Time::from_ps((end.ps() - 1) * part / 1000);
        prop_assert!(before(&run, early).is_none());
        for latest in [end, end + early] {
            prop_assert_eq!(before(&run, latest).map(|outcome| outcome.end), Some(end));
        }
    }
}

/// Without communication, the first task shows that the run ends too late.
#[test]
fn remaining_computation_counts() {
    let fabric = fabric(torus([4, 2, 1]), ideal(), Population::One);
    let compute = |name: &str| Layer {
        name: name.to_owned(),
        forward: Time::from_ps(10),
        weight_gradient: Time::from_ps(20),
        ..Layer::default()
    };
    let plan = TrainingLoop { layers: vec![compute("a"), compute("b")], ..TrainingLoop::default() };
    let programs = [plan.program().unwrap()];
    let window = Time::ZERO;
    let run =
        TrainingRun { programs: &programs, of: &[], unreserved: &[], fabric: &fabric, window };
    let mut state = State::new(&run).unwrap();
    state.start();
    assert!(state.step());
    assert_eq!(state.remaining.earliest_end, run.run().unwrap().end);
}
