//! Double binary tree: two trees that share the work, each of which carries half of the payload.
//!
//! The first tree is the in-order binary tree on the places 1 ... N: a place with l zero bits at its end
//! is at level l, its subtree is a run of places around it, and odd places are leaves. The second is the
//! first mirrored (N even) or shifted by one (N odd), so that **a rank that is inner in one is a leaf in
//! the other**, and no rank sends more than twice the payload. Every half is cut into C chunks, which are
//! reduced to the root and broadcast from it in a pipeline. Sources: Sanders, Speck and Traeff, "Two-tree
//! algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 35 (2009); mirrored
//! and shifted as in NCCL, which hangs each tree below one more rank: for odd N that one is inner in both.
//!
//! Each message has its beat, in which both of its ranks take part: with R the root's level, chunk c goes
//! up to a parent of level l in beat l - 1 + c and down from it in beat 2 R - l + c. A step is a beat in
//! which a rank has something to do, in either tree, so nothing needs to be buffered.

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request, Stage};
use crate::collective::Collective;
use crate::ids::RankId;
use crate::schedule::{ChunkRange, Schedule, Shape, Slot, Step};

pub(super) const ENTRY: Entry = Entry {
    name: "double_binary_tree",
    summary: "two binary trees with half of the payload each; inner in one, leaf in the other",
    source: "Sanders, Speck and Traeff 2009; NCCL",
    argument: "C, into how many chunks a tree's half is cut; 1 without",
    collectives: &["all_reduce"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && pieces(request).is_ok(),
    build,
    critical_path,
};

/// The most chunks of a tree: steps and chunks are counted in 32 bits.
const MOST: u32 = 1 << 20;
/// What the children send: those at the lower and at the higher places.
const SCRATCH: [Slot; 2] = [Slot(1), Slot(2)];

fn pieces(request: &Request) -> Result<u32, AlgorithmError> {
    let Some(argument) = request.argument else {
        return Ok(1);
    };
    let problem = match argument.trim().parse::<u32>() {
        Ok(pieces @ 1..=MOST) => return Ok(pieces),
        Ok(_) => "a tree's half is cut into 1 to 1048576 chunks",
        Err(_) => {
            "expected the chunks of a tree, a whole number of at least 1, \
                   as in `double_binary_tree:4`"
        }
    };
    Err(AlgorithmError::Argument {
        name: ENTRY.name,
        argument: argument.to_owned(),
        at: argument.len() - argument.trim_start().len(),
        problem: problem.to_owned(),
    })
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let pieces = pieces(request)?;
    let shape = Shape {
        name: match request.argument {
            Some(argument) => format!("{}:{argument}", ENTRY.name),
            None => ENTRY.name.to_owned(),
        },
        collective: Collective::AllReduce,
        ranks: request.ranks,
        chunks: 2 * pieces,
        slots: 3,
        result: Slot::DATA,
    };
    Ok(Arc::new(DoubleTree { shape, pieces, top: request.ranks.ilog2() }))
}

/// Two ranks are root of one tree and leaf of the other, and do the same at the same time. With more,
/// who is last in a beat depends on the network.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let pieces = pieces(request).ok()?;
    let stage = |messages, reductions| Stage {
        messages,
        receives: messages,
        chunks: 1,
        reductions,
        of: 2 * pieces,
    };
    let between = std::iter::repeat_n(stage(2, 1), pieces as usize - 1);
    let all = std::iter::once(stage(1, 1)).chain(between).chain(std::iter::once(stage(1, 0)));
    (request.ranks == 2).then(|| all.collect())
}

struct DoubleTree {
    shape: Shape,
    /// C.
    pieces: u32,
    /// The root's level.
    top: u32,
}

/// Where a rank stands in a tree: places count from 1.
struct Node {
    level: u32,
    parent: Option<u32>,
    /// At the lower and at the higher places.
    children: [Option<u32>; 2],
}

impl DoubleTree {
    fn place(&self, tree: u32, rank: u32) -> u32 {
        let n = self.shape.ranks;
        match (tree, n % 2, rank) {
            (0, ..) => rank + 1,
            (_, 0, _) => n - rank,
            (_, _, 0) => n,
            _ => rank,
        }
    }

