//! The fast flit network against the obvious one, flit by flit: the same packets arrive in the same
//! cycles, and the same flits cross the same channels, over random networks, settings and traffic.

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;
use tutti_noc::allocator::AllocatorKind;
use tutti_noc::oracle::ReferenceNetwork;
use tutti_noc::routing::{self, Routing};
use tutti_noc::{
    ChannelParameters, Clock, Delivery, FlitError, Network, Order, PortBuffers, Priority, Settings,
    Source, Speculation, VcRange, Wiring,
};
use tutti_topology::LinkParameters;
use tutti_units::{Bytes, Time, TimePerByte};

/// Packets that were there from the start, in order of time, by (node, queue).
#[derive(Clone)]
struct Listed {
    per_node: usize,
    queues: Vec<VecDeque<Order>>,
    arrived: Vec<Delivery>,
}

impl Source for Listed {
    fn next_at(&mut self, node: u32, queue: u8) -> Option<u64> {
        let queue = &self.queues[node as usize * self.per_node + usize::from(queue)];
        queue.front().map(|order| order.created)
    }

    fn take(&mut self, node: u32, queue: u8, _: u64) -> Order {
        self.queues[node as usize * self.per_node + usize::from(queue)].pop_front().unwrap()
    }

    fn delivered(&mut self, delivery: &Delivery) {
        self.arrived.push(*delivery);
    }

    fn refilled(&mut self, _: &mut Vec<(u32, u8)>) {}
}

#[derive(Clone, Debug)]
struct Case {
    network: &'static str,
    routing: &'static str,
    settings: Settings,
    latency: u64,
    /// Whether routers have fewer VCs, where the routing needs one only, and smaller buffers.
    smaller: bool,
    /// Clocks, numbered by domain; routers take turns. None where flits queue behind the switch.
    clocks: Vec<Clock>,
    /// Of a flit on a link, in picoseconds; a cycle is 1000.
    flit_time: u64,
    /// Node, class, created, destination, flits, priority.
    packets: Vec<(u32, usize, u64, u32, u32, i64)>,
}

/// Networks, and routings on them.
const NETWORKS: &[(&[&str], &[&str])] = &[
    (
        &["mesh:3x3", "mesh:4x2", "mesh:2x3x2"],
        &[
            "dimension_order",
            "dimension_order:yx",
            "o1_turn",
            "o1_turn:adaptive",
            "romm",
            "valiant",
            "ugal",
            "ugal:0",
            "minimal_adaptive",
            "minimal_adaptive:first_dimension",
        ],
    ),
    (
        &["torus:4x3", "torus:5", "torus:2x2x2"],
        &[
            "dimension_order",
            "dimension_order:balanced",
            "valiant",
            "ugal:0",
            "minimal_adaptive",
            "minimal_adaptive:first_dimension",
            "minimal_adaptive:one_vc",
        ],
    ),
    (
        &["flattened_butterfly:3x3:1x1", "hyperx:s=3x2,t=2,k=1x2"],
        &["dimension_order", "valiant", "ugal", "ugal:0"],
    ),
    (
        &["dragonfly:p=1,a=2,h=1", "dragonfly:p=1,a=2x2,h=1,g=3"],
        &["minimal", "minimal:one_vc", "valiant", "ugal", "ugal:0", "shortest_path"],
    ),
    (
        &["fat_tree:k=2,n=3", "fat_tree:m=3x2,w=1x2,p=1x2"],
        &["d_mod_k", "nca", "nca:adaptive", "ecmp:5"],
    ),
    (&["fully_connected:5"], &["shortest_path", "least_latency", "ecmp:5"]),
    (&["chiplet_mesh:chiplets=2x2,tiles=2x2,boundary=1", "ring:5"], &["up_down"]),
    (&["mesh:3x2"], &["source_routed:0-5=0.1.1.2;0-5=1.1.2.2;5-0=1.1.0.2;4-1=0.3;*=o1_turn"]),
    // Links side by side, and nodes that have more of them than others.
    (
        &["bypass:3x3:mesh,0=>1,8=>7,6=0", "bypass:3x3,wires=2:mesh,0=2,2=8,0=>1@1"],
        &["shortest_path", "paths:0>1>2>5>8;8>7>6;1>0>3"],
    ),
];

