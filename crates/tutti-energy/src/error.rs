//! What the stage refuses.

/// Why there is no energy or area.
#[derive(Clone, Debug, PartialEq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "EnergyError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum EnergyError {
    /// No technology has that name.
    #[error("there is no {part} technology `{name}`: expected one of {known}")]
    UnknownTechnology { part: &'static str, name: String, known: String },
    /// No constant has that name.
    #[error("there is no constant `{parameter}`: expected one of {known}")]
    UnknownParameter { parameter: String, known: String },
    /// A constant that is no number, infinite or below zero.
    #[error("`{parameter}` cannot be {value}: expected a finite number that is not below zero")]
    Value { parameter: &'static str, value: f64 },
    /// Bounds that do not enclose the value.
    #[error(
        "the bounds of `{parameter}`, {low} and {high}, do not enclose it: \
         expected factors, 0 <= low <= 1 <= high"
    )]
    Bounds { parameter: &'static str, low: f64, high: f64 },
    /// A constant that nobody can check.
    #[error("`{parameter}` has no source: expected where its value is from")]
    NoSource { parameter: &'static str },
    /// A router without what a router consists of.
    #[error("a router with {field} = 0: expected at least 1")]
    Zero { field: &'static str },
    /// A clock that stands still or a cycle of no time.
    #[error("a cycle of 0 ps: expected the time of one clock cycle, such as \"1 ns\"")]
    ZeroCycle {},
    /// Flits on other links than the network has.
    #[error("the events have flits on {given} groups of links: the network has {expected}")]
    WrongLinks { given: usize, expected: usize },
    /// A flit that leaves at more outputs than there are.
    #[error("crossbar traversals to {outputs} outputs: a router has {ports} ports")]
    TooManyOutputs { outputs: usize, ports: u32 },
    /// A sum of counts that cannot be counted.
    #[error("the sum of `{count}` is too large: the largest count is 2^64 - 1")]
    TooMany { count: &'static str },
}
