//! What goes in comes out, nothing happens before its cause, and a rank's time is accounted for.

use std::collections::BTreeMap;

use tutti_engine::{Activity, Conditions, LocalCosts, Outcome, Ranks, Simulation, Timeline};
use tutti_network::Model;
use tutti_schedule::algorithm::{self, REGISTRY, Request};
use tutti_schedule::collective::Collective;
use tutti_schedule::{ChunkRange, Explicit, Layout, Schedule, Slot, Step};
use tutti_tests::{MODELS, Shaken, model};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time, TimePerByte};

fn record(schedule: &dyn Schedule, size: u64, model: &Model, seed: u64) -> (Outcome, Timeline) {
    let layout = Layout::of(schedule.shape(), Bytes(size), 8).unwrap();
    let gamma = TimePerByte::parse("0.2 ns/B").unwrap();
    let costs = LocalCosts { gamma, ..LocalCosts::FREE };
    let shaken = Shaken { seed };
    let conditions = Conditions { disturbance: Some(&shaken), distance: None };
    let run = Simulation { schedule, layout, model, costs, conditions };
    let (outcome, timeline) = run.run_recorded().unwrap();
    assert_eq!(run.run().unwrap(), outcome, "looking changes nothing");
    (outcome, timeline)
}

/// Bytes per (sender, receiver) of the schedule, without simulation.
fn bytes_by_pair(schedule: &dyn Schedule, size: u64, sent: bool) -> BTreeMap<(u32, u32), u64> {
    let layout = Layout::of(schedule.shape(), Bytes(size), 8).unwrap();
    let mut bytes = BTreeMap::new();
    let mut step = Step::new();
    for rank in (0..schedule.shape().ranks).map(RankId) {
        for index in 0..schedule.steps(rank) {
            step.clear();
            schedule.step(rank, index, &mut step);
            for message in if sent { &step.sends } else { &step.recvs } {
                let pair = if sent { (rank.0, message.peer.0) } else { (message.peer.0, rank.0) };
                *bytes.entry(pair).or_default() += layout.bytes(message.chunks).0;
            }
        }
    }
    bytes
}

#[test]
fn every_algorithm_conserves_bytes_and_causality() {
    for entry in REGISTRY {
        for collective in Collective::ALL.iter().filter(|c| entry.collectives.contains(&c.name())) {
            for ranks in [2, 5, 8, 12] {
                let request = Request { collective: *collective, ranks, argument: None };
                if (entry.claims)(&request) {
                    let schedule = (entry.build)(&request).unwrap();
                    for parameters in MODELS {
                        // No multiple of the ranks, where the collective can do with that.
                        let fits =
                            |size: &u64| Layout::of_schedule(&*schedule, Bytes(*size), 8).is_ok();
                        let size = [808, 960, 0].into_iter().find(fits).unwrap();
                        check(&*schedule, size, &model(parameters));
                    }
                }
            }
        }
    }
}

fn check(schedule: &dyn Schedule, size: u64, model: &Model) {
    let name = &schedule.shape().name;
    let (outcome, timeline) = record(schedule, size, model, 3);
    let sent = bytes_by_pair(schedule, size, true);
    assert_eq!(sent, bytes_by_pair(schedule, size, false), "{name}: sent is received");
    assert_eq!(outcome.bytes, u128::from(sent.values().sum::<u64>()), "{name}");
    let recorded: u64 = timeline.messages.iter().map(|message| message.bytes.0).sum();
    assert_eq!(outcome.bytes, u128::from(recorded), "{name}");
    assert_eq!(outcome.messages, timeline.messages.len() as u64, "{name}");
    for message in &timeline.messages {
        assert!(message.sent < message.arrival && message.arrival <= message.received, "{name}");
    }
    // A rank's spans follow one another without a gap from its entry to its end: compute, communication
    // and waiting add up to all of its time.
    for rank in 0..schedule.shape().ranks as usize {
        let mut clock = outcome.start[rank];
        for span in timeline.spans.iter().filter(|span| span.rank.index() == rank) {
            assert_eq!(span.start, clock, "{name}: {} after {clock}", span.activity.name());
            clock = span.end;
        }
        assert_eq!(clock, outcome.finish[rank], "{name}");
    }
}

