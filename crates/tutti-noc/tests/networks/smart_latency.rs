//! Zero-load latency of every design, to the cycle.

use super::common::{
    Operation, broadcast, collective, combining, engines, greedy, reduction, run, slotted, smart,
    unicast,
};
use tutti_noc::smart::{
    Arrival, Combine, FanIn, FanOut, FullyConnected, NodeSet, Priority, Settings, Tree,
};

const LIMIT: u64 = 100_000;

fn position(settings: &Settings, node: u32) -> (u32, u32) {
    (node % settings.columns, node / settings.columns)
}

/// Hops between two nodes along x and y.
fn distance(settings: &Settings, from: u32, to: u32) -> (u32, u32) {
    let (from, to) = (position(settings, from), position(settings, to));
    (from.0.abs_diff(to.0), from.1.abs_diff(to.1))
}

/// Cycles for so many hops along x and y.
fn cycles(settings: &Settings, (x, y): (u32, u32)) -> u64 {
    let reach = settings.hops_per_cycle;
    u64::from((x.div_ceil(reach) + y.div_ceil(reach)) * (2 + settings.sag_extra_cycle))
}

/// Does one thing after another, with nothing else in flight; what each took, and what arrived.
fn alone(
    settings: &Settings,
    operations: impl Fn() -> Vec<Operation>,
    look: impl Fn(usize, &[Arrival], u64),
) {
    for (engine, mut fabric) in engines(settings) {
        for (place, operation) in operations().into_iter().enumerate() {
            let (now, before) = (fabric.now(), fabric.counts().ejected);
            let outcome = run(&mut *fabric, &[(now, operation)], now + LIMIT);
            assert!(!outcome.unfinished, "{engine}");
            assert!(outcome.counts.ejected > before, "{engine}");
            look(place, &outcome.arrivals, outcome.last(0));
        }
    }
}

fn last_of_all(
    settings: &Settings,
    operation: impl Fn(u32) -> Operation,
    expect: impl Fn(u32) -> u64,
) {
    let nodes = settings.nodes();
    alone(
        settings,
        || (0..nodes).map(&operation).collect(),
        |node, _, last| {
            assert_eq!(last, expect(u32::try_from(node).unwrap()), "node {node} of {settings:?}");
        },
    );
}

/// The farthest node from one.
fn farthest(settings: &Settings, node: u32) -> (u32, u32) {
    let (x, y) = position(settings, node);
    (x.max(settings.columns - 1 - x), y.max(settings.rows - 1 - y))
}

fn variants(settings: &Settings) -> Vec<Settings> {
    let mut variants = Vec::new();
    for sag_extra_cycle in [0, 1] {
        for priority in [Priority::Local, Priority::Bypass] {
            for yx in [false, true] {
                let priority = priority.clone();
                variants.push(Settings { sag_extra_cycle, priority, yx, ..settings.clone() });
            }
        }
    }
    variants
}

#[test]
fn a_unicast_takes_two_cycles_per_dimension_and_segment() {
    for hops_per_cycle in [1, 2, 3, 8] {
        for settings in variants(&Settings { hops_per_cycle, ..Settings::new(5, 3) }) {
            let pairs: Vec<(u32, u32)> =
                (0..15).flat_map(|from| (0..15).map(move |to| (from, to))).collect();
            let operations = || pairs.iter().map(|&(from, to)| unicast(from, to)).collect();
            alone(&settings, operations, |place, _, last| {
                let (from, to) = pairs[place];
                assert_eq!(last, cycles(&settings, distance(&settings, from, to)), "{from} > {to}");
            });
        }
    }
}

/// Cycles for so many hops along paths that may turn.
fn cycles_with_turns(settings: &Settings, (x, y): (u32, u32)) -> u64 {
    u64::from((x + y).div_ceil(settings.hops_per_cycle) * (2 + settings.sag_extra_cycle))
}

