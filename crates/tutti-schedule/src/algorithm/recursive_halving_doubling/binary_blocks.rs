//! Binary blocks: a block of ranks for each bit of N, the largest first, each a power of two.
//!
//! Every block performs a reduce_scatter among its ranks. Then the results are joined, from the
//! smallest block to the largest. A rank of a block divides its range into as many pieces as the
//! next larger block has ranks per rank of this block, sends them one each, and the receivers fold
//! them. The largest block then holds the result, which returns by the same route before every
//! block gathers. No rank sends more than its range after halving, but message sizes differ widely
//! between blocks of different size: a block of one rank divides all of S into the pieces of the
//! next.
//!
//! In a block of 2^e ranks, member q holds after h rounds of halving the range named by its low h
//! bits, reversed. Member q of a smaller block therefore holds the ranges of members q, q + 2^e,
//! q + 2 2^e, ... of the larger one.

use super::SCRATCH;
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) struct BinaryBlocks {
    shape: Shape,
    /// log2 of the size of the largest block.
    log: u32,
}

/// A block: its first rank and log2 of its size.
#[derive(Clone, Copy)]
struct Block {
    first: u32,
    log: u32,
}

/// A rank's position in its block, and the adjacent blocks.
#[derive(Clone, Copy)]
struct BlockMember {
    block: Block,
    member: u32,
    larger: Option<Block>,
    smaller: Option<Block>,
}

/// The action of a rank in a step.
enum Act {
    Halve(u32),
    /// Folds the messages of the smaller block.
    Join,
    /// Sends to the larger block, which then returns the result.
    HandOver,
    TakeBack,
    /// Sends the result to the smaller block.
    GiveBack,
    Double(u32),
}

impl BinaryBlocks {
    pub(super) fn new(name: String, ranks: u32) -> BinaryBlocks {
        let log = ranks.ilog2();
        BinaryBlocks {
            shape: Shape::in_place(name, Collective::AllReduce, ranks, 1 << log, 2),
            log,
        }
    }

    /// The blocks: one for each bit of N, from the highest.
    fn place(&self, rank: u32) -> BlockMember {
        let n = self.shape.ranks;
        let block = |log: u32| Block { first: n >> log >> 1 << log << 1, log };
        // The highest bit in which rank and N differ is the block's: below it N has a one and rank
        // a zero.
        let log = (rank ^ n).ilog2();
        let above = n >> log >> 1;
        let below = n & ((1 << log) - 1);
        let larger = (above > 0).then(|| block(log + 1 + above.trailing_zeros()));
        let smaller = (below > 0).then(|| block(below.ilog2()));
        let block = block(log);
        BlockMember { block, member: rank - block.first, larger, smaller }
    }

    /// Returns the range of member `member` of any block after `halved` rounds.
    fn range(&self, member: u32, halved: u32) -> ChunkRange {
        let len = 1 << (self.log - halved);
        let start = (member & ((1 << halved) - 1)).reverse_bits() >> (u32::BITS - self.log);
        ChunkRange::new(start, start + len)
    }

    fn act(place: &BlockMember, step: u32) -> Act {
        let log = place.block.log;
        let [joins, hands] = [place.smaller, place.larger].map(|block| block.is_some());
        let middle = [
            (joins, Act::Join),
            (hands, Act::HandOver),
            (hands, Act::TakeBack),
            (joins, Act::GiveBack),
        ];
        let Some(after) = step.checked_sub(log) else {
            return Act::Halve(step);
        };
        let count = 2 * (u32::from(joins) + u32::from(hands));
        if let Some(round) = after.checked_sub(count) {
            return Act::Double(log - 1 - round);
        }
        let mut acts = middle.into_iter().filter(|(there, _)| *there).map(|(_, act)| act);
        acts.nth(after as usize).unwrap_or(Act::Join)
    }

