//! Cases by hand: the latency of one packet, the throughput that credits allow, arbitration; no
//! flit is lost.

use std::collections::VecDeque;
use std::sync::Arc;

use super::ReferenceNetwork;
use crate::credits::round_trip;
use crate::routing::{Compass, DimensionOrder};
use crate::{ChannelParameters, Delivery, FlitError, Order, Settings, Source, Speculation, Wiring};
use tutti_units::Time;

/// Packets by node, in order, and what has arrived.
struct Listed {
    queues: Vec<VecDeque<Order>>,
    arrived: Vec<Delivery>,
}

impl Listed {
    fn new(nodes: usize) -> Listed {
        Listed { queues: vec![VecDeque::new(); nodes], arrived: Vec::new() }
    }

    fn add(&mut self, node: usize, created: u64, destination: u32, flits: u32) {
        let tag = self.queues.iter().map(VecDeque::len).sum::<usize>() as u64;
        let order = Order { created, destination, flits, class: 0, priority: 0, tag };
        self.queues[node].push_back(order);
    }
}

impl Source for Listed {
    fn next_at(&mut self, node: u32, _class: u8) -> Option<u64> {
        self.queues[node as usize].front().map(|order| order.created)
    }

    fn take(&mut self, node: u32, _class: u8, _now: u64) -> Order {
        self.queues[node as usize].pop_front().expect("it was said to be there")
    }

    fn delivered(&mut self, delivery: &Delivery) {
        self.arrived.push(*delivery);
    }

    fn refilled(&mut self, _queues: &mut Vec<(u32, u8)>) {}
}

const CYCLE: Time = Time::from_ps(1000);

fn channel(latency: u32, credit_latency: u32) -> ChannelParameters {
    ChannelParameters { latency, credit_latency, flit_time: CYCLE, length: None }
}

/// Routers in a row over such channels, a node at each.
fn row(routers: u32, links: ChannelParameters) -> Wiring {
    let mut wiring = Wiring::new(routers, routers, CYCLE);
    for router in 1..routers {
        wiring.connect(router - 1, router, links);
        wiring.connect(router, router - 1, links);
    }
    for node in 0..routers {
        wiring.attach(node, node, channel(1, 1), channel(1, 1));
    }
    wiring
}

fn network(wiring: &Wiring, sizes: &[u32], settings: &Settings) -> ReferenceNetwork {
    let compass = Compass::of(wiring, sizes, false).expect("a grid");
    let routing = Arc::new(DimensionOrder::new(compass, false));
    ReferenceNetwork::new(wiring, settings, routing).expect("such a network can be")
}

/// Until there is nothing left; inspects all buffers and credits after every cycle.
fn run(network: &mut ReferenceNetwork, source: &mut Listed) {
    while !network.is_empty() || source.queues.iter().any(|queue| !queue.is_empty()) {
        network.step(source);
        network.audit().expect("credits and flits add up");
        assert!(network.now() < 100_000, "{} packets have arrived", source.arrived.len());
    }
}

/// One packet over five routers in a row: when its head and its tail arrive.
fn alone(settings: &Settings, links: ChannelParameters, flits: u32) -> (u64, u64) {
    let mut source = Listed::new(5);
    source.add(0, 0, 4, flits);
    run(&mut network(&row(5, links), &[5], settings), &mut source);
    let delivery = source.arrived[0];
    assert_eq!((delivery.injected, delivery.hops), (0, 5));
    (delivery.head_arrived, delivery.arrived)
}

/// A head is in the first buffer 2 cycles after its injection: 1 on the channel and 1 to be
/// written. It requests a VC `routing_delay` later, has it `vc_delay` - 1 later, requests the
/// switch 1 later, leaves `switch_delay` - 1 later, is on the channel `traversal_delay` later, and
/// in the next buffer 1 cycle and the `latency` later. So each router takes routing, VC, switch,
/// traversal and latency. The flits of a VC leave every `switch_delay` cycles, since each sends a
/// new request.
#[test]
fn a_packet_alone_takes_the_sum_of_all_delays() {
    for delays in
        [[0, 1, 1, 1], [1, 1, 1, 1], [0, 2, 1, 1], [0, 1, 2, 1], [0, 1, 1, 0], [3, 4, 3, 2]]
    {
        for (latency, credit_delay) in [(1, 0), (1, 1), (4, 2)] {
            let [routing_delay, vc_delay, switch_delay, traversal_delay] = delays;
            let settings = Settings {
                routing_delay,
                vc_delay,
                switch_delay,
                traversal_delay,
                credit_delay,
                ..Settings::new(2, 16)
            };
            let router = u64::from(delays.iter().sum::<u32>());
            let head = 2 + 4 * (router + u64::from(latency)) + router + 1;
            for flits in [1, 4] {
                let tail = head + u64::from((flits - 1) * switch_delay);
                let took = alone(&settings, channel(latency, latency), flits);
                assert_eq!(took, (head, tail), "{delays:?}, {latency}, {flits} flits");
            }
        }
    }
}