    fn rank(&self, tree: u32, place: u32) -> RankId {
        let n = self.shape.ranks;
        RankId(match (tree, n % 2) {
            (0, _) => place - 1,
            (_, 0) => n - place,
            _ if place == n => 0,
            _ => place,
        })
    }

    fn node(&self, tree: u32, rank: u32) -> Node {
        let n = self.shape.ranks;
        let place = self.place(tree, rank);
        let level = place.trailing_zeros();
        let lower = place & (place - 1);
        let above = lower | (2 << level);
        let parent = if above <= n { above } else { lower };
        let mut reach = (1 << level) / 2;
        let first = (reach > 0).then(|| place - reach);
        while place + reach > n {
            reach /= 2;
        }
        let second = (reach > 0).then_some(place + reach);
        Node { level, parent: (parent > 0).then_some(parent), children: [first, second] }
    }

    /// The beats in which a node's first chunk comes up, goes up, comes down and goes down.
    fn beats(&self, node: &Node) -> [Option<u32>; 4] {
        let inner = (node.level > 0).then_some(node.level);
        let parent = node.parent.map(u32::trailing_zeros);
        let up = |level: u32| level - 1;
        let down = |level: u32| 2 * self.top - level;
        [inner.map(up), parent.map(up), parent.map(down), inner.map(down)]
    }

    /// The runs of beats in which a rank is busy, in order and without overlap: first beat and length.
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

    /// What a rank does in a tree in that beat.
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
                // Mirrored: higher places are lower ranks.
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

    fn step_name(&self, rank: RankId, step: u32) -> String {
        format!("beat {}", self.beat(rank, step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;

    fn trees(ranks: u32) -> DoubleTree {
        let shape = Shape {
            name: String::new(),
            collective: Collective::AllReduce,
            ranks,
            chunks: 2,
            slots: 3,
            result: Slot::DATA,
        };
        DoubleTree { shape, pieces: 1, top: ranks.ilog2() }
    }

    #[test]
    fn it_does_what_it_claims_at_every_rank_count_and_needs_no_buffers() {
        for ranks in 2..=128 {
            for notation in ["double_binary_tree", "double_binary_tree:5"] {
                let proof = check::performs(notation, Collective::AllReduce, ranks);
                assert!(proof.rendezvous_safe(), "{notation}, {ranks} ranks");
                assert!(proof.reproducibility.same_on_all_ranks);
                assert!(proof.reproducibility.rank_order || ranks % 2 == 1);
            }
        }
    }

    #[test]
    fn who_is_inner_in_one_tree_is_a_leaf_in_the_other() {
        for ranks in 2..=300 {
            let trees = trees(ranks);
            for rank in 0..ranks {
                let inner = |tree| trees.node(tree, rank).level > 0;
                assert!(!(inner(0) && inner(1)), "rank {rank} of {ranks}");
            }
        }
    }

    /// Each place has one parent, which knows it as a child, and a level above its own; one has none.
    #[test]
    fn both_are_trees() {
        for ranks in 2..=300 {
            let trees = trees(ranks);
            for tree in [0, 1] {
                let mut roots = 0;
                for rank in 0..ranks {
                    let place = trees.place(tree, rank);
                    assert_eq!(trees.rank(tree, place), RankId(rank));
                    let node = trees.node(tree, rank);
                    let Some(parent) = node.parent else {
                        roots += 1;
                        assert_eq!(node.level, trees.top);
                        continue;
                    };
                    let above = trees.node(tree, trees.rank(tree, parent).0);
                    assert!(above.children.contains(&Some(place)) && above.level > node.level);
                }
                assert_eq!(roots, 1);
            }
        }
    }

    #[test]
    fn two_ranks_have_a_closed_form() {
        for notation in ["double_binary_tree", "double_binary_tree:2", "double_binary_tree:7"] {
            assert!(check::critical_path_is_exact(notation, Collective::AllReduce, 2));
            assert!(!check::critical_path_is_exact(notation, Collective::AllReduce, 3));
        }
    }

    #[test]
    fn what_is_no_number_of_chunks_is_refused() {
        for (argument, at) in [("0", 0), (" x", 1), ("", 0), ("1048577", 0)] {
            let notation = format!("double_binary_tree:{argument}");
            let error = crate::algorithm::build(&notation, Collective::AllReduce, 8).err().unwrap();
            assert!(matches!(error, AlgorithmError::Argument { at: found, .. } if found == at));
        }
    }
}
