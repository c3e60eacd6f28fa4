//! Neighbor exchange: an all_gather in which every rank exchanges with its two neighbours in turn.
//!
//! The ranks 2p and 2p + 1 form pair p. In the first step the ranks of a pair exchange their
//! shards. In every later step a rank sends one neighbour the two shards of the pair that it
//! received last, and receives those of another pair from it. The even rank of a pair exchanges
//! with r - 1 in odd steps and with r + 1 in even ones, the odd rank vice versa. This takes N/2
//! steps, where a ring takes N - 1, and the fewest bytes. Each rank communicates only with its
//! neighbours, so it needs an even number of ranks. Source: Chen, Zhang, Zhang and Li, "Performance
//! evaluation of allgather algorithms on terascale Linux cluster with fast Ethernet", HPC Asia
//! (2005); Open MPI's `neighbor` all_gather.

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request, Stage};
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "neighbor_exchange",
    summary: "all_gather between neighbours; two shards per message, half the steps of a ring",
    source: "Chen et al. 2005; Open MPI",
    argument: "",
    collectives: &["all_gather"],
    ranks: "even",
    claims: |request| request.ranks >= 2 && request.ranks.is_multiple_of(2),
    build,
    critical_path,
};

struct NeighborExchange {
    shape: Shape,
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    if !request.ranks.is_multiple_of(2) {
        return Err(request.wrong_ranks(ENTRY.name, "an even number"));
    }
    Ok(Arc::new(NeighborExchange { shape: request.shape(ENTRY.name, request.ranks, 1) }))
}

/// All ranks act alike and stay synchronised.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let of = request.ranks;
    let stage = |chunks| Stage { messages: 1, receives: 1, chunks, reductions: 0, of };
    let later = std::iter::repeat_n(stage(2), (of / 2 - 1) as usize);
    Some(std::iter::once(stage(1)).chain(later).collect())
}

impl NeighborExchange {
    /// Returns the pair whose shards a rank receives in a step after the first: those of pairs on
    /// either side, at increasing distance. Step 0 completes the rank's pair.
    fn received(&self, rank: RankId, step: u32) -> ChunkRange {
        let pairs = self.shape.ranks / 2;
        let (pair, distance) = (rank.0 / 2, step.div_ceil(2));
        let pair = if is_upward(rank, step) { pair + distance } else { pair + pairs - distance };
        let pair = if pair >= pairs { pair - pairs } else { pair };
        ChunkRange::new(2 * pair, 2 * pair + 2)
    }
}

/// Returns whether a rank exchanges with the next rank, and not with the previous one.
fn is_upward(rank: RankId, step: u32) -> bool {
    (rank.0 + step).is_multiple_of(2)
}

impl Schedule for NeighborExchange {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        self.shape.ranks / 2
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let n = self.shape.ranks;
        let wrap = |value: u32| if value >= n { value - n } else { value };
        let peer = RankId(wrap(rank.0 + if is_upward(rank, step) { 1 } else { n - 1 }));
        let (sent, received) = match step {
            0 => (ChunkRange::one(rank.0), ChunkRange::one(peer.0)),
            _ => (self.received(rank, step - 1), self.received(rank, step)),
        };
        out.trade(peer, Slot::DATA, sent, received);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;
    use crate::collective::Collective;

    #[test]
    fn it_does_what_it_claims_at_every_rank_count() {
        for ranks in 2..=128 {
            check::claims(&ENTRY, ENTRY.name, ranks);
        }
    }

    #[test]
    fn the_critical_path_is_exact_at_every_even_rank_count() {
        for ranks in (2..=40).step_by(2) {
            assert!(check::critical_path_is_exact(ENTRY.name, Collective::AllGather, ranks));
        }
    }

    /// The steps of ranks 0 and 1 of 6: peer, first shard sent and first shard received.
    #[test]
    fn pairs_travel_in_both_directions() {
        let schedule = crate::algorithm::build(ENTRY.name, Collective::AllGather, 6).unwrap();
        let mut out = Step::new();
        for (rank, expected) in
            [(0, [(1, 0, 1), (5, 0, 4), (1, 4, 2)]), (1, [(0, 1, 0), (2, 0, 2), (0, 2, 4)])]
        {
            for (step, expected) in (0..).zip(expected) {
                out.clear();
                schedule.step(RankId(rank), step, &mut out);
                let (sent, received) = (out.sends[0], out.recvs[0]);
                assert_eq!(sent.peer, received.peer);
                assert_eq!((sent.peer.0, sent.chunks.start, received.chunks.start), expected);
            }
        }
    }

    #[test]
    fn odd_rank_counts_are_refused() {
        let error = crate::algorithm::build(ENTRY.name, Collective::AllGather, 7).err().unwrap();
        let expected = "neighbor_exchange does not work on 7 ranks: it needs an even number";
        assert_eq!(error.to_string(), expected);
    }
}
