//! Enumeration of all recursive multiplying schedules for a number of ranks.
//!
//! The three kinds are those of the paper's generator (Ruefenacht, Bull, Booth 2017, section 6.1):
//! factored (`a3,a2`), split (`c6m2,a2,a2,e6m2`) and merged (`m1g2a3,n1g3a2`). Their number grows
//! fast with the ranks, so the iterators generate them lazily, in a fixed order; `take` sets a
//! limit.

use crate::notation::{Notation, Stage};

/// Whether schedules with the same factors in another order are distinct.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Distinct: `a2,a4` and `a4,a2` are two schedules.
    Ordered,
    /// Not distinct: one schedule for each multiset of factors, smallest first, as in the paper.
    Unordered,
}

/// Iterates over the factorisations of a number into factors of at least two, in lexicographic
/// order.
///
/// The only factorisation of one is the empty product.
#[derive(Clone, Debug)]
pub struct Factorings {
    order: Order,
    /// The chosen factors, each with the number that was left to factor before it.
    chosen: Vec<(u32, u32)>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Fresh(u32),
    Running,
    Done,
}

impl Factorings {
    /// Returns all factorisations of `number`; none for zero.
    #[must_use]
    pub fn new(number: u32, order: Order) -> Factorings {
        let state = if number == 0 { State::Done } else { State::Fresh(number) };
        Factorings { order, chosen: Vec::new(), state }
    }

    /// Returns the smallest factor of `left` that is at least `from` and leaves a number that can
    /// be factored.
    fn candidate(&self, left: u32, from: u32) -> u32 {
        let mut factor = from;
        while u64::from(factor) * u64::from(factor) <= u64::from(left) {
            if left.is_multiple_of(factor) {
                return factor;
            }
            factor += 1;
        }
        if self.order == Order::Unordered {
            return left;
        }
        // Beyond the square root the factors are the cofactors of the small ones, in descending
        // order.
        let mut cofactor = left / factor;
        while cofactor > 1 && !left.is_multiple_of(cofactor) {
            cofactor -= 1;
        }
        left / cofactor.max(1)
    }

    /// Chooses the smallest factors of the remaining number.
    fn descend(&mut self, mut left: u32) {
        while left > 1 {
            let from = match (self.order, self.chosen.last()) {
                (Order::Unordered, Some(&(last, _))) => last,
                _ => 2,
            };
            let factor = self.candidate(left, from);
            self.chosen.push((factor, left));
            left /= factor;
        }
    }

    /// Advances the last factor that has another choice.
    fn advance(&mut self) -> bool {
        while let Some((factor, left)) = self.chosen.pop() {
            if factor < left {
                let next = self.candidate(left, factor + 1);
                self.chosen.push((next, left));
                self.descend(left / next);
                return true;
            }
        }
        false
    }
}

impl Iterator for Factorings {
    type Item = Vec<u32>;

    fn next(&mut self) -> Option<Vec<u32>> {
        let found = match self.state {
            State::Fresh(number) => {
                self.state = State::Running;
                self.descend(number);
                true
            }
            State::Running => self.advance(),
            State::Done => false,
        };
        if !found {
            self.state = State::Done;
            return None;
        }
        Some(self.chosen.iter().map(|&(factor, _)| factor).collect())
    }
}

/// The three kinds of schedules, in the order of [`all`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, tutti_units::Named)]
pub enum Kind {
    /// `a3,a2`
    Factored,
    /// `c6m2,a2,a2,e6m2`
    Split,
    /// `m1g2a3,n1g3a2`
    Merged,
}

impl Kind {
    /// Returns the kind of a schedule.
    #[must_use]
    pub fn of(notation: &Notation) -> Kind {
        match notation.stages()[0] {
            Stage::Collapse { .. } => Kind::Split,
            Stage::Merge { .. } => Kind::Merged,
            _ => Kind::Factored,
        }
    }
}

/// Returns the schedules with only `aB` stages; none for fewer than two ranks.
pub fn factored(ranks: u32, order: Order) -> impl Iterator<Item = Notation> {
    Factorings::new(ranks, order).filter(|bases| !bases.is_empty()).map(|bases| factors(&bases))
}

/// Returns the schedules with collapse and expand, by threshold, then base, then factors.
pub fn split(ranks: u32, order: Order) -> impl Iterator<Item = Notation> {
    let pairs = (2..=ranks).flat_map(|threshold| {
        (2..=threshold)
            .filter(move |base| threshold.is_multiple_of(*base))
            .map(move |base| (threshold, base))
    });
    pairs.flat_map(move |(threshold, base)| {
        let inner = ranks - threshold / base * (base - 1);
        Factorings::new(inner, order).map(move |bases| collapsed(threshold, base, &bases))
    })
}

