//! Scores against the engine, bounds against scores, the search against all schedules there are.

use super::*;
use tutti_engine::{Conditions, Distance, Simulation};
use tutti_network::build;
use tutti_schedule::Layout;
use tutti_schedule::algorithm::build as lay_out;
use tutti_schedule::algorithm::search::{self as schedules, Order};
use tutti_schedule::collective::Collective;
use tutti_units::TimePerByte;
use tutti_units::ids::RankId;

/// The engine's time.
fn engine(flat: &Flat, notation: &Notation) -> Time {
    let name = format!("recursive_multiplying:{notation}");
    let schedule = lay_out(&name, Collective::AllReduce, notation.ranks()).unwrap();
    let simulation = Simulation {
        schedule: &*schedule,
        layout: Layout::of(schedule.shape(), flat.bytes, 1).unwrap(),
        model: &flat.model,
        costs: flat.costs,
        conditions: Conditions::default(),
    };
    simulation.run().unwrap().completion_time()
}

fn flat(name: &str, given: &[(&str, &str)], bytes: u64) -> Flat {
    Flat { model: build(name, given).unwrap(), bytes: Bytes(bytes), costs: LocalCosts::FREE }
}

/// Machines of every model, with and without local work; in two of them ports outlast a stage.
fn machines() -> Vec<Flat> {
    let work = LocalCosts {
        gamma: TimePerByte::parse("0.1 ns/B").unwrap(),
        reduce_overhead: Time::parse("20 ns").unwrap(),
        launch: Time::parse("6.6 us").unwrap(),
        ..LocalCosts::FREE
    };
    let postal = [("alpha", "1 us"), ("beta", "0.4 ns/B")];
    let pipelining = [("alpha_p", "1.34 us"), ("alpha_r", "0.34 us"), ("beta", "0.4 ns/B")];
    let logp = [("L", "700 ns"), ("o", "120 ns"), ("g", "300 ns")];
    let logp_slow = [("L", "300 ns"), ("o", "50 ns"), ("g", "2 us")];
    let loggp = [("L", "700 ns"), ("o", "300 ns"), ("g", "100 ns"), ("G", "0.2 ns/B")];
    let loggp_slow = [("L", "100 ns"), ("o", "30 ns"), ("g", "2 us"), ("G", "0.2 ns/B")];
    let logfp = [("L", "700 ns"), ("o", "120 ns"), ("g", "500 ns"), ("f", "3")];
    let lop = [
        ("L", "700 ns"),
        ("o_first", "300 ns"),
        ("o_next", "100 ns"),
        ("processing", "60 ns"),
        ("saturation", "200 ns"),
        ("knee", "3"),
    ];
    let quiet = [
        flat("postal", &postal, 64),
        flat("pipelining_postal", &pipelining, 8),
        flat("logp", &logp, 8),
        flat("logp", &logp_slow, 8),
        flat("loggp", &loggp, 4096),
        flat("loggp", &loggp_slow, 4096),
        flat("logfp", &logfp, 8),
        flat("lop", &lop, 8),
    ];
    let working = quiet.map(|flat| Flat { costs: work, ..flat });
    quiet.into_iter().chain(working).collect()
}

#[test]
fn scores_are_the_engine_s_and_bounds_below_them() {
    for ranks in 2..=30 {
        for notation in schedules::all(ranks, Order::Ordered) {
            for flat in machines() {
                let (time, method) = flat.score(&notation);
                assert_eq!(
                    time,
                    engine(&flat, &notation),
                    "{notation} {method:?} {:?}",
                    flat.model
                );
                let bound = flat.bounds().of(&notation);
                assert!(bound <= time, "{notation} {:?}: {bound} over {time}", flat.model);
            }
        }
    }
}