#[test]
fn a_unicast_with_turns_takes_two_cycles_per_segment() {
    for hops_per_cycle in [2, 3, 5, 8] {
        let base = Settings { hops_per_cycle, bypass_turns: true, ..Settings::new(5, 4) };
        for mut settings in variants(&base) {
            settings.classes[0].depth = 4;
            let pairs: Vec<(u32, u32, u32)> = (0..20)
                .flat_map(|from| (0..20).map(move |to| (from, to, 1 + (from + to) % 4)))
                .collect();
            let operations = || {
                let to = |&(from, to, flits): &(u32, u32, u32)| Operation::Unicast {
                    from,
                    to,
                    class: 0,
                    flits,
                };
                pairs.iter().map(to).collect()
            };
            alone(&settings, operations, |place, _, last| {
                let (from, to, flits) = pairs[place];
                let head = cycles_with_turns(&settings, distance(&settings, from, to));
                assert_eq!(last, head + u64::from(flits) - 1, "{from} > {to} of {settings:?}");
            });
        }
    }
}

#[test]
fn collectives_with_turns_take_as_long_as_without() {
    // Only the route to the corner of a private tree is a unicast.
    for tree in [Tree::Shared, Tree::Private] {
        let settings = Settings { bypass_turns: true, ..greedy(tree) };
        let last = |node| match tree {
            Tree::Shared => 4,
            Tree::Private => {
                let hops = distance(&settings, node, corner(&settings, node));
                cycles_with_turns(&settings, hops) + 4
            }
        };
        last_of_all(&settings, |node| broadcast(64, node), last);
    }
    for fan_in in [FanIn::Greedy, FanIn::Complete] {
        let combining = combining(fan_in, Priority::Bypass);
        let settings = Settings { bypass_turns: true, ..combining };
        last_of_all(&settings, |node| reduction(64, node), |_| 4);
    }
}

#[test]
fn collectives_that_turn_take_as_long_as_unicasts_that_turn() {
    // Copies of a tree cross no link twice, so nothing delays the one for the farthest node.
    for hops_per_cycle in [2, 3, 5, 8] {
        let turning = Settings { hops_per_cycle, bypass_turns: true, ..Settings::new(5, 4) };
        let turning = Settings { collective_turns: true, ..turning };
        for settings in variants(&turning) {
            let shared = Settings { fan_out: FanOut::Greedy(Tree::Shared), ..settings.clone() };
            let last = |node| cycles_with_turns(&shared, farthest(&shared, node));
            last_of_all(&shared, |node| broadcast(20, node), last);
            let private = Settings { fan_out: FanOut::Greedy(Tree::Private), ..settings.clone() };
            let from_corner = cycles_with_turns(&private, (4, 3));
            let last = |node| {
                let corner = corner(&private, node);
                cycles_with_turns(&private, distance(&private, node, corner)) + from_corner
            };
            last_of_all(&private, |node| broadcast(20, node), last);
            // A single response is a unicast.
            for fan_in in [FanIn::Greedy, FanIn::Complete] {
                let settings = Settings { fan_in, ..settings.clone() };
                let last =
                    |node| cycles_with_turns(&settings, distance(&settings, node, 19 - node));
                let one = |node| Operation::Reduce {
                    to: 19 - node,
                    members: vec![(node, 0)],
                    class: 0,
                    combine: Combine::Count,
                    held: None,
                };
                last_of_all(&settings, one, last);
            }
        }
    }
}

#[test]
fn a_long_packet_takes_a_cycle_per_additional_flit() {
    for hops_per_cycle in [1, 4, 8] {
        let mut settings = Settings { hops_per_cycle, ..Settings::new(8, 8) };
        settings.classes[0].depth = 5;
        let operations = || vec![Operation::Unicast { from: 8, to: 39, class: 0, flits: 5 }];
        alone(&settings, operations, |_, arrivals, last| {
            assert_eq!(arrivals.len(), 1);
            assert_eq!(last, 4 + cycles(&settings, (7, 3)));
        });
    }
}

