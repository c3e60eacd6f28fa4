//! Small cases of paths with turns, worked out by hand: unicasts, and multicasts and responses that
//! take them.

use super::common::{Operation, both, broadcast, smart, took, unicast};
use tutti_noc::smart::{Combine, FanIn, FanOut, FullyConnected, Priority, Settings, Tree};

/// Eight hops per cycle on paths that may turn.
fn turning(columns: u32, rows: u32) -> Settings {
    Settings { bypass_turns: true, ..smart(columns, rows) }
}

#[test]
fn a_flit_passes_the_router_where_it_turns() {
    // 0 > 1 > 2 > 6 > 10 in one crossing, past three routers. The request is driven to the edge of
    // the row, and from the turn to the edge of the column.
    both(&turning(4, 3), &[(0, unicast(0, 10))], |outcome| {
        assert_eq!(took(outcome, 0), 2);
        let counts = outcome.counts;
        assert_eq!((counts.buffer_writes, counts.link_hops, counts.bypasses), (2, 4, 3));
        assert_eq!((counts.requests, counts.request_hops), (1, 3 + 2));
    });
    // With three hops per cycle it stops a hop after the turn.
    let three = Settings { hops_per_cycle: 3, ..turning(4, 3) };
    both(&three, &[(0, unicast(0, 10))], |outcome| {
        assert_eq!(took(outcome, 0), 4);
        let counts = outcome.counts;
        assert_eq!((counts.buffer_writes, counts.link_hops, counts.bypasses), (3, 4, 2));
        assert_eq!((counts.requests, counts.request_hops), (2, 3 + 1 + 1));
    });
}

#[test]
fn the_nearer_of_two_passing_flits_wins_an_output() {
    // To router 10 of 3x4: 3 > 10 turns north at router 4, a hop from its buffer. 0 > 10 turned at
    // router 1 and comes to router 4 after two hops.
    let operations = [(0, unicast(0, 10)), (0, unicast(3, 10))];
    let with = |priority| Settings { priority, ..turning(3, 4) };
    both(&with(Priority::Local), &operations, |outcome| {
        assert_eq!((took(outcome, 0), took(outcome, 1)), (4, 2));
    });
    both(&with(Priority::Bypass), &operations, |outcome| {
        assert_eq!((took(outcome, 0), took(outcome, 1)), (2, 4));
    });
}

#[test]
fn of_equally_near_flits_the_straight_one_wins_then_that_from_the_right() {
    // To router 10 of 3x4, through router 4: from router 1 straight, from routers 3 and 5 with a
    // turn there, to the left and to the right. Losers stop at router 4 and go on one by one.
    let pairs = |sources: &[u32]| -> Vec<(u64, Operation)> {
        sources.iter().map(|&source| (0, unicast(source, 10))).collect()
    };
    for priority in [Priority::Local, Priority::Bypass] {
        let settings = Settings { priority, ..turning(3, 4) };
        both(&settings, &pairs(&[1, 3, 5]), |outcome| {
            assert_eq!(took(outcome, 0), 2, "straight");
            assert_eq!(took(outcome, 1).min(took(outcome, 2)), 4);
        });
        both(&settings, &pairs(&[3, 5]), |outcome| {
            assert_eq!((took(outcome, 0), took(outcome, 1)), (2, 4), "3 turns to the left");
        });
    }
}

#[test]
fn a_flit_that_turns_and_one_that_does_not_share_an_input() {
    // Along a row of 4x3, 0 > 9 turns at router 1. 1 > 3 has another input and output there.
    both(&turning(4, 3), &[(0, unicast(0, 9)), (0, unicast(1, 3))], |outcome| {
        assert_eq!((took(outcome, 0), took(outcome, 1)), (2, 2));
    });
    // 0 > 3 loses the output to the east of router 1 to 1 > 10, and stops there.
    both(&turning(4, 3), &[(0, unicast(0, 3)), (0, unicast(1, 10))], |outcome| {
        assert_eq!((took(outcome, 0), took(outcome, 1)), (4, 2));
    });
    let bypass = Settings { priority: Priority::Bypass, ..turning(4, 3) };
    both(&bypass, &[(0, unicast(0, 3)), (0, unicast(1, 10))], |outcome| {
        assert_eq!((took(outcome, 0), took(outcome, 1)), (2, 3));
    });
}

#[test]
fn an_output_idles_for_a_flit_that_stopped_earlier() {
    // Along the last column of 5x5: 4 > 24 stops at router 9, where 9 > 14 is buffered. Its request
    // is nearer to router 19 than 15 > 24, which turns there and stops although the output idles.
    let operations = [(0, unicast(4, 24)), (0, unicast(9, 14)), (0, unicast(15, 24))];
    both(&turning(5, 5), &operations, |outcome| {
        assert_eq!([0, 1, 2].map(|tag| took(outcome, tag)), [6, 2, 4]);
    });
    both(&turning(5, 5), &operations[1..], |outcome| {
        assert_eq!([0, 1].map(|tag| took(outcome, tag)), [2, 2]);
    });
}

