//! The overlapping protocol: 3-2 steps between the rounds of the butterfly.
//!
//! At level z the remaining ranks form m = floor(N / 2^z) nodes of 2^z ranks, all of which hold the
//! node's sum. Ranks are in order: except in the last node, member i of node j is rank j 2^z + i.
//! If m is even, nodes 2k and 2k + 1 exchange member by member and become a node of the next level.
//! If m is odd, which is the case if bit z of N is set, the last three nodes A, B, C perform a 3-2
//! step member by member, which eliminates A, and the others exchange. A 3-2 step takes one round
//! more than an exchange, so after the first one the last node is one round late. It is always the
//! C of the next step, which is idle in that step's first round, or the second node of the last
//! pair. The delay therefore never exceeds one round. All eliminations and exchanges take f + 1
//! rounds, with f = floor(log2 N), and one more returns the result from each member of B to that of
//! A.
//!
//! The last node of level z + 1 is formed from node m - 2 of level z and the last node of level z.
//! Let k be the highest of the low z + 1 bits of i that is not set. Then member i comes from the
//! regular node m - 2 of level k, and member 2^(z+1) - 1 is rank N - 1.

use super::{FIRST, PAYLOAD, SECOND, swap};
use crate::{Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

/// The end of a rank's participation in regular nodes.
#[derive(Clone, Copy)]
struct Fate {
    /// The level after which the rank is in the last node, or at which it is eliminated.
    level: u32,
    eliminated: bool,
}

pub(super) struct Overlapping {
    shape: Shape,
    /// Levels of the butterfly.
    levels: u32,
}

impl Overlapping {
    pub(super) fn new(shape: Shape) -> Overlapping {
        let levels = shape.ranks.ilog2();
        Overlapping { shape, levels }
    }

    fn nodes(&self, level: u32) -> u32 {
        self.shape.ranks >> level
    }

    fn is_odd(&self, level: u32) -> bool {
        !self.nodes(level).is_multiple_of(2)
    }

    /// Follows a rank up to the level at which it leaves the regular nodes.
    fn fate(&self, rank: u32) -> Fate {
        for level in 0..self.levels {
            let behind = self.nodes(level) - (rank >> level);
            if behind == 2 {
                return Fate { level, eliminated: false };
            }
            if behind == 3 && self.is_odd(level) {
                return Fate { level, eliminated: true };
            }
        }
        Fate { level: self.levels, eliminated: false }
    }

    /// Returns member `index` of a node other than the last.
    fn regular(level: u32, node: u32, index: u32) -> RankId {
        RankId((node << level) + index)
    }

    /// Returns member `index` of the last node.
    fn last(&self, level: u32, index: u32) -> RankId {
        let unset = !index & ((1 << level) - 1);
        if unset == 0 {
            return RankId(self.shape.ranks - 1);
        }
        let from = unset.ilog2();
        Self::regular(from, self.nodes(from) - 2, index & ((1 << from) - 1))
    }

    /// Returns the index in the last node of a rank that joined it after level `from`.
    fn index_in_last(level: u32, from: u32, rank: u32) -> u32 {
        let low = rank & ((1 << from) - 1);
        let ones = ((1 << level) - 1) & !((1 << from) - 1) & !(1 << from);
        ones | low
    }

    /// Adds a level of a rank in a node other than the last.
    fn in_regular(&self, level: u32, rank: u32, out: &mut Step) {
        let nodes = self.nodes(level);
        let node = rank >> level;
        let index = rank & ((1 << level) - 1);
        if node + 2 < nodes {
            // Node A of a 3-2 step also starts with an exchange.
            let first_of_three = node + 3 == nodes && self.is_odd(level);
            let peer = if first_of_three { node + 1 } else { node ^ 1 };
            return swap(Self::regular(level, peer, index), node < peer, out);
        }
        let last = self.last(level, index);
        if !self.is_odd(level) {
            return swap(last, true, out);
        }
        let first = Self::regular(level, node - 1, index);
        out.send(first, Slot::DATA, PAYLOAD);
        out.recv(first, FIRST, PAYLOAD);
        out.recv(last, SECOND, PAYLOAD);
        out.reduce(Slot::DATA, [FIRST, Slot::DATA, SECOND], PAYLOAD);
    }

    /// Adds a level of a rank in the last node.
    fn in_last(&self, level: u32, index: u32, out: &mut Step) {
        let nodes = self.nodes(level);
        let before = Self::regular(level, nodes - 2, index);
        if !self.is_odd(level) {
            return swap(before, false, out);
        }
        out.send(before, Slot::DATA, PAYLOAD);
        out.fold_in(Self::regular(level, nodes - 3, index), PAYLOAD);
    }

    /// Returns the rank to which member B of a 3-2 step returns the result.
    fn return_peer(&self, rank: u32, fate: Fate) -> Option<RankId> {
        let survived = !fate.eliminated && fate.level < self.levels && rank + 1 < self.shape.ranks;
        (survived && self.is_odd(fate.level)).then(|| RankId(rank - (1 << fate.level)))
    }
}

impl Schedule for Overlapping {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        let fate = self.fate(rank.0);
        if fate.eliminated {
            return fate.level + 3;
        }
        self.levels + u32::from(self.return_peer(rank.0, fate).is_some())
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let fate = self.fate(rank.0);
        let is_last_rank = rank.0 + 1 == self.shape.ranks;
        if fate.eliminated && step > fate.level {
            let index = rank.0 & ((1 << fate.level) - 1);
            if step == fate.level + 1 {
                out.send(self.last(fate.level, index), Slot::DATA, PAYLOAD);
            } else {
                out.recv(RankId(rank.0 + (1 << fate.level)), Slot::DATA, PAYLOAD);
            }
        } else if step == self.levels {
            if let Some(owed) = self.return_peer(rank.0, fate) {
                out.send(owed, Slot::DATA, PAYLOAD);
            }
        } else if is_last_rank {
            self.in_last(step, (1 << step) - 1, out);
        } else if step <= fate.level {
            self.in_regular(step, rank.0, out);
        } else {
            self.in_last(step, Self::index_in_last(step, fate.level, rank.0), out);
        }
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        let fate = self.fate(rank.0);
        if step == self.levels || (fate.eliminated && step == fate.level + 2) {
            return "return".to_owned();
        }
        let level = if fate.eliminated { step.min(fate.level) } else { step };
        let in_last_three = fate.level <= level || rank.0 + 1 == self.shape.ranks;
        if self.is_odd(level) && in_last_three {
            format!("3-2 elimination {level}")
        } else {
            format!("exchange {level}")
        }
    }
}
