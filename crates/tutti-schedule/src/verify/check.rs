//! Checks of single steps: what can be refused without knowing what the other ranks do.

use super::VerifyError;
use crate::{At, ChunkRange, Local, Message, Shape, Slot, Step};

/// Refuses a shape that contradicts itself.
pub(crate) fn shape(shape: &Shape) -> Result<(), VerifyError> {
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
pub(crate) struct Checker {
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
    pub(crate) fn new(shape: &Shape) -> Checker {
        let Shape { ranks, chunks, slots, .. } = *shape;
        Checker { ranks, chunks, slots, marks: 0, sorted: Vec::new() }
    }

    /// Marks of the steps that have been checked.
    pub(super) fn marks(&self) -> u64 {
        self.marks
    }

    #[inline]
    pub(crate) fn check(&mut self, at: At, step: &Step) -> Result<(), VerifyError> {
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
