//! The sealed graph: vertices, one-directional links, and who is next to whom.
//!
//! This is the graph of a platform for every crate. What differs from it is derived from it and states why in its
//! module: edges that are paths of several links, arcs of a flow, channels of a flit network.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::family::Family;
use tutti_units::ids::{LinkId, RankId, VertexId};
use tutti_units::{Length, Time, TimePerByte};

/// What a vertex is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, tutti_units::Named)]
pub enum VertexKind {
    /// An endpoint that hosts a rank. It also forwards messages of others, where routes say so.
    Npu,
    /// An off-chip forwarding element.
    Switch,
    /// An on-chip forwarding element.
    Router,
}

/// What a link is like. Ordered by time per byte, then latency, then length.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkParameters {
    /// The inverse of its rate, in the one direction it has.
    pub rate: TimePerByte,
    /// From the first bit in to the first bit out.
    pub latency: Time,
    /// Where it is known.
    pub length: Option<Length>,
}

impl LinkParameters {
    /// A link of unknown length.
    #[must_use]
    pub const fn new(rate: TimePerByte, latency: Time) -> LinkParameters {
        LinkParameters { rate, latency, length: None }
    }

    /// A link that is so many times as long.
    pub(super) fn spanning(self, times: u64) -> LinkParameters {
        let stretched = |length: Length| Length::from_um(length.um().saturating_mul(times));
        LinkParameters {
            latency: self.latency.times(times),
            length: self.length.map(stretched),
            ..self
        }
    }
}

/// One link: where from, where to, and what it is like.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Link {
    /// Where it starts.
    pub from: VertexId,
    /// Where it ends.
    pub to: VertexId,
    /// What it is like.
    pub parameters: LinkParameters,
}

/// An immutable graph of NPUs, switches and routers, joined by one-directional links.
///
/// The NPUs are the vertices `0..npus`, and NPU r hosts rank r; switches and routers follow. Link ids
/// do not depend on the order in which links were declared: links are numbered by where they start,
/// where they end, then fastest first.
#[derive(Clone)]
pub struct Topology {
    pub(super) name: String,
    pub(super) npus: u32,
    pub(super) kinds: Vec<VertexKind>,
    pub(super) names: Vec<String>,
    pub(super) from: Vec<VertexId>,
    pub(super) to: Vec<VertexId>,
    /// Which of `palette` a link is like: few links differ, so 4 bytes each are enough.
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
    /// What it is called: its notation if it has one, else the name its builder was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many NPUs, hence ranks, there are.
    #[must_use]
    pub fn npus(&self) -> u32 {
        self.npus
    }

    /// The vertex that hosts `rank`, if there is one.
    #[must_use]
    pub fn npu(&self, rank: RankId) -> Option<VertexId> {
        (rank.0 < self.npus).then_some(VertexId(rank.0))
    }

    /// How many vertices there are.
    #[must_use]
    pub fn vertex_count(&self) -> usize {
        self.kinds.len()
    }

    /// All vertices, NPUs first.
    pub fn vertices(&self) -> impl ExactSizeIterator<Item = VertexId> + use<> {
        ids(0..self.kinds.len()).map(VertexId)
    }

    /// What a vertex is.
    #[must_use]
    pub fn kind(&self, vertex: VertexId) -> VertexKind {
        self.kinds[vertex.index()]
    }

    /// What a vertex is called.
    #[must_use]
    pub fn vertex_name(&self, vertex: VertexId) -> &str {
        &self.names[vertex.index()]
    }

    /// How many links there are; a cable counts as two.
    #[must_use]
    pub fn link_count(&self) -> usize {
        self.from.len()
    }

    /// All link ids.
    pub fn links(&self) -> impl ExactSizeIterator<Item = LinkId> + use<> {
        ids(0..self.from.len()).map(LinkId)
    }

    /// A link with all that is known of it.
    #[must_use]
    pub fn link(&self, link: LinkId) -> Link {
        Link {
            from: self.link_from(link),
            to: self.link_to(link),
            parameters: self.parameters(link),
        }
    }

    /// Where a link starts.
    #[inline]
    #[must_use]
    pub fn link_from(&self, link: LinkId) -> VertexId {
        self.from[link.index()]
    }

    /// Where a link ends.
    #[inline]
    #[must_use]
    pub fn link_to(&self, link: LinkId) -> VertexId {
        self.to[link.index()]
    }

    /// What a link is like.
    #[inline]
    #[must_use]
    pub fn parameters(&self, link: LinkId) -> LinkParameters {
        self.palette[self.parameters[link.index()] as usize]
    }

    /// The links that leave a vertex, ascending.
    pub fn links_out(&self, vertex: VertexId) -> impl ExactSizeIterator<Item = LinkId> + use<> {
        (self.out_start[vertex.index()]..self.out_start[vertex.index() + 1]).map(LinkId)
    }

    /// The first link that leaves a vertex, if one does.
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

    /// The links from one vertex to another, fastest first; none when they are no neighbours.
    pub fn links_between(&self, from: VertexId, to: VertexId) -> impl Iterator<Item = LinkId> + '_ {
        self.links_out(from).filter(move |&link| self.link_to(link) == to)
    }

    /// The family it was built from, if it was.
    #[must_use]
    pub fn family(&self) -> Option<&dyn Family> {
        self.family.as_deref()
    }
}

/// Two topologies are equal when they have the same vertices and links, however they were built.
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

/// The same range in 32 bits; counts are bounded when a graph is sealed.
#[expect(clippy::cast_possible_truncation, reason = "bounded by MAX_VERTICES and MAX_LINKS")]
fn ids(range: Range<usize>) -> Range<u32> {
    range.start as u32..range.end as u32
}
