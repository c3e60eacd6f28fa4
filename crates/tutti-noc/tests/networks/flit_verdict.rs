//! Whether a routing can deadlock: the quick check for table routings against the graph of all VCs,
//! and dependency cycles by name.

use std::collections::BTreeSet;
use std::sync::Arc;

use tutti_noc::deadlock::{Verdict, verdict};
use tutti_noc::routing::dependencies::{ChannelVc, find_cycle, pairs};
use tutti_noc::routing::{Chance, Routing, RoutingContext, parse};
use tutti_noc::{ChannelParameters, End, FlitError, Head, Settings, VcRange, Wiring};
use tutti_topology::LinkParameters;
use tutti_units::{Bytes, Time, TimePerByte};

type Pair = (ChannelVc, ChannelVc);

const CYCLE: Time = Time::from_ps(1000);

fn wiring(notation: &str, flit: u64) -> Arc<Wiring> {
    let link = LinkParameters::new(TimePerByte::new(1000, 16).unwrap(), CYCLE);
    let classes = tutti_topology::parse(notation).unwrap().link_classes().len();
    let topology = Arc::new(tutti_topology::build(notation, &vec![link; classes]).unwrap());
    let (latency, credit_latency) = (1, 1);
    let port = ChannelParameters { latency, credit_latency, flit_time: CYCLE, length: None };
    Arc::new(Wiring::of(topology, CYCLE, Bytes(flit), port).unwrap())
}

#[test]
fn the_fast_verdict_equals_the_full_vc_analysis() {
    let mut cycles = 0;
    for notation in [
        "ring:3",
        "ring:5",
        "ring:8",
        "mesh:3x4",
        "torus:3x3",
        "torus:4x4",
        "torus:5x4",
        "fully_connected:5",
        "switch:6",
        "fat_tree:k=2,n=3",
        "dragonfly:p=1,a=3,h=1,g=4",
        "hyperx:s=3x3",
        "hierarchical:ring:3/ring:4",
        "cmesh:2x3:2",
    ] {
        let wiring = wiring(notation, 16);
        for name in ["shortest_path", "dimension_order", "d_mod_k", "ecmp:3", "minimal"] {
            let Ok(routing) = parse(name, &wiring) else { continue };
            let settings = Settings::new(2, 4);
            let slow = find_cycle(&wiring, &settings, &*routing).unwrap();
            let quick = verdict(&wiring, &settings, &*routing);
            assert_eq!(slow.is_empty(), quick == Verdict::Free, "{notation} {name}: {quick:?}");
            cycles += usize::from(!slow.is_empty());
        }
    }
    assert!(cycles > 5, "only {cycles} of them can deadlock");
}

/// On cables between random pairs, a spanning tree among them: paths arrive, from down no link leads
/// up, and the graph of all VCs has no cycle. On rings and sparse boundaries shortest paths have one.
#[test]
fn up_down_has_no_cycle_on_any_graph() {
    let named =
        ["ring:7", "chiplet_mesh:chiplets=2x2,tiles=3x3,boundary=1", "dragonfly:p=1,a=3,h=1"];
    let of_families = named.map(|notation| wiring(notation, 16));
    for (wiring, notation) in of_families.iter().zip(named) {
        let routing = parse("shortest_path", wiring).unwrap();
        let cycle = find_cycle(wiring, &Settings::new(1, 4), &*routing).unwrap();
        assert!(!cycle.is_empty() || notation.starts_with("dragonfly"), "{notation}");
    }
    for wiring in of_families.into_iter().chain((1..=60).map(random)) {
        let routing = parse("up_down", &wiring).unwrap();
        let settings = Settings::new(1, 4);
        assert_eq!(find_cycle(&wiring, &settings, &*routing).unwrap(), []);
        assert_eq!(verdict(&wiring, &settings, &*routing), Verdict::Free);
        assert!(!met(&wiring, &settings, &*routing).is_empty());
    }
}

