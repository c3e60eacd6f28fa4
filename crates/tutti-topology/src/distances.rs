//! Distances in hops to a vertex, and the links on minimal paths to it.
//!
//! Adaptive routing, which chooses the next link per packet, uses this instead of
//! [`Routes`](super::Routes). A row holds the hops from every vertex to one destination. Rows are
//! built on first use by any thread; the result does not depend on the thread. A vertex with a
//! single neighbour, such as an NPU on its switch, has no row and no index in rows, because its
//! paths use that neighbour. So a dragonfly of 100,000 NPUs with 4 on a switch needs at most 25,000
//! rows of 25,000 bytes.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use super::anchors::Anchors;
use super::error::TopologyError;
use super::family::Family;
use super::graph::Topology;
use tutti_units::ids::{LinkId, VertexId};

/// The distance without a path.
pub const UNREACHABLE: u32 = u32::MAX;

/// The hops of minimal paths and the links on them.
pub struct Distances {
    topology: Arc<Topology>,
    /// The group of each vertex, if a path may have at most one link between groups.
    groups: Option<Box<[u32]>>,
    anchors: Anchors,
    /// The distances to each anchor.
    rows: Box<[OnceLock<Row>]>,
}

/// Hops by the index of an anchor, in bytes if they fit; the largest value means no path.
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
    /// Returns distances over all links.
    #[must_use]
    pub fn fewest_hops(topology: Arc<Topology>) -> Distances {
        Distances::new(topology, None)
    }

    /// Returns distances over minimal paths of a dragonfly: local, global, local. A second global
    /// link is excluded, even if it saves a hop.
    ///
    /// # Errors
    /// The topology was not built as a dragonfly.
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

    /// The topology.
    #[must_use]
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// The anchor of a vertex: its only neighbour, such as an NPU's switch, or the vertex itself.
    #[inline]
    #[must_use]
    pub fn anchor(&self, vertex: VertexId) -> VertexId {
        self.anchors.of(vertex)
    }

    /// The distances to one vertex; the first call builds the row.
    #[inline]
    #[must_use]
    pub fn to(&self, vertex: VertexId) -> Towards<'_> {
        let anchor = self.anchors.of(vertex);
        let row = &self.rows[self.anchors.place(anchor)];
        let row = row.get_or_init(|| self.row(anchor));
        Towards { distances: self, vertex, anchor, row }
    }

    /// The hops from one vertex to another, or [`UNREACHABLE`].
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
        // Only links into the destination group are allowed between groups, so no path has two.
        let there = groups[to.index()];
        there == groups[from.index()] || there == groups[destination.index()]
    }
}

/// The distances and minimal paths to one vertex.
#[derive(Clone, Copy)]
pub struct Towards<'a> {
    distances: &'a Distances,
    vertex: VertexId,
    anchor: VertexId,
    row: &'a Row,
}

impl<'a> Towards<'a> {
    /// The hops from a vertex, or [`UNREACHABLE`].
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

    /// The links out of a vertex that are on minimal paths, ascending; empty at the destination and
    /// for unreachable vertices.
    pub fn links(&self, at: VertexId) -> impl Iterator<Item = LinkId> + use<'a> {
        let towards = *self;
        let distances = self.distances;
        let hops = self.hops(at);
        distances.topology.links_out(at).filter(move |&link| {
            let next = distances.topology.link_to(link);
            // `UNREACHABLE` never equals the hops of a link plus one.
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
