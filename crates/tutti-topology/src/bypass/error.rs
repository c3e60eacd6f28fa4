//! Errors of bypass meshes and configurations.

/// Why a mesh or a configuration is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "BypassError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum BypassError {
    /// A mesh that is too small or too large.
    #[error("a mesh of {columns}x{rows} nodes; expected 2x2 to {most}x{most}")]
    WrongSide { columns: u32, rows: u32, most: u32 },
    /// More wires than the limit.
    #[error("{wires} bypass wires along each line; expected at most {most} for each direction")]
    TooManyWires { wires: u32, most: u32 },
    /// No multiplexer setting has that name.
    #[error("unknown muxes `{name}`; expected one of {known}")]
    UnknownMuxes { name: String, known: String },
    /// A link that cannot be parsed.
    #[error("found {found}; expected {expected}")]
    Malformed { found: String, expected: String },
    /// A configuration of another mesh.
    #[error("this is a configuration of {given}; expected one of {mesh}")]
    OtherMesh { given: String, mesh: String },
    /// A node number out of range.
    #[error("node {node} does not exist on {columns}x{rows}; expected at most {last}")]
    NoSuchNode { node: u32, columns: u32, rows: u32, last: u32 },
    /// A link from a node to itself.
    #[error("node {node} is linked to itself; expected two different nodes")]
    SameNode { node: u32 },
    /// A mesh link between nodes that are not neighbours.
    #[error(
        "node {from} and node {to} are not neighbours: a mesh link joins neighbours; \
         expected a bypass piece, `{from}=>{to}`, if they are in one row or column"
    )]
    NoNeighbours { from: u32, to: u32 },
    /// A piece whose ends are in different rows and columns.
    #[error(
        "node {from} and node {to} are in different rows and columns: a piece of a bypass \
         wire does not turn; expected one link to the corner and another from there"
    )]
    Aslant { from: u32, to: u32 },
    /// A wire number out of range.
    #[error(
        "{from}=>{to} requests wire {wire}, but a line has {wires} for each direction, \
         counted from 0"
    )]
    NoSuchWire { from: u32, to: u32, wire: u32, wires: u32 },
    /// Two pieces that overlap.
    #[error(
        "{from}=>{to} needs segment {segment} of {line}, wire {wire}, which \
         {other_from}=>{other_to} uses"
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
    /// A port that the multiplexers do not connect to the piece.
    #[error(
        "{from}=>{to} cannot use the {end} port {port} of node {node}: with muxes={muxes} \
         it can use {known}"
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
    #[error("{link} needs the {end} port {port} of node {node}, which {other} uses")]
    PortTaken { link: String, node: u32, end: &'static str, port: &'static str, other: String },
    /// No matching of the links of a node to its ports.
    #[error(
        "{link} has no free {end} port at node {node}: with muxes={muxes} it can use {known}, \
         which {others} need"
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
