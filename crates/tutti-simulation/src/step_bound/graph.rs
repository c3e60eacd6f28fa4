//! Rates and latencies of a topology on which a step runs. Rates are in bytes per ps.

use std::collections::BTreeMap;

use tutti_schedule::collective::Collective;
use tutti_topology::search::least_costs;
use tutti_topology::{Link, Topology};
use tutti_units::ids::VertexId;
use tutti_units::{Time, TimePerByte};

use super::{Dimension, rate};
use crate::Routing;

/// NPUs above which the eccentricity of an NPU is replaced by the latency of one link.
const MOST_SEARCHED: u32 = 128;

/// A topology, and the dimensions of its NPUs.
pub(super) struct Graph<'a> {
    routing: &'a Routing,
    dimensions: &'a [Dimension],
    /// The rate of the links that leave the NPU with the most of them.
    pub(super) exit: f64,
    /// The rate of the links that enter the NPU with the most of them.
    pub(super) entry: f64,
    /// The least latency of a link that leaves an NPU.
    pub(super) nearest: Time,
    /// The least latency from each NPU to each vertex, zero if it cannot reach it; empty if there are
    /// too many NPUs.
    latencies: Vec<Vec<Time>>,
}

impl<'a> Graph<'a> {
    pub(super) fn new(routing: &'a Routing, dimensions: &'a [Dimension]) -> Graph<'a> {
        let topology = routing.topology();
        let (vertices, npus) = (topology.vertex_count(), topology.npus());
        let (mut out, mut into) = (vec![0.0; vertices], vec![0.0; vertices]);
        let mut nearest = None;
        for Link { from, to, parameters } in links(topology) {
            out[from.index()] += rate(parameters.rate);
            into[to.index()] += rate(parameters.rate);
            if from.0 < npus {
                let least = nearest.unwrap_or(parameters.latency);
                nearest = Some(parameters.latency.min(least));
            }
        }
        let used = dimensions.iter().fold(1, |npus: u64, one| npus.saturating_mul(one.npus.into()));
        let used = usize::try_from(used).unwrap_or(usize::MAX);
        let most = |rates: Vec<f64>| rates.into_iter().take(used).fold(0.0, f64::max);
        let searched = if npus > MOST_SEARCHED { 0 } else { npus };
        Graph {
            routing,
            dimensions,
            exit: most(out),
            entry: most(into),
            nearest: nearest.unwrap_or(Time::ZERO),
            latencies: (0..searched).map(|npu| latencies(topology, npu)).collect(),
        }
    }

    /// The number of NPUs.
    pub(super) fn npus(&self) -> u32 {
        self.routing.topology().npus()
    }

    /// The time per byte of a collective among all NPUs, by its worst cut.
    pub(super) fn worst_cut(&self, collective: Collective) -> TimePerByte {
        self.routing.bound(collective, self.npus(), true, None).links
    }

    /// The rate of the links that leave the blocks of a cut along dimensions.
    pub(super) fn rate_between_blocks(&self, dimensions: &[usize]) -> f64 {
        let block = self.blocks(dimensions);
        let leaves = |link: &Link| {
            let (from, to) = (block[link.from.index()], block[link.to.index()]);
            from.is_some() && from != to
        };
        links(self.routing.topology()).filter(leaves).map(|link| rate(link.parameters.rate)).sum()
    }

    /// The block of each vertex; a switch joins the block of most of its links.
    fn blocks(&self, dimensions: &[usize]) -> Vec<Option<u64>> {
        let topology = self.routing.topology();
        let npus = topology.npus();
        let mut block: Vec<Option<u64>> =
            (0..npus).map(|npu| Some(self.block(npu, dimensions))).collect();
        block.resize(topology.vertex_count(), None);
        loop {
            let mut to: BTreeMap<VertexId, Vec<(Option<u64>, f64)>> = BTreeMap::new();
            for link in links(topology).filter(|link| link.from.0 >= npus) {
                let rates = to.entry(link.from).or_default();
                add(rates, block[link.to.index()], rate(link.parameters.rate));
            }
            let free = to.into_iter().filter(|(vertex, _)| block[vertex.index()].is_none());
            let joining = free.filter_map(|(vertex, rates)| Some((vertex, most_of(&rates)?)));
            let joining: Vec<(VertexId, u64)> = joining.collect();
            if joining.is_empty() {
                return block;
            }
            for (vertex, chosen) in joining {
                block[vertex.index()] = Some(chosen);
            }
        }
    }

    /// A number of the coordinates of an NPU along dimensions.
    fn block(&self, npu: u32, dimensions: &[usize]) -> u64 {
        let size = |at: usize| u64::from(self.dimensions[at].npus);
        dimensions.iter().fold(0, |number, &at| {
            let stride = (0..at).map(size).fold(1, u64::saturating_mul);
            number * size(at) + u64::from(npu) / stride % size(at)
        })
    }

    /// The least latency within which data of an NPU reach all NPUs with equal coordinates along
    /// `others`.
    pub(super) fn eccentricity(&self, others: &[usize]) -> Time {
        if self.latencies.is_empty() {
            return self.nearest;
        }
        let mut groups: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for npu in 0..self.npus() {
            groups.entry(self.block(npu, others)).or_default().push(npu as usize);
        }
        let farthest = |from: usize, group: &[usize]| {
            let latencies = group.iter().map(|&to| self.latencies[from][to]);
            latencies.max().unwrap_or(Time::ZERO)
        };
        let all = groups.values().flat_map(|group| group.iter().map(|&npu| farthest(npu, group)));
        all.min().unwrap_or(Time::ZERO)
    }
}

fn links(topology: &Topology) -> impl Iterator<Item = Link> {
    topology.links().map(|link| topology.link(link))
}

/// Adds to the rate of a block; blocks keep the order in which they were added first.
fn add(rates: &mut Vec<(Option<u64>, f64)>, block: Option<u64>, more: f64) {
    match rates.iter_mut().find(|(other, _)| *other == block) {
        Some((_, rate)) => *rate += more,
        None => rates.push((block, more)),
    }
}

/// The block with more than half of the rate; `None` if there is none.
fn most_of(rates: &[(Option<u64>, f64)]) -> Option<u64> {
    let all: f64 = rates.iter().map(|(_, rate)| rate).sum();
    rates.iter().find(|(_, rate)| 2.0 * rate > all)?.0
}

/// The least latency from an NPU to each vertex; zero for those that it cannot reach.
fn latencies(topology: &Topology, npu: u32) -> Vec<Time> {
    let mut least = least_costs(topology.vertex_count(), npu, Time::MAX, |at, visit| {
        for link in topology.links_out(VertexId(at)) {
            visit(topology.link_to(link).0, topology.parameters(link).latency);
        }
    });
    for latency in least.iter_mut().filter(|latency| **latency == Time::MAX) {
        *latency = Time::ZERO;
    }
    least
}
