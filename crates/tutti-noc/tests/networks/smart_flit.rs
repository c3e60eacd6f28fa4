//! The mesh of one hop per cycle against the routers of the general flit network, configured alike:
//! a cycle for VC and switch at once, a cycle for switch and link, the same credit delay.
#![expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]

use std::collections::VecDeque;
use std::sync::Arc;

use super::common::classes;
use tutti_noc::allocator::AllocatorKind;
use tutti_noc::smart::{self, Cast, Fabric, Message};
use tutti_noc::{
    ChannelParameters, Delivery, Network, Order, Settings, Source, Speculation, Wiring, routing,
};
use tutti_topology::LinkParameters;
use tutti_units::{Bytes, Time, TimePerByte};

/// Packets of a flit: created, from, to.
type Packets = Vec<(u64, u32, u32)>;

/// What a packet of the flit network takes in addition: over the channel from its node two cycles,
/// through the last router and over the channel to its node two.
const CHANNELS: u64 = 4;

/// Twice as many VCs as a round trip of credits has cycles.
const VCS: u32 = 8;

struct Listed {
    queues: Vec<VecDeque<Order>>,
    /// By packet.
    arrived: Vec<Option<u64>>,
}

impl Source for Listed {
    fn next_at(&mut self, node: u32, _: u8) -> Option<u64> {
        self.queues[node as usize].front().map(|order| order.created)
    }

    fn take(&mut self, node: u32, _: u8, _: u64) -> Order {
        self.queues[node as usize].pop_front().unwrap()
    }

    fn delivered(&mut self, delivery: &Delivery) {
        self.arrived[usize::try_from(delivery.tag).unwrap()] = Some(delivery.arrived);
    }

    fn refilled(&mut self, _: &mut Vec<(u32, u8)>) {}
}

/// When each packet arrives in the flit network, up to a cycle.
fn general(mesh: &str, vcs: u32, packets: &Packets, end: u64) -> Vec<Option<u64>> {
    let cycle = Time::from_ps(1000);
    let link = LinkParameters::new(TimePerByte::new(1000, 16).unwrap(), cycle);
    let topology = Arc::new(tutti_topology::build(mesh, &[link]).unwrap());
    let port = ChannelParameters { latency: 1, credit_latency: 1, flit_time: cycle, length: None };
    let wiring = Arc::new(Wiring::of(topology, cycle, Bytes(16), port).unwrap());
    let speculation = Speculation {
        check_vc: true,
        check_credit: true,
        allocator: None,
        yield_to_requests: false,
    };
    let settings = Settings {
        traversal_delay: 0,
        credit_delay: 0,
        speculation: Some(speculation),
        vc_allocator: AllocatorKind::SeparableInputFirst,
        wait_for_tail_credit: true,
        ..Settings::new(vcs, 1)
    };
    let routing = routing::parse("dimension_order", &wiring).unwrap();
    let mut network = Network::new(&wiring, &settings, routing).unwrap();
    let mut source =
        Listed { queues: vec![VecDeque::new(); 64], arrived: vec![None; packets.len()] };
    for (tag, &(created, from, destination)) in (0..).zip(packets) {
        let order = Order { created, destination, flits: 1, class: 0, priority: 0, tag };
        source.queues[from as usize].push_back(order);
    }
    network.run_until(end, &mut source);
    source.arrived
}

