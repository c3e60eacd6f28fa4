//! The flow network: against contention-free routes, hand-solved allocations, conservation, and its reference
//! model.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use tutti_engine::{Conditions, Disturbance, MessageRecord, Outcome, TimelineProbe};
use tutti_network::flow::oracle::ReferenceFlows;
use tutti_network::flow::{FlowLevel, FlowNetwork, FlowRouting};
use tutti_network::packet::{Ends, PacketNetwork, PacketRouting, Packets};
use tutti_network::{BackgroundFlow, Switches};
use tutti_schedule::Schedule;
use tutti_schedule::algorithm::build;
use tutti_schedule::collective::Collective;
use tutti_tests::packets::{
    NOTATIONS, Notation, algorithms, at_once, flood, instant, link, routes, simulation, through,
    times_are_those_of_routes, uneven_link,
};
use tutti_tests::{MODELS, Shaken, Staggered, model};
use tutti_topology::{Distances, LinkParameters, Routes};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time, TimePerByte};

/// When each message of `size` bytes arrived, in the order of the arguments.
fn arrivals(
    routing: FlowRouting<'_>,
    flows: FlowLevel,
    size: u64,
    messages: &[(u32, u32)],
) -> Vec<u64> {
    let schedule = at_once(routing.topology().npus(), messages);
    let model = instant();
    let run = simulation(&schedule, size, &model, Conditions::default());
    let mut probe = TimelineProbe::default();
    let mut network = FlowNetwork::new(routing, flows, Ends::FREE);
    run.run_through(&mut network, &AtomicBool::new(false), &mut probe).unwrap();
    let mut records = probe.into_timeline().messages;
    let arrival = |&(source, destination): &(u32, u32)| {
        let of_pair = |m: &MessageRecord| (m.source.0, m.destination.0) == (source, destination);
        let found = records.iter().position(of_pair).unwrap();
        // The model's own picosecond is taken off.
        records.remove(found).arrival.ps() - 1
    };
    messages.iter().map(arrival).collect()
}

/// A row of three NPUs; a link takes 1,000 ps for a message of 10 bytes, and has no latency.
fn row() -> Routes {
    routes("mesh:3", &[link(100, 0)])
}

#[test]
fn flows_share_a_link_equally() {
    let switch = routes("switch:4", &[link(100, 50)]);
    let routing = FlowRouting::Routed(&switch);
    // Three flows share the link to NPU 3; each crosses two links of 50 ns.
    let times = arrivals(routing, FlowLevel::default(), 10, &[(0, 3), (1, 3), (2, 3)]);
    assert_eq!(times, [3_000 + 100_000; 3]);
}

#[test]
fn a_flow_limited_elsewhere_leaves_its_share_to_others() {
    let row = row();
    // Link 0-1 carries three flows at 1/3 each, so link 1-2 leaves 2/3 to the flow from 1 to 2.
    let messages = [(0, 1), (0, 1), (0, 2), (1, 2)];
    let times = arrivals(FlowRouting::Routed(&row), FlowLevel::default(), 10, &messages);
    assert_eq!(times, [3_000, 3_000, 3_000, 1_500]);
}

#[test]
fn flows_speed_up_when_others_end() {
    let row = row();
    // From 0: two flows at 1/2. From 1: three at 1/3, among them the one from 0, which leaves 2/3 of link 0-1.
    // At 1,500 ps the flow to 1 ends; link 1-2 still limits the others until 3,000.
    let messages = [(0, 1), (0, 2), (1, 2), (1, 2)];
    let times = arrivals(FlowRouting::Routed(&row), FlowLevel::default(), 10, &messages);
    assert_eq!(times, [1_500, 3_000, 3_000, 3_000]);
}

#[test]
fn ports_limit_the_flows_of_an_npu() {
    let full = routes("fully_connected:4", &[link(100, 0)]);
    let routing = FlowRouting::Routed(&full);
    let rate = TimePerByte::new(150, 1);
    let injection = FlowLevel { injection: rate, ..FlowLevel::default() };
    // Alone 1,500 ps through the port, three together 4,500.
    assert_eq!(arrivals(routing, injection.clone(), 10, &[(0, 1)]), [1_500]);
    assert_eq!(arrivals(routing, injection, 10, &[(0, 1), (0, 2), (0, 3)]), [4_500; 3]);
    let ejection = FlowLevel { ejection: rate, ..FlowLevel::default() };
    assert_eq!(arrivals(routing, ejection, 10, &[(0, 1), (2, 1), (0, 3)]), [3_000, 3_000, 1_500]);
    let each = FlowLevel { per_message: rate, ..FlowLevel::default() };
    assert_eq!(arrivals(routing, each, 10, &[(0, 1), (0, 2), (2, 1)]), [1_500; 3]);
}

