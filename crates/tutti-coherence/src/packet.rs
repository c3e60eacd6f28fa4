//! Messages of the protocols, and the table of messages in flight.

use super::cache::Words;
use tutti_noc::smart::FlowId;

/// Kinds of messages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, tutti_units::Named)]
pub(super) enum Kind {
    /// HT: read request (GETS) to the home.
    Read,
    /// HT: write request (GETX) to the home.
    Write,
    /// HT: request to write back an owned line (PUT), to the home.
    Put,
    /// HT: broadcast of a request by the home.
    Probe,
    /// HT: acknowledgement of a PUT by the home.
    PutGranted,
    /// HT: responses of caches to a probe, combined by routers.
    Responses,
    /// HT: the combined responses, from a home that collects them to the requester.
    AllResponses,
    /// HT: the owner's copy of the line.
    OwnerData,
    /// HT: memory's copy of the line.
    MemoryData,
    /// HT: completion of a miss; unblocks the line at the home.
    Unblock,
    /// HT: the data of a write-back.
    PutData,
    /// HT: cancellation of a write-back: another core owns the line by now.
    PutCancelled,
    /// TC: transient read request, broadcast.
    TransientRead,
    /// TC: transient write request, broadcast.
    TransientWrite,
    /// TC: tokens for a core.
    Tokens,
    /// TC: tokens for a core, and the line.
    TokensData,
    /// TC: tokens for memory.
    TokensHome,
    /// TC: tokens for memory, and the line.
    TokensDataHome,
    /// TC: activation of a persistent request: nodes forward all tokens of the line.
    Activate,
    /// TC: deactivation of a persistent request.
    Deactivate,
}

impl Kind {
    /// Returns the message class.
    pub(super) fn class(self) -> u8 {
        match self {
            Kind::Read | Kind::Write | Kind::Put => 0,
            Kind::TransientRead | Kind::TransientWrite => 0,
            Kind::Probe | Kind::PutGranted | Kind::Activate | Kind::Deactivate => 1,
            Kind::Responses | Kind::AllResponses | Kind::OwnerData | Kind::MemoryData => 2,
            Kind::Tokens | Kind::TokensData | Kind::TokensHome | Kind::TokensDataHome => 2,
            Kind::Unblock | Kind::PutData | Kind::PutCancelled => 3,
        }
    }

    /// Returns whether the message goes to all other nodes.
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
    /// The sender.
    pub(super) from: u32,
    /// The destination; of a broadcast, its sender.
    pub(super) to: u32,
    /// The core that missed.
    pub(super) requester: u32,
    /// Serial number of the miss, unique over all cores.
    pub(super) serial: u64,
    /// Whether the requester writes.
    pub(super) write: bool,
    /// HT: the flow of the responses to this probe.
    pub(super) flow: Option<FlowId>,
    /// HT: bits of responses ([`HAD_COPY`], [`OWNER`]) or of memory's copy ([`OWNER`]).
    pub(super) bits: u64,
    /// TC: number of tokens.
    pub(super) tokens: u32,
    /// TC: whether the owner token is among them.
    pub(super) owner: bool,
    /// TC: whether the owner's copy differs from memory.
    pub(super) dirty: bool,
    /// The data of the line, if the message carries it.
    pub(super) words: Option<Words>,
    /// The cycle in which the request that caused this message arrived at its sender.
    pub(super) request_arrived: u64,
    /// The cycle in which the message was sent.
    pub(super) sent: u64,
    /// Whether the data come from memory.
    pub(super) from_memory: bool,
    /// Number of nodes that the message has not reached.
    pub(super) arriving: u32,
    /// Number of nodes that have not processed the message.
    pub(super) remaining: u32,
}

/// Response bit: the cache had a copy.
pub(super) const HAD_COPY: u64 = 1;
/// Response bit: the owner sends its copy.
pub(super) const OWNER: u64 = 2;

impl Packet {
    /// Returns a message between two nodes, or a broadcast to all other nodes.
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
            request_arrived: 0,
            sent: 0,
            from_memory: false,
            arriving: 1,
            remaining: 1,
        }
    }
}

/// The messages that are in flight or being processed, by number.
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

    /// Marks the message as processed by one node. Its number is reused after the last node.
    #[inline]
    pub(super) fn done(&mut self, id: u32) {
        let packet = &mut self.packets[id as usize];
        packet.remaining -= 1;
        if packet.remaining == 0 {
            self.free.push(id);
        }
    }

    /// Returns the number of messages in use.
    pub(super) fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }
}
