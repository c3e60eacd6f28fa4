//! K-ring: rings in groups of K ranks that alternate with a ring across the groups.
//!
//! Rank i of group a is a K + i, and there are g = N / K groups. In an all_gather, block j of the
//! steps gathers the shards of group a - j in group a. In the K - 1 intra-group steps of a block
//! these shards travel around the ring of the group. In the inter-group step after every block but
//! the last, rank i sends shard i of group a - j to rank i of group a + 1. All shards of a group
//! thus enter every other group once, in N - K messages, where the ring has N - 1. There are
//! g (K - 1) + g - 1 = N - 1 steps, as in the ring, and each message has one shard. A reduce_scatter
//! is the same backwards in time, towards the left, with a fold per step, so that both send to the
//! right. An all_reduce is both. With K = 1 or K = N it is the ring. Source: Wilkins et al.,
//! "Generalized collective algorithms for the exascale era", IEEE CLUSTER (2023).

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request, ring};
use crate::collective::Collective;
use crate::{ChunkRange, Digit, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "k_ring",
    summary: "rings in groups of K ranks alternate with a ring across groups; fewest bytes between groups",
    source: "Wilkins et al. 2023 (CLUSTER)",
    argument: "K, the ranks of a group, a divisor of the rank count (default: its largest divisor up to the square \
               root)",
    collectives: &["all_reduce", "reduce_scatter", "all_gather"],
    ranks: "composite; any multiple of K, if given",
    claims: |request| request.ranks >= 2 && group(request).is_ok(),
    build,
    // All ranks act alike and stay synchronised, as in a ring.
    critical_path: |request| {
        group(request).ok()?;
        (ring::ENTRY.critical_path)(&Request { argument: None, ..*request })
    },
};

/// Returns K.
fn group(request: &Request) -> Result<u32, AlgorithmError> {
    if request.argument.is_none() {
        return Ok(request.near_square(ENTRY.name)?[0]);
    }
    let not_a_number = "expected the ranks of a group, such as `k_ring:4`";
    let size = request.number(ENTRY.name, 1, 1, [not_a_number; 2])?;
    if !request.ranks.is_multiple_of(size) {
        let problem = format!(
            "all groups have K ranks, but {} ranks are not groups of {size}: expected a divisor of {0}",
            request.ranks
        );
        return Err(request.refuse(ENTRY.name, 0, problem));
    }
    Ok(size)
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let size = group(request)?;
    let slots = if request.collective.reduces() { 2 } else { 1 };
    let shape = request.shape(ENTRY.name, request.ranks, slots);
    Ok(Arc::new(KRing { shape, size, groups: request.ranks / size }))
}

struct KRing {
    shape: Shape,
    /// K.
    size: u32,
    groups: u32,
}

/// A step of an all_gather: the same on all ranks.
enum Hop {
    /// The block, and the step of the ring in the group.
    Intra(u32, u32),
    /// The block that the group passes on.
    Inter(u32),
}

impl KRing {
    fn per_phase(&self) -> u32 {
        self.shape.ranks - 1
    }

    /// Returns the step of an all_gather that `step` is, and whether it is one of a reduce_scatter,
    /// which goes backwards.
    fn hop(&self, step: u32) -> (Hop, bool) {
        let reduces = self.shape.collective.reduces() && step < self.per_phase();
        let forward = if reduces { self.per_phase() - 1 - step } else { step % self.per_phase() };
        let (block, place) = (forward / self.size, forward % self.size);
        let intra = place + 1 < self.size;
        (if intra { Hop::Intra(block, place) } else { Hop::Inter(block) }, reduces)
    }

    /// Returns the rank at `index` of a group; both wrap around.
    fn rank(&self, group: u32, index: u32) -> u32 {
        group % self.groups * self.size + index % self.size
    }
}

