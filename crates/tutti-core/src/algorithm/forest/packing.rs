//! Packs spanning trees so that the most loaded link carries as little as possible.
//!
//! Every link has a length that grows exponentially with its load. A tree is the lightest that spans the
//! ranks under these lengths; it then adds to the loads. After all trees stand, each is taken out in turn and
//! laid again, several times over: a descent on the sum of the exponentials, which comes close to the best
//! packing there is (Plotkin, Shmoys and Tardos 1995; Garg and Koenemann 2007). Ways are those of the routes,
//! so loads are what the network will see.

use std::collections::BTreeMap;

use crate::algorithm::on_graph::{Edge, Wiring};

/// How steeply lengths grow: a link that is used by a fiftieth more than another is e times as long.
const STEEPNESS: f64 = 50.0;
/// What each step away from the root weighs, in mean lengths of a way: keeps trees shallow.
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
    pub(super) usage: Vec<f64>,
}

impl Packing {
    /// The most loaded link's.
    pub(super) fn worst(&self) -> f64 {
        self.usage.iter().copied().fold(0.0, f64::max)
    }
}

/// What is packed.
pub(super) struct Wanted<'a> {
    pub(super) wiring: &'a Wiring,
    /// How many trees each rank is the root of.
    pub(super) pieces: u32,
    /// The time per byte of the whole payload that the links allow.
    pub(super) limit: f64,
    /// Whether chunks also go up the trees, over the ways back.
    pub(super) both_ways: bool,
}

struct State<'a> {
    wanted: &'a Wanted<'a>,
    /// What a chunk adds to the usage of each link.
    share: Vec<f64>,
    usage: Vec<f64>,
    /// For each way, by its index, the way back.
    back: Vec<u32>,
    /// By way; by link.
    weights: Vec<f64>,
    lengths: Vec<f64>,
}

/// Packs `pieces` trees from every rank; `None` when a way has no way back and both are wanted.
pub(super) fn pack(wanted: &Wanted) -> Option<Packing> {
    let wiring = wanted.wiring;
    let trees = f64::from(wiring.ranks) * f64::from(wanted.pieces);
    let share =
        wiring.rates.iter().map(|rate| rate.ps_per_byte() / (trees * wanted.limit)).collect();
    let mut state = State {
        wanted,
        share,
        usage: vec![0.0; wiring.rates.len()],
        back: if wanted.both_ways { ways_back(wiring)? } else { Vec::new() },
        weights: vec![0.0; wiring.edges().len()],
        lengths: vec![0.0; wiring.rates.len()],
    };
    let roots = (0..wanted.pieces).flat_map(|_| 0..wiring.ranks);
    let mut forest: Vec<Tree> = roots.map(|root| state.lay(root)).collect();
    let mut best = Packing { trees: forest.clone(), usage: state.usage.clone() };
    for _ in 0..PASSES {
        if best.worst() <= CLOSE {
            break;
        }
        for tree in &mut forest {
            state.add(tree, -1.0);
            *tree = state.lay(tree.root);
        }
        let found = Packing { trees: forest.clone(), usage: state.usage.clone() };
        if found.worst() < best.worst() {
            best = found;
        }
    }
    Some(best)
}

fn ways_back(wiring: &Wiring) -> Option<Vec<u32>> {
    let index: BTreeMap<(u32, u32), u32> =
        (0..).zip(wiring.edges()).map(|(index, way)| ((way.from, way.to), index)).collect();
    wiring.edges().iter().map(|way| index.get(&(way.to, way.from)).copied()).collect()
}

impl State<'_> {
    /// The lightest tree from a root, which is added to the loads.
    fn lay(&mut self, root: u32) -> Tree {
        self.weigh();
        let wiring = self.wanted.wiring;
        let mean = self.weights.iter().sum::<f64>() / f64::from(count(self.weights.len().max(1)));
        let ranks = wiring.ranks as usize;
        // By rank outside the tree: the lightest way to it, and how deep it would be.
        let mut lightest: Vec<(f64, Option<Edge>)> = vec![(f64::INFINITY, None); ranks];
        let mut depth = vec![0_u32; ranks];
        let mut inside = vec![false; ranks];
        let mut tree = Tree { root, ways: Vec::with_capacity(ranks - 1) };
        let mut at = root;
        loop {
            inside[at as usize] = true;
            let deep = mean * DEPTH * f64::from(depth[at as usize]);
            let first = wiring.first(at);
            for (index, &way) in (first..).zip(wiring.from(at)) {
                let known = &mut lightest[way.to as usize];
                let weight = self.weights[index] + deep;
                if !inside[way.to as usize] && weight < known.0 {
                    *known = (weight, Some(way));
                }
            }
            let outside = inside.iter().zip(&lightest).filter(|(inside, _)| !**inside);
            let next = outside.map(|(_, one)| one).min_by(|a, b| a.0.total_cmp(&b.0));
            let Some(way) = next.and_then(|(_, way)| *way) else { break };
            depth[way.to as usize] = depth[way.from as usize] + 1;
            tree.ways.push(way);
            at = way.to;
        }
        self.add(&tree, 1.0);
        tree
    }

    /// Lengths from loads, and ways from lengths.
    fn weigh(&mut self) {
        let wiring = self.wanted.wiring;
        let worst = self.usage.iter().copied().fold(0.0, f64::max);
        for ((length, usage), share) in self.lengths.iter_mut().zip(&self.usage).zip(&self.share) {
            *length = share * libm::exp(STEEPNESS * (usage - worst).max(-1.6));
        }
        let along = |way: Edge| -> f64 {
            wiring.links(way).iter().map(|&link| self.lengths[link as usize]).sum()
        };
        let mut weights: Vec<f64> = wiring.edges().iter().map(|&way| along(way)).collect();
        if self.wanted.both_ways {
            let alone = weights.clone();
            for (weight, &back) in weights.iter_mut().zip(&self.back) {
                *weight += alone[back as usize];
            }
        }
        self.weights = weights;
    }

    /// Adds a tree to the loads, or takes it out.
    fn add(&mut self, tree: &Tree, times: f64) {
        let wiring = self.wanted.wiring;
        for &way in &tree.ways {
            for &link in wiring.links(way) {
                self.usage[link as usize] += times * self.share[link as usize];
            }
            if self.wanted.both_ways {
                for &link in wiring.way_back(way).map_or(&[][..], |back| wiring.links(back)) {
                    self.usage[link as usize] += times * self.share[link as usize];
                }
            }
        }
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
