//! Routers with different clocks: latencies and throughput by hand.

use std::collections::VecDeque;
use std::sync::Arc;

use tutti_noc::{
    ChannelParameters, Clock, Delivery, FlitError, Network, Order, Settings, Source, Wiring,
    credits, routing,
};
use tutti_topology::LinkParameters;
use tutti_units::{Bytes, Time, TimePerByte};

/// Packets by node, in order of time: (created, destination, flits).
struct Listed {
    queues: Vec<VecDeque<(u64, u32, u32)>>,
    arrived: Vec<Delivery>,
}

impl Source for Listed {
    fn next_at(&mut self, node: u32, _: u8) -> Option<u64> {
        self.queues[node as usize].front().map(|packet| packet.0)
    }

    fn take(&mut self, node: u32, class: u8, _: u64) -> Order {
        let (created, destination, flits) = self.queues[node as usize].pop_front().unwrap();
        let tag = u64::from(node) << 32 | created;
        Order { created, destination, flits, class, priority: 0, tag }
    }

    fn delivered(&mut self, delivery: &Delivery) {
        self.arrived.push(*delivery);
    }

    fn refilled(&mut self, _: &mut Vec<(u32, u8)>) {}
}

/// A mesh with links of a latency, and nodes one cycle from their routers.
fn wiring(mesh: &str, cycle: u64, latency: u64) -> Wiring {
    let cycle = Time::from_ps(cycle);
    let rate = TimePerByte::new(1, 16).unwrap();
    let link = LinkParameters::new(rate, Time::from_ps(latency));
    let topology = tutti_topology::build(mesh, &[link]).unwrap();
    let port = ChannelParameters { latency: 1, credit_latency: 1, flit_time: cycle, length: None };
    Wiring::of(Arc::new(topology), cycle, Bytes(16), port).unwrap()
}

fn clock(domain: u32, period: u64) -> Clock {
    Clock { domain, period: Time::from_ps(period), synchroniser: 2 }
}

fn network(wiring: &Wiring, settings: &Settings) -> Result<Network, FlitError> {
    Network::new(wiring, settings, routing::parse("dimension_order", &Arc::new(wiring.clone()))?)
}

/// What arrived in so many cycles.
fn run(
    wiring: &Wiring,
    settings: &Settings,
    packets: &[(u32, (u64, u32, u32))],
    cycles: u64,
) -> Vec<Delivery> {
    let mut queues = vec![VecDeque::new(); wiring.nodes() as usize];
    for &(node, packet) in packets {
        queues[node as usize].push_back(packet);
    }
    let mut source = Listed { queues, arrived: Vec::new() };
    network(wiring, settings).unwrap().run_until(cycles, &mut source);
    source.arrived
}

/// Two routers with periods of 1 and 2 ns. Forth: injected at 0, in the buffer at 2, on the link
/// after 3 cycles at 5, and there at 6. It is through the synchroniser at 10, on the channel to the
/// node after 3 cycles of 2 ns at 16, there at 17 and seen at 18. Back: on the channel at 2, there at
/// 3 and seen at 4. It is on the link at 10, there at 11, through the synchroniser at 13, on the
/// channel at 16 and at the node at 17. Flits follow every 2 ns. In the fast router they need no VC,
/// and thus a cycle less than the head.
#[test]
fn a_packet_passes_two_clocks_in_the_time_by_hand() {
    let wiring = wiring("mesh:2x1", 1000, 1000);
    let settings =
        Settings { clocks: vec![clock(0, 1000), clock(1, 2000)], ..Settings::new(2, 16) };
    for flits in [1, 6] {
        let later = 2 * u64::from(flits - 1);
        let back = if flits == 1 { 17 } else { 17 - 1 + later };
        for (from, to, takes) in [(0, 1, 18 + later), (1, 0, back)] {
            let arrived = run(&wiring, &settings, &[(from, (0, to, flits))], 200);
            assert_eq!(arrived[0].arrived, takes, "{flits} flits from node {from}");
        }
    }
    // Between cycles of the slow clock, a packet waits for the next one.
    let odd = run(&wiring, &settings, &[(1, (3, 0, 1))], 200);
    assert_eq!((odd[0].injected, odd[0].arrived), (4, 21));
}

