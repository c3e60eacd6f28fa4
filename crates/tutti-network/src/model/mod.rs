//! Any one of the models: what a platform holds. A run matches on it once and then runs on the model
//! itself; where that is not worth the trouble, the enum is a model too.

mod logfp;
mod loggp;
mod logp;
mod lop;
mod pipelining_postal;
mod postal;

pub use logfp::LogfP;
pub use loggp::LogGP;
pub use logp::LogP;
pub use lop::LoP;
pub use pipelining_postal::PipeliningPostal;
pub use postal::Postal;

use crate::registry::{Entry, Value, find};
use crate::{MessageModel, Port, Sent, Serialization};
use tutti_units::{Bytes, Time, TimePerByte, UnitError};

/// Why there is no such model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "ModelError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum ModelError {
    /// No model has that name.
    #[error("there is no network model `{name}`: expected one of {known}")]
    Unknown { name: String, known: String },
    /// The model has no such parameter.
    #[error("{model} has no parameter `{parameter}`: its parameters are {known}")]
    UnknownParameter { model: &'static str, parameter: String, known: String },
    /// A parameter without a default was not given.
    #[error("{model} needs `{parameter}`, a {kind}: {meaning}")]
    Missing { model: &'static str, parameter: &'static str, kind: &'static str, meaning: String },
    /// The same parameter more than once.
    #[error("`{parameter}` of {model} is given twice")]
    GivenTwice { model: &'static str, parameter: String },
    /// A value that is no quantity of the parameter's kind.
    #[error("`{parameter}` of {model}: {problem}")]
    Value { model: &'static str, parameter: &'static str, problem: UnitError },
    /// A count that is no whole number.
    #[error(
        "`{parameter}` of {model}: `{text}` is no count: expected a whole number, such as \"4\""
    )]
    NotACount { model: &'static str, parameter: &'static str, text: String },
    /// A count below what makes sense.
    #[error("`{parameter}` of {model} is too small: expected at least {least}")]
    CountTooSmall { model: &'static str, parameter: &'static str, least: u32 },
    /// A network that nothing slows down.
    #[error("a message would take no time in {model}: {parameters} cannot all be zero")]
    TakesNoTime { model: &'static str, parameters: &'static str },
    /// A burst whose later messages cost more than its first.
    #[error(
        "`{}` of {model} is {}, more than `{}`, {}: a later message costs at most what the first does",
        later.0, later.1, first.0, first.1
    )]
    LaterCostsMore { model: &'static str, later: (&'static str, Time), first: (&'static str, Time) },
}

/// Every contention-free model, in the order of lists.
pub const REGISTRY: &[Entry] =
    &[postal::ENTRY, pipelining_postal::ENTRY, logp::ENTRY, lop::ENTRY, logfp::ENTRY, loggp::ENTRY];

/// Any contention-free model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is documented at its type")]
pub enum Model {
    Postal(Postal),
    PipeliningPostal(PipeliningPostal),
    LogP(LogP),
    LoP(LoP),
    LogfP(LogfP),
    LogGP(LogGP),
}

