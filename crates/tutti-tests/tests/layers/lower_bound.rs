//! No simulated time is below its lower bound: every algorithm, model, collective, rank count, size and
//! topology, with messages that pass one another and with packets that queue.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tutti_analysis::bound::{Exchange, Folding, GraphBound, Ports, Query, bound, in_network};
use tutti_engine::{Conditions, Distance, LocalCosts, Routed, Silent, Simulation};
use tutti_network::flow::{FlowLevel, FlowNetwork, FlowRouting};
use tutti_network::packet::{Choice, Ends, PacketNetwork, PacketRouting, Packets};
use tutti_network::{Carrier, Model, Switches};
use tutti_schedule::algorithm::{REGISTRY, build, build_blocks, build_on};
use tutti_schedule::collective::Collective;
use tutti_schedule::{Blocks, Layout, Schedule};
use tutti_tests::{MODELS, Shaken, model};
use tutti_topology::{Distances, LinkParameters, Routes, Topology};
use tutti_units::ids::RankId;
use tutti_units::parameter::ParameterValue;
use tutti_units::{Bytes, Time, TimePerByte};

const RANKS: &[u32] = &[2, 3, 4, 5, 7, 8, 12, 16, 27, 32];
/// Arguments in addition to the default.
const NOTATIONS: &[&str] = &[
    "bine:two_blocks",
    "bine:segments=3",
    "knomial:4",
    "double_binary_tree:8",
    "in_network:0+1,segments=2",
    "recursive_multiplying:ratio=1",
    "mirrored_ring:bidirectional",
    "ring:4x4,bidirectional",
    "concentrated_multi_tree:4x4,accumulators=1",
];

fn costs() -> LocalCosts {
    let per_byte = |text| TimePerByte::parse(text).unwrap();
    LocalCosts {
        gamma: per_byte("0.031 ns/B"),
        gamma_memory: Some(per_byte("0.083 ns/B")),
        cache: Some(Bytes(3000)),
        reduce_overhead: Time::parse("17 ns").unwrap(),
        copy: TimePerByte::ZERO,
        launch: Time::from_ps(5_300_000),
    }
}

/// Blocks of very different sizes; a third of them are empty.
fn skewed(ranks: u32) -> Blocks {
    let size = |index: u64| if index % 3 == 1 { 0 } else { 1 + index * index % 97 * (index % 5) };
    let count = u64::from(ranks) * u64::from(ranks);
    Blocks::new(ranks, &(0..count).map(size).collect::<Vec<_>>()).unwrap()
}

/// Every schedule on so many ranks, at any root.
fn schedules(ranks: u32) -> Vec<Arc<dyn Schedule>> {
    let notations = REGISTRY.iter().map(|entry| entry.name).chain(NOTATIONS.iter().copied());
    let all = notations.flat_map(|notation| {
        Collective::ALL.into_iter().filter_map(move |collective| {
            if collective == Collective::AllToAllV {
                return build_blocks(notation, &skewed(ranks)).ok();
            }
            build(notation, collective.with_root(RankId(ranks / 3)), ranks).ok()
        })
    });
    all.collect()
}

fn sizes(collective: Collective, ranks: u32) -> Vec<u64> {
    match collective {
        Collective::Barrier => vec![0],
        Collective::AllToAll => [4, 400, 40_000].map(|part| part * u64::from(ranks)).to_vec(),
        _ => vec![0, 4, 44, 4 * u64::from(ranks), 10_004, 1_000_000],
    }
}

/// Runs a schedule and checks the bound.
fn hold(
    schedule: &dyn Schedule,
    model: &Model,
    conditions: Conditions<'_>,
    graph: GraphBound,
) -> u32 {
    let shape = schedule.shape();
    let mut held = 0;
    for size in sizes(shape.collective, shape.ranks) {
        // Sizes that an all_to_all does not divide are rejected.
        let Ok(layout) = Layout::of_schedule(schedule, Bytes(size), 4) else { continue };
        let run = Simulation { schedule, layout, model, costs: costs(), conditions };
        let took = run.run().unwrap().completion_time();
        check(schedule, model, took, (size, graph));
        held += 1;
    }
    held
}

