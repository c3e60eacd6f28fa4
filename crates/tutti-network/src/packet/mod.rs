//! The packet model: messages are cut into packets, which queue for the links of a graph. It models
//! congestion and head-of-line blocking.
//!
//! **Switching.** A message enters at its source when its first byte leaves the sender's port, and is cut
//! into packets of at most [`Packets::size`]. Switching is *virtual cut-through*: a packet starts on its next
//! link as soon as its head has arrived and the link is free. It occupies the link until its tail has left,
//! at the earliest when its tail has arrived. A free link serves its inputs round robin, one packet each.
//! The messages injected by the NPU are one input, in FIFO order. Two flows that share a link thus get half
//! of its bandwidth each.
//!
//! **Backpressure.** The buffer at the end of a link holds what the wire holds (rate x latency) plus
//! `Packets::buffer`. A packet starts only when the next buffer has space for the complete packet. It
//! releases its buffer space when it starts to leave. Destinations never block.
//!
//! **Simultaneous events** have a defined order, so runs are reproducible and match [`oracle`]. First all
//! events of a time happen in the order in which they were scheduled: messages enter, heads of packets
//! arrive and queue, messages are delivered, ranks react. Then links start packets, always the lowest link
//! that can, until none can. Events that this causes at the same time follow, and so on until time
//! advances. Links of the graph are ordered by id, then come injection ports, then ejection ports by NPU.
//! Of packets that reach a queue in the same picosecond, the one that started first is first; at ties, the
//! one from the lower link.
//!
//! **Endpoints.** The sender's [`Serialization`] is the injection time: the first n bytes are at the port
//! after the serialization time of n bytes. The receiver's serialization (in LogGP) becomes an ejection port
//! of that rate, shared by the packets of all messages. If the first byte of a message is free, a packet
//! arrives one byte time before the port is free again. The model then charges the receiver as for an empty
//! message, so that no cost is counted twice.
//!
//! **Routing** follows fixed routes, or is decided per packet from queueing delays ([`Choice`]).
//!
//! **Deadlock freedom.** Every buffer exists once per number of links crossed (its class). A packet that has
//! crossed c links waits in class c for space in class c + 1, and the destination drains the highest class.
//! The channel dependency graph is therefore acyclic for any routes. Real networks need fewer virtual
//! channels because they forbid some turns.
//!
//! **Multicasts and combines.** With [`Packets::multicast`] a switch copies a packet to several links; with
//! [`Packets::reduce`] it reduces one packet of each contribution to one. Reductions take no time. NPUs do
//! neither. Trees need fixed routes, as in [`crate::flow`], and tests compare the two.
//!
//! **Without contention** the time of a message of n bytes is the sender's model time, plus the latencies of
//! the links, plus the time of the slowest link for n bytes in excess of the model's serialization. This is
//! exactly `tutti_engine::Routed`. Tests compare the two, and this model with [`oracle`].

mod active;
mod buffers;
mod fabric;
mod injection;
mod links;
#[cfg(any(test, feature = "oracle"))]
pub mod oracle;
mod outbox;
mod pieces;
mod prefetch;
mod routing;
mod trees;
mod waiting;

pub use fabric::{InFlight, PacketNetwork};
pub use links::LinkUse;
pub use routing::{Choice, PacketRouting};

use super::{Model, Serialization, Switches, Ticket};
use tutti_units::parameter::ParameterError;
use tutti_units::{Bytes, TimePerByte};

/// No link, packet or queue.
const NONE: u32 = u32::MAX;

/// In place of a link: injection at the source.
const SOURCE: u32 = u32::MAX;