#[test]
fn larger_schedules_too() {
    let texts = [
        "c96m3,a4,a4,a4,a2,e96m3",
        "c60m5,a7,a3,a5,e60m5",
        "m45g25a4,a5,n45g20a5",
        "m217g15a4,a3,n217g12a5",
        "m7g20a3,a4,n7g12a5",
        "c100m2,a5,a3,a3,a5,e100m2",
        "a7,a3,a5",
    ];
    for notation in texts.map(|text| Notation::parse(text).unwrap()) {
        for flat in machines() {
            assert_eq!(
                flat.score(&notation).0,
                engine(&flat, &notation),
                "{notation} {:?}",
                flat.model
            );
        }
    }
}

#[test]
fn the_search_finds_what_there_is_to_find() {
    for flat in machines() {
        for ranks in 2..=48 {
            let all = flat.rank(schedules::all(ranks, Order::Ordered));
            let effort = Effort { keep: 1, ..Effort::default() };
            let found = best(&flat, ranks, &Kind::ALL, effort);
            assert_eq!(found.found[0].time, all[0].time, "{ranks} on {:?}", flat.model);
            assert!(found.is_proved(), "{ranks} on {:?}", flat.model);
        }
    }
}

/// The engine's time with distances.
fn engine_on(flat: &Flat, distance: &dyn Distance, notation: &Notation) -> Time {
    let name = format!("recursive_multiplying:{notation}");
    let schedule = lay_out(&name, Collective::AllReduce, notation.ranks()).unwrap();
    let simulation = Simulation {
        schedule: &*schedule,
        layout: Layout::of(schedule.shape(), flat.bytes, 1).unwrap(),
        model: &flat.model,
        costs: flat.costs,
        conditions: Conditions { distance: Some(distance), ..Conditions::default() },
    };
    simulation.run().unwrap().completion_time()
}

/// Hosts of so many ranks; between hosts a message takes 2 us longer, within them 0.1 us, and 1 us more
/// between cabinets of eight hosts.
struct Hosts(u32);

impl Distance for Hosts {
    fn extra(&self, source: RankId, destination: RankId, _bytes: Bytes) -> Time {
        let apart = |size: u32| source.0 / size != destination.0 / size;
        let ns = 100 + 1900 * u64::from(apart(self.0)) + 1000 * u64::from(apart(8 * self.0));
        Time::from_ps(ns * 1000)
    }
}

/// A stage whose groups stay inside a host is spared 1.9 us. On 64 ranks and hosts of 8, `a4,a16` has one such
/// stage and `a16,a4`, of the same bases, has none. The candidates must hold the best of all orders.
#[test]
fn the_order_of_stages_counts_and_the_best_one_is_found() {
    let mut gained = 0;
    for flat in machines() {
        for (ranks, host) in [(24, 4), (32, 4), (48, 6), (60, 5), (64, 16), (64, 8), (96, 12)] {
            let hosts = Hosts(host);
            let time = |notation: &Notation| engine_on(&flat, &hosts, notation);
            let all = schedules::factored(ranks, Order::Ordered);
            let least = all.map(|notation| time(&notation)).min().unwrap();
            let candidates = orders(&flat, &hosts, ranks, &[Kind::Factored], 8);
            let found = candidates.iter().map(|candidate| time(&candidate.notation)).min();
            assert_eq!(found, Some(least), "{ranks} ranks on hosts of {host}, {:?}", flat.model);
            let unaware = best(&flat, ranks, &[Kind::Factored], Effort::default());
            gained += u32::from(time(&unaware.found[0].notation) > least);
        }
    }
    assert!(gained > 20, "the flat network's best was worse in {gained} cases only");
}

#[test]
fn candidates_of_all_kinds_fit_their_ranks() {
    let flat = &machines()[1];
    for ranks in [5, 7, 13, 31, 97, 1000] {
        let candidates = orders(flat, &Hosts(4), ranks, &Kind::ALL, 4);
        assert!(candidates.iter().all(|candidate| candidate.notation.ranks() == ranks));
        assert!(candidates.is_sorted_by_key(|candidate| candidate.estimate));
        assert!(candidates.iter().any(|c| Kind::of(&c.notation) != Kind::Factored), "{ranks}");
    }
}