impl Model {
    /// Its name in the registry.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Model::Postal(_) => "postal",
            Model::PipeliningPostal(_) => "pipelining_postal",
            Model::LogP(_) => "logp",
            Model::LoP(_) => "lop",
            Model::LogfP(_) => "logfp",
            Model::LogGP(_) => "loggp",
        }
    }

    /// Its line of the registry.
    #[must_use]
    pub fn entry(&self) -> &'static Entry {
        find(self.name()).expect("every model is in the registry")
    }

    /// Its parameters and their values, in the order of the registry.
    #[must_use]
    pub fn values(&self) -> Vec<(&'static str, Value)> {
        let values = match self {
            Model::Postal(m) => vec![Value::Time(m.alpha()), Value::TimePerByte(m.beta())],
            Model::PipeliningPostal(m) => vec![
                Value::Time(m.alpha_p()),
                Value::Time(m.alpha_r()),
                Value::TimePerByte(m.beta()),
            ],
            Model::LogP(m) => {
                let m = m.as_loggp();
                [m.latency(), m.overhead(), m.gap()].map(Value::Time).to_vec()
            }
            Model::LoP(m) => {
                let times =
                    [m.latency, m.overhead_first, m.overhead_next, m.processing, m.saturation];
                times.into_iter().map(Value::Time).chain([Value::Count(m.knee)]).collect()
            }
            Model::LogfP(m) => {
                let times = [m.latency(), m.overhead(), m.gap()];
                times.into_iter().map(Value::Time).chain([Value::Count(m.free())]).collect()
            }
            Model::LogGP(m) => {
                let times = [m.latency(), m.overhead(), m.gap()];
                let gap_per_byte = Value::TimePerByte(m.gap_per_byte());
                times.into_iter().map(Value::Time).chain([gap_per_byte]).collect()
            }
        };
        self.entry().group.parameters.iter().map(|parameter| parameter.name).zip(values).collect()
    }

    /// What it charges for the bytes of a message; nothing where sizes do not matter.
    #[must_use]
    pub fn serialization(&self) -> Serialization {
        match self {
            Model::Postal(m) => m.serialization(),
            Model::PipeliningPostal(m) => m.serialization(),
            Model::LogGP(m) => m.serialization(),
            Model::LogP(_) | Model::LoP(_) | Model::LogfP(_) => Serialization::NONE,
        }
    }

    /// What it charges for the bytes of a message that a rank takes; `None` where it does not.
    #[must_use]
    pub fn takes(&self) -> Option<Serialization> {
        match self {
            Model::LogGP(m) if m.gap_per_byte() != TimePerByte::ZERO => Some(m.serialization()),
            _ => None,
        }
    }

    /// The same network with so much more latency: every message arrives so much later, and its sender is
    /// none the busier. A postal model, which has no such thing, stays as it is.
    #[must_use]
    pub fn with_more_latency(&self, more: Time) -> Model {
        let changed = match self {
            Model::Postal(_) => None,
            Model::PipeliningPostal(m) => {
                let alpha_p = m.alpha_p() + more;
                PipeliningPostal::new(alpha_p, m.alpha_r(), m.beta())
                    .ok()
                    .map(Model::PipeliningPostal)
            }
            Model::LogP(m) => {
                let m = m.as_loggp();
                LogP::new(m.latency() + more, m.overhead(), m.gap()).ok().map(Model::LogP)
            }
            Model::LoP(m) => Some(Model::LoP(LoP { latency: m.latency + more, ..*m })),
            Model::LogfP(m) => LogfP::new(m.latency() + more, m.overhead(), m.gap(), m.free())
                .ok()
                .map(Model::LogfP),
            Model::LogGP(m) => {
                let latency = m.latency() + more;
                LogGP::new(latency, m.overhead(), m.gap(), m.gap_per_byte()).ok().map(Model::LogGP)
            }
        };
        changed.unwrap_or(*self)
    }

    /// What is unusual about its parameters, though valid: a hint for whoever wrote them.
    #[must_use]
    pub fn remark(&self) -> Option<String> {
        match self {
            Model::PipeliningPostal(m) if m.alpha_p() < m.alpha_r() => Some(format!(
                "alpha_p ({}) is less than alpha_r ({}): messages cost more to issue than to travel, \
                 so sending several at once gains little; were the two swapped?",
                m.alpha_p(),
                m.alpha_r()
            )),
            _ => None,
        }
    }
}

impl std::fmt::Display for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let values = self.values();
        let values: Vec<_> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
        write!(f, "{}({})", self.name(), values.join(", "))
    }
}

/// The same expression on whichever model it is, compiled for each.
#[macro_export]
macro_rules! dispatch {
    ($model:expr, $inner:ident => $call:expr) => {
        match $model {
            $crate::Model::Postal($inner) => $call,
            $crate::Model::PipeliningPostal($inner) => $call,
            $crate::Model::LogP($inner) => $call,
            $crate::Model::LoP($inner) => $call,
            $crate::Model::LogfP($inner) => $call,
            $crate::Model::LogGP($inner) => $call,
        }
    };
}

impl MessageModel for Model {
    #[inline]
    fn send(&self, port: &mut Port, now: Time, bytes: Bytes) -> Sent {
        dispatch!(self, model => model.send(port, now, bytes))
    }

    #[inline]
    fn receive(&self, port: &mut Port, now: Time, arrival: Time, bytes: Bytes) -> Time {
        dispatch!(self, model => model.receive(port, now, arrival, bytes))
    }

    fn keeps_order(&self, bytes: Serialization) -> bool {
        dispatch!(self, model => model.keeps_order(bytes))
    }
}
