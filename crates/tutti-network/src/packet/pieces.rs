//! Messages and their packets, in compact form because there are many of both.

use super::Ticket;
use tutti_units::Time;
use tutti_units::ids::RankId;
use tutti_units::random::split_words;

/// A message in flight: its first packet has been created.
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
    /// Bytes in the packets created so far.
    pub(super) cut: u64,
    /// Packets that have not started to cross their last link.
    pub(super) missing: u64,
    /// When the last of the others arrives completely.
    pub(super) arrival: Time,
}

/// A packet, from its creation until it starts to cross its last link; half a cache line, since it is cold when
/// its turn comes.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(super) struct Packet {
    pub(super) message: u32,
    pub(super) destination: RankId,
    /// On the wire, header included; at most [`Packets::LONGEST`].
    pub(super) bytes: u32,
    /// The packet behind it in its queue.
    pub(super) next: u32,
    /// When its tail has arrived where it is queued.
    pub(super) tail: Time,
    pub(super) stage: Stage,
}

/// The state of a packet that depends on its place, packed into one word. At the source: when its head is at the
/// port. Elsewhere: the link that it is on or was last on, and its next link. The next link is
/// [`NONE`](super::NONE) where it is chosen on arrival.
#[derive(Clone, Copy)]
pub(super) struct Stage(u64);

/// Links are fewer than 2^31, and runs end earlier than after 2^63 ps.
const SHARED: u64 = 1 << 63;

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
    pub(super) fn on_link(over: u32, onto: u32) -> Stage {
        Stage(u64::from(over) << 32 | u64::from(onto))
    }

    /// At a switch: one of several copies, which share the buffer space of the packet.
    #[inline]
    pub(super) fn shared(copies: u32) -> Stage {
        Stage(SHARED | u64::from(copies))
    }

    /// The copies that it is one of, if it is at a switch.
    #[inline]
    pub(super) fn copies(self) -> Option<u32> {
        let [copies, _] = split_words(self.0);
        (self.0 & SHARED != 0).then_some(copies)
    }

    /// The link it is or was last on, and its next link.
    #[inline]
    pub(super) fn links(self) -> [u32; 2] {
        let [onto, over] = split_words(self.0);
        [over, onto]
    }
}
