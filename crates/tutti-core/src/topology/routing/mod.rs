//! Routes: over which links a message travels from one rank to another.
//!
//! Every rule ends in the same thing: for a destination, the next link at each vertex (a row), or a
//! path per pair where the next link depends on where a message comes from. Rows are made when they are
//! first asked for, so a large graph costs only what is used of it; they may be made by several threads
//! at once and are the same whoever makes them.

mod dimension_order;
mod explicit;
mod shortest_path;
mod wires;

use std::sync::{Arc, OnceLock};

pub use explicit::Hop;
pub use wires::Wire;

use super::error::TopologyError;
use super::graph::Topology;
use crate::ids::{LinkId, RankId, VertexId};
use explicit::Paths;
use wires::WireRow;

/// The next link towards one destination, by vertex; [`NONE`] at the destination and where no message
/// to it passes.
type Row = Box<[u32]>;

/// No link.
const NONE: u32 = u32::MAX;

/// The routes between all ranks of a topology.
pub struct Routes {
    topology: Arc<Topology>,
    rule: Rule,
    rows: Box<[OnceLock<Row>]>,
    wires: Box<[OnceLock<WireRow>]>,
}

enum Rule {
    ShortestPath,
    DimensionOrder,
    Minimal,
    /// All rows are there from the beginning.
    NextHops,
    Paths(Paths),
}

impl Routes {
    /// The path with the fewest hops; among these the least latency, then the lowest link id at the
    /// first place where two differ.
    #[must_use]
    pub fn shortest_path(topology: Arc<Topology>) -> Routes {
        Routes::new(topology, Rule::ShortestPath)
    }

    /// In a mesh or torus: first along dimension 0, then 1, and so on; in a torus the shorter way
    /// round, and the ascending one where both are equally short.
    ///
    /// # Errors
    /// When the topology was not built as a mesh or torus.
    pub fn dimension_order(topology: Arc<Topology>) -> Result<Routes, TopologyError> {
        if topology.family().and_then(super::Family::grid).is_none() {
            return Err(TopologyError::NoDimensions { topology: topology.name().to_owned() });
        }
        Ok(Routes::new(topology, Rule::DimensionOrder))
    }

    /// In a dragonfly: the shortest of the paths with at most one global link. A path over two global
    /// links and a third group can have fewer hops, and is what [`Routes::shortest_path`] takes then.
    ///
    /// # Errors
    /// When the topology was not built as a dragonfly.
    pub fn minimal(topology: Arc<Topology>) -> Result<Routes, TopologyError> {
        if topology.family().and_then(super::Family::dragonfly).is_none() {
            return Err(TopologyError::NotADragonfly { topology: topology.name().to_owned() });
        }
        Ok(Routes::new(topology, Rule::Minimal))
    }

    /// Routes by a table: at a vertex, towards a rank, the next link.
    ///
    /// # Errors
    /// When an entry does not fit the topology, contradicts another, a pair of ranks has no route, or
    /// messages would go round in a loop.
    pub fn next_hops(
        topology: Arc<Topology>,
        hops: impl IntoIterator<Item = Hop>,
    ) -> Result<Routes, TopologyError> {
        let rows = explicit::rows(&topology, hops)?;
        let routes = Routes::new(topology, Rule::NextHops);
        for (slot, row) in routes.rows.iter().zip(rows) {
            slot.get_or_init(|| row);
        }
        Ok(routes)
    }

    /// Routes by a path for every pair of ranks.
    ///
    /// # Errors
    /// When a path does not fit the topology, visits a vertex twice, does not end at its destination,
    /// or a pair has none or two.
    pub fn paths(
        topology: Arc<Topology>,
        paths: impl IntoIterator<Item = (RankId, RankId, Vec<LinkId>)>,
    ) -> Result<Routes, TopologyError> {
        let paths = Paths::new(&topology, paths)?;
        Ok(Routes::new(topology, Rule::Paths(paths)))
    }

