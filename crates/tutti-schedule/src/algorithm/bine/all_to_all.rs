//! all_to_all: every block travels along the butterfly, the nearest partner first.
//!
//! Before step s a rank holds the blocks of 2^s sources for the N / 2^s destinations that agree with
//! it in the first s bits of the [label](super::relayed). They are ordered by the other bits of the
//! destination's label and then by source. Those for the partner's destinations, half of them, are
//! therefore one contiguous range. Afterwards the blocks that the rank held and those that it
//! received alternate in groups of 2^s. In the end bit s of a position is 1 if the block arrived in
//! step s, which determines its source.

use super::relayed::Labels;
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

/// Two slots for the blocks, used in turn.
const WORK: [Slot; 2] = [Slot(1), Slot(2)];
const IN: Slot = Slot(3);
const RESULT: Slot = Slot(4);

pub(super) struct AllToAll {
    shape: Shape,
    labels: Labels,
}

impl AllToAll {
    /// Among a power of two of ranks.
    pub(super) fn new(name: String, ranks: u32) -> AllToAll {
        let in_place = Shape::in_place(name, Collective::AllToAll, ranks, ranks, 5);
        AllToAll { shape: Shape { result: RESULT, ..in_place }, labels: Labels::new(ranks) }
    }

    /// Orders the blocks by the label of their destination.
    fn order(&self, out: &mut Step) {
        for label in 0..self.shape.ranks {
            out.copy(Slot::DATA, ChunkRange::one(self.labels.rank(label)), WORK[0], label);
        }
    }

    fn exchange(&self, rank: RankId, turn: u32, out: &mut Step) {
        let peer = RankId(self.labels.partner(rank.0, turn));
        let half = self.shape.ranks / 2;
        let upper = self.labels.of(rank.0) >> (self.labels.steps - 1 - turn) & 1 == 1;
        let [lower_half, upper_half] = [ChunkRange::new(0, half), ChunkRange::new(half, 2 * half)];
        let (kept, sent) = if upper { (upper_half, lower_half) } else { (lower_half, upper_half) };
        let (work, next) = (WORK[turn as usize % 2], WORK[(turn as usize + 1) % 2]);
        out.send(peer, work, sent);
        out.recv(peer, IN, lower_half);
        let group = 1 << turn;
        for at in (0..half).step_by(group as usize) {
            out.copy(work, ChunkRange::new(kept.start + at, kept.start + at + group), next, 2 * at);
            out.copy(IN, ChunkRange::new(at, at + group), next, 2 * at + group);
        }
    }

    /// Copies each block to the position of its source.
    fn sort(&self, rank: RankId, out: &mut Step) {
        let last = WORK[self.labels.steps as usize % 2];
        for position in 0..self.shape.ranks {
            let arrived = (0..self.labels.steps).rev().filter(|step| position >> step & 1 == 1);
            let source = arrived.fold(rank.0, |holder, step| self.labels.partner(holder, step));
            out.copy(last, ChunkRange::one(position), RESULT, source);
        }
    }
}

impl Schedule for AllToAll {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        1 + self.labels.steps
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        match step.checked_sub(1) {
            None => self.order(out),
            Some(turn) => self.exchange(rank, turn, out),
        }
        if step == self.labels.steps {
            self.sort(rank, out);
        }
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        match step.checked_sub(1) {
            None => "order by label".to_owned(),
            Some(step) => format!("exchange {step}"),
        }
    }
}
