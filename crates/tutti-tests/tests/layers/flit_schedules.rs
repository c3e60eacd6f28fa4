//! Schedules over the flit network: against the packet network where nothing contends, to the end where
//! everything does, by hand where that can be done, and to a statement where nothing moves any more.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tutti_engine::{Conditions, EngineError, LocalCosts, Outcome, Silent, Simulation};
use tutti_network::Model;
use tutti_network::packet::{Ends, PacketNetwork, PacketRouting, Packets};
use tutti_noc::routing::{self, Routing};
use tutti_noc::{ChannelParameters, FlitCarrier, Network, Packing, Settings, Wiring};
use tutti_schedule::algorithm::build;
use tutti_schedule::collective::Collective;
use tutti_schedule::{ChunkRange, Explicit, Layout, Schedule, Slot};
use tutti_tests::model;
use tutti_topology::{LinkParameters, Routes, Topology};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time, TimePerByte};

const FLIT: u64 = 64;
const CYCLE: Time = Time::from_ps(1000);
const ALL: ChunkRange = ChunkRange::new(0, 1);

/// Ends that cost a nanosecond of latency.
fn free() -> Model {
    model(&("loggp", &[("L", "1 ns"), ("o", "0 ns"), ("g", "0 ns"), ("G", "0 ns/B")]))
}

/// Links of a flit per cycle, so many cycles long.
fn graph(notation: &str, latency: u64) -> Arc<Topology> {
    let rate = TimePerByte::new(1000, FLIT).unwrap();
    let link = LinkParameters::new(rate, Time::from_ps(1000 * latency));
    let classes = tutti_topology::parse(notation).unwrap().link_classes().len();
    Arc::new(tutti_topology::build(notation, &vec![link; classes]).unwrap())
}

struct Flits {
    wiring: Arc<Wiring>,
    settings: Settings,
    routing: Arc<dyn Routing>,
    packet: u32,
}

impl Flits {
    fn new(topology: Arc<Topology>, routing: &str, settings: Settings, packet: u32) -> Flits {
        let (latency, credit_latency) = (1, 1);
        let port = ChannelParameters { latency, credit_latency, flit_time: CYCLE, length: None };
        let wiring = Arc::new(Wiring::of(topology, CYCLE, Bytes(FLIT), port).unwrap());
        let routing = routing::parse(routing, &wiring).unwrap();
        Flits { wiring, settings, routing, packet }
    }

    fn carrier(&self, model: &Model) -> FlitCarrier<'static> {
        let network =
            Network::new(&self.wiring, &self.settings, Arc::clone(&self.routing)).unwrap();
        let packing = Packing::new(Bytes(FLIT), self.packet, 0).unwrap();
        let (wiring, ends) = (Arc::clone(&self.wiring), Ends::of(model));
        FlitCarrier::new(network, wiring, &self.settings, packing, ends)
    }
}

fn simulation<'a>(
    schedule: &'a dyn Schedule,
    model: &'a Model,
    bytes: u64,
) -> Simulation<'a, Model> {
    let layout = Layout::of_schedule(schedule, Bytes(bytes), 4).unwrap();
    let (costs, conditions) = (LocalCosts::FREE, Conditions::default());
    Simulation { schedule, layout, model, costs, conditions }
}

fn run(
    schedule: &dyn Schedule,
    model: &Model,
    bytes: u64,
    flits: &Flits,
) -> Result<Outcome, EngineError> {
    let stop = AtomicBool::new(false);
    let simulation = simulation(schedule, model, bytes);
    simulation.run_through(&mut flits.carrier(model), &stop, &mut Silent)
}

struct Times {
    flit: Time,
    packet: Time,
}

fn times(algorithm: &str, notation: &str, model: &Model, bytes: u64) -> Times {
    let topology = graph(notation, 1);
    let schedule = build(algorithm, Collective::AllReduce, topology.npus()).unwrap();
    let flits = Flits::new(Arc::clone(&topology), "dimension_order", Settings::new(4, 16), 16);
    let flit = run(&*schedule, model, bytes, &flits).unwrap();
    let routes = Routes::dimension_order(topology).unwrap();
    let packets = Packets::new(Bytes(16 * FLIT), Bytes(0), Bytes(64 * FLIT)).unwrap();
    let mut fabric = PacketNetwork::new(PacketRouting::Routed(&routes), packets, Ends::of(model));
    let stop = AtomicBool::new(false);
    let simulation = simulation(&*schedule, model, bytes);
    let packet = simulation.run_through(&mut fabric, &stop, &mut Silent).unwrap();
    Times { flit: flit.completion_time(), packet: packet.completion_time() }
}

