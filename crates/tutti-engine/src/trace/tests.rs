//! Traces: GOAL text, dependencies, streams, matching and deadlocks.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::{Conditions, EngineError, LocalCosts, Simulation};
use tutti_network::{LogGP, Model};
use tutti_schedule::Layout;
use tutti_schedule::algorithm;
use tutti_schedule::collective::Collective;
use tutti_units::Bytes;

/// `LogGOPSim`'s defaults.
fn loggp() -> LogGP {
    let given = [("L", "2500 ns"), ("o", "1500 ns"), ("g", "1000 ns"), ("G", "6 ns/B")];
    let Model::LogGP(model) = tutti_network::build("loggp", &given).unwrap() else {
        unreachable!()
    };
    model
}

/// The completion time of each rank in ns.
fn run(text: &str) -> Result<Vec<u64>, EngineError> {
    let goal = goal::read(text.as_bytes()).unwrap();
    let model = loggp();
    let run = TraceRun::new(&goal.graph, &model, Conditions::default()).unwrap();
    let outcome = run.run(None, &AtomicBool::new(false))?;
    Ok(outcome.finish.iter().map(|time| time.ps() / 1000).collect())
}

fn two(first: &str, second: &str) -> String {
    format!("num_ranks 2\nrank 0 {{\n{first}\n}}\nrank 1 {{\n{second}\n}}\n")
}

#[test]
fn a_message_takes_two_overheads_the_latency_and_the_gaps() {
    let found = run(&two("send 8b to 1 tag 5", "recv 8b from 0 tag 5")).unwrap();
    assert_eq!(found, [1500, 1500 + 2500 + 7 * 6 + 1500]);
}

#[test]
fn a_stream_executes_one_operation_at_a_time() {
    let calc = two("calc 100\ncalc 200\ncalc 400 cpu 1", "");
    assert_eq!(run(&calc).unwrap(), [400, 0]);
    let chained = two("a: calc 100\nb: calc 400 cpu 1\nb requires a", "");
    assert_eq!(run(&chained).unwrap(), [500, 0]);
    let started = two("a: calc 100\nb: calc 400 cpu 1\nb irequires a", "");
    assert_eq!(run(&started).unwrap(), [400, 0]);
}

#[test]
fn a_stream_works_while_a_send_waits_for_the_port() {
    // The sends start at 0 and 1000 + 999 x 6 = 6994 ns; the computation fits in between.
    let first = "a: send 1000b to 1\nb: send 1000b to 1\nc: calc 5000";
    let found = run(&two(first, "recv 1000b from 0\nrecv 1000b from 0")).unwrap();
    assert_eq!(found[0], 6994 + 1500);
    assert_eq!(found[1], 6994 + 1500 + 2500 + 999 * 6 + 1500);
}

#[test]
fn messages_match_by_source_and_tag() {
    let first = "a: send 1b to 1 tag 1\nb: send 1b to 1 tag 2\nb requires a";
    let second = "a: recv 1b from 0 tag 2\nb: recv 1b from 0 tag 1\nc: calc 9000\nc requires b";
    // Tag 1 arrives at 4000 and is received at 5500; then the computation runs until 14500, before
    // tag 2, which arrives at 5500.
    assert_eq!(run(&two(first, second)).unwrap(), [3000, 5500 + 9000 + 1500]);
    let any = "a: recv 1b from -1 tag -1\nb: recv 1b from 0 tag -1\nb requires a";
    assert_eq!(run(&two(first, any)).unwrap(), [3000, 7000]);
}

#[test]
fn blocked_ranks_are_named_with_the_ranks_they_wait_for() {
    let error =
        run(&two("a: recv 1b from 1 tag 3\nb: send 1b to 1\nb requires a", "recv 1b from 0"));
    assert_eq!(
        error.unwrap_err().to_string(),
        "the trace cannot finish: 2 of 2 ranks are blocked forever: rank 0 in operation 0 waits for \
         rank 1 (tag 3); rank 1 in operation 0 waits for rank 0 (tag 0)"
    );
    let cyclic = run(&two("a: calc 1\nb: calc 1\nb requires a\na requires b", ""));
    assert!(cyclic.unwrap_err().to_string().contains("dependencies that never complete"));
    let lost = run(&two("send 1b to 1", "")).unwrap_err().to_string();
    assert_eq!(lost, "1 messages are never received; the first is from rank 0 to rank 1");
}

