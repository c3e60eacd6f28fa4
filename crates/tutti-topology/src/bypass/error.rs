//! Everything that can be wrong with a network of bypass wires or a configuration of it.

/// Why a mesh or a configuration cannot be as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "BypassError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum BypassError {
    /// A mesh without neighbours, or too large.
    #[error("a mesh of {side}x{side} nodes; expected 2x2 to {most}x{most}")]
    WrongSide { side: u32, most: u32 },
    /// More wires than can be counted.
    #[error("{wires} bypass wires along each line; expected at most {most} for each direction")]
    TooManyWires { wires: u32, most: u32 },
    /// No kind of mux has that name.
    #[error("there are no muxes `{name}`; expected one of {known}")]
    UnknownMuxes { name: String, known: String },
    /// A link that cannot be read.
    #[error("found {found}; expected {expected}")]
    Malformed { found: String, expected: String },
    /// A configuration of another mesh.
    #[error("this is a configuration of {given}; expected one of {mesh}")]
    OtherMesh { given: String, mesh: String },
    /// A node beyond the last.
    #[error("node {node} does not exist on {side}x{side}; expected at most {last}")]
    NoSuchNode { node: u32, side: u32, last: u32 },
    /// A link from a node to itself.
    #[error("node {node} is linked to itself; expected two different nodes")]
    SameNode { node: u32 },
    /// A mesh link between nodes that are not side by side.
    #[error(
        "node {from} and node {to} are no neighbours: a mesh link joins neighbours; \
         expected a bypass piece, `{from}=>{to}`, if they lie in one row or column"
    )]
    NoNeighbours { from: u32, to: u32 },
    /// A piece that would turn.
    #[error(
        "node {from} and node {to} lie in no common row or column: a piece of a bypass wire \
         does not turn; expected a link to the corner and one from there"
    )]
    Aslant { from: u32, to: u32 },
    /// A wire beyond the last.
    #[error(
        "{from}=>{to} asks for wire {wire}, but a line has {wires} for each direction, \
         counted from 0"
    )]
    NoSuchWire { from: u32, to: u32, wire: u32, wires: u32 },
    /// Two pieces that overlap.
    #[error(
        "{from}=>{to} needs segment {segment} of {line}, wire {wire}, which \
         {other_from}=>{other_to} has"
    )]
    SegmentTaken {
        from: u32,
        to: u32,
        line: String,
        wire: u32,
        segment: u32,
        other_from: u32,
        other_to: u32,
    },
    /// A port that the mode does not let a piece take.
    #[error(
        "{from}=>{to} cannot take the {end} port {port} of node {node}: with muxes={muxes} \
         it takes {known}"
    )]
    WrongPort {
        from: u32,
        to: u32,
        node: u32,
        end: &'static str,
        port: &'static str,
        muxes: &'static str,
        known: String,
    },
    /// Two links at one port.
    #[error("{link} needs the {end} port {port} of node {node}, which {other} has")]
    PortTaken { link: String, node: u32, end: &'static str, port: &'static str, other: String },
    /// No assignment of the links of a node to its ports.
    #[error(
        "{link} finds no free {end} port at node {node}: with muxes={muxes} it could take {known}, \
         which are needed for {others}"
    )]
    NoPort {
        link: String,
        node: u32,
        end: &'static str,
        muxes: &'static str,
        known: String,
        others: String,
    },
}
