//! Packs spanning trees so that the load of the most loaded link is small.
//!
//! Every link has a price that grows exponentially with its load. A tree is the cheapest spanning
//! tree at these prices, which may rise while it grows; its load is then added. After all trees are
//! built, each is removed in turn and rebuilt, several times: a descent on the sum of the
//! exponentials, which comes close to the optimal packing (Plotkin, Shmoys and Tardos 1995; Garg
//! and Koenemann 2007). Edges follow the routes, so loads are those of the network. Prices have a
//! minimum, so that edges are short where links have spare capacity: traffic that avoids a link
//! cannot contend there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::algorithm::on_graph::{Edge, LinkGraph};

/// The steepness of prices: a link with 2 % more load costs e times as much.
const STEEPNESS: f64 = 50.0;
/// The minimum price of a link, relative to that of the most loaded one.
const FLOOR: f64 = 0.1;
/// The cost of each step away from the root, in mean costs of an edge: keeps trees shallow.
const DEPTH: f64 = 0.04;
/// The maximum number of times that every tree is rebuilt.
const PASSES: u32 = 8;
/// The ratio to the limit at which the search stops.
const CLOSE: f64 = 1.01;

/// A spanning tree: edges in the order in which they add a rank.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) root: u32,
    pub(super) edges: Vec<Edge>,
}

/// Trees, and the ratio of each link's load to the limit.
pub(super) struct Packing {
    pub(super) trees: Vec<Tree>,
    /// The busy time of each link for all chunks, relative to the limit.
    usage: Vec<f64>,
}

impl Packing {
    /// Returns the usage of the most loaded link.
    pub(super) fn worst(&self) -> f64 {
        self.usage.iter().copied().fold(0.0, f64::max)
    }
}

/// The input of a packing.
pub(super) struct PackingProblem<'a> {
    pub(super) graph: &'a LinkGraph,
    /// The number of trees per root.
    pub(super) pieces: u32,
    /// The limit: time per byte of the full payload.
    pub(super) limit: f64,
    /// Whether chunks also go up the trees, over the reverse edges.
    pub(super) both_directions: bool,
    /// Whether prices rise while a tree grows, which reduces branching at few links.
    pub(super) rising: bool,
}

struct State<'a> {
    problem: &'a PackingProblem<'a>,
    /// The usage that one chunk adds at the pace of each link.
    share: Vec<f64>,
    usage: Vec<f64>,
    price: Vec<f64>,
    /// The usage of the most loaded link when the current tree was started.
    worst: f64,
    /// The reverse of each edge, by index.
    back: Vec<Edge>,
}

/// Packs `pieces` trees from every rank; returns `None` if a required reverse edge does not exist.
pub(super) fn pack(problem: &PackingProblem) -> Option<Packing> {
    let graph = problem.graph;
    let trees = f64::from(graph.ranks) * f64::from(problem.pieces);
    let share =
        graph.rates.iter().map(|rate| rate.ps_per_byte() / (trees * problem.limit)).collect();
    let back = graph.edges().iter().map(|&edge| graph.opposite(edge));
    let mut state = State {
        problem,
        share,
        usage: vec![0.0; graph.rates.len()],
        price: vec![0.0; graph.rates.len()],
        worst: 0.0,
        back: if problem.both_directions { back.collect::<Option<_>>()? } else { Vec::new() },
    };
    let roots = (0..problem.pieces).flat_map(|_| 0..graph.ranks);
    let mut forest: Vec<Tree> = roots.map(|root| state.lay(root)).collect();
    let mut best = Packing { trees: forest.clone(), usage: state.usage.clone() };
    for _ in 0..PASSES {
        if best.worst() <= CLOSE {
            break;
        }
        for tree in &mut forest {
            state.remove(tree);
            *tree = state.lay(tree.root);
        }
        let found = Packing { trees: forest.clone(), usage: state.usage.clone() };
        if found.worst() < best.worst() {
            best = found;
        }
    }
    Some(best)
}

impl State<'_> {
    /// Builds the cheapest tree from a root and adds it to the loads.
    fn lay(&mut self, root: u32) -> Tree {
        let graph = self.problem.graph;
        self.worst = self.usage.iter().copied().fold(0.0, f64::max);
        for link in 0..self.price.len() {
            self.price[link] = self.price_of(link);
        }
        let all: f64 = (0..).zip(graph.edges()).map(|(at, &edge)| self.weight(at, edge)).sum();
        let deeper = DEPTH * all / f64::from(count(graph.edges().len().max(1)));
        let mut depth = vec![0_u32; graph.ranks as usize];
        let mut inside = vec![false; graph.ranks as usize];
        let mut tree = Tree { root, edges: Vec::with_capacity(inside.len() - 1) };
        // Weights as bits, which have the same order because no weight is negative.
        let mut open: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut joined = Some(root);
        loop {
            if let Some(rank) = joined.take() {
                inside[rank as usize] = true;
                let deep = deeper * f64::from(depth[rank as usize]);
                for (at, &edge) in (graph.first(rank)..).zip(graph.from(rank)) {
                    if !inside[edge.to as usize] {
                        open.push(Reverse(((self.weight(at, edge) + deep).to_bits(), at)));
                    }
                }
            }
            let Some(Reverse((weight, at))) = open.pop() else { break };
            let edge = graph.edges()[at];
            if inside[edge.to as usize] {
                continue;
            }
            let deep = deeper * f64::from(depth[edge.from as usize]);
            let now = (self.weight(at, edge) + deep).to_bits();
            if now > weight {
                open.push(Reverse((now, at)));
                continue;
            }
            self.add(edge, 1.0);
            depth[edge.to as usize] = depth[edge.from as usize] + 1;
            tree.edges.push(edge);
            joined = Some(edge.to);
        }
        tree
    }

    #[inline]
    fn price_of(&self, link: usize) -> f64 {
        let above = (STEEPNESS * (self.usage[link] - self.worst)).clamp(-80.0, 500.0);
        FLOOR + libm::exp(above)
    }

    /// Returns the cost of an edge, including the reverse edge if that is used too.
    fn weight(&self, at: usize, edge: Edge) -> f64 {
        let along = |edge: Edge| -> f64 {
            let links = self.problem.graph.paced(edge);
            links.map(|(link, pace)| self.price[link] * self.share[pace]).sum()
        };
        along(edge) + self.back.get(at).map_or(0.0, |&back| along(back))
    }

    fn remove(&mut self, tree: &Tree) {
        for &edge in &tree.edges {
            self.add(edge, -1.0);
        }
    }

    /// Adds an edge to the loads and to the prices, `times` times.
    fn add(&mut self, edge: Edge, times: f64) {
        let graph = self.problem.graph;
        let back = if self.problem.both_directions { graph.opposite(edge) } else { None };
        for edge in [Some(edge), back].into_iter().flatten() {
            for (link, pace) in graph.paced(edge) {
                self.usage[link] += times * self.share[pace];
                if self.problem.rising {
                    self.price[link] = self.price_of(link);
                }
            }
        }
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
