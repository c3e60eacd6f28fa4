//! Everything that can be wrong with a topology or its routes.

use super::components::Components;
use tutti_units::ids::{LinkId, RankId, VertexId};

/// Why a topology or its routes cannot be as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "TopologyError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum TopologyError {
    /// A graph in which nothing can communicate.
    #[error("the topology has no NPU: expected at least one")]
    NoNpus,
    /// More vertices than ids can count.
    #[error("{vertices} vertices are too many: at most {most}")]
    TooManyVertices { vertices: u64, most: u64 },
    /// More NPUs than a schedule can have ranks.
    #[error("{npus} NPUs are too many: at most {most}")]
    TooManyNpus { npus: u64, most: u64 },
    /// More links than fit into memory.
    #[error("{links} links are too many: at most {most}")]
    TooManyLinks { links: u64, most: u64 },
    /// A link that names a vertex which does not exist.
    #[error("the link from {from} to {to} names a vertex that does not exist: the last is {last}")]
    UnknownVertex { from: VertexId, to: VertexId, last: VertexId },
    /// A link from a vertex to itself.
    #[error("{name} ({vertex}) is linked to itself: a link joins two different vertices")]
    SelfLink { vertex: VertexId, name: String },
    /// A link that takes no time per byte.
    #[error(
        "the link from {from} to {to} takes no time per byte: a rate must be positive and finite, \
         such as \"50 GB/s\""
    )]
    ZeroTimePerByte { from: String, to: String },
    /// Two vertices of the same name.
    #[error("{first} and {second} are both named `{name}`: names must differ")]
    DuplicateName { name: String, first: VertexId, second: VertexId },
    /// A vertex whose name is empty.
    #[error("{vertex} has an empty name")]
    EmptyName { vertex: VertexId },
    /// Two NPUs without a path between them.
    #[error("{from} cannot reach {to}: {components}")]
    Disconnected { from: String, to: String, components: Components },
    /// No family has that name.
    #[error("there is no topology `{name}`: expected one of {known}")]
    UnknownFamily { name: String, known: String },
    /// The argument cannot be read or does not fit; `at` is the byte of `argument` where it fails.
    #[error("`{argument}` does not fit {family}: {problem}")]
    Argument { family: &'static str, argument: String, at: usize, problem: String },
    /// Link parameters that do not match what the topology distinguishes.
    #[error(
        "{topology} was given {given} sets of link parameters: expected 1 for all its links, or \
         {expected}, one each for {}", classes.join(", ")
    )]
    WrongLinks { topology: String, given: usize, expected: usize, classes: Vec<String> },
    /// Dimension-order routing on something that has no dimensions.
    #[error(
        "{topology} has no dimensions: dimension-order routing needs rows, as a mesh, torus, cmesh, \
         flattened_butterfly or hyperx has them"
    )]
    NoDimensions { topology: String },
    /// Minimal paths of a dragonfly on something else.
    #[error(
        "{topology} is no dragonfly: minimal routing needs groups and global links; elsewhere the \
         shortest path is minimal"
    )]
    NotADragonfly { topology: String },
    /// D-mod-K on something that is not a fat tree.
    #[error(
        "{topology} is no fat tree: D-mod-K needs levels of switches, as `fat_tree:...` builds"
    )]
    NotAFatTree { topology: String },
    /// A rank that the topology does not have.
    #[error("{rank} is not one of the topology's NPUs 0 to {last}")]
    UnknownRank { rank: RankId, last: u32 },
    /// A link that the topology does not have.
    #[error("{link} does not exist: the topology has {links} links")]
    UnknownLink { link: LinkId, links: usize },
    /// A routing table without an entry where one is needed.
    #[error("at {at} there is no route to {destination}, needed by messages from {source_rank}")]
    NoRoute { at: String, source_rank: RankId, destination: RankId },
    /// Two different answers for one question.
    #[error("at {at} the routes give both {first} and {second} to {destination}")]
    DoubleRoute { at: String, destination: RankId, first: LinkId, second: LinkId },
    /// A next hop over a link that starts elsewhere.
    #[error("the route to {destination} takes {link} at {at}, but that link leaves {leaves}")]
    ForeignLink { at: String, destination: RankId, link: LinkId, leaves: String },
    /// A message that would travel for ever.
    #[error(
        "messages from {source_rank} to {destination} go round in a loop: {}", vertices.join(" -> ")
    )]
    RoutingLoop { source_rank: RankId, destination: RankId, vertices: Vec<String> },
    /// A path that does not end where it should.
    #[error("the path from {source_rank} to {destination} ends at {end}")]
    WrongEnd { source_rank: RankId, destination: RankId, end: String },
    /// A way that does not begin where it should.
    #[error("the way from {source_rank} to {destination} begins at {start}; expected its source")]
    WrongStart { source_rank: RankId, destination: RankId, start: String },
    /// A way over a link that is not there.
    #[error(
        "the way from {source_rank} to {destination} goes from {at} to {next}, but no link does"
    )]
    NoLink { source_rank: RankId, destination: RankId, at: String, next: String },
    /// Two NPUs of a graph that need not be connected.
    #[error("there is no way from {from} to {to}: no live links lead there")]
    NoWay { from: String, to: String },
    /// Two paths for one pair of ranks.
    #[error("there are two paths from {source_rank} to {destination}: expected one")]
    DoublePath { source_rank: RankId, destination: RankId },
}

tutti_units::fields! {
    Components => |value| value.groups().to_vec(),
    TopologyError => |value| value.to_string(),
}
