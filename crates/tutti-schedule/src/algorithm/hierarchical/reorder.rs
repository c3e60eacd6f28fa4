//! Copies between rank order and level order.
//!
//! Inner groups come first in a reduce_scatter and last in an all_gather, and each level must work
//! on one contiguous range of chunks. Ranks are numbered innermost level first, so the shards of a
//! level are not contiguous: they are copied to the position given by the digits of the rank,
//! innermost first.

use crate::collective::Collective;
use crate::{ChunkRange, Digit, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

/// The slot of the shards in level order.
pub(super) const WORK: Slot = Slot(1);

/// One step of copies, for a reduce_scatter or an all_gather.
pub(super) struct Reorder {
    shape: Shape,
    sizes: Vec<u32>,
    /// Chunks per shard.
    unit: u32,
    /// Whether every shard is copied, or only the rank's.
    all: bool,
    /// Whether the copies restore rank order.
    out: bool,
}

impl Reorder {
    pub(super) fn new(collective: Collective, sizes: &[u32], chunks: u32, out: bool) -> Reorder {
        let ranks = sizes.iter().product();
        let shape = Shape::in_place("order of shards", collective, ranks, chunks, 2);
        // A reduce_scatter starts with every shard and ends with one; an all_gather does the
        // reverse.
        let all = (collective == Collective::AllGather) == out;
        Reorder { shape, sizes: sizes.to_vec(), unit: chunks / ranks, all, out }
    }

    /// Returns the position of a rank's shard in level order.
    fn place(&self, rank: u32) -> u32 {
        let (mut rest, mut block, mut place) = (rank, self.shape.ranks, 0);
        for &size in &self.sizes {
            block /= size;
            place += rest % size * block;
            rest /= size;
        }
        place
    }

    fn copy(&self, rank: u32, step: &mut Step) {
        let by_rank = rank * self.unit;
        let by_level = self.place(rank) * self.unit;
        if self.out {
            let chunks = ChunkRange::new(by_level, by_level + self.unit);
            step.copy(WORK, chunks, Slot::DATA, by_rank);
        } else {
            let chunks = ChunkRange::new(by_rank, by_rank + self.unit);
            step.copy(Slot::DATA, chunks, WORK, by_level);
        }
    }
}

impl Schedule for Reorder {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        1
    }

    fn step(&self, rank: RankId, _step: u32, out: &mut Step) {
        if self.all {
            for shard in 0..self.shape.ranks {
                self.copy(shard, out);
            }
        } else {
            self.copy(rank.0, out);
        }
    }

    fn moves_chunks(&self) -> bool {
        true
    }

    /// There are no messages.
    fn symmetry(&self) -> Option<Vec<Digit>> {
        Some(Vec::new())
    }

    fn step_name(&self, _rank: RankId, _step: u32) -> String {
        "copy".to_owned()
    }
}
