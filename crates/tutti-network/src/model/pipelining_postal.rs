//! The pipelining postal model: messages overlap in the part alpha_p of their latency. Source:
//! Ruefenacht, Bull, Booth, "Generalisation of recursive doubling for AllReduce: now with simulation",
//! Parallel Computing 69 (2017), eq. (3); its reduction term gamma is charged by the engine.
//!
//! **The sender's clock.** The paper gives the time of b overlapping messages as
//! alpha_p + b (alpha_r + n beta). Here the i-th of them leaves after i (alpha_r + n beta) and arrives
//! alpha_p later, and the sender's clock advances by b (alpha_r + n beta): exactly the part that cannot
//! be overlapped. In lockstep the last message arrives when the paper says.
//!
//! **Overlap ratio.** The paper calls a ratio alpha_p / alpha_r below one "not reasonable". It is
//! accepted here: a machine whose messages cost more to issue than to travel (shared memory, a kernel
//! network stack) fits to such values, the model stays well defined, and [`Model::remark`] says so.

use super::{ModelError, takes_time};
use crate::{MessageModel, Port, Sent, Serialization};
use tutti_units::{Bytes, Time, TimePerByte};

tutti_units::parameters! {
    /// Messages of a rank overlap in alpha_p of their latency, but not in alpha_r + n beta.
    ///
    /// b messages of n bytes, one after the other, have all arrived after alpha_p + b (alpha_r + n beta).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PipeliningPostal(
        "pipelining_postal" as "PipeliningPostal", "Ruefenacht et al. 2017, eq. (3)", ModelError
    ) {
        /// Part of a message's latency that further messages overlap.
        alpha_p: Time,
        /// The remainder, which nothing overlaps.
        alpha_r: Time,
        /// Time per byte, which nothing overlaps.
        beta: TimePerByte = "0 ns/B",
    }
}

impl PipeliningPostal {
    /// The model, if its messages take time.
    ///
    /// # Errors
    /// When a message takes no time at all.
    pub fn checked(self) -> Result<PipeliningPostal, ModelError> {
        let some = self.alpha_p + self.alpha_r != Time::ZERO || self.beta != TimePerByte::ZERO;
        takes_time(some, &PipeliningPostal::GROUP, "alpha_p, alpha_r and beta").map(|()| self)
    }

    /// n beta.
    #[must_use]
    pub fn serialization(&self) -> Serialization {
        Serialization::of_every_byte(self.beta)
    }

    /// How much of a message occupies its sender.
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

    // A message waits for nothing but its forerunners' bytes, which count in full or not at all.
    fn keeps_order(&self, bytes: Serialization) -> bool {
        bytes == Serialization::NONE || bytes == self.serialization()
    }
}
