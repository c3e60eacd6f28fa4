//! Schedules over bypass links, by flits and by packets.
//!
//! With dedicated links per message both agree within a few per cent. Messages share parallel
//! links. Ranks without a path are rejected.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tutti_engine::{Conditions, EngineError, LocalCosts, Outcome, Routed, Silent, Simulation};
use tutti_network::packet::{Ends, PacketNetwork, PacketRouting, Packets};
use tutti_network::{Model, Serialization};
use tutti_noc::deadlock::{self, Verdict};
use tutti_noc::routing;
use tutti_noc::{ChannelParameters, FlitCarrier, Network, Packing, Settings, Wiring};
use tutti_schedule::algorithm::{self, build};
use tutti_schedule::collective::Collective;
use tutti_schedule::{Layout, Schedule};
use tutti_tests::model;
use tutti_topology::{LinkParameters, Routes, Topology};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time, TimePerByte};

const CYCLE: Time = Time::from_ps(1000);
/// A flit per cycle on a link of 68 GB/s.
const FLIT: u64 = 68;
/// The bidirectional hierarchical rings of the paper: all 96 segments, all 4 ports in and out.
const RINGS: &str = "bypass:4x4:mesh,0=3,0=12,1=13,2=14,3=15,4=7,8=11,12=15";

fn ends() -> Model {
    model(&("loggp", &[("L", "1 ns"), ("o", "0 ns"), ("g", "0 ns"), ("G", "0 ns/B")]))
}

/// Links of 68 GB/s. A hop takes 12 ns; with routers of 2 cycles the wire takes 10 ns of them.
fn graph(notation: &str, latency: u64) -> Arc<Topology> {
    let rate = TimePerByte::parse("68 GB/s").unwrap();
    let link = LinkParameters::new(rate, Time::from_ps(1000 * latency));
    Arc::new(tutti_topology::build(notation, &[link]).unwrap())
}

fn simulation<'a>(
    schedule: &'a dyn Schedule,
    model: &'a Model,
    size: u64,
) -> Simulation<'a, Model> {
    let layout = Layout::of_schedule(schedule, Bytes(size), 4).unwrap();
    let (costs, conditions) = (LocalCosts::FREE, Conditions::default());
    Simulation { schedule, layout, model, costs, conditions }
}

/// Flit by flit: 4 VCs of 32 flits, routers of 2 cycles, NPUs of `ports` ports.
fn by_flits(
    schedule: &dyn Schedule,
    notation: &str,
    routing: &str,
    ports: u32,
    size: u64,
) -> Result<Outcome, EngineError> {
    let port = ChannelParameters { latency: 1, credit_latency: 1, flit_time: CYCLE, length: None };
    let topology = graph(notation, 10);
    let wiring = Wiring::with_ports(topology, CYCLE, Bytes(FLIT), port, ports).unwrap();
    let wiring = Arc::new(wiring);
    let settings = Settings::new(4, 32);
    let routing = routing::parse(routing, &wiring).unwrap();
    let network = Network::new(&wiring, &settings, routing).unwrap();
    let packing = Packing::new(Bytes(FLIT), 4, 0).unwrap();
    let ends = ends();
    let mut carrier = FlitCarrier::new(network, wiring, &settings, packing, Ends::of(&ends));
    let stop = AtomicBool::new(false);
    simulation(schedule, &ends, size).run_through(&mut carrier, &stop, &mut Silent)
}

fn by_packets(schedule: &dyn Schedule, notation: &str, size: u64) -> Result<Outcome, EngineError> {
    let routes = Routes::shortest_path(graph(notation, 12));
    let packets = Packets::new(Bytes(4 * FLIT), Bytes(0), Bytes(32 * FLIT)).unwrap();
    let ends = ends();
    let mut fabric = PacketNetwork::new(PacketRouting::Routed(&routes), packets, Ends::of(&ends));
    let stop = AtomicBool::new(false);
    simulation(schedule, &ends, size).run_through(&mut fabric, &stop, &mut Silent)
}

/// Excess of the time by flits over the time by packets, per thousand.
fn excess(algorithm: &str, notation: &str, size: u64) -> i64 {
    let schedule = build(algorithm, Collective::AllReduce, 16).unwrap();
    let flits = by_flits(&*schedule, notation, "shortest_path", 4, size).unwrap();
    let packets = by_packets(&*schedule, notation, size).unwrap();
    let ps = |outcome: Outcome| i64::try_from(outcome.completion_time().ps()).unwrap();
    let (flits, packets) = (ps(flits), ps(packets));
    (flits - packets) * 1000 / packets
}

#[test]
fn conflict_free_configurations_agree_with_packets() {
    for size in [1 << 18, 1 << 21] {
        for (algorithm, notation) in [
            ("ring:4x4", "bypass:4x4:mesh"),
            ("ring:4x4,bidirectional", "bypass:4x4:mesh"),
            ("mirrored_ring:4x4", RINGS),
            ("mirrored_ring:4x4,bidirectional", RINGS),
        ] {
            let excess = excess(algorithm, notation, size);
            assert!(excess.abs() <= 50, "{algorithm} with {size} B: {excess} of 1000");
        }
    }
}

