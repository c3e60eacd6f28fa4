//! Routings that can deadlock are found, deadlock-free ones pass, and the report explains a
//! deadlock.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tutti_noc::measure::{Ending, Load, MeasurementPlan, Phases, Traffic, measure};
use tutti_noc::routing::dependencies::find_cycle;
use tutti_noc::routing::{self, Compass, DimensionOrder, Fixed};
use tutti_noc::traffic::{PacketSize, Pattern, Process};
use tutti_noc::{ChannelParameters, End, Network, Settings, Wiring};
use tutti_topology::{LinkParameters, Routes};
use tutti_units::{Bytes, Time, TimePerByte};

fn wiring(notation: &str) -> Arc<Wiring> {
    let cycle = Time::from_ps(1000);
    let link = LinkParameters::new(TimePerByte::new(1000, 16).unwrap(), cycle);
    let classes = tutti_topology::parse(notation).unwrap().link_classes().len();
    let topology = Arc::new(tutti_topology::build(notation, &vec![link; classes]).unwrap());
    let port = ChannelParameters { latency: 1, credit_latency: 1, flit_time: cycle, length: None };
    Arc::new(Wiring::of(topology, cycle, Bytes(16), port).unwrap())
}

fn shortest(wiring: &Arc<Wiring>) -> Fixed {
    let routes = Routes::shortest_path(Arc::clone(wiring.topology().unwrap()));
    Fixed::new(Arc::new(routes), Arc::clone(wiring)).unwrap()
}

/// Topologies, and routings that cannot deadlock on them.
const FREE: &[(&str, &[&str])] = &[
    (
        "mesh:4x4",
        &[
            "dimension_order",
            "dimension_order:yx",
            "o1_turn",
            "o1_turn:adaptive",
            "romm",
            "valiant",
            "ugal",
            "minimal_adaptive",
            "minimal_adaptive:first_dimension",
        ],
    ),
    (
        "torus:5x4",
        &[
            "dimension_order",
            "dimension_order:balanced",
            "valiant",
            "ugal",
            "minimal_adaptive",
            "minimal_adaptive:first_dimension",
        ],
    ),
    ("flattened_butterfly:3x3:2x1", &["dimension_order", "valiant", "ugal"]),
    ("hyperx:s=3x2x2,t=2,k=1x2x1", &["dimension_order", "valiant", "ugal"]),
    ("dragonfly:p=1,a=4,h=1", &["minimal", "valiant", "ugal"]),
    ("dragonfly:p=1,a=3x2,h=1,g=4,k=1x2", &["minimal", "valiant", "ugal"]),
    ("dragonfly:p=1,a=4,h=2,g=3,absolute", &["minimal", "valiant", "ugal"]),
    ("fat_tree:k=2,n=3", &["d_mod_k", "nca", "nca:adaptive"]),
    ("fat_tree:m=3x2x2,w=1x2x2,p=1x2x1", &["d_mod_k", "nca", "nca:adaptive"]),
];

#[test]
fn routings_with_orders_classes_and_escapes_have_no_dependency_cycles() {
    for &(notation, routings) in FREE {
        let wiring = wiring(notation);
        for text in routings {
            let routing = routing::parse(text, &wiring).unwrap();
            let found = find_cycle(&wiring, &Settings::new(4, 4), &*routing);
            assert_eq!(found, Some(Vec::new()), "{notation}: {text}");
            let least = Settings::new(routing.least_vcs(), 4);
            let found = find_cycle(&wiring, &least, &*routing);
            assert_eq!(found, Some(Vec::new()), "{notation}: {text}, fewest VCs");
        }
    }
}