#[test]
fn a_spread_flow_uses_all_minimal_paths() {
    let topology = Arc::new(tutti_topology::build("mesh:2x2", &[link(100, 7)]).unwrap());
    let distances = Distances::fewest_hops(topology);
    // Two paths of two links, half of the bytes on each.
    let routing = FlowRouting::Spread(&distances);
    assert_eq!(arrivals(routing, FlowLevel::default(), 10, &[(0, 3)]), [500 + 14_000]);
    // The links out of 0 carry one and a half flows; all end when the shared link has carried 15 bytes.
    let times = arrivals(routing, FlowLevel::default(), 10, &[(0, 3), (0, 1)]);
    // Rates r and r with r / 2 + r = 1: both get 2/3, and end at 1,500 ps.
    assert_eq!(times, [1_500 + 14_000, 1_500 + 7_000]);
}

/// Noise on messages would make those of a rank overlap at its port.
#[test]
fn without_contention_every_time_is_that_of_the_routes() {
    times_are_those_of_routes(&Staggered(Shaken { seed: 3 }), |run, routes, model| {
        let (routing, ends) = (FlowRouting::Routed(routes), Ends::of(model));
        through(run, &mut FlowNetwork::new(routing, FlowLevel::default(), ends))
    });
}

/// Flows end when all bytes have crossed: no link carries more than its rate, and none loses bytes.
#[test]
fn links_carry_every_byte_once_and_never_faster_than_their_rate() {
    let routes = routes("torus:3x3", &[link(100, 50)]);
    let size = 9_000;
    for schedule in algorithms(9) {
        let model = instant();
        let run = simulation(&*schedule, size, &model, Conditions::default());
        let routing = FlowRouting::Routed(&routes);
        let mut network = FlowNetwork::new(routing, FlowLevel::default(), Ends::FREE);
        let outcome = through(&run, &mut network);
        let name = &schedule.shape().name;
        for used in network.link_use() {
            assert!(used.bytes * 100 <= used.busy.ps(), "{name}: {used:?}");
            assert!(used.busy <= outcome.completion_time(), "{name}: {used:?}");
        }
        let carried: u64 = network.link_use().iter().map(|used| used.bytes).sum();
        assert_eq!(carried, bytes_times_hops(&*schedule, size, &routes), "{name}");
    }
}

fn bytes_times_hops(schedule: &dyn Schedule, size: u64, routes: &Routes) -> u64 {
    let layout = tutti_schedule::Layout::new(Bytes(size), 1, schedule.shape().chunks).unwrap();
    let mut step = tutti_schedule::Step::new();
    let mut total = 0;
    for rank in (0..schedule.shape().ranks).map(RankId) {
        for number in 0..schedule.steps(rank) {
            step.clear();
            schedule.step(rank, number, &mut step);
            for send in &step.sends {
                let hops = routes.pair(rank, send.peer).hops;
                total += layout.bytes(send.chunks).0 * u64::from(hops);
            }
        }
    }
    total
}

#[test]
fn background_flows_take_their_share() {
    let row = row();
    let schedule = at_once(3, &[(0, 1)]);
    let model = instant();
    let run = simulation(&schedule, 10, &model, Conditions::default());
    let background = BackgroundFlow {
        source: RankId(0),
        destination: RankId(2),
        bytes: Bytes(5),
        start: Time::ZERO,
        period: Time::from_ps(10_000),
        count: 1,
    };
    let network = FlowNetwork::new(FlowRouting::Routed(&row), FlowLevel::default(), Ends::FREE);
    let outcome = through(&run, &mut network.with_background(&[background]));
    // The shared link carries 15 bytes without a pause.
    assert_eq!(outcome.finish[1].ps(), 1_500);
}

/// Switches that multicast and reduce.
const IN_NETWORK: FlowLevel = FlowLevel {
    injection: None,
    ejection: None,
    per_message: None,
    multicast: Switches::All,
    reduce: Switches::All,
};

