//! Distances: how many hops it is from anywhere to a vertex, and which links come nearer.
//!
//! What chooses the next link packet by packet asks here, where [`Routes`](super::Routes) has chosen
//! already. A row holds the hops from every vertex to one; rows are made when they are first asked for,
//! by whichever thread, and are the same whoever makes them. A vertex with a single neighbour, such as
//! an NPU on its switch, has no row and no place in one: its way goes through that neighbour. So a
//! dragonfly of 100,000 NPUs with 4 on a switch needs at most 25,000 rows of 25,000 bytes.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use super::anchors::Anchors;
use super::error::TopologyError;
use super::family::Family;
use super::graph::Topology;
use tutti_units::ids::{LinkId, VertexId};

/// More hops than any path has: there is none.
pub const UNREACHABLE: u32 = u32::MAX;

/// The hops of minimal paths, and the links that are on them.
pub struct Distances {
    topology: Arc<Topology>,
    /// The group of each vertex, where a path may have one link between groups and no more.
    groups: Option<Box<[u32]>>,
    anchors: Anchors,
    /// For each anchor, what is known of the ways to it.
    rows: Box<[OnceLock<Row>]>,
}

/// Hops by the place of an anchor; a byte each where that is enough, the largest value for no path.
enum Row {
    Narrow(Box<[u8]>),
    Wide(Box<[u32]>),
}

impl Row {
    #[inline]
    fn hops(&self, place: usize) -> u32 {
        match self {
            Row::Narrow(hops) if hops[place] == u8::MAX => UNREACHABLE,
            Row::Narrow(hops) => u32::from(hops[place]),
            Row::Wide(hops) => hops[place],
        }
    }

    fn new(hops: Vec<u32>) -> Row {
        let narrow = |&hops: &u32| match hops {
            UNREACHABLE => Some(u8::MAX),
            _ => u8::try_from(hops).ok().filter(|&hops| hops < u8::MAX),
        };
        match hops.iter().map(narrow).collect() {
            Some(hops) => Row::Narrow(hops),
            None => Row::Wide(hops.into()),
        }
    }
}

impl Distances {
    /// Counts the fewest hops over all links.
    #[must_use]
    pub fn fewest_hops(topology: Arc<Topology>) -> Distances {
        Distances::new(topology, None)
    }

    /// Counts the hops of what a dragonfly calls a minimal path: local, global, local; a second global
    /// link is never taken, even where it saves a hop.
    ///
    /// # Errors
    /// When the topology was not built as a dragonfly: elsewhere the fewest hops are minimal.
    pub fn one_global(topology: Arc<Topology>) -> Result<Distances, TopologyError> {
        let Some(dragonfly) = topology.family().and_then(Family::dragonfly) else {
            let topology = topology.name().to_owned();
            return Err(TopologyError::NotADragonfly { topology });
        };
        let groups = topology.vertices().map(|vertex| dragonfly.group_of(vertex)).collect();
        Ok(Distances::new(topology, Some(groups)))
    }

    fn new(topology: Arc<Topology>, groups: Option<Box<[u32]>>) -> Distances {
        let anchors = Anchors::new(&topology);
        let rows = std::iter::repeat_with(OnceLock::new).take(anchors.all().len()).collect();
        Distances { topology, groups, anchors, rows }
    }

    /// The topology they are for.
    #[must_use]
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// The neighbour through which a vertex is reached, such as an NPU's switch; itself where it has
    /// several.
    #[inline]
    #[must_use]
    pub fn anchor(&self, vertex: VertexId) -> VertexId {
        self.anchors.of(vertex)
    }

    /// What is known of the ways to one vertex; the first to ask makes its row.
    #[inline]
    #[must_use]
    pub fn to(&self, vertex: VertexId) -> Towards<'_> {
        let anchor = self.anchors.of(vertex);
        let row = &self.rows[self.anchors.place(anchor)];
        let row = row.get_or_init(|| self.row(anchor));
        Towards { distances: self, vertex, anchor, row }
    }

    /// The hops from one vertex to another; [`UNREACHABLE`] where there is no path.
    #[must_use]
    pub fn hops(&self, from: VertexId, to: VertexId) -> u32 {
        self.to(to).hops(from)
    }

    /// A breadth-first search against the direction of the links.
    #[cold]
    fn row(&self, destination: VertexId) -> Row {
        let mut hops = vec![UNREACHABLE; self.anchors.all().len()];
        hops[self.anchors.place(destination)] = 0;
        let mut queue = VecDeque::from([destination]);
        while let Some(at) = queue.pop_front() {
            let further = hops[self.anchors.place(at)] + 1;
            for &link in self.topology.links_in(at) {
                let from = self.topology.link_from(link);
                if let Some(slot) = hops.get_mut(self.anchors.place(from))
                    && *slot == UNREACHABLE
                    && self.allowed(from, at, destination)
                {
                    *slot = further;
                    queue.push_back(from);
                }
            }
        }
        Row::new(hops)
    }

    #[inline]
    fn allowed(&self, from: VertexId, to: VertexId, destination: VertexId) -> bool {
        let Some(groups) = &self.groups else { return true };
        // A link between groups is taken only into the last one, so no path has two.
        let there = groups[to.index()];
        there == groups[from.index()] || there == groups[destination.index()]
    }
}

/// The ways to one vertex.
#[derive(Clone, Copy)]
pub struct Towards<'a> {
    distances: &'a Distances,
    vertex: VertexId,
    anchor: VertexId,
    row: &'a Row,
}

impl<'a> Towards<'a> {
    /// The hops from a vertex; [`UNREACHABLE`] where there is no path.
    #[inline]
    #[must_use]
    pub fn hops(&self, at: VertexId) -> u32 {
        if at == self.vertex {
            return 0;
        }
        let anchors = &self.distances.anchors;
        let anchor = anchors.of(at);
        let between = self.row.hops(anchors.place(anchor));
        let ends = u32::from(anchor != at) + u32::from(self.anchor != self.vertex);
        between.saturating_add(ends)
    }

    /// The links over which a minimal path goes on from a vertex, ascending; none at the end, and where
    /// there is no path.
    pub fn links(&self, at: VertexId) -> impl Iterator<Item = LinkId> + use<'a> {
        let towards = *self;
        let distances = self.distances;
        let hops = self.hops(at);
        distances.topology.links_out(at).filter(move |&link| {
            let next = distances.topology.link_to(link);
            // No path has UNREACHABLE hops, and none has one less.
            towards.hops(next).checked_add(1) == Some(hops)
                && distances.allowed(at, next, towards.vertex)
        })
    }
}

impl std::fmt::Debug for Distances {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rule = if self.groups.is_some() { "at most one global link" } else { "fewest hops" };
        write!(f, "Distances({rule} on {:?})", self.topology)
    }
}

#[cfg(test)]
mod tests;
