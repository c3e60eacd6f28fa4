//! Elimination: an all_reduce for any rank count that eliminates the ranks beyond a power of two.
//!
//! Source: Rabenseifner and Traeff, "More efficient reduction algorithms for non-power-of-two
//! number of processors in message-passing parallel systems", EuroPVM/MPI 2004, LNCS 3241. The
//! small-message form of the steps is that of Ruefenacht, Bull and Booth, Parallel Computing 69
//! (2017), Fig. 23. With f = floor(log2 N), r = N - 2^f ranks are eliminated before or during a
//! butterfly among 2^f survivors, and receive the result at the end. Two steps eliminate a rank:
//!
//! - **2-1**, one round: a sends to b and is eliminated; b holds a + b.
//! - **3-2**, two rounds: a and b exchange; then a sends a + b to c and is eliminated. In the first
//!   round c sends its value to b. When both messages have arrived, b folds a, b and c, after one
//!   round if it can receive two messages concurrently. After two rounds, c folds a + b and c. The
//!   survivors b and c hold the same sum, as after an exchange: the elimination is hidden in an
//!   exchange.
//!
//! The argument selects the steps and their order:
//!
//! - **`3-2`**, the default: the non-overlapping protocol. Each of the 2^(f-1) pairs of the first
//!   exchange is formed from two, three or four ranks. If r is at most 2^(f-1), r pairs are formed
//!   from three ranks by one 3-2 step and the others from two. Otherwise r - 2^(f-1) pairs are
//!   formed from four ranks, by two 2-1 steps and an exchange, and the others from three. Triples
//!   hold the lowest ranks. Then f - 1 exchanges among the pairs follow, first member with first,
//!   second with second. At the end the first survivor of a triple returns the result to a; both
//!   survivors of a quadruple return it to their eliminated ranks. N = 6 has two triples: Fig. 23.
//! - **`3-2_overlapping`**: see [`overlapping`]. 3-2 steps in each round z for which bit z of N is
//!   set.
//! - **`2-1`**: all 2-1 steps before the butterfly. This is MPICH's method and has the same steps
//!   as [`recursive_doubling`](super::recursive_doubling).
//!
//! All variants take at most ceil(log2 N) + 1 rounds of messages. `3-2` takes only ceil(log2 N) if
//! r is at most 2^(f-1): b is ready in time to return the result while c completes its part of the
//! butterfly. [`recursive_halving_doubling`](super::recursive_halving_doubling) halves long vectors
//! during the elimination. The paper's variants with rings of q ranks for N = q 2^n are not
//! implemented: see [`recursive_multiplying`](super::recursive_multiplying), where `a3` sends both
//! messages of a ring at once.
//!
//! **Same bits on all ranks.** Both survivors of a step compute the same tree, (a + b) + c. So do
//! the two ranks of each later exchange, which fold the lower ranks first.

mod overlapping;
pub(super) mod pairs;

use std::sync::Arc;

use super::recursive_doubling::Doubling;
use super::{AlgorithmError, Entry, Request, Stage};
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use overlapping::Overlapping;
use pairs::{Origin, PairPosition, Pairs};
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "elimination",
    summary: "recursive doubling that eliminates surplus ranks during the first exchange",
    source: "Rabenseifner and Traeff 2004",
    argument: "`3-2` (default), `3-2_overlapping` or `2-1`",
    collectives: &["all_reduce", "barrier"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && variant(request).is_ok(),
    build,
    critical_path,
};

const PAYLOAD: ChunkRange = ChunkRange::one(0);
const FIRST: Slot = Slot(1);
const SECOND: Slot = Slot(2);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    ThreeToTwo,
    Overlapping,
    TwoToOne,
}

fn variant(request: &Request) -> Result<Variant, AlgorithmError> {
    let words = [
        ("3-2", Variant::ThreeToTwo),
        ("3-2_overlapping", Variant::Overlapping),
        ("2-1", Variant::TwoToOne),
    ];
    request.one_of(ENTRY.name, &words)
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let shape = request.shape(ENTRY.name, 1, 3);
    Ok(match variant(request)? {
        Variant::ThreeToTwo => Arc::new(Elimination::new(shape)),
        Variant::Overlapping => Arc::new(Overlapping::new(shape)),
        Variant::TwoToOne => Arc::new(Doubling::new(shape.name, request)),
    })
}

/// A schedule with 3-2 steps has no closed form: their waits depend on the time to receive two
/// messages.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let variant = variant(request).ok()?;
    if variant != Variant::TwoToOne && !request.ranks.is_power_of_two() {
        return None;
    }
    let request = Request { argument: None, ..*request };
    (super::recursive_doubling::ENTRY.critical_path)(&request)
}

impl PairPosition {
    fn is_eliminated(self) -> bool {
        match self.origin {
            Origin::Two => false,
            Origin::Three => self.member == 0,
            Origin::Four => self.member.is_multiple_of(2),
        }
    }

    /// Returns the steps until the pair is complete.
    fn forming_steps(self) -> u32 {
        if self.origin == Origin::Four { 2 } else { 1 }
    }

