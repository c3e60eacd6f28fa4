//! Bytes that any schedule of a collective moves.
//!
//! Ranks of a group of n NPUs hold S bytes each. These bytes are needed by any schedule:
//!
//! - all_reduce: S leave and enter each rank; across k blocks of ranks 2 (k - 1) S (Harary and
//!   Schwenk 1974, see docs/models/lower-bounds.md);
//! - reduce_scatter, all_gather: (k - 1) S across k blocks;
//! - all_to_all: g (k - 1) S across k blocks of g ranks.
//!
//! Sizes follow [`tutti_schedule::collective`].

use tutti_schedule::collective::Collective;
use tutti_units::Bytes;

use super::real;

/// Bytes that each rank moves at least.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Needs {
    /// Bytes that leave each rank because of its data.
    pub(super) leaves: f64,
    /// Bytes that enter each rank before its result is complete.
    pub(super) enters: f64,
    /// Bytes that a rank sends, averaged over the ranks.
    pub(super) sends: f64,
    /// Bytes that a rank reads from its memory to send them, averaged over the ranks: all but those
    /// that it has reduced completely.
    pub(super) reads: f64,
}

impl Needs {
    /// The bytes of a collective of `size` bytes among `ranks` NPUs; none for another transfer.
    pub(super) fn of(collective: Option<Collective>, ranks: u64, size: Bytes) -> Needs {
        let all = real(size.0.into());
        let most = real(u128::from(size.0) * u128::from(ranks.max(1) - 1)) / real(ranks.into());
        let shard = all / real(ranks.into());
        let (leaves, enters, sends) = match collective {
            Some(Collective::AllReduce) => (all, all, 2.0 * most),
            Some(Collective::ReduceScatter) => (most, shard, most),
            Some(Collective::AllGather) => (shard, most, most),
            Some(Collective::AllToAll) => (most, most, most),
            _ => return Needs::default(),
        };
        Needs { leaves, enters, sends, reads: most }
    }
}

/// Bytes between `blocks` blocks of ranks of one group, summed over its messages.
pub(super) fn across(collective: Option<Collective>, blocks: u64, ranks: u64, size: Bytes) -> u128 {
    let times = match collective {
        Some(Collective::AllReduce) => 2,
        Some(Collective::ReduceScatter | Collective::AllGather) => 1,
        Some(Collective::AllToAll) => ranks / blocks.max(1),
        _ => 0,
    };
    u128::from(times).saturating_mul(blocks.saturating_sub(1).into()).saturating_mul(size.0.into())
}

/// Bytes that leave `blocks` blocks of ranks of one group if switches multicast and reduce: the data
/// of a block leave it at least once. These are the full payload of an all_reduce, and the shards of
/// an all_gather.
pub(super) fn across_in_network(
    collective: Option<Collective>,
    blocks: u64,
    ranks: u64,
    size: Bytes,
) -> u128 {
    match collective {
        _ if blocks < 2 => 0,
        Some(Collective::AllReduce) => u128::from(blocks) * u128::from(size.0),
        Some(Collective::AllGather) => size.0.into(),
        _ => across(collective, blocks, ranks, size),
    }
}
