//! Meshes with more to do than they can: what slots let through, what deadlocks, and what broken
//! rules do.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::common::{
    Operation, broadcast, classes, collective, combining, engines, greedy, reduction, run, slotted,
    unicast,
};
use tutti_noc::smart::{
    Cast, Class, Combine, Fabric, FanIn, FanOut, Fault, Flow, FullyConnected, Message, NodeSet,
    Priority, Settings, Tree, oracle,
};

#[test]
fn slots_limit_the_rate_of_corners_and_nics() {
    for (interval, per_interval) in [(3, 1), (4, 2), (6, 4), (8, 4), (10, 4)] {
        let settings = slotted(interval);
        for (engine, mut fabric) in engines(&settings) {
            let mut arrivals = Vec::new();
            let (warm, window) = (u64::from(interval) * 20, u64::from(interval) * 40);
            for now in 0..warm + window {
                for source in [0, 7, 56, 63] {
                    let cast = Cast::Many(NodeSet::all_but(64, source));
                    let message =
                        Message { created: now, source, cast, class: 0, flits: 1, tag: 0 };
                    fabric.send(message).unwrap();
                }
                fabric.step(&mut arrivals);
            }
            // At the nodes that get those of all four corners: min(4, BI - 2) in every interval.
            let corners = [0, 7, 56, 63];
            let counted = arrivals
                .iter()
                .filter(|arrival| arrival.arrived >= warm && !corners.contains(&arrival.node));
            assert_eq!(counted.count(), 60 * 40 * per_interval, "{engine} {interval}");
        }
    }
}

/// Every node broadcasts again and again.
fn flood(nodes: u32, rounds: u64) -> Vec<(u64, Operation)> {
    (0..rounds).flat_map(|now| (0..nodes).map(move |node| (now, broadcast(nodes, node)))).collect()
}

#[test]
fn broadcast_stages_that_share_vcs_deadlock() {
    let few = |settings: Settings| Settings {
        columns: 4,
        rows: 4,
        classes: classes(&[1], 1),
        patience: 500,
        ..settings
    };
    for settings in [few(greedy(Tree::Private)), few(slotted(3)), few(slotted(4))] {
        let broken = Settings { fault: Some(Fault::SharedVcs), ..settings.clone() };
        for (engine, mut fabric) in engines(&broken) {
            let outcome = run(&mut *fabric, &flood(16, 30), 100_000);
            assert!(
                fabric.stalled_since().is_some() && outcome.unfinished,
                "{engine} {:?}",
                broken.fan_out
            );
        }
        for (engine, mut fabric) in engines(&settings) {
            let outcome = run(&mut *fabric, &flood(16, 30), 100_000);
            assert!(
                fabric.stalled_since().is_none() && !outcome.unfinished,
                "{engine} {:?}",
                settings.fan_out
            );
            assert_eq!(outcome.arrivals.len(), 30 * 16 * 15);
        }
    }
}

/// Whether it is seen that a run went wrong.
fn is_caught(fabric: &mut dyn Fabric, operations: &[(u64, Operation)]) -> bool {
    let flows = operations
        .iter()
        .filter(|(_, operation)| matches!(operation, Operation::Reduce { .. }))
        .count();
    let outcome = catch_unwind(AssertUnwindSafe(|| run(fabric, operations, 50_000)));
    let is_last = |responses: &tutti_noc::smart::Responses| responses.last;
    outcome.map_or(true, |outcome| {
        let responses = outcome.arrivals.iter().filter_map(|arrival| arrival.responses);
        outcome.unfinished || responses.filter(is_last).count() != flows
    })
}

#[test]
fn faults_in_combining_are_caught() {
    let operations: Vec<(u64, Operation)> =
        (0..8).map(|node| (3 * u64::from(node), reduction(64, node))).collect();
    for (fault, settings) in [
        (Fault::WrongDirections, combining(FanIn::Complete, Priority::Local)),
        (Fault::LostMerge, combining(FanIn::Complete, Priority::Local)),
        (Fault::LostMerge, combining(FanIn::Greedy, Priority::Bypass)),
    ] {
        for (engine, mut fabric) in engines(&settings) {
            assert!(!is_caught(&mut *fabric, &operations), "{engine} without {fault:?}");
        }
        for (engine, mut fabric) in engines(&Settings { fault: Some(fault), ..settings }) {
            assert!(is_caught(&mut *fabric, &operations), "{engine} with {fault:?}");
        }
    }
}

