//! The links of a topology as integer capacities, in multiples of one rate.
//!
//! Parallel links of a [`tutti_topology::Topology`] are added up. [`FlowGraph`]s are built from
//! these edges, with further edges, scaled or reversed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::flow::FlowGraph;
use tutti_topology::Topology;
use tutti_units::{TimePerByte, gcd};

/// Capacities stay below this, so that sums and products fit.
const MOST: u128 = 1 << 40;

/// The links between vertices, parallel ones added up; the vertices `0..ranks` host ranks.
pub(super) struct Capacities {
    pub(super) vertices: usize,
    pub(super) ranks: u32,
    /// (from, to, capacity), ascending.
    pub(super) edges: Vec<(u32, u32, u128)>,
    /// The capacity that equals one byte per picosecond.
    unit: u128,
}

impl Capacities {
    /// Returns the capacities of a graph whose first NPUs host the ranks. Rates without a common
    /// measure are rounded up, by less than one part in 2^30 of the greatest.
    pub(super) fn of(topology: &Topology, ranks: u32) -> Capacities {
        let rates: BTreeSet<(u64, u64)> =
            topology.links().map(|link| topology.parameters(link).rate.fraction()).collect();
        let unit = common_unit(&rates);
        let mut edges = BTreeMap::new();
        for link in topology.links() {
            let (ps, bytes) = topology.parameters(link).rate.fraction();
            let capacity = (u128::from(bytes) * unit).div_ceil(u128::from(ps.max(1)));
            let ends = (topology.link_from(link).0, topology.link_to(link).0);
            *edges.entry(ends).or_insert(0) += capacity;
        }
        let edges = edges.into_iter().map(|((from, to), capacity)| (from, to, capacity)).collect();
        Capacities { vertices: topology.vertex_count(), ranks, edges, unit }
    }

    /// Returns the same links in the opposite direction.
    pub(super) fn reversed(&self) -> Capacities {
        let mut edges: Vec<_> = self.edges.iter().map(|&(a, b, c)| (b, a, c)).collect();
        edges.sort_unstable();
        Capacities { edges, ..*self }
    }

    /// Returns the links after each of some vertices has been merged with the nearest rank, the lowest of
    /// several. A set of vertices that contains a rank then contains the vertices merged with it.
    pub(super) fn joined(&self, vertices: &[bool]) -> Capacities {
        let owners = self.nearest_ranks();
        let place = |vertex: u32| match owners[vertex as usize] {
            Some(rank) if vertices[vertex as usize] => rank,
            _ => vertex,
        };
        let mut edges = BTreeMap::new();
        for &(from, to, capacity) in &self.edges {
            let ends = (place(from), place(to));
            if ends.0 != ends.1 {
                *edges.entry(ends).or_insert(0) += capacity;
            }
        }
        let edges = edges.into_iter().map(|((from, to), capacity)| (from, to, capacity)).collect();
        Capacities { edges, ..*self }
    }

    /// Returns for each vertex the nearest rank with a path to it, by number of links.
    fn nearest_ranks(&self) -> Vec<Option<u32>> {
        let mut owners: Vec<Option<u32>> = vec![None; self.vertices];
        let mut queue: VecDeque<u32> = (0..self.ranks).collect();
        (0..self.ranks).for_each(|rank| owners[rank as usize] = Some(rank));
        while let Some(vertex) = queue.pop_front() {
            for (to, _) in self.leaving(vertex) {
                if owners[to as usize].is_none() {
                    owners[to as usize] = owners[vertex as usize];
                    queue.push_back(to);
                }
            }
        }
        owners
    }

    /// Returns the destinations and capacities of the edges from a vertex.
    pub(super) fn leaving(&self, vertex: u32) -> impl Iterator<Item = (u32, u128)> + '_ {
        let first = self.edges.partition_point(|&(from, ..)| from < vertex);
        let leaving = self.edges[first..].iter().take_while(move |&&(from, ..)| from == vertex);
        leaving.map(|&(_, to, capacity)| (to, capacity))
    }

    /// Returns a flow graph with further edges; additional vertices are `vertices` and
    /// `vertices + 1`.
    pub(super) fn flow(
        &self,
        times: u128,
        more: impl IntoIterator<Item = (u32, u32, u128)>,
    ) -> FlowGraph {
        let edges = self.edges.iter().map(|&(from, to, capacity)| (from, to, capacity * times));
        FlowGraph::new(self.vertices + 2, edges.chain(more))
    }

    /// Returns the capacity of the edges that leave a set of vertices.
    pub(super) fn exit(&self, inside: impl Fn(u32) -> bool) -> u128 {
        let leaves = self.edges.iter().filter(|(from, to, _)| inside(*from) && !inside(*to));
        leaves.map(|(.., capacity)| capacity).sum()
    }

    /// Returns the time per byte of a payload of which `parts / of` has to pass links of this total
    /// capacity; rounded down if the fraction does not fit.
    pub(super) fn time(&self, parts: u128, of: u128, capacity: u128) -> TimePerByte {
        let mut ps = parts * self.unit;
        let mut bytes = of * capacity;
        let common = gcd(ps, bytes).max(1);
        (ps, bytes) = (ps / common, bytes / common);
        while ps.max(bytes) > u128::from(u64::MAX) {
            ps >>= 1;
            bytes = bytes.div_ceil(2);
        }
        let narrow = |wide| u64::try_from(wide).unwrap_or(u64::MAX);
        TimePerByte::new(narrow(ps), narrow(bytes)).unwrap_or(TimePerByte::ZERO)
    }
}

/// Returns the unit in which every rate is an integer; an approximate one if that is too fine.
fn common_unit(rates: &BTreeSet<(u64, u64)>) -> u128 {
    let mut unit: u128 = 1;
    for &(ps, _) in rates {
        let ps = u128::from(ps.max(1));
        unit = (unit / gcd(unit, ps)).saturating_mul(ps).min(MOST * MOST);
    }
    let greatest = |unit: u128| {
        let capacities = rates.iter().map(|&(ps, bytes)| {
            u128::from(bytes).saturating_mul(unit).div_ceil(u128::from(ps.max(1)))
        });
        capacities.max().unwrap_or(0)
    };
    while greatest(unit) > MOST && unit > 1 {
        unit /= 2;
    }
    unit
}
