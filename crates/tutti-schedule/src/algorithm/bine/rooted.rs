//! Broadcast and reduce of large payloads: blocks over a tree, and a butterfly.
//!
//! Ranks are counted from the root, modulo N, and labelled as in [`relayed`](super::relayed). The
//! lowest one-bit of a label is the last step of the path from the root; at this step the tree
//! attaches the rank. Its subtree has the labels that differ from it only below this bit. The order
//! of the chunks of a broadcast or reduce is arbitrary, so blocks are numbered by labels and a
//! message is one range.
//!
//! - **Broadcast**: a scatter away from the root, the nearest partner first, then the all_gather of
//!   the butterfly, the farthest first. A rank keeps all blocks of its subtree. A partner that
//!   already has a block does not receive it again: until the step in which a rank was attached it
//!   only sends, and in that step it only receives.
//! - **Reduce**: the reduce_scatter of the butterfly, the nearest partner first, then a gather to
//!   the root, the farthest first.

use super::super::Stage;
use super::relayed::Labels;
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) struct Rooted {
    shape: Shape,
    labels: Labels,
    root: u32,
    reduces: bool,
}

/// The number of a rank, counted from the root, and its label.
#[derive(Clone, Copy)]
struct Node {
    number: u32,
    label: u32,
    /// The number of its children: the position of the lowest one-bit; all bits for the root.
    children: u32,
}

impl Rooted {
    /// Among a power of two of ranks.
    pub(super) fn new(name: String, collective: Collective, ranks: u32) -> Rooted {
        let reduces = collective.reduces();
        Rooted {
            shape: Shape::in_place(name, collective, ranks, ranks, 1 + u32::from(reduces)),
            labels: Labels::new(ranks),
            root: collective.root().unwrap_or_default().0,
            reduces,
        }
    }

    fn node(&self, rank: RankId) -> Node {
        let number = rank.0.wrapping_sub(self.root) & (self.shape.ranks - 1);
        let label = self.labels.of(number);
        Node { number, label, children: label.trailing_zeros().min(self.labels.steps) }
    }

    /// Returns the partner that differs from a rank first in bit `bit` of the label.
    fn peer(&self, node: Node, bit: u32) -> RankId {
        let partner = self.labels.partner(node.number, self.labels.steps - 1 - bit);
        RankId((partner + self.root) & (self.shape.ranks - 1))
    }

    /// Returns the rank's range of labels and its partner's.
    fn halves(&self, node: Node, bit: u32) -> [ChunkRange; 2] {
        self.labels.halves(node.label, self.labels.steps - 1 - bit)
    }

    /// The last message of the scatter and the first of the all_gather have the same ranks and
    /// share a step.
    fn broadcast(&self, node: Node, step: u32, out: &mut Step) {
        let below_root = u32::from(node.number != 0);
        if step < below_root {
            let (parent, [own, known]) =
                (self.peer(node, node.children), self.halves(node, node.children));
            out.recv(parent, Slot::DATA, own);
            if node.children == 0 {
                out.recv(parent, Slot::DATA, known);
            }
            return;
        }
        let step = step - below_root;
        let (bit, scatters) = match step.checked_sub(node.children) {
            None => (node.children - 1 - step, true),
            Some(step) => (step + 1, false),
        };
        let (peer, [own, other]) = (self.peer(node, bit), self.halves(node, bit));
        if scatters {
            out.send(peer, Slot::DATA, other);
        }
        let sends = if scatters { bit == 0 } else { bit != node.children };
        if sends {
            out.send(peer, Slot::DATA, own);
        }
        if !scatters && bit >= node.children {
            out.recv(peer, Slot::DATA, other);
        }
    }

    fn reduce(&self, node: Node, step: u32, out: &mut Step) {
        let Some(bit) = step.checked_sub(self.labels.steps) else {
            let bit = self.labels.steps - 1 - step;
            let (peer, [kept, sent]) = (self.peer(node, bit), self.halves(node, bit));
            // The partner of an even number is above it in even steps and below it in odd ones.
            let first = (node.number + step).is_multiple_of(2);
            return out.fold_with((peer, first), Slot::DATA, sent, kept);
        };
        let (peer, [own, other]) = (self.peer(node, bit), self.halves(node, bit));
        if bit == node.children {
            out.send(peer, Slot::DATA, own);
        } else {
            out.recv(peer, Slot::DATA, other);
        }
    }
}

impl Schedule for Rooted {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        let node = self.node(rank);
        let moving = self.labels.steps + node.children + u32::from(node.number != 0);
        if self.reduces { moving } else { moving - 1 }
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let node = self.node(rank);
        if self.reduces {
            self.reduce(node, step, out);
        } else {
            self.broadcast(node, step, out);
        }
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        let node = self.node(rank);
        let first = if self.reduces {
            self.labels.steps
        } else {
            node.children + u32::from(node.number != 0)
        };
        match (self.reduces, step.checked_sub(first)) {
            (true, None) => format!("reduce_scatter {step}"),
            (true, Some(step)) => format!("gather {step}"),
            (false, None) => format!("scatter {step}"),
            (false, Some(step)) => format!("all_gather {}", step + 1),
        }
    }
}

/// Returns the stages.
///
/// In a broadcast the rank whose label is all ones receives its block last, and next the first block
/// of the all_gather from the same rank. It delays its partners in each further step.
pub(super) fn stages(collective: Collective, ranks: u32) -> Vec<Stage> {
    let stage = |messages, chunks, reductions| Stage {
        messages,
        receives: messages,
        chunks,
        reductions,
        of: ranks,
    };
    let growing = |from: u32| (from..ranks.ilog2()).map(|bit| 1 << bit);
    if collective.reduces() {
        let there = growing(0).rev().map(|len| stage(1, len, 1));
        return there.chain(growing(0).map(|len| stage(1, len, 0))).collect();
    }
    let there = growing(1).rev().map(|len| stage(1, len, 0));
    let back = growing(1).map(|len| stage(1, len, 0));
    there.chain([stage(2, 1, 0)]).chain(back).collect()
}
