//! Errors of the energy model.

/// Why energy or area cannot be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "EnergyError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum EnergyError {
    /// No technology has that name.
    #[error("unknown {part} technology `{name}`: expected one of {known}")]
    UnknownTechnology { part: &'static str, name: String, known: String },
    /// No constant has that name.
    #[error("unknown constant `{parameter}`: expected one of {known}")]
    UnknownParameter { parameter: String, known: String },
    /// A constant that is negative, infinite or NaN.
    #[error("`{parameter}` is {value}: expected a finite number of at least 0")]
    Value { parameter: &'static str, value: f64 },
    /// Bounds that do not enclose the value.
    #[error(
        "the bounds of `{parameter}`, {low} and {high}, do not enclose its value: \
         expected factors with 0 <= low <= 1 <= high"
    )]
    Bounds { parameter: &'static str, low: f64, high: f64 },
    /// A constant without a source.
    #[error("`{parameter}` has no source: expected the origin of its value")]
    NoSource { parameter: &'static str },
    /// A router without ports, VCs, buffers or bits.
    #[error("a router with {field} = 0: expected at least 1")]
    Zero { field: &'static str },
    /// A cycle time of zero.
    #[error("a cycle of 0 ps: expected the time of one clock cycle, such as \"1 ns\"")]
    ZeroCycle {},
    /// A number of link groups that differs from that of the network.
    #[error("the events have flits on {given} groups of links: the network has {expected}")]
    WrongLinks { given: usize, expected: usize },
    /// A crossbar traversal to more outputs than ports.
    #[error("crossbar traversals to {outputs} outputs: a router has {ports} ports")]
    TooManyOutputs { outputs: usize, ports: u32 },
    /// A sum that exceeds 64 bits.
    #[error("the sum of `{count}` is too large: the largest count is 2^64 - 1")]
    TooMany { count: &'static str },
}