#[test]
fn a_broadcast_on_a_forking_mesh_takes_two_cycles_per_hop() {
    let settings = collective(8, 8);
    let operations = || (0..64).map(|node| broadcast(64, node)).collect();
    alone(&settings, operations, |source, arrivals, _| {
        assert_eq!(arrivals.len(), 63);
        for arrival in arrivals {
            let hops = distance(&settings, u32::try_from(source).unwrap(), arrival.node);
            assert_eq!(arrival.arrived - arrival.created, cycles(&settings, hops));
        }
    });
    // 28 from a corner, 22 on average.
    let lasts: u64 = (0..64).map(|node| cycles(&settings, farthest(&settings, node))).sum();
    assert_eq!(cycles(&settings, farthest(&settings, 0)), 28);
    assert_eq!(lasts, 22 * 64);
}

#[test]
fn a_reduction_on_a_merging_mesh_takes_two_cycles_per_hop() {
    let settings = collective(8, 8);
    let last = |node| cycles(&settings, farthest(&settings, node));
    last_of_all(&settings, |node| reduction(64, node), last);
}

#[test]
fn a_greedy_broadcast_takes_four_cycles_along_the_shared_tree() {
    for hops_per_cycle in [4, 8] {
        for settings in variants(&Settings { hops_per_cycle, ..greedy(Tree::Shared) }) {
            let operations = || [0, 7, 27, 44, 63].map(|node| broadcast(64, node)).to_vec();
            alone(&settings, operations, |_, arrivals, last| {
                assert_eq!(arrivals.len(), 63);
                let source = arrivals[0].source;
                for arrival in arrivals {
                    let hops = distance(&settings, source, arrival.node);
                    assert_eq!(arrival.arrived - arrival.created, cycles(&settings, hops));
                }
                if hops_per_cycle == 8 {
                    assert_eq!(last, 4 + 2 * u64::from(settings.sag_extra_cycle));
                }
            });
        }
    }
}

/// Where the private tree of a node starts.
fn corner(settings: &Settings, node: u32) -> u32 {
    let (x, y) = position(settings, node);
    let x = if 2 * x < settings.columns { 0 } else { settings.columns - 1 };
    let y = if 2 * y < settings.rows { 0 } else { settings.rows - 1 };
    x + settings.columns * y
}

#[test]
fn a_greedy_broadcast_on_a_private_tree_reaches_its_corner_first() {
    let mut sum = 0;
    for settings in variants(&greedy(Tree::Private)) {
        let last = |node| {
            let to_corner = cycles(&settings, distance(&settings, node, corner(&settings, node)));
            to_corner + cycles(&settings, (7, 7))
        };
        last_of_all(&settings, |node| broadcast(64, node), last);
        sum += (0..64).map(last).sum::<u64>();
    }
    // 7 on average with two cycles per dimension, half as much again with three.
    assert_eq!(sum, 64 * (4 * 7 + 2 * 21));
}

/// What a broadcast from a corner takes that was created in a cycle of the interval.
fn slotted_latency(interval: u64, created: u64) -> u64 {
    let wait = (interval - created % interval) % interval;
    // Slots block ejection two cycles longer where the next ones follow at once.
    wait + if interval == 3 { 4 } else { 2 }
}

#[test]
fn a_slotted_broadcast_takes_two_cycles_after_its_slot() {
    for (interval, twice_the_mean) in [(3, 10), (4, 7), (6, 9), (8, 11), (10, 13)] {
        let settings = slotted(u32::try_from(interval).unwrap());
        for corner in [0, 7, 56, 63] {
            let mut sum = 0;
            for created in 0..interval {
                for (engine, mut fabric) in engines(&settings) {
                    let outcome = run(&mut *fabric, &[(created, broadcast(64, corner))], LIMIT);
                    assert_eq!(outcome.arrivals.len(), 63, "{engine}");
                    assert_eq!(outcome.last(0), slotted_latency(interval, created), "{engine}");
                }
                sum += slotted_latency(interval, created);
            }
            // (BI - 1) / 2 + 2, and 2 more for 3.
            assert_eq!(2 * sum, twice_the_mean * interval);
        }
    }
}

