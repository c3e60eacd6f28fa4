//! [`Model`], any one of the models. A run matches on it once and is then generic over the model; elsewhere
//! the enum is used as a model.

#[expect(non_snake_case, reason = "parameters have the names of the papers")]
mod logfp;
#[expect(non_snake_case, reason = "parameters have the names of the papers")]
mod loggp;
#[expect(non_snake_case, reason = "parameters have the names of the papers")]
mod logp;
#[expect(non_snake_case, reason = "parameters have the names of the papers")]
mod lop;
mod pipelining_postal;
mod postal;
mod protocols;

pub use logfp::LogfP;
pub use loggp::LogGP;
pub use logp::LogP;
pub use lop::LoP;
pub use pipelining_postal::PipeliningPostal;
pub use postal::Postal;
pub use protocols::{Protocols, Segment};

use crate::{MessageModel, Port, Sent, Serialization};
use tutti_units::parameter::{Group, ParameterError};
use tutti_units::{Bytes, Time, TimePerByte};

/// Why a network model is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "ModelError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum ModelError {
    /// No model has that name.
    #[error("unknown network model `{name}`: expected one of {known}")]
    Unknown { name: String, known: String },
    /// An unknown or missing parameter, or an invalid value.
    #[error(transparent)]
    #[refusal(transparent)]
    Parameter {
        #[from]
        source: ParameterError,
    },
    /// Messages that take no time.
    #[error("a message would take no time in {model}: {parameters} cannot all be zero")]
    TakesNoTime { model: &'static str, parameters: &'static str },
    /// A burst in which later messages cost more than the first.
    #[error(
        "`{}` of {model} is {}, more than `{}` ({}): expected later messages to cost at most as much \
         as the first",
        later.0, later.1, first.0, first.1
    )]
    LaterCostsMore { model: &'static str, later: (&'static str, Time), first: (&'static str, Time) },
    /// A message that takes less time than a shorter one.
    #[error(
        "a message of {} would take {} in {model}, and a shorter one of {} would take {}: expected times \
         that do not decrease with the size",
        longer.0, longer.1, shorter.0, shorter.1
    )]
    LongerTakesLess { model: &'static str, longer: (Bytes, Time), shorter: (Bytes, Time) },
}

/// Returns an error unless `some` of these parameters make messages take time.
fn takes_time(some: bool, model: &Group, parameters: &'static str) -> Result<(), ModelError> {
    let error = ModelError::TakesNoTime { model: model.name, parameters };
    if some { Ok(()) } else { Err(error) }
}

/// Lists the models once.
macro_rules! models {
    ($($model:ident),*) => {
        /// Every contention-free model, in display order.
        pub const REGISTRY: &[Group] = &[$($model::GROUP),*];

        /// Any contention-free model.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each variant is documented at its type")]
        pub enum Model { $($model($model)),* }

        impl Model {
            /// Its name in the registry.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $(Model::$model(_) => $model::GROUP.name),* }
            }
        }

        /// Builds a model from its name and parameters as text: `build("logp", &[("L", "2 us"), ..])`.
        ///
        /// # Errors
        /// When the model or a parameter is unknown, a parameter is missing, or values are invalid.
        pub fn build(name: &str, given: &[(&str, &str)]) -> Result<Model, ModelError> {
            $(if name == $model::GROUP.name {
                let made = $model::from_texts(given.iter().copied())?;
                return made.checked().map(Model::$model);
            })*
            let known: Vec<_> = REGISTRY.iter().map(|group| group.name).collect();
            Err(ModelError::Unknown { name: name.to_owned(), known: known.join(", ") })
        }
    };
}

models! { Postal, PipeliningPostal, LogP, LoP, LogfP, LogGP, Protocols }

impl Model {
    /// The sender's serialization; none in models without message sizes.
    #[must_use]
    pub fn serialization(&self) -> Serialization {
        match self {
            Model::Postal(m) => m.serialization(),
            Model::PipeliningPostal(m) => m.serialization(),
            Model::LogGP(m) => m.serialization(),
            Model::Protocols(m) => m.serialization(),
            Model::LogP(_) | Model::LoP(_) | Model::LogfP(_) => Serialization::NONE,
        }
    }

    /// The receiver's serialization; `None` in models that charge the sender only.
    #[must_use]
    pub fn takes(&self) -> Option<Serialization> {
        match self {
            Model::LogGP(m) if m.G != TimePerByte::ZERO => Some(m.serialization()),
            _ => None,
        }
    }

    /// Returns the model with `more` latency: every message arrives later, and its sender is free as early as
    /// before. The postal model, which has no such parameter, is unchanged.
    #[must_use]
    pub fn with_more_latency(&self, more: Time) -> Model {
        let mut changed = *self;
        match &mut changed {
            Model::Postal(_) => {}
            Model::PipeliningPostal(m) => m.alpha_p += more,
            Model::LogP(m) => m.L += more,
            Model::LoP(m) => m.L += more,
            Model::LogfP(m) => m.L += more,
            Model::LogGP(m) => m.L += more,
            Model::Protocols(m) => {
                m.alpha_p += more;
                m.alpha_p_rendezvous = m.alpha_p_rendezvous.map(|alpha_p| alpha_p + more);
            }
        }
        changed
    }

    /// A hint to the user about unusual but valid parameters.
    #[must_use]
    pub fn remark(&self) -> Option<String> {
        match self {
            Model::PipeliningPostal(m) => swapped("", m.alpha_p, m.alpha_r),
            Model::Protocols(m) => {
                let rendezvous = m.rendezvous();
                swapped("", m.alpha_p, m.alpha_r)
                    .or_else(|| swapped("_rendezvous", rendezvous.alpha_p, rendezvous.alpha_r))
            }
            _ => None,
        }
    }
}

/// A hint if the overhead of a message exceeds its latency; `suffix` ends the names of the parameters.
fn swapped(suffix: &str, alpha_p: Time, alpha_r: Time) -> Option<String> {
    (alpha_p < alpha_r).then(|| {
        format!(
            "alpha_p{suffix} ({alpha_p}) is less than alpha_r{suffix} ({alpha_r}): the overhead of a \
             message exceeds its latency, so overlapping messages gains little; were the two swapped?"
        )
    })
}

/// Evaluates an expression on any model, compiled separately for each.
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
            $crate::Model::Protocols($inner) => $call,
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

    #[inline]
    fn next_send(&self, port: &Port) -> Time {
        dispatch!(self, model => model.next_send(port))
    }

    fn keeps_order(&self, bytes: Serialization) -> bool {
        dispatch!(self, model => model.keeps_order(bytes))
    }
}
