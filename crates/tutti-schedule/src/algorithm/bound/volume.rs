//! The limits of all_to_all, and groups of ranks connected by fast links.

use std::collections::{BTreeMap, BTreeSet};

use super::capacity::Capacities;
use super::division::{self, Group};
use super::own_cuts;
use tutti_topology::search::least_costs;
use tutti_units::TimePerByte;

/// Returns the components that remain without the links below a capacity, for each capacity that
/// leaves more than one.
fn joined_above_each_rate(caps: &Capacities) -> Vec<Vec<Group>> {
    let rates: BTreeSet<u128> = caps.edges.iter().map(|(.., capacity)| *capacity).collect();
    let groups = rates.into_iter().map(|least| joined(caps, least));
    groups.filter(|groups| groups.len() > 1).collect()
}

fn joined(caps: &Capacities, least: u128) -> Vec<Group> {
    let mut parent: Vec<u32> = (0..).take(caps.vertices).collect();
    let kept = caps.edges.iter().filter(|(.., capacity)| *capacity >= least);
    for &(a, b, _) in kept {
        let (a, b) = (top(&mut parent, a), top(&mut parent, b));
        parent[a.max(b) as usize] = a.min(b);
    }
    let mut groups: BTreeMap<u32, Group> = BTreeMap::new();
    for rank in 0..caps.ranks {
        groups.entry(top(&mut parent, rank)).or_insert(Group { ranks: 0, exit: 0 }).ranks += 1;
    }
    for &(from, to, capacity) in &caps.edges {
        let (from, to) = (top(&mut parent, from), top(&mut parent, to));
        if let Some(group) = groups.get_mut(&from).filter(|_| from != to) {
            group.exit += capacity;
        }
    }
    groups.into_values().collect()
}

/// Returns the vertex that represents the group of another.
fn top(parent: &mut [u32], mut vertex: u32) -> u32 {
    while parent[vertex as usize] != vertex {
        let above = parent[parent[vertex as usize] as usize];
        parent[vertex as usize] = above;
        vertex = above;
    }
    vertex
}

/// all_to_all: returns the largest of the limits of single ranks, of groups, of ranks below and
/// above a number, and of distances.
pub(super) fn exchanged(out: &Capacities, back: &Capacities) -> TimePerByte {
    let n = u128::from(out.ranks);
    let limit = |ranks: u128, exit: u128| out.time(ranks * (n - ranks), n, exit);
    let mut worst = TimePerByte::ZERO;
    for caps in [out, back] {
        let alone = own_cuts(caps).into_iter().map(|exit| limit(1, exit));
        let groups = joined_above_each_rate(caps).into_iter().flatten();
        let groups = groups.chain(division::worst(caps));
        let groups = groups.map(|group| limit(group.ranks, group.exit));
        let numbers =
            (1..caps.ranks).map(|below| limit(u128::from(below), exit_below(caps, below)));
        worst = alone.chain(groups).chain(numbers).fold(worst, Ord::max);
    }
    let greatest = out.edges.iter().map(|(.., capacity)| *capacity).max().unwrap_or(1);
    worst.max(by_distance(out, |_| 1)).max(by_distance(out, |capacity| 1024 * greatest / capacity))
}

/// Returns the minimum capacity that leaves a set with exactly the ranks below a number.
fn exit_below(caps: &Capacities, below: u32) -> u128 {
    let source = u32::try_from(caps.vertices).unwrap_or(u32::MAX - 1);
    let sink = source + 1;
    let all: u128 = caps.edges.iter().map(|(.., capacity)| capacity).sum();
    let end = |rank| if rank < below { (source, rank, all) } else { (rank, sink, all) };
    caps.flow(1, (0..caps.ranks).map(end)).most(source, sink)
}

/// Returns the limit from lengths: bytes times distance, over capacity times length.
fn by_distance(caps: &Capacities, length: impl Fn(u128) -> u128) -> TimePerByte {
    let volume: u128 = caps.edges.iter().map(|&(.., capacity)| capacity * length(capacity)).sum();
    let from = |rank| {
        let distances = least_costs(caps.vertices, rank, u128::MAX, |at, visit| {
            caps.leaving(at).for_each(|(to, capacity)| visit(to, length(capacity)));
        });
        distances.into_iter().take(caps.ranks as usize)
    };
    let all: u128 = (0..caps.ranks).flat_map(from).sum();
    if volume == 0 { TimePerByte::ZERO } else { caps.time(all, u128::from(caps.ranks), volume) }
}
