//! The hardware: nodes in rows and columns, bypass wires along them, and multiplexers at the ports.

use super::error::BypassError;

/// A side of a router, hence one of its network ports, and the direction of a mesh link that leaves
/// by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, tutti_units::Named)]
pub enum Port {
    /// Towards the next column.
    East,
    /// Towards the previous column.
    West,
    /// Towards the next row.
    South,
    /// Towards the previous row.
    North,
}

impl Port {
    /// The opposite side, where a link that leaves by this one arrives.
    #[must_use]
    pub const fn opposite(self) -> Port {
        match self {
            Port::East => Port::West,
            Port::West => Port::East,
            Port::South => Port::North,
            Port::North => Port::South,
        }
    }

    /// The side of the other axis with the same sign.
    pub(super) const fn turned(self) -> Port {
        match self {
            Port::East => Port::South,
            Port::South => Port::East,
            Port::West => Port::North,
            Port::North => Port::West,
        }
    }

    /// Whether the side lies along a row.
    #[must_use]
    pub const fn is_horizontal(self) -> bool {
        matches!(self, Port::East | Port::West)
    }

    /// The index in [`Port::ALL`].
    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// The bypass pieces that the multiplexer of a port can select, in addition to the mesh link of the
/// port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, tutti_units::Named)]
pub enum Muxes {
    /// Pieces along the axis of the port, in the direction of its mesh link.
    Own,
    /// Pieces along the axis of the port, in either direction.
    Axis,
    /// Pieces of either axis with the sign of the mesh link.
    Sign,
    /// Any piece.
    Any,
}

impl Muxes {
    /// Returns the setting of that name.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn named(name: &str) -> Result<Muxes, BypassError> {
        Muxes::from_name(name).ok_or_else(|| BypassError::UnknownMuxes {
            name: name.to_owned(),
            known: Muxes::ALL.map(Muxes::name).join(", "),
        })
    }

    /// The output ports that a piece in `direction` can use; the port of that direction first.
    #[must_use]
    pub fn outputs(self, direction: Port) -> Vec<Port> {
        match self {
            Muxes::Own => vec![direction],
            Muxes::Axis => vec![direction, direction.opposite()],
            Muxes::Sign => vec![direction, direction.turned()],
            Muxes::Any => {
                let turned = direction.turned();
                vec![direction, direction.opposite(), turned, turned.opposite()]
            }
        }
    }

    /// The input ports that a piece in `direction` can use; the port opposite to that direction
    /// first.
    #[must_use]
    pub fn inputs(self, direction: Port) -> Vec<Port> {
        self.outputs(direction).into_iter().map(Port::opposite).collect()
    }
}

/// A mesh with bypass wires along its rows and columns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BypassMesh {
    columns: u32,
    rows: u32,
    wires: u32,
    muxes: Muxes,
}

impl BypassMesh {
    /// The most nodes in a row or column.
    pub const LARGEST: u32 = 256;

    /// The most wires of a line in one direction.
    pub const MOST_WIRES: u32 = 64;

    /// Creates `columns` x `rows` nodes with `wires` bypass wires per direction along each row and
    /// column.
    ///
    /// # Errors
    /// A side or the number of wires is out of range.
    pub fn new(
        columns: u32,
        rows: u32,
        wires: u32,
        muxes: Muxes,
    ) -> Result<BypassMesh, BypassError> {
        let known = 2..=BypassMesh::LARGEST;
        if !known.contains(&columns) || !known.contains(&rows) {
            return Err(BypassError::WrongSide { columns, rows, most: BypassMesh::LARGEST });
        }
        if wires > BypassMesh::MOST_WIRES {
            return Err(BypassError::TooManyWires { wires, most: BypassMesh::MOST_WIRES });
        }
        Ok(BypassMesh { columns, rows, wires, muxes })
    }

    /// The number of columns, hence of nodes in a row.
    #[must_use]
    pub fn columns(&self) -> u32 {
        self.columns
    }

    /// The number of rows, hence of nodes in a column.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// The number of bypass wires of a line in each direction.
    #[must_use]
    pub fn wires(&self) -> u32 {
        self.wires
    }

    /// The multiplexer setting of the ports.
    #[must_use]
    pub fn muxes(&self) -> Muxes {
        self.muxes
    }

    /// The number of nodes.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.columns * self.rows
    }

    /// The column and row of a node.
    #[must_use]
    pub fn place(&self, node: u32) -> (u32, u32) {
        (node % self.columns, node / self.columns)
    }

    /// The neighbour on a side; `None` at the edge of the mesh.
    #[must_use]
    pub fn neighbour(&self, node: u32, port: Port) -> Option<u32> {
        let (column, row) = self.place(node);
        match port {
            Port::East => (column + 1 < self.columns).then(|| node + 1),
            Port::West => (column > 0).then(|| node - 1),
            Port::South => (row + 1 < self.rows).then(|| node + self.columns),
            Port::North => (row > 0).then(|| node - self.columns),
        }
    }

    /// The direction and the number of segments between two nodes of one row or column.
    #[must_use]
    pub fn displacement(&self, source: u32, destination: u32) -> Option<(Port, u32)> {
        let ((x, y), (to_x, to_y)) = (self.place(source), self.place(destination));
        match (x == to_x, y == to_y) {
            (false, true) if to_x > x => Some((Port::East, to_x - x)),
            (false, true) => Some((Port::West, x - to_x)),
            (true, false) if to_y > y => Some((Port::South, to_y - y)),
            (true, false) => Some((Port::North, y - to_y)),
            _ => None,
        }
    }

    /// Every mesh link: source, direction, destination.
    pub fn mesh_links(&self) -> impl Iterator<Item = (u32, Port, u32)> + use<> {
        let mesh = *self;
        (0..mesh.nodes()).flat_map(move |node| {
            let next = move |port| Some((node, port, mesh.neighbour(node, port)?));
            Port::ALL.into_iter().filter_map(next)
        })
    }

    /// The number of mesh links.
    #[must_use]
    pub fn total_mesh_links(&self) -> u64 {
        let (columns, rows) = (u64::from(self.columns), u64::from(self.rows));
        2 * (rows * (columns - 1) + columns * (rows - 1))
    }

    /// The number of segments of all bypass wires.
    #[must_use]
    pub fn total_bypass_segments(&self) -> u64 {
        self.total_mesh_links() * u64::from(self.wires)
    }

    /// The argument of the family without the links, such as `4x4,wires=2,muxes=own`.
    #[must_use]
    pub fn notation(&self) -> String {
        let mut text = format!("{}x{}", self.columns, self.rows);
        if self.wires != 1 {
            text.push_str(&format!(",wires={}", self.wires));
        }
        if self.muxes != Muxes::Any {
            text.push_str(&format!(",muxes={}", self.muxes));
        }
        text
    }
}
