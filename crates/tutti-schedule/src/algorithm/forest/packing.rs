//! Packs spanning trees so that the most loaded link carries as little as possible.
//!
//! Every link has a price that grows exponentially with its load. A tree is the cheapest that spans the
//! ranks at these prices, which may rise while it grows; it then adds to the loads. After all trees stand, each is
//! taken out in turn and laid again, several times over: a descent on the sum of the exponentials, which comes
//! close to the best packing there is (Plotkin, Shmoys and Tardos 1995; Garg and Koenemann 2007). Ways are
//! those of the routes, so loads are what the network will see. A price has a floor, so that ways are short
//! where links have room: what does not pass a link cannot meet others on it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::algorithm::on_graph::{Edge, LinkGraph};

/// How steeply prices grow: a link that is used by a fiftieth more than another is e times as dear.
const STEEPNESS: f64 = 50.0;
/// The price of a link with room, in that of the most loaded one.
const FLOOR: f64 = 0.1;
/// What each step away from the root weighs, in mean weights of a way: keeps trees shallow.
const DEPTH: f64 = 0.04;
/// The most times that every tree is laid again.
const PASSES: u32 = 8;
/// So close to the limit, nothing more is tried.
const CLOSE: f64 = 1.01;

/// A spanning tree: ways in the order in which they join a rank.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) root: u32,
    pub(super) ways: Vec<Edge>,
}

/// Trees, and how much the most loaded link exceeds the limit.
pub(super) struct Packing {
    pub(super) trees: Vec<Tree>,
    /// By link: how long it is busy for all chunks, in the time that the limit allows.
    usage: Vec<f64>,
}

impl Packing {
    /// The most loaded link's.
    pub(super) fn worst(&self) -> f64 {
        self.usage.iter().copied().fold(0.0, f64::max)
    }
}

/// What is packed.
pub(super) struct Wanted<'a> {
    pub(super) wiring: &'a LinkGraph,
    /// How many trees each rank is the root of.
    pub(super) pieces: u32,
    /// The time per byte of the whole payload that the links allow.
    pub(super) limit: f64,
    /// Whether chunks also go up the trees, over the ways back.
    pub(super) both_ways: bool,
    /// Whether prices rise while a tree grows, which makes trees of many branches at few links rarer.
    pub(super) rising: bool,
}

struct State<'a> {
    wanted: &'a Wanted<'a>,
    /// What a chunk at the pace of each link adds to a usage.
    share: Vec<f64>,
    usage: Vec<f64>,
    price: Vec<f64>,
    /// The most loaded link's usage when the tree at hand was begun.
    worst: f64,
    /// For each way, by its index, the way back.
    back: Vec<Edge>,
}

/// Packs `pieces` trees from every rank; `None` when a way has no way back and both are wanted.
pub(super) fn pack(wanted: &Wanted) -> Option<Packing> {
    let wiring = wanted.wiring;
    let trees = f64::from(wiring.ranks) * f64::from(wanted.pieces);
    let share =
        wiring.rates.iter().map(|rate| rate.ps_per_byte() / (trees * wanted.limit)).collect();
    let back = wiring.edges().iter().map(|&way| wiring.way_back(way));
    let mut state = State {
        wanted,
        share,
        usage: vec![0.0; wiring.rates.len()],
        price: vec![0.0; wiring.rates.len()],
        worst: 0.0,
        back: if wanted.both_ways { back.collect::<Option<_>>()? } else { Vec::new() },
    };
    let roots = (0..wanted.pieces).flat_map(|_| 0..wiring.ranks);
    let mut forest: Vec<Tree> = roots.map(|root| state.lay(root)).collect();
    let mut best = Packing { trees: forest.clone(), usage: state.usage.clone() };
    for _ in 0..PASSES {
        if best.worst() <= CLOSE {
            break;
        }
        for tree in &mut forest {
            state.take_out(tree);
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
    /// The cheapest tree from a root, which is added to the loads.
    fn lay(&mut self, root: u32) -> Tree {
        let wiring = self.wanted.wiring;
        self.worst = self.usage.iter().copied().fold(0.0, f64::max);
        for link in 0..self.price.len() {
            self.price[link] = self.price_of(link);
        }
        let all: f64 = (0..).zip(wiring.edges()).map(|(at, &way)| self.weight(at, way)).sum();
        let deeper = DEPTH * all / f64::from(count(wiring.edges().len().max(1)));
        let mut depth = vec![0_u32; wiring.ranks as usize];
        let mut inside = vec![false; wiring.ranks as usize];
        let mut tree = Tree { root, ways: Vec::with_capacity(inside.len() - 1) };
        // Weights, as bits: these are in the order of what they stand for, as none is negative.
        let mut open: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut joined = Some(root);
        loop {
            if let Some(rank) = joined.take() {
                inside[rank as usize] = true;
                let deep = deeper * f64::from(depth[rank as usize]);
                for (at, &way) in (wiring.first(rank)..).zip(wiring.from(rank)) {
                    if !inside[way.to as usize] {
                        open.push(Reverse(((self.weight(at, way) + deep).to_bits(), at)));
                    }
                }
            }
            let Some(Reverse((weight, at))) = open.pop() else { break };
            let way = wiring.edges()[at];
            if inside[way.to as usize] {
                continue;
            }
            let deep = deeper * f64::from(depth[way.from as usize]);
            let now = (self.weight(at, way) + deep).to_bits();
            if now > weight {
                open.push(Reverse((now, at)));
                continue;
            }
            self.add(way, 1.0);
            depth[way.to as usize] = depth[way.from as usize] + 1;
            tree.ways.push(way);
            joined = Some(way.to);
        }
        tree
    }

    #[inline]
    fn price_of(&self, link: usize) -> f64 {
        let above = (STEEPNESS * (self.usage[link] - self.worst)).clamp(-80.0, 500.0);
        FLOOR + libm::exp(above)
    }

    /// What a way costs, the way back included if that is used too.
    fn weight(&self, at: usize, way: Edge) -> f64 {
        let along = |way: Edge| -> f64 {
            let links = self.wanted.wiring.paced(way);
            links.map(|(link, pace)| self.price[link] * self.share[pace]).sum()
        };
        along(way) + self.back.get(at).map_or(0.0, |&back| along(back))
    }

    fn take_out(&mut self, tree: &Tree) {
        for &way in &tree.ways {
            self.add(way, -1.0);
        }
    }

    /// Adds a way to the loads and to the prices, so many times.
    fn add(&mut self, way: Edge, times: f64) {
        let wiring = self.wanted.wiring;
        let back = if self.wanted.both_ways { wiring.way_back(way) } else { None };
        for way in [Some(way), back].into_iter().flatten() {
            for (link, pace) in wiring.paced(way) {
                self.usage[link] += times * self.share[pace];
                if self.wanted.rising {
                    self.price[link] = self.price_of(link);
                }
            }
        }
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
