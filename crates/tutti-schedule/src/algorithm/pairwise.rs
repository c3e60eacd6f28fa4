//! Pairwise: every rank exchanges with one partner at a time.
//!
//! n - 1 steps, each with one message of 1/n of the payload. In an all_to_all the message is the
//! part for the partner. In a reduce_scatter it is the partner's shard, which the partner folds
//! immediately. In an all_gather it is the rank's shard. In step i, counted from 1, rank r
//! exchanges with r xor i if the rank count is a power of two; otherwise it sends to r + i and
//! receives from r - i (mod n). In both cases a step is a permutation of the ranks, so no rank
//! receives two messages at once. all_to_all works out of place; a rank's part for itself is copied
//! in the first step. Source: Thakur, Rabenseifner and Gropp, "Optimization of collective
//! communication operations in MPICH", IJHPCA 19 (2005).

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request, Stage, unequal};
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "pairwise",
    summary: "exchanges with one partner per step; fewest bytes, no rank receives two messages at once",
    source: "Thakur, Rabenseifner and Gropp 2005",
    argument: "",
    collectives: &["reduce_scatter", "all_gather", "all_to_all", "all_to_all_v"],
    ranks: "any",
    claims: |request| request.ranks >= 2,
    build,
    critical_path,
};

/// The result slot of an all_to_all, and the receive slot of a reduce_scatter.
const RESULT: Slot = Slot(1);
const SCRATCH: Slot = Slot(1);

struct Pairwise {
    shape: Shape,
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    if request.collective == Collective::AllToAllV {
        return unequal::build(&ENTRY, request, None);
    }
    let slots = if request.collective == Collective::AllGather { 1 } else { 2 };
    let result = if request.collective == Collective::AllToAll { RESULT } else { Slot::DATA };
    let shape = Shape { result, ..request.shape(ENTRY.name, request.ranks, slots) };
    Ok(Arc::new(Pairwise { shape }))
}

/// All ranks act alike and stay synchronised.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    if request.collective == Collective::AllToAllV {
        return None;
    }
    let reductions = u32::from(request.collective.reduces());
    let stage = Stage { messages: 1, receives: 1, chunks: 1, reductions, of: request.ranks };
    Some(vec![stage; (request.ranks - 1) as usize])
}

impl Pairwise {
    /// Returns the destination and the source of `rank` in this step.
    fn peers(&self, rank: RankId, step: u32) -> (RankId, RankId) {
        let (n, distance) = (self.shape.ranks, step + 1);
        if n.is_power_of_two() {
            let partner = RankId(rank.0 ^ distance);
            return (partner, partner);
        }
        let wrap = |value: u32| if value >= n { value - n } else { value };
        (RankId(wrap(rank.0 + distance)), RankId(wrap(rank.0 + n - distance)))
    }
}

impl Schedule for Pairwise {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        self.shape.ranks - 1
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let (to, from) = self.peers(rank, step);
        let shard = |of: RankId| ChunkRange::one(of.0);
        match self.shape.collective {
            Collective::AllGather => {
                out.send(to, Slot::DATA, shard(rank));
                out.recv(from, Slot::DATA, shard(from));
            }
            Collective::ReduceScatter => {
                out.send(to, Slot::DATA, shard(to));
                out.recv(from, SCRATCH, shard(rank));
                out.reduce(Slot::DATA, [Slot::DATA, SCRATCH], shard(rank));
            }
            // Shard `rank` of the peer's buffer becomes shard `from` of the result.
            _ => {
                out.send(to, Slot::DATA, shard(to));
                out.recv(from, RESULT, shard(from));
                if step == 0 {
                    out.copy(Slot::DATA, shard(rank), RESULT, rank.0);
                }
            }
        }
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        let how = if self.shape.ranks.is_power_of_two() { "xor" } else { "shift by" };
        format!("{how} {}", step + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;

    #[test]
    fn it_does_what_it_claims_at_every_rank_count() {
        for ranks in 2..=128 {
            check::claims(&ENTRY, ENTRY.name, ranks);
        }
    }

    #[test]
    fn the_critical_path_is_exact_at_every_rank_count() {
        for ranks in 2..=40 {
            assert!(check::critical_path_is_exact(ENTRY.name, Collective::AllToAll, ranks));
            assert!(check::critical_path_is_exact(ENTRY.name, Collective::AllGather, ranks));
            assert!(check::critical_path_is_exact(ENTRY.name, Collective::ReduceScatter, ranks));
        }
    }

    #[test]
    fn no_rank_receives_two_messages_in_one_step() {
        for ranks in [2, 3, 6, 7, 8, 16] {
            let schedule =
                crate::algorithm::build(ENTRY.name, Collective::AllToAll, ranks).unwrap();
            let mut out = Step::new();
            for step in 0..ranks - 1 {
                let mut sent_to = Vec::new();
                for rank in 0..ranks {
                    out.clear();
                    schedule.step(RankId(rank), step, &mut out);
                    sent_to.extend(out.sends.iter().map(|message| message.peer.0));
                }
                sent_to.sort_unstable();
                assert_eq!(sent_to, (0..ranks).collect::<Vec<_>>(), "{ranks} ranks, step {step}");
            }
        }
    }
}
