//! Positions of nodes, and routes of packets.

use super::parts::{Cargo, Flit};
use crate::smart::settings::{Settings, Tree};

/// A port of a router.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Port {
    East,
    West,
    North,
    South,
    /// Its NIC.
    Local,
}

impl Port {
    /// All ports, in order.
    pub(super) const ALL: [Port; 5] =
        [Port::East, Port::West, Port::North, Port::South, Port::Local];

    /// The ports to other routers, in order.
    pub(super) const MESH: [Port; 4] = [Port::East, Port::West, Port::North, Port::South];

    /// The opposite port: the input at which a flit arrives that left by this output, and the
    /// reverse.
    pub(super) fn opposite(self) -> Port {
        match self {
            Port::East => Port::West,
            Port::West => Port::East,
            Port::North => Port::South,
            Port::South => Port::North,
            Port::Local => Port::Local,
        }
    }

    /// The direction to the left of this one.
    pub(super) fn left(self) -> Port {
        match self {
            Port::East => Port::North,
            Port::North => Port::West,
            Port::West => Port::South,
            Port::South => Port::East,
            Port::Local => Port::Local,
        }
    }

    /// Whether the port is along a row.
    pub(super) fn is_x(self) -> bool {
        matches!(self, Port::East | Port::West)
    }
}

/// A private tree: from a corner along an edge, and from there along every line across it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CornerTree {
    pub(super) corner: u32,
    pub(super) straight: Port,
    pub(super) turn: Port,
}

/// A rectangle of routers.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) columns: u32,
    pub(super) rows: u32,
    yx: bool,
    tree: Option<Tree>,
}

impl Grid {
    pub(super) fn new(settings: &Settings) -> Grid {
        let Settings { columns, rows, yx, .. } = *settings;
        Grid { columns, rows, yx, tree: settings.tree() }
    }

    pub(super) fn nodes(&self) -> u32 {
        self.columns * self.rows
    }

    pub(super) fn x(&self, node: u32) -> u32 {
        node % self.columns
    }

    pub(super) fn y(&self, node: u32) -> u32 {
        node / self.columns
    }

    fn at(&self, x: u32, y: u32) -> u32 {
        x + self.columns * y
    }

    /// The router that a port leads to.
    pub(super) fn next(&self, node: u32, port: Port) -> Option<u32> {
        let (x, y) = (self.x(node), self.y(node));
        match port {
            Port::East if x + 1 < self.columns => Some(self.at(x + 1, y)),
            Port::West if x > 0 => Some(self.at(x - 1, y)),
            Port::North if y + 1 < self.rows => Some(self.at(x, y + 1)),
            Port::South if y > 0 => Some(self.at(x, y - 1)),
            _ => None,
        }
    }

    /// The routers from a node (it is not among them) to the edge that a port leads to.
    pub(super) fn line(&self, node: u32, port: Port) -> Vec<u32> {
        std::iter::successors(self.next(node, port), |&node| self.next(node, port)).collect()
    }

    /// The output by which a packet to one node leaves a router.
    pub(super) fn output(&self, node: u32, to: u32) -> Port {
        let along_x = match self.x(to).cmp(&self.x(node)) {
            std::cmp::Ordering::Greater => Some(Port::East),
            std::cmp::Ordering::Less => Some(Port::West),
            std::cmp::Ordering::Equal => None,
        };
        let along_y = match self.y(to).cmp(&self.y(node)) {
            std::cmp::Ordering::Greater => Some(Port::North),
            std::cmp::Ordering::Less => Some(Port::South),
            std::cmp::Ordering::Equal => None,
        };
        let output = if self.yx { along_y.or(along_x) } else { along_x.or(along_y) };
        output.unwrap_or(Port::Local)
    }

    /// The routers on the route of a packet to one node, up to that node's.
    pub(super) fn route(&self, from: u32, to: u32) -> Vec<u32> {
        std::iter::successors(Some(from), |&node| self.next(node, self.output(node, to)))
            .skip(1)
            .collect()
    }

