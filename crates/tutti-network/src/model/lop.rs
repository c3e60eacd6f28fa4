//! LoP: LogP for a network that pipelines small messages and saturates. Source: Hoefler and Rehm, "A
//! communication model for small messages with InfiniBand", PARS-Mitteilungen 2005.
//!
//! Published, as far as it could be read: LoP drops the gap, lets overhead and latency depend on the
//! number p of messages in flight, and splits the time of a round trip into a pipelining, a processing
//! and a saturation term with six fitted parameters, so that the time per message first falls with p and
//! then rises again. **The fitted functions themselves are not reproduced: the form below is inferred**
//! from that description, as a recurrence that an event engine can follow message by message:
//!
//! - the first send of a burst occupies its rank for o_first, each later one for o_next, so the overhead
//!   per message is o(p) = o_next + (o_first - o_next) / p;
//! - the adapter processes messages one after the other: `processing` each, and `saturation` more for
//!   each beyond the first `knee` of a burst;
//! - a processed message travels L, during which others overlap it (pipelining);
//! - taking a message occupies its rank for o_next.
//!
//! Where the adapter is the bottleneck, p messages take (L + o_first) / p + processing each, and
//! saturation (1 - knee / p) more beyond the knee: the time per message falls to the knee, and then rises
//! to a plateau wherever knee x saturation exceeds L + o_first.

use super::{Model, ModelError};
use crate::registry::{self, Arguments, Entry};
use crate::{MessageModel, Port, Sent, Serialization};
use tutti_units::parameter::Group;
use tutti_units::{Bytes, Time};

pub(super) const ENTRY: Entry = Entry {
    group: Group {
        name: "lop",
        class: "LoP",
        summary: "small messages that pipeline, up to a saturation of the adapter; form inferred",
        source: "after Hoefler and Rehm 2005",
        parameters: &[
            registry::time("L", &["Latency that messages of a burst share."]),
            registry::time("o_first", &["Overhead of the first message of a burst."]),
            registry::time(
                "o_next",
                &["Overhead of each later message, and of each message taken."],
            ),
            registry::time("processing", &["Time of the adapter per message."]),
            registry::time(
                "saturation",
                &["Additional time of the adapter per message beyond the knee."],
            ),
            registry::count(
                "knee",
                &["Messages of a burst before the adapter saturates, at least 1."],
            ),
        ],
    },
    build: |given| from_arguments(given).map(Model::LoP),
};

fn from_arguments(given: &Arguments) -> Result<LoP, ModelError> {
    LoP {
        latency: given.time("L"),
        overhead_first: given.time("o_first"),
        overhead_next: given.time("o_next"),
        processing: given.time("processing"),
        saturation: given.time("saturation"),
        knee: given.count("knee"),
    }
    .checked()
}

/// The six parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoP {
    /// L, which messages of a burst share.
    pub latency: Time,
    /// Overhead of the first message of a burst.
    pub overhead_first: Time,
    /// Overhead of each later message, and of each message taken; at most that of the first.
    pub overhead_next: Time,
    /// Time of the adapter per message.
    pub processing: Time,
    /// What each message beyond the knee takes more.
    pub saturation: Time,
    /// Messages of a burst before the adapter saturates.
    pub knee: u32,
}

impl LoP {
    /// The parameters, where they make sense together.
    ///
    /// # Errors
    /// When a message would take no time at all, the knee is zero, or a later message costs its rank
    /// more than the first.
    pub fn checked(self) -> Result<LoP, ModelError> {
        let single = self.latency + self.overhead_first + self.processing;
        if single == Time::ZERO {
            let parameters = "L, o_first and processing";
            return Err(ModelError::TakesNoTime { model: ENTRY.group.name, parameters });
        }
        if self.knee == 0 {
            let (model, parameter) = (ENTRY.group.name, "knee");
            return Err(ModelError::CountTooSmall { model, parameter, least: 1 });
        }
        if self.overhead_next > self.overhead_first {
            return Err(ModelError::LaterCostsMore {
                model: ENTRY.group.name,
                later: ("o_next", self.overhead_next),
                first: ("o_first", self.overhead_first),
            });
        }
        Ok(self)
    }

    /// Time that the `index`-th message of a burst (from zero) occupies the adapter.
    #[inline]
    fn occupies(&self, index: u32) -> Time {
        self.processing + if index < self.knee { Time::ZERO } else { self.saturation }
    }
}

impl MessageModel for LoP {
    #[inline]
    fn send(&self, port: &mut Port, now: Time, _bytes: Bytes) -> Sent {
        let index = port.burst;
        port.burst = index.saturating_add(1);
        let free = now + if index == 0 { self.overhead_first } else { self.overhead_next };
        port.send_free = free.max(port.send_free) + self.occupies(index);
        Sent { free, arrival: port.send_free + self.latency }
    }

    #[inline]
    fn receive(&self, _port: &mut Port, now: Time, arrival: Time, _bytes: Bytes) -> Time {
        now.max(arrival) + self.overhead_next
    }

    fn keeps_order(&self, bytes: Serialization) -> bool {
        bytes == Serialization::NONE
    }
}
