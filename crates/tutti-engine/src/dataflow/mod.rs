//! The data flow of a schedule: which send of a rank awaits which of its receives, and how an
//! endpoint handles each message.
//!
//! The executor of [`crate::Simulation`] runs the steps of a rank in order. An endpoint engine
//! reacts to packets: it sends a chunk as soon as the messages that the chunk depends on have
//! arrived. [`Dataflow::of`] derives these dependencies from the steps, per phase of the schedule:
//!
//! - A received chunk that the rank sends next is **fused**: one handling receives, reduces and
//!   sends it. It is also stored if the rank uses its value after that send.
//! - A message that is fused into one send, and is all that this send awaits, is **forwarded**
//!   packet by packet. Other sends wait for complete messages.
//! - The sends of an ordered step ([`Schedule::is_ordered`](tutti_schedule::Schedule::is_ordered))
//!   also await the messages of the previous step.
//! - A phase reads the chunks that **enter** it: those that it uses and has not received. Nothing is
//!   fused across phases.
//!
//! Local copies and the order of operands cost nothing: they are addresses.

mod compile;
#[cfg(test)]
mod tests;
mod values;

use std::ops::Range;

use crate::endpoint::Handling;
use tutti_schedule::Digit;
use tutti_units::Bytes;
use tutti_units::ids::RankId;

/// The data flow of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dataflow {
    /// The number of ranks.
    pub ranks: u32,
    /// The phases that have messages.
    pub phases: Vec<Phase>,
    /// The digits whose rotation maps each rank to every other, if all ranks share one list.
    pub symmetry: Option<Vec<Digit>>,
    /// By rank; one list if the schedule is symmetric.
    lists: Vec<Messages>,
    /// Chunks of the payload.
    pub(crate) chunks: u32,
    /// Chunks that a rank loads before the first phase, and of its result; the most of any rank.
    loaded: u32,
    result: u32,
    /// The lengths of messages in chunks, without duplicates.
    lengths: Vec<u32>,
}

/// A phase of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// Whether received data are reduced in it.
    pub reduces: bool,
    /// Chunks of the payload that enter it; the most of any rank.
    entry: u32,
}

/// The messages of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// In the order of the schedule.
    pub sends: Vec<Outgoing>,
    /// In the order of the schedule.
    pub recvs: Vec<Incoming>,
    /// The first send and receive of each phase, and the ends.
    first: Vec<(u32, u32)>,
    followers: Vec<Follower>,
    /// Whether some send awaits complete messages.
    pub awaits_messages: bool,
}

/// A message that a rank sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The receiver; its offset from the sender in a symmetric schedule.
    pub peer: RankId,
    /// Its index among the receives of the receiver.
    pub arrives_as: u32,
    /// Its length, an index into the lengths.
    pub length: u32,
    /// The preferred one of parallel links.
    pub channel: u32,
    /// How many receives of the phase it awaits.
    pub awaits: u32,
    /// Whether a receive forwards it.
    pub forwarded: bool,
    /// How the endpoint reads its chunks, except for the fused ones.
    pub handling: Handling,
    /// The number of its chunks that are fused with a receive.
    pub fused: u32,
    /// The multicast of the sender that it belongs to.
    pub multicast: Option<u32>,
}

/// A message that a rank receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The sender; its offset from the receiver in a symmetric schedule.
    pub peer: RankId,
    /// Its index among the sends of the sender.
    pub sent_as: u32,
    /// Its length, an index into the lengths.
    pub length: u32,
    /// How the endpoint handles the fused chunks, and their number.
    pub fused: (Handling, u32),
    /// How it handles the others.
    pub kept: Handling,
    /// The send into which it is forwarded.
    pub forward: Option<u32>,
    /// The combine of the receiver that it belongs to.
    pub combine: Option<u32>,
    first_follower: u32,
    followers: u32,
}

/// A send that awaits a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follower {
    /// The send.
    pub send: u32,
    /// Whether each packet follows the packet that it awaits: the send awaits nothing else, and has
    /// the same length.
    pub by_packet: bool,
}

/// Why a schedule has no data flow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "ScheduleError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum DataflowError {
    /// A send without a receive.
    #[error("{name}: rank {from} sends to rank {to}, which does not receive it")]
    Unmatched { name: String, from: RankId, to: RankId },
    /// A send of nothing.
    #[error("{name}: rank {rank} sends chunk {chunk} of slot {slot}, which has no value")]
    NoValue { name: String, rank: RankId, slot: u32, chunk: u32 },
    /// Compute ops inside a collective.
    #[error("{name}: rank {rank} computes or sleeps: expected a collective without such ops")]
    Computes { name: String, rank: RankId },
}

