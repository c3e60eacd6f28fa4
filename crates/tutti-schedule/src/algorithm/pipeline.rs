//! Trees along which a payload travels in segments: broadcasts and reductions.
//!
//! A rank has a step per segment. An inner rank forwards segment j - 1 while it receives segment j.
//! A broadcast receives from the parent and sends to the children, a reduction the reverse. The
//! root of a broadcast only sends, and a leaf only receives. A rank thus waits for one segment at a
//! time, as in Open MPI's `ompi_coll_base_bcast_intra_generic` and `ompi_coll_base_reduce_generic`,
//! whose segments have a size in bytes instead of a count.

use super::sizes::{Misfit, misfit};
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

/// The maximum number of segments: steps and chunks are counted in 32 bits.
pub(super) const MOST_SEGMENTS: u32 = 1 << 20;

/// A rooted tree of numbers below the rank count.
pub(super) trait Tree: Send + Sync {
    /// Returns the root.
    fn root(&self) -> u32;

    /// Returns the parent; `None` for the root.
    fn parent(&self, number: u32) -> Option<u32>;

    /// Returns the children, in ascending order.
    fn children(&self, number: u32) -> impl Iterator<Item = u32>;

    /// Returns the maximum number of children.
    fn fan_out(&self) -> u32;
}

/// The place of a rank's contribution among those of its children.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    First,
    Last,
}

/// A broadcast or a reduction along a tree.
pub(super) struct Pipeline<T> {
    shape: Shape,
    tree: T,
    /// The rank of number 0.
    first: u32,
    own: Own,
    /// The rank that the root of the tree finally sends the result to.
    receiver: Option<RankId>,
}

impl<T: Tree> Pipeline<T> {
    /// Builds a pipeline whose numbers count from the root of the collective, modulo the ranks. The
    /// chunks of the shape are the segments.
    pub(super) fn from_root(shape: Shape, tree: T) -> Pipeline<T> {
        let first = shape.collective.root().unwrap_or_default().0;
        Pipeline { shape, tree, first, own: Own::First, receiver: None }
    }

    /// Builds a reduction whose numbers are the ranks, with the root of the collective wherever it
    /// is: the root of the tree sends it the result.
    pub(super) fn of_ranks(shape: Shape, tree: T) -> Pipeline<T> {
        let receiver = shape.collective.root().filter(|root| root.0 != tree.root());
        Pipeline { shape, tree, first: 0, own: Own::Last, receiver }
    }

    fn number(&self, rank: RankId) -> u32 {
        let ahead = if rank.0 >= self.first { 0 } else { self.shape.ranks };
        rank.0 + ahead - self.first
    }

    fn rank(&self, number: u32) -> RankId {
        let rank = number + self.first;
        RankId(if rank >= self.shape.ranks { rank - self.shape.ranks } else { rank })
    }

    fn children(&self, number: u32) -> impl Iterator<Item = RankId> {
        self.tree.children(number).map(|child| self.rank(child))
    }

    /// Returns whether segments arrive at a rank, and whether they leave it.
    fn passes(&self, number: u32) -> (bool, bool) {
        let below = self.tree.children(number).next().is_some();
        let above = self.tree.parent(number).is_some();
        if self.shape.collective.reduces() { (below, above) } else { (above, below) }
    }

    /// Returns the number of steps of a rank along the tree.
    fn steps_along(&self, number: u32) -> u32 {
        let (arrives, leaves) = self.passes(number);
        self.shape.chunks + u32::from(arrives && leaves)
    }

    /// Receives a segment from the children and reduces it.
    fn collect(&self, number: u32, chunk: ChunkRange, out: &mut Step) {
        let mut slots = 0;
        for child in self.children(number) {
            slots += 1;
            out.recv(child, Slot(slots), chunk);
        }
        match self.own {
            Own::First => out.reduce(Slot::DATA, (0..=slots).map(Slot), chunk),
            Own::Last => out.reduce(Slot::DATA, (1..=slots).chain([0]).map(Slot), chunk),
        }
    }

