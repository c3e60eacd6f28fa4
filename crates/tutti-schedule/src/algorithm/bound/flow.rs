//! Maximum flow by Dinic's algorithm: shortest augmenting paths, one layered network at a time.
//!
//! The residual graph is not a [`tutti_topology::Topology`]: every edge has a reverse arc, and the
//! residual capacities change with every path. The searches of a bound visit it up to 60 million
//! times.

use std::collections::VecDeque;

use tutti_topology::search::starts;

/// A directed graph with capacities, and the flow found last.
pub(super) struct FlowGraph {
    /// The arcs that leave vertex v: `order[first[v]..first[v + 1]]`. Arc 2 i is edge i, and arc 2
    /// i + 1 its reverse.
    first: Vec<u32>,
    order: Vec<u32>,
    to: Vec<u32>,
    capacity: Vec<u128>,
    left: Vec<u128>,
    level: Vec<u32>,
    next: Vec<u32>,
}

const UNREACHED: u32 = u32::MAX;

impl FlowGraph {
    /// `vertices` vertices, `0..vertices`; edges as (from, to, capacity).
    pub(super) fn new(
        vertices: usize,
        edges: impl IntoIterator<Item = (u32, u32, u128)>,
    ) -> FlowGraph {
        let (mut from, mut to, mut capacity) = (Vec::new(), Vec::new(), Vec::new());
        for (a, b, amount) in edges {
            from.extend([a, b]);
            to.extend([b, a]);
            capacity.extend([amount, 0]);
        }
        let first = starts(vertices, from.iter().copied());
        let (mut order, mut place) = (vec![0; from.len()], first.clone());
        for (arc, &vertex) in (0..).zip(&from) {
            let place = &mut place[vertex as usize];
            order[*place as usize] = arc;
            *place += 1;
        }
        let left = capacity.clone();
        FlowGraph {
            level: vec![0; vertices],
            next: first.clone(),
            first,
            order,
            to,
            capacity,
            left,
        }
    }

    /// Returns the maximum flow from one vertex to another; discards any earlier flow.
    pub(super) fn most(&mut self, source: u32, sink: u32) -> u128 {
        self.left.clone_from(&self.capacity);
        let mut total = 0;
        while self.layers(source)[sink as usize] != UNREACHED {
            self.next.clone_from(&self.first);
            loop {
                let pushed = self.push(source, sink);
                if pushed == 0 {
                    break;
                }
                total += pushed;
            }
        }
        total
    }

    /// Returns the vertices on the source's side of the minimum cut of the last flow.
    pub(super) fn source_side(&self) -> Vec<bool> {
        self.level.iter().map(|&level| level != UNREACHED).collect()
    }

    fn layers(&mut self, source: u32) -> &[u32] {
        self.level.fill(UNREACHED);
        self.level[source as usize] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(at) = queue.pop_front() {
            let at = at as usize;
            for &arc in &self.order[self.first[at] as usize..self.first[at + 1] as usize] {
                let to = self.to[arc as usize];
                if self.left[arc as usize] > 0 && self.level[to as usize] == UNREACHED {
                    self.level[to as usize] = self.level[at] + 1;
                    queue.push_back(to);
                }
            }
        }
        &self.level
    }

    /// Sends flow along one path through the layers; returns zero if none is left.
    fn push(&mut self, source: u32, sink: u32) -> u128 {
        let mut path: Vec<u32> = Vec::new();
        let mut at = source as usize;
        while at != sink as usize {
            let step = loop {
                if self.next[at] == self.first[at + 1] {
                    break None;
                }
                let arc = self.order[self.next[at] as usize] as usize;
                let to = self.to[arc] as usize;
                if self.left[arc] > 0 && self.level[to] == self.level[at] + 1 {
                    break Some((arc, to));
                }
                self.next[at] += 1;
            };
            match (step, path.pop()) {
                (Some((arc, to)), last) => {
                    path.extend(last);
                    path.push(u32::try_from(arc).expect("arcs are counted in 32 bits"));
                    at = to;
                }
                // A dead end: go back over the arc that led here.
                (None, Some(arc)) => {
                    at = self.to[arc as usize ^ 1] as usize;
                    self.next[at] += 1;
                }
                (None, None) => return 0,
            }
        }
        let amount = path.iter().map(|&arc| self.left[arc as usize]).min().unwrap_or(0);
        for arc in path {
            self.left[arc as usize] -= amount;
            self.left[arc as usize ^ 1] += amount;
        }
        amount
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the minimum cut by trying all of them.
    fn least_cut(vertices: u32, edges: &[(u32, u32, u128)], source: u32, sink: u32) -> u128 {
        let sides = (0..1_u32 << vertices).filter(|s| s >> source & 1 == 1 && s >> sink & 1 == 0);
        let across = |side: u32| {
            let crosses = |(a, b): (u32, u32)| side >> a & 1 == 1 && side >> b & 1 == 0;
            edges.iter().filter(|(a, b, _)| crosses((*a, *b))).map(|(.., c)| c).sum()
        };
        sides.map(across).min().unwrap()
    }

    proptest! {
        #[test]
        fn the_most_that_flows_is_the_smallest_cut(
            edges in prop::collection::vec((0_u32..7, 0_u32..7, 0_u128..20), 0..25)
        ) {
            let mut graph = FlowGraph::new(7, edges.iter().copied());
            for (source, sink) in [(0, 6), (6, 0), (2, 3)] {
                prop_assert_eq!(graph.most(source, sink), least_cut(7, &edges, source, sink));
                let side = graph.source_side();
                let crosses = |(a, b): (u32, u32)| side[a as usize] && !side[b as usize];
                let cut: u128 =
                    edges.iter().filter(|(a, b, _)| crosses((*a, *b))).map(|(.., c)| c).sum();
                prop_assert_eq!(cut, graph.most(source, sink));
            }
        }
    }
}