fn check(schedule: &dyn Schedule, model: &Model, took: Time, (size, graph): (u64, GraphBound)) {
    let shape = schedule.shape();
    let (collective, ranks, size) = (shape.collective, shape.ranks, Bytes(size));
    let exchange = Exchange::of(&Layout::of_schedule(schedule, size, 4).unwrap());
    let query = Query { collective, ranks, size, element: 4, exchange };
    let folding = Folding { gamma: costs().gamma, overhead: costs().reduce_overhead };
    let least = bound(&query, model, folding, graph).after(costs().launch);
    assert!(
        took >= least.at_least(),
        "{} {collective} on {ranks} ranks, {size}, {model:?}: {took} is below {least:?} by {graph:?}",
        shape.name,
    );
}

#[test]
fn no_algorithm_on_any_model_is_below_it() {
    let mut held = 0;
    for &ranks in RANKS {
        for schedule in schedules(ranks) {
            for parameters in MODELS {
                held +=
                    hold(&*schedule, &model(parameters), Conditions::default(), GraphBound::NONE);
            }
        }
    }
    assert!(held > 10_000, "only {held} were tried");
}

#[test]
fn no_algorithm_on_a_graph_is_below_it() {
    for notation in [
        "ring:8",
        "torus:4x4",
        "mesh:3x3",
        "switch:8",
        "hierarchical:switch:4/ring:4",
        "torus:2x2x2",
    ] {
        let link = LinkParameters::new(
            TimePerByte::parse("2 ns/B").unwrap(),
            Time::parse("700 ns").unwrap(),
        );
        let topology = Arc::new(tutti_topology::build(notation, &[link]).unwrap());
        let routes = Routes::shortest_path(Arc::clone(&topology));
        for schedule in schedules(topology.npus()) {
            for parameters in MODELS {
                let model = model(parameters);
                let routed = Routed { routes: &routes, included: model.serialization() };
                let distance: Option<&dyn Distance> = Some(&routed);
                let conditions = Conditions { distance, ..Conditions::default() };
                let shape = schedule.shape();
                let graph = GraphBound::through(&topology, shape.collective, shape.ranks, false);
                hold(&*schedule, &model, conditions, graph);
            }
        }
    }
}

#[test]
fn nor_is_one_that_is_disturbed() {
    for seed in 0..4 {
        let shaken = Shaken { seed };
        for schedule in schedules(7) {
            for parameters in MODELS {
                let disturbance = Some(&shaken as _);
                let conditions = Conditions { disturbance, ..Conditions::default() };
                hold(&*schedule, &model(parameters), conditions, GraphBound::NONE);
            }
        }
    }
}

/// A topology of each family, with how many kinds of links it is given.
const GRAPHS: &[(&str, usize)] = &[
    ("torus:4x3", 2),
    ("torus:2x2x2", 3),
    ("mesh:3x3", 1),
    ("ring:8", 1),
    ("switch:7", 1),
    ("fully_connected:5", 1),
    ("hierarchical:switch:4/ring:3", 2),
    ("dragonfly:p=2,a=2,h=1,g=3", 1),
    ("fat_tree:k=2,n=3", 1),
    ("hyperx:s=3x3,t=1", 1),
    ("rail_optimized:npus=3,hosts=2,pods=2,spines=2", 1),
    ("butterfly:2:3", 1),
    ("cmesh:2x2:2x1", 1),
    ("flattened_butterfly:2x2:2x1", 1),
    ("chiplet_mesh:chiplets=2x1,tiles=2x2", 2),
    ("edges:0-1,1-2,2-3,3>0", 1),
    // Links side by side, short cuts, a corner that only sends to one of its neighbours.
    ("bypass:3x3,wires=2:0-1,1-2,0>3,3-4,4-5,3-6,6-7,7-8,5-8,0=>1,2=>0,4=>1,1=>4,1=>4@1,6=8", 2),
];

/// The links of a graph: every kind half as fast as the one before, and farther.
fn links(kinds: usize) -> Vec<LinkParameters> {
    let rates = ["0.9 ns/B", "1.8 ns/B", "3.6 ns/B"].map(|rate| TimePerByte::parse(rate).unwrap());
    let latencies = ["310 ns", "470 ns", "1.3 us"].map(|time| Time::parse(time).unwrap());
    let all = rates.into_iter().zip(latencies);
    all.map(|(rate, latency)| LinkParameters::new(rate, latency)).take(kinds).collect()
}