#[test]
fn turns_are_refused_where_no_flit_can_pass() {
    let one = Settings { bypass_turns: true, ..Settings::new(4, 4) };
    let message = one.check().unwrap_err().to_string();
    assert!(message.contains("passes no router") && message.contains("hpc_max"), "{message}");
    let message = FullyConnected::new(&turning(4, 4), false).err().unwrap().to_string();
    assert!(message.contains("fully connected") && message.contains("bypass_turns"), "{message}");
}

/// The same with multicasts that fork, and responses that are combined, on these paths.
fn forking(columns: u32, rows: u32) -> Settings {
    let (fan_out, fan_in) = (FanOut::Greedy(Tree::Shared), FanIn::Complete);
    Settings { collective_turns: true, fan_out, fan_in, ..turning(columns, rows) }
}

#[test]
fn a_multicast_forks_where_it_passes() {
    // All of the tree of node 0 is one crossing: 15 links, past routers 1 to 3 of the row, the first
    // two of which fork, and past two routers of each column.
    both(&forking(4, 4), &[(0, broadcast(16, 0))], |outcome| {
        assert!(outcome.latencies(0).values().all(|&latency| latency == 2));
        let counts = outcome.counts;
        assert_eq!((counts.buffer_writes, counts.link_hops, counts.bypasses), (16, 15, 3 + 8));
        // East with the columns 1 to 3, and north.
        assert_eq!((counts.requests, counts.request_hops), (2, 3 + 9 + 3));
        // Router 3, the columns, and 15 ejections; the source and two forks.
        assert_eq!(counts.crossings[..2], [1 + 8 + 15, 1 + 2]);
    });
    // In one dimension after the other.
    let along = Settings { collective_turns: false, ..forking(4, 4) };
    both(&along, &[(0, broadcast(16, 0))], |outcome| assert_eq!(took(outcome, 0), 4));
}

#[test]
fn a_multicast_loses_a_branch_only() {
    // Router 2 sends north itself: the multicast goes on east, and its copy follows two cycles later.
    let operations = [(0, broadcast(16, 0)), (0, unicast(2, 14))];
    both(&forking(4, 4), &operations, |outcome| {
        assert_eq!(took(outcome, 1), 2);
        for (node, latency) in outcome.latencies(0) {
            let behind = node % 4 == 2 && node > 2;
            assert_eq!(latency, if behind { 4 } else { 2 }, "node {node}");
        }
    });
    // From farther away, it wins the branch, and the other waits for a cycle.
    let bypass = Settings { priority: Priority::Bypass, ..forking(4, 4) };
    both(&bypass, &operations, |outcome| {
        assert_eq!((took(outcome, 0), took(outcome, 1)), (2, 3));
    });
}

#[test]
fn a_response_takes_others_along_past_a_turn() {
    let members = vec![(0, 0), (2, 0), (7, 0)];
    let reduce =
        Operation::Reduce { to: 15, members, class: 0, combine: Combine::Count, held: None };
    both(&forking(4, 4), &[(0, reduce.clone())], |outcome| {
        // 0 > 1 > 2 > 3 > 7 > 11 > 15: the values of 2 and 7 wait in their tables.
        let [arrival] = outcome.arrivals[..] else { panic!("{:?}", outcome.arrivals) };
        assert_eq!((arrival.arrived, arrival.responses.unwrap().count), (2, 3));
        let counts = outcome.counts;
        assert_eq!((counts.response_requests, counts.link_hops, counts.merged), (1, 6, 2));
    });
    let along = Settings { collective_turns: false, ..forking(4, 4) };
    both(&along, &[(0, reduce)], |outcome| assert_eq!(took(outcome, 0), 4));
}

#[test]
fn collectives_that_cannot_turn_are_refused() {
    let refusal = |settings: Settings| settings.check().unwrap_err().to_string();
    let paths = Settings { bypass_turns: false, ..forking(4, 4) };
    assert!(refusal(paths).contains("paths end at turns; expected `bypass_turns = true`"));
    let none = Settings { fan_out: FanOut::Unicasts, fan_in: FanIn::Unicasts, ..forking(4, 4) };
    assert!(refusal(none).contains("neither fork multicasts nor combine responses"));
    let slots = Settings { fan_out: FanOut::Complete { interval: 6 }, ..forking(4, 4) };
    assert!(refusal(slots).contains("preset paths along one dimension"));
}
