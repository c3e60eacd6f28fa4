//! Paths, walked by hand: their lengths, the routers on them, and the choices of UGAL.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Candidate, Chance, Routing, RoutingContext, parse};
use crate::packet::Head;
use crate::{ChannelParameters, End, FlitError, VcRange, Wiring};
use tutti_topology::{Family, LinkParameters};
use tutti_units::{Bytes, Time, TimePerByte};

fn wiring(notation: &str) -> Arc<Wiring> {
    let cycle = Time::from_ps(1000);
    let link = LinkParameters::new(TimePerByte::new(1000, 16).unwrap(), cycle);
    let topology = Arc::new(tutti_topology::build(notation, &[link]).unwrap());
    let port = ChannelParameters { latency: 1, credit_latency: 1, flit_time: cycle, length: None };
    Arc::new(Wiring::of(topology, cycle, Bytes(16), port).unwrap())
}

/// The routers that a packet passes, and the VCs that it may have behind each, all of 12 at its
/// node.
fn walk(
    wiring: &Wiring,
    routing: &dyn Routing,
    (source, destination): (u32, u32),
    serial: u64,
    used: &dyn Fn(u32) -> u32,
) -> (Vec<u32>, Vec<VcRange>) {
    let mut head = Head {
        serial,
        source,
        destination,
        intermediate: destination,
        hops: 0,
        class: 0,
        phase: 0,
    };
    let vcs = VcRange { first: 0, last: 11 };
    let (mut passed, mut behind) = (Vec::new(), Vec::new());
    let (mut channel, mut injected) = (wiring.injects(source), true);
    while let End::Router { router, port: input } = wiring.channels()[channel as usize].to {
        let mut candidates = Vec::new();
        let chance = Chance::Seed(5);
        let place = RoutingContext { router, input, vc: 11, injected, vcs, chance, used };
        routing.route(&place, &mut head, &mut candidates);
        let Candidate { port, vcs, .. } = candidates[candidates.len() - 1];
        passed.push(router);
        behind.push(vcs);
        assert!(passed.len() < 30, "{source} to {destination} goes on and on: {passed:?}");
        (channel, injected) = (wiring.outputs(router)[port as usize], false);
        head.hops += 1;
    }
    assert_eq!(wiring.channels()[channel as usize].to, End::Node(destination));
    assert_eq!(behind.pop(), Some(vcs), "a node takes what comes by any VC");
    (passed, behind)
}

/// Of every pair and some serial numbers.
fn walks(wiring: &Wiring, text: &str) -> Vec<(u32, u32, Vec<u32>, Vec<VcRange>)> {
    let routing = parse(text, &Arc::new(wiring.clone())).unwrap();
    let mut all = Vec::new();
    for source in 0..wiring.nodes() {
        for destination in 0..wiring.nodes() {
            for turn in 0..4 {
                let serial = u64::from((source * wiring.nodes() + destination) * 4 + turn);
                let used = |port: u32| turn * port;
                let (passed, behind) =
                    walk(wiring, &*routing, (source, destination), serial, &used);
                all.push((source, destination, passed, behind));
            }
        }
    }
    all
}

/// Between groups that are fully connected: local, global, local at most; over another group once
/// more global and local.
#[test]
fn paths_through_a_dragonfly() {
    let dragonfly = wiring("dragonfly:p=1,a=4,h=1,g=5");
    let (half, third) = (6, 4);
    for (source, destination, passed, behind) in walks(&dragonfly, "minimal") {
        let groups: BTreeSet<u32> = passed.iter().map(|router| router / 4).collect();
        assert_eq!(groups.len(), if source / 4 == destination / 4 { 1 } else { 2 });
        assert!(passed.len() <= 4, "{passed:?}");
        for (vcs, pair) in behind.iter().zip(passed.windows(2)) {
            let before = pair[1] / 4 == source / 4 && source / 4 != destination / 4;
            assert_eq!((vcs.first, vcs.count()), (if before { 0 } else { half }, half));
        }
    }
    let mut longest = 0;
    for (_, _, passed, behind) in walks(&dragonfly, "valiant") {
        longest = longest.max(passed.len());
        assert!(behind.iter().all(|vcs| vcs.count() == third), "{behind:?}");
        assert!(behind.is_sorted_by_key(|vcs| vcs.first), "{behind:?}");
    }
    // Local, global, local, global, local: six routers.
    assert_eq!(longest, 6);
}

/// As in BookSim: VC 0 within the group of the source, VC 1 from the global channel on, and for
/// ejection that of the last channel.
#[test]
fn minimal_paths_on_one_vc_for_each_phase() {
    let dragonfly = Arc::new(wiring("dragonfly:p=1,a=4,h=1,g=5"));
    let routing = parse("minimal:one_vc", &dragonfly).unwrap();
    for (source, destination) in [(0, 2), (0, 4), (0, 19), (7, 7), (13, 2)] {
        let (passed, channels) = path_on_vcs(&dragonfly, &*routing, (source, destination));
        for (vc, behind) in channels.iter().zip(passed[1..].iter().chain(passed.last())) {
            assert_eq!(*vc, u32::from(behind / 4 != source / 4), "{source} to {destination}");
        }
    }
}

