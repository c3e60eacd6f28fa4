//! Messages and the packets that they are cut into, as small as they get: of both there are many.

use super::Ticket;
use tutti_units::Time;
use tutti_units::ids::RankId;
use tutti_units::random::split_words;

/// A message under way: its first packet has been cut.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Message {
    pub(super) ticket: Ticket,
    pub(super) source: RankId,
    pub(super) destination: RankId,
    pub(super) bytes: u64,
    /// When its first byte is at its source's port.
    pub(super) head: Time,
    /// How many messages were sent before it.
    pub(super) serial: u64,
    /// Bytes that packets were made of.
    pub(super) cut: u64,
    /// Packets that have not begun to cross their last link.
    pub(super) missing: u64,
    /// When the last of those that have is wholly there.
    pub(super) arrival: Time,
}

/// A packet, from when it is cut until it begins to cross its last link; half a line of the cache, since it
/// is looked at long after it was put where it waits.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(super) struct Packet {
    pub(super) message: u32,
    pub(super) destination: RankId,
    /// On the wire, header included; at most [`Packets::LONGEST`].
    pub(super) bytes: u32,
    /// The packet behind it in its queue.
    pub(super) next: u32,
    /// When its tail is where it waits.
    pub(super) tail: Time,
    pub(super) stage: Stage,
}

/// What is needed of a packet only at its source and what only elsewhere, in one place. At its source: when its
/// head is at the port. Elsewhere: the link on which it travels, or in the buffer at the end of which it is,
/// and the one that it takes next, [`NONE`](super::NONE) where that is chosen when it is there.
#[derive(Clone, Copy)]
pub(super) struct Stage(u64);

impl Stage {
    #[inline]
    pub(super) fn source(head: Time) -> Stage {
        Stage(head.ps())
    }

    #[inline]
    pub(super) fn head(self) -> Time {
        Time::from_ps(self.0)
    }

    #[inline]
    pub(super) fn way(over: u32, onto: u32) -> Stage {
        Stage(u64::from(over) << 32 | u64::from(onto))
    }

    /// The link that it came over, and the one that it takes next.
    #[inline]
    pub(super) fn links(self) -> [u32; 2] {
        let [onto, over] = split_words(self.0);
        [over, onto]
    }
}
