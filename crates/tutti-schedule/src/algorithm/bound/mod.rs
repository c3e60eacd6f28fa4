//! What the links of a graph allow: no schedule of a collective moves its bytes in less time.
//!
//! Nothing is assumed but that a link carries at most its rate, in each direction by itself, that NPUs
//! forward and fold, and that switches forward only. N ranks, a payload of S bytes by the convention of
//! [`crate::collective`], B(X) the capacity of the links that leave a set X of vertices, |X| the ranks
//! in it. Each byte that has to get out of X takes its share of B(X):
//!
//! | collective | out of X | limit |
//! |---|---|---|
//! | all_gather | the \|X\| shards that are held in it | max over X of \|X\| S / (N B(X)) |
//! | gather | the same, for X without the root | the same |
//! | reduce_scatter | one value for each shard that belongs outside | (N - \|X\|) S / (N B(X)) |
//! | scatter | the shards that belong outside, for X with the root | the same |
//! | broadcast | the payload, for X with the root | S / B(X) |
//! | reduce | one value for each element, for X without the root | S / B(X) |
//! | all_reduce | one value for each element, out of X and out of the rest | S / B(X) |
//! | all_to_all | what its ranks send to the others | \|X\| (N - \|X\|) S / (N B(X)) |
//!
//! **The worst X** of the first six is found exactly. A set of the least B(X) / |X| is found by Dinkelbach's
//! iteration: with a source that feeds y into every rank, N y flow to each rank if and only if no set has
//! less than y per rank; else the smallest cut is one that has less. That this limit can be reached is a
//! theorem (Zhao et al., "ForestColl", 2024, from Edmonds' packing of arborescences), and for broadcast
//! and reduce it is Edmonds' own.
//!
//! **all_reduce.** Divide the ranks into k groups; X_i is any set of vertices with just the ranks of group i,
//! and switches. A group knows what one of its ranks knows. Every element takes 2 (k - 1) messages from one group
//! to another at least: until the first group knows the contributions of all, every other has sent one that
//! arrived, and afterwards every other receives one. (With one rank per group this is Harary and Schwenk's
//! bound on one-way gossip, 1974.) A message from group i takes its share of B(X_i), whatever the other
//! sets are, hence 2 (k - 1) S / (B(X_1) + ... + B(X_k)), and the same with what enters. The worst of all
//! divisions is found exactly (`division`). Where every link has one back and joins two ranks, that can be
//! reached, by trees that chunks go up and down (Tutte 1961; Nash-Williams 1961). It holds only while
//! values are folded at NPUs: switches that fold can do better.
//!
//! For the other collectives, divisions say no more than their groups: what k groups must send in all, over
//! what leaves them in all, is at most the largest of the k fractions. all_reduce differs because which group
//! knows first is open, so that a group by itself needs no more than S, but all of them 2 (k - 1) S.
//!
//! **all_to_all** has no such theorem. Sets that are tried: single ranks, the groups of the worst division for
//! all_reduce, what holds together when all links below a rate are taken away, and ranks below a number. And
//! lengths are counted: with any length for each link, the bytes of all pairs times their distance fit into
//! the links' rates times their lengths. Lengths of 1 and of the time per byte are tried.

mod capacity;
mod division;
mod flow;
mod load;
#[cfg(test)]
mod tests;
mod volume;

pub use load::most_loaded;

use capacity::Capacities;

use crate::collective::Collective;
use tutti_topology::Topology;
use tutti_units::TimePerByte;

/// Above this product of ranks and links only each rank's own links are looked at.
const MOST_WORK: u64 = 60_000_000;

/// The least time per byte of the collective's size on the first `ranks` NPUs of a topology, by its links
/// alone. A limit that is provable, though not always the best that is.
#[must_use]
pub fn by_links(collective: Collective, ranks: u32, topology: &Topology) -> TimePerByte {
    let ranks = ranks.min(topology.npus());
    if ranks < 2 || collective == Collective::Barrier {
        return TimePerByte::ZERO;
    }
    let out = Capacities::of(topology, ranks);
    let back = out.reversed();
    let root = |rank: tutti_units::ids::RankId| rank.0.min(ranks - 1);
    if u64::from(ranks) * out.edges.len() as u64 > MOST_WORK {
        return roughly(collective, &out, &back);
    }
    match collective {
        Collective::AllGather => gathered(&out, 0..ranks),
        Collective::ReduceScatter => gathered(&back, 0..ranks),
        Collective::Gather { root: to } => gathered(&out, root(to)..root(to) + 1),
        Collective::Scatter { root: from } => gathered(&back, root(from)..root(from) + 1),
        Collective::Broadcast { root: from } => spread(&out, root(from)),
        Collective::Reduce { root: to } => spread(&back, root(to)),
        Collective::AllReduce => all_reduced(&out, &back),
        Collective::AllToAll => volume::exchanged(&out, &back),
        Collective::Barrier => TimePerByte::ZERO,
    }
}

/// From each rank's own links, for graphs too large to look at all cuts.
fn roughly(collective: Collective, out: &Capacities, back: &Capacities) -> TimePerByte {
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
        Collective::AllReduce => out.time(2 * (n - 1), 1, all).max(out.time(1, 1, least)),
        _ => TimePerByte::ZERO,
    }
}

/// Every rank's shard to each of `targets`: the largest |X| S / (N B(X)) over the sets that lack one.
fn gathered(caps: &Capacities, targets: impl Iterator<Item = u32> + Clone) -> TimePerByte {
    let n = u128::from(caps.ranks);
    let source = u32::try_from(caps.vertices).unwrap_or(u32::MAX);
    let feeding = |(exit, members): (u128, u128)| {
        caps.flow(members, (0..caps.ranks).map(|rank| (source, rank, exit)))
    };
    let alone = |target: u32| (caps.exit(|vertex| vertex != target), n - 1);
    // The worst set so far: what leaves it, and how many ranks are in it.
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

/// The whole payload from one rank to every other.
fn spread(caps: &Capacities, root: u32) -> TimePerByte {
    let mut graph = caps.flow(1, []);
    let others = (0..caps.ranks).filter(|&rank| rank != root);
    let least = others.map(|rank| graph.most(root, rank)).min();
    least.map_or(TimePerByte::ZERO, |capacity| caps.time(1, 1, capacity))
}

fn all_reduced(out: &Capacities, back: &Capacities) -> TimePerByte {
    // A set with ranks on both sides parts rank 0 from some other rank, one way or the other.
    let halves = spread(out, 0).max(spread(back, 0));
    let divided = |caps: &Capacities| {
        let groups = division::worst(caps);
        caps.time(2 * (groups.len() as u128 - 1), 1, division::exits(&groups))
    };
    let alike = out.edges == back.edges;
    let entering = if alike { TimePerByte::ZERO } else { divided(back) };
    halves.max(divided(out)).max(entering)
}

/// For each rank the least that leaves a set with no other rank in it. These sets can be chosen apart from
/// one another: what two have in common can be left out of one of them.
fn own_cuts(caps: &Capacities) -> Vec<u128> {
    let sink = u32::try_from(caps.vertices).unwrap_or(u32::MAX);
    let all: u128 = caps.edges.iter().map(|(.., capacity)| capacity).sum();
    let cut = |rank: u32| {
        let others = (0..caps.ranks).filter(|&other| other != rank);
        caps.flow(1, others.map(|other| (other, sink, all))).most(rank, sink)
    };
    (0..caps.ranks).map(cut).collect()
}
