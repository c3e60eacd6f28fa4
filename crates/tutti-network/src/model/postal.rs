//! The postal model: one message at a time. Source: Chan et al., "Collective communication: theory,
//! practice, and experience", Concurrency Computat.: Pract. Exper. 19 (2007), as used in section 3 of
//! Ruefenacht et al., Parallel Computing 69 (2017), whose reduction term gamma the engine charges.

use super::{ModelError, takes_time};
use crate::{MessageModel, Port, Sent, Serialization};
use tutti_units::{Bytes, Time, TimePerByte};

tutti_units::parameters! {
    /// One message at a time: the sender is busy for alpha + n beta, until the message arrives.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Postal(
        "postal" as "Postal", "Chan et al. 2007; Ruefenacht et al. 2017, section 3", ModelError
    ) {
        /// Time of an empty message.
        alpha: Time,
        /// Time per byte.
        beta: TimePerByte = "0 ns/B",
    }
}

impl Postal {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When a message takes no time.
    pub fn checked(self) -> Result<Postal, ModelError> {
        let some = self.alpha != Time::ZERO || self.beta != TimePerByte::ZERO;
        takes_time(some, &Postal::GROUP, "alpha and beta").map(|()| self)
    }

    /// n beta.
    #[must_use]
    pub fn serialization(&self) -> Serialization {
        Serialization::of_every_byte(self.beta)
    }
}

impl MessageModel for Postal {
    #[inline]
    fn send(&self, _port: &mut Port, now: Time, bytes: Bytes) -> Sent {
        let arrival = now + self.alpha + self.beta.of(bytes);
        Sent { free: arrival, arrival }
    }

    #[inline]
    fn receive(&self, _port: &mut Port, now: Time, arrival: Time, _bytes: Bytes) -> Time {
        now.max(arrival)
    }

    // A message waits only for the bytes of earlier messages, which count in full or not at all.
    fn keeps_order(&self, bytes: Serialization) -> bool {
        bytes == Serialization::NONE || bytes == self.serialization()
    }
}