#[test]
fn parallel_links_are_shared() {
    // Every edge of the ring twice: its mesh link, and a parallel bypass link on an idle port.
    let schedule = build("ring:4x4", Collective::AllReduce, 16).unwrap();
    let mut step = tutti_schedule::Step::new();
    let edge = |rank: u32| {
        step.clear();
        schedule.step(RankId(rank), 0, &mut step);
        (rank, step.sends[0].peer.0)
    };
    let edges: Vec<(u32, u32)> = (0..16).map(edge).collect();
    let links: Vec<String> =
        edges.iter().flat_map(|(a, b)| [format!("{a}>{b}"), format!("{a}=>{b}")]).collect();
    let (single, double): (Vec<_>, Vec<_>) =
        (edges.iter().map(|(a, b)| format!("{a}>{b}")).collect(), links);
    let bypass = |links: &[String]| format!("bypass:4x4:{}", links.join(","));
    let size = 1 << 21;
    let flits = |links: &[String]| {
        let outcome = by_flits(&*schedule, &bypass(links), "shortest_path", 4, size).unwrap();
        outcome.completion_time().ps()
    };
    let packets = |links: &[String]| {
        by_packets(&*schedule, &bypass(links), size).unwrap().completion_time().ps()
    };
    // Packets contend where they change links, which costs flits a tenth.
    let (one, two) = (flits(&single), flits(&double));
    assert!(one * 100 > two * 175, "{one} {two}");
    let (one, two) = (packets(&single), packets(&double));
    assert!(one * 100 > two * 190, "{one} {two}");
}

#[test]
fn ranks_without_a_path_are_rejected_before_the_run() {
    let schedule = build("ring:4x4", Collective::AllReduce, 16).unwrap();
    // The mesh without the links to node 0: 4 precedes it in the ring.
    let mesh = tutti_topology::bypass::BypassMesh::parse("4x4").unwrap().0;
    let links: Vec<String> = mesh
        .mesh_links()
        .filter(|&(_, _, to)| to != 0)
        .map(|(from, _, to)| format!("{from}>{to}"))
        .collect();
    let notation = format!("bypass:4x4:{}", links.join(","));
    let expected = EngineError::NoPath { sender: RankId(4), step: 0, receiver: RankId(0) };
    let found = by_flits(&*schedule, &notation, "shortest_path", 4, 4096).unwrap_err();
    assert_eq!(found, expected);
    assert_eq!(by_packets(&*schedule, &notation, 4096).unwrap_err(), expected);
    let routes = Routes::shortest_path(graph(&notation, 12));
    let routed = Routed { routes: &routes, included: Serialization::NONE };
    let ends = ends();
    let alone = simulation(&*schedule, &ends, 4096);
    let conditions = Conditions { distance: Some(&routed), ..Conditions::default() };
    assert_eq!(Simulation { conditions, ..alone }.run().unwrap_err(), expected);
}

#[test]
fn explicit_paths_are_followed_and_can_deadlock() {
    let port = ChannelParameters { latency: 1, credit_latency: 1, flit_time: CYCLE, length: None };
    let wiring =
        Arc::new(Wiring::of(graph("bypass:2x2:mesh", 10), CYCLE, Bytes(FLIT), port).unwrap());
    let verdict = |text: &str| {
        let routing = routing::parse(text, &wiring).unwrap();
        deadlock::verdict(&wiring, &Settings::new(4, 32), &*routing)
    };
    assert_eq!(verdict("shortest_path"), Verdict::Free);
    // All packets circulate in the same direction.
    let circulating = verdict("paths:0>1>3;1>3>2;3>2>0;2>0>1");
    assert!(matches!(circulating, Verdict::Cycle(_)), "{circulating:?}");
    for (text, problem) in [
        ("paths:0>3", "no link joins them"),
        ("paths:0", "such as `0>4>5`"),
        ("paths", "such as `paths:0>4>5`"),
        ("paths:0>one", "such as `0>4>5`"),
    ] {
        let error = routing::parse(text, &wiring).unwrap_err().to_string();
        assert!(error.contains(problem), "{text}: {error}");
    }
}

#[test]
fn algorithms_for_a_graph_need_paths_between_all_ranks() {
    for algorithm in ["multi_tree", "forest"] {
        let on = |links: &str| {
            let notation = format!("{algorithm}:bypass:2x2:{links}");
            build(&notation, Collective::AllReduce, 4)
        };
        assert!(on("mesh,0=>1").is_ok());
        let refused = on("0>1,1>3,3>2").err().map(|error| error.to_string());
        let expected = "bypass:2x2:0>1,1>3,3>2 has no path between some ranks";
        assert!(refused.as_ref().is_some_and(|text| text.contains(expected)), "{refused:?}");
        let partial = Routes::shortest_path(graph("bypass:2x2:0>1,1>3,3>2", 12));
        let built = algorithm::build_on(algorithm, Collective::AllReduce, 4, &partial);
        let refused = built.err().map(|error| error.to_string());
        let expected = "a path between any two ranks, which bypass:2x2:0>1,1>3,3>2 lacks";
        assert!(refused.as_ref().is_some_and(|text| text.contains(expected)), "{refused:?}");
    }
}
