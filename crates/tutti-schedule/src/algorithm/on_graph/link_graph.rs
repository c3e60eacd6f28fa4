//! Direct connections between ranks on a graph, without another rank between them, and their links.
//!
//! Unlike [`tutti_topology::Topology`], its vertices are ranks, and an edge is a path of several
//! links, as given by the routes. Packing reads the links of every edge, and the pace at which each
//! of them passes a message, for each tree: they are stored contiguously in two arrays.

use tutti_topology::Routes;
use tutti_topology::search::steps;
use tutti_units::TimePerByte;
use tutti_units::ids::{LinkId, RankId, VertexId};

/// A path from one rank to another, from [`Routes`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::algorithm) struct Edge {
    pub(in crate::algorithm) from: u32,
    pub(in crate::algorithm) to: u32,
    start: u32,
    end: u32,
}

/// All edges on which no rank forwards; all paths if those do not connect the ranks.
#[derive(Clone)]
pub(in crate::algorithm) struct LinkGraph {
    pub(in crate::algorithm) ranks: u32,
    /// The time per byte of each link that an edge uses, in the order of the topology.
    pub(in crate::algorithm) rates: Vec<TimePerByte>,
    /// Sorted by source, then by destination.
    edges: Vec<Edge>,
    first: Vec<u32>,
    links: Vec<u32>,
    /// For each of these, the link that determines the time of a message on it.
    pace: Vec<u32>,
}

/// The number of edges per rank in a thinned graph, in addition to those needed to cover links.
const FEW: u32 = 24;
/// The number of edges over each covered link, where there are that many.
const COVER: u32 = 8;

impl LinkGraph {
    /// Returns the graph between the first `ranks` NPUs. With `backwards`, the edge from a to b is
    /// the route from b to a.
    pub(in crate::algorithm) fn of(routes: &Routes, ranks: u32, backwards: bool) -> LinkGraph {
        let direct = LinkGraph::through(routes, ranks, backwards, false);
        let found = if direct.connects() {
            direct
        } else {
            LinkGraph::through(routes, ranks, backwards, true)
        };
        found.without_idle_links()
    }

    /// Removes the links that no edge uses, which are most of those of a platform with few ranks.
    fn without_idle_links(mut self) -> LinkGraph {
        let mut used = vec![false; self.rates.len()];
        self.links.iter().for_each(|&link| used[link as usize] = true);
        let mut next = 0;
        let places: Vec<u32> = used
            .iter()
            .map(|&is_used| {
                let place = next;
                next += u32::from(is_used);
                place
            })
            .collect();
        for link in self.links.iter_mut().chain(&mut self.pace) {
            *link = places[*link as usize];
        }
        let mut kept = used.iter();
        self.rates.retain(|_| kept.next().is_some_and(|&is_used| is_used));
        self
    }

    fn through(routes: &Routes, ranks: u32, backwards: bool, forwarding: bool) -> LinkGraph {
        let topology = routes.topology();
        let rates = topology.links().map(|link| topology.parameters(link).rate).collect();
        let mut graph = LinkGraph::empty(ranks, rates);
        for from in 0..ranks {
            for to in candidates(routes, from, ranks, backwards || forwarding) {
                let (source, destination) = if backwards { (to, from) } else { (from, to) };
                let Ok(path) = routes.path(RankId(source), RankId(destination)) else { continue };
                if forwarding || passes_no_rank(routes, &path, ranks) {
                    graph.add(from, to, path.iter().map(|link| link.0));
                }
            }
            graph.first.push(count(graph.edges.len()));
        }
        graph
    }

    fn empty(ranks: u32, rates: Vec<TimePerByte>) -> LinkGraph {
        let (edges, links, pace) = (Vec::new(), Vec::new(), Vec::new());
        LinkGraph { ranks, rates, edges, first: vec![0], links, pace }
    }

    fn add(&mut self, from: u32, to: u32, path: impl Iterator<Item = u32>) {
        let start = self.links.len();
        self.links.extend(path);
        let path = &self.links[start..];
        let slower = |a: u32, b: u32| {
            if self.rates[b as usize] > self.rates[a as usize] { b } else { a }
        };
        let mut before = path[0];
        for (at, &link) in path.iter().enumerate() {
            before = slower(before, link);
            let after = path[at + 1..].iter().copied().fold(before, slower);
            // A message that arrives faster than it leaves occupies the link until it has left; one
            // that arrives slowly leaves gaps between its packets.
            self.pace.push(if after == before { link } else { after });
        }
        let (start, end) = (count(start), count(self.links.len()));
        self.edges.push(Edge { from, to, start, end });
    }

