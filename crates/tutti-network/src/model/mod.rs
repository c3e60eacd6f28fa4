//! Any one of the models: what a platform holds. A run matches on it once and then runs on the model
//! itself; where that is not worth the trouble, the enum is a model too.

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

pub use logfp::LogfP;
pub use loggp::LogGP;
pub use logp::LogP;
pub use lop::LoP;
pub use pipelining_postal::PipeliningPostal;
pub use postal::Postal;

use crate::{MessageModel, Port, Sent, Serialization};
use tutti_units::parameter::{Group, ParameterError};
use tutti_units::{Bytes, Time, TimePerByte};

/// Why there is no such model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "ModelError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum ModelError {
    /// No model has that name.
    #[error("there is no network model `{name}`: expected one of {known}")]
    Unknown { name: String, known: String },
    /// A parameter that is unknown or missing, or a value that it does not take.
    #[error(transparent)]
    #[refusal(kind = "value")]
    Parameter {
        #[from]
        source: ParameterError,
    },
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

/// Refuses a model unless `some` of these parameters make its messages take time.
fn takes_time(some: bool, model: &Group, parameters: &'static str) -> Result<(), ModelError> {
    let error = ModelError::TakesNoTime { model: model.name, parameters };
    if some { Ok(()) } else { Err(error) }
}

/// Lists the models once.
macro_rules! models {
    ($($model:ident),*) => {
        /// Every contention-free model, in the order of lists.
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

        /// A model from its name and its parameters as people write them: `build("logp", &[("L", "2 us"), ..])`.
        ///
        /// # Errors
        /// When there is no such model, a parameter is unknown or missing, a value cannot be read, or the
        /// values make no sense together.
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

models! { Postal, PipeliningPostal, LogP, LoP, LogfP, LogGP }

impl Model {
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
            Model::LogGP(m) if m.G != TimePerByte::ZERO => Some(m.serialization()),
            _ => None,
        }
    }

    /// The same network with so much more latency: every message arrives so much later, and its sender is
    /// none the busier. A postal model, which has no such thing, stays as it is.
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
        }
        changed
    }

    /// What is unusual about its parameters, though valid: a hint for whoever wrote them.
    #[must_use]
    pub fn remark(&self) -> Option<String> {
        match self {
            Model::PipeliningPostal(m) if m.alpha_p < m.alpha_r => Some(format!(
                "alpha_p ({}) is less than alpha_r ({}): messages cost more to issue than to travel, \
                 so sending several at once gains little; were the two swapped?",
                m.alpha_p, m.alpha_r
            )),
            _ => None,
        }
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