/// The routers that a packet passes, and the only VC of each channel behind them.
fn path_on_vcs(
    wiring: &Wiring,
    routing: &dyn Routing,
    (source, destination): (u32, u32),
) -> (Vec<u32>, Vec<u32>) {
    let mut head = Head {
        serial: 0,
        source,
        destination,
        intermediate: destination,
        hops: 0,
        class: 0,
        phase: 0,
    };
    let vcs = VcRange { first: 0, last: 11 };
    let (mut passed, mut behind) = (Vec::new(), Vec::new());
    let (mut channel, mut injected) = (wiring.injects(source), true);
    while let End::Router { router, port: input } = wiring.channels()[channel as usize].to {
        let mut candidates = Vec::new();
        let (chance, used) = (Chance::Seed(5), &|_: u32| 0);
        let place = RoutingContext { router, input, vc: 11, injected, vcs, chance, used };
        routing.route(&place, &mut head, &mut candidates);
        let [Candidate { port, vcs, .. }] = candidates[..] else { panic!("{candidates:?}") };
        assert_eq!(vcs.first, vcs.last);
        passed.push(router);
        behind.push(vcs.first);
        (channel, injected) = (wiring.outputs(router)[port as usize], false);
    }
    (passed, behind)
}

/// Routers of a triangle with links of 2, 2 and 20 cycles, and two paths of 4 cycles from 0 to 3,
/// of which BookSim takes the one over the router that is nearer to the source.
#[test]
fn least_latency_counts_cycles_and_not_hops() {
    let mut builder = tutti_topology::Builder::new("weighted", 5);
    let routers: Vec<_> = (0..5).map(|node| builder.router(format!("router{node}"))).collect();
    let mut cable = |a, b, cycles: u64| {
        let rate = TimePerByte::new(1000, 16).unwrap();
        builder.cable(a, b, LinkParameters::new(rate, Time::from_ps(1000 * cycles)));
    };
    for (&router, npu) in routers.iter().zip((0..).map(tutti_units::ids::VertexId)) {
        cable(npu, router, 1);
    }
    for (a, b, cycles) in [(0, 1, 2), (1, 2, 2), (0, 2, 20), (0, 4, 1), (1, 3, 2), (4, 3, 3)] {
        cable(routers[a], routers[b], cycles);
    }
    let port = ChannelParameters {
        latency: 1,
        credit_latency: 1,
        flit_time: Time::from_ps(1000),
        length: None,
    };
    let graph = Arc::new(builder.build().unwrap());
    let wiring = Wiring::of(graph, Time::from_ps(1000), Bytes(16), port).unwrap();
    let wiring = Arc::new(wiring);
    let path = |text: &str, pair| {
        let routing = parse(text, &wiring).unwrap();
        walk(&wiring, &*routing, pair, 0, &|_| 0).0
    };
    assert_eq!(path("least_latency", (0, 2)), [0, 1, 2]);
    assert_eq!(path("shortest_path", (0, 2)), [0, 2]);
    assert_eq!(path("least_latency", (0, 3)), [0, 4, 3]);
    assert_eq!(path("least_latency", (3, 0)), [3, 1, 0]);
}

/// With several cables between two groups, the one that is nearest to both ends.
#[test]
fn paths_through_a_dragonfly_of_grids_are_the_shortest_over_one_global_link() {
    for notation in ["dragonfly:p=1,a=3x2,h=2,g=4", "dragonfly:p=1,a=4,h=2,g=3,absolute"] {
        let dragonfly = wiring(notation);
        let graph = Arc::clone(dragonfly.topology().unwrap());
        let shortest = tutti_topology::Routes::minimal(graph).unwrap();
        for (source, destination, passed, _) in walks(&dragonfly, "minimal") {
            let (from, to) =
                (tutti_units::ids::RankId(source), tutti_units::ids::RankId(destination));
            // Both terminal links, and one less than the routers.
            let links = shortest.path(from, to).unwrap().len();
            assert_eq!(passed.len(), links.max(2) - 1, "{notation}: {source} to {destination}");
        }
    }
}

