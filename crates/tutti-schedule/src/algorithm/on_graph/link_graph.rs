//! Who can hand a message to whom on a graph without another rank on the way, and over which links.
//!
//! It differs from [`tutti_topology::Topology`]: its vertices are ranks, and an edge is a path of several links,
//! as the routes have it. Packing trees reads the links of every edge, and at which pace each of
//! them passes a message, for each tree that it lays: they lie side by side in two arrays.

use tutti_topology::Routes;
use tutti_topology::search::steps;
use tutti_units::TimePerByte;
use tutti_units::ids::{LinkId, RankId, VertexId};

/// A way from one rank to another, as [`Routes`] have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::algorithm) struct Edge {
    pub(in crate::algorithm) from: u32,
    pub(in crate::algorithm) to: u32,
    start: u32,
    end: u32,
}

/// All ways on which no rank forwards; all ways there are where these do not connect the ranks.
#[derive(Clone)]
pub(in crate::algorithm) struct LinkGraph {
    pub(in crate::algorithm) ranks: u32,
    /// The time per byte of each link of the graph.
    pub(in crate::algorithm) rates: Vec<TimePerByte>,
    /// By where they start, then where they end.
    edges: Vec<Edge>,
    first: Vec<u32>,
    links: Vec<u32>,
    /// For each of these, the link whose time a message takes on it.
    pace: Vec<u32>,
}

/// Ways that are kept of each rank in a thinned wiring, besides those that links need.
const FEW: u32 = 24;
/// So many ways lead over each link that is on any way, where there are that many.
const COVER: u32 = 8;

impl LinkGraph {
    /// Between the first `ranks` NPUs. `backwards`, the way from a to b is the route from b to a.
    pub(in crate::algorithm) fn of(routes: &Routes, ranks: u32, backwards: bool) -> LinkGraph {
        let direct = LinkGraph::through(routes, ranks, backwards, false);
        if direct.connects() { direct } else { LinkGraph::through(routes, ranks, backwards, true) }
    }

    fn through(routes: &Routes, ranks: u32, backwards: bool, forwarding: bool) -> LinkGraph {
        let topology = routes.topology();
        let rates = topology.links().map(|link| topology.parameters(link).rate).collect();
        let mut wiring = LinkGraph::empty(ranks, rates);
        for from in 0..ranks {
            for to in candidates(routes, from, ranks, backwards || forwarding) {
                let (source, destination) = if backwards { (to, from) } else { (from, to) };
                let Ok(path) = routes.path(RankId(source), RankId(destination)) else { continue };
                if forwarding || passes_no_rank(routes, &path, ranks) {
                    wiring.add(from, to, path.iter().map(|link| link.0));
                }
            }
            wiring.first.push(count(wiring.edges.len()));
        }
        wiring
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
            // What comes in faster than it goes on keeps the link until it is gone; what comes in
            // slowly leaves room between its packets.
            self.pace.push(if after == before { link } else { after });
        }
        let (start, end) = (count(start), count(self.links.len()));
        self.edges.push(Edge { from, to, start, end });
    }

    /// Only some of the ways, where there are many: those to ranks at distances of powers of two, and
    /// enough others to use every link, shortest first.
    pub(in crate::algorithm) fn thinned(&self) -> LinkGraph {
        if self.edges.len() <= (FEW * self.ranks) as usize {
            return self.clone();
        }
        let thinned = self.kept(|way| self.around(way).is_power_of_two(), COVER);
        if thinned.connects() { thinned } else { self.clone() }
    }

    /// As few ways as use every link: to the next ranks, and at distances of powers of two to those that are as
    /// near as any. Links far from the ranks then have one sender, whose messages stay in their order. `None`
    /// where these do not connect the ranks.
    pub(in crate::algorithm) fn sparse(&self) -> Option<LinkGraph> {
        let nearest = |rank| self.from(rank).iter().map(|&way| self.links(way).len()).min();
        let nearest: Vec<Option<usize>> = (0..self.ranks).map(nearest).collect();
        let near = |way: Edge| Some(self.links(way).len()) == nearest[way.from as usize];
        let wanted = |way: Edge| match self.around(way) {
            1 => true,
            distance => distance.is_power_of_two() && near(way),
        };
        Some(self.kept(wanted, 1)).filter(LinkGraph::connects)
    }

    /// How many ranks apart the ends of a way are, the shorter way round.
    fn around(&self, way: Edge) -> u32 {
        let ahead = (self.ranks + way.to - way.from) % self.ranks;
        ahead.min(self.ranks - ahead)
    }

    /// The ways that are wanted, with their ways back, and of the others so many as lead over each link `cover` times,
    /// shortest first.
    fn kept(&self, wanted: impl Fn(Edge) -> bool, cover: u32) -> LinkGraph {
        let mut order: Vec<usize> = (0..self.edges.len()).collect();
        order.sort_by_key(|&at| {
            let way = self.edges[at];
            (!wanted(way), way.end - way.start, self.around(way), at)
        });
        let mut covered = vec![0_u32; self.rates.len()];
        let mut kept = vec![false; self.edges.len()];
        for at in order {
            let way = self.edges[at];
            let needed =
                |way: Edge| self.links(way).iter().any(|&link| covered[link as usize] < cover);
            if kept[at] || !(wanted(way) || needed(way)) {
                continue;
            }
            let back = self.index(way.to, way.from);
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
            for (at, &way) in (self.first(rank)..).zip(self.from(rank)) {
                if kept[at] {
                    some.add(way.from, way.to, self.links(way).iter().copied());
                }
            }
            some.first.push(count(some.edges.len()));
        }
        some
    }

    /// The ways from a rank, by where they end.
    #[inline]
    pub(in crate::algorithm) fn from(&self, rank: u32) -> &[Edge] {
        let rank = rank as usize;
        &self.edges[self.first[rank] as usize..self.first[rank + 1] as usize]
    }

    /// Where the ways from a rank begin among [`LinkGraph::edges`].
    pub(in crate::algorithm) fn first(&self, rank: u32) -> usize {
        self.first[rank as usize] as usize
    }

    /// The way from the end of another to its beginning.
    pub(in crate::algorithm) fn way_back(&self, way: Edge) -> Option<Edge> {
        self.index(way.to, way.from).map(|at| self.edges[at])
    }

    /// Which of the ways leads from one rank to another.
    pub(in crate::algorithm) fn index(&self, from: u32, to: u32) -> Option<usize> {
        let found = self.from(from).binary_search_by_key(&to, |way| way.to);
        found.ok().map(|at| self.first(from) + at)
    }

    /// All ways.
    pub(in crate::algorithm) fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The links of a way.
    #[inline]
    pub(in crate::algorithm) fn links(&self, edge: Edge) -> &[u32] {
        &self.links[edge.start as usize..edge.end as usize]
    }

    /// The links of a way, each with the link whose time per byte a message takes on it: a slower one
    /// that follows, where that one holds it up; else itself.
    #[inline]
    pub(in crate::algorithm) fn paced(&self, edge: Edge) -> impl Iterator<Item = (usize, usize)> {
        let range = edge.start as usize..edge.end as usize;
        let pace = self.pace[range.clone()].iter().map(|&link| link as usize);
        self.links[range].iter().map(|&link| link as usize).zip(pace)
    }

    /// The most links of a way.
    pub(in crate::algorithm) fn longest(&self) -> usize {
        self.edges.iter().map(|&way| self.links(way).len()).max().unwrap_or(0)
    }

    /// How many steps over ways each rank is from one.
    pub(in crate::algorithm) fn steps_from(&self, rank: u32) -> Vec<u32> {
        steps(self.ranks as usize, rank, |at, visit| {
            self.from(at).iter().for_each(|edge| visit(edge.to));
        })
    }

    /// Whether every rank can be reached from every other.
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

