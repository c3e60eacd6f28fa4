//! LogGP: LogP with a gap per byte for long messages. Source: Alexandrov, Ionescu, Schauser, Scheiman,
//! "LogGP: incorporating long messages into the LogP model", SPAA 1995.
//!
//! A message of n bytes, of which the first costs no G, so that its serialization is (n - 1) G:
//!
//! - its sender is busy for o; the last byte leaves (n - 1) G later and arrives after another L;
//! - the sender starts its next send no sooner than g + (n - 1) G after the start of this one;
//! - its receiver is busy for o after the last byte arrives, and starts to receive it no sooner than
//!   g + (n - 1) G after it started to receive the previous message: the mirror image of sending.
//!
//! LogGOPSim charges (n - 1) G to the receiver's processor instead of the wire: it receives a message when
//! its first byte arrives and is busy for (n - 1) G + o. A single message, and one message per rank and
//! stage, take the same time in both. A receiver of several long messages at once overlaps less in
//! LogGOPSim. See `validation/loggopsim`.

use super::{ModelError, takes_time};
use crate::{MessageModel, Port, Sent, Serialization};
use tutti_units::{Bytes, Time, TimePerByte};

tutti_units::parameters! {
    /// LogP with a gap G per byte for long messages.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LogGP("loggp" as "LogGP", "Alexandrov et al. 1995", ModelError) {
        /// Latency of the wire.
        L: Time,
        /// Overhead: how long a message occupies its sender and its receiver.
        o: Time,
        /// Gap: the minimum time between consecutive messages of a rank.
        g: Time,
        /// Gap per byte: the inverse of a port's rate.
        G: TimePerByte,
    }
}

impl LogGP {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When a message takes no time.
    pub fn checked(self) -> Result<LogGP, ModelError> {
        let some = self.L + self.o != Time::ZERO || self.G != TimePerByte::ZERO;
        takes_time(some, &LogGP::GROUP, "L, o and G").map(|()| self)
    }

    /// (n - 1) G.
    #[inline]
    #[must_use]
    pub fn serialization(&self) -> Serialization {
        Serialization::after_the_first(self.G)
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
        let free = start + self.o;
        let length = self.length(bytes);
        port.send_free = start + self.g + length;
        Sent { free, arrival: free + length + self.L }
    }

    /// `recv_free` is the earliest time for a message of one byte; a longer one adds its serialization. On a
    /// new port it never binds: no message arrives completely before its serialization time.
    #[inline]
    fn receive(&self, port: &mut Port, now: Time, arrival: Time, bytes: Bytes) -> Time {
        let start = now.max(arrival).max(port.recv_free + self.length(bytes));
        port.recv_free = start + self.g;
        start + self.o
    }

    #[inline]
    fn next_send(&self, port: &Port) -> Time {
        port.send_free
    }

    // The first byte leaves L after its sender is free, and the last no sooner than that of an earlier message.
    fn keeps_order(&self, bytes: Serialization) -> bool {
        bytes == Serialization::NONE || bytes == self.serialization()
    }
}
