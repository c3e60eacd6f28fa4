//! Small cases worked out by hand: who passes whom, who stops where, what tables say.

use super::common::{
    Operation, both, broadcast, classes, collective, combining, engines, reduction, run, slotted,
    smart, took, unicast,
};
use tutti_noc::smart::{
    Arbiter, Combine, FanIn, FanOut, Merge, NodeSet, Priority, Rule, Settings, Tree,
};

#[test]
fn a_flit_without_contention_stops_only_at_the_end_of_its_path() {
    both(&smart(4, 2), &[(0, unicast(0, 3))], |outcome| {
        assert_eq!(took(outcome, 0), 2);
        let counts = outcome.counts;
        assert_eq!((counts.buffer_writes, counts.link_hops, counts.bypasses), (2, 3, 2));
        assert_eq!((counts.requests, counts.request_hops), (1, 3));
    });
}

#[test]
fn nearer_or_farther_flits_have_priority() {
    let operations = [(0, unicast(0, 3)), (0, unicast(2, 3))];
    let with = |priority| Settings { priority, ..smart(4, 2) };
    both(&with(Priority::Local), &operations, |outcome| {
        // It is latched at router 2, and goes from there once the other has gone.
        assert_eq!((took(outcome, 0), took(outcome, 1)), (4, 2));
        assert_eq!(outcome.counts.buffer_writes, 2 + 3);
    });
    both(&with(Priority::Bypass), &operations, |outcome| {
        assert_eq!((took(outcome, 0), took(outcome, 1)), (2, 3));
        assert_eq!(outcome.counts.buffer_writes, 2 + 2);
    });
}

#[test]
fn responses_pass_where_other_flits_stop() {
    // Node 0 sends past node 2, which sends at the same time.
    let response = |from, to| Operation::Reduce {
        to,
        members: vec![(from, 0)],
        class: 0,
        combine: Combine::Count,
        held: None,
    };
    let settings =
        Settings { priority: Priority::BypassResponses, fan_in: FanIn::Greedy, ..smart(4, 2) };
    both(&settings, &[(0, response(0, 3)), (0, unicast(2, 3))], |outcome| {
        assert_eq!((took(outcome, 0), took(outcome, 1)), (2, 3));
    });
    both(&settings, &[(0, unicast(0, 3)), (0, response(2, 3))], |outcome| {
        assert_eq!((took(outcome, 0), took(outcome, 1)), (4, 2));
    });
    both(&settings, &[(0, unicast(0, 3)), (0, unicast(2, 3))], |outcome| {
        assert_eq!((took(outcome, 0), took(outcome, 1)), (4, 2));
    });
}

#[test]
fn older_packets_go_first_with_oldest_arbitration() {
    // 7 > 2 turns at router 1, where it requests the output to the east in cycle 4, together with
    // 0 > 2, created two cycles later. Its input is after that of 0 > 2 in the order of ports.
    let operations = [(0, unicast(7, 2)), (2, unicast(0, 2))];
    let with = |arbiter| Settings { arbiter, yx: true, ..Settings::new(3, 3) };
    both(&with(Arbiter::RoundRobin), &operations, |outcome| {
        assert_eq!((took(outcome, 0), took(outcome, 1)), (7, 4));
    });
    both(&with(Arbiter::Oldest), &operations, |outcome| {
        assert_eq!((took(outcome, 0), took(outcome, 1)), (6, 5));
    });
}

#[test]
fn a_held_response_waits_for_others_of_its_flow() {
    // That of 0 comes to router 1 in cycle 1, whose node responds in cycle 5.
    let operation = Operation::Reduce {
        to: 2,
        members: vec![(0, 0), (1, 5)],
        class: 0,
        combine: Combine::Sum,
        held: None,
    };
    let with = |text| Settings {
        hold: Some(Rule::parse("hold", text, &Settings::HOLD_VARIABLES).unwrap()),
        ..collective(3, 2)
    };
    let operations = [(0, operation)];
    both(&collective(3, 2), &operations, |outcome| assert_eq!(outcome.arrivals.len(), 2));
    both(&with("missing"), &operations, |outcome| {
        assert_eq!((outcome.arrivals.len(), took(outcome, 0)), (1, 7));
        assert_eq!(outcome.arrivals[0].responses.unwrap().count, 2);
    });
    // It leaves router 1 in cycle 4 instead of 2, and waits at router 2 from cycle 5 on, where the
    // other one lands in cycle 6.
    both(&with("missing and stay < 3"), &operations, |outcome| {
        assert_eq!((outcome.arrivals.len(), took(outcome, 0)), (1, 7));
    });
    // An injected response waits for a cycle; one that landed has waited for one when it can go.
    both(&with("stay < 1"), &operations, |outcome| {
        let times: Vec<u64> = outcome.arrivals.iter().map(|arrival| arrival.arrived).collect();
        assert_eq!(times, [5, 8]);
    });
}

