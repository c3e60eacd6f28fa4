//! The worst partition of the ranks into groups for all_reduce: the exact minimum of (B(X_1) +
//! ... + B(X_k)) / (k - 1) over all partitions.
//!
//! One test covers all partitions: is there one with ratio below P / q, that is, q (B(X_1) + ... +
//! B(X_k)) - k P < -P? The weight of a set of ranks, h(X) = q B(X) - P, is submodular, so the
//! minimum sum over all partitions is found greedily. This is Edmonds' algorithm for Dilworth's
//! truncation (Schrijver, "Combinatorial Optimization", 2003, chapter 48; for the strength of a
//! graph, Cunningham 1985). Rank by rank, y(r) is the minimum of h(X) - y(X without r), a minimum
//! cut. X ranges over the sets of r and earlier ranks. All groups that intersect this X merge with
//! r. At the end the sum of y is the minimum sum, and the groups form a partition that attains it.
//! Its ratio is tested next, until no partition is below it (Dinkelbach).

use super::capacity::Capacities;
use super::own_cuts;

/// A group of a partition.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The ranks in it.
    pub(super) ranks: Vec<u32>,
    /// The minimum capacity that leaves a set of vertices with exactly these ranks.
    pub(super) exit: u128,
}

/// Returns the partition with the minimum total exit capacity per number of groups less one.
pub(super) fn worst(caps: &Capacities) -> Vec<Group> {
    let alone = (0..).zip(own_cuts(caps)).map(|(rank, exit)| Group { ranks: vec![rank], exit });
    let mut found: Vec<Group> = alone.collect();
    while let Some(worse) = worse(caps, &found) {
        found = worse;
    }
    found
}

/// Returns the total capacity that leaves the groups of a partition.
pub(super) fn exits(groups: &[Group]) -> u128 {
    groups.iter().map(|group| group.exit).sum()
}

/// A group under construction: its ranks, and the sum of their weights.
struct Part {
    ranks: Vec<u32>,
    worth: i128,
}

/// Returns a partition with a smaller ratio than `than`; `None` if `than` is minimal.
fn worse(caps: &Capacities, than: &[Group]) -> Option<Vec<Group>> {
    let ratio = Ratio { exits: exits(than), apart: than.len() as u128 - 1 };
    let mut worth: Vec<i128> = Vec::new();
    let mut parts: Vec<Part> = Vec::new();
    for rank in 0..caps.ranks {
        let (inside, least) = ratio.least_with(caps, rank, &worth);
        worth.push(least);
        let mut joined = Part { ranks: vec![rank], worth: least };
        parts.retain_mut(|part| {
            let meets = part.ranks.iter().any(|&other| inside[other as usize]);
            if meets {
                joined.ranks.append(&mut part.ranks);
                joined.worth += part.worth;
            }
            !meets
        });
        parts.push(joined);
    }
    let none = -ratio.exits.cast_signed();
    let less = parts.iter().map(|part| part.worth).sum::<i128>() < none;
    less.then(|| parts.iter().map(|part| ratio.group(part)).collect())
}

/// P / q: the exits of all groups over their number less one.
struct Ratio {
    exits: u128,
    apart: u128,
}

impl Ratio {
    /// Returns the set of a rank and earlier ranks that minimises h less the ranks' weights: its
    /// vertices, and that minimum.
    fn least_with(&self, caps: &Capacities, rank: u32, worth: &[i128]) -> (Vec<bool>, i128) {
        let source = u32::try_from(caps.vertices).unwrap_or(u32::MAX - 1);
        let sink = source + 1;
        let capacity: u128 = caps.edges.iter().map(|(.., capacity)| capacity).sum();
        let all = capacity * self.apart + worth.iter().map(|one| one.unsigned_abs()).sum::<u128>();
        // Excluding a rank of positive weight costs that weight; including one of negative weight
        // does too.
        let before = (0..).zip(worth).map(|(other, &worth)| match worth {
            0.. => (source, other, worth.unsigned_abs()),
            _ => (other, sink, worth.unsigned_abs()),
        });
        let after = (rank + 1..caps.ranks).map(|other| (other, sink, all + 1));
        let ends = before.chain(after).chain([(source, rank, all + 1)]);
        let mut graph = caps.flow(self.apart, ends);
        let cut = graph.most(source, sink).cast_signed();
        let positive: i128 = worth.iter().copied().filter(|&worth| worth > 0).sum();
        (graph.source_side(), cut - positive - self.exits.cast_signed())
    }

    /// Returns a group whose ranks have the total weight q B(X) - P.
    fn group(&self, part: &Part) -> Group {
        let exit = (part.worth + self.exits.cast_signed()).unsigned_abs() / self.apart;
        Group { ranks: part.ranks.clone(), exit }
    }
}
