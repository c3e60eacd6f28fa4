//! Double binary tree: two trees, each of which carries half of the payload.
//!
//! The first tree is the in-order binary tree on the positions 1 ... N. A position with l trailing
//! zero bits is at level l, its subtree is a range of positions around it, and odd positions are
//! leaves. The second tree is the first one mirrored (N even) or shifted by one (N odd). Therefore
//! **an inner rank of one tree is a leaf of the other**, and no rank sends more than twice the
//! payload. Each half is divided into C chunks, which are reduced to the root and broadcast from it
//! in a pipeline. Sources: Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth
//! broadcast, reduction and scan", Parallel Computing 35 (2009); mirrored and shifted as in NCCL.
//!
//! With `nccl` the trees are those of NCCL (`ncclGetDtree`): they use the positions 0 ... N - 1,
//! and position 0 is the root with a single child, the root of the others. This adds a level unless
//! N is a power of two. For odd N, rank 0 is an inner rank of both trees.
//!
//! With `phased` the broadcast starts after all reductions, as a separate phase. The network may
//! then be configured for the edges towards the roots first and reversed between the phases.
//!
//! Each message has a beat, in which both of its ranks take part. With R the level of the root,
//! chunk c goes up to a parent of level l in beat l - 1 + c. It comes down from that parent in beat
//! 2 R - l + c, C - 1 beats later if phased. A step is a beat in which a rank is active in either
//! tree, so no message is buffered.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request, Stage};
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "double_binary_tree",
    summary: "two binary trees with half of the payload each; an inner rank of one is a leaf of the other",
    source: "Sanders, Speck and Traeff 2009; NCCL",
    argument: "[nccl,] [phased,] [C]: NCCL's trees; the broadcast as a separate phase after all reductions; the \
               number of chunks per tree (default 1)",
    collectives: &["all_reduce"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && form(request).is_ok(),
    build,
    critical_path,
};

/// The maximum number of chunks per tree: steps and chunks are counted in 32 bits.
const MOST: u32 = 1 << 20;
/// Slots for chunks from the children at the lower and at the higher positions.
const SCRATCH: [Slot; 2] = [Slot(1), Slot(2)];

/// The variant of the trees.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Form {
    /// C, the chunks per tree.
    pieces: u32,
    /// Whether a single root above the tree is added, as in NCCL.
    nccl: bool,
    /// Whether the broadcast starts after all reductions.
    phased: bool,
}

fn form(request: &Request) -> Result<Form, AlgorithmError> {
    let Some(argument) = request.argument else {
        return Ok(Form { pieces: 1, nccl: false, phased: false });
    };
    let mut words = argument.split(',').map(str::trim).peekable();
    let nccl = words.next_if_eq(&"nccl").is_some();
    let phased = words.next_if_eq(&"phased").is_some();
    let pieces = match (words.next(), words.next()) {
        (None, _) => Ok(1),
        (Some(pieces), None) => pieces.parse::<u32>().map_err(drop),
        _ => Err(()),
    };
    let problem = match pieces {
        Ok(pieces @ 1..=MOST) => return Ok(Form { pieces, nccl, phased }),
        Ok(_) => "expected 1 to 1048576 chunks per tree",
        Err(()) => {
            "expected the chunks per tree, an integer of at least 1, such as \
             `double_binary_tree:4`, optionally after `nccl` and `phased`, such as `nccl,phased,4`"
        }
    };
    Err(request.refuse(ENTRY.name, argument.len() - argument.trim_start().len(), problem))
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let form = form(request)?;
    Ok(Arc::new(DoubleTree::new(request.notation(ENTRY.name), request.ranks, form)))
}

/// Two ranks are the root of one tree and a leaf of the other, and act symmetrically. With more
/// ranks, the last rank in a beat depends on the network.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let Form { pieces, phased, .. } = form(request).ok()?;
    let stage = |messages, reductions| Stage {
        messages,
        receives: messages,
        chunks: 1,
        reductions,
        of: 2 * pieces,
    };
    let times = |stage, count: u32| std::iter::repeat_n(stage, count as usize);
    let (alone, both) = if phased { (pieces, 0) } else { (1, pieces - 1) };
    let all =
        times(stage(1, 1), alone).chain(times(stage(2, 1), both)).chain(times(stage(1, 0), alone));
    (request.ranks == 2).then(|| all.collect())
}

struct DoubleTree {
    shape: Shape,
    /// C, the chunks per tree.
    pieces: u32,
    /// Positions before the trees: the root's in NCCL's trees.
    before: u32,
    /// The level of the root.
    top: u32,
    phased: bool,
}

/// The position of a rank in a tree: counted from 1, or from 0 with a root in front.
struct Node {
    level: u32,
    parent: Option<u32>,
    /// At the lower and at the higher positions.
    children: [Option<u32>; 2],
}

impl DoubleTree {
    fn new(name: String, ranks: u32, Form { pieces, nccl, phased }: Form) -> DoubleTree {
        let shape = Shape::in_place(name, Collective::AllReduce, ranks, 2 * pieces, 3);
        let before = u32::from(nccl);
        DoubleTree { shape, pieces, before, top: (ranks - before).ilog2() + before, phased }
    }