    /// Returns the members of the larger block with this rank's range, and the range of each.
    fn holders(
        &self,
        place: &BlockMember,
        larger: Block,
    ) -> impl Iterator<Item = (RankId, ChunkRange)> {
        let (member, log) = (place.member, place.block.log);
        let pieces = 0..1 << (larger.log - log);
        pieces.map(move |piece: u32| {
            let holder = member + (piece << log);
            (RankId(larger.first + holder), self.range(holder, larger.log))
        })
    }

    /// Returns the member of the smaller block whose range contains this rank's.
    fn joined(place: &BlockMember, smaller: Block) -> RankId {
        RankId(smaller.first + (place.member & ((1 << smaller.log) - 1)))
    }

    /// Adds one round within the block; `round` counts from the first halving.
    fn exchange(&self, place: &BlockMember, round: u32, halve: bool, out: &mut Step) {
        let partner = place.member ^ (1 << round);
        let peer = RankId(place.block.first + partner);
        let [own, other] = [place.member, partner].map(|member| self.range(member, round + 1));
        if !halve {
            return out.trade(peer, Slot::DATA, own, other);
        }
        out.fold_with((peer, place.member < partner), Slot::DATA, other, own);
    }
}

impl Schedule for BinaryBlocks {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        let place = self.place(rank.0);
        let adjacent = [place.smaller, place.larger].into_iter().flatten().count();
        2 * (place.block.log + u32::try_from(adjacent).unwrap_or(0))
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let place = self.place(rank.0);
        let own = self.range(place.member, place.block.log);
        match (Self::act(&place, step), place.smaller, place.larger) {
            (Act::Halve(round), ..) => self.exchange(&place, round, true, out),
            (Act::Double(round), ..) => self.exchange(&place, round, false, out),
            (Act::Join, Some(smaller), _) => {
                out.recv(Self::joined(&place, smaller), SCRATCH, own);
                out.reduce(Slot::DATA, [Slot::DATA, SCRATCH], own);
            }
            (Act::GiveBack, Some(smaller), _) => {
                out.send(Self::joined(&place, smaller), Slot::DATA, own);
            }
            (Act::HandOver, _, Some(larger)) => {
                for (holder, run) in self.holders(&place, larger) {
                    out.send(holder, Slot::DATA, run);
                }
            }
            (Act::TakeBack, _, Some(larger)) => {
                for (holder, run) in self.holders(&place, larger) {
                    out.recv(holder, Slot::DATA, run);
                }
            }
            _ => {}
        }
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        let place = self.place(rank.0);
        match Self::act(&place, step) {
            Act::Halve(round) => format!("reduce_scatter {round}"),
            Act::Join => "from the smaller block".to_owned(),
            Act::HandOver => "to the larger block".to_owned(),
            Act::TakeBack => "from the larger block".to_owned(),
            Act::GiveBack => "to the smaller block".to_owned(),
            Act::Double(round) => format!("all_gather {}", place.block.log - 1 - round),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 13 = 8 + 4 + 1.
    #[test]
    fn blocks_are_the_bits_of_the_rank_count() {
        let blocks = BinaryBlocks::new(String::new(), 13);
        let place = |rank| {
            let place = blocks.place(rank);
            let size = |block: Option<Block>| block.map_or(0, |block| 1 << block.log);
            (place.block.first, place.member, size(place.larger), size(place.smaller))
        };
        assert_eq!(place(0), (0, 0, 0, 4));
        assert_eq!(place(7), (0, 7, 0, 4));
        assert_eq!(place(8), (8, 0, 8, 1));
        assert_eq!(place(11), (8, 3, 8, 1));
        assert_eq!(place(12), (12, 0, 4, 0));
        let larger = blocks.place(10).larger.unwrap();
        let holders: Vec<_> = blocks.holders(&blocks.place(10), larger).collect();
        // Member 2 of four holds range 1 of 4 in order of reversed bits, which members 2 and 6
        // share.
        assert_eq!(blocks.range(2, 2), ChunkRange::new(2, 4));
        assert_eq!(
            holders,
            [(RankId(2), ChunkRange::new(2, 3)), (RankId(6), ChunkRange::new(3, 4))]
        );
    }
}
