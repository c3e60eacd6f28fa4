use std::sync::Arc;
use tutti_core::network::flit::measure::{Load, Plan, measure};
use tutti_core::network::flit::routing::*;
use tutti_core::network::flit::traffic::*;
use tutti_core::network::flit::*;
use tutti_core::topology::{self, LinkParameters};
use tutti_core::units::{Bytes, Time, TimePerByte};

fn main() {
    let port = ChannelParameters {
        latency: 1,
        credit_latency: 1,
        flit_time: Time::from_ps(1000),
        length: None,
    };
    for (name, k, wraps, lat, flits, period, loads) in [
        (
            "mesh8x8_p1",
            8u32,
            false,
            1000,
            1,
            5000,
            vec![
                0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.325, 0.35, 0.375, 0.4, 0.41, 0.42, 0.43,
                1.0,
            ],
        ),
        (
            "mesh8x8_p4",
            8,
            false,
            1000,
            4,
            5000,
            vec![0.02, 0.05, 0.1, 0.2, 0.3, 0.35, 0.375, 0.4, 0.41, 0.42, 1.0],
        ),
        (
            "torus8x8_p1",
            8,
            true,
            2000,
            1,
            5000,
            vec![0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 1.0],
        ),
        (
            "mesh16x16_p1",
            16,
            false,
            1000,
            1,
            2500,
            vec![0.02, 0.05, 0.1, 0.15, 0.19, 0.2, 0.21, 0.22, 0.23, 1.0],
        ),
    ] {
        let link = LinkParameters::new(TimePerByte::new(1000, 16).unwrap(), Time::from_ps(lat));
        let family = if wraps { "torus" } else { "mesh" };
        let topology =
            Arc::new(topology::build(&format!("{family}:{k}x{k}"), &[link, link]).unwrap());
        let wiring = Wiring::of(topology, Time::from_ps(1000), Bytes(16), port).unwrap();
        let compass = Compass::of(&wiring, &[k, k], wraps).unwrap();
        let routing: Arc<dyn Routing> = if wraps {
            Arc::new(TorusOrder::new(compass, false))
        } else {
            Arc::new(DimensionOrder::new(compass, false))
        };
        let reference =
            std::fs::read_to_string(format!("/work/shared/reference/booksim/results_{name}.csv"))
                .unwrap();
        for load in loads {
            let settings = Settings { seed: 3, ..Settings::new(4, 8) };
            let mut network = Network::new(&wiring, &settings, Arc::clone(&routing)).unwrap();
            let load_of = Load {
                pattern: Pattern::parse("uniform", wiring.nodes(), None).unwrap(),
                process: Process::bernoulli(load / f64::from(flits)).unwrap(),
                size: PacketSize::fixed(flits).unwrap(),
                priority: 0,
            };
            let plan = Plan {
                warmup: 3 * period,
                measure: 3 * period,
                batches: 15,
                drain: 20_000,
                patience: 10_000,
                sample: 100,
            };
            let m = measure(&wiring, &settings, &mut network, &[load_of], &plan).unwrap();
            let row = reference
                .lines()
                .find(|l| {
                    let f: Vec<&str> = l.split(',').collect();
                    f[2].parse::<f64>().is_ok_and(|x| (x - load).abs() < 1e-9) && f[1] == "0"
                })
                .map(|l| {
                    let f: Vec<&str> = l.split(',').collect();
                    (f[3].to_owned(), f[4].to_owned(), f[9].to_owned())
                });
            println!(
                "{name} {load:.3} {:?} lat {:.3}±{:.2} net {:.3} acc {:.4} hops {:.3} | {row:?}",
                m.ending,
                m.all.latency.mean,
                m.all.latency.half_width,
                m.all.network_latency.mean,
                m.all.accepted.mean,
                m.all.hops.mean
            );
        }
    }
}