    fn new(topology: Arc<Topology>, rule: Rule) -> Routes {
        let npus = topology.npus() as usize;
        Routes {
            topology,
            rule,
            rows: std::iter::repeat_with(OnceLock::new).take(npus).collect(),
            wires: std::iter::repeat_with(OnceLock::new).take(npus).collect(),
        }
    }

    /// The topology they are for.
    #[must_use]
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// The links from one rank to another, in order; none from a rank to itself.
    ///
    /// # Errors
    /// When one of them is not a rank of the topology.
    pub fn path(&self, from: RankId, to: RankId) -> Result<Vec<LinkId>, TopologyError> {
        let (source, destination) = (self.vertex(from)?, self.vertex(to)?);
        if let Rule::Paths(paths) = &self.rule {
            return Ok(paths.path(from, to).to_vec());
        }
        let row = self.rows[to.index()].get_or_init(|| self.row(to));
        let mut links = Vec::new();
        let mut at = source;
        while at != destination {
            let link = LinkId(row[at.index()]);
            links.push(link);
            at = self.topology.link_to(link);
        }
        Ok(links)
    }

    /// The link that a message from one rank to another takes at `at`, having crossed `hops` links.
    ///
    /// # Panics
    /// When one of them is not a rank of the topology, or the message has no business there.
    #[inline]
    pub(crate) fn next_link(&self, from: RankId, to: RankId, at: VertexId, hops: usize) -> LinkId {
        match &self.rule {
            Rule::Paths(paths) => paths.path(from, to)[hops],
            _ => match self.rows[to.index()].get() {
                Some(row) => LinkId(row[at.index()]),
                None => LinkId(self.rows[to.index()].get_or_init(|| self.row(to))[at.index()]),
            },
        }
    }

    /// What the way from one rank to another comes to, from a cached row. This is what models without
    /// contention ask for every message.
    ///
    /// # Panics
    /// When one of them is not a rank of the topology: check [`Topology::npus`] first.
    #[inline]
    #[must_use]
    pub fn pair(&self, from: RankId, to: RankId) -> Wire {
        match self.wires[to.index()].get() {
            Some(row) => row.from(from),
            None => self.wires[to.index()].get_or_init(|| self.wire_row(to)).from(from),
        }
    }

    /// As [`Routes::pair`], for ranks that nobody has checked.
    ///
    /// # Errors
    /// When one of them is not a rank of the topology.
    pub fn try_pair(&self, from: RankId, to: RankId) -> Result<Wire, TopologyError> {
        self.vertex(from)?;
        self.vertex(to)?;
        Ok(self.pair(from, to))
    }

    #[cold]
    fn wire_row(&self, to: RankId) -> WireRow {
        match (&self.rule, self.rows[to.index()].get()) {
            (Rule::Paths(paths), _) => WireRow::from_paths(&self.topology, to, paths),
            (_, Some(row)) => WireRow::from_row(&self.topology, to, row),
            // The row itself is kept only once someone asks for a path.
            (_, None) => WireRow::from_row(&self.topology, to, &self.row(to)),
        }
    }

    #[cold]
    fn row(&self, to: RankId) -> Row {
        match &self.rule {
            Rule::ShortestPath => shortest_path::row(&self.topology, to),
            Rule::DimensionOrder => dimension_order::row(&self.topology, to),
            Rule::Minimal => shortest_path::minimal_row(&self.topology, to),
            Rule::NextHops | Rule::Paths(_) => Row::default(),
        }
    }

    fn vertex(&self, rank: RankId) -> Result<VertexId, TopologyError> {
        let last = self.topology.npus() - 1;
        self.topology.npu(rank).ok_or(TopologyError::UnknownRank { rank, last })
    }
}

impl std::fmt::Debug for Routes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rule = match self.rule {
            Rule::ShortestPath => "shortest path",
            Rule::DimensionOrder => "dimension order",
            Rule::Minimal => "minimal",
            Rule::NextHops => "next hops",
            Rule::Paths(_) => "explicit paths",
        };
        write!(f, "Routes({rule} on {:?})", self.topology)
    }
}

#[cfg(test)]
mod tests;
