//! Runs that cannot finish are errors that name the blocked ranks and their peers; so are runs without messages.

use std::sync::atomic::AtomicBool;
use tutti_tests::model;

use tutti_engine::{Conditions, EngineError, LocalCosts, Outcome, Silent, Simulation, Waiting};
use tutti_network::Uncontended;
use tutti_schedule::algorithm;
use tutti_schedule::collective::Collective;
use tutti_schedule::{ChunkRange, Explicit, Layout, Schedule, Slot};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

const ALL: ChunkRange = ChunkRange::new(0, 1);

fn run(schedule: &dyn Schedule) -> Result<Outcome, EngineError> {
    let model = model(&("logp", &[("L", "1 us"), ("o", "1 us"), ("g", "1 us")]));
    let layout = Layout::new(Bytes(8), 8, 1).unwrap();
    let (costs, conditions) = (LocalCosts::FREE, Conditions::default());
    Simulation { schedule, layout, model: &model, costs, conditions }.run()
}

/// Ranks 0 and 1 first wait for each other and would only then send.
#[test]
fn a_cycle_of_waiting_ranks_is_named() {
    let mut builder = Explicit::builder(Collective::Barrier, 3, 1);
    for (rank, peer) in [(0, 1), (1, 0)] {
        builder.recv(RankId(rank), RankId(peer), Slot(1), ALL);
        builder.end_step(RankId(rank));
        builder.send(RankId(rank), RankId(peer), Slot::DATA, ALL);
    }
    let error = run(&builder.build().unwrap()).unwrap_err();
    let waits = |rank, on| Waiting { rank: RankId(rank), step: 0, on: vec![RankId(on)] };
    let waiting = vec![waits(0, 1), waits(1, 0)];
    assert_eq!(error, EngineError::Deadlock { waiting, stuck: 2, ranks: 3 });
    assert_eq!(
        error.to_string(),
        "the simulation cannot finish: 2 of 3 ranks are blocked forever: rank 0 in step 0 waits for rank 1; \
         rank 1 in step 0 waits for rank 0"
    );
}

#[test]
fn a_message_that_no_rank_receives_is_an_error() {
    let mut builder = Explicit::builder(Collective::Barrier, 2, 1);
    builder.send(RankId(0), RankId(1), Slot::DATA, ALL);
    let error = run(&builder.build().unwrap()).unwrap_err();
    let (sender, receiver) = (RankId(0), RankId(1));
    assert_eq!(error, EngineError::Unreceived { count: 1, sender, receiver });
}

#[test]
fn a_message_to_a_rank_that_is_not_there_is_an_error() {
    let mut builder = Explicit::builder(Collective::Barrier, 2, 1);
    builder.send(RankId(0), RankId(5), Slot::DATA, ALL);
    let error = run(&builder.build().unwrap()).unwrap_err();
    let (sender, receiver) = (RankId(0), RankId(5));
    assert_eq!(error, EngineError::NoSuchRank { sender, step: 0, receiver, ranks: 2 });
}

#[test]
fn a_run_that_moves_nothing_is_an_error() {
    let mut builder = Explicit::builder(Collective::Barrier, 2, 1);
    builder.compute(RankId(0), Time::from_ps(10));
    assert_eq!(run(&builder.build().unwrap()).unwrap_err(), EngineError::NothingMoved);
}

#[test]
fn a_time_beyond_all_time_is_an_error() {
    let mut builder = Explicit::builder(Collective::Barrier, 2, 1);
    builder.send(RankId(0), RankId(1), Slot::DATA, ALL);
    builder.recv(RankId(1), RankId(0), Slot(1), ALL);
    builder.compute(RankId(1), Time::MAX);
    let error = run(&builder.build().unwrap()).unwrap_err();
    assert_eq!(error, EngineError::TimeOverflow { rank: RankId(1) });
}

#[test]
fn a_payload_in_other_chunks_than_the_schedules_is_an_error() {
    let mut builder = Explicit::builder(Collective::Barrier, 2, 4);
    builder.send(RankId(0), RankId(1), Slot::DATA, ALL);
    builder.recv(RankId(1), RankId(0), Slot(1), ALL);
    let error = run(&builder.build().unwrap()).unwrap_err();
    assert_eq!(error, EngineError::WrongLayout { layout: 1, schedule: 4 });
}

#[test]
fn a_stopped_run_reports_it() {
    let schedule = algorithm::build("ring", Collective::AllReduce, 8).unwrap();
    let model = model(&("logp", &[("L", "1 us"), ("o", "1 us"), ("g", "1 us")]));
    let layout = Layout::of(schedule.shape(), Bytes(64), 8).unwrap();
    let (costs, conditions) = (LocalCosts::FREE, Conditions::default());
    let run = Simulation { schedule: &*schedule, layout, model: &model, costs, conditions };
    let stopped = run.run_through(&mut Uncontended, &AtomicBool::new(true), &mut Silent);
    assert_eq!(stopped.unwrap_err(), EngineError::Stopped);
    assert!(run.run_through(&mut Uncontended, &AtomicBool::new(false), &mut Silent).is_ok());
}
