//! Packets: messages cut into pieces that queue for the links of a graph. Congestion, and messages of
//! one rank in each other's way, come from here.
//!
//! **The way of a packet.** A message enters at its source when its first byte leaves the sender's port,
//! and is cut into packets of at most [`Packets::size`]. A packet crosses one link after the other,
//! *virtual cut-through*: it goes on as soon as its head has arrived and the next link is free, and holds
//! that link until its tail has left, which is no sooner than its tail has come in. A link that is free
//! serves the inputs that wait for it in turn (round robin, a packet each), the NPU's own messages being
//! one input; messages of one NPU for one link follow one another. So two flows that meet on a link share
//! it evenly.
//!
//! **Backpressure.** At the end of each link lies a buffer with room for what the wire holds
//! (rate x latency) and `Packets::buffer` more. A packet starts only when the buffer it goes to has room
//! for all of it, and gives back the room it leaves when it begins to leave. What has reached its
//! destination is taken at once.
//!
//! **At the very same time** everything has its order, so that a run is the same again, and the same in
//! [`oracle`]. First all events of that time happen, in the order in which they were put in: messages enter,
//! heads of packets arrive and queue, messages are delivered and ranks answer. Then links start packets,
//! always the lowest that can, asked anew after each start, until none can: what that brings about at once
//! happens next, and so on before time goes on. Links of the graph come by their ids, then injection ports,
//! then ejection ports by NPU. So of packets that reach a queue in the same picosecond the one that started
//! earlier comes first, and of those that started together the one from the lower link.
//!
//! **The ends.** What a model charges a sender for bytes is how long its port takes to hand a message over: the
//! first n bytes are at the port after the [`Serialization`] of n. What it charges a receiver (LogGP does) is an
//! ejection port of that rate, through which the packets of all messages pass; where the first byte of a message
//! costs nothing, a packet is there a byte before the port is free again. The model itself then charges the
//! receiver for messages of no bytes, so that nothing is counted twice.
//!
//! **Which way** is that of the routes, or a choice of each packet by what waits where ([`Choice`]).
//!
//! **No deadlock.** Every buffer exists once for each number of links crossed before (its class), and a
//! packet that has crossed c links waits in class c for room in class c + 1. Waiting therefore always
//! points to a higher class, and the highest is drained by the destination: no cycle, whatever the routes.
//! Real networks reach the same with fewer virtual channels by forbidding some turns.
//!
//! **Without contention** a message of n bytes takes what the sender's model says, the sum of the links'
//! latencies, and what the slowest link takes for n bytes beyond what the model charges for them anyway:
//! exactly `tutti_engine::Routed`. Tests hold the two together, and this against [`oracle`], the same
//! rules written down the obvious way.

mod ahead;
mod fabric;
mod lines;
mod links;
#[cfg(any(test, feature = "oracle"))]
pub mod oracle;
mod outbox;
mod pieces;
mod queue;
mod rooms;
mod slab;
mod stirred;
mod waiting;
mod ways;

pub use fabric::{PacketNetwork, UnderWay};
pub use links::LinkUse;
pub use ways::{Choice, Ways};

use super::{Model, Serialization, Ticket};
use tutti_units::parameter::ParameterError;
use tutti_units::{Bytes, TimePerByte};

/// No link, packet or queue.
const NONE: u32 = u32::MAX;

/// In place of a link: where messages enter.
const SOURCE: u32 = u32::MAX;

/// Why there are no such packets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "ModelError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum PacketError {
    /// Packets of no bytes.
    #[error("packets of 0 B carry nothing: expected `size` to be at least 1 B")]
    #[refusal(kind = "empty_packets")]
    Empty,
    /// A buffer that no packet fits in.
    #[error(
        "a buffer of {buffer} holds no packet of {size}: expected at least {packet} ({size} and a header of {header})"
    )]
    BufferTooSmall { buffer: Bytes, size: Bytes, header: Bytes, packet: Bytes },
    /// A parameter that does not exist, or a value that it does not take.
    #[error(transparent)]
    #[refusal(kind = "value")]
    Parameter {
        #[from]
        source: ParameterError,
    },
    /// A packet longer than can be counted.
    #[error("packets of {size} are too long: expected at most 1 GiB")]
    #[refusal(kind = "packets_too_long")]
    TooLong { size: Bytes },
}

/// What the models at both ends do about a message's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// What the sender's model charges for them: its port hands bytes over no faster.
    pub hands_over: Serialization,
    /// What the receiver's model charges for them, if it does: its port takes bytes no faster.
    pub takes: Option<Serialization>,
}

impl Ends {
    /// Bytes cost nothing at the ends.
    pub const FREE: Ends = Ends { hands_over: Serialization::NONE, takes: None };

    /// Those of a model.
    #[must_use]
    pub fn of(model: &Model) -> Ends {
        Ends { hands_over: model.serialization(), takes: model.takes() }
    }
}

tutti_units::parameters! {
    /// Messages are cut into packets, and packets queue for the links of the topology.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Packets("packets" as "PacketParameters", "", PacketError) {
        /// The most bytes of a message in one packet.
        size: Bytes = "4 KiB",
        /// Buffer space behind each link, beyond what its wire holds; the same again for each number of links
        /// that a packet has crossed (virtual channels by hop, which exclude deadlock).
        buffer: Bytes = "64 KiB",
        /// Bytes of each packet in addition to those of its message.
        header: Bytes = "0 B",
        /// Rate of the port through which all messages leave an NPU; without it, only the links limit them.
        injection: Option<TimePerByte>,
        /// Rate of the port through which all messages reach an NPU.
        ejection: Option<TimePerByte>,
    }
}

impl Packets {
    /// The longest packet.
    const LONGEST: u64 = 1 << 30;

    /// Packets of at most `size` bytes of a message and `header` bytes besides; buffers have room for
    /// `buffer` bytes beyond what their wire holds.
    ///
    /// # Errors
    /// When packets would be empty or too long, or fit in no buffer.
    pub fn new(size: Bytes, header: Bytes, buffer: Bytes) -> Result<Packets, PacketError> {
        Packets { size, header, buffer, ..Packets::default() }.checked()
    }

    /// The same, if messages can be cut so.
    ///
    /// # Errors
    /// When packets would be empty or too long, or fit in no buffer.
    pub fn checked(self) -> Result<Packets, PacketError> {
        let Packets { size, header, buffer, .. } = self;
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

    /// Every NPU injects over a port of that rate, one message after the other, whichever links follow.
    #[must_use]
    pub fn with_injection(self, rate: TimePerByte) -> Packets {
        Packets { injection: Some(rate), ..self }
    }

    /// Every NPU takes what reaches it through a port of that rate.
    #[must_use]
    pub fn with_ejection(self, rate: TimePerByte) -> Packets {
        Packets { ejection: Some(rate), ..self }
    }

    /// How many packets a message is cut into; an empty one still takes one.
    #[must_use]
    pub fn of(&self, message: Bytes) -> u64 {
        message.0.div_ceil(self.size.0).max(1)
    }
}