/// A graph of 3 to 14 routers, a node at each, with cables between random pairs.
fn random(seed: u64) -> Arc<Wiring> {
    let mut state = seed;
    let mut draw = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let (nodes, link) =
        (3 + draw(12), LinkParameters::new(TimePerByte::new(1000, 16).unwrap(), CYCLE));
    let mut builder = tutti_topology::Builder::new("random", u32::try_from(nodes).unwrap());
    let routers: Vec<_> = (0..nodes).map(|node| builder.router(format!("router{node}"))).collect();
    for (&router, npu) in routers.iter().zip((0..).map(tutti_units::ids::VertexId)) {
        builder.cable(npu, router, link);
    }
    for node in 1..nodes {
        builder.cable(routers[node], routers[draw(node)], link);
    }
    for _ in 0..draw(2 * nodes) {
        let (one, other) = (draw(nodes), draw(nodes));
        if one != other {
            builder.cable(routers[one], routers[other], link);
        }
    }
    let (latency, credit_latency) = (1, 1);
    let port = ChannelParameters { latency, credit_latency, flit_time: CYCLE, length: None };
    let graph = Arc::new(builder.build().unwrap());
    Arc::new(Wiring::of(graph, CYCLE, Bytes(16), port).unwrap())
}

/// The dependencies of packets that draw at random: all of them, enumerated, and a part.
fn met(wiring: &Wiring, settings: &Settings, routing: &dyn Routing) -> BTreeSet<Pair> {
    let mut met = BTreeSet::new();
    for source in 0..wiring.nodes() {
        for destination in 0..wiring.nodes() {
            for serial in 0..300 {
                let (class, phase, hops) = (0, 0, 0);
                let intermediate = destination;
                let head = Head { serial, source, destination, intermediate, hops, class, phase };
                follow(wiring, settings, routing, head, &mut met);
            }
        }
    }
    met
}

/// One of the routes of a packet, by its serial number.
fn follow(
    wiring: &Wiring,
    settings: &Settings,
    routing: &dyn Routing,
    mut head: Head,
    met: &mut BTreeSet<Pair>,
) {
    let mut vc = routing.injects(&head, settings.classes[0]).first;
    let (mut channel, mut held) = (wiring.injects(head.source), None);
    while let End::Router { router, port } = wiring.channels()[channel as usize].to {
        let turn = u32::try_from(head.serial).unwrap() >> (head.hops % 8);
        let place = RoutingContext {
            router,
            input: port,
            vc,
            injected: head.hops == 0,
            vcs: settings.classes[0],
            chance: Chance::Seed(7),
            used: &|port| (turn >> (port % 4)) % 2,
        };
        let mut candidates = Vec::new();
        routing.route(&place, &mut head, &mut candidates);
        head.hops += 1;
        let lowest = candidates.iter().map(|candidate| candidate.priority).min().unwrap();
        for candidate in candidates.iter().filter(|candidate| candidate.priority == lowest) {
            let next = wiring.outputs(router)[candidate.port as usize];
            for vc in candidate.vcs.first..=candidate.vcs.last {
                met.extend(held.map(|held| (held, (next, vc))));
            }
        }
        let candidate = candidates[turn as usize % candidates.len()];
        vc = candidate.vcs.first + turn % candidate.vcs.count();
        channel = wiring.outputs(router)[candidate.port as usize];
        held = if candidate.priority == lowest { Some((channel, vc)) } else { held };
    }
}

#[test]
fn simulated_dependencies_are_predicted() {
    for (notation, names, all) in [
        ("mesh:3x3", "dimension_order o1_turn o1_turn:adaptive valiant minimal_adaptive", true),
        ("torus:3x4", "dimension_order dimension_order:balanced valiant minimal_adaptive", true),
        ("dragonfly:p=1,a=2,h=1", "minimal", true),
        ("fat_tree:k=2,n=3", "nca nca:adaptive", true),
        ("mesh:3x3", "source_routed:0-1=0.3;*=o1_turn", true),
        // Not every node is an intermediate node: some would not be on the path, or be its end.
        ("mesh:3x3", "romm ugal", false),
        ("dragonfly:p=1,a=2,h=1", "valiant ugal", false),
        ("flattened_butterfly:2x3:2x1", "valiant ugal", false),
    ] {
        let wiring = wiring(notation, 16);
        for name in names.split(' ') {
            let routing = parse(name, &wiring).unwrap();
            let settings = Settings::new(4, 4);
            let known = pairs(&wiring, &settings, &*routing).unwrap();
            let known: BTreeSet<Pair> = known.into_iter().collect();
            let met = met(&wiring, &settings, &*routing);
            assert!(met.len() > 50 && met.is_subset(&known), "{notation}, {name}");
            assert!(!all || met == known, "{notation}, {name}: {} of {}", met.len(), known.len());
        }
    }
}

