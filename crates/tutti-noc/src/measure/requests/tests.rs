//! Requests and replies that share an injection queue of each node: both engines agree, and packets
//! leave in the order of an obvious queue.

use std::sync::Arc;

use super::super::generator::Generator;
use super::super::{Load, MeasurementPlan, Phases, Traffic};
use super::{Reply, Requests};
use crate::oracle::ReferenceNetwork;
use crate::packet::Delivery;
use crate::traffic::{PacketSize, Pattern, Process};
use crate::{ChannelParameters, Network, Settings, VcRange, Wiring, routing};
use tutti_topology::LinkParameters;
use tutti_units::{Bytes, Time, TimePerByte};

const NODES: u32 = 16;
const CYCLE: Time = Time::from_ps(1000);

fn wiring() -> Arc<Wiring> {
    let link = LinkParameters::new(TimePerByte::new(1000, 16).unwrap(), CYCLE);
    let topology = tutti_topology::build("mesh:4x4", &[link]).unwrap();
    let port = ChannelParameters { latency: 1, credit_latency: 1, flit_time: CYCLE, length: None };
    Arc::new(Wiring::of(Arc::new(topology), CYCLE, Bytes(16), port).unwrap())
}

/// A load of 30 packets per node, with replies, in a queue with others of that number.
fn load(flits: [&str; 2], delay: u64, outstanding: Option<u32>, queue: Option<u32>) -> Requests {
    let [size, reply] = flits.map(|text| PacketSize::parse(text).unwrap());
    let load = Load {
        pattern: Pattern::parse("uniform", NODES, None).unwrap(),
        process: Process::parse("bernoulli", 0.06).unwrap(),
        size,
        priority: 0,
    };
    let reply = Some(Reply { size: reply, delay });
    Requests { load, reply, outstanding, count: Some(30), queue }
}

/// Requests have the lower half of the VCs, and replies the upper one.
fn settings(loads: &[Requests], vcs: u32, buffer: u32) -> Settings {
    let all = VcRange { first: 0, last: vcs - 1 };
    let classes = loads.iter().flat_map(|_| [all.half(false), all.half(true)]).collect();
    Settings { classes, queues: Requests::queues(loads), ..Settings::new(vcs, buffer) }
}

/// All packets of a batch, in the order of their arrival; the same in both engines.
fn packets(loads: &[Requests], settings: &Settings, seed: u64) -> Vec<Delivery> {
    let wiring = wiring();
    let routing = routing::parse("dimension_order", &wiring).unwrap();
    let phases = Phases { warmup: 0, measure: 2000, drain: 0 };
    let plan = MeasurementPlan { phases, batches: 2, patience: 1000, sample: 0, keep_vcs: false };
    let size = (NODES, settings.classes.len());
    let generator = || Generator::new(Traffic::Requests(loads), size, seed, &plan, true);
    let (mut one, mut other) = (generator(), generator());
    let mut fast = Network::new(&wiring, settings, Arc::clone(&routing)).unwrap();
    let mut slow = ReferenceNetwork::new(&wiring, settings, routing).unwrap();
    while one.has_packets() || other.has_packets() {
        assert!(fast.now() < 30_000, "the batch ends");
        fast.step(&mut one);
        slow.step(&mut other);
    }
    let sorted = |of: &Generator| {
        let mut arrived = of.logged().to_vec();
        arrived.sort_unstable();
        arrived
    };
    assert_eq!(sorted(&one), sorted(&other));
    sorted(&one)
}

/// Checks when a node starts its packets, if it can send a flit in each cycle: sequentially, and
/// of the packets that are ready a reply first, and earlier ones before later ones.
fn check_node(mut waiting: Vec<Delivery>) {
    let key = |packet: &Delivery| {
        let is_reply = packet.class % 2 == 1;
        (!is_reply, packet.created + u64::from(is_reply), packet.class)
    };
    let mut now = 0;
    while !waiting.is_empty() {
        let ready = waiting.iter().map(|packet| key(packet).1);
        now = now.max(ready.min().unwrap());
        let due = (0..waiting.len()).filter(|&place| key(&waiting[place]).1 <= now);
        let next = waiting.swap_remove(due.min_by_key(|&place| key(&waiting[place])).unwrap());
        assert_eq!(next.injected, now, "{next:?}");
        now += u64::from(next.flits);
    }
}

#[test]
fn packets_of_a_shared_queue_leave_one_by_one_and_replies_first() {
    let loads = [load(["1", "5"], 0, None, Some(7)), load(["5", "1,2"], 3, None, Some(7))];
    assert_eq!(Requests::queues(&loads), [0, 0, 0, 0]);
    for seed in 1..=6 {
        // Buffers hold all packets, so that nodes never wait for credits.
        let arrived = packets(&loads, &settings(&loads, 4, 4096), seed);
        assert_eq!(arrived.len(), 2 * 2 * 30 * NODES as usize);
        for node in 0..NODES {
            let of_node = arrived.iter().filter(|packet| packet.source == node);
            check_node(of_node.copied().collect());
        }
    }
}

#[test]
fn both_engines_agree_on_shared_and_separate_queues() {
    let loads = [
        load(["1", "5"], 0, None, Some(2)),
        load(["3", "1"], 9, Some(2), None),
        load(["5", "1"], 0, Some(6), Some(2)),
    ];
    assert_eq!(Requests::queues(&loads), [0, 0, 1, 2, 0, 0]);
    for seed in 1..=6 {
        let arrived = packets(&loads, &settings(&loads, 2, 3), seed);
        assert_eq!(arrived.len(), 3 * 2 * 30 * NODES as usize);
    }
}