/// Returns the schedules with merge and inverse merge, by remainder, then factors, of which there
/// are at least two.
pub fn merged(ranks: u32, order: Order) -> impl Iterator<Item = Notation> {
    (1..=ranks.saturating_sub(4)).flat_map(move |remainder| {
        Factorings::new(ranks - remainder, order)
            .filter(|bases| bases.len() >= 2)
            .map(move |bases| merging(remainder, &bases))
    })
}

/// Returns the schedules of all three kinds in sequence.
pub fn all(ranks: u32, order: Order) -> impl Iterator<Item = Notation> {
    factored(ranks, order).chain(split(ranks, order)).chain(merged(ranks, order))
}

/// Returns `aB,aB...`.
#[must_use]
pub fn factors(bases: &[u32]) -> Notation {
    notation(bases.iter().map(|&base| Stage::Factor { base }).collect())
}

/// Returns `cTmB,...,eTmB`; `threshold` is a multiple of `base`.
#[must_use]
pub fn collapsed(threshold: u32, base: u32, bases: &[u32]) -> Notation {
    let mut stages = vec![Stage::Collapse { threshold, base }];
    stages.extend(bases.iter().map(|&base| Stage::Factor { base }));
    stages.push(Stage::Expand { threshold, base });
    notation(stages)
}

/// Returns `mRgGaB,...,nRgGaB`; there are at least two bases and one remainder rank.
#[must_use]
pub fn merging(remainder: u32, bases: &[u32]) -> Notation {
    let inner: u32 = bases.iter().product();
    let last = bases.len() - 1;
    let stage = |(index, &base): (usize, &u32)| match index {
        0 => Stage::Merge { remainder, groups: inner / base, base },
        index if index == last => Stage::InverseMerge { remainder, groups: inner / base, base },
        _ => Stage::Factor { base },
    };
    notation(bases.iter().enumerate().map(stage).collect())
}

fn notation(stages: Vec<Stage>) -> Notation {
    Notation::new(stages).expect("the construction follows the rules of the notation")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(notations: impl Iterator<Item = Notation>) -> Vec<String> {
        notations.map(|notation| notation.to_string()).collect()
    }

    /// The reference recursion.
    fn factorings(number: u32, smallest: u32, order: Order) -> Vec<Vec<u32>> {
        if number == 1 {
            return vec![Vec::new()];
        }
        let mut all = Vec::new();
        for first in (smallest..=number).filter(|first| number.is_multiple_of(*first)) {
            let next = if order == Order::Ordered { 2 } else { first };
            for rest in factorings(number / first, next, order) {
                all.push([vec![first], rest].concat());
            }
        }
        all
    }

    #[test]
    fn factorings_are_complete_and_in_order() {
        for number in 1..400 {
            for order in [Order::Ordered, Order::Unordered] {
                let found: Vec<_> = Factorings::new(number, order).collect();
                assert_eq!(found, factorings(number, 2, order), "{number} {order:?}");
            }
        }
    }

    #[test]
    fn factored_schedules_of_eight_ranks() {
        assert_eq!(texts(factored(8, Order::Ordered)), ["a2,a2,a2", "a2,a4", "a4,a2", "a8"]);
        assert_eq!(texts(factored(8, Order::Unordered)), ["a2,a2,a2", "a2,a4", "a8"]);
        assert_eq!(texts(factored(1, Order::Ordered)), [""; 0]);
    }

    /// Derivation: T is 2 to 5, B divides T, and the inner ranks are N - (T / B)(B - 1): c2m2 4,
    /// c3m3 3, c4m2 3, c4m4 2, c5m5 1.
    #[test]
    fn split_schedules_of_five_ranks() {
        let expected = [
            "c2m2,a2,a2,e2m2",
            "c2m2,a4,e2m2",
            "c3m3,a3,e3m3",
            "c4m2,a3,e4m2",
            "c4m4,a2,e4m4",
            "c5m5,e5m5",
        ];
        assert_eq!(texts(split(5, Order::Ordered)), expected);
    }

    #[test]
    fn merged_schedules_of_seven_ranks() {
        let expected = ["m1g3a2,n1g2a3", "m1g2a3,n1g3a2", "m3g2a2,n3g2a2"];
        assert_eq!(texts(merged(7, Order::Ordered)), expected);
    }

    /// A power of two has as many ordered factorisations as its exponent has compositions: 2^19
    /// here.
    #[test]
    fn the_first_schedules_of_a_million_ranks_come_at_once() {
        let first: Vec<_> = texts(all(1 << 20, Order::Ordered).take(3));
        assert!(first[0].starts_with("a2,a2,a2"));
        assert_eq!(factored(1 << 16, Order::Ordered).count(), 1 << 15);
    }
}
