//! Routing of tokens to experts: a random sample, with limits on groups and nodes.
//!
//! A token selects the `top_k` experts with the largest scores ln(share) + Gumbel, that is, draws
//! them without repetition in proportion to their shares (Gumbel top-k, Efraimidis and Spirakis
//! 2006). With G = -ln(-ln(1 - u)) for a random u, the order of scores is the inverse order of the
//! keys -ln(1 - u) / share; if all shares are equal, that of u, which needs no logarithm.

use std::sync::atomic::{AtomicBool, Ordering};

use tutti_units::random::Pcg64;

/// The key of an expert that a token may not select.
const REFUSED: f64 = f64::INFINITY;
/// Keys that are compared at once, without branches.
const LANES: usize = 8;
/// The most factors, of 2^-53 or more each, whose product is a normal number.
const MOST_FACTORS: usize = 16;

/// A limit on the parts, groups or nodes, that the experts of a token belong to.
#[derive(Clone, Debug)]
pub struct Limit {
    parts: Vec<Part>,
    /// The parts that a token selects.
    most: usize,
}

impl Limit {
    /// A limit to `most` parts; `part_of` has the part of each expert.
    #[must_use]
    pub fn new(part_of: &[usize], most: usize) -> Limit {
        let parts = part_of.iter().max().map_or(0, |part| part + 1);
        let mut members = vec![Vec::new(); parts];
        for (expert, &part) in part_of.iter().enumerate() {
            members[part].push(expert);
        }
        Limit {
            parts: members.into_iter().map(Part::new).collect(),
            most: most.clamp(1, parts.max(1)),
        }
    }
}

/// The experts of a group or a node.
#[derive(Clone, Debug)]
struct Part {
    members: Vec<usize>,
    is_range: bool,
}

impl Part {
    fn new(members: Vec<usize>) -> Part {
        let is_range = members.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        Part { members, is_range }
    }

    /// The keys of its experts, which are copied to `gathered` if they are not neighbours.
    fn keys<'a>(&self, keys: &'a [f64], gathered: &'a mut Vec<f64>) -> &'a [f64] {
        match self.members.first() {
            Some(&first) if self.is_range => &keys[first..first + self.members.len()],
            _ => {
                gathered.clear();
                gathered.extend(self.members.iter().map(|&expert| keys[expert]));
                gathered
            }
        }
    }
}

/// Selects the experts of tokens.
#[derive(Clone, Debug)]
pub struct Router {
    /// The inverse of each expert's share; None if all are equal.
    inverse: Option<Vec<f64>>,
    experts: usize,
    top_k: usize,
    limits: Vec<Limit>,
}

impl Router {
    /// A router to `top_k` of the experts with these shares; limits apply in order.
    #[must_use]
    pub fn new(shares: &[f64], top_k: usize, mut limits: Vec<Limit>) -> Router {
        let is_uniform = shares.windows(2).all(|pair| pair[0].total_cmp(&pair[1]).is_eq());
        // The least share keeps keys finite: its experts are selected only if no others are left.
        let inverse = |share: &f64| 1.0 / share.max(1e-300);
        if limits.is_empty() {
            limits.push(Limit::new(&vec![0; shares.len()], 1));
        }
        Router {
            inverse: (!is_uniform).then(|| shares.iter().map(inverse).collect()),
            experts: shares.len(),
            top_k: top_k.max(1),
            limits,
        }
    }

    /// Appends the experts of `tokens` tokens to `chosen`, `top_k` per token, until `stop` is set.
    /// Returns whether all tokens were routed: if not, it was stopped, or the selected parts of a
    /// token have fewer experts than `top_k`.
    ///
    /// The random integers are drawn in the order of `Generator.gumbel` of NumPy, whose rejected
    /// integers are rejected here, too.
    pub fn route(
        &self,
        tokens: usize,
        mut random: Pcg64,
        stop: &AtomicBool,
        chosen: &mut Vec<u32>,
    ) -> bool {
        let mut buffers = Buffers::default();
        buffers.keys.resize(self.experts, REFUSED);
        buffers.below.resize(self.experts, 0);
        (0..tokens).all(|_| {
            self.draw(&mut random, &mut buffers.keys);
            let mut bound = REFUSED;
            for limit in &self.limits {
                bound = self.select_parts(limit, &mut buffers);
            }
            self.select_experts(bound, &mut buffers, chosen) && !stop.load(Ordering::Relaxed)
        })
    }

    /// Draws the keys of a token.
    fn draw(&self, random: &mut Pcg64, keys: &mut [f64]) {
        keys.fill_with(|| nonzero_unit(random));
        if let Some(inverse) = &self.inverse {
            for (key, inverse) in keys.iter_mut().zip(inverse) {
                *key = exponential(*key) * inverse;
            }
        }
    }

