//! The fast verifier: executes the schedule once, with 32-bit ids instead of values.
//!
//! An id below [`COMPUTED`] is a contribution, `origin x chunks + chunk`; the others number the
//! results of folds, which an [`Algebra`] stores. Moving a chunk moves its id, so only folds cost
//! more.

use super::check::Checker;
use super::slots::{NOTHING, Place, Slots};
use super::{Reproducibility, Verification, VerifyError, check, stuck};
use crate::collective::{Contribution, Postcondition};
use crate::progress::{self, Side, Store};
use crate::{At, Local, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

/// Ids from here on are results of folds.
pub(super) const COMPUTED: u32 = 1 << 31;

/// The maximum number of positions of all data slots together: 1 GiB of ids.
const MAX_POSITIONS: u64 = 1 << 28;

/// The number of chunks whose expected results are stored at a time.
const BLOCK: u32 = 64;

/// The stored properties of fold results, and the checks on them.
pub(super) trait Algebra {
    /// Folds these values, at least two, left to right.
    fn fold(&mut self, ids: &[u32]) -> Result<u32, VerifyError>;
    /// Returns whether the value of a fold is no longer stored, so that results must be recalled.
    fn is_old(&self, id: u32) -> bool;
    /// Evaluates these values again, of which some are old; no fold follows.
    fn recall(&mut self, ids: impl Iterator<Item = u32>);
    /// Prepares the expected results at these chunks.
    fn expect(&mut self, chunks: std::ops::Range<u32>);
    /// Checks a value that is reduced from all ranks, at a prepared chunk.
    fn judge(&mut self, rank: RankId, chunk: u32, id: u32) -> Result<(), VerifyError>;
    /// Returns the number of contributions in a value.
    fn count(&self, id: u32) -> u32;
    /// Returns the reproducibility class of the checked values.
    fn class(&self) -> Reproducibility;
}

/// Verifies a schedule with the properties stored by `algebra`.
pub(super) fn verify(
    schedule: &dyn Schedule,
    algebra: impl Algebra,
) -> Result<Verification, VerifyError> {
    let shape = schedule.shape();
    check::shape(schedule)?;
    let mut fast = Fast::new(shape, algebra)?;
    let outcome = progress::walk(schedule, &mut fast)?;
    stuck::explain(&outcome)?;
    fast.judge(schedule)?;
    let traffic = outcome.traffic;
    Ok(Verification {
        steps: traffic.steps,
        messages: traffic.messages,
        reductions: fast.reductions,
        buffering: traffic.buffering,
        in_flight: traffic.in_flight,
        waiting: traffic.waiting,
        multicasts: fast.checker.marks(),
        combines: 0,
        reproducibility: fast.algebra.class(),
    })
}

struct Fast<A> {
    checker: Checker,
    slots: Slots,
    algebra: A,
    chunks: u32,
    reductions: u64,
    /// Reused memory of one fold.
    operands: Vec<u32>,
}

impl<A: Algebra> Fast<A> {
    /// Returns the state before the first step.
    fn new(shape: &Shape, algebra: A) -> Result<Fast<A>, VerifyError> {
        let Shape { collective, ranks, chunks, .. } = *shape;
        if u64::from(ranks) * u64::from(chunks) > MAX_POSITIONS {
            let what = format!("{chunks} chunks on each of {ranks} ranks");
            return Err(VerifyError::TooLarge { what, most: MAX_POSITIONS });
        }
        let mut slots = Slots::new(shape);
        for rank in (0..ranks).map(RankId) {
            let row = slots.row(rank);
            for chunk in 0..chunks {
                if let Some(held) = collective.before(rank, chunk, ranks, chunks) {
                    let id = held.origin.0 * chunks + held.chunk;
                    slots.set(slots.place(row, chunk), Slot::DATA, id);
                }
            }
        }
        let checker = Checker::new(shape);
        Ok(Fast { checker, slots, algebra, chunks, reductions: 0, operands: Vec::new() })
    }

    /// Compares every result with the postcondition.
    fn judge(&mut self, schedule: &dyn Schedule) -> Result<(), VerifyError> {
        let Shape { collective, ranks, chunks, result, .. } = *schedule.shape();
        let blocks = schedule.blocks();
        for start in (0..chunks).step_by(BLOCK as usize) {
            let block = start..chunks.min(start.saturating_add(BLOCK));
            self.algebra.expect(block.clone());
            for rank in (0..ranks).map(RankId) {
                let row = self.slots.row(rank);
                for chunk in block.clone() {
                    let expected = collective.after(rank, chunk, ranks, chunks);
                    let is_empty = || blocks.is_some_and(|blocks| blocks.is_empty(chunk));
                    if expected == Postcondition::Anything || is_empty() {
                        continue;
                    }
                    let id = self.slots.get(self.slots.place(row, chunk), result);
                    if id == NOTHING {
                        return Err(VerifyError::NotWritten { rank, chunk });
                    }
                    if self.algebra.is_old(id) {
                        self.recall_results(schedule.shape());
                    }
                    match expected {
                        Postcondition::One(one) => self.judge_one(rank, chunk, one, id)?,
                        _ => self.algebra.judge(rank, chunk, id)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Recalls the values of all results.
    #[cold]
    fn recall_results(&mut self, shape: &Shape) {
        let Fast { slots, algebra, .. } = self;
        let places = (0..shape.ranks).flat_map(|rank| {
            let row = slots.row(RankId(rank));
            (0..shape.chunks).map(move |chunk| (row, chunk))
        });
        algebra.recall(places.map(|(row, chunk)| slots.get(slots.place(row, chunk), shape.result)));
    }

    fn judge_one(
        &self,
        rank: RankId,
        chunk: u32,
        expected: Contribution,
        id: u32,
    ) -> Result<(), VerifyError> {
        if id == expected.origin.0 * self.chunks + expected.chunk {
            return Ok(());
        }
        if id >= COMPUTED {
            // A fold of one operand is that operand, so this value has more than one contribution.
            let found = self.algebra.count(id);
            return Err(VerifyError::Miscounted { rank, chunk, found, expected: 1 });
        }
        let found = contribution(id, self.chunks);
        Err(VerifyError::WrongChunk { rank, chunk, expected, found })
    }

    /// Reads a position for an op, which must have been written.
    #[inline]
    fn read(&self, at: At, op: &'static str, place: Place, slot: Slot) -> Result<u32, VerifyError> {
        match self.slots.get(place, slot) {
            NOTHING => Err(VerifyError::NothingThere { at, op, slot, chunk: place.chunk }),
            id => Ok(id),
        }
    }

    fn reduce(&mut self, at: At, step: &Step, local: &Local) -> Result<(), VerifyError> {
        let Local::Reduce { into, operands, chunks } = *local else { return Ok(()) };
        let (slots, row) = (step.operands(operands), self.slots.row(at.rank));
        self.reductions += u64::from(chunks.len()) * (slots.len() as u64 - 1);
        for chunk in chunks.iter() {
            let place = self.slots.place(row, chunk);
            let read = |slot| self.read(at, "reduce", place, slot);
            let id = match *slots {
                [only] => read(only)?,
                [first, second] => {
                    let ids = [read(first)?, read(second)?];
                    self.algebra.fold(&ids)?
                }
                _ => {
                    self.operands.clear();
                    for &slot in slots {
                        let id = self.read(at, "reduce", place, slot)?;
                        self.operands.push(id);
                    }
                    self.algebra.fold(&self.operands)?
                }
            };
            self.slots.set(place, into, id);
        }
        Ok(())
    }

    #[inline]
    fn same_chunks(&self, send: Side, recv: Side) -> Result<(), VerifyError> {
        if self.checker.is_plain_pair(send.message.chunks, recv.message.chunks) {
            return Ok(());
        }
        self.checker.pair((send.at, send.message.chunks), (recv.at, recv.message.chunks))
    }

    fn copy(&mut self, at: At, local: &Local) -> Result<(), VerifyError> {
        let Local::Copy { from, into, chunks, to } = *local else { return Ok(()) };
        let row = self.slots.row(at.rank);
        self.operands.clear();
        for chunk in chunks.iter() {
            let id = self.read(at, "copy", self.slots.place(row, chunk), from)?;
            self.operands.push(id);
        }
        for (chunk, &id) in (to..).zip(&self.operands) {
            self.slots.set(self.slots.place(row, chunk), into, id);
        }
        Ok(())
    }
}

/// Returns the contribution of an id below [`COMPUTED`].
pub(super) fn contribution(id: u32, chunks: u32) -> Contribution {
    Contribution { origin: RankId(id / chunks), chunk: id % chunks }
}

impl<A: Algebra> Store for Fast<A> {
    type Payload = Box<[u32]>;
    type Error = VerifyError;

    #[inline]
    fn start(&mut self, at: At, step: &Step) -> Result<(), VerifyError> {
        self.checker.check(at, step)
    }

    #[inline]
    fn transfer(&mut self, send: Side, recv: Side) -> Result<(), VerifyError> {
        self.same_chunks(send, recv)?;
        let (from, to) = (send.message, recv.message);
        let [source, target] = [send, recv].map(|side| self.slots.row(side.at.rank));
        if from.chunks.len() == 1 {
            let id = self.slots.get(self.slots.place(source, from.chunks.start), from.slot);
            if id != NOTHING {
                self.slots.set(self.slots.place(target, to.chunks.start), to.slot, id);
                return Ok(());
            }
        }
        let chunks = from.chunks.iter().zip(to.chunks.iter());
        let moved = self.slots.copy((source, from.slot), (target, to.slot), chunks);
        let (at, slot) = (send.at, from.slot);
        moved.map_err(|chunk| VerifyError::NothingThere { at, op: "send", slot, chunk })
    }

    fn take(&mut self, send: Side) -> Result<Box<[u32]>, VerifyError> {
        let (at, slot, row) = (send.at, send.message.slot, self.slots.row(send.at.rank));
        let read = |chunk| self.read(at, "send", self.slots.place(row, chunk), slot);
        send.message.chunks.iter().map(read).collect()
    }

    fn put(&mut self, payload: Box<[u32]>, send: Side, recv: Side) -> Result<(), VerifyError> {
        self.same_chunks(send, recv)?;
        let row = self.slots.row(recv.at.rank);
        for (chunk, &id) in recv.message.chunks.iter().zip(&payload) {
            self.slots.set(self.slots.place(row, chunk), recv.message.slot, id);
        }
        Ok(())
    }

    #[inline]
    fn finish(&mut self, at: At, step: &Step) -> Result<(), VerifyError> {
        for local in &step.locals {
            match local {
                Local::Reduce { .. } => self.reduce(at, step, local)?,
                Local::Copy { .. } => self.copy(at, local)?,
                Local::Compute { .. } | Local::Sleep { .. } => {}
            }
        }
        Ok(())
    }
}
