//! Default schedule of recursive multiplying.
//!
//! **The rule.** The cost of a schedule is the sum of its stage times in the pipelining postal
//! model for small messages, in units of alpha_r: a stage of b messages costs `ratio + b`, where
//! ratio is alpha_p / alpha_r (see [`stage_bound`](super::recursive_multiplying::stage_bound)). The
//! search takes the cheapest of:
//!
//! 1. all factored schedules, with any factors;
//! 2. merged schedules whose inner ranks are a product of bases up to 16;
//! 3. split schedules whose inner ranks are a product of bases up to 16, and whose base is up to
//!    16.
//!
//! Ties go to the kind listed first, then to the schedule with more inner ranks, then to the
//! smaller base of the split. Bases are in descending order, as in most of the paper's Table 2. The
//! limit of 16 bounds the search to some thousand inner ranks even for millions of ranks. It loses
//! nothing at the ratios of real networks: 16 is the best base only at a ratio of about 29 (eq. (5)
//! of the paper).

use std::collections::BTreeMap;

use super::search;
use crate::notation::Notation;

/// The largest base in the inner ranks of a split or merged schedule, and of a split.
const LARGEST_BASE: u32 = 16;

/// alpha_p / alpha_r in thousandths, from 1 to 1000000.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ratio(u64);

impl Ratio {
    /// 4: the machine of the paper's Table 1 has 3.94 by minima and 3.97 by medians.
    pub(super) const DEFAULT: Ratio = Ratio(4_000);

    /// Reads `4` or `3.94`.
    pub(super) fn parse(text: &str) -> Result<Ratio, &'static str> {
        let problem =
            "expected a ratio from 1 to 1000000 with at most three decimals, such as 3.94";
        let (integer, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !is_number(integer) || !is_number(decimals) || decimals.len() > 3 || integer.len() > 7 {
            return Err(problem);
        }
        let parse = |digits: &str| digits.parse::<u64>().map_err(|_| problem);
        let thousandths = parse(&format!("{decimals:0<3}"))? + parse(integer)? * 1_000;
        let allowed = 1_000..=1_000_000_000;
        if allowed.contains(&thousandths) { Ok(Ratio(thousandths)) } else { Err(problem) }
    }

    /// Returns the cost of a stage of `messages` messages, in thousandths of alpha_r.
    fn stage(self, messages: u32) -> u64 {
        self.0 + 1_000 * u64::from(messages)
    }
}

/// The cheapest factorisation of each number: its cost and its last factor.
type Cheapest = BTreeMap<u32, (u64, u32)>;

/// Returns the schedule for `ranks` ranks, at least two.
pub(super) fn choose(ranks: u32, ratio: Ratio) -> Notation {
    let exact = cheapest_factorings(ranks, ratio);
    let mut best = (exact[&ranks].0, search::factors(&factors_of(&exact, ranks)));
    let smooth = cheapest_products(ranks, ratio);
    for (cost, notation) in
        [merged(ranks, &smooth), split(ranks, ratio, &smooth)].into_iter().flatten()
    {
        if cost < best.0 {
            best = (cost, notation);
        }
    }
    best.1
}

fn merged(ranks: u32, smooth: &Cheapest) -> Option<(u64, Notation)> {
    let mut best: Option<(u64, u32, Vec<u32>)> = None;
    for (&inner, &(cost, _)) in smooth.range(..ranks).rev() {
        if best.as_ref().is_some_and(|&(least, ..)| cost >= least) {
            continue;
        }
        let bases = factors_of(smooth, inner);
        let Some(&last) = bases.last().filter(|_| bases.len() >= 2) else { continue };
        let remainder = ranks - inner;
        // A remainder rank sends to all B members of a group, one message more than a member does.
        // The members of the last stage also send to their share of the remainder ranks.
        let more = 1 + u64::from(remainder.div_ceil(inner / last));
        let cost = cost + 1_000 * more;
        if best.as_ref().is_none_or(|&(least, ..)| cost < least) {
            best = Some((cost, remainder, bases));
        }
    }
    best.map(|(cost, remainder, bases)| (cost, search::merging(remainder, &bases)))
}

fn split(ranks: u32, ratio: Ratio, smooth: &Cheapest) -> Option<(u64, Notation)> {
    let mut best: Option<(u64, u32, u32)> = None;
    for (&inner, &(cost, _)) in smooth.range(..ranks).rev() {
        let gone = ranks - inner;
        let fits = |base: &u32| gone.is_multiple_of(base - 1) && gone / (base - 1) <= inner;
        let Some(base) = (2..=LARGEST_BASE).find(fits) else { continue };
        let cost = cost + ratio.stage(1) + ratio.stage(base - 1);
        if best.is_none_or(|(least, ..)| cost < least) {
            best = Some((cost, inner, base));
        }
    }
    best.map(|(cost, inner, base)| {
        let threshold = (ranks - inner) / (base - 1) * base;
        (cost, search::collapsed(threshold, base, &factors_of(smooth, inner)))
    })
}

