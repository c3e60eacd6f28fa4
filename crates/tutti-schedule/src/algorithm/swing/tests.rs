use std::collections::BTreeSet;

use super::packed::{Paths, blocks_per_step};
use super::path::{Turns, rho, swung};
use super::*;
use crate::Step;
use crate::algorithm::{build as lay_out, check};
use tutti_units::ids::RankId;

const KINDS: [Collective; 3] =
    [Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather];
const TORI: [(&str, u32); 7] =
    [("2x2", 4), ("4x2", 8), ("2x8", 16), ("4x4", 16), ("2x2x2", 8), ("8x4x2", 64), ("16x2", 32)];

#[test]
fn it_does_what_it_claims_at_every_rank_count() {
    for ranks in 2..=128 {
        check::claims(&ENTRY, ENTRY.name, ranks);
        check::claims(&ENTRY, "swing:latency_optimal", ranks);
    }
}

#[test]
fn every_torus_is_proved() {
    for (grid, ranks) in TORI {
        KINDS.iter().for_each(|&kind| _ = check::performs(&format!("swing:{grid}"), kind, ranks));
        check::performs(&format!("swing:{grid}:latency_optimal"), Collective::AllReduce, ranks);
    }
}

#[test]
fn the_critical_path_is_exact_at_every_rank_count() {
    for ranks in (2..=72).step_by(2) {
        for kind in KINDS {
            assert!(check::critical_path_is_exact(ENTRY.name, kind, ranks));
        }
    }
    for (grid, ranks) in TORI {
        let notation = format!("swing:{grid}");
        assert!(check::critical_path_is_exact(&notation, Collective::AllReduce, ranks));
        let notation = format!("{notation}:latency_optimal");
        assert!(check::critical_path_is_exact(&notation, Collective::AllReduce, ranks));
    }
}

#[test]
fn distances_are_those_of_the_paper() {
    let distances: Vec<i64> = (0..8).map(rho).collect();
    assert_eq!(distances, [1, -1, 3, -5, 11, -21, 43, -85]);
    // The paper's 16 nodes: 0 exchanges with 1, 15, 3 and 11; 1 with 0, 2, 14 and 6.
    let peers = |rank| [0, 1, 2, 3].map(|step| swung(rank, rho(step), 16));
    assert_eq!((peers(0), peers(1)), ([1, 15, 3, 11], [0, 2, 14, 6]));
}

#[test]
fn a_torus_takes_its_dimensions_in_turn() {
    // 8x2: x by 1, y by 1, x by -1, x by 3. Rank 0 is at (0, 0), rank 9 at (1, 1).
    let turns = Turns::new(&[8, 2]);
    let partners = |rank| (0..4).map(|turn| turns.partner(rank, turn).0).collect::<Vec<_>>();
    assert_eq!((partners(0), partners(9)), (vec![1, 8, 7, 3], vec![8, 1, 10, 14]));
}

/// The reference: walk all paths, from the one that departs latest.
#[test]
fn the_smallest_path_is_that_of_a_search() {
    for ranks in (2..=130).step_by(2) {
        let paths = Paths::new(ranks);
        let steps = ranks.next_power_of_two().ilog2();
        let mut reached = BTreeSet::from([0]);
        assert_eq!(paths.smallest(0), 0);
        for path in 1..1_u32 << steps {
            let mut place = 0;
            for step in (0..steps).filter(|step| path >> (steps - 1 - step) & 1 == 1) {
                place = swung(place, rho(step), ranks);
            }
            assert_eq!(paths.offset(path), place, "{ranks} ranks, path {path:b}");
            if reached.insert(place) {
                assert_eq!(paths.smallest(place), path, "{ranks} ranks, to {place}");
            }
        }
        assert_eq!(reached.len(), ranks as usize);
        let sent: u32 = blocks_per_step(ranks).iter().sum();
        assert_eq!(sent, ranks - 1, "a rank sends every block except that for itself once");
    }
}

/// Both layouts of a power of two send the same blocks.
#[test]
fn powers_of_two_send_half_in_every_step() {
    for steps in 1..=10 {
        let paths = Paths::new(1 << steps);
        let counts: Vec<usize> = (0..steps).map(|step| paths.sent(step).count()).collect();
        let halves: Vec<usize> = (0..steps).map(|step| 1 << (steps - 1 - step)).collect();
        assert_eq!(counts, halves);
    }
}

#[test]
fn partners_are_never_farther_than_two_thirds_of_doubling() {
    for ranks in [16_u32, 64, 1024, 1 << 16] {
        let far = |a: u32, b: u32| a.abs_diff(b).min(ranks - a.abs_diff(b));
        let schedule = lay_out("swing:latency_optimal", Collective::AllReduce, ranks).unwrap();
        let mut out = Step::new();
        for step in 1..ranks.ilog2() {
            out.clear();
            schedule.step(RankId(0), step, &mut out);
            let hops = far(0, out.sends[0].peer.0);
            assert!(3 * hops <= 2 * (1 << step) + 1, "{ranks} ranks, step {step}: {hops}");
        }
    }
}

#[test]
fn invalid_requests_are_refused() {
    let problem =
        |notation: &str, kind, ranks| lay_out(notation, kind, ranks).err().unwrap().to_string();
    let cases = [
        ("swing", 7, "swing does not work on 7 ranks: it needs an even number"),
        ("swing:latency_optimal", 6, "it needs a power of two for `latency_optimal`"),
        ("swing:4x2", 6, "4x2 is 8 ranks: expected sizes whose product is 6"),
        ("swing:3x2", 6, "3 is not a power of two: expected a power of two"),
        ("swing:4x2:fast", 8, "unknown option `fast`: expected `latency_optimal`"),
        ("swing:8", 8, "only one dimension: expected at least two"),
        ("swing:", 8, "`` is not a dimension size"),
    ];
    for (notation, ranks, part) in cases {
        let text = problem(notation, Collective::AllReduce, ranks);
        assert!(text.contains(part), "{notation}: {text}");
    }
    let text = problem("swing:4x2:latency_optimal", Collective::AllGather, 8);
    assert!(text.contains("all_gather does not support `latency_optimal`"), "{text}");
}
