//! The limits of all_to_all and all_to_all_v, and groups of ranks connected by fast links.

use std::collections::{BTreeMap, BTreeSet};

use super::capacity::Capacities;
use super::division::{self, Group};
use super::own_cuts;
use crate::Layout;
use tutti_topology::search::least_costs;
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time, TimePerByte};

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
        let group = groups.entry(top(&mut parent, rank));
        group.or_insert(Group { ranks: Vec::new(), exit: 0 }).ranks.push(rank);
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

/// all_to_all: returns the largest of the limits of sets of ranks and of distances.
pub(super) fn exchanged(out: &Capacities, back: &Capacities) -> TimePerByte {
    let n = u128::from(out.ranks);
    let crossing = |ranks: &[u32]| ranks.len() as u128 * (n - ranks.len() as u128);
    let limits =
        [out, back].map(|caps| of_sets(caps, |set, exit| out.time(crossing(set), n, exit)));
    let distant = by_distance(out, |_, _| 1).map(|(all, volume)| out.time(all, n, volume));
    limits.into_iter().chain(distant).max().unwrap_or(TimePerByte::ZERO)
}

/// all_to_all_v: returns the same limits for a size per source and destination.
pub(super) fn exchanged_blocks(out: &Capacities, back: &Capacities, layout: &Layout) -> Time {
    let block = |from: u32, to: u32| layout.block(RankId(from), RankId(to)).0;
    let pairs = (0..out.ranks).flat_map(|from| (0..out.ranks).map(move |to| (from, to)));
    let bytes: Vec<u64> = pairs.map(|(from, to)| block(from, to)).collect();
    let at = |from: u32, to: u32| u128::from(bytes[(from * out.ranks + to) as usize]);
    let time = |bytes: u128, capacity: u128| {
        out.time(1, 1, capacity).of(Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)))
    };
    let crossing = |set: &[u32], is_out: bool| {
        let mut inside = vec![false; out.ranks as usize];
        set.iter().for_each(|&rank| inside[rank as usize] = true);
        let others = || (0..out.ranks).filter(|&rank| !inside[rank as usize]);
        let between = |a: u32, b: u32| if is_out { at(a, b) } else { at(b, a) };
        set.iter()
            .flat_map(|&member| others().map(move |other| (member, other)))
            .map(|(member, other)| between(member, other))
            .sum::<u128>()
    };
    let limits = [(out, true), (back, false)]
        .map(|(caps, is_out)| of_sets(caps, |set, exit| time(crossing(set, is_out), exit)));
    let distant = by_distance(out, at).map(|(all, volume)| time(all, volume));
    limits.into_iter().chain(distant).max().unwrap_or(Time::ZERO)
}

/// Returns the largest limit of single ranks, of groups, and of ranks below a number. The limit is
/// that of a set of ranks and of the minimum capacity that leaves it.
fn of_sets<T: Ord>(caps: &Capacities, limit: impl Fn(&[u32], u128) -> T) -> T {
    let alone = (0..).zip(own_cuts(caps)).map(|(rank, exit)| Group { ranks: vec![rank], exit });
    let groups = joined_above_each_rate(caps).into_iter().flatten().chain(division::worst(caps));
    let below = |below: u32| Group { ranks: (0..below).collect(), exit: exit_below(caps, below) };
    let sets = alone.chain(groups).chain((1..caps.ranks).map(below));
    sets.map(|set| limit(&set.ranks, set.exit)).max().expect("there are at least two ranks")
}

/// Returns the minimum capacity that leaves a set with exactly the ranks below a number.
fn exit_below(caps: &Capacities, below: u32) -> u128 {
    let source = u32::try_from(caps.vertices).unwrap_or(u32::MAX - 1);
    let sink = source + 1;
    let all: u128 = caps.edges.iter().map(|(.., capacity)| capacity).sum();
    let end = |rank| if rank < below { (source, rank, all) } else { (rank, sink, all) };
    caps.flow(1, (0..caps.ranks).map(end)).most(source, sink)
}

/// Returns bytes times distance, and capacity times length, for each length of links that is tried.
fn by_distance(caps: &Capacities, bytes: impl Fn(u32, u32) -> u128) -> [(u128, u128); 2] {
    let greatest = caps.edges.iter().map(|(.., capacity)| *capacity).max().unwrap_or(1);
    let with = |length: &dyn Fn(u128) -> u128| {
        let lengths = caps.edges.iter().map(|&(.., capacity)| capacity * length(capacity));
        let from = |rank| {
            let distances = least_costs(caps.vertices, rank, u128::MAX, |at, visit| {
                caps.leaving(at).for_each(|(to, capacity)| visit(to, length(capacity)));
            });
            let others = (0..caps.ranks).zip(distances);
            others.fold(0_u128, |sum, (to, distance)| {
                sum.saturating_add(bytes(rank, to).saturating_mul(distance))
            })
        };
        ((0..caps.ranks).map(from).fold(0, u128::saturating_add), lengths.sum::<u128>().max(1))
    };
    [with(&|_| 1), with(&|capacity| 1024 * greatest / capacity)]
}
