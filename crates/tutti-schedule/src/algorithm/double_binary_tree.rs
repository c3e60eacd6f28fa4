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
//! With `node=G` the trees connect nodes of G consecutive ranks, and the ranks of a node form a chain
//! from the first, which is the node's rank in the trees. With `channels=H` there are H such pairs of
//! trees, each with 1/H of the payload, and channel h starts the chains at the h-th rank of a node.
//! Traffic between nodes then leaves and enters at H ranks. This is the tree all_reduce of NCCL.
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
    argument: "[nccl,] [phased,] [node=G,] [channels=H,] [C]: NCCL's trees; the broadcast as a separate phase after \
               all reductions; trees of nodes of G ranks, each a chain; H pairs of trees, each from another rank of \
               a node; the number of chunks per tree (default 1)",
    collectives: &["all_reduce"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && form(request).is_ok(),
    build,
    critical_path,
};

/// The maximum number of chunks per tree: steps and chunks are counted in 32 bits.
const MOST: u32 = 1 << 20;
/// The maximum number of channels.
const MOST_CHANNELS: u32 = 1 << 10;
/// Slots for chunks from the children at the lower and at the higher positions, and in the chain.
const SCRATCH: [Slot; 3] = [Slot(1), Slot(2), Slot(3)];

/// The variant of the trees.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Form {
    /// C, the chunks per tree.
    pieces: u32,
    /// Whether a single root above the tree is added, as in NCCL.
    nccl: bool,
    /// Whether the broadcast starts after all reductions.
    phased: bool,
    /// G, the ranks of a node.
    node: u32,
    /// H, the pairs of trees.
    channels: u32,
}

impl Form {
    /// One pair of trees of ranks, with one chunk each.
    const PLAIN: Form = Form { pieces: 1, nccl: false, phased: false, node: 1, channels: 1 };
}

fn form(request: &Request) -> Result<Form, AlgorithmError> {
    let Some(argument) = request.argument else { return Ok(Form::PLAIN) };
    let refused = |problem: String| {
        Err(request.refuse(ENTRY.name, argument.len() - argument.trim_start().len(), problem))
    };
    let mut words = argument.split(',').map(str::trim).peekable();
    let nccl = words.next_if_eq(&"nccl").is_some();
    let phased = words.next_if_eq(&"phased").is_some();
    let mut option = |key: &str| {
        let word = words.next_if(|word| word.starts_with(key));
        word.map_or(Ok(1), |word| word[key.len()..].parse::<u32>())
    };
    let (node, channels) = (option("node="), option("channels="));
    let pieces = match (words.next(), words.next()) {
        (None, _) => Ok(1),
        (Some(pieces), None) => pieces.parse::<u32>().map_err(drop),
        _ => Err(()),
    };
    let (Ok(pieces), Ok(node), Ok(channels)) = (pieces, node, channels) else {
        return refused(
            "expected the chunks per tree, an integer of at least 1, such as \
             `double_binary_tree:4`, optionally after `nccl`, `phased`, `node=G` and `channels=H`, \
             such as `nccl,node=8,channels=8,4`"
                .to_owned(),
        );
    };
    if node == 0 || !request.ranks.is_multiple_of(node) {
        return refused(format!("{} ranks are not nodes of {node} ranks", request.ranks));
    }
    if !(1..=MOST_CHANNELS).contains(&channels) {
        return refused(format!("{channels} channels: expected 1 to {MOST_CHANNELS}"));
    }
    if pieces == 0 || u64::from(pieces) * u64::from(channels) > u64::from(MOST) {
        return refused(format!("expected 1 to {} chunks per tree", MOST / channels));
    }
    Ok(Form { pieces, nccl, phased, node, channels })
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let form = form(request)?;
    Ok(Arc::new(DoubleTree::new(request.notation(ENTRY.name), request.ranks, form)))
}

/// Two ranks are the root of one tree and a leaf of the other, and act symmetrically. With more
/// ranks, the last rank in a beat depends on the network.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let Form { pieces, phased, node, channels, .. } = form(request).ok()?;
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
    (request.ranks == 2 && node * channels == 1).then(|| all.collect())
}

struct DoubleTree {
    shape: Shape,
    /// C, the chunks per tree.
    pieces: u32,
    /// G, the ranks of a node.
    group: u32,
    /// The number of nodes.
    nodes: u32,
    /// The number of trees, two per channel.
    trees: u32,
    /// Positions before the trees: the root's in NCCL's trees.
    before: u32,
    /// The level of the root among the nodes, and among the ranks.
    crown: u32,
    top: u32,
    phased: bool,
}

/// The position of a node in a tree: counted from 1, or from 0 with a root in front.
struct Node {
    level: u32,
    parent: Option<u32>,
    /// At the lower and at the higher positions.
    children: [Option<u32>; 2],
}

/// The neighbours of a rank in a tree.
struct Role {
    level: u32,
    /// With its level.
    parent: Option<(RankId, u32)>,
    /// At the lower and at the higher positions, and in the chain.
    children: [Option<RankId>; 3],
}