#[test]
fn a_slotted_broadcast_reaches_its_corner_first() {
    // 7.5 on average over nodes and cycles of the interval: 3 to the corner, and 4.5 from there.
    let settings = slotted(6);
    let mut sums = Vec::new();
    for (engine, mut fabric) in engines(&settings) {
        let mut sum = 0;
        for node in 0..64 {
            for phase in 0..6 {
                let now = fabric.now().div_ceil(6) * 6 + phase;
                let outcome = run(&mut *fabric, &[(now, broadcast(64, node))], now + LIMIT);
                let to_corner =
                    cycles(&settings, distance(&settings, node, corner(&settings, node)));
                let alone = to_corner + slotted_latency(6, phase + to_corner);
                let last = outcome.last(0);
                // A flit that is stalled on its route misses the next slots at most.
                assert!(
                    last == alone || last == alone + 6,
                    "{engine} {node} {phase}: {last} {alone}"
                );
                sum += last;
            }
        }
        sums.push(sum);
    }
    assert_eq!(sums, [64 * 6 * 15 / 2; 2]);
}

#[test]
fn a_multicast_reaches_each_member_like_a_broadcast() {
    for settings in [collective(8, 8), greedy(Tree::Shared)] {
        for source in [0, 18, 36, 63] {
            let to: NodeSet = (0..64).filter(|node| node % 5 == 1 && *node != source).collect();
            let members: Vec<u32> = to.iter().collect();
            let operation =
                || vec![Operation::Multicast { from: source, to: to.clone(), class: 0 }];
            alone(&settings, operation, |_, arrivals, _| {
                let mut nodes: Vec<u32> = arrivals.iter().map(|arrival| arrival.node).collect();
                nodes.sort_unstable();
                assert_eq!(nodes, members);
                for arrival in arrivals {
                    let hops = distance(&settings, source, arrival.node);
                    assert_eq!(arrival.arrived - arrival.created, cycles(&settings, hops));
                }
            });
        }
    }
}

#[test]
fn a_table_reduction_takes_four_cycles_and_each_tree_link_once() {
    for settings in variants(&combining(FanIn::Complete, Priority::Local)) {
        let dimension = 2 + u64::from(settings.sag_extra_cycle);
        let operations = || (0..64).map(|node| reduction(64, node)).collect();
        alone(&settings, operations, |_, arrivals, last| {
            assert_eq!(arrivals.len(), 1);
            let responses = arrivals[0].responses.unwrap();
            assert_eq!((responses.count, responses.last), (63, true));
            assert_eq!(responses.value, !(1 << arrivals[0].node));
            assert_eq!(last, 2 * dimension);
        });
        for (engine, mut fabric) in engines(&settings) {
            let outcome = run(&mut *fabric, &[(0, reduction(64, 20))], LIMIT);
            assert_eq!(outcome.counts.link_hops, 63, "{engine}");
        }
    }
}

#[test]
fn a_greedy_reduction_takes_four_cycles_with_merging_on_bypass() {
    for settings in variants(&combining(FanIn::Greedy, Priority::Bypass)) {
        if settings.priority == Priority::Bypass {
            let last = 4 + 2 * u64::from(settings.sag_extra_cycle);
            last_of_all(&settings, |node| reduction(64, node), |_| last);
        }
    }
}

#[test]
fn a_fully_connected_mesh_takes_a_cycle() {
    let mut fabric = FullyConnected::new(&smart(8, 8), false).unwrap();
    let operations = [(0, broadcast(64, 9)), (5, reduction(64, 9)), (9, unicast(3, 60))];
    let outcome = run(&mut fabric, &operations, LIMIT);
    assert_eq!(outcome.arrivals.len(), 63 + 63 + 1);
    assert_eq!([0, 1, 2].map(|tag| outcome.last(tag)), [1, 1, 1]);
}

#[test]
fn the_ejection_cost_is_added() {
    let settings = Settings { eject_cost: 3, ..smart(8, 8) };
    alone(&settings, || vec![unicast(0, 63)], |_, _, last| assert_eq!(last, 7));
}