#[test]
fn lowered_schedules_take_the_time_of_the_schedule() {
    let model = loggp();
    for (notation, collective, ranks) in [
        ("ring", Collective::AllReduce, 5),
        ("recursive_multiplying:a2,a2,a2", Collective::AllReduce, 8),
        ("binomial", Collective::from_name("broadcast", tutti_units::ids::RankId(1)).unwrap(), 7),
        ("direct", Collective::AllToAll, 6),
    ] {
        let Ok(schedule) = algorithm::build(notation, collective, ranks) else {
            panic!("{notation} on {ranks} ranks")
        };
        let layout = Layout::of_schedule(&*schedule, Bytes(7680), 8).unwrap();
        let simulation = Simulation {
            schedule: &*schedule,
            layout,
            model: &model,
            costs: LocalCosts::FREE,
            conditions: Conditions::default(),
        };
        let expected = simulation.run().unwrap();
        let trace = lower(&*schedule, &layout, &LocalCosts::FREE).unwrap();
        let run = TraceRun::new(&trace, &model, Conditions::default()).unwrap();
        let found = run.run(None, &AtomicBool::new(false)).unwrap();
        assert_eq!(found.finish, expected.finish, "{notation}");
        assert_eq!((found.messages, found.bytes), (expected.messages, expected.bytes));
    }
}

