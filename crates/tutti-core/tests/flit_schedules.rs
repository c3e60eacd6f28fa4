//! Schedules over the flit network: against the packet network where nothing contends, and to the end where
//! everything does.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tutti_core::algorithm::build;
use tutti_core::collective::Collective;
use tutti_core::engine::{Conditions, LocalCosts, Silent, Simulation};
use tutti_core::network::flit::routing::{Compass, DimensionOrder, Routing, TorusOrder};
use tutti_core::network::flit::{
    ChannelParameters, FlitCarrier, Network, Packing, Settings, Wiring,
};
use tutti_core::network::packet::{Ends, Fabric, Packets, Ways};
use tutti_core::network::{LogGP, Model};
use tutti_core::schedule::Layout;
use tutti_core::topology::{self, LinkParameters, Routes};
use tutti_core::units::{Bytes, Time, TimePerByte};

const FLIT: u64 = 64;

fn link() -> LinkParameters {
    LinkParameters::new(TimePerByte::new(1000, FLIT).unwrap(), Time::from_ps(1000))
}

fn model() -> Model {
    let zero = Time::ZERO;
    Model::LogGP(LogGP::new(Time::from_ps(1000), zero, zero, TimePerByte::ZERO).unwrap())
}

struct Times {
    flit: Time,
    packet: Time,
}

fn times(algorithm: &str, family: &str, sizes: &[u32], wraps: bool, bytes: u64) -> Times {
    let notation =
        format!("{family}:{}", sizes.iter().map(u32::to_string).collect::<Vec<_>>().join("x"));
    let topology = Arc::new(topology::build(&notation, &vec![link(); sizes.len()]).unwrap());
    let ranks = topology.npus();
    let schedule = build(algorithm, Collective::AllReduce, ranks).unwrap();
    let layout = Layout::of_schedule(&*schedule, Bytes(bytes), 4).unwrap();
    let model = model();
    let costs = LocalCosts {
        gamma: TimePerByte::ZERO,
        reduce_overhead: Time::ZERO,
        copy: TimePerByte::ZERO,
    };
    let simulation = Simulation {
        schedule: &*schedule,
        layout,
        model: &model,
        costs,
        conditions: Conditions::default(),
    };
    let stop = AtomicBool::new(false);
    let port = ChannelParameters {
        latency: 1,
        credit_latency: 1,
        flit_time: Time::from_ps(1000),
        length: None,
    };
    let wiring = Wiring::of(Arc::clone(&topology), Time::from_ps(1000), Bytes(FLIT), port).unwrap();
    let compass = Compass::of(&wiring, sizes, wraps).unwrap();
    let routing: Arc<dyn Routing> = if wraps {
        Arc::new(TorusOrder::new(compass, false))
    } else {
        Arc::new(DimensionOrder::new(compass, false))
    };
    let network = Network::new(&wiring, &Settings::new(4, 16), routing).unwrap();
    let packing = Packing::new(Bytes(FLIT), 16, 0).unwrap();
    let mut carrier = FlitCarrier::new(network, &wiring, packing, Ends::of(&model));
    let flit = simulation.run_through(&mut carrier, &stop, &mut Silent).unwrap();
    let routes = Routes::dimension_order(topology).unwrap();
    let packets = Packets::new(Bytes(16 * FLIT), Bytes(0), Bytes(64 * FLIT)).unwrap();
    let mut fabric = Fabric::new(Ways::Routed(&routes), packets, Ends::of(&model));
    let packet = simulation.run_through(&mut fabric, &stop, &mut Silent).unwrap();
    Times { flit: flit.completion_time(), packet: packet.completion_time() }
}

#[test]
fn a_ring_of_neighbours_takes_as_long_as_over_packets() {
    // Neighbours of a ring on a torus of one dimension: nothing contends.
    let Times { flit, packet } = times("ring", "torus", &[8], true, 1 << 20);
    // Within 5 %, in whole numbers.
    assert!(flit.ps().abs_diff(packet.ps()) * 20 <= packet.ps(), "flit {flit}, packet {packet}");
}

#[test]
fn schedules_run_to_the_end_where_messages_meet() {
    for algorithm in ["recursive_doubling", "binomial", "double_binary_tree", "direct"] {
        let Times { flit, packet } = times(algorithm, "mesh", &[4, 4], false, 40_000);
        let near = flit.ps() * 2 > packet.ps() && flit.ps() < packet.ps() * 2;
        assert!(near, "{algorithm}: flit {flit}, packet {packet}");
    }
}