    fn place(&self, tree: u32, rank: u32) -> u32 {
        let n = self.shape.ranks;
        let place = match (tree, n % 2, rank) {
            (0, ..) => rank + 1,
            (_, 0, _) => n - rank,
            (_, _, 0) => n,
            _ => rank,
        };
        place - self.before
    }

    fn rank(&self, tree: u32, place: u32) -> RankId {
        let (n, place) = (self.shape.ranks, place + self.before);
        RankId(match (tree, n % 2) {
            (0, _) => place - 1,
            (_, 0) => n - place,
            _ if place == n => 0,
            _ => place,
        })
    }

    fn level(&self, place: u32) -> u32 {
        if place == 0 { self.top } else { place.trailing_zeros() }
    }

    fn node(&self, tree: u32, rank: u32) -> Node {
        let last = self.shape.ranks - self.before;
        let place = self.place(tree, rank);
        let level = self.level(place);
        if place == 0 {
            return Node { level, parent: None, children: [None, Some(1 << (level - 1))] };
        }
        let lower = place & (place - 1);
        let above = lower | (2 << level);
        let parent = if above <= last { above } else { lower };
        let mut reach = (1 << level) / 2;
        let first = (reach > 0).then(|| place - reach);
        while place + reach > last {
            reach /= 2;
        }
        let second = (reach > 0).then_some(place + reach);
        let parent = (parent + self.before > 0).then_some(parent);
        Node { level, parent, children: [first, second] }
    }

    /// Returns the beats in which a node's first chunk comes up, goes up, comes down and goes down.
    fn beats(&self, node: &Node) -> [Option<u32>; 4] {
        let inner = (node.level > 0).then_some(node.level);
        let parent = node.parent.map(|place| self.level(place));
        let up = |level: u32| level - 1;
        let down =
            |level: u32| 2 * self.top - level + if self.phased { self.pieces - 1 } else { 0 };
        [inner.map(up), parent.map(up), parent.map(down), inner.map(down)]
    }

    /// Returns the ranges of beats in which a rank is active, in order and disjoint: first beat and
    /// length.
    fn busy(&self, rank: RankId) -> impl Iterator<Item = (u32, u32)> {
        let [one, other] = [0, 1].map(|tree| self.beats(&self.node(tree, rank.0)));
        let mut starts = [one[0], one[1], one[2], one[3], other[0], other[1], other[2], other[3]];
        starts.sort_unstable();
        let (pieces, mut done) = (self.pieces, 0);
        starts.into_iter().flatten().map(move |start| {
            let from = start.max(done);
            done = start + pieces;
            (from, done - from)
        })
    }

    fn beat(&self, rank: RankId, mut step: u32) -> u32 {
        for (from, len) in self.busy(rank) {
            if step < len {
                return from + step;
            }
            step -= len;
        }
        unreachable!("a rank has no more steps than beats in which it is busy")
    }

    /// Adds the ops of a rank in a tree in that beat.
    fn act(&self, tree: u32, rank: RankId, beat: u32, out: &mut Step) {
        let node = self.node(tree, rank.0);
        let chunk = |start: Option<u32>| {
            let piece = beat.checked_sub(start?).filter(|&piece| piece < self.pieces)?;
            Some(ChunkRange::one(tree * self.pieces + piece))
        };
        let [comes_up, goes_up, comes_down, goes_down] = self.beats(&node).map(chunk);
        let children = || node.children.into_iter().zip(SCRATCH);
        if let (Some(parent), Some(chunk)) = (node.parent, goes_up) {
            out.send(self.rank(tree, parent), Slot::DATA, chunk);
        }
        if let Some(chunk) = goes_down {
            for child in node.children.into_iter().flatten() {
                out.send(self.rank(tree, child), Slot::DATA, chunk);
            }
        }
        if let (Some(parent), Some(chunk)) = (node.parent, comes_down) {
            out.recv(self.rank(tree, parent), Slot::DATA, chunk);
        }
        if let Some(chunk) = comes_up {
            for (child, slot) in children().filter_map(|(child, slot)| Some((child?, slot))) {
                out.recv(self.rank(tree, child), slot, chunk);
            }
            let [lower, higher] = node.children.map(|child| child.is_some());
            let operands = [(lower, SCRATCH[0]), (true, Slot::DATA), (higher, SCRATCH[1])];
            let operands = operands.into_iter().filter(|(there, _)| *there).map(|(_, slot)| slot);
            if tree == 1 && self.shape.ranks.is_multiple_of(2) {
                // Mirrored: higher positions are lower ranks.
                out.reduce(Slot::DATA, operands.rev(), chunk);
            } else {
                out.reduce(Slot::DATA, operands, chunk);
            }
        }
    }
}

impl Schedule for DoubleTree {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        self.busy(rank).map(|(_, len)| len).sum()
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let beat = self.beat(rank, step);
        self.act(0, rank, beat, out);
        self.act(1, rank, beat, out);
    }

    fn phases(&self) -> u32 {
        1 + u32::from(self.phased)
    }

    /// The first chunk leaves a root in the beat after the last one arrives.
    fn phase(&self, rank: RankId, step: u32) -> u32 {
        let down = self.top + self.pieces - 1;
        u32::from(self.phased && self.beat(rank, step) >= down)
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        format!("beat {}", self.beat(rank, step))
    }
}
