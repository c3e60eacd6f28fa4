//! Checks of single steps, independent of the other ranks.
//!
//! # Hazards: receives that access chunks of another message of the step
//!
//! The messages of a step are concurrent: an executor posts all of them with non-blocking calls.
//! The MPI standard (MPI 4.1, section 3.7.2) forbids modifying the buffer of a send until the send
//! completes, and accessing any part of the buffer of a receive until the receive completes. A
//! receive that shares a chunk of a slot with a send or another receive of its step
//! ([`VerifyError::RecvIntoSend`], [`VerifyError::RecvsOverlap`]) is therefore an erroneous MPI
//! program, **in any order of messages**, and is refused. The library libtutti_mpi relies on this:
//! a send that is pending beyond its step is copied when a *later* step writes its chunks. Messages
//! of no chunks access nothing.
//!
//! *The check is exact for that rule*: it checks every step, and all steps are executed.
//!
//! *Without hazards one order of execution represents all.* No other message of a step accesses a
//! chunk that a message of the step writes. Each read therefore finds the content left by earlier
//! steps of the rank, at any time.
//!
//! *Refusing hazards excludes no algorithm.* Take a schedule with hazards that is correct in every
//! interleaving. Redirect each receive of a hazard to an unused slot, and copy it from there as the
//! first local ops of the step, in the order of the receives. The result has no hazard. It equals
//! the interleaving of the old schedule in which all sends of a step are read first and its
//! receives are written last, in order, and is hence correct. So it is accepted. A correct executor
//! would need the slot and the copy anyway, and they are visible in memory and time.
//!
//! *Refused schedules with correct results in every interleaving of reads and writes* (no executor
//! may rely on them):
//! 1. `RecvIntoSend`, if the received message is sent after the sent message was received: a reply
//!    to it. The send was read before the reply is written. Such a receive can be in the next step
//!    instead, without a copy.
//! 2. `RecvIntoSend`, if the race changes no result: the received data equals the sent data, or the
//!    sent data does not affect the result.
//! 3. `RecvsOverlap`, if the race changes no result: both receive the same data, or the chunk is
//!    overwritten before it is read, or never read. No order of messages prevents this race. A
//!    step's sends are issued before its receives complete, so no rank learns within the step that
//!    a receive has completed and could delay the other message. MPI *matches* messages of one pair
//!    in order, but may complete them in any order.
//!
//! `tests/schedules/verify_interleavings.rs` runs random schedules in all interleavings and finds only these
//! three classes.

use super::VerifyError;
use crate::collective::Collective;
use crate::{At, Blocks, ChunkRange, Local, Message, Schedule, Shape, Slot, Step};

/// Refuses an inconsistent shape.
pub(super) fn shape(schedule: &dyn Schedule) -> Result<(), VerifyError> {
    let shape = schedule.shape();
    let is_of_blocks =
        |blocks: &Blocks| (blocks.ranks(), blocks.chunks()) == (shape.ranks, shape.chunks);
    let Shape { collective, ranks, chunks, slots, result, .. } = shape;
    let problem = if *ranks == 0 {
        "there are no ranks".to_owned()
    } else if *chunks == 0 {
        "the payload has no chunks".to_owned()
    } else if result.0 >= *slots {
        format!("the result is in {result}, but there are {slots} slot(s), counted from data")
    } else if collective.has_shards() && !chunks.is_multiple_of(*ranks) {
        format!(
            "{collective} divides the payload into shards, but {chunks} chunks are not a multiple of {ranks} ranks"
        )
    } else if *collective == Collective::AllToAllV && !schedule.blocks().is_some_and(is_of_blocks) {
        format!("{chunks} chunks on {ranks} ranks are not the blocks of an all_to_all_v")
    } else if let Some(root) = collective.root().filter(|root| root.0 >= *ranks) {
        format!("the root is {root}, but the ranks are 0 to {}", ranks - 1)
    } else {
        return Ok(());
    };
    Err(VerifyError::Shape { problem })
}

/// Checks steps one by one and reuses its memory.
pub(super) struct Checker {
    ranks: u32,
    chunks: u32,
    slots: u32,
    /// Whether chunks are blocks of different sizes, which must stay at their positions.
    has_blocks: bool,
    /// Marks of the steps so far.
    marks: u64,
    /// Receives of the step, sorted by position.
    sorted: Vec<Message>,
}

/// Steps with fewer pairs of ops are compared pair by pair.
const FEW: usize = 64;

impl Checker {
    pub(super) fn new(shape: &Shape) -> Checker {
        let Shape { collective, ranks, chunks, slots, .. } = *shape;
        let has_blocks = collective == Collective::AllToAllV;
        Checker { ranks, chunks, slots, has_blocks, marks: 0, sorted: Vec::new() }
    }

    /// Returns the number of marks in the checked steps.
    pub(super) fn marks(&self) -> u64 {
        self.marks
    }

    #[inline]
    pub(super) fn check(&mut self, at: At, step: &Step) -> Result<(), VerifyError> {
        self.marks += step.marks().len() as u64;
        for message in &step.sends {
            self.message(at, "send", message)?;
        }
        for message in &step.recvs {
            self.message(at, "recv", message)?;
        }
        for local in &step.locals {
            self.local(at, step, local)?;
        }
        if let ([send], [recv]) = (&step.sends[..], &step.recvs[..]) {
            return if touch(send, recv) { few_hazards(at, step) } else { Ok(()) };
        }
        let recvs = step.recvs.len();
        if (step.sends.len() + recvs) * recvs <= FEW {
            few_hazards(at, step)
        } else {
            self.many_hazards(at, step)
        }
    }