/// Two messages of a step to one rank, of which noise lets either arrive first.
#[test]
fn a_message_that_was_overtaken_is_recorded_as_itself() {
    let (a, b, both) = (RankId(0), RankId(1), ChunkRange::new(0, 2));
    let mut builder = Explicit::builder(Collective::Broadcast { root: a }, 2, 2);
    for chunk in both.iter().map(ChunkRange::one) {
        builder.send(a, b, Slot::DATA, chunk).recv(b, a, Slot::DATA, chunk);
    }
    let schedule = builder.build().unwrap();
    let overtaken = (0..20).filter(|&seed| {
        let (_, timeline) = record(&schedule, 64, &model(&MODELS[0]), seed);
        let [first, second] = timeline.messages[..] else { panic!("{timeline:?}") };
        assert!(first.arrival <= first.received && second.arrival <= second.received);
        second.received < first.received
    });
    assert!(overtaken.count() > 0, "noise shakes the order");
}

#[test]
fn no_rank_of_a_barrier_leaves_before_every_rank_has_entered() {
    for entry in REGISTRY.iter().filter(|entry| entry.collectives.contains(&"barrier")) {
        for ranks in [2, 3, 7, 16] {
            let request = Request { collective: Collective::Barrier, ranks, argument: None };
            if !(entry.claims)(&request) {
                continue;
            }
            let schedule = (entry.build)(&request).unwrap();
            let (outcome, _) = record(&*schedule, 0, &model(&MODELS[2]), u64::from(ranks));
            let last_in = outcome.start.iter().max().unwrap();
            assert!(outcome.finish.iter().all(|finish| finish > last_in), "{}", entry.name);
        }
    }
}

#[test]
fn same_input_same_bits_on_any_number_of_threads() {
    let schedule = algorithm::build("ring", Collective::AllReduce, 24).unwrap();
    let once = record(&*schedule, 8000, &model(&MODELS[5]), 11);
    let twice: Vec<_> = std::thread::scope(|scope| {
        let run = || record(&*schedule, 8000, &model(&MODELS[5]), 11);
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(twice.iter().all(|other| *other == once));
    assert!(once.0.completion_time() > Time::ZERO);
}

/// A slow rank's local work takes its nominal time over its speed; that of the others is unchanged.
#[test]
fn a_rank_at_half_speed_folds_twice_as_long() {
    let schedule = algorithm::build("ring", Collective::AllReduce, 4).unwrap();
    let layout = Layout::of(schedule.shape(), Bytes(4096), 8).unwrap();
    let gamma = TimePerByte::parse("0.3 ns/B").unwrap();
    let ranks = Ranks { speeds: vec![1.0, 0.5], ..Ranks::default() };
    let run = Simulation {
        schedule: &*schedule,
        layout,
        model: &model(&MODELS[5]),
        costs: LocalCosts { gamma, ..LocalCosts::FREE },
        conditions: Conditions { disturbance: Some(&ranks), distance: None },
    };
    let (_, timeline) = run.run_recorded().unwrap();
    let folding = |rank: u32| {
        let spans = timeline.spans.iter().filter(|span| span.activity == Activity::Reduce);
        spans.filter(|span| span.rank == RankId(rank)).map(|s| s.end - s.start).sum::<Time>()
    };
    // Three folds of 1,024 bytes at 0.3 ns.
    assert_eq!(folding(0).ps(), 3 * 307_200);
    assert_eq!(folding(1), folding(0).times(2));
    assert_eq!(folding(2), folding(0));
}
