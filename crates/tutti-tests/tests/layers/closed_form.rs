//! The engine against the closed forms, to the picosecond: every algorithm that has a critical path, on
//! every model, for many rank counts and sizes.

use std::collections::BTreeMap;

use tutti_analysis::closed_form;
use tutti_engine::{Conditions, LocalCosts, Simulation};
use tutti_network::Model;
use tutti_schedule::Layout;
use tutti_schedule::algorithm::{self, REGISTRY};
use tutti_schedule::collective::Collective;
use tutti_tests::{MODELS, model};
use tutti_units::{Bytes, Time, TimePerByte};

const RANKS: &[u32] = &[2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 14, 15, 16, 17, 24, 27, 31, 32, 48, 64];

/// Algorithms without a closed form; the engine is compared with its reference model for them, too.
const WITHOUT: &[&str] = &["concentrated_multi_tree"];

/// Notations in addition to each default; those invalid for a rank count are skipped.
const NOTATIONS: &[&str] = &[
    "bine:latency_optimal",
    "bine:block_by_block",
    "bine:send",
    "bine:scatter_all_gather",
    "bine:reduce_scatter_gather",
    "bruck:2",
    "bruck:3",
    "scatter_destination:3",
    "recursive_halving_doubling:2-1",
    "recursive_halving_doubling:3-2",
    "recursive_halving_doubling:binary_blocks",
    "reduce_scatter_gather:ring",
    "double_binary_tree:nccl",
    "k_ring:2",
    "recursive_exchange:2",
    "recursive_exchange:3",
    "pat:1",
    "pat:4",
    "dissemination:2",
    "dissemination:3",
    "scatter_all_gather:recursive_doubling",
    "double_binary_tree:2",
    "double_binary_tree:nccl,phased,3",
    "ring:bidirectional",
    "ring:blockwise",
    "ring:segments=4",
    "ring:node=4,channels=3",
    "binary_tree:in_order",
    "chain:fanout=4",
    "kary_tree:fanout=3",
    "ring:4x4",
    "ring:3x4,bidirectional",
    "mirrored_ring:bidirectional",
    "mirrored_ring:8x8:4x2,2x4",
    "mirrored_ring:4x2:4x2,bidirectional",
    "swing:latency_optimal",
    "swing:2x4",
    "swing:4x4:latency_optimal",
    "multi_ring:2x4",
    "multi_ring:4x4:all_dimensions",
    "multi_ring:3x3x3:bidirectional",
    "multi_ring:2x2x2:all_dimensions:bidirectional",
    "blue_connect:2x4:direct",
    "hierarchical_local:2x4x3",
    "blue_connect:4x4x4:recursive_halving_doubling/ring/direct",
    "knomial:2",
    "knomial:3",
    "knomial:8",
    "recursive_multiplying:a2,a2,a2",
    "recursive_multiplying:a4,a2",
    "recursive_multiplying:a2,a4",
    "recursive_multiplying:a8",
    "recursive_multiplying:a8,a4",
    "recursive_multiplying:a3,a4",
    "recursive_multiplying:a3,a3,a3",
    "recursive_multiplying:a8,a8",
    "recursive_multiplying:c6m2,a2,a2,e6m2",
    "recursive_multiplying:c9m3,a3,e9m3",
    "recursive_multiplying:c6m3,a3,e6m3",
    "recursive_multiplying:c12m3,a3,a2,e12m3",
    "recursive_multiplying:c12m3,a2,a3,e12m3",
];

fn costs() -> LocalCosts {
    let per_byte = |text| TimePerByte::parse(text).unwrap();
    LocalCosts {
        gamma: per_byte("0.2 ns/B"),
        gamma_memory: Some(per_byte("0.5 ns/B")),
        cache: Some(Bytes(1024)),
        reduce_overhead: Time::parse("13 ns").unwrap(),
        copy: TimePerByte::ZERO,
        launch: Time::from_ps(5_300_000),
    }
}

/// The closed form and the engine's result; `None` without a closed form.
fn both(
    notation: &str,
    collective: Collective,
    ranks: u32,
    size: u64,
    model: &Model,
) -> Option<(Time, Time)> {
    let stages = algorithm::critical_path(notation, collective, ranks).ok()??;
    let costs = costs();
    let reduce = |operands, bytes| costs.reduce(operands, bytes);
    let stages = closed_form::time(model, &stages, Bytes(size), 8, reduce)?;
    let expected = costs.launch + stages;
    let schedule = algorithm::build(notation, collective, ranks).ok()?;
    let layout = Layout::of(schedule.shape(), Bytes(size), 8).ok()?;
    let conditions = Conditions::default();
    let run = Simulation { schedule: &*schedule, layout, model, costs, conditions };
    Some((expected, run.run().unwrap().completion_time()))
}

/// How often each notation was compared on each model, and every difference.
#[derive(Default)]
struct Tally {
    checked: BTreeMap<(&'static str, &'static str), u32>,
    wrong: Vec<String>,
}

impl Tally {
    fn add(&mut self, notation: &'static str, collective: Collective, ranks: u32, size: u64) {
        for parameters in MODELS {
            let model = model(parameters);
            let Some((expected, found)) = both(notation, collective, ranks, size, &model) else {
                continue;
            };
            *self.checked.entry((notation, model.name())).or_default() += 1;
            if expected != found {
                self.wrong.push(format!(
                    "{notation} {collective} on {ranks} ranks, {size} B, {}: \
                     closed form {expected}, engine {found}",
                    model.name()
                ));
            }
        }
    }
}

#[test]
fn the_engine_takes_exactly_the_closed_form() {
    let mut tally = Tally::default();
    for notation in REGISTRY.iter().map(|entry| entry.name).chain(NOTATIONS.iter().copied()) {
        for collective in Collective::ALL {
            for &ranks in RANKS {
                let shards = u64::from(ranks) * 8;
                let barrier = collective == Collective::Barrier;
                let sizes = if barrier {
                    &[0][..]
                } else {
                    &[8, shards, 16 * shards, 96 * shards, 1000 * shards]
                };
                for &size in sizes {
                    tally.add(notation, collective, ranks, size);
                }
            }
        }
    }
    let Tally { checked, mut wrong } = tally;
    let count = wrong.len();
    wrong.truncate(40);
    assert!(wrong.is_empty(), "{count} differ:\n{}", wrong.join("\n"));
    for entry in REGISTRY.iter().filter(|entry| !WITHOUT.contains(&entry.name)) {
        for (name, _) in MODELS {
            let cases = checked.get(&(entry.name, *name)).copied().unwrap_or(0);
            assert!(cases >= 4, "{} on {name} was checked {cases} times", entry.name);
        }
    }
    for notation in NOTATIONS {
        assert!(checked.keys().any(|(known, _)| known == notation), "{notation} never was checked");
    }
}