#[test]
fn only_greedy_routers_hold_responses() {
    let hold = Some(Rule::parse("hold", "missing", &Settings::HOLD_VARIABLES).unwrap());
    let settings = Settings { hold, ..combining(FanIn::Complete, Priority::Local) };
    assert!(settings.check().unwrap_err().to_string().contains("fan_in"));
}

#[test]
fn an_ejection_blocks_arrivals_at_the_same_port() {
    // 0 > 2 lands at router 2 in cycle 1 and takes the NIC in cycle 2, when 0 > 3 would pass.
    let operations = [(0, unicast(0, 2)), (2, unicast(0, 3))];
    let with = |priority| Settings { priority, ..smart(4, 2) };
    both(&with(Priority::Local), &operations, |outcome| {
        assert_eq!((took(outcome, 0), took(outcome, 1)), (2, 4));
    });
    both(&with(Priority::Bypass), &operations, |outcome| {
        assert_eq!((took(outcome, 0), took(outcome, 1)), (3, 2));
    });
}

#[test]
fn an_output_reserved_for_a_stopped_flit_idles() {
    let settings = Settings {
        priority: Priority::Bypass,
        classes: classes(&[1], 1),
        credit_delay: 2,
        ..smart(5, 2)
    };
    // 1 > 2 has taken the only VC at the west of router 2 until cycle 4; 3 > 4 shares nothing with
    // it.
    let operations = [(0, unicast(1, 2)), (1, unicast(0, 4)), (1, unicast(3, 4))];
    both(&settings, &operations, |outcome| {
        assert_eq!(took(outcome, 0), 2);
        // 0 > 4 stops at router 1, but had router 3 in cycle 1: 3 > 4 goes a cycle later.
        assert_eq!(took(outcome, 2), 3);
        // Router 2 has a free buffer again in cycle 5, router 4, where the other was, in cycle 7: a
        // stop at 3, and it is out in 9.
        assert_eq!(took(outcome, 1), 8);
    });
}

#[test]
fn a_vc_is_occupied_until_its_credits_return() {
    for credit_delay in 0..4 {
        let settings = Settings { classes: classes(&[1], 1), credit_delay, ..smart(4, 2) };
        let operations = [(0, unicast(0, 1)), (1, unicast(0, 1))];
        both(&settings, &operations, |outcome| {
            // Left in cycle 2, taken until 2 + delay: granted in 3 + delay, out in 5 + delay.
            assert_eq!(took(outcome, 1), 4 + u64::from(credit_delay));
        });
    }
}

#[test]
fn flits_of_a_packet_stop_at_buffered_earlier_flits() {
    // The head of 0 > 5 is stopped at router 2 by 2 > 5; the others stop there too, and none gets
    // ahead.
    let settings = Settings { classes: classes(&[2], 3), ..smart(6, 2) };
    let long = Operation::Unicast { from: 0, to: 5, class: 0, flits: 3 };
    both(&settings, &[(0, long), (0, unicast(2, 5))], |outcome| {
        // Cycle 0: to router 2. 1 and 2: the others too, while the head goes on in 2. It takes all
        // three a stop more: 2 + 2 + 2 cycles.
        assert_eq!((took(outcome, 0), took(outcome, 1)), (6, 2));
        assert_eq!(outcome.counts.buffer_writes, 3 * 3 + 2);
    });
}

#[test]
fn nic_arbitration_among_classes_is_round_robin() {
    let settings = Settings { classes: classes(&[2, 2], 4), ..smart(4, 2) };
    let of = |class, flits| Operation::Unicast { from: 0, to: 1, class, flits };
    both(&settings, &[(0, of(0, 1)), (0, of(1, 3)), (0, of(0, 1))], |outcome| {
        let order: Vec<u64> = outcome.arrivals.iter().map(|arrival| arrival.tag).collect();
        assert_eq!(order, [0, 2, 1]);
    });
}

