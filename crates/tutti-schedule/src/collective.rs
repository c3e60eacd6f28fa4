//! The collectives: what each rank holds before, and what it must hold after.
//!
//! A payload of size S is divided into equal chunks. Where a collective deals in shards, shard `r`
//! belongs to rank `r` and is a run of `chunks / ranks` chunks. Size convention (that of nccl-tests):
//! all_reduce, broadcast and reduce: S is the bytes of one rank's buffer; all_gather, reduce_scatter,
//! gather and scatter: S is the **total**, ranks x shard; all_to_all: S is what one rank sends, its
//! own part included; barrier: S is zero.

use tutti_units::ids::RankId;

/// A collective operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
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
    /// No rank leaves before every rank has entered.
    Barrier,
}

/// The original content of a chunk: what `origin` held at position `chunk` before the collective.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Contribution {
    /// The rank that held it.
    pub origin: RankId,
    /// Where in that rank's buffer.
    pub chunk: u32,
}

/// What a position of the result must hold after the collective.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the only field is the chunk of the contributions")]
pub enum Wanted {
    /// Nothing in particular.
    Anything,
    /// Exactly this one contribution.
    One(Contribution),
    /// The reduction of this chunk of every rank, each exactly once.
    SumOfAll { chunk: u32 },
    /// Something from every rank, however often (a barrier's token).
    FromAll { chunk: u32 },
}

impl Collective {
    /// Every collective, rooted ones at rank 0.
    pub const ALL: [Collective; 9] = [
        Collective::AllReduce,
        Collective::ReduceScatter,
        Collective::AllGather,
        Collective::Broadcast { root: RankId(0) },
        Collective::Reduce { root: RankId(0) },
        Collective::Gather { root: RankId(0) },
        Collective::Scatter { root: RankId(0) },
        Collective::AllToAll,
        Collective::Barrier,
    ];

    /// The field's name in snake case.
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
            Collective::Barrier => "barrier",
        }
    }

    /// The collective of that name, rooted ones at `root`.
    #[must_use]
    pub fn from_name(name: &str, root: RankId) -> Option<Collective> {
        Self::ALL.into_iter().find(|c| c.name() == name).map(|c| c.with_root(root))
    }

    /// The same collective with another root; unrooted ones stay as they are.
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

    /// The root, where there is one.
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

    /// Whether the payload is divided into one shard per rank.
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

    /// Whether values of different ranks are combined.
    #[must_use]
    pub fn reduces(self) -> bool {
        matches!(
            self,
            Collective::AllReduce | Collective::ReduceScatter | Collective::Reduce { .. }
        )
    }

    /// What `rank` holds at position `chunk` of its data slot before the collective (the precondition).
    #[must_use]
    pub fn before(self, rank: RankId, chunk: u32, ranks: u32, chunks: u32) -> Option<Contribution> {
        let own = Some(Contribution { origin: rank, chunk });
        match self {
            Collective::AllReduce
            | Collective::ReduceScatter
            | Collective::Reduce { .. }
            | Collective::AllToAll
            | Collective::Barrier => own,
            Collective::AllGather | Collective::Gather { .. } => {
                own.filter(|_| owner(chunk, ranks, chunks) == rank)
            }
            Collective::Broadcast { root } | Collective::Scatter { root } => {
                own.filter(|_| rank == root)
            }
        }
    }

    /// What `rank` must hold at position `chunk` of its result slot afterwards (the postcondition).
    #[must_use]
    pub fn after(self, rank: RankId, chunk: u32, ranks: u32, chunks: u32) -> Wanted {
        let shard = |of: u32| owner(of, ranks, chunks);
        let one = |origin, chunk| Wanted::One(Contribution { origin, chunk });
        match self {
            Collective::AllReduce => Wanted::SumOfAll { chunk },
            Collective::Barrier => Wanted::FromAll { chunk },
            Collective::AllGather => one(shard(chunk), chunk),
            Collective::Broadcast { root } => one(root, chunk),
            Collective::Reduce { root } if rank == root => Wanted::SumOfAll { chunk },
            Collective::Gather { root } if rank == root => one(shard(chunk), chunk),
            Collective::ReduceScatter if shard(chunk) == rank => Wanted::SumOfAll { chunk },
            Collective::Scatter { root } if shard(chunk) == rank => one(root, chunk),
            Collective::AllToAll => {
                let per_shard = chunks / ranks;
                one(shard(chunk), rank.0 * per_shard + chunk % per_shard)
            }
            _ => Wanted::Anything,
        }
    }

    /// busbw = algbw x this factor (nccl-tests, `doc/PERFORMANCE.md`).
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

/// The rank whose shard holds `chunk`.
fn owner(chunk: u32, ranks: u32, chunks: u32) -> RankId {
    RankId(chunk / (chunks / ranks).max(1))
}
