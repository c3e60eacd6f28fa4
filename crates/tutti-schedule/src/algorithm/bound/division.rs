//! The worst division of the ranks into groups for all_reduce: of all divisions, the one with the least
//! (B(X_1) + ... + B(X_k)) / (k - 1), found exactly.
//!
//! Whether a division has less than a ratio P / q is asked of all divisions at once: is there one with
//! q (B(X_1) + ... + B(X_k)) - k P < -P? What a set of ranks is worth, h(X) = q B(X) - P, is submodular, so the
//! least sum over all divisions is found greedily (Edmonds' algorithm for what is called Dilworth's
//! truncation: Schrijver, "Combinatorial Optimization", 2003, chapter 48; for the strength of a graph
//! Cunningham 1985). Rank by rank, y(r) is the least of h(X) - y(X without r) over the sets X of r and ranks before
//! it, a smallest cut; all groups that this X meets become one with r. At the end the sum of y is the least sum, and
//! the groups are a division that has it. Its ratio is asked next, until there is none below (Dinkelbach).

use super::capacity::Capacities;
use super::own_cuts;

/// A group of a division.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// Ranks in it.
    pub(super) ranks: u128,
    /// The least that leaves a set of vertices with just these ranks.
    pub(super) exit: u128,
}

/// The division with the least exits of all groups over the number of groups less one.
pub(super) fn worst(caps: &Capacities) -> Vec<Group> {
    let alone = own_cuts(caps).into_iter().map(|exit| Group { ranks: 1, exit });
    let mut found: Vec<Group> = alone.collect();
    while let Some(worse) = worse(caps, &found) {
        found = worse;
    }
    found
}

/// What leaves the groups of a division, in all.
pub(super) fn exits(groups: &[Group]) -> u128 {
    groups.iter().map(|group| group.exit).sum()
}

/// A group that is being joined: its ranks, and the sum of what they are worth.
struct Part {
    ranks: Vec<u32>,
    worth: i128,
}

/// A division with less ratio than another; `None` where that one has the least.
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

/// P / q: exits of all groups over their number less one.
struct Ratio {
    exits: u128,
    apart: u128,
}

impl Ratio {
    /// The set of a rank and some before it whose h, less what these are worth, is least: the vertices,
    /// and how much that is.
    fn least_with(&self, caps: &Capacities, rank: u32, worth: &[i128]) -> (Vec<bool>, i128) {
        let source = u32::try_from(caps.vertices).unwrap_or(u32::MAX - 1);
        let sink = source + 1;
        let capacity: u128 = caps.edges.iter().map(|(.., capacity)| capacity).sum();
        let all = capacity * self.apart + worth.iter().map(|one| one.unsigned_abs()).sum::<u128>();
        // To leave out what is worth something costs that much; so does taking in what is a burden.
        let before = (0..).zip(worth).map(|(other, &worth)| match worth {
            0.. => (source, other, worth.unsigned_abs()),
            _ => (other, sink, worth.unsigned_abs()),
        });
        let after = (rank + 1..caps.ranks).map(|other| (other, sink, all + 1));
        let ends = before.chain(after).chain([(source, rank, all + 1)]);
        let mut graph = caps.flow(self.apart, ends);
        let cut = graph.most(source, sink).cast_signed();
        let wanted: i128 = worth.iter().copied().filter(|&worth| worth > 0).sum();
        (graph.source_side(), cut - wanted - self.exits.cast_signed())
    }

    /// A part whose ranks are together worth q B(X) - P.
    fn group(&self, part: &Part) -> Group {
        let exit = (part.worth + self.exits.cast_signed()).unsigned_abs() / self.apart;
        Group { ranks: part.ranks.len() as u128, exit }
    }
}
