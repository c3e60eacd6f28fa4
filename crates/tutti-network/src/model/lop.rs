//! LoP: LogP for a network that pipelines small messages and saturates. Source: Hoefler and Rehm, "A
//! communication model for small messages with InfiniBand", PARS-Mitteilungen 2005.
//!
//! As published, LoP has no gap: overhead and latency depend on the number p of messages in flight. A
//! round trip consists of a pipelining, a processing and a saturation term with six fitted parameters.
//! The time per message first falls with p and then rises again. **The fitted functions are not
//! reproduced: the form below is inferred** from that description, as a recurrence per message:
//!
//! - the first send of a burst occupies its rank for o_first, each later one for o_next, so the overhead
//!   per message is o(p) = o_next + (o_first - o_next) / p;
//! - the adapter processes messages sequentially: `processing` each, and `saturation` more for
//!   each beyond the first `knee` of a burst;
//! - a processed message travels L, during which others overlap it (pipelining);
//! - receiving a message occupies the rank for o_next.
//!
//! Where the adapter is the bottleneck, p messages take (L + o_first) / p + processing each. Beyond the
//! knee they take saturation (1 - knee / p) more. The time per message falls up to the knee. Then it rises
//! to a plateau if knee x saturation exceeds L + o_first.

use super::{ModelError, takes_time};
use crate::{MessageModel, Port, Sent, Serialization};
use tutti_units::{Bytes, Time};

tutti_units::parameters! {
    /// Pipelined small messages with saturation of the adapter; form inferred.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LoP("lop" as "LoP", "after Hoefler and Rehm 2005", ModelError) {
        /// Latency that messages of a burst share.
        L: Time,
        /// Overhead of the first message of a burst.
        o_first: Time,
        /// Overhead of each later message, and of each received message.
        o_next: Time,
        /// Processing time of the adapter per message.
        processing: Time,
        /// Additional processing time per message beyond the knee.
        saturation: Time,
        /// Messages of a burst before the adapter saturates, at least 1.
        knee: u32 [1..=u32::MAX],
    }
}

impl LoP {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When a message would take no time, the knee is zero, or a later message costs more than the first.
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