#[test]
fn responses_to_a_corner_of_five_by_five_follow_the_figure() {
    // Figure 4: all but 40 respond at once. Leaves of the rows go to column 4 in one cycle, that to
    // 40.
    let settings = Settings { columns: 5, rows: 5, ..combining(FanIn::Complete, Priority::Local) };
    both(&settings, &[(0, reduction(25, 4))], |outcome| {
        assert_eq!(took(outcome, 0), 4);
        assert_eq!(outcome.arrivals[0].responses.unwrap().count, 24);
        assert_eq!((outcome.counts.link_hops, outcome.counts.merged), (24, 23));
    });
}

#[test]
fn a_response_is_dropped_where_the_nic_has_not_responded() {
    // Figure 4(d), row 3: that of 03 stops at 33, whose own comes ten cycles later and goes on for
    // both.
    let settings = Settings { columns: 5, rows: 5, ..combining(FanIn::Complete, Priority::Local) };
    let late = 3 + 5 * 3;
    let others = NodeSet::all_but(25, 4);
    let members = others.iter().map(|node| (node, 10 * u64::from(node == late)));
    let operation = Operation::Reduce {
        to: 4,
        members: members.collect(),
        class: 0,
        combine: Combine::Sum,
        held: None,
    };
    both(&settings, &[(0, operation)], |outcome| {
        assert_eq!(took(outcome, 0), 10 + 4);
        let responses = outcome.arrivals[0].responses.unwrap();
        assert_eq!((responses.count, responses.value), (24, (1 << 25) - 1 - (1 << 4)));
        assert_eq!(outcome.counts.link_hops, 24);
    });
}

#[test]
fn only_paths_of_members_count() {
    // 6 > 4 > ... : the responses of 10 and 14 meet at 14, on the route to 4, in a mesh of 5 by 5.
    let settings = Settings { columns: 5, rows: 5, ..combining(FanIn::Complete, Priority::Local) };
    let members = vec![(10, 0), (14, 3)];
    let operation =
        Operation::Reduce { to: 4, members, class: 0, combine: Combine::Max, held: None };
    both(&settings, &[(0, operation)], |outcome| {
        assert_eq!(outcome.arrivals.len(), 1);
        assert_eq!(outcome.arrivals[0].responses.unwrap().value, 1 << 14);
        assert_eq!((took(outcome, 0), outcome.counts.link_hops), (3 + 2, 4 + 2));
    });
}

#[test]
fn a_flow_without_an_entry_has_plain_unicasts() {
    let settings = Settings {
        art_entries: 4,
        fan_out: FanOut::Greedy(Tree::Private),
        ..combining(FanIn::Complete, Priority::Local)
    };
    let operations: Vec<(u64, Operation)> = (0..5).map(|node| (0, reduction(64, node))).collect();
    both(&settings, &operations, |outcome| {
        let of = |tag| outcome.arrivals.iter().filter(move |arrival| arrival.tag == tag).count();
        assert_eq!([0, 1, 2, 3, 4].map(of), [1, 1, 1, 1, 63]);
    });
}

#[test]
fn an_entry_is_free_one_cycle_after_its_last_use() {
    let settings = Settings {
        art_entries: 4,
        fan_out: FanOut::Greedy(Tree::Private),
        ..combining(FanIn::Complete, Priority::Local)
    };
    for held in [None, Some(6)] {
        // What is over in cycle 4 is free in 5; what is released 6 cycles later, in 11, is free for
        // all that is done after that in the cycle: here, in the next.
        let free = if held.is_some() { 12 } else { 5 };
        for start in [free - 1, free] {
            let one = |to, held| Operation::Reduce {
                to,
                members: NodeSet::all_but(64, to).iter().map(|node| (node, 0)).collect(),
                class: 0,
                combine: Combine::Count,
                held,
            };
            // Three that are never over meanwhile: a member of each responds late.
            let late = |to: u32| Operation::Reduce {
                to,
                members: vec![(to + 1, 0), (to + 2, 100)],
                class: 0,
                combine: Combine::Count,
                held: None,
            };
            let operations = [
                (0, one(9, held)),
                (0, late(20)),
                (0, late(30)),
                (0, late(40)),
                (start, one(50, None)),
            ];
            both(&settings, &operations, |outcome| {
                let arrived = outcome.arrivals.iter().filter(|arrival| arrival.tag == 4).count();
                assert_eq!(arrived, if start < free { 63 } else { 1 }, "{held:?} {start}");
            });
        }
    }
}

#[test]
fn responses_that_meet_are_merged() {
    // Of 0 and 2 in a row of three hop by hop: both land at 1 in cycle 1, and the second is merged.
    let settings = collective(3, 2);
    let members = vec![(0, 0), (2, 0)];
    let operation =
        Operation::Reduce { to: 4, members, class: 0, combine: Combine::Or, held: None };
    both(&settings, &[(0, operation)], |outcome| {
        let responses = outcome.arrivals[0].responses.unwrap();
        assert_eq!((responses.count, responses.value), (2, 0b101));
        assert_eq!((took(outcome, 0), outcome.counts.merged), (4, 1));
    });
}

