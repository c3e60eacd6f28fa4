//! Fingerprints: the stored properties of a partial reduction, in 32 bytes.
//!
//! Every contribution has pseudo-random hashes, generated from its id. A value consists of
//! - the number of its contributions and the sum of their 96-bit weights, in two independent words.
//!   A wrong multiset of n contributions has the right sum with probability at most n^2 2^-96.
//!   (Multiplicities that are divisible by a power of two, at most n, cost up to log2 n bits of
//!   each word.)
//! - a hash of its fold tree that ignores the order of the two operands of an addition. Trees that
//!   differ in more than that have the same hash with probability about 2^-64 per fold.
//! - a polynomial hash, modulo 2^61 - 1, of its contributions from left to right. A different
//!   sequence of n contributions has the same hash with probability at most n 2^-60.
//!
//! For 4,096 ranks with 4,096 chunks, so 2^24 results and as many folds, a wrong result passes with
//! probability below 2^24 x 2^24 x 2^-96 = 2^-48. A class is claimed wrongly with probability below
//! 2^-24 for rank order (2^24 chunks' sequences x 2^12 x 2^-60) and 2^-40 for the others. The
//! hashes are fixed, so a schedule always has the same result.

use super::fast::{Algebra, COMPUTED, contribution};
use super::folds::Folds;
use super::{Reproducibility, VerifyError};
use tutti_units::ids::RankId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value {
    sum: u64,
    pub(super) tree: u64,
    pub(super) sequence: u64,
    more_sum: u32,
    count: u32,
}

impl Value {
    /// Returns what represents the multiset of contributions.
    pub(super) fn summed(&self) -> (u64, u32, u32) {
        (self.sum, self.more_sum, self.count)
    }

    /// Returns the value with the multiset of both.
    #[inline]
    fn with(&self, more: &Value) -> Value {
        Value {
            sum: self.sum.wrapping_add(more.sum),
            more_sum: self.more_sum.wrapping_add(more.more_sum),
            count: self.count.saturating_add(more.count),
            ..*self
        }
    }
}

/// The expected value of a chunk, and the observed values.
struct Expected {
    /// The sequential sum in rank order; its multiset only, once no class depends on the order.
    value: Value,
    /// A value that was found correct.
    right: u32,
    /// The fold tree and the sequence of the first result.
    first: Option<(u64, u64)>,
}

/// Adds fingerprints.
pub(super) struct Adder {
    /// Powers of the base of the sequence hash.
    powers: Vec<u64>,
}

impl Adder {
    pub(super) fn new(ranks: u32) -> Adder {
        let power = |power: &u64| Some(modular(*power, BASE));
        let powers = std::iter::successors(Some(1), power).take(ranks.min(1 << 16) as usize + 1);
        Adder { powers: powers.collect() }
    }

    #[inline]
    pub(super) fn add(&self, a: &Value, b: &Value) -> Value {
        let shift = match self.powers.get(b.count as usize) {
            Some(power) => *power,
            None => power(b.count),
        };
        let sequence = modular(a.sequence, shift) + b.sequence;
        Value {
            tree: pair(a.tree, b.tree),
            sequence: if sequence >= PRIME { sequence - PRIME } else { sequence },
            ..a.with(b)
        }
    }
}

/// Compares the fingerprints of results with those expected.
pub(super) struct Fingerprints {
    ranks: u32,
    chunks: u32,
    folds: Folds,
    expected: Vec<Expected>,
    first: u32,
    class: Reproducibility,
}

impl Fingerprints {
    pub(super) fn new(ranks: u32, chunks: u32) -> Fingerprints {
        Fingerprints::of(Folds::new(ranks), ranks, chunks)
    }

    /// As [`Fingerprints::new`], with folds that store another number of values.
    pub(super) fn of(folds: Folds, ranks: u32, chunks: u32) -> Fingerprints {
        let (expected, class) = (Vec::new(), Reproducibility::ALL);
        Fingerprints { ranks, chunks, folds, expected, first: 0, class }
    }

    /// Returns a specific error if a single contribution explains the difference.
    fn explain(&self, rank: RankId, chunk: u32, found: &Value, expected: &Value) -> VerifyError {
        let weight = |id| (leaf(id).sum, leaf(id).more_sum);
        let differs = |a: &Value, b: &Value| {
            let difference = (a.sum.wrapping_sub(b.sum), a.more_sum.wrapping_sub(b.more_sum));
            let mut ids = (0..self.ranks).map(|origin| origin * self.chunks + chunk);
            ids.find(|&id| weight(id) == difference).map(|id| contribution(id, self.chunks))
        };
        if found.count.checked_add(1) == Some(expected.count)
            && let Some(contribution) = differs(expected, found)
        {
            return VerifyError::Missing { rank, chunk, contribution, count: 1 };
        }
        if expected.count.checked_add(1) == Some(found.count)
            && let Some(contribution) = differs(found, expected)
        {
            return VerifyError::Doubled { rank, chunk, contribution, fold: None };
        }
        VerifyError::Miscounted { rank, chunk, found: found.count, expected: expected.count }
    }
}

impl Algebra for Fingerprints {
    #[inline]
    fn fold(&mut self, ids: &[u32]) -> Result<u32, VerifyError> {
        self.folds.fold(ids)
    }

    #[inline]
    fn is_old(&self, id: u32) -> bool {
        self.folds.is_old(id)
    }

    fn recall(&mut self, ids: impl Iterator<Item = u32>) {
        self.folds.recall(ids);
    }

