//! The search that scales against all schedules there are, for every number of ranks from 2 to 256.
//!
//! Every factored, split and merged schedule of N is scored, unless its lower bound is not better
//! than the best found so far; that the bounds hold is tested in `search::tests`, against the engine. The
//! search promises to come within 2 % of the optimum; with its default effort it always hit it.

use tutti_analysis::search::{Effort, Flat, best};
use tutti_engine::LocalCosts;
use tutti_network::{Model, build};
use tutti_schedule::algorithm::search::{Kind, Order, all};
use tutti_schedule::notation::Notation;
use tutti_units::{Bytes, Time, TimePerByte};

/// alpha_p / alpha_r, and what corresponds to it elsewhere.
const RATIOS: [&str; 7] = ["50 ns", "100 ns", "200 ns", "400 ns", "800 ns", "1600 ns", "5 us"];
/// From where messages cost the same to where bytes are all that counts.
const SIZES: [u64; 3] = [8, 1024, 65_536];

fn models() -> Vec<Model> {
    let model = |name: &str, given: &[(&str, &str)]| build(name, given).unwrap();
    let mut models = vec![model("postal", &[("alpha", "500 ns"), ("beta", "0.4 ns/B")])];
    for ratio in RATIOS {
        models.extend([
            model(
                "pipelining_postal",
                &[("alpha_p", ratio), ("alpha_r", "100 ns"), ("beta", "0.4 ns/B")],
            ),
            model("loggp", &[("L", ratio), ("o", "60 ns"), ("g", "100 ns"), ("G", "0.2 ns/B")]),
            model("logfp", &[("L", ratio), ("o", "40 ns"), ("g", "100 ns"), ("f", "3")]),
        ]);
    }
    models
}

fn machines(bytes: u64) -> Vec<Flat> {
    let gamma = TimePerByte::parse("0.1 ns/B").unwrap();
    let work = LocalCosts { gamma, reduce_overhead: Time::from_ps(10_000), ..LocalCosts::FREE };
    models().into_iter().map(|model| Flat { model, bytes: Bytes(bytes), costs: work }).collect()
}

/// The least time of all.
fn optimum(flat: &Flat, notations: &[Notation]) -> Time {
    let bounds = flat.bounds();
    let mut least = Time::MAX;
    for notation in notations {
        if bounds.of(notation) < least {
            least = least.min(flat.score(notation).0);
        }
    }
    least
}

/// Checks every number of ranks with this remainder: a part of the test, so that all cores are used.
/// Numbers of ranks have the sizes in turn.
fn check(remainder: u32) {
    let sized = SIZES.map(machines);
    for ranks in (2..=256).filter(|ranks| ranks % 4 == remainder) {
        let mut notations: Vec<Notation> = all(ranks, Order::Ordered).collect();
        // What is short is likely to be good: then the bounds spare most of the others.
        notations.sort_by_cached_key(|notation| {
            notation.stages().iter().map(|stage| stage.base()).sum::<u32>()
        });
        for flat in &sized[ranks as usize % SIZES.len()] {
            let found = best(flat, ranks, &Kind::ALL, Effort::default());
            let (first, bound) = (&found.found[0], found.bound);
            let optimum = optimum(flat, &notations);
            let (least, time) = (optimum.ps(), first.time.ps());
            let bytes = flat.bytes.0;
            let case = format!("{ranks} ranks, {bytes} B, {:?}: {}", flat.model, first.notation);
            assert!(bound <= optimum, "{case} bound {bound} over {optimum}");
            assert!(time * 100 <= least * 102, "{case} takes {} for {optimum}", first.time);
            assert_eq!(time, least, "{case} is within 2 %, but not the optimum as it was");
        }
    }
}

#[test]
fn within_two_percent_of_the_optimum_for_multiples_of_four() {
    check(0);
}

#[test]
fn within_two_percent_of_the_optimum_one_above_them() {
    check(1);
}

#[test]
fn within_two_percent_of_the_optimum_two_above_them() {
    check(2);
}

#[test]
fn within_two_percent_of_the_optimum_three_above_them() {
    check(3);
}
