//! Errors of flit networks and of their runs.

use super::allocator::{AllocatorError, AllocatorKind, ArbiterKind};
use tutti_topology::TopologyError;
use tutti_units::parameter::ParameterError;
use tutti_units::{Bytes, Time};

/// An invalid flit network, or a run that ended early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "NocError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum FlitError {
    /// A cycle of no length.
    #[error("a cycle of 0 s: expected the length of a clock cycle, such as 1 ns")]
    NoCycle,
    /// A link that is longer than the engine counts.
    #[error("a latency of {time} is more than {most} cycles of {cycle}: expected a longer cycle")]
    TooManyCycles { time: Time, cycle: Time, most: u32 },
    /// A flit that a link does not carry in a cycle.
    #[error(
        "a flit of {flit} is wider than what {from} > {to} carries in a cycle of {cycle}, which is {carries}"
    )]
    #[refusal(kind = "flit_too_wide")]
    TooWide { flit: Bytes, from: String, to: String, carries: Bytes, cycle: Time },
    /// A routing whose VCs form a cyclic dependency.
    #[error("routing `{routing}` can deadlock: channels {} form a dependency cycle", dependency_cycle.join(", "))]
    CanDeadlock { routing: String, dependency_cycle: Vec<String> },
    /// A number out of its range.
    #[error("`{what}` is {value}: expected {expected}")]
    OutOfRange { what: &'static str, value: u64, expected: String },
    /// No priority has that name.
    #[error("unknown priority `{name}`: expected none, ordered or age")]
    UnknownPriority { name: String },
    /// A parameter that does not exist, or a value that it does not take.
    #[error(transparent)]
    #[refusal(kind = "out_of_range")]
    Parameter { source: ParameterError },
    /// Virtual cut-through that cannot take a packet.
    #[error(
        "a VC buffer of {buffer} flits holds no packet of {packet} flits, which virtual cut-through \
         needs: expected `buffer` to be at least {packet}"
    )]
    BufferSmallerThanPacket { buffer: u32, packet: u32 },
    /// An invalid allocator.
    #[error(transparent)]
    #[refusal(transparent)]
    Allocator {
        #[from]
        source: AllocatorError,
    },
    /// Settings that conflict.
    #[error("{what}: {problem}")]
    Clash { what: &'static str, problem: String },
    /// A class without VCs.
    #[error("class {class} has the VCs {first} to {last}, but there are {vcs} (0 to {}): expected a range of them", vcs - 1)]
    NoSuchVcs { class: usize, first: u32, last: u32, vcs: u32 },
    /// No routing has that name.
    #[error("unknown routing `{name}` for flits: expected one of {known}")]
    UnknownRouting { name: String, known: String },
    /// What follows a routing's colon cannot be read.
    #[error("`{text}` cannot be read: expected {expected}")]
    RoutingArgument { text: String, expected: String },
    /// A routing of the graph that suits another graph.
    #[error(transparent)]
    #[refusal(transparent)]
    Topology {
        #[from]
        source: TopologyError,
    },
    /// A routing that does not fit the network.
    #[error("routing `{routing}` needs {needs}, which {network} is not")]
    RoutingDoesNotFit { routing: String, needs: &'static str, network: String },
    /// A routing that needs more VCs than a class has.
    #[error(
        "routing `{routing}` needs at least {needs} VCs per class, and class {class} has {has}"
    )]
    TooFewVcs { routing: String, needs: u32, class: usize, has: u32 },
    /// A flow whose packets do not arrive.
    #[error("the flow from node {from} to node {to}: {problem}")]
    Flow { from: u32, to: u32, problem: String },
    /// A node that no path leads to.
    #[error("no path leads from router {from} to node {node}")]
    Unreachable { from: u32, node: u32 },
    /// No design of a mesh has that name.
    #[error("unknown design `{name}`: expected one of {known}")]
    UnknownDesign { name: String, known: String },
    /// A multicast or a reduction without members.
    #[error("{what} of node {node} has no members: expected a node other than itself")]
    NoMembers { what: &'static str, node: u32 },
    /// An unknown node.
    #[error("{what} names node {node}: expected 0 to {}", nodes - 1)]
    NoSuchNode { what: &'static str, node: u32, nodes: u32 },
    /// A packet that its class does not take.
    #[error("a packet of class {class}: {problem}")]
    BadPacket { class: u8, problem: String },
    /// The caller stopped the run.
    #[error("the run was stopped")]
    #[refusal(class = "SimulationError")]
    Stopped,
}

impl From<ParameterError> for FlitError {
    fn from(source: ParameterError) -> FlitError {
        match source {
            ParameterError::OutOfRange { parameter: what, value, expected } => {
                FlitError::OutOfRange { what, value, expected }
            }
            source => FlitError::Parameter { source },
        }
    }
}

tutti_units::fields! {
    AllocatorKind => |value| value.to_string(),
    ArbiterKind => |value| value.to_string(),
    AllocatorError => |value| value.to_string(),
    FlitError => |value| value.to_string(),
}
