//! Elimination for long vectors: surplus ranks are eliminated during the first exchange of halves.
//!
//! The P/2 pairs of the first exchange are formed from two, three or four ranks, as in
//! [`elimination`](crate::algorithm::elimination). The first survivor of each pair ends with the
//! lower half of the vector, folded over all of the pair's ranks, and the second with the upper
//! half.
//!
//! - **Two ranks** exchange halves.
//! - **Three, 3-2**: a and b exchange halves, so that a holds the upper half of both and b the
//!   lower. a sends its half to c, and c sends its lower half to b in the first round. To return
//!   the result, b and c exchange their halves, and each sends its half to a.
//! - **Four**: a and b, c and d exchange halves; a sends the lower half to c, b the upper half to
//!   d. The result returns by the same route: c and d return their halves, and both pairs exchange.
//!
//! The other f - 1 rounds continue halving among first and among second survivors. Surplus ranks
//! therefore cost one more round of S/2 in each direction than a power of two: less than 3 S in
//! total, where `fold` takes 4 S.

use super::SCRATCH;
use crate::algorithm::elimination::pairs::{Origin, PairPosition, Pairs};
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

/// A second message of a step.
const SECOND: Slot = Slot(2);

pub(super) struct LongElimination {
    shape: Shape,
    pairs: Pairs,
    /// log2 of the power of two; half of the surviving ranks are first survivors.
    log: u32,
}

impl LongElimination {
    pub(super) fn new(name: String, ranks: u32) -> LongElimination {
        let log = ranks.ilog2();
        let shape = Shape::in_place(name, Collective::AllReduce, ranks, 1 << log, 3);
        LongElimination { shape, pairs: Pairs::new(ranks), log }
    }

    /// Returns 0 for a first and 1 for a second survivor; `None` if the rank is eliminated.
    fn side(place: PairPosition) -> Option<u32> {
        (place.member + 2).checked_sub(place.origin.ranks())
    }

    fn survivor(&self, pair: u32, side: u32) -> RankId {
        let (origin, first) = self.pairs.origin(pair);
        RankId(first + origin.ranks() - 2 + side)
    }

    /// Returns the steps until the survivors hold the halves. As many return the result, except for
    /// the surviving ranks of a triple.
    fn forming_steps(place: PairPosition) -> u32 {
        match (place.origin, place.member) {
            (Origin::Two, _) | (Origin::Three, 1 | 2) => 1,
            _ => 2,
        }
    }

    /// Returns the lower (0) or the upper half (1).
    fn half(&self, side: u32) -> ChunkRange {
        let len = 1 << (self.log - 1);
        ChunkRange::new(side * len, (side + 1) * len)
    }

    /// Returns the range of survivor number 2 pair + side after `halved` rounds.
    fn range(&self, number: u32, halved: u32) -> ChunkRange {
        let len = 1 << (self.log - halved);
        let start = (number & ((1 << halved) - 1)).reverse_bits() >> (u32::BITS - self.log);
        ChunkRange::new(start, start + len)
    }

    /// Exchanges halves with a neighbour; keeps and folds one of them.
    fn swap(&self, peer: RankId, own_first: bool, kept: u32, out: &mut Step) {
        out.fold_with((peer, own_first), Slot::DATA, self.half(1 - kept), self.half(kept));
    }

    fn grow(&self, place: PairPosition, step: u32, out: &mut Step) {
        let peer = |member| RankId(place.first + member);
        let (low, high) = (self.half(0), self.half(1));
        match (place.origin, place.member, step) {
            (Origin::Two, member, _) => self.swap(peer(1 - member), member == 0, member, out),
            (Origin::Three, 0, 0) => self.swap(peer(1), true, 1, out),
            (Origin::Three, 0, _) => out.send(peer(2), Slot::DATA, high),
            (Origin::Three, 1, _) => {
                out.send(peer(0), Slot::DATA, high);
                out.recv(peer(0), SCRATCH, low);
                out.recv(peer(2), SECOND, low);
                out.reduce(Slot::DATA, [SCRATCH, Slot::DATA, SECOND], low);
            }
            (Origin::Three, _, _) => {
                out.send(peer(1), Slot::DATA, low);
                out.fold_in(peer(0), high);
            }
            (Origin::Four, member, 0) => {
                self.swap(peer(member ^ 1), member % 2 == 0, member % 2, out);
            }
            (Origin::Four, member @ (0 | 1), _) => {
                out.send(peer(member + 2), Slot::DATA, self.half(member));
            }
            (Origin::Four, member, _) => out.fold_in(peer(member - 2), self.half(member - 2)),
        }
    }