#[test]
fn the_slower_end_bounds_the_throughput_of_a_link() {
    let wiring = wiring("mesh:2x1", 1000, 1000);
    for period in [1000, 1250, 2000] {
        let clocks = vec![clock(0, 1000), clock(1, period)];
        let settings = Settings { clocks, ..Settings::new(1, 16) };
        assert_eq!(credits::throttled(&wiring, &settings, 1), None);
        for (from, to) in [(0, 1), (1, 0)] {
            let arrived = run(&wiring, &settings, &[(from, (0, to, 401))], 2000);
            let took = arrived[0].arrived - arrived[0].head_arrived;
            let by_rate = 400 * period / 1000;
            assert!(took.abs_diff(by_rate) <= 1, "{period} ps from node {from}: {took}");
        }
    }
}

/// A network whose routers have one clock of 1.5 cycles is one with a longer cycle.
#[test]
fn one_slower_clock_scales_time() {
    let slow = wiring("mesh:3x3", 1000, 3000);
    let alone = wiring("mesh:3x3", 1500, 3000);
    let plain = Settings::new(2, 3);
    let clocked = Settings { clocks: vec![clock(0, 1500); 9], ..plain.clone() };
    let packet = |number: u64| {
        let node = u32::try_from(number * 7 % 9).unwrap();
        let to = u32::try_from(number * number % 9).unwrap();
        (node, (number / 3, to, u32::try_from(1 + number % 4).unwrap()))
    };
    let packets: Vec<_> = (0..300).map(packet).collect();
    let scaled: Vec<_> = packets
        .iter()
        .map(|&(node, (created, to, flits))| (node, (created * 3 / 2, to, flits)))
        .collect();
    let sorted = |arrived: Vec<Delivery>, factor: u64| {
        let mut found: Vec<_> = arrived
            .iter()
            .map(|one| ((one.arrived * factor).div_ceil(2), one.source, one.destination))
            .collect();
        found.sort_unstable();
        found
    };
    let expected = sorted(run(&alone, &plain, &packets, 3000), 3);
    assert_eq!(expected.len(), 300);
    assert_eq!(sorted(run(&slow, &clocked, &scaled, 6000), 2), expected);
}

#[test]
fn clocks_that_cannot_be_are_refused() {
    let wiring = wiring("mesh:2x1", 1000, 1000);
    let plain = Settings { clocks: vec![clock(0, 1000), clock(1, 2000)], ..Settings::new(4, 8) };
    let refused = |settings: &Settings| match network(&wiring, settings) {
        Ok(_) => panic!("{settings:?}"),
        Err(error) => error.to_string(),
    };
    let with = |clock| Settings { clocks: vec![clock, clock], ..plain.clone() };
    let cases = [
        (with(clock(0, 900)), "clocks: a period of 900 ps: expected 1 ns, the cycle"),
        (with(clock(0, 65000)), "to 64 ns"),
        (with(Clock { synchroniser: 65, ..clock(1, 2000) }), "`synchroniser` is 65"),
        (Settings { clocks: vec![clock(0, 2000)], ..plain.clone() }, "`clocks` is 1: expected 2"),
        (Settings { output_speedup: 2, ..plain.clone() }, "flits queue behind the switch"),
        (Settings { internal_speedup: 1.5, ..plain.clone() }, "flits queue behind the switch"),
        (Settings { output_buffer: Some(4), ..plain.clone() }, "flits queue behind the switch"),
        (
            Settings {
                vcs: 64,
                buffer: 1 << 15,
                clocks: plain.clocks.clone(),
                ..Settings::new(64, 8)
            },
            "buffers of 2097152 flits and delays of 2 cycles",
        ),
    ];
    for (settings, text) in cases {
        let message = refused(&settings);
        assert!(message.contains(text), "{message}");
    }
    // One clock as fast as the network permits what several do not.
    let one = Settings { clocks: vec![clock(3, 1000); 2], output_speedup: 2, ..plain };
    assert!(network(&wiring, &one).is_ok());
}
