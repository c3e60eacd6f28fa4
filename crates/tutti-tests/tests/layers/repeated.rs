//! Schedules that are run several times in a row.

use tutti_engine::{Conditions, LocalCosts, Simulation};
use tutti_network::PipeliningPostal;
use tutti_schedule::algorithm::build;
use tutti_schedule::collective::Collective;
use tutti_schedule::{ComposeError, Layout, Repeated, Schedule};
use tutti_units::{Bytes, Time, TimePerByte};

#[test]
fn a_block_takes_its_count_of_times_as_long_where_nothing_is_skewed() {
    let ns = |ns: u64| Time::from_ps(ns * 1_000);
    let model = PipeliningPostal { alpha_p: ns(500), alpha_r: ns(100), beta: TimePerByte::ZERO }
        .checked()
        .unwrap();
    let inner = build("recursive_multiplying:a2,a4", Collective::AllReduce, 8).unwrap();
    let schedule = Repeated::new(inner, 10).unwrap();
    let layout = Layout::new(Bytes(8), 8, 1).unwrap();
    let (costs, conditions) = (LocalCosts::FREE, Conditions::default());
    let run = Simulation { schedule: &schedule, layout, model: &model, costs, conditions };
    // 10 x (2 alpha_p + (1 + 3) alpha_r).
    assert_eq!(run.run().unwrap().completion_time(), ns(14_000));
}

#[test]
fn nothing_is_not_repeated() {
    let inner = || build("ring", Collective::AllReduce, 4).unwrap();
    assert!(matches!(Repeated::new(inner(), 0), Err(ComposeError::NoPhases)));
    assert_eq!(Repeated::new(inner(), 3).unwrap().shape().name, "ring x 3");
}
