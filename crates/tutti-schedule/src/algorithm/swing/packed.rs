//! The bandwidth-optimal variant for even rank counts other than powers of two.
//!
//! With k = log2 n rounded up there are 2^k paths of steps from a rank, more than there are ranks,
//! so some blocks have two paths. Each takes the path that departs latest: the smallest binary
//! number, with the first step as the most significant bit. Without its first step that path is
//! again the smallest one from the next rank. A forwarded block therefore waits only for its next
//! step, and every contribution arrives once. The all_gather is the reduce_scatter backwards.
//!
//! **Paths as numbers.** From an even rank, steps t0 < t1 < ... lead to distance rho(t0) -
//! rho(t1) + .... Digit i of that distance in base -2 is 1 if the number of steps not before i is
//! odd; the sign is minus if the number of steps is even. A distance therefore determines its
//! digits and these the path, in a few operations. From an odd rank the distances are mirrored.
//!
//! The blocks of a step are not contiguous: they are packed before they are sent and unpacked
//! afterwards, as in a library without strided datatypes. Each step has one message, with copies in
//! between.

use super::path::{rho, swung};
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

/// The packed send buffer, the receive buffer, and the rank's part of the received blocks.
const OUT: Slot = Slot(1);
const IN: Slot = Slot(2);
const OWN: Slot = Slot(3);

/// 0b1010...: converts between base 2 and base -2.
const ODD_DIGITS: i64 = 0xAAAA_AAAA;

/// The steps of a block as bits, the first step the most significant.
#[derive(Clone, Copy)]
pub(in crate::algorithm) struct Paths {
    ranks: u32,
    steps: u32,
}

impl Paths {
    pub(in crate::algorithm) fn new(ranks: u32) -> Paths {
        Paths { ranks, steps: ranks.next_power_of_two().ilog2() }
    }

    /// Returns the distance of a path from an even rank.
    pub(in crate::algorithm) fn offset(self, path: u32) -> u32 {
        let mut digits = path.reverse_bits() >> (u32::BITS - self.steps);
        for shift in [1, 2, 4, 8, 16] {
            digits ^= digits >> shift;
        }
        let value = (i64::from(digits) ^ ODD_DIGITS) - ODD_DIGITS;
        let signed = if digits.is_multiple_of(2) { -value } else { value };
        u32::try_from(signed.rem_euclid(i64::from(self.ranks))).unwrap_or_default()
    }

    /// Returns the smallest path to that distance.
    pub(in crate::algorithm) fn smallest(self, offset: u32) -> u32 {
        let path = |turns: i64| {
            let signed = i64::from(offset) + turns * i64::from(self.ranks);
            let value = if offset.is_multiple_of(2) { -signed } else { signed };
            let digits = u32::try_from((value + ODD_DIGITS) ^ ODD_DIGITS).ok()?;
            let steps = digits ^ (digits >> 1);
            (digits >> self.steps == 0).then(|| steps.reverse_bits() >> (u32::BITS - self.steps))
        };
        (-2..=1).filter_map(path).min().unwrap_or_default()
    }

    /// Returns the distances of the blocks that an even rank sends in a step, in the order of their
    /// paths.
    pub(in crate::algorithm) fn sent(self, step: u32) -> impl Iterator<Item = u32> {
        let first = 1 << (self.steps - 1 - step);
        (first..2 * first).filter_map(move |path| {
            let offset = self.offset(path);
            (self.smallest(offset) == path).then_some(offset)
        })
    }
}

/// Returns the number of blocks that a rank sends in each step of a reduce_scatter.
pub(in crate::algorithm) fn blocks_per_step(ranks: u32) -> Vec<u32> {
    let paths = Paths::new(ranks);
    let count = |step| u32::try_from(paths.sent(step).count()).unwrap_or(u32::MAX);
    if ranks.is_power_of_two() {
        return (0..paths.steps).map(|step| 1 << (paths.steps - 1 - step)).collect();
    }
    (0..paths.steps).map(count).collect()
}

pub(super) struct Packed {
    shape: Shape,
    paths: Paths,
    /// The number of blocks in a message of each step.
    counts: Vec<u32>,
    reduces: bool,
    gathers: bool,
}

impl Packed {
    pub(super) fn new(name: String, collective: Collective, ranks: u32) -> Packed {
        let reduces = collective != Collective::AllGather;
        let slots = if reduces { 4 } else { 3 };
        Packed {
            shape: Shape::in_place(name, collective, ranks, ranks, slots),
            paths: Paths::new(ranks),
            counts: blocks_per_step(ranks),
            reduces,
            gathers: collective != Collective::ReduceScatter,
        }
    }

    fn moving(&self) -> u32 {
        self.paths.steps * (u32::from(self.reduces) + u32::from(self.gathers))
    }

    /// Returns the step of the reduce_scatter that a message belongs to or reverses, and whether it
    /// reduces.
    fn turn(&self, step: u32) -> (u32, bool) {
        if self.reduces && step < self.paths.steps {
            (step, true)
        } else {
            (self.moving() - 1 - step, false)
        }
    }

    /// Returns the blocks that `rank` sends in a step of the reduce_scatter.
    fn blocks(&self, rank: RankId, step: u32) -> impl Iterator<Item = u32> {
        let ranks = self.shape.ranks;
        self.paths.sent(step).map(move |offset| swung(rank.0, i64::from(offset), ranks))
    }

    /// Packs the blocks of a step into the send buffer.
    fn pack(&self, rank: RankId, step: u32, out: &mut Step) {
        let (turn, reducing) = self.turn(step);
        let sender = if reducing { rank } else { self.partner(rank, turn) };
        for (at, block) in (0..).zip(self.blocks(sender, turn)) {
            out.copy(Slot::DATA, ChunkRange::one(block), OUT, at);
        }
    }

    fn partner(&self, rank: RankId, turn: u32) -> RankId {
        RankId(swung(rank.0, rho(turn), self.shape.ranks))
    }

    fn exchange(&self, rank: RankId, step: u32, out: &mut Step) {
        let (turn, reducing) = self.turn(step);
        let peer = self.partner(rank, turn);
        let run = ChunkRange::new(0, self.counts[turn as usize]);
        out.send(peer, OUT, run);
        out.recv(peer, IN, run);
        // In a reduce_scatter the received blocks are the ones that the partner sends; in an
        // all_gather the ones that this rank sent in that step.
        let sender = if reducing { peer } else { rank };
        if reducing {
            for (at, block) in (0..).zip(self.blocks(sender, turn)) {
                out.copy(Slot::DATA, ChunkRange::one(block), OWN, at);
            }
            out.reduce(IN, if rank < peer { [OWN, IN] } else { [IN, OWN] }, run);
        }
        for (at, block) in (0..).zip(self.blocks(sender, turn)) {
            out.copy(IN, ChunkRange::one(at), Slot::DATA, block);
        }
        if step + 1 < self.moving() {
            self.pack(rank, step + 1, out);
        }
    }
}

impl Schedule for Packed {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        1 + self.moving()
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        match step.checked_sub(1) {
            None => self.pack(rank, 0, out),
            Some(step) => self.exchange(rank, step, out),
        }
    }

    fn moves_chunks(&self) -> bool {
        true
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        let Some(step) = step.checked_sub(1) else {
            return "pack".to_owned();
        };
        match step.checked_sub(if self.reduces { self.paths.steps } else { 0 }) {
            None => format!("reduce_scatter {step}"),
            Some(step) => format!("all_gather {step}"),
        }
    }
}
