//! Positions of nodes, routes of packets, and the trees of multicasts.

use super::super::settings::{FanOut, Settings, Tree};

/// A port of a router; the order of ports everywhere.
pub(super) const EAST: usize = 0;
pub(super) const WEST: usize = 1;
pub(super) const NORTH: usize = 2;
pub(super) const SOUTH: usize = 3;
pub(super) const LOCAL: usize = 4;
/// Ports of a router.
pub(super) const PORTS: usize = 5;
/// The local port, as a bit of a mask of outputs.
pub(super) const TO_NIC: u8 = 1 << LOCAL;
/// No router.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The input at which a flit arrives that left by an output, and the reverse.
#[inline]
pub(super) fn opposite(port: usize) -> usize {
    port ^ 1
}

/// Whether a change of direction is a turn to the left.
pub(super) fn is_left_turn(before: usize, after: usize) -> bool {
    matches!((before, after), (EAST, NORTH) | (NORTH, WEST) | (WEST, SOUTH) | (SOUTH, EAST))
}

/// The straight and the turn direction of the tree of each corner: 00, 40, 44, 04.
const CORNERS: [(usize, usize); 4] = [(EAST, NORTH), (NORTH, WEST), (WEST, SOUTH), (SOUTH, EAST)];

/// By the [`side`]s of a node along x and along y: the output towards it, along x first and along y
/// first. A table, since these branches would be mispredicted.
const XY: [[u8; 3]; 3] = [[1, 1, 1], [3, 4, 2], [0, 0, 0]];
const YX: [[u8; 3]; 3] = [[3, 1, 2], [3, 4, 2], [3, 0, 2]];

/// Whether a coordinate is less than another, the same, or more: 0, 1, 2.
#[inline]
fn side(from: u32, to: u32) -> usize {
    usize::from(to >= from) + usize::from(to > from)
}

/// A mesh, and its trees.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    pub(super) columns: u32,
    pub(super) rows: u32,
    yx: bool,
    /// By the sides of a node along x and along y: the output towards it.
    outputs: [[u8; 3]; 3],
    pub(super) tree: Option<Tree>,
    pub(super) interval: Option<u64>,
    /// Cycles of each interval in which paths are preset.
    pub(super) preset_cycles: u64,
    reach: u32,
    /// By router and direction.
    neighbours: Vec<[u32; 4]>,
    /// By router and the direction in which a copy on a shared tree has come: where it turns to,
    /// and that and on.
    copies: Vec<[[u8; 2]; 4]>,
    /// By router.
    places: Vec<(u32, u32)>,
}

impl Geometry {
    pub(super) fn new(settings: &Settings) -> Geometry {
        let (columns, rows) = (settings.columns, settings.rows);
        let places: Vec<(u32, u32)> =
            (0..rows).flat_map(|y| (0..columns).map(move |x| (x, y))).collect();
        let adjacent = |&(x, y): &(u32, u32)| {
            let at =
                |x: u32, y: u32| if x < columns && y < rows { x + columns * y } else { NOWHERE };
            [at(x + 1, y), at(x.wrapping_sub(1), y), at(x, y + 1), at(x, y.wrapping_sub(1))]
        };
        let interval = match settings.fan_out {
            FanOut::Complete { interval } => Some(u64::from(interval)),
            _ => None,
        };
        let mut geometry = Geometry {
            columns,
            rows,
            yx: settings.yx,
            outputs: if settings.yx { YX } else { XY },
            tree: settings.tree(),
            interval,
            preset_cycles: u64::from(settings.preset_cycles()),
            reach: settings.hops_per_cycle,
            neighbours: places.iter().map(adjacent).collect(),
            copies: Vec::new(),
            places,
        };
        let copies = |router| {
            let copy = |direction, stops| geometry.shared_copy_of(router, direction, stops);
            std::array::from_fn(|direction| [copy(direction, false), copy(direction, true)])
        };
        geometry.copies = (0..settings.nodes()).map(copies).collect();
        geometry
    }

    #[inline]
    pub(super) fn neighbour(&self, router: u32, output: usize) -> u32 {
        self.neighbours[router as usize][output]
    }

    /// The output towards a node, and how many hops remain in that dimension; L and 0 at the node.
    #[inline]
    pub(super) fn towards(&self, router: u32, node: u32) -> (usize, u32) {
        let ((x, y), (to_x, to_y)) = (self.places[router as usize], self.places[node as usize]);
        let output = usize::from(self.outputs[side(x, to_x)][side(y, to_y)]);
        (output, if output < NORTH { x.abs_diff(to_x) } else { y.abs_diff(to_y) })
    }

    /// The router so many hops away in a direction, on the mesh.
    #[inline]
    pub(super) fn ahead(&self, router: u32, direction: usize, hops: u32) -> u32 {
        match direction {
            EAST => router + hops,
            WEST => router - hops,
            NORTH => router + hops * self.columns,
            _ => router - hops * self.columns,
        }
    }

    /// Hops to the edge in a direction.
    #[inline]
    pub(super) fn to_edge(&self, router: u32, output: usize) -> u32 {
        let (x, y) = self.places[router as usize];
        match output {
            EAST => self.columns - 1 - x,
            WEST => x,
            NORTH => self.rows - 1 - y,
            _ => y,
        }
    }