/// With slots for one flit behind each channel, a flit passes each round trip; with as many slots
/// as that takes cycles, one each cycle.
#[test]
fn buffers_of_a_round_trip_fill_a_link() {
    for (delays, latency, credit_delay) in
        [([0, 1, 1, 1], 1, 1), ([0, 1, 1, 1], 7, 0), ([1, 2, 1, 3], 4, 3), ([0, 1, 2, 0], 5, 1)]
    {
        let [routing_delay, vc_delay, switch_delay, traversal_delay] = delays;
        let with = |buffer| Settings {
            routing_delay,
            vc_delay,
            switch_delay,
            traversal_delay,
            credit_delay,
            ..Settings::new(1, buffer)
        };
        let links = channel(latency, latency);
        let wiring = row(5, links);
        let round_trip = round_trip(&with(1), &wiring.channels()[0], wiring.cycle());
        let took = |buffer, flits| {
            let (head, tail) = alone(&with(buffer), links, flits);
            tail - head
        };
        assert_eq!(took(1, 41), 40 * round_trip, "{delays:?}, {latency}, {credit_delay}");
        let slots = u32::try_from(round_trip).unwrap();
        assert_eq!(took(slots, 100), 99 * u64::from(switch_delay));
        if switch_delay == 1 {
            assert!(took(slots - 1, 100) > 99, "{delays:?}, {latency}, {credit_delay}");
        }
    }
}

/// As above, without the cycle between the VC and the switch.
#[test]
fn speculation_saves_a_cycle_in_each_router() {
    let speculation = Speculation {
        check_vc: true,
        check_credit: true,
        allocator: None,
        yield_to_requests: false,
    };
    let settings = Settings { speculation: Some(speculation), ..Settings::new(2, 8) };
    for (flits, tail) in [(1, 0), (4, 3)] {
        let head = 2 + 4 * (2 + 1) + 2 + 1;
        assert_eq!(alone(&settings, channel(1, 1), flits), (head, head + tail));
    }
}

/// Rounds take the place of cycles: VC and switch in one, the traversal of a flit that left in the
/// first round of two is over in the second. The first flit leaves in the second round here: as
/// with speculation.
#[test]
fn a_speedup_of_two_saves_a_cycle() {
    let settings = Settings { internal_speedup: 2.0, ..Settings::new(2, 8) };
    let head = 2 + 4 * (2 + 1) + 2 + 1;
    assert_eq!(alone(&settings, channel(1, 1), 1), (head, head));
}

/// Partial rounds accumulate: 1.7 rounds are 1, 2, 2, 1, 2 and so on. The 17th is in the eleventh
/// cycle, by rounding, as in BookSim.
#[test]
fn fractions_of_a_speedup_accumulate() {
    let rounds = |internal_speedup: f64, cycles: std::ops::Range<u64>| -> Vec<u64> {
        let settings = Settings { internal_speedup, ..Settings::new(1, 1) };
        cycles.map(|cycle| settings.rounds_in(cycle)).collect()
    };
    assert_eq!(rounds(1.7, 0..11), [1, 2, 2, 1, 2, 2, 1, 2, 2, 1, 2]);
    assert_eq!(rounds(1.0, 0..3), [1, 1, 1]);
    assert_eq!(rounds(3.0, 1 << 40..(1 << 40) + 3), [3, 3, 3]);
    assert_eq!(rounds(1.25, 1 << 40..(1 << 40) + 8).iter().sum::<u64>(), 10);
}

/// The credit of a flit that leaves at 0 over a channel of 3 cycles is used again at 9. It takes 1
/// cycle in the switch, 4 to the next buffer, which the flit leaves at once, and 4 back with the
/// delay until it counts. With B credits, a flit leaves in each of B cycles. The next B leave 9
/// cycles after these.
#[test]
fn credits_limit_the_rate_of_a_vc() {
    let head = 2 + 4 * (3 + 3) + 3 + 1;
    for (buffer, flits) in [(1, 7), (2, 9), (3, 10), (8, 30)] {
        let settings = Settings { credit_delay: 0, ..Settings::new(1, buffer) };
        let tail = u64::from((flits - 1) / buffer * 9 + (flits - 1) % buffer);
        assert_eq!(alone(&settings, channel(3, 3), flits), (head, head + tail), "{buffer}");
    }
}

/// A flit takes two and a half cycles on a link, so two leave in five. In the last router, from
/// where the channel is fast, only the head waits a cycle for its VC.
#[test]
fn a_slow_channel_accepts_a_flit_when_free() {
    let links = ChannelParameters { flit_time: Time::from_ps(2500), ..channel(1, 1) };
    let head = 2 + 4 * (3 + 1) + 3 + 1;
    assert_eq!(alone(&Settings::new(2, 8), links, 5), (head, head + 10 - 1));
}

/// Two routers, two nodes at the first and one at the second.
fn funnel() -> Wiring {
    let mut wiring = Wiring::new(2, 3, CYCLE);
    wiring.connect(0, 1, channel(1, 1));
    for (node, router) in [(0, 0), (1, 0), (2, 1)] {
        wiring.attach(node, router, channel(1, 1), channel(1, 1));
    }
    wiring
}