/// Short and long packets, with and without headers, buffer space and ports; ejection also faster than LogGP's G.
fn packets() -> Vec<Packets> {
    let per_byte = |text| TimePerByte::parse(text).unwrap();
    let cut =
        |size, header, buffer| Packets::new(Bytes(size), Bytes(header), Bytes(buffer)).unwrap();
    vec![
        cut(4096, 0, 65_536),
        cut(256, 16, 272),
        cut(1000, 0, 4000).with_ejection(per_byte("0.2 ns/B")),
        cut(1500, 24, 6000).with_injection(per_byte("1.1 ns/B")),
        cut(2048, 0, 2048).with_injection(per_byte("0.4 ns/B")).with_ejection(per_byte("7 ns/B")),
    ]
}

/// Every static routing that the topology knows.
fn routings(topology: &Arc<Topology>) -> Vec<Routes> {
    let of_a_family = [Routes::dimension_order, Routes::minimal, Routes::d_mod_k];
    let made = of_a_family.into_iter().filter_map(|make| make(Arc::clone(topology)).ok());
    let any = [Routes::shortest_path(Arc::clone(topology)), Routes::ecmp(Arc::clone(topology), 3)];
    any.into_iter().chain(made).collect()
}

/// Fixed routing for each of them, and every per-packet routing.
fn packet_routings<'a>(
    routings: &'a [Routes],
    distances: &'a [Distances],
) -> Vec<PacketRouting<'a>> {
    let chosen = distances.iter().flat_map(|distances| {
        Choice::ALL.into_iter().map(|choice| PacketRouting::PerPacket {
            distances,
            choice,
            seed: 9,
        })
    });
    routings.iter().map(PacketRouting::Routed).chain(chosen).collect()
}

/// Every schedule on every family, each size with packets or flows; the other parameters are drawn for each run.
#[test]
fn no_algorithm_with_contention_is_below_it() {
    let (models, packets) = (MODELS.iter().map(model).collect::<Vec<_>>(), packets());
    let families: BTreeSet<&str> =
        GRAPHS.iter().filter_map(|(graph, _)| graph.split(':').next()).collect();
    assert!(
        tutti_topology::REGISTRY.iter().all(|entry| families.contains(entry.name)),
        "{families:?}"
    );
    let mut held = 0;
    for &(notation, kinds) in GRAPHS {
        let topology = Arc::new(tutti_topology::build(notation, &links(kinds)).unwrap());
        let (routings, distances) = (routings(&topology), all_distances(&topology));
        let choices = packet_routings(&routings, &distances);
        for (number, schedule) in schedules_on(&routings[0]).into_iter().enumerate() {
            let shape = schedule.shape();
            let graph = GraphBound::through(&topology, shape.collective, shape.ranks, true);
            for (turn, size) in sizes(shape.collective, shape.ranks).into_iter().enumerate() {
                let mut draw = draws(held);
                let (model, packets) = (&models[draw(models.len())], &packets[draw(packets.len())]);
                let routing = choices[draw(choices.len())];
                let Ok(layout) = Layout::of_schedule(&*schedule, Bytes(size.min(40_004)), 4) else {
                    continue;
                };
                let graph = graph.with_blocks(&topology, &layout, true);
                let (injection, ejection) = (packets.injection, packets.ejection);
                let graph = graph.with_ports(Ports::of((injection, ejection), model));
                let case = (model, size.min(40_004));
                // Packets and flows in turn, with other sizes for the next schedule.
                held += if (number + turn).is_multiple_of(2) {
                    let mut network = PacketNetwork::new(routing, packets.clone(), Ends::of(model));
                    hold_through(&*schedule, case, graph, &mut network)
                } else {
                    let ports = FlowLevel { injection, ejection, ..FlowLevel::default() };
                    let routing = flow_routing(routing);
                    let mut network = FlowNetwork::new(routing, ports, Ends::of(model));
                    hold_through(&*schedule, case, graph, &mut network)
                };
            }
        }
    }
    assert!(held > 5_000, "only {held} were tried");
}

