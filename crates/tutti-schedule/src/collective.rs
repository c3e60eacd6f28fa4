//! The collectives: the precondition and the postcondition of each rank.
//!
//! A payload of size S is divided into equal chunks. If a collective uses shards, shard `r` belongs
//! to rank `r` and is a range of `chunks / ranks` chunks. The size convention is that of
//! nccl-tests. For all_reduce, broadcast and reduce, S is the size of one rank's buffer. For
//! all_gather, reduce_scatter, gather and scatter, S is the **total**, ranks x shard. For
//! all_to_all, S is the size that one rank sends, including its part for itself. For all_to_all_v,
//! S is the size that the busiest rank sends, including its block for itself; its chunks are the
//! blocks ([`crate::Blocks`]). For barrier, S is zero.

use tutti_units::ids::RankId;

/// A collective operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[expect(missing_docs, reason = "the only field is the root")]
pub enum Collective {
    /// Every rank ends with the reduction of all ranks' buffers.
    AllReduce,
    /// Rank `r` ends with shard `r` of the reduction.
    ReduceScatter,
    /// Every rank ends with every rank's shard.
    AllGather,
    /// Every rank ends with the root's buffer.
    Broadcast { root: RankId },
    /// The root ends with the reduction.
    Reduce { root: RankId },
    /// The root ends with every rank's shard.
    Gather { root: RankId },
    /// Rank `r` ends with shard `r` of the root's buffer.
    Scatter { root: RankId },
    /// Rank `r` ends with shard `r` of every rank's buffer.
    AllToAll,
    /// As all_to_all, with a size per source and destination (`MPI_Alltoallv`).
    AllToAllV,
    /// No rank leaves before every rank has entered.
    Barrier,
}

/// The initial content of a chunk: the data of rank `origin` at position `chunk` before the
/// collective.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Contribution {
    /// The rank that held it.
    pub origin: RankId,
    /// The position in that rank's buffer.
    pub chunk: u32,
}

/// The required content of a position of the result after the collective.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the only field is the chunk of the contributions")]
pub enum Postcondition {
    /// No requirement.
    Anything,
    /// Exactly this one contribution.
    One(Contribution),
    /// The reduction of this chunk of every rank, each exactly once.
    SumOfAll { chunk: u32 },
    /// A contribution of every rank, at least once (a barrier's token).
    FromAll { chunk: u32 },
}

impl Collective {
    /// All collectives, rooted ones at rank 0.
    pub const ALL: [Collective; 10] = [
        Collective::AllReduce,
        Collective::ReduceScatter,
        Collective::AllGather,
        Collective::Broadcast { root: RankId(0) },
        Collective::Reduce { root: RankId(0) },
        Collective::Gather { root: RankId(0) },
        Collective::Scatter { root: RankId(0) },
        Collective::AllToAll,
        Collective::AllToAllV,
        Collective::Barrier,
    ];