    /// Sends the complete result from the root of the tree to the root of the collective.
    fn deliver(&self, rank: RankId, receiver: RankId, out: &mut Step) {
        let all = ChunkRange::new(0, self.shape.chunks);
        if rank == receiver {
            out.recv(self.rank(self.tree.root()), Slot::DATA, all);
        } else {
            out.send(receiver, Slot::DATA, all);
        }
    }

    /// Returns the receiver of the result if the rank has a part in that message.
    fn delivery(&self, rank: RankId) -> Option<RankId> {
        let takes_part = |to: &RankId| rank == *to || self.number(rank) == self.tree.root();
        self.receiver.filter(takes_part)
    }
}

impl<T: Tree> Schedule for Pipeline<T> {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        self.steps_along(self.number(rank)) + u32::from(self.delivery(rank).is_some())
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let (number, up) = (self.number(rank), self.shape.collective.reduces());
        if step == self.steps_along(number) {
            if let Some(receiver) = self.delivery(rank) {
                self.deliver(rank, receiver, out);
            }
            return;
        }
        let (arrives, leaves) = self.passes(number);
        let leaving = step.checked_sub(u32::from(arrives)).filter(|_| leaves).map(ChunkRange::one);
        let arriving = (arrives && step < self.shape.chunks).then_some(step).map(ChunkRange::one);
        let parent = self.tree.parent(number).map(|parent| self.rank(parent));
        match (leaving, parent) {
            (Some(chunk), Some(parent)) if up => out.send(parent, Slot::DATA, chunk),
            (Some(chunk), _) => {
                self.children(number).for_each(|child| out.send(child, Slot::DATA, chunk));
            }
            (None, _) => {}
        }
        match (arriving, parent) {
            (Some(chunk), _) if up => self.collect(number, chunk, out),
            (Some(chunk), Some(parent)) => out.recv(parent, Slot::DATA, chunk),
            _ => {}
        }
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        if step == self.steps_along(self.number(rank)) {
            return "to the root".to_owned();
        }
        format!("segment {step}")
    }
}

/// Reads `word,key=number` options: each at most once, in any order.
pub(super) struct Options<'a> {
    words: Vec<(usize, &'a str)>,
}

impl<'a> Options<'a> {
    pub(super) fn of(argument: Option<&'a str>) -> Options<'a> {
        let mut at = 0;
        let place = |word: &'a str| {
            let start = at + word.len() - word.trim_start().len();
            at += word.len() + 1;
            (start, word.trim())
        };
        let words = argument.map(|text| text.split(',').map(place).collect());
        Options { words: words.unwrap_or_default() }
    }

    /// Takes a word; returns whether it is there.
    pub(super) fn word(&mut self, word: &str) -> bool {
        let found = self.words.iter().position(|&(_, other)| other == word);
        found.map(|index| self.words.remove(index)).is_some()
    }

    /// Takes `key=number`, with a number from 1 to `most`; 1 without it.
    pub(super) fn number(&mut self, key: &str, most: u32) -> Result<u32, Misfit> {
        self.number_or(key, most, 1)
    }

    /// As [`Options::number`], with another default.
    pub(super) fn number_or(&mut self, key: &str, most: u32, default: u32) -> Result<u32, Misfit> {
        let value = |text: &'a str| text.strip_prefix(key)?.strip_prefix('=');
        let Some(index) = self.words.iter().position(|&(_, word)| value(word).is_some()) else {
            return Ok(default);
        };
        let (at, word) = self.words.remove(index);
        let text = value(word).unwrap_or_default();
        match text.parse::<u32>() {
            Ok(number) if (1..=most).contains(&number) => Ok(number),
            _ => misfit(at, format!("invalid number of {key} `{text}`: expected 1 to {most}")),
        }
    }

    /// Refuses the remaining words.
    pub(super) fn end(&self, expected: &str) -> Result<(), Misfit> {
        match self.words.first() {
            Some(&(at, word)) => misfit(at, format!("`{word}`: expected {expected}")),
            None => Ok(()),
        }
    }
}
