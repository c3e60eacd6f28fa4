//! Butterflies that leave every block in its place: no copies, several messages per step.
//!
//! - **`block_by_block`**: the reduce_scatter uses the partners in the order of the butterfly, the
//!   nearest first; a message carries one block. For an even rank count other than a power of two
//!   some blocks have two paths, and each takes the one that departs latest.
//! - **`two_blocks`**: the reduce_scatter uses the partners in the reverse order, the farthest first.
//!   A rank and its partners of steps 0 to s - 1, direct and indirect, are then 2^s neighbours. In s
//!   binary digits, those of an even rank r are r - ...1010 to r + ...0101. Those of an odd rank are
//!   r - ...0101 to r + ...1010. A message carries such a range, which takes two messages if it
//!   wraps around rank N - 1.
//!
//! The all_gather reverses the reduce_scatter.

use super::super::Stage;
use super::super::swing::packed::{Paths, blocks_per_step};
use super::super::swing::path::{rho, swung};
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

const SCRATCH: Slot = Slot(1);

/// Returns the `2^level` neighbours that contain `rank` in a tree or butterfly with the partners of
/// steps 0 to `level` - 1, as ranges before and after the wrap around rank N - 1.
pub(super) fn neighbours(rank: u32, level: u32, ranks: u32, shift: u32) -> [ChunkRange; 2] {
    let digits = if rank.is_multiple_of(2) { 0xAAAA_AAAA } else { 0x5555_5555 };
    let len = 1 << level;
    let start = rank.wrapping_sub(digits & (len - 1)).wrapping_add(shift) & (ranks - 1);
    let end = start + len;
    [ChunkRange::new(start, end.min(ranks)), ChunkRange::new(0, end.saturating_sub(ranks))]
}

pub(super) struct Blocks {
    shape: Shape,
    paths: Paths,
    steps: u32,
    /// Whether a message carries a range of blocks instead of one.
    ranges: bool,
    reduces: bool,
    gathers: bool,
}

impl Blocks {
    /// Among an even number of ranks, a power of two if messages carry ranges.
    pub(super) fn new(name: String, collective: Collective, ranks: u32, ranges: bool) -> Blocks {
        let reduces = collective != Collective::AllGather;
        Blocks {
            shape: Shape::in_place(name, collective, ranks, ranks, 1 + u32::from(reduces)),
            paths: Paths::new(ranks),
            steps: ranks.next_power_of_two().ilog2(),
            ranges,
            reduces,
            gathers: collective != Collective::ReduceScatter,
        }
    }

    /// Returns the step of the butterfly, which determines the distance, and whether it reduces.
    fn turn(&self, step: u32) -> (u32, bool) {
        let reducing = self.reduces && step < self.steps;
        let step = if reducing || !self.reduces { step } else { step - self.steps };
        // Ranges grow with the distance, single blocks become fewer.
        let nearest_first = reducing != self.ranges;
        (if nearest_first { step } else { self.steps - 1 - step }, reducing)
    }

    /// Calls `add` for each message with the blocks that `rank` sends in a reduce_scatter.
    fn sent(&self, rank: RankId, peer: RankId, turn: u32, mut add: impl FnMut(ChunkRange)) {
        let ranks = self.shape.ranks;
        if self.ranges {
            let runs = neighbours(peer.0, turn, ranks, 0);
            return runs.into_iter().filter(|run| !run.is_empty()).for_each(add);
        }
        for offset in self.paths.sent(turn) {
            add(ChunkRange::one(swung(rank.0, i64::from(offset), ranks)));
        }
    }
}

impl Schedule for Blocks {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        self.steps * (u32::from(self.reduces) + u32::from(self.gathers))
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let (turn, reducing) = self.turn(step);
        let peer = RankId(swung(rank.0, rho(turn), self.shape.ranks));
        if !reducing {
            self.sent(peer, rank, turn, |run| out.send(peer, Slot::DATA, run));
            self.sent(rank, peer, turn, |run| out.recv(peer, Slot::DATA, run));
            return;
        }
        let operands = if rank < peer { [Slot::DATA, SCRATCH] } else { [SCRATCH, Slot::DATA] };
        self.sent(rank, peer, turn, |run| out.send(peer, Slot::DATA, run));
        self.sent(peer, rank, turn, |run| {
            out.recv(peer, SCRATCH, run);
            out.reduce(Slot::DATA, operands, run);
        });
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        match step.checked_sub(if self.reduces { self.steps } else { 0 }) {
            None => format!("reduce_scatter {step}"),
            Some(step) => format!("all_gather {step}"),
        }
    }
}

/// Returns the stages with a message and a reduction per block: partners start every step together.
pub(super) fn stages(collective: Collective, ranks: u32) -> Vec<Stage> {
    let counts = blocks_per_step(ranks);
    let stage = |messages, reductions| Stage {
        messages,
        receives: messages,
        chunks: 1,
        reductions,
        of: ranks,
    };
    let there = counts.iter().flat_map(|&blocks| {
        let rest = std::iter::repeat_n(stage(0, 1), blocks as usize - 1);
        std::iter::once(stage(blocks, 1)).chain(rest)
    });
    let back = counts.iter().rev().map(|&blocks| stage(blocks, 0));
    match collective {
        Collective::ReduceScatter => there.collect(),
        Collective::AllGather => back.collect(),
        _ => there.chain(back).collect(),
    }
}