/// Returns the cheapest factorisation of every divisor of `number`.
fn cheapest_factorings(number: u32, ratio: Ratio) -> Cheapest {
    let small = (1..).take_while(|d| u64::from(*d) * u64::from(*d) <= u64::from(number));
    let mut divisors: Vec<u32> = small.filter(|d| number.is_multiple_of(*d)).collect();
    divisors.extend(divisors.clone().iter().map(|small| number / small));
    divisors.sort_unstable();
    divisors.dedup();
    let mut cheapest = Cheapest::from([(1, (0, 1))]);
    for &divisor in &divisors[1..] {
        let factors = divisors[1..].iter().filter(|factor| divisor.is_multiple_of(**factor));
        let options = factors.map(|&factor| {
            (cheapest.get(&(divisor / factor)).map_or(u64::MAX, |option| option.0), factor)
        });
        let costs =
            options.map(|(rest, factor)| (rest.saturating_add(ratio.stage(factor - 1)), factor));
        if let Some(least) = costs.min() {
            cheapest.insert(divisor, least);
        }
    }
    cheapest
}

/// Returns the cheapest factorisation of every product of bases up to [`LARGEST_BASE`] that is at
/// most `limit`.
fn cheapest_products(limit: u32, ratio: Ratio) -> Cheapest {
    let mut cheapest = Cheapest::from([(1, (0, 1))]);
    let mut at = 1;
    while let Some((&number, &(cost, _))) = cheapest.range(at..).next() {
        for base in 2..=LARGEST_BASE {
            let Some(product) = number.checked_mul(base).filter(|product| *product <= limit) else {
                break;
            };
            let option = (cost + ratio.stage(base - 1), base);
            let known = cheapest.entry(product).or_insert(option);
            *known = option.min(*known);
        }
        at = number + 1;
    }
    cheapest
}

/// Returns the factors of a number in descending order.
fn factors_of(cheapest: &Cheapest, mut number: u32) -> Vec<u32> {
    let mut factors = Vec::new();
    while number > 1 {
        let factor = cheapest[&number].1;
        factors.push(factor);
        number /= factor;
    }
    factors.sort_unstable_by(|a, b| b.cmp(a));
    factors
}

#[cfg(test)]
mod tests {
    use super::super::recursive_multiplying::stage_bound;
    use super::*;

    fn cost(notation: &Notation, ratio: Ratio) -> u64 {
        stage_bound(notation).iter().map(|stage| ratio.stage(stage.messages)).sum()
    }

    #[test]
    fn no_schedule_of_few_ranks_is_cheaper() {
        for ratio in ["1", "4", "3.941", "12"].map(|text| Ratio::parse(text).unwrap()) {
            for ranks in 2..=24 {
                let chosen = cost(&choose(ranks, ratio), ratio);
                let all = search::all(ranks, search::Order::Ordered);
                let least = all.map(|notation| cost(&notation, ratio)).min().unwrap();
                assert_eq!(chosen, least, "{ranks} ranks at {ratio:?}: {}", choose(ranks, ratio));
            }
        }
    }

    /// Derivation at ratio 4, in alpha_r.
    /// - 7: a7 costs 4 + 6 = 10; m1g2a3,n1g3a2 costs (4 + 3) + (4 + 1 + 1) = 13.
    /// - 13: a13 costs 16; m1g3a4,n1g4a3 costs (4 + 4) + (4 + 2 + 1) = 15.
    /// - 64: a4,a4,a4 costs 3 (4 + 3) = 21; a8,a8 costs 2 (4 + 7) = 22.
    /// - 31: m1g6a5,n1g5a6 costs (4 + 6) + (4 + 4 + 1) = 19; a31 costs 34.
    #[test]
    fn choices_by_hand() {
        for (ranks, expected) in [(2, "a2"), (7, "a7"), (13, "m1g3a4,n1g4a3"), (64, "a4,a4,a4")] {
            assert_eq!(choose(ranks, Ratio::DEFAULT).to_string(), expected);
        }
        assert_eq!(cost(&choose(31, Ratio::DEFAULT), Ratio::DEFAULT), 19_000);
    }

    #[test]
    fn every_number_of_ranks_gets_a_schedule_even_a_large_prime() {
        for ranks in [1 << 20, 1_048_573, 16_777_213, 1 << 24] {
            let chosen = choose(ranks, Ratio::DEFAULT);
            assert_eq!(chosen.ranks(), ranks);
            assert!(chosen.stages().iter().all(|stage| stage.base() <= LARGEST_BASE), "{chosen}");
        }
    }

    #[test]
    fn invalid_ratios_are_refused() {
        for text in
            ["", "0.9", "0", "-4", "4,5", "4.", ".5", "1.2345", "1000001", "1e3", "99999999"]
        {
            assert!(Ratio::parse(text).is_err(), "{text}");
        }
        assert_eq!(Ratio::parse("3.94"), Ok(Ratio(3_940)));
        assert_eq!(Ratio::parse("1000000.000"), Ok(Ratio(1_000_000_000)));
    }
}