#[test]
fn responses_in_any_order_combine() {
    // Any member may be last: each member in turn, then each row, then all in an odd order.
    let settings = Settings { columns: 4, rows: 3, ..combining(FanIn::Complete, Priority::Bypass) };
    let orders: Vec<Box<dyn Fn(u32) -> u64>> = vec![
        Box::new(|node| u64::from(node / 4) * 3),
        Box::new(|node| u64::from(11 - node)),
        Box::new(|node| u64::from(node * 7 % 12)),
        Box::new(|node| u64::from(node % 4 == 2) * 5),
    ];
    for to in 0..12 {
        for late in 0..12_u32 {
            let lone = move |node: u32| u64::from(node == late) * 9;
            let all = orders.iter().map(|order| order.as_ref());
            for order in all.chain(std::iter::once(&lone as &dyn Fn(u32) -> u64)) {
                let members: Vec<(u32, u64)> =
                    NodeSet::all_but(12, to).iter().map(|node| (node, order(node))).collect();
                let operation =
                    Operation::Reduce { to, members, class: 0, combine: Combine::Sum, held: None };
                for (engine, mut fabric) in engines(&settings) {
                    let outcome = run(&mut *fabric, &[(0, operation.clone())], 1000);
                    let responses = outcome.arrivals[0].responses.unwrap();
                    assert_eq!(outcome.arrivals.len(), 1, "{engine}");
                    assert_eq!(
                        (responses.count, responses.value),
                        (11, 0xfff ^ (1 << to)),
                        "{engine}"
                    );
                    assert_eq!(outcome.counts.link_hops, 11, "{engine}");
                }
            }
        }
    }
}

#[test]
fn a_hotspot_receives_a_flit_per_cycle() {
    for priority in [Priority::Local, Priority::Bypass] {
        for hops_per_cycle in [1, 8] {
            let priority = priority.clone();
            let settings = Settings { hops_per_cycle, priority, ..collective(4, 4) };
            let operations: Vec<(u64, Operation)> = (0..40)
                .flat_map(|now| {
                    (0..16).filter(|&node| node != 5).map(move |node| (now, unicast(node, 5)))
                })
                .collect();
            for (engine, mut fabric) in engines(&settings) {
                let outcome = run(&mut *fabric, &operations, 100_000);
                assert_eq!(outcome.arrivals.len(), 600, "{engine}");
                let mut cycles: Vec<u64> =
                    outcome.arrivals.iter().map(|arrival| arrival.arrived).collect();
                cycles.dedup();
                assert_eq!(cycles.len(), 600, "{engine}");
            }
        }
    }
}

fn refusal(change: impl Fn(&mut Settings)) -> String {
    let mut settings = Settings::new(8, 8);
    change(&mut settings);
    let error = oracle::Mesh::new(&settings).expect_err("it cannot be").to_string();
    assert_eq!(
        FullyConnected::new(&settings, false).err().map(|error| error.to_string()),
        Some(error.clone())
    );
    error
}

#[test]
fn settings_out_of_range_are_rejected_with_the_expected_range() {
    assert_eq!(refusal(|settings| settings.columns = 1), "`columns` is 1: expected 2 to 64");
    assert_eq!(refusal(|settings| settings.rows = 65), "`rows` is 65: expected 2 to 64");
    assert_eq!(refusal(|settings| settings.hops_per_cycle = 0), "`hpc_max` is 0: expected 1 to 64");
    assert_eq!(
        refusal(|settings| settings.sag_extra_cycle = 2),
        "`sag_extra_cycle` is 2: expected 0 to 1"
    );
    assert_eq!(
        refusal(|settings| settings.patience = 0),
        "`patience` is 0: expected a cycle or more"
    );
    assert_eq!(refusal(|settings| settings.classes.clear()), "`classes` is 0: expected 1 to 16");
    assert_eq!(refusal(|settings| settings.classes[0].vcs = 0), "`vcs` is 0: expected 1 to 64");
    assert_eq!(
        refusal(|settings| settings.classes[0].depth = 0),
        "`depth` is 0: expected 1 to 1024"
    );
}

