//! Routings that can deadlock are found out, those that cannot are not, and what deadlocks is explained.

use std::sync::Arc;

use tutti_core::network::flit::measure::{Ending, Load, Plan, measure};
use tutti_core::network::flit::routing::dependencies::circle;
use tutti_core::network::flit::routing::{
    Compass, DimensionOrder, Fixed, MinimalAdaptive, O1Turn, Routing, Through, TorusOrder,
    TwoPhases,
};
use tutti_core::network::flit::traffic::{PacketSize, Pattern, Process};
use tutti_core::network::flit::{ChannelParameters, End, Network, Settings, Wiring};
use tutti_core::topology::{self, LinkParameters, Routes};
use tutti_core::units::{Bytes, Time, TimePerByte};

fn wiring(notation: &str) -> Arc<Wiring> {
    let cycle = Time::from_ps(1000);
    let link = LinkParameters::new(TimePerByte::new(1000, 16).unwrap(), cycle);
    let classes = topology::parse(notation).unwrap().link_classes().len();
    let topology = Arc::new(topology::build(notation, &vec![link; classes]).unwrap());
    let port = ChannelParameters { latency: 1, credit_latency: 1, flit_time: cycle, length: None };
    Arc::new(Wiring::of(topology, cycle, Bytes(16), port).unwrap())
}

fn shortest(wiring: &Arc<Wiring>) -> Fixed {
    let routes = Routes::shortest_path(Arc::clone(wiring.topology().unwrap()));
    Fixed::new(Arc::new(routes), Arc::clone(wiring)).unwrap()
}

#[test]
fn routings_with_datelines_orders_and_escapes_are_free_of_circles() {
    let (mesh, torus) = (wiring("mesh:4x4"), wiring("torus:5x4"));
    let on_mesh = || Compass::of(&mesh, &[4, 4], false).unwrap();
    let on_torus = || Compass::of(&torus, &[5, 4], true).unwrap();
    let free: Vec<(&Wiring, Box<dyn Routing>)> = vec![
        (&mesh, Box::new(DimensionOrder::new(on_mesh(), false))),
        (&mesh, Box::new(O1Turn::new(on_mesh(), false))),
        (&mesh, Box::new(TwoPhases::new(on_mesh(), 16, Through::Any))),
        (&mesh, Box::new(TwoPhases::new(on_mesh(), 16, Through::Quadrant))),
        (&mesh, Box::new(MinimalAdaptive::new(on_mesh()))),
        (&torus, Box::new(TorusOrder::new(on_torus(), false))),
        (&torus, Box::new(TorusOrder::new(on_torus(), true))),
        (&torus, Box::new(TwoPhases::new(on_torus(), 20, Through::Any))),
        (&torus, Box::new(MinimalAdaptive::new(on_torus()))),
    ];
    for (wiring, routing) in free {
        assert_eq!(circle(wiring, &Settings::new(4, 4), &*routing), [], "{routing:?}");
    }
}

#[test]
fn shortest_paths_round_a_ring_are_a_circle() {
    let ring = wiring("ring:5");
    let found = circle(&ring, &Settings::new(2, 4), &shortest(&ring));
    assert_eq!(found.len(), 5, "{found:?}");
    for (here, there) in found.iter().zip(found.iter().cycle().skip(1)) {
        let (here, there) = (ring.channels()[here.0 as usize], ring.channels()[there.0 as usize]);
        let (End::Router { router: end, .. }, End::Router { router: begin, .. }) =
            (here.to, there.from)
        else {
            panic!("{here:?} or {there:?} is a node's");
        };
        assert_eq!(end, begin, "each channel of the circle begins where the one before ends");
    }
}

#[test]
fn a_deadlock_is_called_one_and_explained() {
    let ring = wiring("ring:5");
    let settings = Settings::new(1, 1);
    let mut network = Network::new(&ring, &settings, Arc::new(shortest(&ring))).unwrap();
    let load = Load {
        // All begin at once, two hops the same way round.
        pattern: Pattern::parse("tornado", 5, Some(&[5])).unwrap(),
        process: Process::periodic(0.02, true).unwrap(),
        size: PacketSize::fixed(5).unwrap(),
        priority: 0,
    };
    let plan =
        Plan { warmup: 1000, measure: 5000, batches: 10, drain: 5000, patience: 1000, sample: 0 };
    let result = measure(&ring, &settings, &mut network, &[load], &plan).unwrap();
    assert_eq!(result.ending, Ending::Deadlocked);
    let waiting = network.circle();
    assert_eq!(waiting.len() % 5, 0, "{waiting:?}");
    assert!(!waiting.is_empty());
}

#[test]
fn what_moves_waits_in_no_circle() {
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
    let plan =
        Plan { warmup: 500, measure: 2000, batches: 10, drain: 1000, patience: 1000, sample: 0 };
    let result = measure(&mesh, &settings, &mut network, &[load], &plan).unwrap();
    assert_eq!(result.ending, Ending::Saturated);
    assert_eq!(network.circle(), []);
}
