//! The cuts of the network of a step, and its latencies.
//!
//! A cut divides the NPUs into blocks with equal coordinates along some dimensions. The bytes between
//! blocks share the links that leave them. Rates are in bytes per ps.

use tutti_engine::training::Ring;
use tutti_engine::workload::Rings;
use tutti_schedule::collective::Collective;
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

use super::graph::Graph;
use super::needs::{across, across_in_network};
use super::{BoundedNetwork, Dimension, Moved, rate, real};

/// Links between neighbours, or a topology.
enum Links<'a> {
    Rings(&'a [Ring]),
    Graph(Graph<'a>),
    /// They take no time.
    None,
}

/// A cut along some dimensions.
struct Cut {
    dimensions: Vec<usize>,
    /// The links that leave its blocks.
    name: String,
    /// The rate of all these links.
    rate: f64,
}

/// The cuts of a network.
pub(super) struct Cuts<'a> {
    dimensions: &'a [Dimension],
    /// The dimensions with more than one NPU.
    wide: Vec<usize>,
    links: Links<'a>,
    /// Whether switches multicast or reduce.
    is_in_network: bool,
    cuts: Vec<Cut>,
}

impl<'a> Cuts<'a> {
    pub(super) fn new(dimensions: &'a [Dimension], network: BoundedNetwork<'a>) -> Cuts<'a> {
        let wide = (0..dimensions.len()).filter(|&at| dimensions[at].npus > 1).collect();
        let (links, is_in_network) = match network {
            BoundedNetwork::Torus(torus) => (Links::Rings(torus.rings()), false),
            BoundedNetwork::Platform(platform) => {
                let graph = platform.routing().map(|routing| Graph::new(routing, dimensions));
                (graph.map_or(Links::None, Links::Graph), platform.contention().is_in_network())
            }
        };
        let mut cuts = Cuts { dimensions, wide, links, is_in_network, cuts: Vec::new() };
        let all = cuts.subsets().into_iter().map(|along| cuts.cut(along));
        // A cut that no link crosses bounds nothing.
        cuts.cuts = all.filter(|cut| cut.rate > 0.0).collect();
        cuts
    }

    /// The sets of one or more dimensions of several NPUs, the smallest sets first.
    fn subsets(&self) -> Vec<Vec<usize>> {
        let mut sets = vec![Vec::new()];
        for &at in &self.wide {
            let with = |set: &Vec<usize>| set.iter().copied().chain([at]).collect();
            let larger: Vec<Vec<usize>> = sets.iter().map(with).collect();
            sets.extend(larger);
        }
        sets.sort_by_key(|set| (set.len(), set.clone()));
        sets.split_off(1)
    }

    fn cut(&self, dimensions: Vec<usize>) -> Cut {
        let names: Vec<&str> =
            dimensions.iter().map(|&at| self.dimensions[at].name.as_str()).collect();
        let name = format!("links of {}", names.join(" and "));
        let rate = match &self.links {
            Links::Graph(graph) => graph.rate_between_blocks(&dimensions),
            Links::Rings(_) | Links::None => {
                real(self.ranks(&self.wide).into()) * self.of_rings(&dimensions)
            }
        };
        Cut { dimensions, name, rate }
    }

    /// The dimensions of `rings` that have more than one NPU.
    pub(super) fn group(&self, rings: Rings) -> Vec<usize> {
        self.wide.iter().copied().filter(|&at| rings.contains(at)).collect()
    }

    /// The number of NPUs along dimensions.
    pub(super) fn ranks(&self, dimensions: &[usize]) -> u64 {
        let npus = dimensions.iter().map(|&at| u64::from(self.dimensions[at].npus));
        npus.fold(1, u64::saturating_mul)
    }

    /// The busy time in ps of the links that leave the blocks of each cut.
    pub(super) fn loads(&self, moved: &Moved) -> Vec<(String, f64)> {
        let group = self.group(moved.rings);
        let (ranks, npus) = (self.ranks(&group), self.ranks(&self.wide));
        let between = if self.is_in_network { across_in_network } else { across };
        let load = |cut: &Cut| {
            let along: Vec<usize> =
                group.iter().copied().filter(|at| cut.dimensions.contains(at)).collect();
            let bytes = between(moved.collective, self.ranks(&along), ranks, moved.bytes);
            (cut.name.clone(), real(bytes.saturating_mul((npus / ranks).into())) / cut.rate)
        };
        let loads = self.cuts.iter().map(load);
        let worst = (group.len() == self.wide.len()).then(|| self.by_links(moved)).flatten();
        loads.chain(worst).collect()
    }

    /// The load of the worst cut of a topology, which belongs to one collective.
    fn by_links(&self, moved: &Moved) -> Option<(String, f64)> {
        let (Links::Graph(graph), Some(collective)) = (&self.links, moved.collective) else {
            return None;
        };
        let cut_for = match collective {
            // Switches that reduce leave only the bound of single cuts, as for a broadcast.
            Collective::AllReduce if self.is_in_network => {
                Collective::Broadcast { root: RankId(0) }
            }
            Collective::AllReduce
            | Collective::ReduceScatter
            | Collective::AllGather
            | Collective::AllToAll => collective,
            _ => return None,
        };
        // Some cuts have shards that are a byte shorter.
        let Bytes(size) = moved.bytes;
        let shortest = size.saturating_sub(graph.npus().into());
        let time = graph.worst_cut(cut_for).ps_per_byte() * real(shortest.into());
        Some((format!("links of the worst cut of {}", moved.name), time))
    }

    /// The rate of the links of a torus that leave one NPU along dimensions.
    fn of_rings(&self, dimensions: &[usize]) -> f64 {
        match &self.links {
            Links::Rings(rings) => {
                dimensions.iter().map(|&at| 2.0 * rate(rings[at].per_byte)).sum()
            }
            Links::Graph(_) | Links::None => f64::INFINITY,
        }
    }

    /// The most bytes per ps that leave an NPU for others of its group.
    pub(super) fn exit(&self, group: &[usize]) -> f64 {
        if let Links::Graph(graph) = &self.links { graph.exit } else { self.of_rings(group) }
    }

    /// The most bytes per ps that enter an NPU from others of its group.
    pub(super) fn entry(&self, group: &[usize]) -> f64 {
        if let Links::Graph(graph) = &self.links { graph.entry } else { self.of_rings(group) }
    }

    /// The least latency between two NPUs of a group.
    pub(super) fn nearest(&self, group: &[usize]) -> Time {
        match &self.links {
            Links::Rings(rings) => {
                group.iter().map(|&at| rings[at].latency).min().unwrap_or(Time::ZERO)
            }
            Links::Graph(graph) => graph.nearest,
            Links::None => Time::ZERO,
        }
    }

    /// The least latency within which data of an NPU reach all of its group.
    pub(super) fn eccentricity(&self, group: &[usize]) -> Time {
        match &self.links {
            Links::Rings(rings) => {
                let hops = |at: usize| u64::from(self.dimensions[at].npus / 2);
                group.iter().map(|&at| rings[at].latency.times(hops(at))).sum()
            }
            Links::Graph(graph) => {
                let others: Vec<usize> =
                    self.wide.iter().copied().filter(|at| !group.contains(at)).collect();
                graph.eccentricity(&others)
            }
            Links::None => Time::ZERO,
        }
    }
}
