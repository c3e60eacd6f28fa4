//! The bandwidth-optimal variant among a power of two of ranks: every message is one contiguous
//! range.
//!
//! **Order of the blocks.** Along a ring of 2^k, the ranks that an even rank e can still reach from
//! step s on are those equal to e or e + rho(s) modulo 2^(s+1). The reason is that every later rho
//! equals rho(s) modulo 2^(s+1), and all multiples occur. Give each odd rank x the even number x -
//! rho(k-1) (mod 2^k), each even rank its number. Ranks reachable together from step s on then
//! agree in the lower s bits of half that number. Blocks are therefore ordered by these k - 1 bits,
//! the lowest first, and then by parity: a step keeps or sends a contiguous range, as in recursive
//! halving. On a torus the bits are in the order in which the steps use them. An all_reduce may
//! number its blocks freely; reduce_scatter and all_gather copy from or to rank order.

use super::path::{Turns, rho, swung};
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(in crate::algorithm) struct Halving {
    shape: Shape,
    sizes: Vec<u32>,
    turns: Turns,
    reduces: bool,
    gathers: bool,
}

impl Halving {
    pub(in crate::algorithm) fn new(
        name: String,
        collective: Collective,
        sizes: &[u32],
    ) -> Halving {
        let ranks = sizes.iter().product();
        let reduces = collective != Collective::AllGather;
        let copies = collective != Collective::AllReduce;
        let slots = 1 + u32::from(reduces) + u32::from(copies);
        Halving {
            shape: Shape::in_place(name, collective, ranks, ranks, slots),
            sizes: sizes.to_vec(),
            turns: Turns::new(sizes),
            reduces,
            gathers: collective != Collective::ReduceScatter,
        }
    }

    /// Whether the chunks are copied to and from rank order.
    fn copies(&self) -> bool {
        self.shape.collective != Collective::AllReduce
    }

    fn work(&self) -> Slot {
        Slot(u32::from(self.copies()))
    }

    /// Returns the position of a rank's block: one bit per step, the first step's the most
    /// significant.
    fn label(&self, rank: u32) -> u32 {
        let bits = self.turns.count();
        let most = self.sizes.iter().map(|size| size.ilog2()).max().unwrap_or(0);
        let (mut label, mut turn) = (0, 0);
        for step in 0..most {
            let mut rest = rank;
            for &size in &self.sizes {
                let (place, last) = (rest % size, size.ilog2());
                rest /= size;
                if step < last {
                    label |= bit(place, size, step) << (bits - 1 - turn);
                    turn += 1;
                }
            }
        }
        label
    }

    /// Returns the range of a label after `halvings` halvings.
    fn range(&self, label: u32, halvings: u32) -> ChunkRange {
        let len = self.shape.ranks >> halvings;
        let start = label & !(len - 1);
        ChunkRange::new(start, start + len)
    }

    fn exchange(&self, rank: RankId, turn: u32, reducing: bool, out: &mut Step) {
        let peer = self.turns.partner(rank.0, turn);
        let mine = self.range(self.label(rank.0), turn + 1);
        let theirs = self.range(self.label(peer.0), turn + 1);
        if reducing {
            out.fold_with((peer, rank < peer), self.work(), theirs, mine);
        } else {
            out.trade(peer, self.work(), mine, theirs);
        }
    }

    /// Copies between rank order and label order; all blocks or only the rank's.
    fn copy(&self, rank: u32, back: bool, out: &mut Step) {
        let all = back != self.reduces;
        let blocks = if all { 0..self.shape.ranks } else { rank..rank + 1 };
        for block in blocks {
            let label = self.label(block);
            if back {
                out.copy(self.work(), ChunkRange::one(label), Slot::DATA, block);
            } else {
                out.copy(Slot::DATA, ChunkRange::one(block), self.work(), label);
            }
        }
    }

    fn moving(&self) -> u32 {
        self.turns.count() * (u32::from(self.reduces) + u32::from(self.gathers))
    }
}

/// Returns the bit that distinguishes the partners of step `step` on a ring of this size.
fn bit(place: u32, size: u32, step: u32) -> u32 {
    let bits = size.ilog2();
    if step + 1 == bits {
        return place % 2;
    }
    let even = if place.is_multiple_of(2) { place } else { swung(place, rho(bits - 1), size) };
    even >> (step + 1) & 1
}

impl Schedule for Halving {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        self.moving() + 2 * u32::from(self.copies())
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let step = match step.checked_sub(u32::from(self.copies())) {
            None => return self.copy(rank.0, false, out),
            Some(step) if step == self.moving() => return self.copy(rank.0, true, out),
            Some(step) => step,
        };
        let count = self.turns.count();
        if self.reduces && step < count {
            self.exchange(rank, step, true, out);
        } else {
            self.exchange(rank, self.moving() - 1 - step, false, out);
        }
    }

    fn moves_chunks(&self) -> bool {
        self.copies()
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        let step = match step.checked_sub(u32::from(self.copies())) {
            None => return "order by label".to_owned(),
            Some(step) if step == self.moving() => return "order by rank".to_owned(),
            Some(step) => step,
        };
        match step.checked_sub(if self.reduces { self.turns.count() } else { 0 }) {
            None => format!("reduce_scatter {step}"),
            Some(step) => format!("all_gather {step}"),
        }
    }
}