    /// Returns the name in snake case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Collective::AllReduce => "all_reduce",
            Collective::ReduceScatter => "reduce_scatter",
            Collective::AllGather => "all_gather",
            Collective::Broadcast { .. } => "broadcast",
            Collective::Reduce { .. } => "reduce",
            Collective::Gather { .. } => "gather",
            Collective::Scatter { .. } => "scatter",
            Collective::AllToAll => "all_to_all",
            Collective::AllToAllV => "all_to_all_v",
            Collective::Barrier => "barrier",
        }
    }

    /// Returns the collective of that name, rooted ones at `root`.
    #[must_use]
    pub fn from_name(name: &str, root: RankId) -> Option<Collective> {
        Self::ALL.into_iter().find(|c| c.name() == name).map(|c| c.with_root(root))
    }

    /// Returns the same collective with another root; unrooted ones are unchanged.
    #[must_use]
    pub fn with_root(self, root: RankId) -> Collective {
        match self {
            Collective::Broadcast { .. } => Collective::Broadcast { root },
            Collective::Reduce { .. } => Collective::Reduce { root },
            Collective::Gather { .. } => Collective::Gather { root },
            Collective::Scatter { .. } => Collective::Scatter { root },
            other => other,
        }
    }

    /// Returns the root, if there is one.
    #[must_use]
    pub fn root(self) -> Option<RankId> {
        match self {
            Collective::Broadcast { root }
            | Collective::Reduce { root }
            | Collective::Gather { root }
            | Collective::Scatter { root } => Some(root),
            _ => None,
        }
    }

    /// Returns whether the payload is divided into one shard per rank.
    #[must_use]
    pub fn has_shards(self) -> bool {
        matches!(
            self,
            Collective::ReduceScatter
                | Collective::AllGather
                | Collective::Gather { .. }
                | Collective::Scatter { .. }
                | Collective::AllToAll
        )
    }

    /// Returns whether values of different ranks are combined.
    #[must_use]
    pub fn reduces(self) -> bool {
        matches!(
            self,
            Collective::AllReduce | Collective::ReduceScatter | Collective::Reduce { .. }
        )
    }

    /// Returns the content of position `chunk` of `rank`'s data slot before the collective (the
    /// precondition).
    #[must_use]
    pub fn before(self, rank: RankId, chunk: u32, ranks: u32, chunks: u32) -> Option<Contribution> {
        let own = Some(Contribution { origin: rank, chunk });
        match self {
            Collective::AllReduce
            | Collective::ReduceScatter
            | Collective::Reduce { .. }
            | Collective::AllToAll
            | Collective::Barrier => own,
            // The blocks from a rank are adjacent, as shards are.
            Collective::AllGather | Collective::Gather { .. } | Collective::AllToAllV => {
                own.filter(|_| owner(chunk, ranks, chunks) == rank)
            }
            Collective::Broadcast { root } | Collective::Scatter { root } => {
                own.filter(|_| rank == root)
            }
        }
    }

    /// Returns the required content of position `chunk` of `rank`'s result slot afterwards (the
    /// postcondition).
    #[must_use]
    pub fn after(self, rank: RankId, chunk: u32, ranks: u32, chunks: u32) -> Postcondition {
        let shard = |of: u32| owner(of, ranks, chunks);
        let one = |origin, chunk| Postcondition::One(Contribution { origin, chunk });
        match self {
            Collective::AllReduce => Postcondition::SumOfAll { chunk },
            Collective::Barrier => Postcondition::FromAll { chunk },
            Collective::AllGather => one(shard(chunk), chunk),
            Collective::Broadcast { root } => one(root, chunk),
            Collective::Reduce { root } if rank == root => Postcondition::SumOfAll { chunk },
            Collective::Gather { root } if rank == root => one(shard(chunk), chunk),
            Collective::ReduceScatter if shard(chunk) == rank => Postcondition::SumOfAll { chunk },
            Collective::Scatter { root } if shard(chunk) == rank => one(root, chunk),
            Collective::AllToAll => {
                let per_shard = chunks / ranks;
                one(shard(chunk), rank.0 * per_shard + chunk % per_shard)
            }
            Collective::AllToAllV if chunk % ranks == rank.0 => one(shard(chunk), chunk),
            _ => Postcondition::Anything,
        }
    }

    /// Returns busbw / algbw (nccl-tests, `doc/PERFORMANCE.md`).
    #[must_use]
    pub fn busbw_factor(self, ranks: u32) -> f64 {
        let n = f64::from(ranks);
        match self {
            Collective::AllReduce => 2.0 * (n - 1.0) / n,
            Collective::Broadcast { .. } | Collective::Reduce { .. } | Collective::Barrier => 1.0,
            _ => (n - 1.0) / n,
        }
    }
}

impl std::fmt::Display for Collective {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns the rank of the shard that contains `chunk`.
fn owner(chunk: u32, ranks: u32, chunks: u32) -> RankId {
    RankId(chunk / (chunks / ranks).max(1))
}
