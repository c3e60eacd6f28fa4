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

use super::{ModelError, takes_time};
use crate::{MessageModel, Port, Sent, Serialization};
use tutti_units::{Bytes, Time};

tutti_units::parameters! {
    /// Small messages that pipeline, up to a saturation of the adapter; form inferred.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LoP("lop" as "LoP", "after Hoefler and Rehm 2005", ModelError) {
        /// Latency that messages of a burst share.
        L: Time,
        /// Overhead of the first message of a burst.
        o_first: Time,
        /// Overhead of each later message, and of each message taken.
        o_next: Time,
        /// Time of the adapter per message.
        processing: Time,
        /// Additional time of the adapter per message beyond the knee.
        saturation: Time,
        /// Messages of a burst before the adapter saturates, at least 1.
        knee: u32 [1..=u32::MAX],
    }
}

impl LoP {
    /// The model, if its parameters make sense together.
    ///
    /// # Errors
    /// When a message would take no time at all, the knee is zero, or a later message costs its rank
    /// more than the first.
    pub fn checked(self) -> Result<LoP, ModelError> {
        self.check_ranges()?;
        let single = self.L + self.o_first + self.processing;
        takes_time(single != Time::ZERO, &LoP::GROUP, "L, o_first and processing")?;
        if self.o_next > self.o_first {
            return Err(ModelError::LaterCostsMore {
                model: LoP::GROUP.name,
                later: ("o_next", self.o_next),
                first: ("o_first", self.o_first),
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
        let free = now + if index == 0 { self.o_first } else { self.o_next };
        port.send_free = free.max(port.send_free) + self.occupies(index);
        Sent { free, arrival: port.send_free + self.L }
    }

    #[inline]
    fn receive(&self, _port: &mut Port, now: Time, arrival: Time, _bytes: Bytes) -> Time {
        now.max(arrival) + self.o_next
    }

    fn keeps_order(&self, bytes: Serialization) -> bool {
        bytes == Serialization::NONE
    }
}
