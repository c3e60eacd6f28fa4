//! Double binary tree: two trees that share the work, each of which carries half of the payload.
//!
//! The first tree is the in-order binary tree on the places 1 ... N: a place with l zero bits at its end
//! is at level l, its subtree is a run of places around it, and odd places are leaves. The second is the
//! first mirrored (N even) or shifted by one (N odd), so that **a rank that is inner in one is a leaf in
//! the other**, and no rank sends more than twice the payload. Every half is cut into C chunks, which are
//! reduced to the root and broadcast from it in a pipeline. Sources: Sanders, Speck and Traeff, "Two-tree
//! algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 35 (2009); mirrored
//! and shifted as in NCCL.
//!
//! With `nccl` they are the very trees of NCCL (`ncclGetDtree`): they stand on the places 0 ... N - 1, and
//! place 0 is the root with a single child, the root of the others. That is a level more unless N is a power
//! of two, and for odd N rank 0 is inner in both.
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
    argument: "C, into how many chunks a tree's half is cut; 1 without; `nccl` or `nccl,C` for NCCL's trees",
    collectives: &["all_reduce"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && form(request).is_ok(),
    build,
    critical_path,
};

/// The most chunks of a tree: steps and chunks are counted in 32 bits.
const MOST: u32 = 1 << 20;
/// What the children send: those at the lower and at the higher places.
const SCRATCH: [Slot; 2] = [Slot(1), Slot(2)];

/// How the trees are to be.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Form {
    /// C.
    pieces: u32,
    /// Below one more rank, as NCCL does it.
    nccl: bool,
}

fn form(request: &Request) -> Result<Form, AlgorithmError> {
    let Some(argument) = request.argument else {
        return Ok(Form { pieces: 1, nccl: false });
    };
    let (nccl, pieces) = match argument.trim().strip_prefix("nccl") {
        None => (false, Some(argument)),
        Some("") => (true, None),
        Some(rest) => (true, Some(rest.strip_prefix(',').unwrap_or(argument))),
    };
    let problem = match pieces.map_or(Ok(1), |pieces| pieces.trim().parse::<u32>()) {
        Ok(pieces @ 1..=MOST) => return Ok(Form { pieces, nccl }),
        Ok(_) => "a tree's half is cut into 1 to 1048576 chunks",
        Err(_) => {
            "expected the chunks of a tree, a whole number of at least 1, as in \
             `double_binary_tree:4`, or `nccl`, alone or before them, as in `nccl,4`"
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
    let form = form(request)?;
    let name = match request.argument {
        Some(argument) => format!("{}:{argument}", ENTRY.name),
        None => ENTRY.name.to_owned(),
    };
    Ok(Arc::new(DoubleTree::new(name, request.ranks, form)))
}

/// Two ranks are root of one tree and leaf of the other, and do the same at the same time. With more,
/// who is last in a beat depends on the network.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let Form { pieces, .. } = form(request).ok()?;
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
    /// Places in front of the trees: the root's, in NCCL's.
    before: u32,
    /// The root's level.
    top: u32,
}

/// Where a rank stands in a tree: places count from 1, or from 0 with a root in front.
struct Node {
    level: u32,
    parent: Option<u32>,
    /// At the lower and at the higher places.
    children: [Option<u32>; 2],
}

impl DoubleTree {
    fn new(name: String, ranks: u32, Form { pieces, nccl }: Form) -> DoubleTree {
        let collective = Collective::AllReduce;
        let (chunks, result) = (2 * pieces, Slot::DATA);
        let shape = Shape { name, collective, ranks, chunks, slots: 3, result };
        let before = u32::from(nccl);
        DoubleTree { shape, pieces, before, top: (ranks - before).ilog2() + before }
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

    /// The beats in which a node's first chunk comes up, goes up, comes down and goes down.
    fn beats(&self, node: &Node) -> [Option<u32>; 4] {
        let inner = (node.level > 0).then_some(node.level);
        let parent = node.parent.map(|place| self.level(place));
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

    const FORMS: [Form; 2] = [Form { pieces: 1, nccl: false }, Form { pieces: 1, nccl: true }];

    fn trees(ranks: u32, form: Form) -> DoubleTree {
        DoubleTree::new(String::new(), ranks, form)
    }

    #[test]
    fn it_does_what_it_claims_at_every_rank_count_and_needs_no_buffers() {
        for ranks in 2..=128 {
            for argument in ["", ":5", ":nccl", ":nccl,5"] {
                let notation = &format!("double_binary_tree{argument}");
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
            for (form, trees) in FORMS.map(|form| (form, trees(ranks, form))) {
                let inner = |rank| [0, 1].map(|tree| trees.node(tree, rank).level > 0);
                let found: Vec<_> = (0..ranks).filter(|&rank| inner(rank) == [true; 2]).collect();
                let both = form.nccl && !ranks.is_multiple_of(2);
                assert_eq!(found, if both { vec![0] } else { vec![] }, "{ranks} ranks");
            }
        }
    }

    /// Each place has one parent, which knows it as a child, and a level above its own; one has none.
    #[test]
    fn both_are_trees() {
        for (ranks, form) in (2..=300).flat_map(|ranks| FORMS.map(|form| (ranks, form))) {
            let trees = trees(ranks, form);
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

    /// The drawings in NCCL's `src/graph/trees.cc`, as the parent of each rank.
    #[test]
    fn nccl_s_trees_are_nccl_s() {
        let parents = |ranks, tree| -> Vec<Option<u32>> {
            let trees = trees(ranks, FORMS[1]);
            let parent = |rank| trees.node(tree, rank).parent.map(|at| trees.rank(tree, at).0);
            (0..ranks).map(parent).collect()
        };
        let drawn = |text: &str| -> Vec<Option<u32>> {
            text.split(' ').map(|parent| parent.parse().ok()).collect()
        };
        assert_eq!(parents(14, 0), drawn("- 2 4 2 8 6 4 6 0 10 12 10 8 12"));
        assert_eq!(parents(12, 0), drawn("- 2 4 2 8 6 4 6 0 10 8 10"));
        assert_eq!(parents(12, 1), drawn("1 3 1 11 5 7 5 3 9 7 9 -"));
        assert_eq!(parents(13, 1), drawn("9 - 3 5 3 9 7 5 7 1 11 0 11"));
    }

    #[test]
    fn two_ranks_have_a_closed_form() {
        for argument in ["", ":2", ":7", ":nccl", ":nccl,3"] {
            let notation = &format!("double_binary_tree{argument}");
            assert!(check::critical_path_is_exact(notation, Collective::AllReduce, 2));
            assert!(!check::critical_path_is_exact(notation, Collective::AllReduce, 3));
        }
    }

    #[test]
    fn what_is_no_number_of_chunks_is_refused() {
        for (argument, at) in
            [("0", 0), (" x", 1), ("", 0), ("1048577", 0), ("nccl,", 0), ("nccl4", 0)]
        {
            let notation = format!("double_binary_tree:{argument}");
            let error = crate::algorithm::build(&notation, Collective::AllReduce, 8).err().unwrap();
            assert!(matches!(error, AlgorithmError::Argument { at: found, .. } if found == at));
        }
    }
}
