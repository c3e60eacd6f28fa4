//! Why a text is no distribution, or times are no detours.

use tutti_units::{Time, UnitError};

/// Why there is no such disturbance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "NoiseError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum NoiseError {
    /// Neither a name nor `name(arguments)`.
    #[error("`{text}` is no distribution: expected one of {}", FORMS)]
    Malformed { text: String },
    /// No distribution has that name.
    #[error("there is no distribution `{name}`: expected one of {}", FORMS)]
    Unknown { name: String },
    /// Too few or too many arguments.
    #[error("`{text}` has {given} arguments: expected {expected}")]
    Arguments { text: String, given: usize, expected: &'static str },
    /// An argument that is no time.
    #[error("`{text}`: {problem}")]
    Value { text: String, problem: UnitError },
    /// An argument that is no number, or one out of its range.
    #[error("`{text}`: `{number}` is refused: expected {expected}")]
    Number { text: String, number: String, expected: &'static str },
    /// A distribution whose bounds are the wrong way round.
    #[error("`{text}` begins after it ends: {low} is more than {high}")]
    Inverted { text: String, low: Time, high: Time },
    /// A recorded distribution without samples.
    #[error("a recorded distribution has at least one sample")]
    NoSamples,
    /// A mixture of nothing.
    #[error("a mixture has at least one part")]
    NoParts,
    /// Detours that leave their rank no time.
    #[error("detours of {lost} in a cycle of {cycle} leave no time to work")]
    NoTimeToWork { lost: Time, cycle: Time },
    /// A detour that starts after the end of its cycle.
    #[error("a detour starts at {start}, after the cycle of {cycle} has ended")]
    OutsideCycle { start: Time, cycle: Time },
    /// Traffic that takes all of a link, or less than none.
    #[error("a load of {load} is refused: expected a share of the link's rate, from 0 to below 1")]
    Load { load: String },
    /// Neither one load nor one for each kind of link.
    #[error("{given} loads are given: expected one, or one for each of the {kinds} kinds of links")]
    Loads { given: usize, kinds: usize },
}

const FORMS: &str = "none, fixed(1 us), uniform(0 ns, 2 us), exponential(500 ns), \
     normal(1 us, 200 ns), lognormal(1 us, 0.5), pareto(1 us, 1.5), pareto(1 us, 1.5, 1 ms), \
     recorded(1 us, 3 us, 2 us), mixture(0.01 exponential(10 us))";