    /// Returns whether a receive of these chunks takes what a send carries, if blocks may move.
    #[inline]
    pub(super) fn is_plain_pair(&self, sent: ChunkRange, expected: ChunkRange) -> bool {
        sent.len() == expected.len() && !self.has_blocks
    }

    /// Checks that a receive takes what the matching send carries. Not inlined, because the places
    /// in its errors would be read before they are needed, right after they are written.
    #[inline(never)]
    pub(super) fn pair(
        &self,
        (from, sent): (At, ChunkRange),
        (to, expected): (At, ChunkRange),
    ) -> Result<(), VerifyError> {
        if sent.len() != expected.len() {
            return Err(VerifyError::LengthMismatch { from, to, sent, expected });
        }
        if self.has_blocks && sent != expected {
            return Err(VerifyError::BlockMoved { from, to, sent, expected });
        }
        Ok(())
    }

    #[inline]
    fn message(&self, at: At, op: &'static str, message: &Message) -> Result<(), VerifyError> {
        let Message { peer, slot, chunks } = *message;
        if peer.0 >= self.ranks {
            return Err(VerifyError::PeerOutside { at, op, peer: peer.0, last: self.ranks - 1 });
        }
        if peer == at.rank {
            return Err(VerifyError::OwnPeer { at, op });
        }
        self.place(at, op, slot, chunks)
    }

    #[inline]
    fn place(
        &self,
        at: At,
        op: &'static str,
        slot: Slot,
        chunks: ChunkRange,
    ) -> Result<(), VerifyError> {
        if slot.0 >= self.slots {
            return Err(VerifyError::SlotOutside { at, op, slot, slots: self.slots });
        }
        if chunks.start > chunks.end || chunks.end > self.chunks {
            let [start, end] = [chunks.start, chunks.end].map(u64::from);
            return Err(VerifyError::ChunksOutside { at, op, start, end, chunks: self.chunks });
        }
        Ok(())
    }

    #[inline]
    fn local(&self, at: At, step: &Step, local: &Local) -> Result<(), VerifyError> {
        match *local {
            Local::Reduce { into, operands, chunks } => {
                if operands.is_empty() {
                    return Err(VerifyError::NoOperands { at, into });
                }
                for &slot in step.operands(operands) {
                    self.place(at, "reduce", slot, chunks)?;
                }
                self.place(at, "reduce", into, chunks)
            }
            Local::Copy { from, into, chunks, to } => {
                self.place(at, "copy", from, chunks)?;
                self.place(at, "copy", into, ChunkRange::new(0, 0))?;
                let start = u64::from(to);
                let end = start + u64::from(chunks.len());
                if end > u64::from(self.chunks) {
                    let (op, chunks) = ("copy", self.chunks);
                    return Err(VerifyError::ChunksOutside { at, op, start, end, chunks });
                }
                let into = ChunkRange::new(to, to + chunks.len());
                self.pair((at, chunks), (at, into))
            }
            Local::Compute { .. } | Local::Sleep { .. } => Ok(()),
        }
    }

    /// As [`few_hazards`], in n log n.
    fn many_hazards(&mut self, at: At, step: &Step) -> Result<(), VerifyError> {
        let place = |message: &Message| (message.slot, message.chunks.start, message.chunks.end);
        self.sorted.clear();
        self.sorted.extend(step.recvs.iter().filter(|recv| !recv.chunks.is_empty()));
        if !self.sorted.is_sorted_by_key(place) {
            self.sorted.sort_by_key(place);
        }
        let sorted = &self.sorted;
        for (first, second) in sorted.iter().zip(sorted.iter().skip(1)) {
            recvs_apart(at, first, second)?;
        }
        let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return Ok(()) };
        let outside = |send: &&Message| send.slot >= first.slot && send.slot <= last.slot;
        for send in step.sends.iter().filter(outside) {
            let end = (send.slot, send.chunks.end);
            let before = sorted.partition_point(|recv| (recv.slot, recv.chunks.start) < end);
            // Receives do not overlap, so only the last one that starts before the end can overlap
            // the send.
            if let Some(recv) = before.checked_sub(1).map(|index| &sorted[index]) {
                recv_apart(at, send, recv)?;
            }
        }
        Ok(())
    }
}

/// Refuses receives that write chunks that a send reads or another receive writes, pair by pair.
#[inline]
pub(super) fn few_hazards(at: At, step: &Step) -> Result<(), VerifyError> {
    for (index, recv) in step.recvs.iter().enumerate() {
        for send in &step.sends {
            recv_apart(at, send, recv)?;
        }
        for earlier in &step.recvs[..index] {
            recvs_apart(at, earlier, recv)?;
        }
    }
    Ok(())
}

#[inline]
fn touch(a: &Message, b: &Message) -> bool {
    a.slot == b.slot && a.chunks.overlaps(b.chunks) && !a.chunks.is_empty() && !b.chunks.is_empty()
}

#[inline]
fn recv_apart(at: At, send: &Message, recv: &Message) -> Result<(), VerifyError> {
    if !touch(send, recv) {
        return Ok(());
    }
    let (sent, to) = (send.chunks, send.peer);
    let Message { peer: from, slot, chunks } = *recv;
    Err(VerifyError::RecvIntoSend { at, slot, chunks, from, sent, to })
}

#[inline]
fn recvs_apart(at: At, first: &Message, second: &Message) -> Result<(), VerifyError> {
    if !touch(first, second) {
        return Ok(());
    }
    let slot = first.slot;
    let (first, first_from) = (first.chunks, first.peer);
    let (second, second_from) = (second.chunks, second.peer);
    Err(VerifyError::RecvsOverlap { at, slot, first, first_from, second, second_from })
}
