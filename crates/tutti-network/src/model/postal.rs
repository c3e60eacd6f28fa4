//! The postal model: one message at a time. Source: Chan et al., "Collective communication: theory,
//! practice, and experience", Concurrency Computat.: Pract. Exper. 19 (2007), as used in section 3 of
//! Ruefenacht et al., Parallel Computing 69 (2017), whose reduction term gamma the engine charges.

use super::{Model, ModelError};
use crate::registry::{self, Arguments, Entry};
use crate::{MessageModel, Port, Sent, Serialization};
use tutti_units::parameter::Group;
use tutti_units::{Bytes, Time, TimePerByte};

pub(super) const ENTRY: Entry = Entry {
    group: Group {
        name: "postal",
        class: "Postal",
        summary: "one message at a time: the sender is busy alpha + n beta, until it has arrived",
        source: "Chan et al. 2007; Ruefenacht et al. 2017, section 3",
        parameters: &[
            registry::time("alpha", &["Time of a message of no bytes."]),
            registry::time_per_byte("beta", &["Time per byte."]).or("0 ns/B"),
        ],
    },
    build: |given| from_arguments(given).map(Model::Postal),
};

fn from_arguments(given: &Arguments) -> Result<Postal, ModelError> {
    Postal::new(given.time("alpha"), given.time_per_byte("beta"))
}

/// A message of n bytes keeps its sender busy alpha + n beta and has then arrived; receiving is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Postal {
    alpha: Time,
    beta: TimePerByte,
}

impl Postal {
    /// Both may be zero, but not together.
    ///
    /// # Errors
    /// When messages would take no time at all.
    pub fn new(alpha: Time, beta: TimePerByte) -> Result<Postal, ModelError> {
        if alpha == Time::ZERO && beta == TimePerByte::ZERO {
            return Err(ModelError::TakesNoTime {
                model: ENTRY.group.name,
                parameters: "alpha and beta",
            });
        }
        Ok(Postal { alpha, beta })
    }

    /// Time of a message of no bytes.
    #[must_use]
    pub fn alpha(&self) -> Time {
        self.alpha
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

    // A message waits for nothing but its forerunners' bytes, which count in full or not at all.
    fn keeps_order(&self, bytes: Serialization) -> bool {
        bytes == Serialization::NONE || bytes == self.serialization()
    }
}
