//! The cheapest factorisations of numbers into bases: shortest paths over the lattice of divisors.
//!
//! On a flat network the times of a factored schedule's stages add up in any order, so the cheapest product of
//! p is F(p) = min over bases b of F(p / b) + f(b). [`Products::of_divisors`] computes it for every divisor of
//! one number. [`Products::up_to`] computes it for every product that can be a part of a result below a limit,
//! which is a few thousand among millions of numbers. With r = min f(b) / ln b, a product p that must grow to
//! at least P costs at least F(p) + r ln(P / p).

use std::collections::BTreeMap;

use super::bounds::Bounds;
use tutti_units::Time;

/// F for some numbers, and its bases.
pub(super) struct Products {
    least: BTreeMap<u32, Time>,
    /// In ascending order, with what each costs.
    bases: Vec<(u32, Time)>,
}

impl Products {
    /// Of all divisors of `number`, with all divisors as bases.
    pub(super) fn of_divisors(bounds: Bounds, number: u32) -> Products {
        let divisors = divisors(number);
        let cost = |&base: &u32| (base, bounds.exchange(base));
        let bases: Vec<_> = divisors.iter().filter(|base| **base > 1).map(cost).collect();
        let mut least = BTreeMap::from([(1, Time::ZERO)]);
        for &divisor in &divisors[1..] {
            let fits = bases.iter().filter(|(base, _)| divisor.is_multiple_of(*base));
            let sums = fits.filter_map(|(base, cost)| Some(*least.get(&(divisor / base))? + *cost));
            if let Some(cheapest) = sums.min() {
                least.insert(divisor, cheapest);
            }
        }
        Products { least, bases }
    }

    /// Of numbers up to `most`, with bases up to `largest`; those from `from` on that cost less than
    /// `under`, and those below that may become one of them.
    pub(super) fn up_to(
        bounds: Bounds,
        (from, most): (u32, u32),
        largest: u32,
        under: Time,
    ) -> Products {
        let costs = (2..=largest.min(most)).map(|base| (base, bounds.exchange(base)));
        // f never falls as the base grows.
        let bases: Vec<_> = costs.take_while(|(_, cost)| *cost < under).collect();
        let rate =
            bases.iter().map(|(base, cost)| real(cost.ps()) / ln(*base)).fold(f64::MAX, f64::min);
        let hopeless = |product: u32, cost: Time| {
            let to_go = if product < from { rate * (ln(from) - ln(product)) } else { 0.0 };
            // Rounding must not cut off what is exactly at the limit.
            cost >= under || (real(cost.ps()) + to_go) * (1.0 - 1e-9) > real(under.ps())
        };
        let mut least = BTreeMap::from([(1_u32, Time::ZERO)]);
        let mut at = 1_u32;
        while let Some((&product, &cost)) = least.range(at..).next() {
            at = product + 1;
            for &(base, more) in &bases {
                let Some(next) = product.checked_mul(base).filter(|next| *next <= most) else {
                    break;
                };
                let total = cost + more;
                if hopeless(next, total) {
                    continue;
                }
                least.entry(next).and_modify(|known| *known = total.min(*known)).or_insert(total);
            }
        }
        Products { least, bases }
    }

    /// Every number there is, with its least cost.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (u32, Time)> {
        self.least.iter().map(|(&number, &cost)| (number, cost))
    }

    pub(super) fn least(&self, number: u32) -> Option<Time> {
        self.least.get(&number).copied()
    }

    /// The bases of the cheapest product of a number that has one, largest first.
    pub(super) fn cheapest(&self, number: u32) -> Vec<u32> {
        let (mut left, mut factors) = (number, Vec::new());
        while left > 1 {
            let cost =
                |(base, cost): (u32, Time)| Some((*self.least.get(&(left / base))? + cost, base));
            let Some((_, base)) = self.bases_of(left).filter_map(cost).min() else { break };
            factors.push(base);
            left /= base;
        }
        factors.sort_unstable_by(|one, other| other.cmp(one));
        factors
    }

    /// The bases that divide `number`, largest first.
    pub(super) fn bases_of(&self, number: u32) -> impl Iterator<Item = (u32, Time)> {
        let end = self.bases.partition_point(|(base, _)| *base <= number);
        let divide = move |(base, _): &(u32, Time)| number.is_multiple_of(*base);
        self.bases[..end].iter().rev().copied().filter(divide)
    }
}

/// In ascending order.
pub(super) fn divisors(number: u32) -> Vec<u32> {
    let small = (1..).take_while(|d| u64::from(*d) * u64::from(*d) <= u64::from(number));
    let mut divisors: Vec<u32> = small.filter(|d| number.is_multiple_of(*d)).collect();
    let large: Vec<u32> = divisors.iter().rev().map(|small| number / small).collect();
    divisors.extend(large);
    divisors.dedup();
    divisors
}

fn ln(number: u32) -> f64 {
    libm::log(f64::from(number))
}

#[expect(clippy::cast_precision_loss, reason = "for a bound with a margin for rounding")]
fn real(ps: u64) -> f64 {
    ps as f64
}
