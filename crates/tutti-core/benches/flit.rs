//! Speed of the flit network: flit-hops per second under synthetic load.
use std::sync::Arc;
use std::time::Instant;

use tutti_core::network::flit::routing::{Compass, DimensionOrder};
use tutti_core::network::flit::{
    ChannelParameters, Delivery, Network, Order, Settings, Source, Wiring,
};
use tutti_core::topology::{self, LinkParameters};
use tutti_core::units::{Bytes, Time, TimePerByte};

struct Uniform {
    nodes: u32,
    rate: f64,
    flits: u32,
    next: Vec<u64>,
    state: u64,
    hops: u64,
    latency: u64,
    count: u64,
    from: u64,
}

impl Uniform {
    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn gap(&mut self) -> u64 {
        let u = ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        let p = self.rate / f64::from(self.flits);
        (u.ln() / (1.0 - p).ln()) as u64
    }
}

impl Source for Uniform {
    fn next_at(&mut self, node: u32, _: u8) -> Option<u64> {
        if self.next[node as usize] == u64::MAX {
            self.next[node as usize] = self.gap();
        }
        Some(self.next[node as usize])
    }
    fn take(&mut self, node: u32, class: u8) -> Order {
        let created = self.next[node as usize];
        self.next[node as usize] = created + 1 + self.gap();
        let destination = (self.bits() % u64::from(self.nodes)) as u32;
        Order { created, destination, flits: self.flits, class, priority: 0, tag: 0 }
    }
    fn delivered(&mut self, delivery: &Delivery) {
        if delivery.created >= self.from {
            self.hops += u64::from(delivery.hops) * u64::from(delivery.flits);
            self.latency += delivery.arrived - delivery.created;
            self.count += 1;
        }
    }
    fn stirred(&mut self, _: &mut Vec<(u32, u8)>) {}
}

fn main() {
    let only = std::env::args().nth(1);
    for (k, rate, flits, cycles) in [
        (8, 0.02, 1, 300_000),
        (8, 0.05, 1, 200_000),
        (8, 0.20, 1, 100_000),
        (8, 0.40, 1, 60_000),
        (8, 0.60, 1, 60_000),
        (8, 0.20, 4, 100_000),
        (16, 0.10, 1, 30_000),
        (64, 0.03, 1, 4_000),
    ] {
        if only
            .as_ref()
            .is_some_and(|only| !only.starts_with("--") && *only != format!("{k}:{rate}:{flits}"))
        {
            continue;
        }
        let link = LinkParameters::new(TimePerByte::new(1000, 16).unwrap(), Time::from_ps(1000));
        let topology = topology::build(&format!("mesh:{k}x{k}"), &[link]).unwrap();
        let port = ChannelParameters {
            latency: 1,
            credit_latency: 1,
            flit_time: Time::from_ps(1000),
            length: None,
        };
        let wiring =
            Wiring::of(std::sync::Arc::new(topology), Time::from_ps(1000), Bytes(16), port)
                .unwrap();
        let compass = Compass::of(&wiring, &[k, k], false).unwrap();
        let routing = Arc::new(DimensionOrder::new(compass, false));
        let mut network = Network::new(&wiring, &Settings::new(4, 8), routing).unwrap();
        let nodes = wiring.nodes();
        let mut source = Uniform {
            nodes,
            rate,
            flits,
            next: vec![u64::MAX; nodes as usize],
            state: 1,
            hops: 0,
            latency: 0,
            count: 0,
            from: 2000,
        };
        network.run_until(2000, &mut source);
        source.from = 2000;
        let sent = |network: &Network| {
            let sent = network.sent();
            let from_routers = (0..wiring.routers()).flat_map(|r| wiring.outputs(r).iter());
            from_routers.map(|&c| sent[c as usize]).sum::<u64>()
        };
        let before = sent(&network);
        let start = Instant::now();
        network.run_until(2000 + cycles, &mut source);
        let took = start.elapsed().as_secs_f64();
        let hops = sent(&network) - before;
        println!(
            "{k}x{k} {flits}f {rate:.2}: {:>8.0} cycles/s {:>6.2} M flit-hops/s  latency {:.3} accepted {:.4}",
            cycles as f64 / took,
            hops as f64 / took / 1e6,
            source.latency as f64 / source.count as f64,
            source.count as f64 * f64::from(flits) / cycles as f64 / f64::from(nodes),
        );
    }
}
