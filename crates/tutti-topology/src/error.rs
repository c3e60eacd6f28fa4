//! Errors of topologies and routes.

use super::components::Components;
use tutti_units::ids::{LinkId, RankId, VertexId};

/// Why a topology or its routes are rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "TopologyError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum TopologyError {
    /// A graph without NPUs.
    #[error("the topology has no NPU: expected at least one")]
    NoNpus,
    /// More vertices than the limit.
    #[error("{vertices} vertices are too many: at most {most}")]
    TooManyVertices { vertices: u64, most: u64 },
    /// More NPUs than a schedule can have ranks.
    #[error("{npus} NPUs are too many: at most {most}")]
    TooManyNpus { npus: u64, most: u64 },
    /// More links than the limit.
    #[error("{links} links are too many: at most {most}")]
    TooManyLinks { links: u64, most: u64 },
    /// A link that names a nonexistent vertex.
    #[error("the link from {from} to {to} names a vertex that does not exist: the last is {last}")]
    UnknownVertex { from: VertexId, to: VertexId, last: VertexId },
    /// A link from a vertex to itself.
    #[error("{name} ({vertex}) is linked to itself: a link joins two different vertices")]
    SelfLink { vertex: VertexId, name: String },
    /// A link without a time per byte.
    #[error(
        "the link from {from} to {to} takes no time per byte: a rate must be positive and finite, \
         such as \"50 GB/s\""
    )]
    ZeroTimePerByte { from: String, to: String },
    /// Two vertices of the same name.
    #[error("{first} and {second} are both named `{name}`: names must differ")]
    DuplicateName { name: String, first: VertexId, second: VertexId },
    /// A vertex with an empty name.
    #[error("{vertex} has an empty name")]
    EmptyName { vertex: VertexId },
    /// Two NPUs without a path between them.
    #[error("{from} cannot reach {to}: {components}")]
    Disconnected { from: String, to: String, components: Components },
    /// No family has that name.
    #[error("unknown topology `{name}`: expected one of {known}")]
    UnknownFamily { name: String, known: String },
    /// The argument cannot be parsed or is invalid; `at` is the byte offset in `argument`.
    #[error("`{argument}` does not fit {family}: {problem}")]
    Argument { family: &'static str, argument: String, at: usize, problem: String },
    /// Link parameters that do not match the link classes of the topology.
    #[error(
        "{topology} was given {given} sets of link parameters: expected 1 for all its links, or \
         {expected}, one each for {}", classes.join(", ")
    )]
    WrongLinks { topology: String, given: usize, expected: usize, classes: Vec<String> },
    /// Dimension-order routing on a topology without dimensions.
    #[error(
        "{topology} has no dimensions: dimension-order routing needs rows, as a mesh, torus, cmesh, \
         flattened_butterfly or hyperx has them"
    )]
    NoDimensions { topology: String },
    /// Minimal dragonfly routing on another topology.
    #[error(
        "{topology} is not a dragonfly: minimal routing needs groups and global links; elsewhere the \
         shortest path is minimal"
    )]
    NotADragonfly { topology: String },
    /// D-mod-K routing on another topology than a fat tree.
    #[error(
        "{topology} is not a fat tree: D-mod-K needs levels of switches, as `fat_tree:...` builds"
    )]
    NotAFatTree { topology: String },
    /// A rank out of range.
    #[error("{rank} is not one of the topology's NPUs 0 to {last}")]
    UnknownRank { rank: RankId, last: u32 },
    /// A link id out of range.
    #[error("{link} does not exist: the topology has {links} links")]
    UnknownLink { link: LinkId, links: usize },
    /// A routing table with a missing entry.
    #[error("{at} has no route to {destination}, which messages from {source_rank} need")]
    NoRoute { at: String, source_rank: RankId, destination: RankId },
    /// Two entries of a routing table that contradict each other.
    #[error("at {at} the routes give both {first} and {second} to {destination}")]
    DoubleRoute { at: String, destination: RankId, first: LinkId, second: LinkId },
    /// A next link that starts at another vertex.
    #[error("the route to {destination} takes {link} at {at}, but that link leaves {leaves}")]
    ForeignLink { at: String, destination: RankId, link: LinkId, leaves: String },
    /// A routing loop.
    #[error(
        "messages from {source_rank} to {destination} are routed in a loop: {}",
        vertices.join(" -> ")
    )]
    RoutingLoop { source_rank: RankId, destination: RankId, vertices: Vec<String> },
    /// A path that does not end at its destination.
    #[error("the path from {source_rank} to {destination} ends at {end}")]
    WrongEnd { source_rank: RankId, destination: RankId, end: String },
    /// A path that does not start at its source.
    #[error("the path from {source_rank} to {destination} starts at {start}; expected its source")]
    WrongStart { source_rank: RankId, destination: RankId, start: String },
    /// A path over a nonexistent link.
    #[error(
        "the path from {source_rank} to {destination} goes from {at} to {next}, but no link joins them"
    )]
    NoLink { source_rank: RankId, destination: RankId, at: String, next: String },
    /// Two NPUs without a path, in a graph that need not be connected.
    #[error("no path from {from} to {to}: no live links connect them")]
    #[refusal(kind = "no_path")]
    Unreachable { from: String, to: String },
    /// Two paths for one pair of ranks.
    #[error("there are two paths from {source_rank} to {destination}: expected one")]
    DoublePath { source_rank: RankId, destination: RankId },
}

tutti_units::fields! {
    Components => |value| value.groups().to_vec(),
    TopologyError => |value| value.to_string(),
}