/// Number of VCs, buffers, classes and their queues, and what is requested of VCs before they are
/// given.
fn basic() -> impl Strategy<Value = Settings> {
    (4..6_u32, 1..6_u32, 1..3_usize, any::<[bool; 4]>(), any::<u64>()).prop_map(
        |(vcs, buffer, classes, [tail, full, cut_through, shared], seed)| {
            let mut settings = Settings { seed, ..Settings::new(vcs, buffer) };
            settings.classes = vec![VcRange { first: 0, last: vcs - 1 }; classes];
            settings.queues = if shared { vec![0; classes] } else { Vec::new() };
            settings.wait_for_tail_credit = tail;
            settings.busy_when_full = full;
            settings.cut_through = cut_through;
            settings
        },
    )
}

/// Delays, speculation and priorities.
fn pipelined(basic: impl Strategy<Value = Settings>) -> impl Strategy<Value = Settings> {
    let speculation = any::<[bool; 4]>().prop_map(|[vc, credit, separate, yields]| Speculation {
        check_vc: vc,
        check_credit: credit,
        allocator: separate.then_some(AllocatorKind::SeparableInputFirst),
        yield_to_requests: yields,
    });
    let delays = (0..3_u32, 1..4_u32, 1..4_u32, 0..3_u32, 0..3_u32);
    let priority = prop_oneof![Just(Priority::None), Just(Priority::Ordered), Just(Priority::Age)];
    (basic, delays, prop::option::weighted(0.4, speculation), priority).prop_map(
        |(mut settings, delays, speculation, priority)| {
            let stage = |delay| if speculation.is_some() { 1 } else { delay };
            (settings.routing_delay, settings.traversal_delay) = (delays.0, delays.3);
            (settings.vc_delay, settings.switch_delay) = (stage(delays.1), stage(delays.2));
            (settings.credit_delay, settings.speculation) = (delays.4, speculation);
            Settings { priority, ..settings }
        },
    )
}

/// Speedups, and switches that are held.
fn sped_up(pipelined: impl Strategy<Value = Settings>) -> impl Strategy<Value = Settings> {
    let rounds = prop::sample::select(vec![1.0, 1.3, 1.7, 2.0]);
    let speedups = (1..3_u32, 1..3_u32, rounds, prop::option::of(1..3_u32));
    (pipelined, speedups, any::<[bool; 2]>()).prop_map(|(mut settings, speedups, [hold, empty])| {
        (settings.input_speedup, settings.output_speedup) = (speedups.0, speedups.1);
        (settings.internal_speedup, settings.output_buffer) = (speedups.2, speedups.3);
        settings.hold_switch = hold;
        settings.prioritize_empty = empty;
        settings
    })
}

