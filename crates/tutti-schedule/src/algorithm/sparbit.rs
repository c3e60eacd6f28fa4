//! Sparbit: an all_gather over a binomial tree per shard, the longest distance first.
//!
//! Step i uses the distance d = 2^(L - 1 - i), with L = ceil(log2 N). Before the step a rank r
//! holds the shards r, r - 2d, r - 4d, ... (mod N), ceil(N / 2d) of them. It sends the first
//! ceil(N / d) - ceil(N / 2d) of these to r + d, one message per shard because they are not
//! contiguous, and receives r - d, r - 3d, ... from r - d. A shard that would be received twice is
//! not sent, so the bytes are minimal for every N. As in Bruck's algorithm the steps are
//! logarithmic, but the large steps are the last and reach the nearest ranks, and each shard is
//! received at its final position. Source: Loch and Koslovski, "Sparbit: a new logarithmic-cost and
//! data locality-aware MPI Allgather algorithm", SBAC-PAD (2021); Open MPI's `sparbit`.

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request, Stage};
use crate::{ChunkRange, Digit, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "sparbit",
    summary: "all_gather in log N steps for any rank count; most bytes to the nearest ranks, no copies",
    source: "Loch and Koslovski 2021; Open MPI",
    argument: "",
    collectives: &["all_gather"],
    ranks: "any",
    claims: |request| request.ranks >= 2,
    build,
    critical_path,
};

struct Sparbit {
    shape: Shape,
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    Ok(Arc::new(Sparbit { shape: request.shape(ENTRY.name, request.ranks, 1) }))
}

/// Returns ceil(log2 N).
fn steps(ranks: u32) -> u32 {
    (ranks - 1).checked_ilog2().map_or(0, |log| log + 1)
}

/// Returns the distance of a step, and the number of shards sent.
fn reach(ranks: u32, step: u32) -> (u32, u32) {
    let distance = 1 << (steps(ranks) - 1 - step);
    (distance, ranks.div_ceil(distance) - ranks.div_ceil(2 * distance))
}

/// All ranks act alike and stay synchronised.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let of = request.ranks;
    let stage = |step| {
        let (_, messages) = reach(of, step);
        Stage { messages, receives: messages, chunks: 1, reductions: 0, of }
    };
    Some((0..steps(of)).map(stage).collect())
}

impl Schedule for Sparbit {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        steps(self.shape.ranks)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let n = self.shape.ranks;
        let back = |from: u32, by: u32| if from >= by { from - by } else { from + n - by };
        let (distance, messages) = reach(n, step);
        let (to, from) = (RankId(back(rank.0, n - distance)), RankId(back(rank.0, distance)));
        let (mut sent, mut received) = (rank.0, from.0);
        // Shards are two distances apart; with one message there is no second one.
        let stride = if messages > 1 { 2 * distance } else { 0 };
        for _ in 0..messages {
            out.send(to, Slot::DATA, ChunkRange::one(sent));
            out.recv(from, Slot::DATA, ChunkRange::one(received));
            (sent, received) = (back(sent, stride), back(received, stride));
        }
    }

    fn symmetry(&self) -> Option<Vec<Digit>> {
        Some(vec![Digit { stride: 1, size: self.shape.ranks }])
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        format!("distance {}", reach(self.shape.ranks, step).0)
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
    fn the_critical_path_is_exact_at_every_rank_count() {
        for ranks in 2..=80 {
            assert!(check::critical_path_is_exact(ENTRY.name, Collective::AllGather, ranks));
        }
    }

    #[test]
    fn every_rank_sends_alike() {
        for ranks in [2, 5, 6, 16, 23] {
            assert!(check::is_symmetric(ENTRY.name, Collective::AllGather, ranks));
        }
    }

    /// Every rank receives every other shard once, in ceil(log2 N) steps.
    #[test]
    fn no_shard_is_received_twice() {
        for ranks in 2..=300 {
            let sent: u32 = (0..steps(ranks)).map(|step| reach(ranks, step).1).sum();
            assert_eq!(sent, ranks - 1, "{ranks} ranks");
            assert!(1 << steps(ranks) >= ranks && 1 << (steps(ranks) - 1) < ranks);
        }
    }

    /// The shards that rank 0 of 6 receives: 2 from a distance of 4, 4 from 2, then 5, 3 and 1.
    #[test]
    fn the_shards_of_six_ranks() {
        let schedule = crate::algorithm::build(ENTRY.name, Collective::AllGather, 6).unwrap();
        let mut out = Step::new();
        for (step, (from, shards)) in (0..).zip([(2, vec![2]), (4, vec![4]), (5, vec![5, 3, 1])]) {
            out.clear();
            schedule.step(RankId(0), step, &mut out);
            let found: Vec<_> = out.recvs.iter().map(|recv| recv.chunks.start).collect();
            assert_eq!((out.recvs[0].peer.0, found), (from, shards));
        }
    }
}