/// Schedules with multicasts and combines.
fn in_network_schedules(ranks: u32) -> Vec<Arc<dyn Schedule>> {
    let roots = format!("in_network:0+{},segments=3", ranks - 1);
    let root = RankId(ranks / 2);
    let all = [
        ("in_network", Collective::AllReduce),
        ("in_network:all", Collective::AllReduce),
        (&*roots, Collective::AllReduce),
        ("in_network", Collective::AllGather),
        ("in_network:segments=2", Collective::ReduceScatter),
        ("in_network", Collective::Broadcast { root }),
        ("in_network:segments=4", Collective::Reduce { root }),
        ("in_network", Collective::Barrier),
    ];
    all.into_iter()
        .map(|(notation, collective)| build(notation, collective, ranks).unwrap())
        .collect()
}

/// The last rank's end, and the bytes that each link carried.
fn in_network(
    notation: &str,
    collective: Collective,
    (routes, flows): (&Routes, FlowLevel),
    size: u64,
) -> (u64, Vec<u64>) {
    let schedule = build(notation, collective, routes.topology().npus()).unwrap();
    let model = instant();
    let run = simulation(&*schedule, size, &model, Conditions::default());
    let mut network = FlowNetwork::new(FlowRouting::Routed(routes), flows, Ends::FREE);
    let outcome = through(&run, &mut network);
    let bytes = network.link_use().iter().map(|used| used.bytes).collect();
    (outcome.completion_time().ps(), bytes)
}

/// 8 NPUs at a switch, 100 ps per byte and 50 ns per link; the model adds a picosecond per message.
#[test]
fn a_switch_multicasts_and_reduces_at_the_rate_of_a_link() {
    let switch = routes("switch:8", &[link(100, 50)]);
    let (size, root) = (8_000, Collective::Broadcast { root: RankId(3) });
    // An NPU contributes to 7 of 8 shards and receives its own; then it sends one and receives 7.
    for (notation, collective, time, shards) in [
        ("in_network:all", Collective::AllReduce, 2 * (700_000 + 100_000 + 1), 8),
        ("in_network", Collective::ReduceScatter, 700_000 + 100_000 + 1, 7),
        ("in_network", Collective::AllGather, 700_000 + 100_000 + 1, 7),
        ("in_network", root, 800_000 + 100_000 + 1, 8),
    ] {
        let (took, bytes) = in_network(notation, collective, (&switch, IN_NETWORK), size);
        assert_eq!(
            (took, bytes.into_iter().max()),
            (time, Some(size / 8 * shards)),
            "{collective}"
        );
    }
    // Switches that only forward carry 2 (N - 1) / N S per link, and 7 S at the root of a broadcast.
    let plain = || (&switch, FlowLevel::default());
    let (_, bytes) = in_network("in_network:all", Collective::AllReduce, plain(), size);
    assert_eq!(bytes, [size / 8 * 14; 16]);
    assert_eq!(in_network("in_network", root, plain(), size).0, 5_600_000 + 100_000 + 1);
}

/// Segments use both directions at once: 7 of 8 parts up, then all of them in both, then 7 of 8 down.
#[test]
fn segments_of_an_all_reduce_overlap() {
    let switch = routes("switch:8", &[link(100, 0)]);
    let notation = "in_network:all,segments=4";
    let (took, _) = in_network(notation, Collective::AllReduce, (&switch, IN_NETWORK), 8_000);
    assert_eq!(took, 175_000 + 3 * 200_000 + 175_000 + 5);
}

#[test]
fn a_tree_loads_each_link_once() {
    let root = RankId(0);
    let (broadcast, reduce) = (Collective::Broadcast { root }, Collective::Reduce { root });
    for collective in [broadcast, reduce] {
        let row = row();
        assert_eq!(in_network("in_network", collective, (&row, IN_NETWORK), 10).0, 1_000 + 1);
        let plain = (&row, FlowLevel::default());
        assert_eq!(in_network("in_network", collective, plain, 10).0, 2_000 + 1);
        // Spines carry a copy to or from each of the other three leaf switches.
        let tree = routes("fat_tree:k=2,n=3", &[link(100, 0)]);
        let (_, bytes) = in_network("in_network", collective, (&tree, IN_NETWORK), 10);
        assert!(bytes.iter().all(|&bytes| bytes == 0 || bytes == 10), "{bytes:?}");
        // 8 NPUs, 4 leaf switches, and the switches of two levels between them.
        assert_eq!(bytes.iter().sum::<u64>(), 10 * (8 + 4 + 2), "{bytes:?}");
    }
}