    /// Refuses the experts outside the parts with the largest sums of their best scores. Returns a
    /// key that at least `top_k` experts do not exceed, or [`REFUSED`].
    fn select_parts(&self, limit: &Limit, buffers: &mut Buffers) -> f64 {
        let Buffers { keys, gathered, least, parts, .. } = buffers;
        if limit.most == limit.parts.len() {
            return bound_of_smallest(keys, self.top_k);
        }
        let best = self.top_k.div_ceil(limit.most);
        parts.clear();
        for (at, part) in limit.parts.iter().enumerate() {
            smallest(part.keys(keys, gathered), best, least);
            parts.push((self.cost(least), at, least[best - 1]));
        }
        // The first of equal parts.
        parts.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for &(_, part, _) in &parts[limit.most..] {
            for &expert in &limit.parts[part].members {
                keys[expert] = REFUSED;
            }
        }
        parts[..limit.most].iter().map(|&(.., key)| key).fold(0.0, f64::max)
    }

    /// Decreases as the sum of the scores of these keys increases.
    fn cost(&self, keys: &[f64]) -> f64 {
        let keys = keys.iter();
        match &self.inverse {
            None if keys.len() <= MOST_FACTORS => keys.map(|&key| exponential(key)).product(),
            None => keys.map(|&key| libm::log(exponential(key))).sum(),
            Some(_) => keys.map(|&key| libm::log(key)).sum(),
        }
    }

    /// Appends the `top_k` experts with the smallest keys, which do not exceed `bound`; returns
    /// whether there are so many.
    fn select_experts(&self, bound: f64, buffers: &mut Buffers, chosen: &mut Vec<u32>) -> bool {
        let Buffers { keys, below, .. } = buffers;
        let bound = bound.min(f64::MAX);
        let mut count = 0;
        // Without branches, which would be mispredicted.
        for (expert, &key) in (0..).zip(&*keys) {
            below[count] = expert;
            count += usize::from(key <= bound);
        }
        let below = &mut below[..count];
        if count > self.top_k {
            let key = |expert: u32| keys[expert as usize];
            let order = |&a: &u32, &b: &u32| key(a).total_cmp(&key(b)).then(a.cmp(&b));
            below.select_nth_unstable_by(self.top_k - 1, order);
        }
        chosen.extend(below.iter().take(self.top_k));
        count >= self.top_k
    }
}

/// What a token needs, allocated once.
#[derive(Default)]
struct Buffers {
    /// The key of each expert.
    keys: Vec<f64>,
    gathered: Vec<f64>,
    /// The smallest keys of a part.
    least: Vec<f64>,
    /// The cost of each part, its index, and the largest of its smallest keys.
    parts: Vec<(f64, usize, f64)>,
    /// Experts whose keys do not exceed a bound.
    below: Vec<u32>,
}

/// A real in [0, 1), as `next_double` of NumPy.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact in f64")]
fn unit(bits: u64) -> f64 {
    (bits >> 11).cast_signed() as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// The next real in (0, 1): zero is rejected and drawn again.
#[inline]
fn nonzero_unit(random: &mut Pcg64) -> f64 {
    loop {
        let drawn = unit(random.next_bits());
        if drawn > 0.0 {
            return drawn;
        }
    }
}

/// An exponentially distributed number, whose negative logarithm is Gumbel's.
#[inline]
fn exponential(unit: f64) -> f64 {
    if unit < REFUSED { -libm::log(1.0 - unit) } else { REFUSED }
}

/// Fills `least` with the `count` smallest keys, the largest of them last; with [`REFUSED`] if there
/// are fewer.
fn smallest(keys: &[f64], count: usize, least: &mut Vec<f64>) {
    least.clear();
    if count <= 2 {
        least.extend_from_slice(&two_smallest(keys)[..count]);
        return;
    }
    let bound = bound_of_smallest(keys, count);
    least.extend(keys.iter().filter(|&&key| key <= bound));
    if least.len() > count {
        least.select_nth_unstable_by(count - 1, f64::total_cmp);
    } else {
        least.sort_unstable_by(f64::total_cmp);
    }
    least.resize(count, REFUSED);
}

/// Returns the two smallest keys in ascending order.
fn two_smallest(keys: &[f64]) -> [f64; 2] {
    let [mut first, mut second] = two_smallest_of_lanes(keys);
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            let (a, b) = (first[lane], first[lane + half]);
            first[lane] = least_of(a, b);
            second[lane] = least_of(largest_of(a, b), least_of(second[lane], second[lane + half]));
        }
        half /= 2;
    }
    [first[0], second[0]]
}

