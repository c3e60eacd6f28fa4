//! Errors of distributions and detours.

use tutti_units::{Time, UnitError};

/// Why noise is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "NoiseError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum NoiseError {
    /// Neither a name nor `name(arguments)`.
    #[error("`{text}` is not a distribution: expected one of {}", FORMS)]
    Malformed { text: String },
    /// No distribution has that name.
    #[error("unknown distribution `{name}`: expected one of {}", FORMS)]
    Unknown { name: String },
    /// Too few or too many arguments.
    #[error("`{text}` has {given} arguments: expected {expected}")]
    Arguments { text: String, given: usize, expected: &'static str },
    /// An argument that is not a time.
    #[error("`{text}`: {problem}")]
    Value { text: String, problem: UnitError },
    /// An argument that is not a number, or is out of range.
    #[error("`{text}`: invalid argument `{number}`: expected {expected}")]
    Number { text: String, number: String, expected: &'static str },
    /// A distribution with swapped bounds.
    #[error("the bounds of `{text}` are swapped: {low} is more than {high}")]
    Inverted { text: String, low: Time, high: Time },
    /// A recorded distribution without samples.
    #[error("a recorded distribution has no samples: expected at least one")]
    NoSamples,
    /// A mixture without components.
    #[error("a mixture has no components: expected at least one")]
    NoParts,
    /// Detours that fill their cycle.
    #[error("detours of {lost} leave no time for work in a cycle of {cycle}")]
    NoTimeToWork { lost: Time, cycle: Time },
    /// A detour that starts after the end of its cycle.
    #[error("a detour starts at {start}, after the cycle of {cycle} has ended")]
    OutsideCycle { start: Time, cycle: Time },
    /// A background load out of range.
    #[error("invalid load {load}: expected a fraction of the link's rate, at least 0 and below 1")]
    Load { load: String },
    /// Neither one load nor one per kind of link.
    #[error("{given} loads are given: expected one, or one per kind of link ({kinds})")]
    Loads { given: usize, kinds: usize },
}

const FORMS: &str = "none, fixed(1 us), uniform(0 ns, 2 us), exponential(500 ns), \
     normal(1 us, 200 ns), lognormal(1 us, 0.5), pareto(1 us, 1.5), pareto(1 us, 1.5, 1 ms), \
     recorded(1 us, 3 us, 2 us), mixture(0.01 exponential(10 us))";
