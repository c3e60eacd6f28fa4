//! The pipelining postal model: messages overlap in the part alpha_p of their latency. Source:
//! Ruefenacht, Bull, Booth, "Generalisation of recursive doubling for AllReduce: now with simulation",
//! Parallel Computing 69 (2017), eq. (3); its reduction term gamma is charged by the engine.
//!
//! **The sender's clock.** The paper gives the time of b overlapping messages as
//! alpha_p + b (alpha_r + n beta). Here the i-th message leaves after i (alpha_r + n beta) and arrives
//! alpha_p later. The sender's clock advances by b (alpha_r + n beta), the part that does not overlap. In
//! lockstep the last message arrives at the time of the paper.
//!
//! **Overlap ratio.** The paper calls a ratio alpha_p / alpha_r below one "not reasonable". It is
//! accepted here: machines on which the overhead exceeds the latency (shared memory, a kernel network
//! stack) fit to such values, and the model remains well defined. [`Model::remark`] reports it.

use super::{ModelError, takes_time};
use crate::{MessageModel, Port, Sent, Serialization};
use tutti_units::{Bytes, Time, TimePerByte};

tutti_units::parameters! {
    /// Messages of a rank overlap in alpha_p of their latency, but not in alpha_r + n beta.
    ///
    /// b consecutive messages of n bytes take alpha_p + b (alpha_r + n beta).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PipeliningPostal(
        "pipelining_postal" as "PipeliningPostal", "Ruefenacht et al. 2017, eq. (3)", ModelError
    ) {
        /// The part of a message's latency that overlaps with further messages.
        alpha_p: Time,
        /// The part of the latency that does not overlap.
        alpha_r: Time,
        /// Time per byte; does not overlap.
        beta: TimePerByte = "0 ns/B",
    }
}

impl PipeliningPostal {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When a message takes no time.
    pub fn checked(self) -> Result<PipeliningPostal, ModelError> {
        let some = self.alpha_p + self.alpha_r != Time::ZERO || self.beta != TimePerByte::ZERO;
        takes_time(some, &PipeliningPostal::GROUP, "alpha_p, alpha_r and beta").map(|()| self)
    }

    /// n beta.
    #[must_use]
    pub fn serialization(&self) -> Serialization {
        Serialization::of_every_byte(self.beta)
    }

    /// How long a message occupies its sender.
    #[inline]
    fn issue(&self, bytes: Bytes) -> Time {
        self.alpha_r + self.beta.of(bytes)
    }
}

impl MessageModel for PipeliningPostal {
    #[inline]
    fn send(&self, _port: &mut Port, now: Time, bytes: Bytes) -> Sent {
        let free = now + self.issue(bytes);
        Sent { free, arrival: free + self.alpha_p }
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
