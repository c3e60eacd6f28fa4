//! Errors of synthetic traffic.

/// Invalid traffic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "TrafficError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum TrafficError {
    /// No pattern has that name.
    #[error("unknown traffic pattern `{name}`: expected one of {known}")]
    UnknownPattern { name: String, known: String },
    /// An argument that is missing, superfluous or not readable.
    #[error("`{text}` cannot be read: expected {expected}")]
    Malformed { text: String, expected: String },
    /// A number of nodes for which the pattern is not defined.
    #[error("`{pattern}` is not defined for {nodes} nodes: expected {expected}")]
    Nodes { pattern: String, nodes: u32, expected: &'static str },
    /// A pattern along dimensions on a network without a grid.
    #[error("`{pattern}` needs a grid of nodes, which the network lacks")]
    NoGrid { pattern: String },
    /// A grid that the pattern is not defined on.
    #[error("`{pattern}` is not defined on a grid of {grid}: expected {expected}")]
    Grid { pattern: String, grid: String, expected: &'static str },
    /// A grid with more or fewer places than there are nodes.
    #[error("a grid of {grid} does not hold {nodes} nodes")]
    GridSize { grid: String, nodes: u32 },
    /// An unknown node.
    #[error("`{pattern}` names node {node}: the last of {nodes} nodes is {}", nodes.saturating_sub(1))]
    UnknownNode { pattern: String, node: u32, nodes: u32 },
    /// A node that is named twice.
    #[error("`{pattern}` names node {node} twice")]
    Repeated { pattern: String, node: u32 },
    /// A list with too few or too many entries.
    #[error("`{pattern}` gives {given} {what}: expected {expected}")]
    Count { pattern: String, what: &'static str, given: usize, expected: u32 },
    /// Weights that are all zero.
    #[error("`{text}` gives every weight as 0: expected at least one above")]
    NoWeight { text: String },
    /// No destination is left.
    #[error("`{pattern}` leaves no node to send to")]
    NoDestination { pattern: String },
    /// No process has that name.
    #[error(
        "unknown injection process `{text}`: expected bernoulli, on_off:ALPHA..., periodic or \
         periodic:aligned"
    )]
    UnknownProcess { text: String },
    /// A rate or probability out of range.
    #[error("{what} of {value} is refused: expected a number from 0 to 1")]
    Chance { what: &'static str, value: String },
    /// Not two of the three parameters of bursts.
    #[error(
        "on_off has {given} of alpha, beta and r1: expected two of them, the third follows from the \
         rate"
    )]
    Bursts { given: usize },
    /// Bursts that cannot carry the rate.
    #[error("on_off cannot generate {rate} packets per cycle: {name} would have to be {value}")]
    OutOfReach { rate: String, name: &'static str, value: String },
    /// Bursts that neither start nor end.
    #[error(
        "on_off with alpha and beta of 0 stays in its first state: expected one of them above 0"
    )]
    Stuck,
    /// A packet without flits.
    #[error("`{text}` has a packet of 0 flits: expected at least one")]
    NoFlits { text: String },
    /// A line of a trace file that cannot be read.
    #[error("line {line} of the trace: {problem}")]
    Trace { line: usize, problem: String },
}