/// A packet in a fat tree passes 2 l - 1 switches, l the level of the lowest common ancestors; all
/// of these are used.
#[test]
fn nca_turns_at_every_lowest_common_ancestor() {
    for notation in ["fat_tree:k=3,n=2", "fat_tree:m=2x2x3,w=1x2x2,p=1x1x2"] {
        let tree = wiring(notation);
        let graph = tree.topology().unwrap();
        let family = graph.family().and_then(Family::fat_tree).unwrap();
        for text in ["nca", "nca:adaptive"] {
            let mut tops = BTreeSet::new();
            for (source, destination, passed, _) in walks(&tree, text) {
                let same = |&level: &usize| {
                    let below = family.npus_below(level);
                    u64::from(source) / below == u64::from(destination) / below
                };
                let level = (1..=family.levels()).find(same).unwrap();
                assert_eq!(passed.len(), 2 * level - 1, "{notation}: {passed:?}");
                tops.insert(passed[level - 1]);
            }
            let switches = tree.routers() as usize;
            assert_eq!(tops.len(), switches, "{notation}: every switch is some pair's");
        }
    }
}

/// In a row of four routers: the shortest path is one hop, the path over another router two.
#[test]
fn ugal_weighs_credits_in_use_times_hops() {
    let row = wiring("flattened_butterfly:4:1");
    for (threshold, most) in [(0, 6), (2, 8), (5, 11)] {
        let routing = parse(&format!("ugal:{threshold}"), &row).unwrap();
        let towards = |to: u32| {
            let leads = |&&channel: &&u32| matches!(row.channels()[channel as usize].to, End::Router { router, .. } if router == to);
            let outputs = row.outputs(0);
            let channel = outputs.iter().find(leads).unwrap();
            u32::try_from(outputs.iter().position(|one| one == channel).unwrap()).unwrap()
        };
        let straight = towards(3);
        let mut detours = 0;
        for serial in 0..40 {
            // Three credits are in use on the other ports.
            for used in 0..15 {
                let found = |port| if port == straight { used } else { 3 };
                let (passed, behind) = walk(&row, &*routing, (0, 3), serial, &found);
                detours += passed.len() - 2;
                assert!(passed.len() == 2 || used > most, "{threshold}, {used}: {passed:?}");
                let upper = VcRange { first: 6, last: 11 };
                assert_eq!(behind.last(), Some(&upper), "the second leg is on the upper half");
            }
        }
        // Half of the packets draw router 1 or 2 as the intermediate node.
        assert!(detours > 5 * (14 - most as usize), "{threshold}: {detours}");
    }
}

/// Up to two hops of detour in a torus of 5: 2 + 1 against 1.
#[test]
fn hops_over_two_legs_are_the_sum_of_both() {
    use super::{Compass, GridLegs, Legs};
    let torus = wiring("torus:5x3");
    let legs = GridLegs::new(Compass::of(&torus, &[5, 3], true).unwrap(), 15);
    assert_eq!([legs.straight(0, 4), legs.straight(0, 7), legs.straight(6, 6)], [1, 3, 0]);
    assert_eq!(legs.detour(0, 2, 4), 4);
}

#[test]
fn packets_of_a_flow_use_all_of_its_routes() {
    let mesh = wiring("mesh:2x2");
    let text = "source_routed:0-3=0.1.2;0-3=1.1.2;*=dimension_order";
    let routing = parse(text, &mesh).unwrap();
    let candidates: BTreeSet<Vec<u32>> =
        (0..20).map(|serial| walk(&mesh, &*routing, (0, 3), serial, &|_| 0).0).collect();
    assert_eq!(candidates, [vec![0, 1, 3], vec![0, 2, 3]].into());
    assert_eq!(walk(&mesh, &*routing, (3, 0), 1, &|_| 0).0, [3, 2, 0]);
}

#[test]
fn flows_without_a_route_to_the_destination_are_rejected() {
    let mesh = wiring("mesh:2x2");
    for (flow, problem) in [
        ("0-3=0.1", "it ends at router 3; expected a port that leads to its node"),
        ("0-3=0.0.1.1.2", "it comes to router 0 twice; expected no loop"),
        ("0-3=0.9", "router 1 has no output port 9; expected at most 2"),
        ("0-3=0.2", "port 2 of router 1 leads to node 1"),
        ("0-3=0.1.2.0", "ports follow 2, which leads to its node"),
        ("0-4=0", "node 4 does not exist; expected at most 3"),
    ] {
        let refused = parse(&format!("source_routed:{flow};*=dimension_order"), &mesh);
        let to = u32::from(flow.as_bytes()[2] - b'0');
        let problem = problem.to_owned();
        assert_eq!(refused.err(), Some(FlitError::Flow { from: 0, to, problem }), "{flow}");
    }
    let missing = parse("source_routed:0-0=2", &mesh).err().unwrap().to_string();
    assert!(missing.starts_with("the flow from node 0 to node 1: it is missing"), "{missing}");
    for text in ["source_routed", "source_routed:0-1", "source_routed:*=source_routed:0-0=2"] {
        let refused = parse(text, &mesh).err();
        assert!(matches!(refused, Some(FlitError::RoutingArgument { .. })), "{refused:?}");
    }
}