    /// Returns a subset of the edges, if there are many: those to ranks at distances of powers of
    /// two, and enough others to cover every link, shortest first.
    pub(in crate::algorithm) fn thinned(&self) -> LinkGraph {
        if self.edges.len() <= (FEW * self.ranks) as usize {
            return self.clone();
        }
        let thinned = self.kept(|edge| self.around(edge).is_power_of_two(), COVER);
        if thinned.connects() { thinned } else { self.clone() }
    }

    /// Returns the fewest edges that cover every link: to the next ranks, and at distances of
    /// powers of two to the nearest ranks. Links far from the ranks then have one sender, which
    /// preserves the order of its messages. `None` if these do not connect the ranks.
    pub(in crate::algorithm) fn sparse(&self) -> Option<LinkGraph> {
        let nearest = |rank| self.from(rank).iter().map(|&edge| self.links(edge).len()).min();
        let nearest: Vec<Option<usize>> = (0..self.ranks).map(nearest).collect();
        let near = |edge: Edge| Some(self.links(edge).len()) == nearest[edge.from as usize];
        let preferred = |edge: Edge| match self.around(edge) {
            1 => true,
            distance => distance.is_power_of_two() && near(edge),
        };
        Some(self.kept(preferred, 1)).filter(LinkGraph::connects)
    }

    /// Returns the distance between the ends of an edge in rank numbers, modulo the rank count.
    fn around(&self, edge: Edge) -> u32 {
        let ahead = (self.ranks + edge.to - edge.from) % self.ranks;
        ahead.min(self.ranks - ahead)
    }

    /// Returns the preferred edges with their reverse edges, and further edges, shortest first,
    /// until `cover` edges use each link.
    fn kept(&self, preferred: impl Fn(Edge) -> bool, cover: u32) -> LinkGraph {
        let mut order: Vec<usize> = (0..self.edges.len()).collect();
        order.sort_by_key(|&at| {
            let edge = self.edges[at];
            (!preferred(edge), edge.end - edge.start, self.around(edge), at)
        });
        let mut covered = vec![0_u32; self.rates.len()];
        let mut kept = vec![false; self.edges.len()];
        for at in order {
            let edge = self.edges[at];
            let needed =
                |edge: Edge| self.links(edge).iter().any(|&link| covered[link as usize] < cover);
            if kept[at] || !(preferred(edge) || needed(edge)) {
                continue;
            }
            let back = self.index(edge.to, edge.from);
            for at in [Some(at), back].into_iter().flatten() {
                kept[at] = true;
                for &link in self.links(self.edges[at]) {
                    covered[link as usize] += 1;
                }
            }
        }
        self.only(&kept)
    }

    fn only(&self, kept: &[bool]) -> LinkGraph {
        let mut some = LinkGraph::empty(self.ranks, self.rates.clone());
        for rank in 0..self.ranks {
            for (at, &edge) in (self.first(rank)..).zip(self.from(rank)) {
                if kept[at] {
                    some.add(edge.from, edge.to, self.links(edge).iter().copied());
                }
            }
            some.first.push(count(some.edges.len()));
        }
        some
    }

    /// Returns the edges from a rank, sorted by destination.
    #[inline]
    pub(in crate::algorithm) fn from(&self, rank: u32) -> &[Edge] {
        let rank = rank as usize;
        &self.edges[self.first[rank] as usize..self.first[rank + 1] as usize]
    }

    /// Returns the index of the first edge from a rank in [`LinkGraph::edges`].
    pub(in crate::algorithm) fn first(&self, rank: u32) -> usize {
        self.first[rank as usize] as usize
    }

    /// Returns the edge in the opposite direction.
    pub(in crate::algorithm) fn opposite(&self, edge: Edge) -> Option<Edge> {
        self.index(edge.to, edge.from).map(|at| self.edges[at])
    }

    /// Returns the index of the edge from one rank to another.
    pub(in crate::algorithm) fn index(&self, from: u32, to: u32) -> Option<usize> {
        let found = self.from(from).binary_search_by_key(&to, |edge| edge.to);
        found.ok().map(|at| self.first(from) + at)
    }

    /// Returns all edges.
    pub(in crate::algorithm) fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Returns the links of an edge.
    #[inline]
    pub(in crate::algorithm) fn links(&self, edge: Edge) -> &[u32] {
        &self.links[edge.start as usize..edge.end as usize]
    }

    /// Returns the links of an edge, each with the link that determines the time of a message on
    /// it: a slower one that follows, if that one delays the message, else the link itself.
    #[inline]
    pub(in crate::algorithm) fn paced(&self, edge: Edge) -> impl Iterator<Item = (usize, usize)> {
        let range = edge.start as usize..edge.end as usize;
        let pace = self.pace[range.clone()].iter().map(|&link| link as usize);
        self.links[range].iter().map(|&link| link as usize).zip(pace)
    }