impl Dataflow {
    /// The messages of a rank.
    #[inline]
    #[must_use]
    pub fn messages(&self, rank: u32) -> &Messages {
        if self.symmetry.is_some() { &self.lists[0] } else { &self.lists[rank as usize] }
    }

    /// The receiver of a message of `rank`.
    #[inline]
    #[must_use]
    pub fn peer(&self, rank: u32, of: RankId) -> u32 {
        match &self.symmetry {
            None => of.0,
            Some(digits) => rotated(digits, rank, of.0),
        }
    }

    /// A text of all that the time of a run depends on: the messages of each rank, in order, with
    /// their receivers, lengths, handlings and dependencies. The names and places of chunks, the
    /// order of operands, and whether a schedule states its symmetry are not part of it.
    #[must_use]
    pub fn canonical(&self) -> String {
        let of = |rank| {
            let mut list = self.messages(rank).clone();
            list.sends.iter_mut().for_each(|send| send.peer.0 = self.peer(rank, send.peer));
            list.recvs.iter_mut().for_each(|recv| recv.peer.0 = self.peer(rank, recv.peer));
            list
        };
        let lists = (0..self.ranks).map(of).collect();
        format!("{:?}", Dataflow { symmetry: None, lists, ..self.clone() })
    }

    /// Whether it has multicasts or combines.
    #[must_use]
    pub fn is_marked(&self) -> bool {
        self.lists.iter().any(|list| {
            list.sends.iter().any(|send| send.multicast.is_some())
                || list.recvs.iter().any(|recv| recv.combine.is_some())
        })
    }

    /// The lengths of messages for a payload of `bytes`. Chunks that differ by a byte count as the
    /// longer.
    #[must_use]
    pub fn lengths(&self, bytes: Bytes) -> Vec<Bytes> {
        self.lengths.iter().map(|&chunks| self.share(bytes, chunks)).collect()
    }

    /// The bytes of `chunks` chunks of a payload of `bytes`, rounded up.
    #[must_use]
    pub fn share(&self, bytes: Bytes, chunks: u32) -> Bytes {
        let all = u128::from(bytes.0) * u128::from(chunks);
        let share = all.div_ceil(u128::from(self.chunks));
        Bytes(u64::try_from(share).unwrap_or(u64::MAX))
    }

    /// The bytes that enter a phase.
    #[must_use]
    pub fn entry(&self, phase: usize, bytes: Bytes) -> Bytes {
        self.share(bytes, self.phases[phase].entry)
    }

    /// The bytes that a rank loads before the first phase.
    #[must_use]
    pub fn loaded(&self, bytes: Bytes) -> Bytes {
        self.share(bytes, self.loaded)
    }

    /// The bytes of the result of a rank.
    #[must_use]
    pub fn result(&self, bytes: Bytes) -> Bytes {
        self.share(bytes, self.result)
    }

    /// The length of a message in chunks.
    #[inline]
    #[must_use]
    pub fn chunks_of(&self, length: u32) -> u32 {
        self.lengths[length as usize]
    }
}

impl Messages {
    /// The sends of a phase.
    #[inline]
    #[must_use]
    pub fn sends_of(&self, phase: usize) -> Range<u32> {
        self.first[phase].0..self.first[phase + 1].0
    }

    /// The receives of a phase.
    #[inline]
    #[must_use]
    pub fn recvs_of(&self, phase: usize) -> Range<u32> {
        self.first[phase].1..self.first[phase + 1].1
    }

    /// The phase of a receive.
    #[inline]
    #[must_use]
    pub fn phase_of(&self, recv: u32) -> usize {
        let ends = &self.first[1..];
        ends.iter().position(|&(_, end)| recv < end).unwrap_or(ends.len() - 1)
    }

    /// The sends that await a receive, except for the forwarded one.
    #[inline]
    #[must_use]
    pub fn followers(&self, recv: &Incoming) -> &[Follower] {
        let first = recv.first_follower as usize;
        &self.followers[first..first + recv.followers as usize]
    }
}

/// Rotates the digits of `rank` by those of `by`.
#[must_use]
pub fn rotated(digits: &[Digit], rank: u32, by: u32) -> u32 {
    let mut moved = rank;
    for digit in digits {
        let (place, ahead) = (digit.of(RankId(rank)), digit.of(RankId(by)));
        let sum = place + ahead;
        let target = if sum >= digit.size { sum - digit.size } else { sum };
        moved = moved - place * digit.stride + target * digit.stride;
    }
    moved
}