/// The flow from 1 to 2 takes half of link 1-2, so the multicast has half a rate on both links.
#[test]
fn a_multicast_has_the_rate_of_its_slowest_link() {
    let row = row();
    let collective = Collective::Broadcast { root: RankId(0) };
    let schedule = build("in_network", collective, 3).unwrap();
    let model = instant();
    let run = simulation(&*schedule, 10, &model, Conditions::default());
    let background = BackgroundFlow {
        source: RankId(1),
        destination: RankId(2),
        bytes: Bytes(100),
        start: Time::ZERO,
        period: Time::from_ps(10_000),
        count: 1,
    };
    let network = FlowNetwork::new(FlowRouting::Routed(&row), IN_NETWORK, Ends::FREE);
    let outcome = through(&run, &mut network.with_background(&[background]));
    assert_eq!(outcome.finish.iter().map(|time| time.ps()).collect::<Vec<_>>(), [0, 2_001, 2_001]);
}

/// The switches with these names.
fn named(names: &[&str]) -> Switches {
    Switches::Named(names.iter().map(|&name| name.to_owned()).collect())
}

/// 2 hosts of 2 NPUs, 2 leaf switches and 1 spine; rank 0 sends to or receives from the other 3.
#[test]
fn an_operation_is_divided_where_a_switch_does_not_perform_it() {
    let pods = routes("rail_optimized:npus=2,hosts=2,spines=1", &[link(100, 0)]);
    let (broadcast, reduce) =
        (Collective::Broadcast { root: RankId(0) }, Collective::Reduce { root: RankId(0) });
    for (switches, links) in [
        // The route to rank 3 goes over the NVSwitch and rank 1, the route from it over rank 2 and a leaf switch.
        // It would leave the others at ranks 1 and 2, which only forward.
        (named(&["host*.switch"]), 2 + 2 + 4),
        (named(&["pod*", "spine*"]), 2 + 2 + 4),
        (Switches::None, 2 + 2 + 4),
        (Switches::All, 2 + 2 + 2),
    ] {
        for collective in [broadcast, reduce] {
            let flows = FlowLevel {
                multicast: switches.clone(),
                reduce: switches.clone(),
                ..FlowLevel::default()
            };
            let (_, bytes) = in_network("in_network", collective, (&pods, flows), 10);
            assert_eq!(bytes.iter().sum::<u64>(), 10 * links, "{collective} {switches:?}");
        }
    }
    // On a fat tree of 4 leaf switches, leaf switches fork for themselves and for the next leaf switch; each of
    // the others gets a message. The route to all others leaves one switch of level 2.
    let tree = routes("fat_tree:k=2,n=3", &[link(100, 0)]);
    for (switches, links) in [
        (named(&["level1.*"]), 6 + 7 + 7),
        (named(&["level1.*", "level2.*"]), 8 + 4 + 2),
        (named(&["*"]), 8 + 4 + 2),
    ] {
        let flows = FlowLevel { multicast: switches, ..FlowLevel::default() };
        let (_, bytes) = in_network("in_network", broadcast, (&tree, flows), 10);
        assert_eq!(bytes.iter().sum::<u64>(), 10 * links);
    }
}

/// Small packets copied and reduced in switches take as long as flows, if trees do not contend.
#[test]
fn trees_of_small_packets_equal_those_of_flows() {
    let graphs = [
        ("switch:8", vec![link(100, 50)], "switch"),
        ("fat_tree:k=2,n=3", vec![link(100, 50)], "level*"),
        ("fat_tree:k=2,n=3", vec![link(100, 50)], "level1.*"),
        ("hierarchical:switch:4/switch:2", vec![link(100, 50), link(30, 50)], "*"),
    ];
    for &(notation, ref links, names) in &graphs {
        let routes = routes(notation, links);
        let switches = named(&[names]);
        // An all_reduce, a broadcast and a reduce with one root.
        let schedules = in_network_schedules(routes.topology().npus());
        for schedule in [0, 5, 6].map(|nth: usize| &schedules[nth]) {
            let chunks = u64::from(schedule.shape().chunks);
            let model = instant();
            let run = simulation(&**schedule, 40_000 * chunks, &model, Conditions::default());
            let flows = FlowLevel {
                multicast: switches.clone(),
                reduce: switches.clone(),
                ..FlowLevel::default()
            };
            let routing = FlowRouting::Routed(&routes);
            let flow = through(&run, &mut FlowNetwork::new(routing, flows, Ends::FREE));
            let packets = Packets {
                multicast: switches.clone(),
                reduce: switches.clone(),
                ..Packets::new(Bytes(500), Bytes(0), Bytes(16_000)).unwrap()
            };
            let routing = PacketRouting::Routed(&routes);
            let packet = through(&run, &mut PacketNetwork::new(routing, packets, Ends::FREE));
            let (flow, packet) = (flow.completion_time().ps(), packet.completion_time().ps());
            let name = &schedule.shape().name;
            assert!(
                flow.abs_diff(packet) * 100 <= flow,
                "{name} on {notation} with {names}: {flow} ps with flows, {packet} with packets"
            );
        }
    }
}

