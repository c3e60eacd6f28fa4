//! Checks of single steps: what can be refused without knowing what the other ranks do.
//!
//! # Hazards: receives that touch what another message of the step touches
//!
//! The messages of a step are concurrent: an executor posts all of them with non-blocking calls. Of these the MPI
//! standard says (MPI 4.1, section 3.7.2) that nothing may modify the buffer of a send until the send completes, and
//! that nothing may access any part of the buffer of a receive until the receive completes. So a receive that shares a
//! chunk of a slot with a send or another receive of its step ([`VerifyError::RecvIntoSend`],
//! [`VerifyError::RecvsOverlap`]) makes an erroneous MPI program, **in whatever order messages travel**, and is
//! refused. libtutti_mpi relies on it too: a send that is pending beyond its step is copied when a *later* step writes
//! its chunks. Messages of no chunks touch nothing.
//!
//! *The check is exact for that rule*, as it looks at every step, and all steps are executed.
//!
//! *Without hazards one order of execution stands for all.* A chunk that a message of a step writes is then touched by
//! no other message of the step, so each read finds what earlier steps of the rank left there, whenever it happens.
//!
//! *Refusing hazards costs no schedule.* Take a schedule with hazards that is right in every interleaving. Let each
//! receive of a hazard go to a slot that nothing else uses, and copy it from there as the first local ops of the step,
//! in the order of the receives. That has no hazard. It does what the old schedule does where all sends of a step are
//! read first and its receives are written last, in order: one of its interleavings, and hence right. So it is
//! accepted. The slot and the copy are what a correct executor would need anyway, and they show in memory and time.
//!
//! *Which refused schedules give right results in every interleaving of reads and writes* (no executor may rely on it):
//! 1. `RecvIntoSend`, where the message received is sent after the message sent has been received: an answer to it. The
//!    send was read before the answer is written. Such a receive can stand in the next step instead, without a copy.
//! 2. `RecvIntoSend`, where the race changes no result: what is received equals what is sent, or nothing that counts is
//!    made of what was sent.
//! 3. `RecvsOverlap`, where the race changes no result: both receive the same, or the chunk is overwritten before it is
//!    read, or never read. Here no order of messages helps. A step's sends are issued before its receives complete, so
//!    no rank learns within the step that a receive has completed and could hold the other message back; and MPI
//!    *matches* messages of one pair in order, but may complete them in any.
//!
//! `tests/verify_interleavings.rs` runs random schedules in all interleavings and finds these three classes, none else.

use super::VerifyError;
use crate::{At, ChunkRange, Local, Message, Shape, Slot, Step};

/// Refuses a shape that contradicts itself.
pub(super) fn shape(shape: &Shape) -> Result<(), VerifyError> {
    let Shape { collective, ranks, chunks, slots, result, .. } = shape;
    let problem = if *ranks == 0 {
        "there are no ranks".to_owned()
    } else if *chunks == 0 {
        "the payload is divided into no chunks".to_owned()
    } else if result.0 >= *slots {
        format!("the result is in {result}, but there are {slots} slot(s), counted from data")
    } else if collective.has_shards() && !chunks.is_multiple_of(*ranks) {
        format!(
            "{collective} deals in shards, but {chunks} chunks are no multiple of {ranks} ranks"
        )
    } else if let Some(root) = collective.root().filter(|root| root.0 >= *ranks) {
        format!("its root is {root}, but the ranks are 0 to {}", ranks - 1)
    } else {
        return Ok(());
    };
    Err(VerifyError::Shape { problem })
}

/// Checks steps one by one, keeping its memory in between.
pub(super) struct Checker {
    ranks: u32,
    chunks: u32,
    slots: u32,
    /// Marks of the steps so far.
    marks: u64,
    /// Receives of the step, by place.
    sorted: Vec<Message>,
}

/// Steps with fewer pairs of ops than this are compared pair by pair.
const FEW: usize = 64;

impl Checker {
    pub(super) fn new(shape: &Shape) -> Checker {
        let Shape { ranks, chunks, slots, .. } = *shape;
        Checker { ranks, chunks, slots, marks: 0, sorted: Vec::new() }
    }

    /// Marks of the steps that have been checked.
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
        let recvs = step.recvs.len();
        if (step.sends.len() + recvs) * recvs <= FEW {
            few_hazards(at, step)
        } else {
            self.many_hazards(at, step)
        }
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
                let slots = step.operands(operands).iter().chain([&into]);
                slots.copied().try_for_each(|slot| self.place(at, "reduce", slot, chunks))
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
                Ok(())
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
            // Receives do not overlap, so only the last one that starts before the end can reach in.
            if let Some(recv) = before.checked_sub(1).map(|index| &sorted[index]) {
                recv_apart(at, send, recv)?;
            }
        }
        Ok(())
    }
}

/// Refuses receives that write what a send reads or another receive writes, pair by pair.
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
