//! Elimination: an all_reduce for any number of ranks that takes out the surplus over a power of two.
//!
//! Source: Rabenseifner and Traeff, "More efficient reduction algorithms for non-power-of-two number of
//! processors in message-passing parallel systems", EuroPVM/MPI 2004, LNCS 3241, with the small-message
//! form of the steps as simulated in Ruefenacht, Bull and Booth, Parallel Computing 69 (2017), Fig. 23.
//! With f = floor(log2 N), r = N - 2^f ranks are eliminated on the way to a butterfly among 2^f survivors,
//! and get the result in the end. Two steps eliminate a rank:
//!
//! - **2-1**, one round: a sends to b and is out; b holds a + b.
//! - **3-2**, two rounds: a and b exchange; then a sends a + b to c and is out. c sends its own value to b
//!   at once. b folds a, b, c when both messages are there, after one round if it can take two at a time;
//!   c folds a + b and c after two. The survivors b and c hold the same sum, as after an exchange: the
//!   elimination is hidden in one.
//!
//! The argument says which steps, and when:
//!
//! - **`3-2`**, also without argument: the non-overlapping protocol. The 2^(f-1) pairs of the first
//!   exchange are each grown from two, three or four ranks. If r is at most 2^(f-1), r of them come from
//!   three ranks by one 3-2 step, the others from two; otherwise r - 2^(f-1) come from four, by two 2-1
//!   steps and an exchange, and the others from three. Triples hold the lowest ranks. Then f - 1 exchanges
//!   among the pairs, first member with first, second with second. In the end the first survivor of a
//!   triple returns the result to a, both survivors of a quadruple theirs. N = 6 is two triples: Fig. 23.
//! - **`3-2_overlapping`**: see [`overlapping`]. 3-2 steps in each round z for which bit z of N is set.
//! - **`2-1`**: all 2-1 steps before the butterfly. That is MPICH's fix, and the very steps of
//!   [`recursive_doubling`](super::recursive_doubling).
//!
//! All need at most ceil(log2 N) + 1 rounds of messages. `3-2` needs only ceil(log2 N) when r is at most
//! 2^(f-1): b is ready in time to return the result while c's half of the butterfly ends. Long vectors are
//! halved on the way: see [`recursive_halving_doubling`](super::recursive_halving_doubling). (The paper's
//! variants that pass values round rings of q ranks for N = q 2^n are not here: see
//! [`recursive_multiplying`](super::recursive_multiplying), whose `a3` sends both of a ring's messages at
//! once.)
//!
//! **Same bits everywhere.** Both survivors of a step compute the same tree, (a + b) + c; so do the two of
//! each later exchange, which fold the lower ranks first.

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
    summary: "recursive doubling that takes out surplus ranks during the first exchange",
    source: "Rabenseifner and Traeff 2004",
    argument: "`3-2` (also without), `3-2_overlapping` or `2-1`",
    collectives: &["all_reduce", "barrier"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && variant(request).is_ok(),
    build,
    critical_path,
};

const WHOLE: ChunkRange = ChunkRange::one(0);
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

/// A 3-2 step has no stage of its own: what its ranks wait for depends on how long taking two messages is.
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

    /// Steps until the pair is complete.
    fn growing(self) -> u32 {
        if self.origin == Origin::Four { 2 } else { 1 }
    }

    /// The rank to return the result to.
    fn owes(self) -> Option<RankId> {
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

    /// The first (side 0) or second (side 1) survivor of a pair.
    #[inline]
    fn survivor(&self, pair: u32, side: u32) -> RankId {
        let (origin, first) = self.pairs.origin(pair);
        RankId(match origin {
            Origin::Two => first + side,
            Origin::Three => first + 1 + side,
            Origin::Four => first + 1 + 2 * side,
        })
    }

    /// Steps in which three or four ranks become a pair, or two hold the same.
    fn grow(place: PairPosition, step: u32, out: &mut Step) {
        let peer = |member| place.rank(member);
        match (place.origin, place.member, step) {
            (Origin::Two, member, _) => swap(peer(1 - member), member == 0, out),
            (Origin::Three, 0, 0) => swap(peer(1), true, out),
            (Origin::Three, 0, _) => out.send(peer(2), Slot::DATA, WHOLE),
            (Origin::Three, 1, _) => {
                out.send(peer(0), Slot::DATA, WHOLE);
                out.recv(peer(0), FIRST, WHOLE);
                out.recv(peer(2), SECOND, WHOLE);
                out.reduce(Slot::DATA, [FIRST, Slot::DATA, SECOND], WHOLE);
            }
            (Origin::Three, _, _) => {
                out.send(peer(1), Slot::DATA, WHOLE);
                out.fold_in(peer(0), WHOLE);
            }
            (Origin::Four, member, _) if member % 2 == 0 => {
                out.send(peer(member + 1), Slot::DATA, WHOLE);
            }
            (Origin::Four, member, 0) => out.fold_in(peer(member - 1), WHOLE),
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
        place.growing() + self.exchanges + u32::from(place.owes().is_some())
    }

    #[inline]
    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let place = self.pairs.place(rank.0);
        let growing = place.growing();
        if place.is_eliminated() {
            if step + 1 == self.steps(rank) {
                out.recv(place.rank(place.member + 1), Slot::DATA, WHOLE);
            } else {
                Self::grow(place, step, out);
            }
        } else if step < growing {
            Self::grow(place, step, out);
        } else if step < growing + self.exchanges {
            self.exchange(place, step - growing, out);
        } else if let Some(owed) = place.owes() {
            out.send(owed, Slot::DATA, WHOLE);
        }
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        let place = self.pairs.place(rank.0);
        let growing = place.growing();
        let last = step + 1 == self.steps(rank);
        match (place.is_eliminated(), place.origin) {
            (true, _) | (false, Origin::Three | Origin::Four) if last && place.returns() => {
                "return".to_owned()
            }
            (_, Origin::Three) if step < growing || place.is_eliminated() => {
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
    /// Whether the last step hands over the result.
    fn returns(self) -> bool {
        self.is_eliminated() || self.owes().is_some()
    }
}

/// Exchanges with a rank and folds the lower of the two first.
#[inline]
fn swap(peer: RankId, own_first: bool, out: &mut Step) {
    out.fold_with((peer, own_first), Slot::DATA, WHOLE, WHOLE);
}

#[cfg(test)]
mod tests;
