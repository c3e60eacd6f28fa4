//! Who of those that ask gets what: matchings of inputs to outputs.

/// Placeholder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AllocatorKind {
    /// First per input, then per output.
    SeparableInputFirst,
}

/// Placeholder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArbiterKind {
    /// In turn.
    RoundRobin,
}