/// The ranks that may be reached from one directly: all, or where none but ranks is next to it, those.
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
    fn ways_end_at_the_next_rank() {
        for (notation, ranks, edges, links) in [
            ("ring:6", 6, 12, 12),
            // The other NPUs are like switches: 0-1, 1-2 and 2-0 the other way round.
            ("ring:6", 3, 4, 4),
            ("switch:4", 4, 12, 24),
            ("torus:4x4", 16, 64, 64),
            ("hierarchical:switch:2/ring:3", 6, 30, 6 * 2 + 24 * 3),
        ] {
            for backwards in [false, true] {
                let wiring = LinkGraph::of(&routes(notation), ranks, backwards);
                let found = (wiring.edges().len(), wiring.links.len());
                assert_eq!(found, (edges, links), "{notation} {backwards}");
                for &edge in wiring.edges() {
                    assert!(!wiring.links(edge).is_empty());
                }
            }
        }
    }

    /// Five rings of four behind gateways that meet at a switch: 8 ways in each ring, and between rings only 6 of 16
    /// from each to the next and back, which use every rank's link to its gateway. Boxes of four: all pairs in a
    /// box but the first and the last rank, and the last of one with the first of the next.
    #[test]
    fn sparse_ways_use_every_link_with_few_senders() {
        let sparse =
            |notation, ranks| LinkGraph::of(&routes(notation), ranks, false).sparse().unwrap();
        let rings = sparse("hierarchical:ring:4/switch:5", 20);
        let between = rings.edges().iter().filter(|way| way.from / 4 != way.to / 4);
        assert!(between.clone().all(|way| rings.around(*way) <= 2));
        assert_eq!((rings.edges().len(), between.count()), (5 * 8 + 5 * 6, 30));
        let boxes = sparse("hierarchical:switch:4/ring:3", 12);
        let between = boxes.edges().iter().filter(|way| way.from / 4 != way.to / 4);
        assert!(between.clone().all(|way| boxes.around(*way) == 1));
        assert_eq!((boxes.edges().len(), between.count()), (3 * 10 + 6, 6));
    }
}