impl Schedule for KRing {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        let phases = if self.shape.collective == Collective::AllReduce { 2 } else { 1 };
        phases * self.per_phase()
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let (size, groups) = (self.size, self.groups);
        let (group, index) = (rank.0 / size, rank.0 % size);
        let (hop, reduces) = self.hop(step);
        // The ranks are the same forwards and backwards; the shards are on the other side.
        let (left, right, sent, received) = match hop {
            Hop::Intra(block, place) => {
                let (left, right) = (index + size - 1, index + 1);
                let [sent, received] = if reduces {
                    [right + place, index + place].map(|at| self.rank(group + block, at))
                } else {
                    [index, left].map(|at| self.rank(group + groups - block, at + size - place))
                };
                (self.rank(group, left), self.rank(group, right), sent, received)
            }
            Hop::Inter(block) => {
                let (left, right) = (group + groups - 1, group + 1);
                let [sent, received] = if reduces {
                    [right + block, group + block]
                } else {
                    [group, left].map(|at| at + groups - block)
                };
                let at = |group| self.rank(group, index);
                (at(left), at(right), at(sent), at(received))
            }
        };
        out.send(RankId(right), Slot::DATA, ChunkRange::one(sent));
        if reduces {
            out.fold_in(RankId(left), ChunkRange::one(received));
        } else {
            out.recv(RankId(left), Slot::DATA, ChunkRange::one(received));
        }
    }

    fn symmetry(&self) -> Option<Vec<Digit>> {
        let digits =
            [Digit { stride: 1, size: self.size }, Digit { stride: self.size, size: self.groups }];
        Some(digits.into_iter().filter(|digit| digit.size > 1).collect())
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        let (hop, reduces) = self.hop(step);
        let phase = if reduces { "reduce_scatter" } else { "all_gather" };
        match hop {
            Hop::Intra(block, place) => format!("{phase} {block}: in groups {place}"),
            Hop::Inter(block) => format!("{phase} {block}: across groups"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{build as lay_out, check};

    const KINDS: [Collective; 3] =
        [Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather];

    fn divisors(ranks: u32) -> impl Iterator<Item = u32> {
        (1..=ranks).filter(move |size| ranks.is_multiple_of(*size))
    }

    #[test]
    fn it_does_what_it_claims_for_every_group_size() {
        for ranks in 2..=48 {
            check::claims(&ENTRY, ENTRY.name, ranks);
            for size in divisors(ranks) {
                check::claims(&ENTRY, &format!("k_ring:{size}"), ranks);
            }
        }
    }

    #[test]
    fn one_group_and_groups_of_one_are_the_ring() {
        for (kind, ranks) in KINDS.into_iter().flat_map(|kind| [2, 3, 8, 13].map(|n| (kind, n))) {
            let ring = lay_out("ring", kind, ranks).unwrap();
            for size in [1, ranks] {
                let grouped = lay_out(&format!("k_ring:{size}"), kind, ranks).unwrap();
                check::same_steps(&*grouped, &*ring);
            }
        }
    }

    #[test]
    fn the_critical_path_is_exact_and_every_rank_sends_alike() {
        for (kind, ranks) in KINDS.into_iter().flat_map(|kind| (2..=24).map(move |n| (kind, n))) {
            for notation in divisors(ranks).map(|size| format!("k_ring:{size}")) {
                assert!(check::critical_path_is_exact(&notation, kind, ranks));
                assert!(check::is_symmetric(&notation, kind, ranks));
            }
        }
    }

    /// Each group of K sends N - K shards to the next group and none to any other; a ring sends
    /// N - 1.
    #[test]
    fn groups_send_every_foreign_shard_once() {
        for (size, ranks) in [(3, 12), (4, 12), (6, 12), (2, 14)] {
            let schedule =
                lay_out(&format!("k_ring:{size}"), Collective::AllGather, ranks).unwrap();
            let (mut out, mut crossing) = (Step::new(), vec![0; (ranks / size) as usize]);
            for (rank, step) in (0..ranks).flat_map(|rank| (0..ranks - 1).map(move |s| (rank, s))) {
                out.clear();
                schedule.step(RankId(rank), step, &mut out);
                let group = out.sends[0].peer.0 / size;
                if group != rank / size {
                    assert_eq!(group, (rank / size + 1) % (ranks / size));
                    crossing[group as usize] += 1;
                }
            }
            assert_eq!(crossing, vec![ranks - size; (ranks / size) as usize]);
        }
    }

    #[test]
    fn other_group_sizes_are_refused() {
        let refused = |notation: &str, ranks| {
            lay_out(notation, Collective::AllGather, ranks).err().unwrap().to_string()
        };
        assert_eq!(
            refused("k_ring:3", 8),
            "`3` does not fit k_ring: all groups have K ranks, but 8 ranks are not groups of 3: expected a divisor of 8"
        );
        assert_eq!(
            refused("k_ring:x", 8),
            "`x` does not fit k_ring: expected the ranks of a group, such as `k_ring:4`"
        );
        assert!(refused("k_ring:0", 8).contains("expected the ranks of a group"));
        assert_eq!(
            refused("k_ring", 7),
            "k_ring does not work on 7 ranks: it needs a composite number"
        );
    }
}
