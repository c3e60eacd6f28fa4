//! What the blocks of an all_to_all_v require of the ranks.

use tutti_schedule::Layout;
use tutti_units::Bytes;
use tutti_units::ids::RankId;

/// The largest volumes of a rank in an all_to_all_v, without the blocks of ranks for themselves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exchange {
    /// The most bytes that a rank sends.
    pub sends: Bytes,
    /// The most bytes that a rank receives.
    pub receives: Bytes,
    /// The bytes of all ranks.
    pub all: u128,
    /// The most ranks for which a rank has a block that is not empty.
    pub fanout: u32,
}

impl Exchange {
    /// Returns the volumes of a layout; none for another collective.
    #[must_use]
    pub fn of(layout: &Layout) -> Option<Exchange> {
        let blocks = layout.blocks()?;
        let ranks = || (0..blocks.ranks()).map(RankId);
        let others = |rank: RankId| ranks().filter(move |&other| other != rank);
        let sent =
            |rank| others(rank).map(|to| layout.block(rank, to).0).fold(0, u64::saturating_add);
        let received =
            |rank| others(rank).map(|from| layout.block(from, rank).0).fold(0, u64::saturating_add);
        let peers = |rank| {
            let is_sent = |to: RankId| !blocks.is_empty(blocks.chunk(rank, to));
            others(rank).map(|to| u32::from(is_sent(to))).sum::<u32>()
        };
        Some(Exchange {
            sends: Bytes(ranks().map(sent).max().unwrap_or(0)),
            receives: Bytes(ranks().map(received).max().unwrap_or(0)),
            all: ranks().map(|rank| u128::from(sent(rank))).sum(),
            fanout: ranks().map(peers).max().unwrap_or(0),
        })
    }
}
