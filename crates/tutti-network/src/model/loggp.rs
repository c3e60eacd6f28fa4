//! LogGP: LogP with a gap per byte for long messages. Source: Alexandrov, Ionescu, Schauser, Scheiman,
//! "LogGP: incorporating long messages into the LogP model", SPAA 1995.
//!
//! A message of n bytes, whose first byte costs no G, so that (n - 1) G stands for its length:
//!
//! - its sender is busy for o; the last byte leaves (n - 1) G later and arrives after another L;
//! - the sender starts its next send no sooner than g + (n - 1) G after the start of this one;
//! - its receiver is busy for o from when it is wholly there, and takes it no sooner than g + (n - 1) G
//!   after it took the message before: the mirror image of sending.
//!
//! LogGOPSim charges (n - 1) G not on the wire but to the receiver's processor: it takes a message when
//! its first byte is there and is busy (n - 1) G + o. A single message, and one message per rank and
//! stage, take the same time in both; a receiver of several long messages at once can do less beside
//! them in LogGOPSim. See `validation/loggopsim`.

use super::{Model, ModelError};
use crate::registry::{self, Arguments, Entry};
use crate::{MessageModel, Port, Sent, Serialization};
use tutti_units::parameter::Group;
use tutti_units::{Bytes, Time, TimePerByte};

pub(super) const ENTRY: Entry = Entry {
    group: Group {
        name: "loggp",
        class: "LogGP",
        summary: "LogP with a gap G per byte for long messages",
        source: "Alexandrov et al. 1995",
        parameters: &[
            registry::LATENCY,
            registry::OVERHEAD,
            registry::GAP,
            registry::time_per_byte("G", &["Gap per byte: the inverse of a port's rate."]),
        ],
    },
    build: |given| from_arguments(given).map(Model::LogGP),
};

fn from_arguments(given: &Arguments) -> Result<LogGP, ModelError> {
    let gap_per_byte = given.time_per_byte("G");
    LogGP::new(given.time("L"), given.time("o"), given.time("g"), gap_per_byte)
}

/// Overhead o at both ends, latency L, gap g per message and G per byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogGP {
    latency: Time,
    overhead: Time,
    gap: Time,
    gap_per_byte: TimePerByte,
}

impl LogGP {
    /// Each may be zero, but L, o and G not together.
    ///
    /// # Errors
    /// When messages would take no time at all.
    #[expect(non_snake_case, reason = "L and G are the field's names for them")]
    pub fn new(L: Time, o: Time, g: Time, G: TimePerByte) -> Result<LogGP, ModelError> {
        if L == Time::ZERO && o == Time::ZERO && G == TimePerByte::ZERO {
            return Err(ModelError::TakesNoTime {
                model: ENTRY.group.name,
                parameters: "L, o and G",
            });
        }
        Ok(LogGP::unchecked(L, o, g, G))
    }

    pub(super) fn unchecked(
        latency: Time,
        overhead: Time,
        gap: Time,
        gap_per_byte: TimePerByte,
    ) -> LogGP {
        LogGP { latency, overhead, gap, gap_per_byte }
    }

    /// L.
    #[must_use]
    pub fn latency(&self) -> Time {
        self.latency
    }

    /// o.
    #[must_use]
    pub fn overhead(&self) -> Time {
        self.overhead
    }

    /// g.
    #[must_use]
    pub fn gap(&self) -> Time {
        self.gap
    }

    /// G.
    #[must_use]
    pub fn gap_per_byte(&self) -> TimePerByte {
        self.gap_per_byte
    }

    /// (n - 1) G.
    #[inline]
    #[must_use]
    pub fn serialization(&self) -> Serialization {
        Serialization::after_the_first(self.gap_per_byte)
    }

    /// (n - 1) G: from a message's first byte to its last; zero for a message of no bytes.
    #[inline]
    #[must_use]
    pub fn length(&self, bytes: Bytes) -> Time {
        self.serialization().of(bytes)
    }
}

impl MessageModel for LogGP {
    #[inline]
    fn send(&self, port: &mut Port, now: Time, bytes: Bytes) -> Sent {
        let start = now.max(port.send_free);
        let free = start + self.overhead;
        let length = self.length(bytes);
        port.send_free = start + self.gap + length;
        Sent { free, arrival: free + length + self.latency }
    }

    /// `recv_free` is the earliest time for a message of one byte; a longer one still has to pass. On a
    /// fresh port it never binds: no message is wholly there before its own length has passed.
    #[inline]
    fn receive(&self, port: &mut Port, now: Time, arrival: Time, bytes: Bytes) -> Time {
        let start = now.max(arrival).max(port.recv_free + self.length(bytes));
        port.recv_free = start + self.gap;
        start + self.overhead
    }

    // The first byte leaves L after its sender is free, and the last no sooner than that of an earlier message.
    fn keeps_order(&self, bytes: Serialization) -> bool {
        bytes == Serialization::NONE || bytes == self.serialization()
    }
}