impl DoubleTree {
    fn new(name: String, ranks: u32, form: Form) -> DoubleTree {
        let Form { pieces, nccl, phased, node: group, channels } = form;
        let (nodes, trees) = (ranks / group, 2 * channels);
        let slots = if group > 1 { 4 } else { 3 };
        let shape = Shape::in_place(name, Collective::AllReduce, ranks, trees * pieces, slots);
        let before = u32::from(nccl && nodes > 1);
        let crown = (nodes - before).ilog2() + before;
        let top = crown + group - 1;
        DoubleTree { shape, pieces, group, nodes, trees, before, crown, top, phased }
    }

    /// Returns the position of a node in the first or second tree of a channel.
    fn place(&self, tree: u32, rank: u32) -> u32 {
        let n = self.nodes;
        let place = match (tree, n % 2, rank) {
            (0, ..) => rank + 1,
            (_, 0, _) => n - rank,
            (_, _, 0) => n,
            _ => rank,
        };
        place - self.before
    }

    /// Returns the node at a position.
    fn rank(&self, tree: u32, place: u32) -> RankId {
        let (n, place) = (self.nodes, place + self.before);
        RankId(match (tree, n % 2) {
            (0, _) => place - 1,
            (_, 0) => n - place,
            _ if place == n => 0,
            _ => place,
        })
    }

    fn level(&self, place: u32) -> u32 {
        if place == 0 { self.crown } else { place.trailing_zeros() }
    }

    fn node(&self, tree: u32, rank: u32) -> Node {
        let last = self.nodes - self.before;
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

    /// Returns the neighbours of a rank: in the chain of its node or, at the head of it, also in the
    /// trees of nodes.
    fn role(&self, tree: u32, rank: u32) -> Role {
        let (group, half) = (self.group, tree % 2);
        let head = tree / 2 % group;
        let (node, after) = (rank / group, (rank % group + group - head) % group);
        let at = |node: u32, after: u32| RankId(node * group + (head + after) % group);
        let next = (after + 1 < group).then(|| at(node, after + 1));
        let Node { level, parent, children } = self.node(half, node);
        let chain = group - 1;
        if after > 0 {
            let above = if after == 1 { level + chain } else { group - after };
            let parent = Some((at(node, after - 1), above));
            return Role { level: chain - after, parent, children: [None, None, next] };
        }
        let of = |place: u32| at(self.rank(half, place).0, 0);
        let parent = parent.map(|place| (of(place), self.level(place) + chain));
        let [lower, higher] = children.map(|child| child.map(of));
        Role { level: level + chain, parent, children: [lower, higher, next] }
    }

    /// Returns the beats in which a rank's first chunk comes up, goes up, comes down and goes down.
    fn beats(&self, role: &Role) -> [Option<u32>; 4] {
        let inner = (role.level > 0).then_some(role.level);
        let parent = role.parent.map(|(_, level)| level);
        let up = |level: u32| level - 1;
        let down =
            |level: u32| 2 * self.top - level + if self.phased { self.pieces - 1 } else { 0 };
        [inner.map(up), parent.map(up), parent.map(down), inner.map(down)]
    }

    /// Returns the ranges of beats in which a rank is active, in order and disjoint: first beat and
    /// length.
    fn busy(&self, rank: RankId) -> impl Iterator<Item = (u32, u32)> {
        let of = |tree| self.beats(&self.role(tree, rank.0));
        let mut starts: Vec<u32> = (0..self.trees).flat_map(of).flatten().collect();
        starts.sort_unstable();
        let (pieces, mut done) = (self.pieces, 0);
        starts.into_iter().map(move |start| {
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
        let role = self.role(tree, rank.0);
        let chunk = |start: Option<u32>| {
            let piece = beat.checked_sub(start?).filter(|&piece| piece < self.pieces)?;
            Some(ChunkRange::one(tree * self.pieces + piece))
        };
        let [comes_up, goes_up, comes_down, goes_down] = self.beats(&role).map(chunk);
        if let (Some((parent, _)), Some(chunk)) = (role.parent, goes_up) {
            out.send(parent, Slot::DATA, chunk);
        }
        if let Some(chunk) = goes_down {
            for child in role.children.into_iter().flatten() {
                out.send(child, Slot::DATA, chunk);
            }
        }
        if let (Some((parent, _)), Some(chunk)) = (role.parent, comes_down) {
            out.recv(parent, Slot::DATA, chunk);
        }
        if let Some(chunk) = comes_up {
            self.fold(tree, role.children, chunk, out);
        }
    }

    /// Receives a chunk from the children and folds it: the lower nodes, the node, the higher nodes.
    fn fold(&self, tree: u32, children: [Option<RankId>; 3], chunk: ChunkRange, out: &mut Step) {
        for (child, slot) in children.into_iter().zip(SCRATCH) {
            if let Some(child) = child {
                out.recv(child, slot, chunk);
            }
        }
        let [lower, higher, next] = [0, 1, 2].map(|at| children[at].map(|_| SCRATCH[at]));
        let mirrored = tree % 2 == 1 && self.nodes.is_multiple_of(2);
        let (first, last) = if mirrored { (higher, lower) } else { (lower, higher) };
        let operands = [first, Some(Slot::DATA), next, last].into_iter().flatten();
        out.reduce(Slot::DATA, operands, chunk);
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
        (0..self.trees).for_each(|tree| self.act(tree, rank, beat, out));
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
