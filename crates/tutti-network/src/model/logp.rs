//! LogP. Source: Culler et al., "LogP: towards a realistic model of parallel computation", PPoPP 1993.
//!
//! A message occupies its sender for o, travels for L, and occupies its receiver for o. A rank starts
//! consecutive sends at least g apart, and so for receives. Every message is small: its size has no effect.
//! The capacity limit of ceil(L / g) messages in flight is omitted: it never binds beyond g when all messages
//! take the full L.

use super::{LogGP, ModelError, takes_time};
use crate::{MessageModel, Port, Sent, Serialization};
use tutti_units::{Bytes, Time, TimePerByte};

tutti_units::parameters! {
    /// Overhead o at both ends, latency L, gap g between messages of a rank; small messages.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LogP("logp" as "LogP", "Culler et al. 1993", ModelError) {
        /// Latency of the wire.
        L: Time,
        /// Overhead: how long a message occupies its sender and its receiver.
        o: Time,
        /// Gap: the minimum time between consecutive messages of a rank.
        g: Time,
    }
}

impl LogP {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When a message takes no time.
    pub fn checked(self) -> Result<LogP, ModelError> {
        takes_time(self.L + self.o != Time::ZERO, &LogP::GROUP, "L and o").map(|()| self)
    }

    /// LogGP with a gap per byte of zero.
    #[inline]
    #[must_use]
    pub fn as_loggp(&self) -> LogGP {
        LogGP { L: self.L, o: self.o, g: self.g, G: TimePerByte::ZERO }
    }
}

impl MessageModel for LogP {
    #[inline]
    fn send(&self, port: &mut Port, now: Time, _bytes: Bytes) -> Sent {
        self.as_loggp().send(port, now, Bytes(0))
    }

    #[inline]
    fn receive(&self, port: &mut Port, now: Time, arrival: Time, _bytes: Bytes) -> Time {
        self.as_loggp().receive(port, now, arrival, Bytes(0))
    }

    #[inline]
    fn next_send(&self, port: &Port) -> Time {
        port.send_free
    }

    fn keeps_order(&self, bytes: Serialization) -> bool {
        self.as_loggp().keeps_order(bytes)
    }
}