/// A random run; the seed chooses schedule and model.
#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    size: u64,
    notation: Notation,
    /// Whether links and ranks are alike, so that events coincide.
    alike: bool,
    /// Whether NPUs inject, 1, and eject, 2, through ports, and messages have a highest rate, 4.
    ports: u8,
    spread: bool,
    /// Whether switches multicast, 1, and reduce, 2.
    in_network: u8,
    /// Messages that each rank sends together, instead of an algorithm's; zero for none.
    flood: u32,
}

impl Case {
    fn links(self) -> Vec<LinkParameters> {
        let Case { seed, alike, .. } = self;
        let levels = 0..self.notation.1;
        levels.map(|level| if alike { link(100, 50) } else { uneven_link(level, seed) }).collect()
    }

    /// When all ranks are done in the fast network, and in the reference model.
    fn run(self) -> (Outcome, Outcome) {
        let Case { seed, size, notation, alike, ports, spread, in_network, flood: messages } = self;
        let routes = routes(notation.0, &self.links());
        let distances = Distances::fewest_hops(Arc::clone(routes.topology()));
        let routing =
            if spread { FlowRouting::Spread(&distances) } else { FlowRouting::Routed(&routes) };
        let port = |bit, ps| (ports & bit > 0).then(|| TimePerByte::new(ps, 11).unwrap());
        let switches = |bit: u8| match in_network & bit > 0 {
            false => Switches::None,
            true if seed % 3 == 0 => Switches::All,
            true => {
                let topology = routes.topology();
                let drawn = |at: &u64| (at ^ (seed >> 2)) % 3 < u64::from(bit);
                let vertices = (0..).zip(topology.vertices()).filter(|(at, _)| drawn(at));
                let names = vertices.map(|(_, vertex)| topology.vertex_name(vertex).to_owned());
                Switches::Named(names.collect())
            }
        };
        let (multicast, reduce) = (switches(1), switches(2));
        let (injection, ejection, per_message) = (port(1, 883), port(2, 1013), port(4, 1499));
        let flows = FlowLevel { injection, ejection, per_message, multicast, reduce };
        let (shaken, staggered) = (Shaken { seed }, Staggered(Shaken { seed }));
        let disturbance: &dyn Disturbance = if seed % 2 == 0 { &shaken } else { &staggered };
        let conditions =
            Conditions { disturbance: (!alike).then_some(disturbance), distance: None };
        let nth = usize::try_from(seed).unwrap();
        let model = model(&MODELS[nth % MODELS.len()]);
        let ends = if seed % 5 == 0 { Ends::FREE } else { Ends::of(&model) };
        let ranks = routes.topology().npus();
        let all: Vec<_> = algorithms(ranks).collect();
        let flood = flood(ranks, messages, seed);
        let trees = in_network_schedules(ranks);
        let schedule = match messages {
            0 if in_network > 0 => &*trees[nth % trees.len()],
            0 => &*all[nth % all.len()],
            _ => &flood,
        };
        let size = size * u64::from(schedule.shape().chunks);
        let run = simulation(schedule, size, &model, conditions);
        let fast = through(&run, &mut FlowNetwork::new(routing, flows.clone(), ends));
        (fast, through(&run, &mut ReferenceFlows::new(routing, flows, ends)))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// The fast network and the reference model agree on every time, to the picosecond.
    #[test]
    fn the_fast_network_equals_the_reference_model(
        (seed, size, ports) in (0_u64..1000, 0_u64..4000, 0_u8..4),
        notation in prop::sample::select(NOTATIONS.to_vec()),
        (alike, spread) in (any::<bool>(), any::<bool>()),
        (flood, in_network) in (prop::sample::select(vec![0_u32, 0, 1, 3, 12]), 0_u8..4),
    ) {
        let case = Case { seed, size, notation, alike, ports, spread, in_network, flood };
        let (fast, slow) = case.run();
        prop_assert_eq!(fast, slow);
    }
}