    fn expect(&mut self, chunks: std::ops::Range<u32>) {
        self.first = chunks.start;
        let leaf = |origin: u32, chunk: u32| leaf(origin * self.chunks + chunk);
        let mut values: Vec<Value> = chunks.clone().map(|chunk| leaf(0, chunk)).collect();
        let is_ordered = self.class.sequential || self.class.rank_order;
        // Rank by rank, because the additions of a chunk wait for each other.
        for origin in 1..self.ranks {
            for (chunk, value) in chunks.clone().zip(&mut values) {
                let next = leaf(origin, chunk);
                *value = if is_ordered { self.folds.add(value, &next) } else { value.with(&next) };
            }
        }
        let expected = |value| Expected { value, right: COMPUTED - 1, first: None };
        self.expected.clear();
        self.expected.extend(values.into_iter().map(expected));
    }

    #[inline]
    fn judge(&mut self, rank: RankId, chunk: u32, id: u32) -> Result<(), VerifyError> {
        let index = (chunk - self.first) as usize;
        if self.expected[index].right == id {
            return Ok(());
        }
        let (found, sequential) = (self.folds.value(id), self.expected[index].value);
        if found.summed() != sequential.summed() {
            return Err(self.explain(rank, chunk, &found, &sequential));
        }
        let expected = &mut self.expected[index];
        expected.right = id;
        let (tree, sequence) = *expected.first.get_or_insert((found.tree, found.sequence));
        self.class.same_on_all_ranks &= found.tree == tree;
        // Trees that differ only in the order of operands have different sequences.
        self.class.same_order_on_all_ranks &= (found.tree, found.sequence) == (tree, sequence);
        self.class.sequential &= found.tree == sequential.tree;
        self.class.rank_order &= found.sequence == sequential.sequence;
        Ok(())
    }

    fn count(&self, id: u32) -> u32 {
        self.folds.value(id).count
    }

    fn class(&self) -> Reproducibility {
        self.class
    }
}

/// 2^61 - 1.
const PRIME: u64 = (1 << 61) - 1;
const BASE: u64 = 0x0F1B_3C8A_59D2_6E47;

/// Returns the fingerprint of one contribution.
#[inline]
pub(super) fn leaf(id: u32) -> Value {
    let id = u64::from(id);
    let word = |stream: u64| mix(id.wrapping_add(stream));
    // The words of the weight are independent; the other hashes are never combined with it.
    let (word, more) = (word(0x9E37_79B9_7F4A_7C15), word(0x4CF5_AD43_2745_937F));
    Value {
        sum: word,
        tree: word,
        sequence: (word >> 4) + 1,
        more_sum: u32::try_from(more >> 32).unwrap_or(0),
        count: 1,
    }
}

/// The finaliser of SplitMix64.
#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Returns the hash of an addition of two trees, in either order.
#[inline]
fn pair(a: u64, b: u64) -> u64 {
    let low = a.min(b) ^ 0xA076_1D64_78BD_642F;
    let high = a.max(b) ^ 0xE703_7ED1_A0B4_28DB;
    let [low, high] = halves(u128::from(low) * u128::from(high));
    mix(low ^ high)
}

#[inline]
fn modular(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let [low, high] = halves(product << 3);
    // product = high 2^61 + low / 8, and 2^61 is 1.
    let sum = (low >> 3) + high;
    if sum >= PRIME { sum - PRIME } else { sum }
}

fn power(exponent: u32) -> u64 {
    let (mut result, mut base) = (1, BASE);
    for bit in 0..32 {
        if exponent >> bit & 1 == 1 {
            result = modular(result, base);
        }
        base = modular(base, base);
    }
    result
}

/// Returns the low and the high 64 bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the result is the two halves")]
fn halves(wide: u128) -> [u64; 2] {
    [wide as u64, (wide >> 64) as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modular_products_are_remainders() {
        let mut state = 3_u64;
        for _ in 0..1_000 {
            state = mix(state.wrapping_add(0x9E37_79B9_7F4A_7C15));
            let (a, b) = (state % PRIME, mix(state) % PRIME);
            let wide = u128::from(a) * u128::from(b) % u128::from(PRIME);
            assert_eq!(u128::from(modular(a, b)), wide);
        }
        assert_eq!(modular(PRIME - 1, PRIME - 1), 1);
        let by_steps = (0..1_000).fold(1, |power, _| modular(power, BASE));
        assert_eq!(power(1_000), by_steps);
    }

    #[test]
    fn sequences_join_and_trees_commute_but_do_not_associate() {
        let mut all = Fingerprints::new(8, 1);
        let left = all.fold(&[0, 1, 2, 3]).unwrap();
        let (a, b) = (all.fold(&[0, 1]).unwrap(), all.fold(&[2, 3]).unwrap());
        let balanced = all.fold(&[a, b]).unwrap();
        let commuted = all.fold(&[b, a]).unwrap();
        let [left, balanced, commuted] = [left, balanced, commuted].map(|id| all.folds.value(id));
        assert_eq!(left.sequence, balanced.sequence);
        assert_ne!(left.tree, balanced.tree);
        assert_eq!(balanced.tree, commuted.tree);
        assert_ne!(balanced.sequence, commuted.sequence);
        let sums = [left, balanced, commuted].map(|value| (value.sum, value.more_sum, value.count));
        assert!(sums.iter().all(|sum| *sum == sums[0]));
    }
}
