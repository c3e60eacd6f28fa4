//! No simulated time is below its lower bound: every algorithm, model, collective, rank count, size and
//! topology.

mod common;

use std::sync::Arc;

use common::{MODELS, Shaken, model};
use tutti_core::algorithm::{REGISTRY, build};
use tutti_core::collective::Collective;
use tutti_core::engine::{Conditions, Distance, LocalCosts, Routed, Simulation};
use tutti_core::ids::RankId;
use tutti_core::network::Model;
use tutti_core::network::bound::{Asked, Folding, Way, bound};
use tutti_core::schedule::{Layout, Schedule};
use tutti_core::topology::{self, LinkParameters, Routes};
use tutti_core::units::{Bytes, Time, TimePerByte};

const RANKS: &[u32] = &[2, 3, 4, 5, 7, 8, 12, 16, 27, 32];
/// Arguments beside the default.
const NOTATIONS: &[&str] = &["knomial:4", "double_binary_tree:8", "recursive_multiplying:ratio=1"];

fn costs() -> LocalCosts {
    let per_byte = |text| TimePerByte::parse(text).unwrap();
    LocalCosts {
        gamma: per_byte("0.031 ns/B"),
        reduce_overhead: Time::parse("17 ns").unwrap(),
        copy: TimePerByte::ZERO,
    }
}

/// Every schedule on so many ranks, at any root.
fn schedules(ranks: u32) -> Vec<Arc<dyn Schedule>> {
    let notations = REGISTRY.iter().map(|entry| entry.name).chain(NOTATIONS.iter().copied());
    let all = notations.flat_map(|notation| {
        Collective::ALL.into_iter().filter_map(move |collective| {
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

/// Runs and complains if the bound is not one.
fn hold(schedule: &dyn Schedule, model: &Model, conditions: Conditions<'_>, way: Way) -> u32 {
    let shape = schedule.shape();
    let mut held = 0;
    for size in sizes(shape.collective, shape.ranks) {
        let asked = Asked {
            collective: shape.collective,
            ranks: shape.ranks,
            size: Bytes(size),
            element: 4,
        };
        // A size that an all_to_all does not divide is refused.
        let Ok(layout) = Layout::of_schedule(schedule, Bytes(size), 4) else { continue };
        let run = Simulation { schedule, layout, model, costs: costs(), conditions };
        let took = run.run().unwrap().completion_time();
        let folding = Folding { gamma: costs().gamma, overhead: costs().reduce_overhead };
        let least = bound(&asked, model, folding, way);
        assert!(
            took >= least.at_least(),
            "{} {} on {} ranks, {size} B, {model}: {took} is below {least:?}",
            shape.name,
            shape.collective,
            shape.ranks
        );
        held += 1;
    }
    held
}

#[test]
fn no_algorithm_on_any_model_is_below_it() {
    let mut held = 0;
    for &ranks in RANKS {
        for schedule in schedules(ranks) {
            for parameters in MODELS {
                held += hold(&*schedule, &model(parameters), Conditions::default(), Way::NONE);
            }
        }
    }
    assert!(held > 10_000, "only {held} were tried");
}

#[test]
fn nor_is_one_through_a_graph() {
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
        let topology = Arc::new(topology::build(notation, &[link]).unwrap());
        let routes = Routes::shortest_path(Arc::clone(&topology));
        for schedule in schedules(topology.npus()) {
            for parameters in MODELS {
                let model = model(parameters);
                let routed = Routed { routes: &routes, included: model.per_byte() };
                let distance: Option<&dyn Distance> = Some(&routed);
                let conditions = Conditions { distance, ..Conditions::default() };
                let shape = schedule.shape();
                let way = Way::through(&topology, shape.collective, shape.ranks, false);
                hold(&*schedule, &model, conditions, way);
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
                hold(&*schedule, &model(parameters), conditions, Way::NONE);
            }
        }
    }
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
        let asked =
            Asked { collective: Collective::AllReduce, ranks: 16, size: Bytes(size), element: 4 };
        bound(&asked, &postal, Folding::FREE, Way::NONE).at_least()
    };
    assert_eq!(time("recursive_doubling", 4), least(4));
    let (ring, least) = (time("ring", 64_000_000).ps(), least(64_000_000).ps());
    assert!(ring >= least && ring * 99 < least * 100, "{ring} {least}");
}
