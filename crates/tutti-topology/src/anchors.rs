//! Anchors: a vertex with a single neighbour, such as an NPU on its switch, is reached through it.
//!
//! Tables then need no entry for the vertex itself, only for the neighbour, its anchor: a switch
//! with 32 NPUs takes one row instead of 33.

use super::graph::Topology;
use tutti_units::ids::VertexId;

/// The anchor of every vertex; a vertex with several neighbours is an anchor itself.
pub(super) struct Anchors {
    of: Box<[VertexId]>,
    /// The index of an anchor in rows; `u32::MAX` for other vertices.
    place: Box<[u32]>,
    all: Box<[VertexId]>,
}

impl Anchors {
    /// Finds the vertices with a single neighbour.
    pub(super) fn new(topology: &Topology) -> Anchors {
        let neighbour: Vec<Option<VertexId>> =
            topology.vertices().map(|vertex| only_neighbour(topology, vertex)).collect();
        let of = |vertex: VertexId| match neighbour[vertex.index()] {
            // Of two vertices that have only each other, the first is the anchor.
            Some(other) if neighbour[other.index()].is_none() || other < vertex => other,
            _ => vertex,
        };
        Anchors::from(topology, topology.vertices().map(of).collect())
    }

    /// Makes every vertex an anchor.
    pub(super) fn identity(topology: &Topology) -> Anchors {
        Anchors::from(topology, topology.vertices().collect())
    }

    fn from(topology: &Topology, of: Box<[VertexId]>) -> Anchors {
        let all: Box<[VertexId]> =
            topology.vertices().filter(|&vertex| of[vertex.index()] == vertex).collect();
        let mut place = vec![u32::MAX; of.len()].into_boxed_slice();
        for (index, vertex) in (0..).zip(&all) {
            place[vertex.index()] = index;
        }
        Anchors { of, place, all }
    }

    /// The anchor of a vertex.
    #[inline]
    pub(super) fn of(&self, vertex: VertexId) -> VertexId {
        self.of[vertex.index()]
    }

    /// The index of an anchor; beyond every row for other vertices.
    #[inline]
    pub(super) fn place(&self, anchor: VertexId) -> usize {
        self.place[anchor.index()] as usize
    }

    /// All anchors, by index.
    pub(super) fn all(&self) -> &[VertexId] {
        &self.all
    }
}

/// The only vertex that a vertex has links to and from, if there is exactly one.
fn only_neighbour(topology: &Topology, vertex: VertexId) -> Option<VertexId> {
    let mut to = topology.links_out(vertex).map(|link| topology.link_to(link));
    let mut from = topology.links_in(vertex).iter().map(|&link| topology.link_from(link));
    let one = to.next()?;
    let both = from.next() == Some(one);
    (both && to.chain(from).all(|other| other == one)).then_some(one)
}
