//! The lower bound of a collective's time from the links of a graph.
//!
//! The bound assumes only that a link carries at most its rate in each direction, that NPUs forward
//! and fold, and that switches only forward. N is the number of ranks, S the payload in bytes by
//! the convention of [`crate::collective`]. B(X) is the capacity of the links that leave a set X of
//! vertices, and |X| the number of ranks in X. The bytes that have to leave X share B(X):
//!
//! - all_gather: the |X| shards held in X. Limit: max over X of |X| S / (N B(X)).
//! - gather: the same, for X without the root.
//! - reduce_scatter: one value for each shard that belongs outside. Limit: (N - |X|) S / (N B(X)).
//! - scatter: the shards that belong outside, for X with the root. Limit: the same.
//! - broadcast: the payload, for X with the root. Limit: S / B(X).
//! - reduce: one value for each element, for X without the root. Limit: S / B(X).
//! - all_reduce: one value for each element, out of X and out of the rest. Limit: S / B(X).
//! - all_to_all: the parts of its ranks for other ranks. Limit: |X| (N - |X|) S / (N B(X)).
//!
//! **The worst X** of the first six is found exactly, by Dinkelbach's iteration on B(X) / |X|. With
//! a source that feeds y into every rank, the flow to each rank is N y if and only if no set has
//! less than y per rank. Otherwise the minimum cut is a set with less. This limit is attainable
//! (Zhao et al., "ForestColl", 2024, from Edmonds' packing of arborescences); for broadcast and
//! reduce this is Edmonds' theorem.
//!
//! **all_reduce.** Partition the ranks into k groups; X_i is any set of vertices with exactly the
//! ranks of group i, and switches. A group holds what any of its ranks holds. Every element takes
//! at least 2 (k - 1) messages between groups. Until the first group has the contributions of all,
//! every other group has sent one that arrived; afterwards every other group receives one. (With
//! one rank per group this is Harary and Schwenk's bound on one-way gossip, 1974.) A message from
//! group i uses its share of B(X_i), whatever the other sets are. This gives 2 (k - 1) S /
//! (B(X_1) + ... + B(X_k)), and the same with the capacity that enters. The worst partition is
//! found exactly (`division`). If every link has a reverse link and connects two ranks, the bound
//! is attainable, by trees that chunks traverse up and down (Tutte 1961; Nash-Williams 1961). It
//! holds only while values are folded at NPUs: switches that fold can be faster.
//!
//! For the other collectives, partitions add nothing to their groups. The bytes that k groups must
//! send, over the capacity that leaves them, is at most the largest of the k fractions. The bound
//! of all_reduce differs because any group may complete first: one group alone needs only S, but
//! all of them need 2 (k - 1) S.
//!
//! **all_to_all** has no such theorem. The sets tried are single ranks, the groups of the worst
//! partition for all_reduce, the components without the links below a rate, and ranks below a
//! number. For all_to_all_v, the bytes of the blocks from the ranks of X to other ranks, over B(X),
//! are the limit of the same sets. A second bound uses lengths: for any length of each link, the bytes of all pairs times
//! their distance are at most the links' rates times their lengths. Lengths of 1 and of the time
//! per byte are tried.

mod capacity;
mod division;
mod flow;
mod load;
#[cfg(test)]
mod tests;
mod volume;

pub use load::{by_link, most_loaded};

use capacity::Capacities;

use crate::collective::Collective;
use crate::{Blocks, Layout};
use tutti_topology::Topology;
use tutti_units::{Time, TimePerByte};

/// Above this product of ranks and links only each rank's links are checked.
const MOST_WORK: u64 = 60_000_000;

/// Returns the minimum time per byte of the collective's size on the first `ranks` NPUs of a
/// topology, from its links alone. The bound is proved, but not always tight.
#[must_use]
pub fn by_links(collective: Collective, ranks: u32, topology: &Topology) -> TimePerByte {
    with_reducers(collective, ranks, topology, Reducers::Npus)
}

/// As [`by_links`], where vertices may multicast or reduce: by vertex, whether it does.
#[must_use]
pub fn by_links_in_network(
    collective: Collective,
    ranks: u32,
    topology: &Topology,
    vertices: &[bool],
) -> TimePerByte {
    with_reducers(collective, ranks, topology, Reducers::Also(vertices))
}

/// The vertices that reduce or copy values.
#[derive(Clone, Copy)]
enum Reducers<'a> {
    /// The ranks.
    Npus,
    /// The ranks and these vertices. Limits of single sets of vertices hold; that of partitions holds if
    /// each of these vertices is in the set of a rank.
    Also(&'a [bool]),
}

fn with_reducers(
    collective: Collective,
    ranks: u32,
    topology: &Topology,
    reducers: Reducers<'_>,
) -> TimePerByte {
    let ranks = ranks.min(topology.npus());
    if ranks < 2 || collective == Collective::Barrier {
        return TimePerByte::ZERO;
    }
    let out = Capacities::of(topology, ranks);
    let back = out.reversed();
    let root = |rank: tutti_units::ids::RankId| rank.0.min(ranks - 1);
    if u64::from(ranks) * out.edges.len() as u64 > MOST_WORK {
        return roughly(collective, &out, &back, reducers);
    }
    match collective {
        Collective::AllGather => gathered(&out, 0..ranks),
        Collective::ReduceScatter => gathered(&back, 0..ranks),
        Collective::Gather { root: to } => gathered(&out, root(to)..root(to) + 1),
        Collective::Scatter { root: from } => gathered(&back, root(from)..root(from) + 1),
        Collective::Broadcast { root: from } => spread(&out, root(from)),
        Collective::Reduce { root: to } => spread(&back, root(to)),
        Collective::AllReduce => match reducers {
            Reducers::Npus => halves(&out, &back).max(divided(&out, &back)),
            Reducers::Also(vertices) => {
                let joined = out.joined(vertices);
                halves(&out, &back).max(divided(&joined, &joined.reversed()))
            }
        },
        Collective::AllToAll => volume::exchanged(&out, &back),
        // Its blocks decide; see `by_links_of_blocks`.
        Collective::AllToAllV | Collective::Barrier => TimePerByte::ZERO,
    }
}

