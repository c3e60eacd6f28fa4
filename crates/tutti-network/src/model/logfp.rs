//! LogfP: LogP in which the first f messages of a burst are free of the gap. Source: Hoefler, Mehlan,
//! Mietke, Rehm, "LogfP - a model for small messages in InfiniBand", IPDPS 2006.
//!
//! A burst is what a rank sends in one step. Its i-th send starts o after the one before while i <= f,
//! and max(o, g) after it beyond: "above that number the cost is as in LogP". Inferred: that taking
//! messages is free of the gap in the same way (else f free sends to one another would gain nothing),
//! and that a step's burst does not remember the step before.

use super::{Model, ModelError};
use crate::registry::{self, Arguments, Entry};
use crate::{MessageModel, Port, Sent, Serialization};
use tutti_units::parameter::Group;
use tutti_units::{Bytes, Time};

pub(super) const ENTRY: Entry = Entry {
    group: Group {
        name: "logfp",
        class: "LogfP",
        summary: "LogP in which the first f messages of a burst are free of the gap g",
        source: "Hoefler et al. 2006",
        parameters: &[
            registry::LATENCY,
            registry::OVERHEAD,
            registry::GAP,
            registry::count("f", &["Messages of a burst that are free of the gap, at least 1."]),
        ],
    },
    build: |given| from_arguments(given).map(Model::LogfP),
};

fn from_arguments(given: &Arguments) -> Result<LogfP, ModelError> {
    LogfP::new(given.time("L"), given.time("o"), given.time("g"), given.count("f"))
}

/// Overhead o at both ends, latency L, gap g from the (f + 1)-th message of a burst on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogfP {
    latency: Time,
    overhead: Time,
    gap: Time,
    free: u32,
}

impl LogfP {
    /// With f = 1 the first message of each step is free of the gap, as a first message always is.
    ///
    /// # Errors
    /// When a message would take no time at all, or f is zero.
    #[expect(non_snake_case, reason = "L is the field's name for it")]
    pub fn new(L: Time, o: Time, g: Time, f: u32) -> Result<LogfP, ModelError> {
        if L == Time::ZERO && o == Time::ZERO {
            return Err(ModelError::TakesNoTime { model: ENTRY.group.name, parameters: "L and o" });
        }
        if f == 0 {
            return Err(ModelError::CountTooSmall {
                model: ENTRY.group.name,
                parameter: "f",
                least: 1,
            });
        }
        Ok(LogfP { latency: L, overhead: o, gap: g, free: f })
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

    /// f.
    #[must_use]
    pub fn free(&self) -> u32 {
        self.free
    }
}

impl MessageModel for LogfP {
    #[inline]
    fn send(&self, port: &mut Port, now: Time, _bytes: Bytes) -> Sent {
        let start = if port.burst < self.free { now } else { now.max(port.send_free) };
        port.burst = port.burst.saturating_add(1);
        port.send_free = start + self.gap;
        let free = start + self.overhead;
        Sent { free, arrival: free + self.latency }
    }

    #[inline]
    fn receive(&self, port: &mut Port, now: Time, arrival: Time, _bytes: Bytes) -> Time {
        let here = now.max(arrival);
        let start = if port.taken < self.free { here } else { here.max(port.recv_free) };
        port.taken = port.taken.saturating_add(1);
        port.recv_free = start + self.gap;
        start + self.overhead
    }

    fn keeps_order(&self, bytes: Serialization) -> bool {
        bytes == Serialization::NONE
    }
}