    /// The hops between two nodes.
    pub(super) fn hops(&self, from: u32, to: u32) -> u32 {
        self.x(from).abs_diff(self.x(to)) + self.y(from).abs_diff(self.y(to))
    }

    /// The node that a flit at a router is routed to; `None` on a tree.
    pub(super) fn heads_for(&self, flit: &Flit, node: u32) -> Option<u32> {
        match &flit.cargo {
            Cargo::Unicast { to } | Cargo::Response { to, .. } => Some(*to),
            Cargo::Multicast { .. } if self.is_to_corner(flit, node) => {
                Some(self.corner_tree(flit.source).corner)
            }
            Cargo::Multicast { .. } => None,
        }
    }

    /// Whether a multicast has not come to the corner where its private tree starts.
    pub(super) fn is_to_corner(&self, flit: &Flit, node: u32) -> bool {
        self.tree == Some(Tree::Private)
            && flit.stage == 0
            && node != self.corner_tree(flit.source).corner
    }

    /// The private tree of the corner nearest to a node.
    pub(super) fn corner_tree(&self, source: u32) -> CornerTree {
        let west = 2 * self.x(source) < self.columns;
        let south = 2 * self.y(source) < self.rows;
        let index = match (west, south) {
            (true, true) => 0,
            (false, true) => 1,
            (false, false) => 2,
            (true, false) => 3,
        };
        self.corner_trees()[index]
    }

    /// The four of them.
    pub(super) fn corner_trees(&self) -> [CornerTree; 4] {
        let (east, north) = (self.columns - 1, self.rows - 1);
        let tree = |corner, straight, turn| CornerTree { corner, straight, turn };
        [
            tree(self.at(0, 0), Port::East, Port::North),
            tree(self.at(east, 0), Port::North, Port::West),
            tree(self.at(east, north), Port::West, Port::South),
            tree(self.at(0, north), Port::South, Port::East),
        ]
    }

    /// The stage of a broadcast in which a flit is after it has left a router by an output.
    pub(super) fn stage_after(&self, flit: &Flit, node: u32, output: Port) -> usize {
        let on_tree = matches!(flit.cargo, Cargo::Multicast { .. });
        if !on_tree || self.tree != Some(Tree::Private) || self.is_to_corner(flit, node) {
            return flit.stage;
        }
        let tree = self.corner_tree(flit.source);
        if flit.stage < 2 && output == tree.straight { 1 } else { 2 }
    }

    /// The outputs that a flit requests when it comes to a router by an input (`Local`: it is
    /// injected), and stops there or leaves a copy.
    pub(super) fn mask(&self, flit: &Flit, node: u32, input: Port, stops: bool) -> Vec<Port> {
        if let Some(to) = self.heads_for(flit, node) {
            return vec![self.output(node, to)];
        }
        let straight_on = input.opposite();
        let mut mask = match self.tree {
            Some(Tree::Private) => self.mask_private(flit, straight_on, stops),
            _ => self.mask_shared(straight_on, stops),
        };
        mask.retain(|&port| self.next(node, port).is_some());
        let Cargo::Multicast { members } = &flit.cargo else { unreachable!("it is on a tree") };
        if members.contains(node) && node != flit.source {
            mask.push(Port::Local);
        }
        mask
    }

    fn mask_shared(&self, straight_on: Port, stops: bool) -> Vec<Port> {
        if straight_on == Port::Local {
            return Port::MESH.to_vec();
        }
        let spreads = straight_on.is_x() != self.yx;
        let expected = |port: &Port| {
            (spreads && port.is_x() != straight_on.is_x()) || (stops && *port == straight_on)
        };
        Port::MESH.into_iter().filter(expected).collect()
    }

    fn mask_private(&self, flit: &Flit, straight_on: Port, stops: bool) -> Vec<Port> {
        let tree = self.corner_tree(flit.source);
        let mut mask = match flit.stage {
            0 => return vec![tree.straight, tree.turn],
            1 => vec![tree.turn],
            _ => vec![],
        };
        if stops {
            mask.push(straight_on);
        }
        mask
    }
}
