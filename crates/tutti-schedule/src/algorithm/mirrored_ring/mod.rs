//! Mirrored rings: a hierarchy of rings on a grid, each of which joins nested mirror images.
//!
//! The innermost rings connect blocks of neighbours. Each next level joins the ranks that coincide
//! when the grid is folded along the edges of the blocks so far (see [`mirror`]). A reduce_scatter
//! performs one in the rings of each level in turn, on the remaining share; all_gather goes back
//! from the last level to the first. With 2x2 blocks this takes 3 log4 N steps instead of N - 1,
//! for the same bytes. It requires links between mirror images, such as a wire along each row and
//! column that can be segmented between any two ranks.
//!
//! **Directions.** Adjacent rings of a level have opposite directions, like the colours of a
//! chessboard: of the edges on one line, half go in each direction. With 2x2 blocks on 4x4 or 8x8,
//! no direction of any line carries more than two edges of a level over any gap: one on the links
//! of a mesh and one on a parallel wire. With `bidirectional` one half of every shard travels in
//! each direction. An all_gather has the same direction as the reduce_scatter, on the same links.
//!
//! **Phases.** Each level is a phase, as the network may be reconfigured for it; on the last level
//! all_reduce reverses within the phase.
//!
//! Source: Yin, Ghazizadeh, Louri and Zheng, "ARIES: Accelerating distributed training in
//! chiplet-based systems via flexible interconnects", ICCAD 2023 (latency-optimised ring).
//! Inferred: all members of a block take part in the next level, and the directions.

mod argument;
mod mirror;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request, Stage};
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use argument::Form;
use mirror::Level;
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "mirrored_ring",
    summary: "rings within blocks of a grid, then rings of mirror images, level by level; few steps, fewest bytes",
    source: "Yin et al., ICCAD 2023 (ARIES)",
    argument: "the grid, columns first, such as `8x8`; after a colon the blocks, innermost first, such as \
               `8x8:4x2,2x4` (default 2x2 each); `,bidirectional` sends half of the payload in each direction",
    collectives: &["all_reduce", "reduce_scatter", "all_gather"],
    ranks: "the product of the grid's sides; a power of four without an argument",
    claims: |request| form(request).is_ok(),
    build: |request| Ok(Arc::new(mirrored(request)?)),
    critical_path: |request| Some(mirrored(request).ok()?.stages()),
};

struct MirroredRing {
    shape: Shape,
    levels: Vec<Level>,
    /// 1, or 2 if bidirectional.
    parts: u32,
    /// Steps of a reduce_scatter or an all_gather: the sum of size - 1.
    steps_per_phase: u32,
    reduces: bool,
    gathers: bool,
    /// Whether shards are copied to and from the order in which the levels divide them.
    copies: bool,
}

fn form(request: &Request) -> Result<Form, AlgorithmError> {
    let form = argument::read(request.argument, request.ranks);
    form.map_err(|misfit| request.misfit(ENTRY.name, misfit))?.ok_or_else(|| {
        let needs = "a power of four, or a grid with blocks such as `mirrored_ring:4x2:4x2`";
        request.wrong_ranks(ENTRY.name, needs)
    })
}

fn mirrored(request: &Request) -> Result<MirroredRing, AlgorithmError> {
    let Form { levels, both } = form(request)?;
    let &Request { collective, ranks, .. } = request;
    let parts = 1 + u32::from(both);
    let reduces = collective != Collective::AllGather;
    let copies = collective != Collective::AllReduce;
    let slots = 1 + u32::from(reduces) + u32::from(copies);
    let shape = request.shape(ENTRY.name, ranks * parts, slots);
    let steps_per_phase = levels.iter().map(|level| level.size - 1).sum();
    let gathers = collective != Collective::ReduceScatter;
    Ok(MirroredRing { shape, levels, parts, steps_per_phase, reduces, gathers, copies })
}

/// The action of all ranks in a step.
enum Moment {
    /// Reorders the shards.
    Copy { back: bool },
    /// Step `step` of the rings of a level.
    Pass { level: usize, step: u32, reducing: bool },
}

impl MirroredRing {
    fn moment(&self, step: u32) -> Moment {
        let moving = self.steps_per_phase * (u32::from(self.reduces) + u32::from(self.gathers));
        let mut step = match step.checked_sub(u32::from(self.copies)) {
            None => return Moment::Copy { back: false },
            Some(step) if step == moving => return Moment::Copy { back: true },
            Some(step) => step,
        };
        let reducing = self.reduces && step < self.steps_per_phase;
        if self.reduces && !reducing {
            step -= self.steps_per_phase;
        }
        let last = self.levels.len() - 1;
        for turn in 0..last {
            let level = if reducing { turn } else { last - turn };
            let steps = self.levels[level].size - 1;
            if step < steps {
                return Moment::Pass { level, step, reducing };
            }
            step -= steps;
        }
        Moment::Pass { level: if reducing { last } else { 0 }, step, reducing }
    }

