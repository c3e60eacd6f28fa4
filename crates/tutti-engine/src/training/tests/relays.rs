//! Schedules whose messages do not go to neighbours, on a torus whose NPUs relay packets.

use super::*;
use std::sync::Arc;
use tutti_schedule::algorithm::build;
use tutti_schedule::{Schedule, Shape, Step};
use tutti_units::ids::RankId;

/// A schedule that does not state its symmetry, so that routes depend on the sender.
struct Plain(Arc<dyn Schedule>);

impl Schedule for Plain {
    fn shape(&self) -> &Shape {
        self.0.shape()
    }

    fn steps(&self, rank: RankId) -> u32 {
        self.0.steps(rank)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        self.0.step(rank, step, out);
    }

    fn phases(&self) -> u32 {
        self.0.phases()
    }

    fn phase(&self, rank: RankId, step: u32) -> u32 {
        self.0.phase(rank, step)
    }

    fn channel(&self, rank: RankId, step: u32, send: u32) -> u32 {
        self.0.channel(rank, step, send)
    }
}

fn chosen(
    (collective, notation): (Collective, &str),
    sizes: &[u32],
    wrap: fn(Arc<dyn Schedule>) -> Arc<dyn Schedule>,
) -> Algorithms {
    let ranks = sizes.iter().product();
    let channels = vec![wrap(build(notation, collective, ranks).unwrap())];
    let rings = Rings::ALL.of(sizes);
    let chosen = vec![Chosen { collective: collective.name(), rings, channels }];
    Algorithms { chosen, ..Algorithms::default() }
}

fn on(sizes: [u32; 3], endpoint: Endpoint, algorithms: Algorithms) -> TrainingFabric {
    let fabric = fabric(torus(sizes), endpoint, Population::All);
    TrainingFabric { algorithms, ..fabric }
}

/// Routes that depend on the sender yield the same run as common routes, to the picosecond.
#[test]
fn symmetric_schedules_do_not_need_their_symmetry() {
    let cases = [
        (Collective::AllToAll, "direct:4x3x2", [4, 3, 2]),
        (Collective::AllToAll, "direct:5x4", [5, 4, 1]),
        (Collective::AllReduce, "hierarchical:4x3x2:ring", [4, 3, 2]),
        (Collective::AllToAll, "direct:2x2x3", [2, 2, 3]),
        (Collective::AllGather, "hierarchical:4x4:ring", [4, 4, 1]),
    ];
    for (collective, notation, sizes) in cases {
        for which in 0..2 {
            let given = torus(sizes);
            let run_with = |wrap| {
                let algorithms = chosen((collective, notation), &sizes, wrap);
                let endpoint = any_endpoint(&given, which);
                run(&on(sizes, endpoint, algorithms), &alone(collective, 200_000))
            };
            let common = run_with(|schedule| schedule);
            let own = run_with(|schedule| Arc::new(Plain(schedule)));
            assert_eq!(common, own, "{notation} {which}");
        }
    }
}

/// Sends of a schedule, as bytes times the hops of their routes.
fn bytes_on_links(torus: &Torus, schedule: &dyn Schedule, bytes: u64) -> u64 {
    let shape = schedule.shape();
    let mut sum = 0;
    for rank in (0..shape.ranks).map(RankId) {
        for at in 0..schedule.steps(rank) {
            let mut step = Step::new();
            schedule.step(rank, at, &mut step);
            for send in &step.sends {
                let hops = torus.route(torus.offset(rank.0, send.peer.0)).len() as u64;
                sum += hops * u64::from(send.chunks.len()) * bytes / u64::from(shape.chunks);
            }
        }
    }
    sum
}

/// Schedules of any shape run behind every endpoint, and each packet crosses the links of its route.
#[test]
fn every_schedule_crosses_the_links_of_its_routes() {
    let sizes = [4, 4, 1];
    for notation in ["ring", "swing", "recursive_halving_doubling", "double_binary_tree", "bruck"] {
        for which in 0..4 {
            let given = torus(sizes);
            let collective = Collective::AllReduce;
            let Ok(schedule) = build(notation, collective, 16) else { continue };
            let algorithms = chosen((collective, notation), &sizes, |schedule| schedule);
            let bare = on(sizes, ideal(), algorithms);
            let endpoint = match which {
                0 => ideal(),
                1 => baseline("128 GB/s", 2),
                2 => ace_on(&bare, "128 GB/s", Handover::Ahead),
                _ => ace_on(&bare, "128 GB/s", Handover::AtEnd),
            };
            let fabric = TrainingFabric { endpoint, ..bare };
            let bytes = 16 * 4096;
            let outcome = run(&fabric, &alone(collective, bytes));
            let all: u64 = outcome.npus.iter().map(sent).sum();
            assert_eq!(all, bytes_on_links(&given, &*schedule, bytes), "{notation} {which}");
            let limit = fabric.limit(Transfer::new(collective, Bytes(bytes))).unwrap();
            assert!(limit.time() <= outcome.end, "{notation} {which}");
        }
    }
}

#[test]
fn a_route_passes_the_npus_between_its_ends() {
    let ring = Ring { nodes: 6, per_byte: rate("25 GB/s"), latency: Time::from_ps(400_000) };
    let torus = Torus::new(vec![ring, ring]).unwrap();
    let passed = |from, to| {
        let offset = torus.offset(from, to);
        let hops = torus.route(offset).len();
        (0..=u32::try_from(hops).unwrap()).map(|hop| torus.after(from, offset, hop)).collect()
    };
    let found: [Vec<u32>; 3] = [passed(1, 4), passed(5, 1), passed(5, 31)];
    assert_eq!(found, [vec![1, 2, 3, 4], vec![5, 0, 1], vec![5, 0, 1, 31]]);
}

/// An NPU that has completed its part of a collective still relays for slower NPUs.
#[test]
fn npus_relay_for_slower_ones() {
    let sizes = [4, 4, 1];
    let fabric = fabric(torus(sizes), ideal(), Population::All);
    let program = |ps| {
        let layer = Layer {
            name: "one".to_owned(),
            weight_gradient: Time::from_ps(ps),
            after_weight_gradient: Some(Transfer::new(Collective::AllToAll, Bytes(1 << 20))),
            ..Layer::default()
        };
        TrainingLoop { layers: vec![layer], ..TrainingLoop::default() }.program().unwrap()
    };
    let programs = [program(1), program(30_000_000), program(90_000_000)];
    let of: Vec<u32> = (0..16).map(|npu| [0, 1, 0, 2, 1][npu % 5]).collect();
    let run = TrainingRun {
        programs: &programs,
        of: &of,
        unreserved: &[],
        fabric: &fabric,
        window: Time::ZERO,
    };
    let outcome = run.run().unwrap();
    assert!(outcome.end > Time::from_ps(90_000_000));
    let all: u64 = outcome.npus.iter().map(sent).sum();
    let alone = self::run(&fabric, &program(1));
    assert_eq!(all, alone.npus.iter().map(sent).sum::<u64>());
}
