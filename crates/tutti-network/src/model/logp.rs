//! LogP. Source: Culler et al., "LogP: towards a realistic model of parallel computation", PPoPP 1993.
//!
//! A message keeps its sender busy for o, travels L, and keeps its receiver busy for o; a rank starts
//! consecutive sends at least g apart, and consecutive receives too. Bytes do not count: every message
//! is small. The capacity limit of ceil(L / g) messages in flight never binds beyond g itself when all
//! messages take the full L, and is left out.

use super::{LogGP, Model, ModelError};
use crate::registry::{self, Arguments, Entry};
use crate::{MessageModel, Port, Sent, Serialization};
use tutti_units::parameter::Group;
use tutti_units::{Bytes, Time, TimePerByte};

pub(super) const ENTRY: Entry = Entry {
    group: Group {
        name: "logp",
        class: "LogP",
        summary: "overhead o at both ends, latency L, gap g between messages of a rank; small messages",
        source: "Culler et al. 1993",
        parameters: &[registry::LATENCY, registry::OVERHEAD, registry::GAP],
    },
    build: |given| from_arguments(given).map(Model::LogP),
};

fn from_arguments(given: &Arguments) -> Result<LogP, ModelError> {
    LogP::new(given.time("L"), given.time("o"), given.time("g"))
}

/// LogGP with a gap per byte of zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogP(LogGP);

impl LogP {
    /// Each may be zero, but L and o not together.
    ///
    /// # Errors
    /// When a message would take no time at all.
    #[expect(non_snake_case, reason = "L is the field's name for it")]
    pub fn new(L: Time, o: Time, g: Time) -> Result<LogP, ModelError> {
        if L == Time::ZERO && o == Time::ZERO {
            return Err(ModelError::TakesNoTime { model: ENTRY.group.name, parameters: "L and o" });
        }
        Ok(LogP(LogGP::unchecked(L, o, g, TimePerByte::ZERO)))
    }

    /// The same model in the words of LogGP.
    #[must_use]
    pub fn as_loggp(&self) -> &LogGP {
        &self.0
    }
}

impl MessageModel for LogP {
    #[inline]
    fn send(&self, port: &mut Port, now: Time, _bytes: Bytes) -> Sent {
        self.0.send(port, now, Bytes(0))
    }

    #[inline]
    fn receive(&self, port: &mut Port, now: Time, arrival: Time, _bytes: Bytes) -> Time {
        self.0.receive(port, now, arrival, Bytes(0))
    }

    fn keeps_order(&self, bytes: Serialization) -> bool {
        self.0.keeps_order(bytes)
    }
}