#[test]
fn a_ring_of_neighbours_takes_as_long_as_over_packets() {
    // Neighbours of a ring on a torus of one dimension: nothing contends. Ends that take no time, ends
    // that are slower than the links, on both sides and on one, and ends that are faster.
    let ends = [
        free(),
        model(&("loggp", &[("L", "1 us"), ("o", "1 us"), ("g", "1 us"), ("G", "0.05 ns/B")])),
        model(&("postal", &[("alpha", "1 us"), ("beta", "0.05 ns/B")])),
        model(&(
            "pipelining_postal",
            &[("alpha_p", "1 us"), ("alpha_r", "0.3 us"), ("beta", "0.01 ns/B")],
        )),
    ];
    for ends in ends {
        let Times { flit, packet } = times("ring", "torus:8", &ends, 1 << 20);
        // Within 5 %, in integer arithmetic.
        let apart = flit.ps().abs_diff(packet.ps());
        assert!(apart * 20 <= packet.ps(), "{ends:?}: flit {flit}, packet {packet}");
    }
}

#[test]
fn schedules_run_to_the_end_where_messages_meet() {
    for algorithm in ["recursive_doubling", "binomial", "double_binary_tree", "direct"] {
        let Times { flit, packet } = times(algorithm, "mesh:4x4", &free(), 40_000);
        let near = flit.ps() * 2 > packet.ps() && flit.ps() < packet.ps() * 2;
        assert!(near, "{algorithm}: flit {flit}, packet {packet}");
    }
}

#[test]
fn a_slow_port_is_shared_by_all_that_come_to_it() {
    // Three ranks send to rank 0, which takes 1 ns/B, 64 times as long as a link: 3 x 6400 B.
    let topology = graph("fully_connected:4", 1);
    let slow = model(&("loggp", &[("L", "0 ns"), ("o", "0 ns"), ("g", "0 ns"), ("G", "1 ns/B")]));
    let schedule = build("direct", Collective::Gather { root: RankId(0) }, 4).unwrap();
    let flits = Flits::new(topology, "shortest_path", Settings::new(2, 16), 4);
    let time = run(&*schedule, &slow, 4 * 6400, &flits).unwrap().completion_time();
    let port = Time::from_ps(3 * 6_400_000);
    assert!(time >= port && time < port + Time::from_ps(200_000), "{time}");
}

/// Rank 0 sends to 1, which answers; rank 2 may sleep for a while and then send to 3.
fn ping_pong(late: bool) -> Explicit {
    let mut builder = Explicit::builder(Collective::AllReduce, 4, 1);
    let (send, recv) = ([(0, 1), (1, 0)], [(1, 0), (0, 1)]);
    builder.send(RankId(send[0].0), RankId(send[0].1), Slot::DATA, ALL);
    builder.recv(RankId(recv[0].0), RankId(recv[0].1), Slot(1), ALL);
    builder.end_step(RankId(0));
    builder.end_step(RankId(1));
    builder.send(RankId(send[1].0), RankId(send[1].1), Slot::DATA, ALL);
    builder.recv(RankId(recv[1].0), RankId(recv[1].1), Slot(1), ALL);
    if late {
        builder.sleep(RankId(2), Time::from_ps(1_000_000_000));
        builder.end_step(RankId(2));
        builder.send(RankId(2), RankId(3), Slot::DATA, ALL);
        builder.recv(RankId(3), RankId(2), Slot(1), ALL);
    }
    builder.build().unwrap()
}

#[test]
fn late_messages_do_not_delay_earlier_ones() {
    // Rank 0 is notified of the reply at the model's arrival time, while the network is idle until rank 2 sends,
    // a millisecond later.
    let topology = graph("ring:4", 1);
    let ends = model(&("postal", &[("alpha", "3 us"), ("beta", "100 ns/B")]));
    let flits = Flits::new(topology, "shortest_path", Settings::new(2, 4), 4);
    let finish = |late| run(&ping_pong(late), &ends, 8, &flits).map(|outcome| outcome.finish);
    let (alone, together) = (finish(false).unwrap(), finish(true).unwrap());
    assert_eq!(alone[..2], together[..2]);
    assert!(together[3] > Time::from_ps(1_000_000_000));
}

#[test]
fn a_long_wire_is_no_deadlock() {
    let topology = graph("ring:4", 30_000);
    let schedule = build("ring", Collective::AllReduce, 4).unwrap();
    let flits = Flits::new(topology, "shortest_path", Settings::new(1, 1), 1);
    let time = run(&*schedule, &free(), 4 * 128, &flits).unwrap().completion_time();
    // Six messages of two flits, of which the second waits for a credit from the other end.
    assert!(time > Time::from_ps(6 * 3 * 30_000_000), "{time}");
}

#[test]
fn a_deadlocked_run_names_the_cyclic_dependency() {
    let topology = graph("ring:5", 1);
    let schedule = build("direct", Collective::AllToAll, 5).unwrap();
    let flits = Flits::new(topology, "shortest_path", Settings::new(1, 1), 16);
    let error = run(&*schedule, &free(), 5 * 4096, &flits).unwrap_err();
    let EngineError::NetworkDeadlock { messages, deadlock_cycle, .. } = &error else {
        panic!("{error}")
    };
    assert!(*messages > 0);
    assert!(
        deadlock_cycle.len() >= 5 && deadlock_cycle.len().is_multiple_of(5),
        "{deadlock_cycle:?}"
    );
    let text = error.to_string();
    assert!(text.contains("deadlocked") && text.contains("VC 0 of npu"), "{text}");
}
