//! Messages of a step that a network may fork or combine on the way.
//!
//! A multicast is sends of the same chunks to several ranks; a combine is receives of the same chunks from
//! several ranks, folded as one, and at each of those ranks a send that contributes to it. Each is what it means on
//! a network that knows nothing of it, so a schedule that has them runs anywhere, and is proved like any other;
//! a [carrier](tutti_network::Carrier) that forks or combines sees the marks.

use super::{ChunkRange, Local, Message, Op, Slot, Step};
use tutti_units::ids::RankId;

/// Some of a step's sends or receives, next to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageRange {
    /// The first.
    pub start: u32,
    /// One past the last.
    pub end: u32,
}

impl MessageRange {
    /// These messages.
    #[must_use]
    pub fn of(self, messages: &[Message]) -> &[Message] {
        &messages[self.start as usize..self.end as usize]
    }
}

/// What a network may do with messages of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// These sends are one message to several ranks.
    Multicast(MessageRange),
    /// This send contributes to a combine at its receiver.
    Contribution(u32),
    /// These receives are one message from several ranks, and the local op at that place folds it.
    Combine(MessageRange, u32),
}

impl Step {
    /// Sends `chunks` of `slot` to each of `peers`, as one message where the network can fork it.
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

    /// Sends `chunks` of `slot` to `peer`, which combines them with those of others.
    pub fn contribute(&mut self, peer: RankId, slot: Slot, chunks: ChunkRange) {
        self.marks.push(Mark::Contribution(count(&self.sends)));
        self.send(peer, slot, chunks);
    }

    /// Receives `chunks` into those of `operands` that come from another rank, as one message where the network can
    /// combine them, and folds all operands, in this order, into `into`: after the step's receives, and before
    /// its other local ops.
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

    /// What a network may do with the step's messages; those about sends in order, those about receives too.
    #[inline]
    #[must_use]
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// Its combines: the receives, and the place of the fold among the local ops.
    pub fn combines(&self) -> impl Iterator<Item = (MessageRange, u32)> + '_ {
        self.marks.iter().filter_map(|mark| match *mark {
            Mark::Combine(run, fold) => Some((run, fold)),
            _ => None,
        })
    }

    /// Its sends that contribute to combines.
    pub fn contributions(&self) -> impl Iterator<Item = u32> + '_ {
        self.marks.iter().filter_map(|mark| match *mark {
            Mark::Contribution(send) => Some(send),
            _ => None,
        })
    }

    /// What the send at a place is called: by itself, or as all that it is one with.
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

    /// What the receive at a place is called.
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

    /// How many messages the op at a place stands for.
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