#[test]
fn cyclic_flows_are_found_and_tree_flows_are_not() {
    let ring = wiring("ring:4");
    let port = |router: u32, up: bool| {
        let outputs = ring.outputs(router).iter().take(2);
        let to = (router + if up { 1 } else { 3 }) % 4;
        let leads = |channel: u32| match ring.channels()[channel as usize].to {
            End::Router { router, .. } => router == to,
            End::Node(_) => false,
        };
        outputs.enumerate().find(|(_, channel)| leads(**channel)).unwrap().0
    };
    let flows = |ups: &dyn Fn(u32, u32) -> bool| {
        let mut text = Vec::new();
        for from in 0..4_u32 {
            for to in 0..4_u32 {
                let (mut at, mut ports) = (from, Vec::new());
                while at != to {
                    let up = ups(from, to);
                    ports.push(port(at, up).to_string());
                    at = (at + if up { 1 } else { 3 }) % 4;
                }
                ports.push("2".to_owned());
                text.push(format!("{from}-{to}={}", ports.join(".")));
            }
        }
        format!("source_routed:{}", text.join(";"))
    };
    let settings = Settings::new(2, 4);
    let round = routing::parse(&flows(&|_, _| true), &ring).unwrap();
    assert_eq!(find_cycle(&ring, &settings, &*round).unwrap().len(), 4);
    // Never over the link between the last router and the first.
    let line = routing::parse(&flows(&|from, to| to > from), &ring).unwrap();
    assert_eq!(find_cycle(&ring, &settings, &*line), Some(Vec::new()));
}

#[test]
fn shortest_paths_on_a_ring_form_a_cycle() {
    let ring = wiring("ring:5");
    let found = find_cycle(&ring, &Settings::new(2, 4), &shortest(&ring)).unwrap();
    assert_eq!(found.len(), 5, "{found:?}");
    for (here, there) in found.iter().zip(found.iter().cycle().skip(1)) {
        let (here, there) = (ring.channels()[here.0 as usize], ring.channels()[there.0 as usize]);
        let (End::Router { router: end, .. }, End::Router { router: begin, .. }) =
            (here.to, there.from)
        else {
            panic!("{here:?} or {there:?} is a node's");
        };
        assert_eq!(end, begin, "each channel of the cycle starts where the one before ends");
    }
}

#[test]
fn a_deadlock_is_reported_with_its_cycle() {
    let ring = wiring("ring:5");
    let settings = Settings::new(1, 1);
    let mut network = Network::new(&ring, &settings, Arc::new(shortest(&ring))).unwrap();
    let load = Load {
        // All start at once, two hops in the same direction.
        pattern: Pattern::parse("tornado", 5, Some(&[5])).unwrap(),
        process: Process::periodic(0.02, true).unwrap(),
        size: PacketSize::fixed(5).unwrap(),
        priority: 0,
    };
    let plan = MeasurementPlan {
        phases: Phases { warmup: 1000, measure: 5000, drain: 5000 },
        batches: 10,
        patience: 1000,
        sample: 0,
        keep_vcs: false,
    };
    let (loads, stop) = ([load], AtomicBool::new(false));
    let traffic = Traffic::Synthetic(&loads);
    let result = measure(&ring, &settings, &mut network, traffic, &plan, &stop).unwrap();
    assert_eq!(result.ending, Ending::Deadlocked);
    let waiting = network.deadlock_cycle();
    assert_eq!(waiting.len() % 5, 0, "{waiting:?}");
    assert!(!waiting.is_empty());
}

#[test]
fn a_moving_network_has_no_deadlock_cycle() {
    let mesh = wiring("mesh:4x4");
    let compass = Compass::of(&mesh, &[4, 4], false).unwrap();
    let settings = Settings::new(1, 1);
    let routing = Arc::new(DimensionOrder::new(compass, false));
    let mut network = Network::new(&mesh, &settings, routing).unwrap();
    let load = Load {
        pattern: Pattern::parse("uniform", 16, None).unwrap(),
        process: Process::bernoulli(0.2).unwrap(),
        size: PacketSize::fixed(5).unwrap(),
        priority: 0,
    };
    let plan = MeasurementPlan {
        phases: Phases { warmup: 500, measure: 2000, drain: 1000 },
        batches: 10,
        patience: 1000,
        sample: 0,
        keep_vcs: false,
    };
    let (loads, stop) = ([load], AtomicBool::new(false));
    let traffic = Traffic::Synthetic(&loads);
    let result = measure(&mesh, &settings, &mut network, traffic, &plan, &stop).unwrap();
    assert_eq!(result.ending, Ending::Saturated);
    assert_eq!(network.deadlock_cycle(), []);
}