#[test]
fn contradictory_settings_are_rejected_with_a_reason() {
    let slots = |interval| {
        refusal(move |settings| {
            (settings.hops_per_cycle, settings.fan_out) = (8, FanOut::Complete { interval });
        })
    };
    assert_eq!(
        slots(2),
        "fan_out: `complete:2` is a broadcast every 2 cycles, and its paths take 2; expected `complete:3` to \
         `complete:65536`"
    );
    let slots = refusal(|settings| {
        (settings.hops_per_cycle, settings.fan_out) = (4, FanOut::Complete { interval: 4 });
    });
    assert!(slots.contains("and its paths take 4; expected `complete:5` to "), "{slots}");
    assert_eq!(
        refusal(|settings| (settings.fan_in, settings.art_entries) = (FanIn::Complete, 63)),
        "`art_entries` is 63: expected 64 to 65536: an entry of the aggregation reduction tables (ART) for each \
         node, as each may be a root"
    );
    assert_eq!(
        refusal(|settings| (settings.reducer, settings.hops_per_cycle) = (true, 10)),
        "hpc_max: 10 hops per cycle past routers with a reducer; expected 9 or fewer"
    );
    assert_eq!(
        refusal(|settings| {
            settings.fan_out = FanOut::Greedy(Tree::Private);
            settings.split_vcs = true;
            settings.classes[0].vcs = 2;
        }),
        "vcs: 2 VCs for the three stages of a broadcast; expected 3 or more, or `split_vcs = false`"
    );
    assert_eq!(
        refusal(|settings| settings.classes = classes(&[40, 40], 1)),
        "vcs: 80 VCs at each port, of all classes and stages; expected 64 or fewer"
    );
}

#[test]
fn invalid_messages_are_rejected_with_a_reason() {
    let class = |multicasts| Class { vcs: 2, depth: 2, multicasts };
    let settings = Settings { classes: vec![class(true), class(false)], ..collective(4, 2) };
    for (engine, mut fabric) in engines(&settings) {
        let mut refused = |cast: Cast, class, flits| {
            let message = Message { created: 0, source: 0, cast, class, flits, tag: 0 };
            fabric.send(message).expect_err(engine).to_string()
        };
        let many = |nodes: &[u32]| Cast::Many(nodes.iter().copied().collect());
        assert_eq!(refused(Cast::One(8), 0, 1), "a packet names node 8: expected 0 to 7");
        assert_eq!(refused(Cast::One(1), 2, 1), "a packet of class 2: there are 2 classes, 0 to 1");
        assert_eq!(
            refused(Cast::One(1), 0, 3),
            "a packet of class 0: 3 flits; expected 1 to 2, which a VC of it holds"
        );
        assert_eq!(
            refused(many(&[1]), 0, 2),
            "a packet of class 0: a multicast or response of 2 flits; expected one"
        );
        assert_eq!(refused(many(&[1]), 1, 1), "a packet of class 1: it takes no multicasts");
        assert_eq!(
            refused(many(&[]), 0, 1),
            "a multicast of node 0 has no members: expected a node other than itself"
        );
        invalid_responses_are_rejected(&mut *fabric);
    }
}

fn invalid_responses_are_rejected(fabric: &mut dyn Fabric) {
    let flow = Flow {
        created: 0,
        destination: 3,
        members: [1, 2].into_iter().collect(),
        class: 0,
        combine: Combine::Sum,
        held: false,
        tag: 0,
    };
    let empty = Flow { members: NodeSet::new(), ..flow.clone() };
    assert_eq!(
        fabric.open(empty).expect_err("no members").to_string(),
        "a reduction of node 3 has no members: expected a node other than itself"
    );
    let flow = fabric.open(flow).unwrap();
    let response = |source| Message {
        created: 0,
        source,
        cast: Cast::Response(flow, 0),
        class: 0,
        flits: 1,
        tag: 0,
    };
    fabric.send(response(1)).unwrap();
    for source in [1, 5] {
        assert_eq!(
            fabric.send(response(source)).expect_err("not a member").to_string(),
            format!(
                "a packet of class 0: node {source} has responded, or is not a member of the reduction"
            )
        );
    }
}