/// Returns a key that at least `count` keys do not exceed; [`REFUSED`] if none is found.
fn bound_of_smallest(keys: &[f64], count: usize) -> f64 {
    if count > 2 * LANES {
        return REFUSED;
    }
    let found = two_smallest_of_lanes(keys);
    let found = found.as_flattened();
    let is_bound = |&key: &f64| found.iter().filter(|&&other| other <= key).count() >= count;
    // Sorting would mispredict its branches.
    found
        .iter()
        .copied()
        .map(|key| if is_bound(&key) { key } else { REFUSED })
        .fold(REFUSED, least_of)
}

/// Returns the smallest and the second smallest of every eighth key.
fn two_smallest_of_lanes(keys: &[f64]) -> [[f64; LANES]; 2] {
    let [mut first, mut second] = [[REFUSED; LANES]; 2];
    let mut compare = |keys: &[f64; LANES]| {
        for lane in 0..LANES {
            let larger = largest_of(first[lane], keys[lane]);
            first[lane] = least_of(first[lane], keys[lane]);
            second[lane] = least_of(second[lane], larger);
        }
    };
    let (chunks, rest) = keys.as_chunks();
    chunks.iter().for_each(&mut compare);
    if !rest.is_empty() {
        let mut last = [REFUSED; LANES];
        last[..rest.len()].copy_from_slice(rest);
        compare(&last);
    }
    [first, second]
}

/// Returns the smaller key. Unlike `f64::min`, this is one instruction: no key is NaN.
#[inline]
fn least_of(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// Returns the larger key.
#[inline]
fn largest_of(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routed(router: &Router, tokens: usize, random: Pcg64) -> Option<Vec<u32>> {
        let mut chosen = Vec::new();
        router.route(tokens, random, &AtomicBool::new(false), &mut chosen).then_some(chosen)
    }

    /// A generator whose first integer is zero.
    fn first_zero() -> Pcg64 {
        let mut inverse = 1_u128;
        // Newton's iteration for the inverse of the multiplier, which steps the state back.
        let multiplier = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645_u128;
        for _ in 0..8 {
            let rest = 2_u128.wrapping_sub(multiplier.wrapping_mul(inverse));
            inverse = inverse.wrapping_mul(rest);
        }
        // Both halves of the next state are equal.
        let next = (7_u128 << 64) | 7;
        Pcg64::new(next.wrapping_sub(1).wrapping_mul(inverse), 1)
    }

    #[test]
    fn zero_is_rejected_as_in_numpy() {
        let random = first_zero();
        let mut after = random;
        assert_eq!(after.next_bits(), 0);
        for shares in [[0.1; 10], [1., 2., 3., 4., 5., 6., 7., 8., 9., 10.]] {
            let router = Router::new(&shares, 3, vec![]);
            assert_eq!(routed(&router, 5, random), routed(&router, 5, after));
        }
    }

    #[test]
    fn experts_of_share_zero_are_selected_last() {
        let router = Router::new(&[0.0, 0.5, 0.0, 0.5], 3, vec![]);
        for chosen in routed(&router, 50, Pcg64::new(1, 1)).unwrap().chunks(3) {
            assert!(chosen.contains(&1) && chosen.contains(&3));
        }
    }

    #[test]
    fn a_token_without_enough_experts_is_refused() {
        // One of two halves, then one of their odd and even experts: one expert is left.
        let limits = || vec![Limit::new(&[0, 0, 1, 1], 1), Limit::new(&[0, 1, 0, 1], 1)];
        let router = |top_k| Router::new(&[0.25; 4], top_k, limits());
        assert_eq!(routed(&router(1), 3, Pcg64::new(1, 1)).map(|chosen| chosen.len()), Some(3));
        assert_eq!(routed(&router(2), 3, Pcg64::new(1, 1)), None);
    }

    #[test]
    fn smallest_keys_are_those_of_sorting() {
        let mut random = Pcg64::new(5, 9);
        let (mut keys, mut least) = (vec![0.0; 43], Vec::new());
        for length in 1..keys.len() {
            keys.fill_with(|| unit(random.next_bits()));
            let mut expected = keys[..length].to_vec();
            expected.sort_by(f64::total_cmp);
            expected.resize(keys.len(), REFUSED);
            for count in 1..=keys.len() {
                smallest(&keys[..length], count, &mut least);
                assert_eq!(
                    least.last().map(|key| key.to_bits()),
                    Some(expected[count - 1].to_bits())
                );
                least.sort_by(f64::total_cmp);
                assert!(least.iter().zip(&expected).all(|(a, b)| a.total_cmp(b).is_eq()));
                assert_eq!(least.len(), count);
            }
        }
    }
}
