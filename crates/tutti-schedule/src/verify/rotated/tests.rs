//! The verifier of rank 0 compared with that of all ranks.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::{verify_all, verify_fast};
use super::*;
use crate::Shape;
use crate::algorithm::{REGISTRY, build};

/// Whenever rank 0 is executed only, the result is that of all ranks.
#[test]
fn rank_0_represents_all_ranks() {
    let mut rotated = BTreeSet::new();
    let more = ["ring:backward", "ring:bidirectional", "ring:segments=3", "ring:blockwise"];
    for notation in REGISTRY.iter().map(|entry| entry.name).chain(more) {
        for collective in Collective::ALL {
            for ranks in [2, 3, 4, 5, 8, 12, 17] {
                let Ok(schedule) = build(notation, collective, ranks) else { continue };
                if let Some(found) = verify(&*schedule) {
                    let all = verify_all(&*schedule);
                    assert_eq!(Ok(found), all, "{notation}, {collective}, {ranks} ranks");
                    rotated.insert((notation, collective.name()));
                }
            }
        }
    }
    for expected in ["all_reduce", "reduce_scatter", "all_gather"] {
        assert!(rotated.contains(&("ring", expected)), "{expected}: {rotated:?}");
    }
    assert!(rotated.len() > 8, "{rotated:?}");
}

/// A ring whose steps are altered, at one rank or at all.
struct Altered {
    inner: Arc<dyn Schedule>,
    rank: Option<u32>,
    index: u32,
    alter: fn(&mut Step),
}

impl Schedule for Altered {
    fn shape(&self) -> &Shape {
        self.inner.shape()
    }

    fn steps(&self, rank: RankId) -> u32 {
        self.inner.steps(rank)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        self.inner.step(rank, step, out);
        if step == self.index && self.rank.is_none_or(|altered| altered == rank.0) {
            (self.alter)(out);
        }
    }

    fn symmetry(&self) -> Option<Vec<Digit>> {
        self.inner.symmetry()
    }
}

const ALTER: [fn(&mut Step); 9] = [
    |step| _ = step.sends.pop(),
    |step| _ = step.recvs.pop(),
    |step| step.locals.clear(),
    |step| step.sends.extend_from_within(..),
    |step| step.sends[0].slot = Slot(1),
    |step| step.recvs[0].chunks = step.sends[0].chunks,
    |step| std::mem::swap(&mut step.sends[0].chunks, &mut step.recvs[0].chunks),
    |step| step.sends[0].chunks = ChunkRange::new(0, 0),
    |step| {
        let chunks = step.recvs[0].chunks;
        step.reduce(Slot::DATA, [Slot::DATA, Slot(1)], chunks);
    },
];

/// Whatever is wrong, and wherever, is found.
#[test]
fn altered_rings_have_the_result_of_all_ranks() {
    let ring = build("ring", Collective::AllReduce, 5).unwrap();
    for alter in ALTER {
        for index in 0..8 {
            for rank in [None, Some(0), Some(1), Some(4)] {
                let altered = Altered { inner: Arc::clone(&ring), rank, index, alter };
                assert_eq!(verify_fast(&altered), verify_all(&altered), "{index} {rank:?}");
            }
        }
    }
}