#[test]
fn a_dependency_cycle_lists_the_endpoints_of_its_channels() {
    let wiring = wiring("ring:5", 16);
    let routing = parse("shortest_path", &wiring).unwrap();
    let Verdict::Cycle(cycle) = verdict(&wiring, &Settings::new(2, 4), &*routing) else {
        panic!("a ring of five has a cycle");
    };
    assert_eq!(cycle.len(), 5);
    for (here, there) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
        assert_eq!(here.to, there.from, "{cycle:?}");
    }
    let all: Vec<String> = cycle.iter().map(ToString::to_string).collect();
    assert!(all.contains(&"npu0 > npu1".to_owned()) || all.contains(&"npu1 > npu0".to_owned()));
}

#[test]
fn a_large_network_with_tables_is_checked() {
    let wiring = wiring("mesh:32x32", 16);
    let routing = parse("dimension_order", &wiring).unwrap();
    assert_eq!(verdict(&wiring, &Settings::new(2, 4), &*routing), Verdict::Free);
}

#[test]
fn a_thousand_nodes_are_checked_with_every_routing() {
    for (notation, name) in [
        ("mesh:32x32", "o1_turn"),
        ("mesh:32x32", "minimal_adaptive"),
        ("torus:32x32", "minimal_adaptive"),
        ("torus:32x32", "ugal"),
        ("flattened_butterfly:16x16:2x2", "ugal"),
        ("dragonfly:p=4,a=8,h=4", "ugal"),
        ("fat_tree:k=32,n=2", "nca:adaptive"),
    ] {
        let wiring = wiring(notation, 16);
        let routing = parse(name, &wiring).unwrap();
        let found = verdict(&wiring, &Settings::new(4, 4), &*routing);
        assert_eq!(found, Verdict::Free, "{notation}, {name}");
    }
    let wiring = wiring("mesh:96x96", 16);
    let routing = parse("o1_turn", &wiring).unwrap();
    assert_eq!(verdict(&wiring, &Settings::new(4, 4), &*routing), Verdict::TooLarge);
}

#[test]
fn classes_that_share_vcs_can_introduce_a_cycle() {
    // XY on VC 0 and YX on VC 1 for one class, on VCs 1 and 2 for the other: VC 1 has all turns.
    let wiring = wiring("mesh:3x3", 16);
    let routing = parse("o1_turn", &wiring).unwrap();
    let mut settings = Settings::new(3, 4);
    settings.classes = vec![VcRange { first: 0, last: 1 }, VcRange { first: 1, last: 2 }];
    let Verdict::Cycle(cycle) = verdict(&wiring, &settings, &*routing) else {
        panic!("all turns on one VC are a cycle");
    };
    assert!(cycle.iter().all(|held| held.vc.is_some()), "{cycle:?}");
    settings.classes = vec![VcRange { first: 0, last: 1 }, VcRange { first: 0, last: 1 }];
    assert_eq!(verdict(&wiring, &settings, &*routing), Verdict::Free);
}

#[test]
fn a_flit_wider_than_a_link_is_rejected() {
    assert_eq!(wiring("ring:3", 16).check_widths(Bytes(16), &Settings::default()), Ok(()));
    let narrow = wiring("ring:3", 40).check_widths(Bytes(40), &Settings::default()).unwrap_err();
    let FlitError::TooWide { carries, .. } = &narrow else { panic!("{narrow}") };
    assert_eq!(*carries, Bytes(16));
    let expected =
        "a flit of 40 B is wider than what npu0 > npu1 carries in a cycle of 1 ns, which is 16 B";
    assert_eq!(narrow.to_string(), expected);
}