#[test]
fn two_flows_over_a_link_get_half_each() {
    for flits in [1, 4] {
        let mut source = Listed::new(3);
        for _ in 0..2000 / flits {
            source.add(0, 0, 2, flits);
            source.add(1, 0, 2, flits);
        }
        let mut network = network(&funnel(), &[2], &Settings::new(4, 8));
        for _ in 0..1000 {
            network.step(&mut source);
        }
        let of = |node| source.arrived.iter().filter(|delivery| delivery.source == node).count();
        assert!(of(0).abs_diff(of(1)) * 100 <= of(0) + of(1), "{} and {}", of(0), of(1));
        let passed = network.sent()[0];
        assert!(passed > 990, "the link is in use in nearly every cycle: {passed}");
    }
}

/// Two packets of four flits come to a link in the same cycle. Their flits take turns, start with
/// node 0's, so that each packet takes seven cycles; with a held switch the first passes as a unit.
/// A head alone takes 2 + (3 + 1) + 3 + 1 cycles, as above.
#[test]
fn a_held_switch_keeps_packets_together() {
    for (hold_switch, arrives) in [(false, [(10, 16), (11, 17)]), (true, [(10, 13), (14, 17)])] {
        let mut source = Listed::new(3);
        source.add(0, 0, 2, 4);
        source.add(1, 0, 2, 4);
        let settings = Settings { hold_switch, ..Settings::new(2, 8) };
        run(&mut network(&funnel(), &[2], &settings), &mut source);
        source.arrived.sort_by_key(|delivery| delivery.source);
        let times: Vec<(u64, u64)> = source
            .arrived
            .iter()
            .map(|delivery| (delivery.head_arrived, delivery.arrived))
            .collect();
        assert_eq!(times, arrives, "held: {hold_switch}");
    }
}

fn mesh(k: u32) -> Wiring {
    let mut wiring = Wiring::new(k * k, k * k, CYCLE);
    for router in 0..k * k {
        for (edge, to) in [(router % k == k - 1, router + 1), (router / k == k - 1, router + k)] {
            if !edge {
                wiring.connect(router, to, channel(2, 1));
                wiring.connect(to, router, channel(1, 3));
            }
        }
        wiring.attach(router, router, channel(1, 1), channel(1, 2));
    }
    wiring
}

fn unusual() -> Vec<Settings> {
    let usual = Settings::new(2, 3);
    let speculation = Speculation {
        check_vc: false,
        check_credit: false,
        allocator: None,
        yield_to_requests: false,
    };
    vec![
        usual.clone(),
        Settings { cut_through: true, ..Settings::new(3, 5) },
        Settings { wait_for_tail_credit: true, vc_delay: 2, switch_delay: 3, ..usual.clone() },
        Settings {
            busy_when_full: true,
            prioritize_empty: true,
            routing_delay: 2,
            ..usual.clone()
        },
        Settings { input_speedup: 2, output_speedup: 2, hold_switch: true, ..usual.clone() },
        Settings { internal_speedup: 3.0, output_buffer: Some(1), ..usual.clone() },
        Settings { internal_speedup: 1.7, vc_delay: 2, switch_delay: 2, ..usual.clone() },
        Settings { speculation: Some(speculation), internal_speedup: 2.0, ..usual },
    ]
}

/// Each node sends to each other one, all at once.
#[test]
fn every_packet_arrives_exactly_once() {
    for settings in unusual() {
        let wiring = mesh(3);
        let mut source = Listed::new(9);
        let mut flits_over_links = 0;
        for (node, other) in (0..9).flat_map(|node| (0..9).map(move |other| (node, other))) {
            let flits = (node + 2 * other) % 5 + 1;
            source.add(node as usize, u64::from(node % 3), other, flits);
            flits_over_links +=
                flits * ((node % 3).abs_diff(other % 3) + (node / 3).abs_diff(other / 3));
        }
        let mut network = network(&wiring, &[3, 3], &settings);
        run(&mut network, &mut source);
        let mut tags: Vec<u64> = source.arrived.iter().map(|delivery| delivery.tag).collect();
        tags.sort_unstable();
        assert_eq!(tags.len(), 81, "{settings:?}");
        let between = |channel: usize| {
            let channel = &wiring.channels()[channel];
            ![channel.from, channel.to].iter().any(|end| matches!(end, super::End::Node(_)))
        };
        let sent = network.sent().into_iter().enumerate().filter(|(channel, _)| between(*channel));
        assert_eq!(sent.map(|(_, sent)| sent).sum::<u64>(), u64::from(flits_over_links));
    }
}

#[test]
fn invalid_settings_are_rejected() {
    let routing =
        DimensionOrder::new(Compass::of(&mesh(2), &[2, 2], false).expect("a grid"), false);
    let network = ReferenceNetwork::new(&mesh(2), &Settings::new(0, 1), Arc::new(routing));
    assert!(matches!(network.map(|_| ()), Err(FlitError::OutOfRange { what: "vcs", .. })));
}