/// Why packet parameters are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "ModelError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum PacketError {
    /// Packets of no bytes.
    #[error("packets of 0 B carry no payload: expected `size` to be at least 1 B")]
    #[refusal(kind = "empty_packets")]
    Empty,
    /// A buffer smaller than a packet.
    #[error(
        "a buffer of {buffer} cannot hold a packet: expected at least {packet} ({size} of payload and {header} of header)"
    )]
    BufferTooSmall { buffer: Bytes, size: Bytes, header: Bytes, packet: Bytes },
    /// An unknown parameter, or an invalid value.
    #[error(transparent)]
    #[refusal(kind = "value")]
    Parameter {
        #[from]
        source: ParameterError,
    },
    /// A packet longer than the limit.
    #[error("packets of {size} are too long: expected at most 1 GiB")]
    #[refusal(kind = "packets_too_long")]
    TooLong { size: Bytes },
}

/// How the models of sender and receiver charge for the bytes of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// The sender's serialization: its port injects no faster.
    pub hands_over: Serialization,
    /// The receiver's serialization, if any: its port ejects no faster.
    pub takes: Option<Serialization>,
}

impl Ends {
    /// No serialization at the endpoints.
    pub const FREE: Ends = Ends { hands_over: Serialization::NONE, takes: None };

    /// The serialization of a model.
    #[must_use]
    pub fn of(model: &Model) -> Ends {
        Ends { hands_over: model.serialization(), takes: model.takes() }
    }
}

tutti_units::parameters! {
    /// Messages are cut into packets, which queue for the links of the topology.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Packets("packets" as "PacketParameters", "", PacketError) {
        /// Maximum payload of a packet.
        size: Bytes = "4 KiB",
        /// Buffer space at the end of each link in addition to the bytes on its wire; separate for each number
        /// of hops (one virtual channel per hop, which prevents deadlock).
        buffer: Bytes = "64 KiB",
        /// Header bytes of each packet, in addition to its payload.
        header: Bytes = "0 B",
        /// Rate of the injection port of each NPU; without it, only the links limit injection.
        injection: Option<TimePerByte>,
        /// Rate of the ejection port of each NPU.
        ejection: Option<TimePerByte>,
        /// Whether switches copy the packets of a multicast to several links; or the names of the switches
        /// that do, with `*` for any characters.
        multicast: Switches = "false",
        /// Whether switches reduce the packets of contributions to a combine; or the names of the switches
        /// that do, with `*` for any characters.
        reduce: Switches = "false",
    }
}

impl Packets {
    /// The longest packet.
    const LONGEST: u64 = 1 << 30;

    /// Packets of at most `size` bytes of payload and `header` bytes of header; `buffer` bytes of buffer
    /// space in addition to the bytes on the wire.
    ///
    /// # Errors
    /// When packets would be empty, too long, or larger than the buffer.
    pub fn new(size: Bytes, header: Bytes, buffer: Bytes) -> Result<Packets, PacketError> {
        Packets { size, header, buffer, ..Packets::default() }.checked()
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// When packets would be empty, too long, or larger than the buffer.
    pub fn checked(self) -> Result<Packets, PacketError> {
        let Packets { size, header, buffer, .. } = &self;
        let (size, header, buffer) = (*size, *header, *buffer);
        if size == Bytes(0) {
            return Err(PacketError::Empty);
        }
        let packet = size + header;
        if packet.0 > Packets::LONGEST {
            return Err(PacketError::TooLong { size: packet });
        }
        if buffer < packet {
            return Err(PacketError::BufferTooSmall { buffer, size, header, packet });
        }
        Ok(self)
    }

    /// Adds an injection port of this rate to every NPU; messages pass it sequentially.
    #[must_use]
    pub fn with_injection(self, rate: TimePerByte) -> Packets {
        Packets { injection: Some(rate), ..self }
    }

    /// Adds an ejection port of this rate to every NPU.
    #[must_use]
    pub fn with_ejection(self, rate: TimePerByte) -> Packets {
        Packets { ejection: Some(rate), ..self }
    }

    /// The number of packets of a message; an empty message takes one.
    #[must_use]
    pub fn of(&self, message: Bytes) -> u64 {
        message.0.div_ceil(self.size.0).max(1)
    }
}