    /// Sends the result from the survivors' halves to all ranks of the pair.
    fn return_result(&self, place: PairPosition, step: u32, out: &mut Step) {
        let peer = |member| RankId(place.first + member);
        let trade = |peer: RankId, own: u32, out: &mut Step| {
            out.trade(peer, Slot::DATA, self.half(own), self.half(1 - own));
        };
        match (place.origin, place.member, step) {
            (Origin::Two, member, _) => trade(peer(1 - member), member, out),
            (Origin::Three, 0, _) => {
                out.recv(peer(1), Slot::DATA, self.half(0));
                out.recv(peer(2), Slot::DATA, self.half(1));
            }
            // The two start with different ranks, so that no rank receives two halves at once.
            (Origin::Three, 1, _) => {
                out.send(peer(0), Slot::DATA, self.half(0));
                trade(peer(2), 0, out);
            }
            (Origin::Three, _, _) => {
                trade(peer(1), 1, out);
                out.send(peer(0), Slot::DATA, self.half(1));
            }
            (Origin::Four, member @ (0 | 1), 0) => {
                out.recv(peer(member + 2), Slot::DATA, self.half(member));
            }
            (Origin::Four, member, 0) => {
                out.send(peer(member - 2), Slot::DATA, self.half(member - 2));
            }
            (Origin::Four, member, _) => trade(peer(member ^ 1), member % 2, out),
        }
    }

    /// Adds a round of halving or doubling among survivors of one side; the pairs differ in bit
    /// `round` - 1.
    fn exchange(&self, pair: u32, side: u32, round: u32, halve: bool, out: &mut Step) {
        let partner = pair ^ (1 << (round - 1));
        let peer = self.survivor(partner, side);
        let [own, other] = [pair, partner].map(|pair| self.range(2 * pair + side, round + 1));
        if !halve {
            return out.trade(peer, Slot::DATA, own, other);
        }
        out.fold_with((peer, pair < partner), Slot::DATA, other, own);
    }

    /// Returns the steps that return the result.
    fn return_steps(place: PairPosition) -> u32 {
        if place.origin == Origin::Four { 2 } else { 1 }
    }

    /// Returns the rounds of halving and doubling among the survivors of one side.
    fn exchanges(&self, place: PairPosition) -> u32 {
        if Self::side(place).is_some() { 2 * (self.log - 1) } else { 0 }
    }
}

impl Schedule for LongElimination {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        let place = self.pairs.place(rank.0);
        Self::forming_steps(place) + self.exchanges(place) + Self::return_steps(place)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let place = self.pairs.place(rank.0);
        let Some(exchange) = step.checked_sub(Self::forming_steps(place)) else {
            return self.grow(place, step, out);
        };
        let exchanges = self.exchanges(place);
        match (exchange.checked_sub(exchanges), Self::side(place)) {
            (None, Some(side)) => {
                let there = exchange < self.log - 1;
                let round = if there { exchange + 1 } else { exchanges - exchange };
                self.exchange(place.pair, side, round, there, out);
            }
            (given, _) => self.return_result(place, given.unwrap_or_default(), out),
        }
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        let place = self.pairs.place(rank.0);
        let forming_steps = Self::forming_steps(place);
        let (rounds, exchanges) = (self.log - 1, self.exchanges(place));
        match place.origin {
            Origin::Three if step < forming_steps => "3-2 elimination".to_owned(),
            Origin::Four if step + 1 == forming_steps => "2-1 elimination".to_owned(),
            _ if step < forming_steps => "reduce_scatter 0".to_owned(),
            _ if step < forming_steps + exchanges / 2 => {
                format!("reduce_scatter {}", step - forming_steps + 1)
            }
            _ if step < forming_steps + exchanges => {
                format!("all_gather {}", step - forming_steps - exchanges / 2)
            }
            Origin::Four if step == forming_steps + exchanges => "post-processing".to_owned(),
            _ => format!("all_gather {rounds}"),
        }
    }
}
