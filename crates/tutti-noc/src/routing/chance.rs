//! Random choices of routings: drawn, or enumerated.

use std::cell::{Cell, RefCell};

use super::RoutingContext;
use crate::packet::Head;
use tutti_units::random::{random_bits, scale, split_words};

/// Who makes random choices.
#[derive(Clone, Copy, Debug)]
pub enum Chance<'a> {
    /// They are drawn, with this seed.
    Seed(u64),
    /// They are enumerated.
    Chosen(&'a Choices),
}

/// Enumerated choices: the first option of each at the start, another after each [`advance`].
///
/// [`advance`]: Choices::advance
#[derive(Clone, Default, Debug)]
pub struct Choices {
    /// What was chosen, and of how many.
    made: RefCell<Vec<(u64, u64)>>,
    /// How many have been requested since the last advance.
    drawn: Cell<usize>,
}

impl Choices {
    /// A number below `bound`.
    pub fn next(&self, bound: u64) -> u64 {
        if bound < 2 {
            return 0;
        }
        let mut made = self.made.borrow_mut();
        let place = self.drawn.get();
        self.drawn.set(place + 1);
        if let Some(&(chosen, _)) = made.get(place) {
            return chosen;
        }
        made.push((0, bound));
        0
    }

    /// The probability of what has been chosen since the last advance.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "bounds are numbers of ports or nodes")]
    pub fn probability(&self) -> f64 {
        let made = self.made.borrow();
        made.iter().take(self.drawn.get()).map(|&(_, bound)| 1.0 / bound as f64).product()
    }

    /// The next combination; false where all have been visited, and then it starts again.
    pub fn advance(&mut self) -> bool {
        self.drawn.set(0);
        let made = self.made.get_mut();
        while let Some((chosen, bound)) = made.pop() {
            if chosen + 1 < bound {
                made.push((chosen + 1, bound));
                return true;
            }
        }
        false
    }
}

/// The purpose of a random choice; the choices of a packet in a router are independent.
#[derive(Clone, Copy)]
pub(super) enum Draw {
    Direction,
    Partition,
    Order,
    Intermediate,
    Port,
    OtherPort,
    Flow,
}

/// A number below `bound`, for a packet in a router.
pub(super) fn draw(place: &RoutingContext<'_>, head: &Head, what: Draw, bound: u64) -> u64 {
    let seed = match place.chance {
        Chance::Seed(seed) => seed,
        Chance::Chosen(choices) => return choices.next(bound),
    };
    let [low, high] = split_words(head.serial);
    let bits = random_bits(seed, [low, high, place.router, what as u32 | 0x0F17_0000]);
    scale(bits, u128::from(bound))
}

/// A fair coin flip for a packet in a router.
pub(super) fn coin_flip(place: &RoutingContext<'_>, head: &Head, what: Draw) -> bool {
    draw(place, head, what, 2) == 1
}
