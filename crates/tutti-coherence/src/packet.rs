//! What protocols say to each other: the messages, and those that are under way.

use super::cache::Words;
use tutti_noc::smart::FlowId;

/// The kinds of messages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, tutti_units::Named)]
pub(super) enum Kind {
    /// HT: a core wants to read (GETS); to the home.
    Read,
    /// HT: a core wants to write (GETX); to the home.
    Write,
    /// HT: a core has an owned line to write back (PUT); to the home.
    Put,
    /// HT: the home asks all caches.
    Probe,
    /// HT: the home is ready for a line that is written back.
    PutGranted,
    /// HT: what caches answer to a probe, combined on its way.
    Answers,
    /// HT: the home has all answers, and tells the requester what they say.
    AllAnswered,
    /// HT: an owner's copy of the line.
    OwnerData,
    /// HT: memory's copy of the line.
    MemoryData,
    /// HT: the requester is done.
    Unblock,
    /// HT: a line that is written back.
    PutData,
    /// HT: nothing is written back, as somebody else owns the line by now.
    PutCancelled,
    /// TC: a core wants to read; to all.
    TransientRead,
    /// TC: a core wants to write; to all.
    TransientWrite,
    /// TC: tokens for a core.
    Tokens,
    /// TC: tokens for a core, and the line.
    TokensData,
    /// TC: tokens for memory.
    TokensHome,
    /// TC: tokens for memory, and the line.
    TokensDataHome,
    /// TC: all tokens of a line go to this core from now on.
    Activate,
    /// TC: and no longer.
    Deactivate,
}

impl Kind {
    /// The class of its messages.
    pub(super) fn class(self) -> u8 {
        match self {
            Kind::Read | Kind::Write | Kind::Put => 0,
            Kind::TransientRead | Kind::TransientWrite => 0,
            Kind::Probe | Kind::PutGranted | Kind::Activate | Kind::Deactivate => 1,
            Kind::Answers | Kind::AllAnswered | Kind::OwnerData | Kind::MemoryData => 2,
            Kind::Tokens | Kind::TokensData | Kind::TokensHome | Kind::TokensDataHome => 2,
            Kind::Unblock | Kind::PutData | Kind::PutCancelled => 3,
        }
    }

    /// Whether it goes to all other nodes.
    pub(super) fn is_broadcast(self) -> bool {
        let transient = matches!(self, Kind::TransientRead | Kind::TransientWrite);
        transient || matches!(self, Kind::Probe | Kind::Activate | Kind::Deactivate)
    }
}

/// A message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) kind: Kind,
    pub(super) line: u32,
    /// The node that sends it.
    pub(super) from: u32,
    /// The node it goes to; of a broadcast, its sender.
    pub(super) to: u32,
    /// Whose miss it is about.
    pub(super) requester: u32,
    /// Which one, over all cores.
    pub(super) serial: u64,
    /// Whether the requester wants to write.
    pub(super) write: bool,
    /// HT: what the answers to it are sent as.
    pub(super) flow: Option<FlowId>,
    /// HT: what answers say ([`HAD_COPY`], [`OWNER`]), or memory's copy ([`OWNER`]).
    pub(super) bits: u64,
    /// TC: how many.
    pub(super) tokens: u32,
    /// TC: whether the owner token is among them.
    pub(super) owner: bool,
    /// TC: whether memory does not have what the owner has.
    pub(super) dirty: bool,
    /// The line, if it is carried.
    pub(super) words: Option<Words>,
    /// The cycle in which what it answers arrived where it comes from.
    pub(super) asked: u64,
    /// The cycle in which it was sent.
    pub(super) sent: u64,
    /// Whether it comes from memory.
    pub(super) from_memory: bool,
    /// At how many nodes it is still to arrive.
    pub(super) arriving: u32,
    /// How often it is still to be looked at.
    pub(super) remaining: u32,
}

/// Of what answers say: there is a copy.
pub(super) const HAD_COPY: u64 = 1;
/// Of what answers say: the owner sends its copy.
pub(super) const OWNER: u64 = 2;

impl Packet {
    /// From one node to another, or, if it is a broadcast, to all others.
    pub(super) fn new(kind: Kind, line: u32, from: u32, to: u32) -> Packet {
        Packet {
            kind,
            line,
            from,
            to,
            requester: from,
            serial: 0,
            write: false,
            flow: None,
            bits: 0,
            tokens: 0,
            owner: false,
            dirty: false,
            words: None,
            asked: 0,
            sent: 0,
            from_memory: false,
            arriving: 1,
            remaining: 1,
        }
    }
}

/// The messages that are under way or being looked at, by number.
#[derive(Default)]
pub(super) struct Packets {
    packets: Vec<Packet>,
    free: Vec<u32>,
}

impl Packets {
    pub(super) fn add(&mut self, packet: Packet) -> u32 {
        if let Some(id) = self.free.pop() {
            self.packets[id as usize] = packet;
            return id;
        }
        self.packets.push(packet);
        u32::try_from(self.packets.len() - 1).expect("fewer messages than 2^32")
    }

    #[inline]
    pub(super) fn get(&self, id: u32) -> &Packet {
        &self.packets[id as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: u32) -> &mut Packet {
        &mut self.packets[id as usize]
    }

    /// A node is done with it; its number is used again after the last one.
    #[inline]
    pub(super) fn done(&mut self, id: u32) {
        let packet = &mut self.packets[id as usize];
        packet.remaining -= 1;
        if packet.remaining == 0 {
            self.free.push(id);
        }
    }

    /// How many are not done.
    pub(super) fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }
}