#[test]
fn responses_that_land_together_merge_by_setting() {
    // Nodes 3 and 5 are both one hop from node 4, which sends on north to node 7.
    for (merge, arrive) in [(Merge::Landing, 1), (Merge::Buffered, 2)] {
        let members = [(3, 0), (5, 0)].into();
        let operation =
            Operation::Reduce { to: 7, members, class: 0, combine: Combine::Sum, held: None };
        let settings = Settings { fan_in: FanIn::Greedy, merge, reducer: true, ..smart(3, 3) };
        both(&settings, &[(0, operation)], |outcome| {
            assert_eq!(outcome.arrivals.len(), arrive);
            assert_eq!(outcome.counts.merged, 2 - u64::try_from(arrive).unwrap());
        });
    }
}

#[test]
fn a_stopped_broadcast_serves_the_routers_it_passed() {
    // 0 broadcasts along its row while 2 sends east: the row up to 2 is served, the rest a try
    // later.
    let settings =
        Settings { columns: 5, rows: 2, fan_out: FanOut::Greedy(Tree::Shared), ..smart(5, 2) };
    both(&settings, &[(0, broadcast(10, 0)), (0, unicast(2, 4))], |outcome| {
        let latencies = outcome.latencies(0);
        assert_eq!((latencies[&1], latencies[&2], latencies[&3]), (2, 2, 4));
        assert_eq!((latencies[&5], latencies[&6], latencies[&8]), (2, 4, 6));
        assert_eq!(latencies.len(), 9);
    });
}

#[test]
fn a_slot_without_a_free_buffer_waits_one_more_interval() {
    // One VC before the turn: the second broadcast of a corner waits until copies of the first have
    // left the edge.
    let settings = Settings { classes: classes(&[1], 1), credit_delay: 0, ..slotted(4) };
    both(&settings, &[(0, broadcast(64, 0)), (1, broadcast(64, 0))], |outcome| {
        assert_eq!(outcome.last(0), 2);
        // The copies at the edge have gone in cycle 1; the next slots are 4 and 5.
        assert_eq!(outcome.last(1), 3 + 2);
    });
    // Until cycle 4 their VCs are taken: the slot after that is 8.
    let settings = Settings { credit_delay: 3, ..settings };
    both(&settings, &[(0, broadcast(64, 0)), (1, broadcast(64, 0))], |outcome| {
        assert_eq!(outcome.last(1), 7 + 2);
    });
}

#[test]
fn longer_edges_have_longer_slots() {
    // Of 8 by 8 with 4 hops per cycle: straights in 0 and 1, turns in 1 to 3, out from 3 (crossing
    // in 4).
    let settings = Settings { hops_per_cycle: 4, ..slotted(6) };
    both(&settings, &[(0, broadcast(64, 0))], |outcome| {
        assert!(outcome.latencies(0).values().all(|&latency| latency == 3 || latency == 4));
        assert_eq!(outcome.last(0), 4);
    });
}

#[test]
fn multicasts_become_unicasts_without_router_support() {
    both(&smart(4, 2), &[(0, broadcast(8, 0))], |outcome| {
        assert_eq!((outcome.arrivals.len(), outcome.counts.injected), (7, 7));
        // Sequentially, the lowest first. The flit to 1 goes to its NIC when the one to 3, sent in
        // cycle 2, would bypass, which therefore stops at router 1; and so does the flit to 7 for
        // the one to 5, which turns there.
        let latencies: Vec<u64> = outcome.latencies(0).into_values().collect();
        assert_eq!(latencies, [2, 1 + 2, 2 + 4, 3 + 2, 4 + 4, 5 + 4, 6 + 6]);
    });
}

#[test]
fn skipped_cycles_are_counted() {
    for (engine, mut fabric) in engines(&smart(4, 2)) {
        run(&mut *fabric, &[(0, unicast(0, 3))], 100);
        let now = fabric.now();
        fabric.skip_to(now + 1000);
        assert_eq!(fabric.now(), now + 1000, "{engine}");
        assert_eq!(fabric.counts().cycles, now + 1000, "{engine}");
        let outcome = run(&mut *fabric, &[(now + 1000, unicast(0, 3))], now + 2000);
        assert_eq!(outcome.last(0), 2, "{engine}");
    }
}