    /// Returns the rank that receives the result from this one.
    fn return_peer(self) -> Option<RankId> {
        match (self.origin, self.member) {
            (Origin::Three | Origin::Four, 1) | (Origin::Four, 3) => {
                Some(RankId(self.first + self.member - 1))
            }
            _ => None,
        }
    }

    fn rank(self, member: u32) -> RankId {
        RankId(self.first + member)
    }
}

/// The non-overlapping protocol.
struct Elimination {
    shape: Shape,
    pairs: Pairs,
    /// Exchanges among the pairs.
    exchanges: u32,
}

impl Elimination {
    fn new(shape: Shape) -> Elimination {
        let (pairs, exchanges) = (Pairs::new(shape.ranks), shape.ranks.ilog2() - 1);
        Elimination { shape, pairs, exchanges }
    }

    /// Returns the first (side 0) or second (side 1) survivor of a pair.
    #[inline]
    fn survivor(&self, pair: u32, side: u32) -> RankId {
        let (origin, first) = self.pairs.origin(pair);
        RankId(match origin {
            Origin::Two => first + side,
            Origin::Three => first + 1 + side,
            Origin::Four => first + 1 + 2 * side,
        })
    }

    /// Adds the steps in which three or four ranks become a pair, or two ranks exchange.
    fn grow(place: PairPosition, step: u32, out: &mut Step) {
        let peer = |member| place.rank(member);
        match (place.origin, place.member, step) {
            (Origin::Two, member, _) => swap(peer(1 - member), member == 0, out),
            (Origin::Three, 0, 0) => swap(peer(1), true, out),
            (Origin::Three, 0, _) => out.send(peer(2), Slot::DATA, PAYLOAD),
            (Origin::Three, 1, _) => {
                out.send(peer(0), Slot::DATA, PAYLOAD);
                out.recv(peer(0), FIRST, PAYLOAD);
                out.recv(peer(2), SECOND, PAYLOAD);
                out.reduce(Slot::DATA, [FIRST, Slot::DATA, SECOND], PAYLOAD);
            }
            (Origin::Three, _, _) => {
                out.send(peer(1), Slot::DATA, PAYLOAD);
                out.fold_in(peer(0), PAYLOAD);
            }
            (Origin::Four, member, _) if member % 2 == 0 => {
                out.send(peer(member + 1), Slot::DATA, PAYLOAD);
            }
            (Origin::Four, member, 0) => out.fold_in(peer(member - 1), PAYLOAD),
            (Origin::Four, member, _) => swap(peer(4 - member), member == 1, out),
        }
    }

    fn exchange(&self, place: PairPosition, index: u32, out: &mut Step) {
        let side = if place.member + 1 == place.origin.ranks() { 1 } else { 0 };
        let peer = place.pair ^ (1 << index);
        swap(self.survivor(peer, side), place.pair < peer, out);
    }
}

impl Schedule for Elimination {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        let place = self.pairs.place(rank.0);
        if place.is_eliminated() {
            return if place.origin == Origin::Three { 3 } else { 2 };
        }
        place.forming_steps() + self.exchanges + u32::from(place.return_peer().is_some())
    }

    #[inline]
    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let place = self.pairs.place(rank.0);
        let forming_steps = place.forming_steps();
        if place.is_eliminated() {
            if step + 1 == self.steps(rank) {
                out.recv(place.rank(place.member + 1), Slot::DATA, PAYLOAD);
            } else {
                Self::grow(place, step, out);
            }
        } else if step < forming_steps {
            Self::grow(place, step, out);
        } else if step < forming_steps + self.exchanges {
            self.exchange(place, step - forming_steps, out);
        } else if let Some(owed) = place.return_peer() {
            out.send(owed, Slot::DATA, PAYLOAD);
        }
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        let place = self.pairs.place(rank.0);
        let forming_steps = place.forming_steps();
        let last = step + 1 == self.steps(rank);
        match (place.is_eliminated(), place.origin) {
            (true, _) | (false, Origin::Three | Origin::Four) if last && place.returns() => {
                "return".to_owned()
            }
            (_, Origin::Three) if step < forming_steps || place.is_eliminated() => {
                "3-2 elimination".to_owned()
            }
            (_, Origin::Four) if step == 0 => "2-1 elimination".to_owned(),
            (_, Origin::Two) => format!("exchange {step}"),
            (_, Origin::Three) => format!("exchange {step}"),
            (_, Origin::Four) => format!("exchange {}", step - 1),
        }
    }
}

impl PairPosition {
    /// Whether the last step returns the result.
    fn returns(self) -> bool {
        self.is_eliminated() || self.return_peer().is_some()
    }
}

/// Exchanges with a peer and folds the lower rank first.
#[inline]
fn swap(peer: RankId, own_first: bool, out: &mut Step) {
    out.fold_with((peer, own_first), Slot::DATA, PAYLOAD, PAYLOAD);
}

#[cfg(test)]
mod tests;
