//! Messages of a step that a network may fork or combine.
//!
//! A multicast is a set of sends of the same chunks to several ranks. A combine is a set of
//! receives of the same chunks from several ranks, folded together, with a contributing send at
//! each of those ranks. On a network without support they are ordinary messages, so a schedule with
//! marks runs anywhere and is verified like any other. A [carrier](tutti_network::Carrier) that
//! forks or combines uses the marks.

use super::{ChunkRange, Local, Message, Op, Slot, Step};
use tutti_units::ids::RankId;

/// Contiguous sends or receives of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageRange {
    /// The first message.
    pub start: u32,
    /// One past the last.
    pub end: u32,
}

impl MessageRange {
    /// Returns the messages of the range.
    #[must_use]
    pub fn of(self, messages: &[Message]) -> &[Message] {
        &messages[self.start as usize..self.end as usize]
    }
}

/// An in-network operation on messages of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// These sends are one message to several ranks.
    Multicast(MessageRange),
    /// This send contributes to a combine at its receiver.
    Contribution(u32),
    /// These receives are one message from several ranks, folded by the local op at this index.
    Combine(MessageRange, u32),
}

impl Step {
    /// Sends `chunks` of `slot` to each of `peers`, as one message if the network can fork it.
    pub fn multicast(
        &mut self,
        peers: impl IntoIterator<Item = RankId>,
        slot: Slot,
        chunks: ChunkRange,
    ) {
        let start = count(&self.sends);
        self.sends.extend(peers.into_iter().map(|peer| Message { peer, slot, chunks }));
        let run = MessageRange { start, end: count(&self.sends) };
        self.marks.extend((run.start < run.end).then_some(Mark::Multicast(run)));
    }

    /// Sends `chunks` of `slot` to `peer`, which combines them with those of other ranks.
    pub fn contribute(&mut self, peer: RankId, slot: Slot, chunks: ChunkRange) {
        self.marks.push(Mark::Contribution(count(&self.sends)));
        self.send(peer, slot, chunks);
    }

    /// Receives `chunks` into those of `operands` that come from another rank, as one message if
    /// the network can combine them, and folds all operands, in this order, into `into`. The fold
    /// follows the step's receives and precedes its other local ops.
    pub fn combine(
        &mut self,
        into: Slot,
        operands: impl IntoIterator<Item = (Slot, Option<RankId>)>,
        chunks: ChunkRange,
    ) {
        let start = count(&self.recvs);
        let fold = count(&self.locals);
        debug_assert_eq!(fold as usize, self.combines().count(), "combines come before local ops");
        let mut slots = std::mem::take(&mut self.combined);
        for (slot, from) in operands {
            if let Some(peer) = from {
                self.recv(peer, slot, chunks);
            }
            slots.push(slot);
        }
        self.reduce(into, slots.drain(..), chunks);
        self.combined = slots;
        let run = MessageRange { start, end: count(&self.recvs) };
        self.marks.extend((run.start < run.end).then_some(Mark::Combine(run, fold)));
    }

    /// Returns the marks of the step: those of sends in order, and those of receives in order.
    #[inline]
    #[must_use]
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// Returns the combines: the receives, and the index of the fold among the local ops.
    pub fn combines(&self) -> impl Iterator<Item = (MessageRange, u32)> + '_ {
        self.marks.iter().filter_map(|mark| match *mark {
            Mark::Combine(run, fold) => Some((run, fold)),
            _ => None,
        })
    }

    /// Returns the sends that contribute to combines.
    pub fn contributions(&self) -> impl Iterator<Item = u32> + '_ {
        self.marks.iter().filter_map(|mark| match *mark {
            Mark::Contribution(send) => Some(send),
            _ => None,
        })
    }

    /// Returns the op of the send at `place`: the send, or the multicast that contains it.
    pub(super) fn send_op(&self, place: u32) -> Op {
        let message = self.sends[place as usize];
        for mark in &self.marks {
            match *mark {
                Mark::Multicast(run) if run.start == place => {
                    let Message { slot, chunks, .. } = message;
                    let peers = run.of(&self.sends).iter().map(|send| send.peer).collect();
                    return Op::Multicast { peers, slot, chunks };
                }
                Mark::Contribution(send) if send == place => return Op::Contribute(message),
                _ => {}
            }
        }
        Op::Send(message)
    }

    /// Returns the op of the receive at `place`.
    pub(super) fn recv_op(&self, place: u32) -> Op {
        let message = self.recvs[place as usize];
        let found = self.combines().find(|(run, _)| run.start == place);
        let Some((run, fold)) = found else { return Op::Recv(message) };
        let Local::Reduce { into, operands, chunks } = self.locals[fold as usize] else {
            return Op::Recv(message);
        };
        // The receives are in the order of the operands.
        let mut recvs = run.of(&self.recvs).iter().peekable();
        let from =
            |slot: &Slot| (*slot, recvs.next_if(|recv| recv.slot == *slot).map(|recv| recv.peer));
        let operands = self.operands(operands).iter().map(from).collect();
        Op::Combine { into, operands, chunks }
    }

    /// Returns the number of messages of an op.
    pub(super) fn width(op: &Op) -> u32 {
        let many = match op {
            Op::Multicast { peers, .. } => peers.len(),
            Op::Combine { operands, .. } => {
                operands.iter().filter(|(_, from)| from.is_some()).count()
            }
            _ => 1,
        };
        u32::try_from(many).expect("fewer than 2^32 messages of a step")
    }
}

fn count<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).expect("fewer than 2^32 ops of a step")
}