    /// The corner that multicasts of a node start at, of [`CORNERS`].
    pub(super) fn corner_of(&self, node: u32) -> u8 {
        let (x, y) = self.places[node as usize];
        match (2 * x < self.columns, 2 * y < self.rows) {
            (true, true) => 0,
            (false, true) => 1,
            (false, false) => 2,
            (true, false) => 3,
        }
    }

    /// The node of a corner.
    pub(super) fn corner_node(&self, corner: u8) -> u32 {
        let (right, top) = (self.columns - 1, self.columns * (self.rows - 1));
        [0, right, right + top, top][usize::from(corner)]
    }

    /// The straight and the turn direction of a corner's tree.
    #[inline]
    pub(super) fn straight_and_turn(corner: u8) -> (usize, usize) {
        CORNERS[usize::from(corner)]
    }

    /// The outputs of a multicast at the source of a shared tree.
    pub(super) fn shared_root(&self, node: u32) -> u8 {
        (0..4)
            .filter(|&output| self.neighbour(node, output) != NOWHERE)
            .fold(0, |mask, o| mask | 1 << o)
    }

    /// The outputs, but for L, of a copy on a shared tree that has come along a direction: where it
    /// turns to, and where it goes on if it was stopped.
    #[inline]
    pub(super) fn shared_copy(&self, router: u32, direction: usize, stopped: bool) -> u8 {
        self.copies[router as usize][direction][usize::from(stopped)]
    }

    fn shared_copy_of(&self, router: u32, direction: usize, stopped: bool) -> u8 {
        let on = if stopped { 1 << direction } else { 0 };
        let first = (direction < NORTH) != self.yx;
        let turns = match (first, direction < NORTH) {
            (false, _) => 0,
            (true, true) => 1 << NORTH | 1 << SOUTH,
            (true, false) => 1 << EAST | 1 << WEST,
        };
        (on | turns) & self.shared_root(router)
    }

    /// The outputs, but for L, of a copy on a corner's tree that has come along a direction.
    #[inline]
    pub(super) fn private_copy(
        &self,
        router: u32,
        corner: u8,
        direction: usize,
        stopped: bool,
    ) -> u8 {
        let (straight, turn) = CORNERS[usize::from(corner)];
        let goes_on = stopped && self.neighbour(router, direction) != NOWHERE;
        let on = if goes_on { 1 << direction } else { 0 };
        if direction == straight { on | 1 << turn } else { on }
    }

    /// The outputs by which a multicast that passes a router along a direction forks off.
    #[inline]
    pub(super) fn branches(&self, router: u32, corner: u8, direction: usize) -> u8 {
        match self.tree {
            Some(Tree::Private) => self.private_copy(router, corner, direction, false),
            _ => self.shared_copy(router, direction, false),
        }
    }

    /// The cycle of the interval, if paths are preset in some.
    #[inline]
    pub(super) fn phase(&self, cycle: u64) -> Option<u64> {
        self.interval.map(|interval| cycle % interval)
    }

    /// Whether ejection is blocked in a crossing cycle.
    #[inline]
    pub(super) fn blocks_ejection(&self, crossing: u64) -> bool {
        self.phase(crossing).is_some_and(|phase| phase < self.preset_cycles)
    }

    /// The inputs and outputs of a router that are reserved for preset paths in a crossing cycle.
    #[inline]
    pub(super) fn reserved(&self, router: u32, crossing: u64) -> (u8, u8) {
        match self.phase(crossing) {
            Some(phase) if phase < self.preset_cycles => {
                if phase == 0 && self.preset_cycles == 2 {
                    self.reserved_straight(router)
                } else {
                    (u8::MAX, u8::MAX)
                }
            }
            _ => (0, 0),
        }
    }

    /// The ports of the edges, in the direction of their straights; all inputs of corners.
    fn reserved_straight(&self, router: u32) -> (u8, u8) {
        let (mut inputs, mut outputs) = (0, 0);
        let (x, y) = self.places[router as usize];
        let edges = [y == 0, x == self.columns - 1, y == self.rows - 1, x == 0];
        for (corner, _) in (0..4).zip(edges).filter(|&(_, on)| on) {
            let (straight, _) = Geometry::straight_and_turn(corner);
            inputs |= 1 << opposite(straight);
            outputs |= 1 << straight;
            if self.corner_node(corner) == router {
                inputs = u8::MAX;
            }
        }
        (inputs, outputs)
    }

    /// Cycles by which a router is reached later than the nearest ones, at so many hops.
    pub(super) fn shift(&self, hops: u32) -> u64 {
        u64::from(hops.saturating_sub(1) / self.reach)
    }
}

/// The number of an input among those of all routers.
#[inline]
pub(super) fn input_of(router: u32, port: usize) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "five ports")]
    let port = port as u32;
    router * 5 + port
}

/// The router of an input.
#[inline]
pub(super) fn router_of(input: u32) -> u32 {
    input / 5
}

/// The port of an input.
#[inline]
pub(super) fn port_of(input: u32) -> usize {
    input as usize % PORTS
}
