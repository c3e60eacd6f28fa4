//! LogfP: LogP in which the first f messages of a burst are free of the gap. Source: Hoefler, Mehlan,
//! Mietke, Rehm, "LogfP - a model for small messages in InfiniBand", IPDPS 2006.
//!
//! A burst is what a rank sends in one step. Its i-th send starts o after the previous one for i <= f,
//! and max(o, g) after it for larger i: "above that number the cost is as in LogP". Inferred: receives
//! are exempt from the gap likewise (else f free sends would gain nothing), and bursts of different
//! steps are independent.

use super::{ModelError, takes_time};
use crate::{MessageModel, Port, Sent, Serialization};
use tutti_units::{Bytes, Time};

tutti_units::parameters! {
    /// LogP in which the first f messages of a burst are exempt from the gap g.
    ///
    /// With f = 1 only the first message of each step is exempt.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LogfP("logfp" as "LogfP", "Hoefler et al. 2006", ModelError) {
        /// Latency of the wire.
        L: Time,
        /// Overhead: how long a message occupies its sender and its receiver.
        o: Time,
        /// Gap: the minimum time between consecutive messages of a rank.
        g: Time,
        /// Messages of a burst that are exempt from the gap, at least 1.
        f: u32 [1..=u32::MAX],
    }
}

impl LogfP {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When a message takes no time, or f is zero.
    pub fn checked(self) -> Result<LogfP, ModelError> {
        self.check_ranges()?;
        takes_time(self.L + self.o != Time::ZERO, &LogfP::GROUP, "L and o").map(|()| self)
    }
}

impl MessageModel for LogfP {
    #[inline]
    fn send(&self, port: &mut Port, now: Time, _bytes: Bytes) -> Sent {
        let start = if port.burst < self.f { now } else { now.max(port.send_free) };
        port.burst = port.burst.saturating_add(1);
        port.send_free = start + self.g;
        let free = start + self.o;
        Sent { free, arrival: free + self.L }
    }

    #[inline]
    fn receive(&self, port: &mut Port, now: Time, arrival: Time, _bytes: Bytes) -> Time {
        let here = now.max(arrival);
        let start = if port.taken < self.f { here } else { here.max(port.recv_free) };
        port.taken = port.taken.saturating_add(1);
        port.recv_free = start + self.g;
        start + self.o
    }

    fn keeps_order(&self, bytes: Serialization) -> bool {
        bytes == Serialization::NONE
    }
}
