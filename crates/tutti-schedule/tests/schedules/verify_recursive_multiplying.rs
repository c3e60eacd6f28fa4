//! Every schedule of the recursive multiplying family on few ranks, and every variant of
//! elimination, is verified and produces the documented bits.

use tutti_schedule::algorithm::build;
use tutti_schedule::algorithm::search::{self, Order};
use tutti_schedule::collective::Collective;
use tutti_schedule::notation::{Notation, Stage};
use tutti_schedule::{Verification, verify};

fn proved(name: &str, collective: Collective, ranks: u32) -> Verification {
    let what = format!("{name} {collective} on {ranks} ranks");
    let schedule = build(name, collective, ranks).unwrap_or_else(|e| panic!("{what}: {e}"));
    let proof = verify(schedule.as_ref()).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(proof.rendezvous_safe(), "{what} needs buffers");
    assert!(proof.reproducibility.same_on_all_ranks, "{what} gives different bits");
    proof
}

/// Derivation: every exchange of base B has B - 1 messages from each of its P ranks. Collapse and
/// expand have one for each of the T - T / B ranks that they remove, and a merge and its inverse
/// have B for each of the R remainder ranks.
fn messages(notation: &Notation) -> u64 {
    let exchange = |base: u32| u64::from(notation.inner()) * u64::from(base - 1);
    let count = |stage: &Stage| match *stage {
        Stage::Factor { base } => exchange(base),
        Stage::Collapse { threshold, base } | Stage::Expand { threshold, base } => {
            u64::from(threshold - threshold / base)
        }
        Stage::Merge { remainder, base, .. } | Stage::InverseMerge { remainder, base, .. } => {
            exchange(base) + u64::from(remainder) * u64::from(base)
        }
    };
    notation.stages().iter().map(count).sum()
}

/// Only several remainder ranks are folded out of order: into every G-th group.
fn folds_in_rank_order(notation: &Notation) -> bool {
    !matches!(notation.stages()[0], Stage::Merge { remainder: 2.., groups: 2.., .. })
}

#[test]
fn every_schedule_of_up_to_32_ranks() {
    let mut proofs = 0;
    for ranks in 2..=32 {
        for notation in search::all(ranks, Order::Ordered) {
            let name = format!("recursive_multiplying:{notation}");
            let proof = proved(&name, Collective::AllReduce, ranks);
            assert_eq!(proof.messages, messages(&notation), "{name}");
            let class = proof.reproducibility;
            assert!(class.rank_order || !folds_in_rank_order(&notation), "{name}");
            // A single stage of all ranks is the sequential sum.
            assert!(class.sequential || notation.stages().len() > 1, "{name}");
            proofs += 1;
        }
    }
    assert!(proofs > 1000, "only {proofs} schedules");
}

#[test]
fn choices_at_other_ratios_are_verified() {
    for ranks in 2..=128 {
        for ratio in ["1", "2.5", "12", "100"] {
            let name = format!("recursive_multiplying:ratio={ratio}");
            proved(&name, Collective::AllReduce, ranks);
            proved(&name, Collective::Barrier, ranks);
        }
    }
}

#[test]
fn every_form_of_elimination() {
    for ranks in 2..=128 {
        for form in ["3-2", "3-2_overlapping", "2-1"] {
            let name = format!("elimination:{form}");
            let proof = proved(&name, Collective::AllReduce, ranks);
            assert!(proof.reproducibility.rank_order, "{name}");
            proved(&name, Collective::Barrier, ranks);
        }
    }
}