/// Returns the minimum time of an all_to_all_v of this layout on a topology, from its links alone.
/// Zero for another collective, and for graphs too large for all cuts.
#[must_use]
pub fn by_links_of_blocks(layout: &Layout, topology: &Topology) -> Time {
    let ranks = layout.blocks().map_or(0, Blocks::ranks).min(topology.npus());
    if ranks < 2 || u64::from(ranks) * topology.link_count() as u64 > MOST_WORK {
        return Time::ZERO;
    }
    let out = Capacities::of(topology, ranks);
    volume::exchanged_blocks(&out, &out.reversed(), layout)
}

/// Returns the limit from each rank's links, for graphs too large for all cuts.
fn roughly(
    collective: Collective,
    out: &Capacities,
    back: &Capacities,
    reducers: Reducers<'_>,
) -> TimePerByte {
    let n = u128::from(out.ranks);
    let ends = |caps: &Capacities| {
        let mut exits = vec![0; caps.vertices];
        caps.edges.iter().for_each(|&(from, _, capacity)| exits[from as usize] += capacity);
        exits.truncate(out.ranks as usize);
        (exits.iter().sum::<u128>(), exits.into_iter().min().unwrap_or(1))
    };
    let ((leaving, least_out), (entering, least_in)) = (ends(out), ends(back));
    let (all, least) = (leaving.min(entering), least_out.min(least_in));
    match collective {
        Collective::AllGather => out.time(n - 1, n, least_in),
        Collective::ReduceScatter => out.time(n - 1, n, least_out),
        Collective::AllToAll => out.time(n - 1, n, least),
        Collective::AllReduce if matches!(reducers, Reducers::Also(_)) => out.time(1, 1, least),
        Collective::AllReduce => out.time(2 * (n - 1), 1, all).max(out.time(1, 1, least)),
        _ => TimePerByte::ZERO,
    }
}

/// All shards to each of `targets`: the largest |X| S / (N B(X)) over the sets that lack a target.
fn gathered(caps: &Capacities, targets: impl Iterator<Item = u32> + Clone) -> TimePerByte {
    let n = u128::from(caps.ranks);
    let source = u32::try_from(caps.vertices).unwrap_or(u32::MAX);
    let feeding = |(exit, members): (u128, u128)| {
        caps.flow(members, (0..caps.ranks).map(|rank| (source, rank, exit)))
    };
    let alone = |target: u32| (caps.exit(|vertex| vertex != target), n - 1);
    // The worst set so far: its exit capacity and its number of ranks.
    let mut worst = targets.clone().map(alone).min().unwrap_or((1, 1));
    let mut graph = feeding(worst);
    for target in targets {
        while graph.most(source, target) < worst.0 * n {
            let side = graph.source_side();
            let inside = |vertex: u32| side[vertex as usize];
            let members = (0..caps.ranks).filter(|&rank| inside(rank)).count() as u128;
            worst = (caps.exit(inside), members);
            graph = feeding(worst);
        }
    }
    caps.time(worst.1, n, worst.0)
}

/// The full payload from one rank to every other rank.
fn spread(caps: &Capacities, root: u32) -> TimePerByte {
    let mut graph = caps.flow(1, []);
    let others = (0..caps.ranks).filter(|&rank| rank != root);
    let least = others.map(|rank| graph.most(root, rank)).min();
    least.map_or(TimePerByte::ZERO, |capacity| caps.time(1, 1, capacity))
}

/// The full payload out of every set with ranks on both sides: it separates rank 0 from some other
/// rank, in one of the directions.
fn halves(out: &Capacities, back: &Capacities) -> TimePerByte {
    spread(out, 0).max(spread(back, 0))
}

/// The messages between the groups of the worst partition of the ranks, in one of the directions.
fn divided(out: &Capacities, back: &Capacities) -> TimePerByte {
    let between = |caps: &Capacities| {
        let groups = division::worst(caps);
        caps.time(2 * (groups.len() as u128 - 1), 1, division::exits(&groups))
    };
    let alike = out.edges == back.edges;
    between(out).max(if alike { TimePerByte::ZERO } else { between(back) })
}

/// Returns for each rank the minimum capacity that leaves a set with no other rank in it. These
/// sets can be chosen independently: the intersection of two can be removed from one of them.
fn own_cuts(caps: &Capacities) -> Vec<u128> {
    let sink = u32::try_from(caps.vertices).unwrap_or(u32::MAX);
    let all: u128 = caps.edges.iter().map(|(.., capacity)| capacity).sum();
    let cut = |rank: u32| {
        let others = (0..caps.ranks).filter(|&other| other != rank);
        caps.flow(1, others.map(|other| (other, sink, all))).most(rank, sink)
    };
    (0..caps.ranks).map(cut).collect()
}
