//! The engine against its oracle: the same finish time for every rank, whatever the schedule, the model
//! and the conditions.

use std::sync::Arc;

use proptest::prelude::*;
use tutti_engine::{Conditions, Loaded, LocalCosts, Ranks, Simulation, oracle};
use tutti_network::{Detours, Distribution, LinkLoad, Noise};
use tutti_schedule::algorithm::{REGISTRY, Request, build};
use tutti_schedule::collective::Collective;
use tutti_schedule::{ChunkRange, Explicit, Layout, Schedule, Slot};
use tutti_tests::{MODELS, Shaken, model};
use tutti_topology::{LinkParameters, Routes};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time, TimePerByte};

const COSTS: LocalCosts = LocalCosts {
    reduce_overhead: Time::from_ps(10_000),
    launch: Time::from_ps(1_234_000),
    ..LocalCosts::FREE
};

fn agree(schedule: &dyn Schedule, size: u64, conditions: Conditions) {
    let layout = Layout::new(Bytes(size), 8, schedule.shape().chunks).unwrap();
    for parameters in MODELS {
        let model = model(parameters);
        let run = Simulation { schedule, layout, model: &model, costs: COSTS, conditions };
        let fast = run.run().unwrap_or_else(|error| panic!("{}: {error}", schedule.shape().name));
        let slow = oracle::finish_times(&run).unwrap();
        assert_eq!(fast.finish, slow, "{} under {model:?}", schedule.shape().name);
    }
}

#[test]
fn every_algorithm_in_quiet_and_in_noise() {
    for entry in REGISTRY {
        for collective in Collective::ALL.iter().filter(|c| entry.collectives.contains(&c.name())) {
            for ranks in [2, 3, 4, 6, 7, 8, 12, 16, 17] {
                let request = Request { collective: *collective, ranks, argument: None };
                if !(entry.claims)(&request) {
                    continue;
                }
                let schedule = (entry.build)(&request).unwrap();
                agree(&*schedule, 800, Conditions::default());
                let shaken = Shaken { seed: u64::from(ranks) };
                agree(&*schedule, 8, Conditions { disturbance: Some(&shaken), distance: None });
            }
        }
    }
}

#[test]
fn ranks_with_detours_recorded_arrivals_and_loaded_links() {
    let link = LinkParameters::new(TimePerByte::parse("10 GB/s").unwrap(), Time::from_ps(90_000));
    let topology = Arc::new(tutti_topology::build("torus:4x4", &[link]).unwrap());
    let routes = Routes::shortest_path(topology);
    let load = LinkLoad::new(&routes, &[0.3], Bytes(4096)).unwrap();
    let us = |us: u64| Time::from_ps(us * 1_000_000);
    let detours = Detours::trace(us(9), &[(us(1), us(2)), (us(8), us(3))], false).unwrap();
    let message = Distribution::parse("mixture(0.2 pareto(1 us, 1.2, 1 ms))").unwrap();
    let noise = Noise { seed: 5, message, detours: Some(detours), ..Noise::default() };
    let arrivals = (0..16).map(|rank| us(rank * rank % 7)).collect();
    let (speeds, wait_for_sends) = (vec![1.0, 0.5], true);
    let ranks = Ranks { noise, speeds, arrivals, wait_for_sends };
    let loaded = Loaded { ranks: &ranks, routes: &routes, load: &load };
    for notation in ["recursive_multiplying:a4,a4", "ring", "direct"] {
        let schedule = build(notation, Collective::AllReduce, 16).unwrap();
        agree(&*schedule, 800, Conditions { disturbance: Some(&loaded), distance: None });
    }
}

/// Messages as (round, source, destination, chunks); ranks without a part in a round skip it.
fn random_schedule(ranks: u32, rounds: &[Vec<(u32, u32, u32)>]) -> Explicit {
    let mut builder = Explicit::builder(Collective::Barrier, ranks, 8);
    for round in rounds {
        for rank in 0..ranks {
            for &(source, destination, chunk) in round {
                let (source, destination) = (source % ranks, destination % ranks);
                if source != destination && source == rank {
                    builder.send(
                        RankId(rank),
                        RankId(destination),
                        Slot::DATA,
                        ChunkRange::one(chunk),
                    );
                }
            }
            for &(source, destination, chunk) in round {
                let (source, destination) = (source % ranks, destination % ranks);
                if source != destination && destination == rank {
                    builder.recv(RankId(rank), RankId(source), Slot(1), ChunkRange::one(chunk));
                }
            }
            builder.end_step(RankId(rank));
        }
    }
    builder.build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Many messages between the same pair, ranks that run ahead, overtaking by noise: all of it.
    #[test]
    fn random_schedules(
        ranks in 2_u32..9,
        rounds in prop::collection::vec(prop::collection::vec((0_u32..9, 0_u32..9, 0_u32..8), 0..30), 1..8),
        seed in any::<u64>(),
    ) {
        prop_assume!(rounds.iter().flatten().any(|(a, b, _)| a % ranks != b % ranks));
        let schedule = random_schedule(ranks, &rounds);
        agree(&schedule, 1000 * 8, Conditions::default());
        let shaken = Shaken { seed };
        agree(&schedule, 24, Conditions { disturbance: Some(&shaken), distance: None });
    }
}
