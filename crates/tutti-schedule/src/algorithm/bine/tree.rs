//! The tree: broadcast, reduce, gather and scatter in log2 N steps.
//!
//! Ranks are counted from the root, modulo N. Write a number in base -2. If its lowest u digits are
//! equal and the next one differs, the rank is attached at level u - 1 and has a child at each lower
//! level. Inverting its lowest l + 1 digits gives the child at level l; inverting the u digits gives
//! the parent. Both are rho(l) away: the distance between parent and child halves from level to
//! level, and is about two thirds of that in a binomial tree.
//!
//! Messages away from the root use the highest level first, those towards it the lowest. The
//! subtree of a rank is a range of neighbours, as in [`blocks`](super::blocks). A range that wraps
//! around rank N - 1 takes two messages; with root 0 none does.

use super::super::Stage;
use super::super::swing::path::{rho, swung};
use super::blocks::neighbours;
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

const SCRATCH: Slot = Slot(1);

/// 0b1010...: converts between base 2 and base -2.
const ODD_DIGITS: u32 = 0xAAAA_AAAA;

pub(super) struct Tree {
    shape: Shape,
    root: u32,
    levels: u32,
    /// Whether messages go towards the root.
    up: bool,
    reduces: bool,
    shards: bool,
}

impl Tree {
    /// Among a power of two of ranks.
    pub(super) fn new(name: String, collective: Collective, ranks: u32) -> Tree {
        let (shards, reduces) = (collective.has_shards(), collective.reduces());
        let chunks = if shards { ranks } else { 1 };
        Tree {
            shape: Shape::in_place(name, collective, ranks, chunks, 1 + u32::from(reduces)),
            root: collective.root().unwrap_or_default().0,
            levels: ranks.ilog2(),
            up: matches!(collective, Collective::Reduce { .. } | Collective::Gather { .. }),
            reduces,
            shards,
        }
    }

    /// Returns the number of a rank, counted from the root.
    fn number(&self, rank: RankId) -> u32 {
        rank.0.wrapping_sub(self.root) & (self.shape.ranks - 1)
    }

    fn real(&self, number: u32) -> RankId {
        RankId((number + self.root) & (self.shape.ranks - 1))
    }

    /// Returns the level at which a rank is attached: also the number of its children.
    fn level(&self, number: u32) -> u32 {
        if number == 0 {
            return self.levels;
        }
        let digits = number.wrapping_add(ODD_DIGITS) ^ ODD_DIGITS;
        let equal = digits.trailing_zeros().max(digits.trailing_ones());
        equal.min(self.levels) - 1
    }

    /// Returns the child at a level, or the parent at the level of the rank.
    fn related(&self, number: u32, level: u32) -> u32 {
        swung(number, rho(level), self.shape.ranks)
    }

    /// Returns the chunks of the subtree of a rank attached at `level`.
    fn runs(&self, number: u32, level: u32) -> impl Iterator<Item = ChunkRange> {
        let runs = if self.shards {
            neighbours(number, level, self.shape.ranks, self.root)
        } else {
            [ChunkRange::one(0), ChunkRange::default()]
        };
        runs.into_iter().filter(|run| !run.is_empty())
    }

    fn send(&self, subtree: u32, level: u32, peer: u32, out: &mut Step) {
        for run in self.runs(subtree, level) {
            out.send(self.real(peer), Slot::DATA, run);
        }
    }

    /// Receives, and folds in a reduce: the children of an even number are alternately above and
    /// below its subtree.
    fn recv(&self, subtree: u32, level: u32, number: u32, peer: u32, out: &mut Step) {
        let into = if self.reduces { SCRATCH } else { Slot::DATA };
        for run in self.runs(subtree, level) {
            out.recv(self.real(peer), into, run);
        }
        if self.reduces {
            let above = (number + level).is_multiple_of(2);
            let operands = if above { [Slot::DATA, SCRATCH] } else { [SCRATCH, Slot::DATA] };
            out.reduce(Slot::DATA, operands, ChunkRange::one(0));
        }
    }
}

impl Schedule for Tree {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        let number = self.number(rank);
        self.level(number) + u32::from(number != 0)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let number = self.number(rank);
        let attached = self.level(number);
        let parent = self.related(number, attached.min(self.levels - 1));
        if self.up {
            if step == attached {
                return self.send(number, attached, parent, out);
            }
            let child = self.related(number, step);
            return self.recv(child, step, number, child, out);
        }
        let below_root = u32::from(number != 0);
        if step < below_root {
            return self.recv(number, attached, number, parent, out);
        }
        let level = attached - 1 - (step - below_root);
        let child = self.related(number, level);
        self.send(child, level, child, out);
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        let number = self.number(rank);
        let attached = self.level(number);
        let below_root = u32::from(number != 0);
        match (self.up, step) {
            (true, step) if step == attached => "to parent".to_owned(),
            (true, step) => format!("from child {step}"),
            (false, step) if step < below_root => "from parent".to_owned(),
            (false, step) => format!("to child {}", attached - 1 - (step - below_root)),
        }
    }
}

/// Returns the stages. With another root than 0 some messages of gather and scatter come in two
/// parts.
pub(super) fn stages(collective: Collective, ranks: u32) -> Option<Vec<Stage>> {
    let shards = collective.has_shards();
    if shards && collective.root() != Some(RankId(0)) {
        return None;
    }
    let stage = |level: u32| Stage {
        messages: 1,
        receives: 1,
        chunks: if shards { 1 << level } else { 1 },
        reductions: u32::from(collective.reduces()),
        of: if shards { ranks } else { 1 },
    };
    let up = (0..ranks.ilog2()).map(stage);
    Some(match collective {
        Collective::Reduce { .. } | Collective::Gather { .. } => up.collect(),
        _ => up.rev().collect(),
    })
}
