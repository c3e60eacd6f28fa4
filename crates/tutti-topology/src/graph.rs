//! The sealed graph: vertices, unidirectional links and adjacency.
//!
//! Every crate uses this graph for a platform. Other graphs are derived from it, and their modules
//! state the reason: edges that are paths of several links, arcs of a flow, channels of a flit
//! network.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::family::Family;
use tutti_units::ids::{LinkId, RankId, VertexId};
use tutti_units::{Length, Time, TimePerByte};

/// The kind of a vertex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, tutti_units::Named)]
pub enum VertexKind {
    /// An endpoint that hosts a rank. It also forwards messages of other ranks if routes require
    /// it.
    Npu,
    /// An off-chip forwarding element.
    Switch,
    /// An on-chip forwarding element.
    Router,
}

/// The parameters of a link, ordered by time per byte, then latency, then length.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkParameters {
    /// The time per byte in the direction of the link.
    pub rate: TimePerByte,
    /// From the first bit in to the first bit out.
    pub latency: Time,
    /// The length, if known.
    pub length: Option<Length>,
}

impl LinkParameters {
    /// A link of unknown length.
    #[must_use]
    pub const fn new(rate: TimePerByte, latency: Time) -> LinkParameters {
        LinkParameters { rate, latency, length: None }
    }

    /// Returns a link `times` as long.
    pub(super) fn spanning(self, times: u64) -> LinkParameters {
        let stretched = |length: Length| Length::from_um(length.um().saturating_mul(times));
        LinkParameters {
            latency: self.latency.times(times),
            length: self.length.map(stretched),
            ..self
        }
    }
}

/// A link: source, destination and parameters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Link {
    /// The source.
    pub from: VertexId,
    /// The destination.
    pub to: VertexId,
    /// The parameters.
    pub parameters: LinkParameters,
}

/// An immutable graph of NPUs, switches and routers, joined by unidirectional links.
///
/// The NPUs are the vertices `0..npus`, and NPU r hosts rank r. Switches and routers follow. Links
/// are numbered by source, then destination, then fastest first, so ids do not depend on the order
/// of declaration.
#[derive(Clone)]
pub struct Topology {
    pub(super) name: String,
    pub(super) npus: u32,
    pub(super) kinds: Vec<VertexKind>,
    pub(super) names: Vec<String>,
    pub(super) from: Vec<VertexId>,
    pub(super) to: Vec<VertexId>,
    /// The index in `palette` of each link. Few links differ, so 4 bytes each suffice.
    pub(super) parameters: Vec<u32>,
    pub(super) palette: Vec<LinkParameters>,
    /// Links that leave vertex v: the ids `out_start[v]..out_start[v + 1]`.
    pub(super) out_start: Vec<u32>,
    /// Links that reach vertex v: `in_links[in_start[v]..in_start[v + 1]]`, ascending.
    pub(super) in_start: Vec<u32>,
    pub(super) in_links: Vec<LinkId>,
    pub(super) family: Option<Arc<dyn Family>>,
}

impl Topology {
    /// The name: the notation if it has one, otherwise the name given to the builder.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of NPUs, equal to the number of ranks.
    #[must_use]
    pub fn npus(&self) -> u32 {
        self.npus
    }

    /// The vertex that hosts `rank`.
    #[must_use]
    pub fn npu(&self, rank: RankId) -> Option<VertexId> {
        (rank.0 < self.npus).then_some(VertexId(rank.0))
    }

    /// The number of vertices.
    #[must_use]
    pub fn vertex_count(&self) -> usize {
        self.kinds.len()
    }

    /// All vertices, NPUs first.
    pub fn vertices(&self) -> impl ExactSizeIterator<Item = VertexId> + use<> {
        ids(0..self.kinds.len()).map(VertexId)
    }

    /// The kind of a vertex.
    #[must_use]
    pub fn kind(&self, vertex: VertexId) -> VertexKind {
        self.kinds[vertex.index()]
    }

    /// The name of a vertex.
    #[must_use]
    pub fn vertex_name(&self, vertex: VertexId) -> &str {
        &self.names[vertex.index()]
    }

    /// The number of links; a cable counts as two.
    #[must_use]
    pub fn link_count(&self) -> usize {
        self.from.len()
    }

    /// All link ids.
    pub fn links(&self) -> impl ExactSizeIterator<Item = LinkId> + use<> {
        ids(0..self.from.len()).map(LinkId)
    }

    /// A link with its endpoints and parameters.
    #[must_use]
    pub fn link(&self, link: LinkId) -> Link {
        Link {
            from: self.link_from(link),
            to: self.link_to(link),
            parameters: self.parameters(link),
        }
    }

    /// The source of a link.
    #[inline]
    #[must_use]
    pub fn link_from(&self, link: LinkId) -> VertexId {
        self.from[link.index()]
    }

    /// The destination of a link.
    #[inline]
    #[must_use]
    pub fn link_to(&self, link: LinkId) -> VertexId {
        self.to[link.index()]
    }

    /// The parameters of a link.
    #[inline]
    #[must_use]
    pub fn parameters(&self, link: LinkId) -> LinkParameters {
        self.palette[self.parameters[link.index()] as usize]
    }

    /// The links that leave a vertex, ascending.
    pub fn links_out(&self, vertex: VertexId) -> impl ExactSizeIterator<Item = LinkId> + use<> {
        (self.out_start[vertex.index()]..self.out_start[vertex.index() + 1]).map(LinkId)
    }

    /// The first link that leaves a vertex.
    #[inline]
    pub(super) fn first_out(&self, vertex: VertexId) -> LinkId {
        LinkId(self.out_start[vertex.index()])
    }

    /// The links that reach a vertex, ascending.
    #[must_use]
    pub fn links_in(&self, vertex: VertexId) -> &[LinkId] {
        let start = self.in_start[vertex.index()] as usize;
        &self.in_links[start..self.in_start[vertex.index() + 1] as usize]
    }

    /// The links from one vertex to another, fastest first; empty if they are not neighbours.
    pub fn links_between(&self, from: VertexId, to: VertexId) -> impl Iterator<Item = LinkId> + '_ {
        self.links_out(from).filter(move |&link| self.link_to(link) == to)
    }

    /// The family that built the topology, if any.
    #[must_use]
    pub fn family(&self) -> Option<&dyn Family> {
        self.family.as_deref()
    }
}

/// Topologies are equal if they have the same vertices and links, however they were built.
impl PartialEq for Topology {
    fn eq(&self, other: &Topology) -> bool {
        self.kinds == other.kinds
            && self.names == other.names
            && self.link_count() == other.link_count()
            && self.links().all(|link| self.link(link) == other.link(link))
    }
}

impl Eq for Topology {}

impl fmt::Debug for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Topology({}: {} NPUs, ", self.name, self.npus)?;
        write!(f, "{} vertices, {} links)", self.vertex_count(), self.link_count())
    }
}

/// The range in 32 bits; counts are bounded when a graph is sealed.
#[expect(clippy::cast_possible_truncation, reason = "bounded by MAX_VERTICES and MAX_LINKS")]
fn ids(range: Range<usize>) -> Range<u32> {
    range.start as u32..range.end as u32
}