/// Switches that are held, with grants of several rounds that are due in one.
fn held(sped_up: impl Strategy<Value = Settings>) -> impl Strategy<Value = Settings> {
    let rounds = prop::sample::select(vec![2.0, 2.4, 3.0]);
    (sped_up, 2..4_u32, rounds).prop_map(|(settings, switch_delay, internal_speedup)| Settings {
        hold_switch: true,
        speculation: None,
        switch_delay,
        internal_speedup,
        ..settings
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    prop_oneof![
        3 => basic().boxed(),
        3 => pipelined(basic()).boxed(),
        3 => sped_up(pipelined(basic())).boxed(),
        1 => held(sped_up(pipelined(basic()))).boxed(),
    ]
}

/// Periods that divide each other and periods that do not, and equal ones of other domains.
fn clocks() -> impl Strategy<Value = Vec<Clock>> {
    let period = prop::sample::select(vec![1000, 1000, 1001, 1250, 1333, 1500, 2000, 2700, 5000]);
    let clock = (0..3_u32, period, 0..4_u32).prop_map(|(domain, period, synchroniser)| Clock {
        domain,
        period: Time::from_ps(period),
        synchroniser,
    });
    prop_oneof![2 => Just(Vec::new()), 3 => prop::collection::vec(clock, 1..4)]
}

fn cases() -> impl Strategy<Value = Case> {
    let packet = (any::<u32>(), any::<usize>(), 0..200_u64, any::<u32>(), 1..6_u32, 0..3_i64);
    let packets = prop::collection::vec(packet, 1..250);
    let flit_time = prop_oneof![2 => Just(1000_u64), 1 => 500..2600_u64];
    let kind = 0..NETWORKS.len();
    let settings = (settings(), prop::bool::weighted(0.4), clocks());
    (kind, 0..6_usize, 0..60_usize, settings, 1..4_u64, flit_time, packets).prop_map(
        |(kind, network, routing, (settings, smaller, clocks), latency, flit_time, packets)| {
            let (networks, routings) = NETWORKS[kind];
            let queues = settings.output_speedup > 1
                || settings.internal_speedup > 1.0
                || settings.output_buffer.is_some();
            Case {
                network: networks[network % networks.len()],
                routing: routings[routing % routings.len()],
                settings,
                smaller,
                clocks: if queues { Vec::new() } else { clocks },
                latency: latency * 1000,
                flit_time,
                packets,
            }
        },
    )
}

/// The settings of a case, with routers of different buffers if it has them.
fn settings_of(case: &Case, routers: u32, least_vcs: u32) -> Settings {
    let mut settings = case.settings.clone();
    if case.smaller {
        let (vcs, buffer) = (settings.vcs, settings.buffer);
        settings.buffers = (0..routers)
            .map(|router| {
                let each = if least_vcs > 1 { vcs } else { 1 + (router * 7 + buffer) % vcs };
                let depth = 1 + (router * 5 + vcs) % buffer;
                if router % 2 == 0 {
                    return PortBuffers::of(each, depth);
                }
                // Each class has its first VCs, so that there are gaps between classes.
                let first = |class: &VcRange| VcRange {
                    last: class.last.min(class.first + each - 1),
                    ..*class
                };
                let vcs = settings.classes.iter().fold(0, |vcs, class| vcs | first(class).mask());
                PortBuffers { vcs, buffer: depth }
            })
            .collect();
    }
    if !case.clocks.is_empty() {
        settings.clocks = case.clocks.iter().copied().cycle().take(routers as usize).collect();
    }
    settings
}

fn listed(case: &Case, settings: &Settings, nodes: u32) -> Listed {
    let (classes, per_node) = (settings.classes.len(), settings.queues_per_node());
    let mut queues = vec![VecDeque::new(); nodes as usize * per_node];
    let mut packets = case.packets.clone();
    packets.sort_by_key(|packet| packet.2);
    for (node, class, created, destination, flits, priority) in packets {
        let (node, class) = (node % nodes, class % classes);
        let flits = if settings.cut_through { flits.min(settings.least_buffer()) } else { flits };
        let queue = settings.queues.get(class).map_or(class, |&queue| usize::from(queue));
        queues[node as usize * per_node + queue].push_back(Order {
            created,
            destination: destination % nodes,
            flits,
            class: u8::try_from(class).unwrap(),
            priority,
            tag: created,
        });
    }
    Listed { per_node, queues, arrived: Vec::new() }
}

/// The channels between nodes and routers.
fn port() -> ChannelParameters {
    ChannelParameters {
        latency: 1,
        credit_latency: 1,
        flit_time: Time::from_ps(1000),
        length: None,
    }
}

/// Both networks, for so many cycles; what arrived in each, sorted.
fn both(case: &Case) -> (Vec<Delivery>, Vec<Delivery>) {
    let link = LinkParameters::new(
        TimePerByte::new(case.flit_time, 16).unwrap(),
        Time::from_ps(case.latency),
    );
    let classes = tutti_topology::parse(case.network).unwrap().link_classes().len();
    let topology = tutti_topology::build(case.network, &vec![link; classes]).unwrap();
    let cycle = Time::from_ps(1000);
    let mut wiring = Wiring::of(Arc::new(topology), cycle, Bytes(16), port()).unwrap();
    if case.latency == 2 {
        wiring.limit_ports(Time::from_ps(case.flit_time), Time::from_ps(1700));
    }
    let wiring = Arc::new(wiring);
    let routing: Arc<dyn Routing> = routing::parse(case.routing, &wiring).unwrap();
    let settings = settings_of(case, wiring.routers(), routing.least_vcs());
    let mut one = listed(case, &settings, wiring.nodes());
    let mut other = one.clone();
    let mut fast = Network::new(&wiring, &settings, Arc::clone(&routing)).unwrap();
    let mut slow = ReferenceNetwork::new(&wiring, &settings, routing).unwrap();
    for cycle in 0..3000 {
        fast.step(&mut one);
        slow.step(&mut other);
        assert_eq!(fast.occupancy(), slow.occupancy(), "flits in buffers after cycle {cycle}");
        assert_eq!(slow.audit(), Ok(()));
        if slow.is_empty() && cycle > 300 {
            break;
        }
    }
    if slow.is_empty() {
        assert_eq!(fast.sent(), slow.sent(), "flits on channels");
        let by_vc: Vec<u64> = fast.sent_by_vc().into_iter().map(u64::from).collect();
        assert_eq!(by_vc, slow.sent_by_vc(), "flits by VC");
    }
    one.arrived.sort();
    other.arrived.sort();
    (one.arrived, other.arrived)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fast_and_reference_network_agree(case in cases()) {
        let (fast, slow) = both(&case);
        let differ = fast.iter().zip(&slow).find(|(fast, slow)| fast != slow);
        prop_assert_eq!(differ, None);
        prop_assert_eq!(fast.len(), slow.len());
    }
}

/// Finds routings of the registry that are not validated against the reference model.
#[test]
fn the_cases_contain_every_routing() {
    let name = |text: &&str| text.split(':').next().unwrap().to_owned();
    let tried: Vec<String> =
        NETWORKS.iter().flat_map(|(_, routings)| routings.iter().map(name)).collect();
    for entry in routing::REGISTRY {
        assert!(tried.iter().any(|name| name == entry.name), "{} is not tried", entry.name);
    }
}

/// A network of 3x3 routers, in which every router but the first has few and small buffers.
fn corner_network(buffers: &[PortBuffers], routing: &str) -> Result<Network, FlitError> {
    let link = LinkParameters::new(TimePerByte::new(1000, 16).unwrap(), Time::from_ps(1000));
    let topology = tutti_topology::build("mesh:3x3", &[link]).unwrap();
    let cycle = Time::from_ps(1000);
    let wiring = Arc::new(Wiring::of(Arc::new(topology), cycle, Bytes(16), port())?);
    let routing = routing::parse(routing, &wiring)?;
    let settings = Settings { buffers: buffers.to_vec(), ..Settings::new(4, 8) };
    Network::new(&wiring, &settings, routing)
}

#[test]
fn buffers_of_single_routers_are_checked() {
    let full = PortBuffers::of(4, 8);
    let with = |one: PortBuffers, routing: &str| {
        let mut buffers = vec![full; 9];
        buffers[4] = one;
        corner_network(&buffers, routing).err().map(|error| error.to_string())
    };
    assert_eq!(with(PortBuffers::of(1, 1), "dimension_order"), None);
    assert_eq!(with(PortBuffers::of(4, 1), "o1_turn"), None);
    for (one, routing, text) in [
        (PortBuffers::of(0, 1), "dimension_order", "`vcs` is 0: expected 1 to 4"),
        (PortBuffers::of(5, 1), "dimension_order", "`vcs` is 5: expected 1 to 4"),
        (PortBuffers::of(4, 9), "dimension_order", "`buffer` is 9: expected 1 to 8"),
        (PortBuffers::of(2, 8), "o1_turn", "some routers have 2 of 4 VCs"),
    ] {
        let message = with(one, routing).expect(text);
        assert!(message.contains(text), "{message}");
    }
    let message = corner_network(&[full; 3], "dimension_order").err().unwrap().to_string();
    assert_eq!(message, "`buffers` is 3: expected 9, one for each router");
}