/// Switches that multicast and reduce: all of them, or some drawn; every schedule on every family, with flows
/// and packets and halves of the sizes in turn.
#[test]
fn no_algorithm_in_the_network_is_below_it() {
    let (models, packets) = (MODELS.iter().map(model).collect::<Vec<_>>(), packets());
    let mut held = 0;
    for &(notation, kinds) in GRAPHS {
        let topology = Arc::new(tutti_topology::build(notation, &links(kinds)).unwrap());
        let routings = routings(&topology);
        for (number, schedule) in schedules_on(&routings[0]).into_iter().enumerate() {
            let shape = schedule.shape();
            let [multicast, reduce] = [held, held + 7].map(|seed| some_switches(&topology, seed));
            let either = multicast.on(&topology).into_iter().zip(reduce.on(&topology));
            let either: Vec<bool> = either.map(|(a, b)| a || b).collect();
            let graph = GraphBound::in_network(&topology, shape.collective, shape.ranks, &either);
            let sizes = sizes(shape.collective, shape.ranks);
            for &size in sizes.iter().skip(number % sizes.len().min(2)).step_by(2) {
                let Ok(layout) = Layout::of_schedule(&*schedule, Bytes(size), 4) else { continue };
                let mut draw = draws(held);
                let (model, packets) = (&models[draw(models.len())], &packets[draw(packets.len())]);
                let routes = &routings[draw(routings.len())];
                let (injection, ejection) = (packets.injection, packets.ejection);
                let graph = graph.with_ports(Ports::of((injection, ejection), model));
                let (multicast, reduce) = (multicast.clone(), reduce.clone());
                let conditions = Conditions::default();
                let run =
                    Simulation { schedule: &*schedule, layout, model, costs: costs(), conditions };
                let stop = AtomicBool::new(false);
                let outcome = if held % 2 == 0 {
                    let ports =
                        FlowLevel { injection, ejection, per_message: None, multicast, reduce };
                    let routing = FlowRouting::Routed(routes);
                    let mut network = FlowNetwork::new(routing, ports, Ends::of(model));
                    run.run_through(&mut network, &stop, &mut Silent)
                } else {
                    let packets = Packets { multicast, reduce, ..packets.clone() };
                    let routing = PacketRouting::Routed(routes);
                    let mut network = PacketNetwork::new(routing, packets, Ends::of(model));
                    run.run_through(&mut network, &stop, &mut Silent)
                };
                let took = outcome.unwrap().completion_time();
                let (collective, ranks) = (shape.collective, shape.ranks);
                let (size, exchange) = (Bytes(size), Exchange::of(&layout));
                let query = Query { collective, ranks, size, element: 4, exchange };
                let graph = graph.with_blocks(&topology, &layout, true);
                let least = in_network(&query, model, graph).after(costs().launch);
                let name = &shape.name;
                assert!(
                    took >= least.at_least(),
                    "{name} {collective} on {notation}: {took} {least:?}"
                );
                held += 1;
            }
        }
    }
    assert!(held > 1_000, "only {held} were tried");
}

/// All vertices, or some that belong to the seed.
fn some_switches(topology: &Topology, seed: u32) -> Switches {
    if seed.is_multiple_of(3) {
        return Switches::All;
    }
    let mut draw = draws(seed);
    let drawn = topology.vertices().filter(|_| draw(2) == 0);
    Switches::Named(drawn.map(|vertex| topology.vertex_name(vertex).to_owned()).collect())
}

