//! `send`: instead of copies to another order, a message per rank delivers the misplaced block.
//!
//! The butterfly exchanges contiguous ranges of labels. The label of a rank is its path from rank 0:
//! bit by bit, the first step the most significant. Ranks that can still exchange from step s on
//! agree in the first s bits of their labels. Block b is treated as if it were the block of the rank
//! with label b. A reduce_scatter therefore ends with the reduced block of number l on the rank with
//! label l, which sends it to rank l. An all_gather starts with the reverse message.

use super::super::Stage;
use super::super::swing::packed::Paths;
use super::super::swing::path::{rho, swung};
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

/// Labels among a power of two of ranks.
#[derive(Clone, Copy)]
pub(super) struct Labels {
    paths: Paths,
    ranks: u32,
    /// The steps of the butterfly.
    pub(super) steps: u32,
}

impl Labels {
    pub(super) fn new(ranks: u32) -> Labels {
        Labels { paths: Paths::new(ranks), ranks, steps: ranks.ilog2() }
    }

    pub(super) fn of(self, rank: u32) -> u32 {
        self.paths.smallest(rank)
    }

    pub(super) fn rank(self, label: u32) -> u32 {
        self.paths.offset(label)
    }

    pub(super) fn partner(self, rank: u32, step: u32) -> u32 {
        swung(rank, rho(step), self.ranks)
    }

    /// Returns the labels that a rank keeps and those that it sends in a step of a reduce_scatter.
    pub(super) fn halves(self, label: u32, step: u32) -> [ChunkRange; 2] {
        let len = self.ranks >> (step + 1);
        let start = label & !(len - 1);
        let other = start ^ len;
        [ChunkRange::new(start, start + len), ChunkRange::new(other, other + len)]
    }
}

pub(super) struct Relayed {
    shape: Shape,
    labels: Labels,
    gathers: bool,
}

impl Relayed {
    /// A reduce_scatter or an all_gather among a power of two of ranks.
    pub(super) fn new(name: String, collective: Collective, ranks: u32) -> Relayed {
        let gathers = collective == Collective::AllGather;
        let shape = Shape::in_place(name, collective, ranks, ranks, 2 - u32::from(gathers));
        Relayed { shape, labels: Labels::new(ranks), gathers }
    }

    /// Exchanges the rank's block for the one that it handles.
    fn deliver(&self, rank: u32, label: u32, out: &mut Step) {
        if label == rank {
            return;
        }
        let (to, from) = (RankId(label), RankId(self.labels.rank(rank)));
        let [handled, own] = [label, rank].map(ChunkRange::one);
        if self.gathers {
            out.send(from, Slot::DATA, own);
            out.recv(to, Slot::DATA, handled);
        } else {
            out.send(to, Slot::DATA, handled);
            out.recv(from, Slot::DATA, own);
        }
    }
}

impl Schedule for Relayed {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        self.labels.steps + 1
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let (label, last) = (self.labels.of(rank.0), self.labels.steps);
        let turn = if self.gathers { last - step } else { step };
        if turn == last {
            return self.deliver(rank.0, label, out);
        }
        let peer = RankId(self.labels.partner(rank.0, turn));
        let [kept, sent] = self.labels.halves(label, turn);
        if self.gathers {
            out.trade(peer, Slot::DATA, kept, sent);
        } else {
            out.fold_with((peer, rank < peer), Slot::DATA, sent, kept);
        }
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        match (self.gathers, step) {
            (true, 0) => "from the own rank".to_owned(),
            (true, step) => format!("all_gather {}", step - 1),
            (false, step) if step == self.labels.steps => "to the own rank".to_owned(),
            (false, step) => format!("reduce_scatter {step}"),
        }
    }
}

/// Returns the stages: those of the butterfly and the message of one block, with more than two
/// ranks.
pub(super) fn stages(collective: Collective, ranks: u32) -> Vec<Stage> {
    let stage =
        |chunks, reductions| Stage { messages: 1, receives: 1, chunks, reductions, of: ranks };
    let lengths = (0..ranks.ilog2()).map(|step| ranks >> (step + 1));
    let message = (ranks > 2).then(|| stage(1, 0));
    if collective == Collective::AllGather {
        return message.into_iter().chain(lengths.rev().map(|len| stage(len, 0))).collect();
    }
    lengths.map(|len| stage(len, 1)).chain(message).collect()
}
