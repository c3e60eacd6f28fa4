//! What is built: nodes in rows and columns, the wires beside them, and what a port can take.

use super::error::BypassError;

/// A side of a router, and so one of its network ports; also the direction in which a link that leaves by
/// it travels over the mesh.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, tutti_units::Named)]
pub enum Port {
    /// To the next column.
    East,
    /// To the column before.
    West,
    /// To the next row.
    South,
    /// To the row before.
    North,
}

impl Port {
    /// The other side: where what leaves by this one arrives.
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

    /// Whether it lies along a row.
    #[must_use]
    pub const fn is_horizontal(self) -> bool {
        matches!(self, Port::East | Port::West)
    }

    /// Its place in [`Port::ALL`].
    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// Which pieces of bypass wires the mux at a port can take; its own mesh link it always can.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, tutti_units::Named)]
pub enum Muxes {
    /// Those along its own axis that travel as its own mesh link does.
    Own,
    /// Those along its own axis, whichever way they travel.
    Axis,
    /// Those of either axis that travel with the sign of its own mesh link.
    Sign,
    /// Any.
    Any,
}

impl Muxes {
    /// The kind of that name.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<Muxes, BypassError> {
        Muxes::from_name(name).ok_or_else(|| BypassError::UnknownMuxes {
            name: name.to_owned(),
            known: Muxes::ALL.map(Muxes::name).join(", "),
        })
    }

    /// The output ports by which a piece that travels in `direction` may leave, its own first.
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

    /// The input ports at which it may arrive, its own first.
    #[must_use]
    pub fn inputs(self, direction: Port) -> Vec<Port> {
        self.outputs(direction).into_iter().map(Port::opposite).collect()
    }
}

/// A k x k mesh with bypass wires along its rows and columns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BypassMesh {
    side: u32,
    wires: u32,
    muxes: Muxes,
}

impl BypassMesh {
    /// The largest k.
    pub const LARGEST: u32 = 256;

    /// The most wires of a line in one direction.
    pub const MOST_WIRES: u32 = 64;

    /// `side` x `side` nodes, with `wires` bypass wires along each row and column for each direction.
    ///
    /// # Errors
    /// When it is too small or too large.
    pub fn new(side: u32, wires: u32, muxes: Muxes) -> Result<BypassMesh, BypassError> {
        if !(2..=BypassMesh::LARGEST).contains(&side) {
            return Err(BypassError::WrongSide { side, most: BypassMesh::LARGEST });
        }
        if wires > BypassMesh::MOST_WIRES {
            return Err(BypassError::TooManyWires { wires, most: BypassMesh::MOST_WIRES });
        }
        Ok(BypassMesh { side, wires, muxes })
    }

    /// The nodes of a row, and of a column.
    #[must_use]
    pub fn side(&self) -> u32 {
        self.side
    }

    /// The bypass wires of a line in each direction.
    #[must_use]
    pub fn wires(&self) -> u32 {
        self.wires
    }

    /// What its ports can take.
    #[must_use]
    pub fn muxes(&self) -> Muxes {
        self.muxes
    }

    /// How many nodes it has.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.side * self.side
    }

    /// Column and row of a node.
    #[must_use]
    pub fn place(&self, node: u32) -> (u32, u32) {
        (node % self.side, node / self.side)
    }

    /// Its neighbour on a side, which a node at the rim lacks.
    #[must_use]
    pub fn neighbour(&self, node: u32, port: Port) -> Option<u32> {
        let ((column, row), last) = (self.place(node), self.side - 1);
        match port {
            Port::East => (column < last).then(|| node + 1),
            Port::West => (column > 0).then(|| node - 1),
            Port::South => (row < last).then(|| node + self.side),
            Port::North => (row > 0).then(|| node - self.side),
        }
    }

    /// The direction from one node to another of its row or column, and how many segments away it is.
    #[must_use]
    pub fn way(&self, source: u32, destination: u32) -> Option<(Port, u32)> {
        let ((x, y), (to_x, to_y)) = (self.place(source), self.place(destination));
        match (x == to_x, y == to_y) {
            (false, true) if to_x > x => Some((Port::East, to_x - x)),
            (false, true) => Some((Port::West, x - to_x)),
            (true, false) if to_y > y => Some((Port::South, to_y - y)),
            (true, false) => Some((Port::North, y - to_y)),
            _ => None,
        }
    }

    /// Every mesh link: where from, in which direction, where to.
    pub fn mesh_links(&self) -> impl Iterator<Item = (u32, Port, u32)> + use<> {
        let mesh = *self;
        (0..mesh.nodes()).flat_map(move |node| {
            let next = move |port| Some((node, port, mesh.neighbour(node, port)?));
            Port::ALL.into_iter().filter_map(next)
        })
    }

    /// The links of the mesh.
    #[must_use]
    pub fn total_mesh_links(&self) -> u64 {
        4 * u64::from(self.side) * u64::from(self.side - 1)
    }

    /// The segments of all bypass wires.
    #[must_use]
    pub fn total_bypass_segments(&self) -> u64 {
        self.total_mesh_links() * u64::from(self.wires)
    }

    /// The argument of its family, but for the links: `4x4,wires=2,muxes=own`.
    #[must_use]
    pub fn notation(&self) -> String {
        let mut text = format!("{0}x{0}", self.side);
        if self.wires != 1 {
            text.push_str(&format!(",wires={}", self.wires));
        }
        if self.muxes != Muxes::Any {
            text.push_str(&format!(",muxes={}", self.muxes));
        }
        text
    }
}