#[test]
fn errors_of_text_name_the_line() {
    let refused = |text: &str| match goal::read(text.as_bytes()) {
        Err(goal::ReadError::Trace(error)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    for (text, expected) in [
        ("", "line 1: the number of ranks is missing: expected `num_ranks`"),
        ("num_ranks x", "line 1: `x`: expected the number of ranks, at most 2147483647"),
        (
            "num_ranks 2\nrank 0 {\n}\n",
            "line 4: 1 blocks for 2 ranks; the first missing block is of rank 1: expected a block \
             for each rank",
        ),
        ("num_ranks 1\nrank 0 {\nsend 8 to 1\n}", "line 3: `to`: expected `b`"),
        ("num_ranks 1\nrank 0 {\ncalc 1 tag 2\n}", "line 3: `tag`: expected `tag`, `cpu`, `nic`"),
        ("num_ranks 1\nrank 0 {\na: calc 1\na requires b\n}", "line 4: unknown label `b`"),
        ("num_ranks 1\nrank 0 {\na: calc 1\na: calc 1\n}", "line 4: label `a` is defined before"),
        ("num_ranks 1\n/* rank 0 {\n", "line 2: `/` starts no comment"),
    ] {
        assert!(refused(text).starts_with(expected), "{}", refused(text));
    }
}

/// A rank that computes for some time in ps, then starts a timed collective of two ranks.
fn meeting(computes: i64) -> Operations {
    let mut of = Operations::new();
    if computes > 0 {
        of.push(kind::COMPUTE, computes, (-1, 0), 0);
    }
    of.push(kind::TIMED, 0, (2, 7), 0);
    if let Some(duration) = of.durations.last_mut() {
        *duration = 500_000;
    }
    if computes > 0 {
        of.require(0);
    }
    of
}

#[test]
fn a_timed_collective_starts_with_its_last_rank_and_occupies_streams() {
    let (mut first, second) = (meeting(0), meeting(300_000));
    first.push(kind::COMPUTE, 100_000, (-1, 0), 0);
    let model = loggp();
    let trace = TraceGraph::of_columns(&[first, second]).unwrap();
    let run = TraceRun::new(&trace, &model, Conditions::default()).unwrap();
    let outcome = run.run(None, &AtomicBool::new(false)).unwrap();
    let ns = |times: &[tutti_units::Time]| times.iter().map(|t| t.ps() / 1000).collect::<Vec<_>>();
    assert_eq!(ns(&outcome.finish), [900, 800]);
    assert_eq!(ns(&outcome.busy), [900, 800]);
}

#[test]
fn ranks_that_wait_in_a_timed_collective_are_named() {
    let model = loggp();
    let trace = TraceGraph::of_columns(&[meeting(0), Operations::new()]).unwrap();
    let run = TraceRun::new(&trace, &model, Conditions::default()).unwrap();
    let error = run.run(None, &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(error.contains("rank 0 in operation 0 waits for other ranks of its collective"));
}

/// The columns of a rank whose values follow from random numbers: chains, joins and dependencies on
/// starts, with messages to other ranks, few tags, several streams, and open receives.
fn random_rank(
    rank: u32,
    ranks: u32,
    choices: &[(u8, u8, u8, u16)],
    receives: &[(u32, i64)],
) -> Operations {
    let mut of = Operations::new();
    let mut received = receives.iter();
    for (at, &(what, peer, stream, amount)) in choices.iter().enumerate() {
        let (stream, amount) = (i32::from(stream % 3) * 300, i64::from(amount));
        if what % 3 == 2 {
            of.push(kind::COMPUTE, amount * 1000, (-1, 0), stream);
        } else if what % 3 == 1 {
            let to = i32::try_from((rank + 1 + u32::from(peer) % (ranks - 1)) % ranks).unwrap();
            of.push(kind::SEND, amount, (to, i64::from(peer % 2)), stream);
        } else if let Some(&(from, tag)) = received.next() {
            let from = i32::try_from(from).unwrap();
            let (from, tag) = match peer % 16 {
                0 => (-1, -1),
                1 => (from, -1),
                _ => (from, tag),
            };
            of.push(kind::RECEIVE, amount, (from, tag), stream);
        } else {
            continue;
        }
        let own = of.len() - 1;
        if own > 0 && what % 5 != 0 {
            of.require(own as i64 - 1 - i64::from(peer) % (own as i64).min(4));
            if let Some(on_start) = of.on_start.last_mut() {
                *on_start = at % 7 == 0;
            }
        }
    }
    for &(from, tag) in received {
        of.push(kind::RECEIVE, 1, (i32::try_from(from).unwrap(), tag), 0);
    }
    of
}

/// Traces of several ranks whose receives match their sends, except for open receives.
fn random_trace(ranks: u32, choices: &[Vec<(u8, u8, u8, u16)>]) -> Vec<Operations> {
    let none: Vec<(u32, i64)> = Vec::new();
    let mut receives = vec![none; ranks as usize];
    for (rank, own) in (0..ranks).zip(choices) {
        for &(what, peer, ..) in own.iter().filter(|(what, ..)| what % 3 == 1) {
            let _ = what;
            let to = (rank + 1 + u32::from(peer) % (ranks - 1)) % ranks;
            receives[to as usize].push((rank, i64::from(peer % 2)));
        }
    }
    (0..ranks)
        .zip(choices)
        .map(|(rank, own)| random_rank(rank, ranks, own, &receives[rank as usize]))
        .collect()
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(512))]

    /// Compared with one heap of all events; about half of the traces finish.
    #[test]
    fn runs_are_those_of_the_simple_executor(
        choices in proptest::collection::vec(
            proptest::collection::vec(proptest::prelude::any::<(u8, u8, u8, u16)>(), 0..24), 2..6,
        ),
    ) {
        let ranks = u32::try_from(choices.len()).unwrap();
        let trace = random_trace(ranks, &choices);
        let model = loggp();
        let graph = TraceGraph::of_columns(&trace).unwrap();
        let run = TraceRun::new(&graph, &model, Conditions::default()).unwrap();
        let found = run.run(None, &AtomicBool::new(false)).ok();
        proptest::prop_assert_eq!(found, oracle::run(&graph, &model));
    }

    #[test]
    fn columns_survive_the_graph(
        choices in proptest::collection::vec(
            proptest::collection::vec(proptest::prelude::any::<(u8, u8, u8, u16)>(), 0..24), 2..6,
        ),
    ) {
        let ranks = u32::try_from(choices.len()).unwrap();
        let trace = random_trace(ranks, &choices);
        let graph = TraceGraph::of_columns(&trace).unwrap();
        let found: Vec<Operations> = (0..graph.ranks()).map(|rank| graph.columns(rank)).collect();
        proptest::prop_assert_eq!(found, trace);
    }
}