    /// Returns the slot of the shards in level order.
    fn work(&self) -> Slot {
        Slot(u32::from(self.copies))
    }

    /// Returns the first of the shards left to a rank after the first `levels` levels.
    #[inline]
    fn first(&self, rank: u32, levels: usize) -> u32 {
        let levels = self.levels[..levels].iter();
        levels.map(|level| level.share(rank, level.turn(rank)) * level.run).sum()
    }

    /// Adds one send and one receive of one part.
    fn pass(
        &self,
        rank: u32,
        part: u32,
        (level, step, reducing): (usize, u32, bool),
        out: &mut Step,
    ) {
        let ring = &self.levels[level];
        let (turn, size) = (ring.turn(rank), ring.size);
        let wrap = |value: u32| if value >= size { value - size } else { value };
        let (up, down) = (wrap(turn + 1), wrap(turn + size - 1));
        // A reduce_scatter starts one position earlier, so that a member's part ends with it.
        let ahead = step + u32::from(reducing);
        let (to, from, sent, received) = if ring.along(rank) == (part == 0) {
            let sent = wrap(turn + size - ahead);
            (up, down, sent, wrap(sent + size - 1))
        } else {
            let sent = wrap(turn + ahead);
            (down, up, sent, wrap(sent + 1))
        };
        let first = part * self.shape.ranks + self.first(rank, level);
        let chunks = |turn: u32| {
            let start = first + ring.share(rank, turn) * ring.run;
            ChunkRange::new(start, start + ring.run)
        };
        let (work, scratch) = (self.work(), Slot(self.work().0 + 1));
        out.send(RankId(ring.member(rank, to)), work, chunks(sent));
        let into = if reducing { scratch } else { work };
        out.recv(RankId(ring.member(rank, from)), into, chunks(received));
        if reducing {
            out.reduce(work, [scratch, work], chunks(received));
        }
    }

    /// Copies between rank order and level order; all shards or only the rank's.
    fn copy(&self, rank: u32, back: bool, out: &mut Step) {
        let all = back != self.reduces;
        let shards = if all { 0..self.shape.ranks } else { rank..rank + 1 };
        for (shard, part) in shards.flat_map(|shard| (0..self.parts).map(move |part| (shard, part)))
        {
            let by_rank = ChunkRange::one(shard * self.parts + part);
            let place = part * self.shape.ranks + self.first(shard, self.levels.len());
            if back {
                out.copy(self.work(), ChunkRange::one(place), Slot::DATA, by_rank.start);
            } else {
                out.copy(Slot::DATA, by_rank, self.work(), place);
            }
        }
    }

    /// All ranks stay synchronised.
    fn stages(&self) -> Vec<Stage> {
        let (messages, of) = (self.parts, self.shape.chunks);
        let mut stages = Vec::new();
        for step in 0..self.steps(RankId(0)) {
            let Moment::Pass { level, reducing, .. } = self.moment(step) else { continue };
            let (chunks, reductions) = (self.levels[level].run, u32::from(reducing));
            stages.push(Stage { messages, receives: messages, chunks, reductions, of });
            let fold = Stage { messages: 0, receives: 0, chunks, reductions, of };
            let others = if reducing { messages as usize - 1 } else { 0 };
            stages.extend(std::iter::repeat_n(fold, others));
        }
        stages
    }

    fn levels(&self) -> u32 {
        u32::try_from(self.levels.len()).unwrap_or(u32::MAX)
    }
}

impl Schedule for MirroredRing {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        self.steps_per_phase * (u32::from(self.reduces) + u32::from(self.gathers))
            + 2 * u32::from(self.copies)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        match self.moment(step) {
            Moment::Copy { back } => self.copy(rank.0, back, out),
            Moment::Pass { level, step, reducing } => {
                for part in 0..self.parts {
                    self.pass(rank.0, part, (level, step, reducing), out);
                }
            }
        }
    }

    fn moves_chunks(&self) -> bool {
        self.copies
    }

    fn phases(&self) -> u32 {
        if self.copies { self.levels() } else { 2 * self.levels() - 1 }
    }

    fn phase(&self, _rank: RankId, step: u32) -> u32 {
        let last = self.levels() - 1;
        match self.moment(step) {
            Moment::Copy { back } => {
                if back {
                    last
                } else {
                    0
                }
            }
            Moment::Pass { level, reducing, .. } => {
                let level = u32::try_from(level).unwrap_or(last);
                match (reducing, self.reduces) {
                    (true, _) => level,
                    (false, true) => 2 * last - level,
                    (false, false) => last - level,
                }
            }
        }
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        match self.moment(step) {
            Moment::Copy { back: false } => "order by level".to_owned(),
            Moment::Copy { back: true } => "order by rank".to_owned(),
            Moment::Pass { level, step, reducing } => {
                let what = if reducing { "reduce_scatter" } else { "all_gather" };
                format!("{what} on level {level}: {step}")
            }
        }
    }
}
