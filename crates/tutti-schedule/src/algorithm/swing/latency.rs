//! The latency-optimal variant: every step exchanges and folds the full payload.

use super::path::Turns;
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(in crate::algorithm) struct Latency {
    shape: Shape,
    turns: Turns,
}

impl Latency {
    /// Among a power of two of ranks.
    pub(in crate::algorithm) fn new(name: String, sizes: &[u32]) -> Latency {
        let shape = Shape::in_place(name, Collective::AllReduce, sizes.iter().product(), 1, 2);
        Latency { shape, turns: Turns::new(sizes) }
    }
}

impl Schedule for Latency {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        self.turns.count()
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let peer = self.turns.partner(rank.0, step);
        let payload = ChunkRange::one(0);
        // Partners fold the same two values in the same order.
        out.fold_with((peer, rank < peer), Slot::DATA, payload, payload);
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        format!("exchange {step}")
    }
}