/// 2 hosts of 4 NPUs at 10 and 100 ps per byte: NVSwitches that reduce leave the bound of the rails, and
/// lower that inside a host.
#[test]
fn the_bound_follows_the_switches_that_reduce() {
    let link = |ps| LinkParameters::new(TimePerByte::new(ps, 1).unwrap(), Time::ZERO);
    let build = |hosts: &str| {
        let notation = format!("rail_optimized:npus=4,hosts={hosts},spines=1");
        tutti_topology::build(&notation, &[link(10), link(100), link(100)]).unwrap()
    };
    let of = |topology: &Topology, names: &str| {
        let on = Switches::read(names).unwrap().on(topology);
        let ranks = topology.npus();
        GraphBound::in_network(topology, Collective::AllReduce, ranks, &on).links.fraction()
    };
    let alone = |topology: &Topology| {
        GraphBound::through(topology, Collective::AllReduce, topology.npus(), true).links.fraction()
    };
    // 4 rails of 100 ps per byte between the hosts, in each direction.
    let two = build("2");
    assert_eq!([of(&two, "host*.switch"), of(&two, "true")], [(25, 1), (25, 1)]);
    // With 4 hosts, 2 x 3 S leave the hosts over 4 x 4 rails, unless leaf switches reduce.
    let four = build("4");
    assert_eq!(alone(&four), (75, 2));
    assert_eq!(of(&four, "host*.switch"), (75, 2));
    assert_eq!(of(&four, "pod*,spine*"), (25, 1));
}

/// The routing of flows that corresponds to that of packets: an even split if packets choose.
fn flow_routing(routing: PacketRouting<'_>) -> FlowRouting<'_> {
    match routing {
        PacketRouting::Routed(routes) => FlowRouting::Routed(routes),
        PacketRouting::PerPacket { distances, .. } => FlowRouting::Spread(distances),
    }
}

/// Draws below a number, in an order that belongs to the seed.
fn draws(seed: u32) -> impl FnMut(usize) -> usize {
    let mut left = u64::from(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
    move |below| {
        let below = below as u64;
        let drawn = left % below;
        left /= below;
        usize::try_from(drawn).unwrap()
    }
}

fn all_distances(topology: &Arc<Topology>) -> Vec<Distances> {
    let fewest = Distances::fewest_hops(Arc::clone(topology));
    std::iter::once(fewest).chain(Distances::one_global(Arc::clone(topology))).collect()
}

/// Every schedule on all ranks of a graph, including those generated for the graph.
fn schedules_on(routes: &Routes) -> Vec<Arc<dyn Schedule>> {
    let ranks = routes.topology().npus();
    let made_for_it = ["forest", "multi_tree"].into_iter().flat_map(|notation| {
        let build = move |collective| build_on(notation, collective, ranks, routes).ok().flatten();
        Collective::ALL.into_iter().filter_map(build)
    });
    schedules(ranks).into_iter().chain(made_for_it).collect()
}

/// As [`hold`], on a network with contention.
fn hold_through(
    schedule: &dyn Schedule,
    (model, size): (&Model, u64),
    graph: GraphBound,
    fabric: &mut impl Carrier,
) -> u32 {
    let Ok(layout) = Layout::of_schedule(schedule, Bytes(size), 4) else { return 0 };
    let conditions = Conditions::default();
    let run = Simulation { schedule, layout, model, costs: costs(), conditions };
    let outcome = run.run_through(fabric, &AtomicBool::new(false), &mut Silent).unwrap();
    check(schedule, model, outcome.completion_time(), (size, graph));
    1
}

/// It is worth something: some schedule comes close at either end.
#[test]
fn the_best_schedules_come_close() {
    let postal = model(&("postal", &[("alpha", "1 us"), ("beta", "1 ns/B")]));
    let time = |notation: &str, size: u64| {
        let schedule = build(notation, Collective::AllReduce, 16).unwrap();
        let layout = Layout::of(schedule.shape(), Bytes(size), 4).unwrap();
        let (costs, conditions) = (LocalCosts::FREE, Conditions::default());
        let run = Simulation { schedule: &*schedule, layout, model: &postal, costs, conditions };
        run.run().unwrap().completion_time()
    };
    let least = |size| {
        let query = Query {
            collective: Collective::AllReduce,
            ranks: 16,
            size: Bytes(size),
            element: 4,
            exchange: None,
        };
        bound(&query, &postal, Folding::FREE, GraphBound::NONE).at_least()
    };
    assert_eq!(time("recursive_doubling", 4), least(4));
    let (ring, least) = (time("ring", 64_000_000).ps(), least(64_000_000).ps());
    assert!(ring >= least && ring * 99 < least * 100, "{ring} {least}");
}
