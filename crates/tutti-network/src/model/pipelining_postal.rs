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

use super::{Model, ModelError};
use crate::registry::{self, Arguments, Entry};
use crate::{MessageModel, Port, Sent, Serialization};
use tutti_units::parameter::Group;
use tutti_units::{Bytes, Time, TimePerByte};

pub(super) const ENTRY: Entry = Entry {
    group: Group {
        name: "pipelining_postal",
        class: "PipeliningPostal",
        summary: "messages of a rank overlap in alpha_p of their latency, but not in alpha_r + n beta",
        source: "Ruefenacht et al. 2017, eq. (3)",
        parameters: &[
            registry::time(
                "alpha_p",
                &["Part of a message's latency that further messages overlap."],
            ),
            registry::time("alpha_r", &["The remainder, which nothing overlaps."]),
            registry::time_per_byte("beta", &["Time per byte, which nothing overlaps."])
                .or("0 ns/B"),
        ],
    },
    build: |given| from_arguments(given).map(Model::PipeliningPostal),
};

fn from_arguments(given: &Arguments) -> Result<PipeliningPostal, ModelError> {
    let beta = given.time_per_byte("beta");
    PipeliningPostal::new(given.time("alpha_p"), given.time("alpha_r"), beta)
}

/// b messages of n bytes, one after the other, have all arrived after alpha_p + b (alpha_r + n beta).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeliningPostal {
    alpha_p: Time,
    alpha_r: Time,
    beta: TimePerByte,
}

impl PipeliningPostal {
    /// Each may be zero, but not all.
    ///
    /// # Errors
    /// When messages would take no time at all.
    pub fn new(
        alpha_p: Time,
        alpha_r: Time,
        beta: TimePerByte,
    ) -> Result<PipeliningPostal, ModelError> {
        if alpha_p == Time::ZERO && alpha_r == Time::ZERO && beta == TimePerByte::ZERO {
            let parameters = "alpha_p, alpha_r and beta";
            return Err(ModelError::TakesNoTime { model: ENTRY.group.name, parameters });
        }
        Ok(PipeliningPostal { alpha_p, alpha_r, beta })
    }

    /// The part of the latency that further messages overlap.
    #[must_use]
    pub fn alpha_p(&self) -> Time {
        self.alpha_p
    }

    /// The part that nothing overlaps.
    #[must_use]
    pub fn alpha_r(&self) -> Time {
        self.alpha_r
    }

    /// Time per byte.
    #[must_use]
    pub fn beta(&self) -> TimePerByte {
        self.beta
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
