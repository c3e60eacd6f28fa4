//! Scatter-destination: an all_to_all that posts the messages to a batch of peers at once.
//!
//! Rank r sends to r - 1, r - 2, ... r - (N - 1) and receives from r + 1, r + 2, ... (mod N), so
//! that no two ranks start with the same peer. It posts B of these at a time and waits for them, so
//! that no rank receives more than B messages at once. Compare [`direct`](super::direct), which
//! posts all N - 1 at once (B >= N - 1 sends the same in the opposite direction), and
//! [`pairwise`](super::pairwise), which posts one (B = 1 is its shifted form, backwards, for every
//! rank count). Works out of place; a rank's part for itself is copied in the first batch. Source:
//! MPICH's "scattered" all_to_all with its throttle B, 32 by default, which counts the rank's part
//! for itself in the first batch; Thakur, Rabenseifner and Gropp, "Optimization of collective
//! communication operations in MPICH", IJHPCA 19 (2005).

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request, Stage, unequal};
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "scatter_destination",
    summary: "all_to_all in batches of B peers; fewest bytes, at most B messages to a rank at once",
    source: "MPICH; Thakur, Rabenseifner and Gropp 2005",
    argument: "B, the number of peers per batch; default 32",
    collectives: &["all_to_all", "all_to_all_v"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && batch(request).is_ok(),
    build,
    critical_path,
};

/// The default of MPICH's throttle.
const BATCH: u32 = 32;
const RESULT: Slot = Slot(1);

fn batch(request: &Request) -> Result<u32, AlgorithmError> {
    let not_a_number = "expected the number of peers per batch, an integer of at least 1, \
                     such as `scatter_destination:4`";
    request.number(ENTRY.name, BATCH, 1, ["a batch has at least 1 peer", not_a_number])
}

struct ScatterDestination {
    shape: Shape,
    batch: u32,
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    if request.collective == Collective::AllToAllV {
        return unequal::build(&ENTRY, request, None);
    }
    let shape = Shape { result: RESULT, ..request.shape(ENTRY.name, request.ranks, 2) };
    Ok(Arc::new(ScatterDestination { shape, batch: batch(request)?.min(request.ranks - 1) }))
}

/// All ranks act alike and stay synchronised.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    if request.collective == Collective::AllToAllV {
        return None;
    }
    let (batch, of) = (batch(request).ok()?, request.ranks);
    let stage = |done: u32| {
        let messages = batch.min(of - 1 - done);
        Stage { messages, receives: messages, chunks: 1, reductions: 0, of }
    };
    Some((0..of - 1).step_by(batch as usize).map(stage).collect())
}

impl Schedule for ScatterDestination {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        (self.shape.ranks - 1).div_ceil(self.batch)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let n = self.shape.ranks;
        let wrap = |value: u32| if value >= n { value - n } else { value };
        let first = step * self.batch + 1;
        for distance in first..n.min(first + self.batch) {
            let to = wrap(rank.0 + n - distance);
            let from = wrap(rank.0 + distance);
            // Shard `rank` of the peer's buffer becomes shard `from` of the result.
            out.send(RankId(to), Slot::DATA, ChunkRange::one(to));
            out.recv(RankId(from), RESULT, ChunkRange::one(from));
        }
        if step == 0 {
            out.copy(Slot::DATA, ChunkRange::one(rank.0), RESULT, rank.0);
        }
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        format!("batch {step}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;

    #[test]
    fn it_does_what_it_claims_at_every_rank_count_and_in_every_batch() {
        for ranks in 2..=128 {
            for batch in ["", ":1", ":5", ":200", ":4294967295"] {
                check::claims(&ENTRY, &format!("{}{batch}", ENTRY.name), ranks);
            }
        }
    }

    #[test]
    fn the_critical_path_is_exact_at_every_rank_count() {
        for ranks in 2..=80 {
            for batch in ["", ":1", ":3", ":7"] {
                let notation = format!("{}{batch}", ENTRY.name);
                assert!(check::critical_path_is_exact(&notation, Collective::AllToAll, ranks));
            }
        }
    }

    #[test]
    fn no_rank_receives_more_than_a_batch_at_once() {
        let schedule = crate::algorithm::build("scatter_destination:4", Collective::AllToAll, 11);
        let (schedule, mut out) = (schedule.unwrap(), Step::new());
        for (step, expected) in (0..).zip([4, 4, 2]) {
            let mut sent_to = [0; 11];
            for rank in (0..11).map(RankId) {
                out.clear();
                schedule.step(rank, step, &mut out);
                out.sends.iter().for_each(|message| sent_to[message.peer.index()] += 1);
            }
            assert_eq!(sent_to, [expected; 11]);
        }
        assert_eq!(schedule.steps(RankId(3)), 3);
    }

    #[test]
    fn invalid_batches_are_refused() {
        for (argument, at) in [("0", 0), (" x", 1), ("", 0), ("-2", 0)] {
            let notation = format!("scatter_destination:{argument}");
            let error = crate::algorithm::build(&notation, Collective::AllToAll, 8).err().unwrap();
            assert!(matches!(error, AlgorithmError::Argument { at: found, .. } if found == at));
        }
    }
}