/// The same in the mesh. A credit comes back to the general router over a link of a cycle; here the
/// setting states after how many cycles it counts.
fn special(side: u32, vcs: u32, packets: &Packets, end: u64) -> Vec<Option<u64>> {
    let settings = smart::Settings {
        credit_delay: 1,
        classes: classes(&[vcs], 1),
        ..smart::Settings::new(side, side)
    };
    let mut fabric = smart::Mesh::new(&settings).unwrap();
    let mut arrived = vec![None; packets.len()];
    let mut arrivals = Vec::new();
    let mut next = 0;
    while fabric.now() < end {
        while packets.get(next).is_some_and(|packet| packet.0 == fabric.now()) {
            let (created, source, to) = packets[next];
            let (cast, tag) = (Cast::One(to), u64::try_from(next).unwrap());
            fabric.send(Message { created, source, cast, class: 0, flits: 1, tag }).unwrap();
            next += 1;
        }
        fabric.step(&mut arrivals);
        for arrival in arrivals.drain(..) {
            arrived[usize::try_from(arrival.tag).unwrap()] = Some(arrival.arrived);
        }
    }
    arrived
}

#[test]
fn zero_load_latencies_differ_only_by_the_node_channels() {
    let pairs = (0..16_u32).flat_map(|from| (0..16).map(move |to| (from, to)));
    let packets: Packets =
        (0..).zip(pairs).map(|(place, (from, to))| (40 * place, from, to)).collect();
    let end = 40 * 256 + 40;
    let general = general("mesh:4x4", VCS, &packets, end);
    let special = special(4, VCS, &packets, end);
    for (place, &(created, from, to)) in packets.iter().enumerate() {
        let (x, y) = ((from % 4).abs_diff(to % 4), (from / 4).abs_diff(to / 4));
        assert_eq!(special[place], Some(created + u64::from(2 * (x + y))), "{from} > {to}");
        assert_eq!(special[place].map(|at| at + CHANNELS), general[place], "{from} > {to}");
    }
}

/// Uniform traffic: each node with this chance in a thousand in each cycle.
fn uniform(nodes: u32, chance: u64, cycles: u64) -> Packets {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    };
    let mut packets = Vec::new();
    for cycle in 0..cycles {
        for node in 0..nodes {
            if draw() % 1000 < chance {
                let to = u32::try_from(draw() % u64::from(nodes)).unwrap();
                packets.push((cycle, node, to));
            }
        }
    }
    packets
}

/// Mean latency of the packets created in a window, of which all must have arrived.
fn latency(packets: &Packets, arrived: &[Option<u64>]) -> f64 {
    let counted = packets.iter().zip(arrived).filter(|(packet, _)| (500..3500).contains(&packet.0));
    let took: Vec<u64> =
        counted.map(|(packet, at)| at.expect("it has arrived") - packet.0).collect();
    took.iter().sum::<u64>() as f64 / took.len() as f64
}

#[test]
fn queueing_delay_matches_under_load() {
    // Up to nine tenths of what they carry.
    for chance in [100, 200, 250, 300, 350] {
        let packets = uniform(64, chance, 4000);
        let general = latency(&packets, &general("mesh:8x8", VCS, &packets, 6000));
        let special = latency(&packets, &special(8, VCS, &packets, 6000));
        let off = special + CHANNELS as f64 - general;
        assert!(off.abs() < 0.35, "{chance}: {special} and {CHANNELS} against {general}");
    }
}

/// Flits per node and cycle of what is requested too much.
fn carried(arrived: &[Option<u64>]) -> f64 {
    let counted = arrived.iter().flatten().filter(|&&at| (1000..4000).contains(&at));
    counted.count() as f64 / (64.0 * 3000.0)
}

#[test]
fn throughput_matches_beyond_saturation() {
    let packets = uniform(64, 700, 4000);
    let both = |vcs| {
        let general = carried(&general("mesh:8x8", vcs, &packets, 4000));
        (general, carried(&special(8, vcs, &packets, 4000)))
    };
    let (general, special) = both(VCS);
    assert!((special / general - 1.0).abs() < 0.03, "{special} against {general}");
    assert!((0.35..0.5).contains(&special), "{special}");
    // With just as many VCs as a round trip of credits has cycles, the general routers carry less:
    // there a head takes a VC before it is known whether it has won the switch.
    let (general, special) = both(4);
    assert!((1.0..1.2).contains(&(special / general)), "{special} against {general}");
}