    /// Returns the maximum number of links of an edge.
    pub(in crate::algorithm) fn longest(&self) -> usize {
        self.edges.iter().map(|&edge| self.links(edge).len()).max().unwrap_or(0)
    }

    /// Returns the number of edges from a rank to each rank.
    pub(in crate::algorithm) fn steps_from(&self, rank: u32) -> Vec<u32> {
        steps(self.ranks as usize, rank, |at, visit| {
            self.from(at).iter().for_each(|edge| visit(edge.to));
        })
    }

    /// Returns whether every rank can be reached from every other.
    fn connects(&self) -> bool {
        let mut into = vec![Vec::new(); self.ranks as usize];
        self.edges.iter().for_each(|edge| into[edge.to as usize].push(edge.from));
        let back = || {
            let next = |at, visit: &mut dyn FnMut(u32)| {
                into[at as usize].iter().for_each(|&from| visit(from));
            };
            steps(self.ranks as usize, 0, next)
        };
        let all = |steps: Vec<u32>| !steps.contains(&u32::MAX);
        self.ranks > 0 && all(self.steps_from(0)) && all(back())
    }
}

/// Returns the ranks that may be reached directly from one: all, or its neighbours if all of those
/// are ranks.
fn candidates(routes: &Routes, from: u32, ranks: u32, all: bool) -> Vec<u32> {
    let topology = routes.topology();
    let links = topology.links_out(VertexId(from));
    let mut next: Vec<u32> = links.map(|link| topology.link_to(link).0).collect();
    next.sort_unstable();
    next.dedup();
    if all || next.iter().any(|&vertex| vertex >= ranks) {
        return (0..ranks).filter(|&to| to != from).collect();
    }
    next
}

fn passes_no_rank(routes: &Routes, path: &[LinkId], ranks: u32) -> bool {
    let between = path.split_last().map_or(&[][..], |(_, between)| between);
    between.iter().all(|&link| routes.topology().link_to(link).0 >= ranks)
}

fn count(len: usize) -> u32 {
    u32::try_from(len).expect("ranks are few enough for their pairs to be counted")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tutti_topology::{LinkParameters, build};
    use tutti_units::Time;

    fn routes(notation: &str) -> Routes {
        let link = LinkParameters::new(TimePerByte::new(1, 1).unwrap(), Time::ZERO);
        Routes::shortest_path(Arc::new(build(notation, &[link]).unwrap()))
    }

    #[test]
    fn edges_end_at_the_next_rank() {
        for (notation, ranks, edges, links) in [
            ("ring:6", 6, 12, 12),
            // The other NPUs act as switches: 0-1, 1-2, and 2-0 in the other direction.
            ("ring:6", 3, 4, 4),
            ("switch:4", 4, 12, 24),
            ("torus:4x4", 16, 64, 64),
            ("hierarchical:switch:2/ring:3", 6, 30, 6 * 2 + 24 * 3),
        ] {
            for backwards in [false, true] {
                let graph = LinkGraph::of(&routes(notation), ranks, backwards);
                let found = (graph.edges().len(), graph.links.len());
                assert_eq!(found, (edges, links), "{notation} {backwards}");
                for &edge in graph.edges() {
                    assert!(!graph.links(edge).is_empty());
                }
            }
        }
    }

    #[test]
    fn links_that_no_edge_uses_are_removed() {
        let graph = LinkGraph::of(&routes("hierarchical:switch:4/switch:64"), 4, false);
        assert_eq!((graph.edges().len(), graph.rates.len()), (12, 8));
        assert!(graph.links.iter().chain(&graph.pace).all(|&link| link < 8));
    }

    /// Five rings of four behind gateways at a switch: 8 edges in each ring, and between rings only
    /// 6 of 16 from each ring to the next and back, which cover every rank's link to its gateway.
    /// Boxes of four: all pairs in a box except the first and the last rank, and the last rank of
    /// one box with the first of the next.
    #[test]
    fn sparse_edges_cover_every_link_with_few_senders() {
        let sparse =
            |notation, ranks| LinkGraph::of(&routes(notation), ranks, false).sparse().unwrap();
        let rings = sparse("hierarchical:ring:4/switch:5", 20);
        let between = rings.edges().iter().filter(|edge| edge.from / 4 != edge.to / 4);
        assert!(between.clone().all(|edge| rings.around(*edge) <= 2));
        assert_eq!((rings.edges().len(), between.count()), (5 * 8 + 5 * 6, 30));
        let boxes = sparse("hierarchical:switch:4/ring:3", 12);
        let between = boxes.edges().iter().filter(|edge| edge.from / 4 != edge.to / 4);
        assert!(between.clone().all(|edge| boxes.around(*edge) == 1));
        assert_eq!((boxes.edges().len(), between.count()), (3 * 10 + 6, 6));
    }
}
