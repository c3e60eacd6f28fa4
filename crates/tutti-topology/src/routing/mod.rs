//! Routes: the links of the path from one rank to another.
//!
//! Most rules produce a row per destination: the next link at each vertex. Rows are built on first
//! use, so a large graph costs only what is used of it. Several threads may build rows
//! concurrently; the result does not depend on the thread. Where the rule allows it, rows cover
//! anchors only, and an NPU with a single neighbour adds the link to it at either end. D-mod-K and
//! ECMP store no rows and compute each path on demand.

mod bundles;
mod d_mod_k;
mod dimension_order;
mod ecmp;
mod ends;
mod explicit;
mod node_paths;
mod ports;
mod shortest_path;
mod wires;

use std::sync::{Arc, OnceLock};

pub use explicit::Hop;
pub use wires::Wire;

use super::anchors::Anchors;
use super::components;
use super::error::TopologyError;
use super::graph::{LinkParameters, Topology};
use bundles::Bundles;
use ecmp::Ecmp;
use ends::Ends;
use explicit::Paths;
use node_paths::NodePaths;
use ports::Ports;
use tutti_units::ids::{LinkId, RankId, VertexId};
use wires::WireRow;

/// The next link towards one destination, by the index of an anchor; [`NONE`] at the destination
/// and at vertices that no message to it visits.
type Row = Box<[u32]>;

/// No link.
const NONE: u32 = u32::MAX;

/// The routes between all ranks of a topology.
pub struct Routes {
    topology: Arc<Topology>,
    rule: Rule,
    anchors: Anchors,
    ends: Ends,
    /// By the index of an anchor; empty for rules that compute paths on demand.
    rows: Box<[OnceLock<Ports>]>,
    wires: Box<[OnceLock<WireRow>]>,
    /// Parallel links, for rules that share them.
    bundles: Option<Bundles>,
    /// Whether some ranks cannot reach others.
    has_unreachable_pairs: bool,
}

enum Rule {
    ShortestPath,
    DimensionOrder,
    Minimal,
    DModK,
    Ecmp(Ecmp),
    /// All rows are filled on construction.
    NextHops,
    Paths(Paths),
    /// Explicit paths for some pairs, shortest paths for the others.
    NodePaths(NodePaths),
}

impl Routes {
    /// Returns shortest paths: the fewest hops, then the least latency, then the lowest link id at
    /// the first difference.
    #[must_use]
    pub fn shortest_path(topology: Arc<Topology>) -> Routes {
        Routes::new(topology, Rule::ShortestPath)
    }

    /// Returns dimension-order routes: dimension 0 first, then 1, and so on, among NPUs or their
    /// routers.
    ///
    /// A torus uses the shorter direction, and the ascending one if both are equal. Express links
    /// are used if the destination is at least as far along the row.
    ///
    /// # Errors
    /// The topology was not built by a family with dimensions.
    pub fn dimension_order(topology: Arc<Topology>) -> Result<Routes, TopologyError> {
        if topology.family().and_then(super::Family::dimensions).is_none() {
            return Err(TopologyError::NoDimensions { topology: topology.name().to_owned() });
        }
        Ok(Routes::new(topology, Rule::DimensionOrder))
    }

    /// Returns minimal routes of a dragonfly: the shortest of the paths with at most one global
    /// link.
    ///
    /// A path over two global links and a third group can have fewer hops;
    /// [`Routes::shortest_path`] uses it.
    ///
    /// # Errors
    /// The topology was not built as a dragonfly.
    pub fn minimal(topology: Arc<Topology>) -> Result<Routes, TopologyError> {
        if topology.family().and_then(super::Family::dragonfly).is_none() {
            return Err(TopologyError::NotADragonfly { topology: topology.name().to_owned() });
        }
        Ok(Routes::new(topology, Rule::Minimal))
    }

    /// Returns D-mod-K routes of a fat tree (Zahavi 2010): up by the digits of the destination,
    /// which spreads consecutive destinations over different links, and down the unique path.
    ///
    /// # Errors
    /// The topology was not built as a fat tree.
    pub fn d_mod_k(topology: Arc<Topology>) -> Result<Routes, TopologyError> {
        if topology.family().and_then(super::Family::fat_tree).is_none() {
            return Err(TopologyError::NotAFatTree { topology: topology.name().to_owned() });
        }
        Ok(Routes::new(topology, Rule::DModK))
    }

    /// Returns ECMP routes: at every vertex, a hash of source, destination, vertex and `seed`
    /// selects one of the links on paths with the fewest hops. All messages of a pair take the same
    /// path.
    #[must_use]
    pub fn ecmp(topology: Arc<Topology>, seed: u64) -> Routes {
        let rule = Rule::Ecmp(Ecmp::new(Arc::clone(&topology), seed));
        Routes::new(topology, rule)
    }

    /// Returns routes from a table of next links, by vertex and destination.
    ///
    /// # Errors
    /// An entry does not fit the topology or contradicts another, a pair of ranks has no route, or
    /// messages would loop.
    pub fn next_hops(
        topology: Arc<Topology>,
        hops: impl IntoIterator<Item = Hop>,
    ) -> Result<Routes, TopologyError> {
        let rows = explicit::rows(&topology, hops)?;
        let routes = Routes::new(topology, Rule::NextHops);
        for (slot, row) in routes.rows.iter().zip(rows) {
            slot.get_or_init(|| Ports::of(&routes.topology, &routes.anchors, row));
        }
        Ok(routes)
    }

    /// Returns routes from a path for every pair of ranks.
    ///
    /// # Errors
    /// A path does not fit the topology, visits a vertex twice or does not end at its destination,
    /// or a pair has none or two.
    pub fn paths(
        topology: Arc<Topology>,
        paths: impl IntoIterator<Item = (RankId, RankId, Vec<LinkId>)>,
    ) -> Result<Routes, TopologyError> {
        let paths = Paths::new(&topology, paths)?;
        Ok(Routes::new(topology, Rule::Paths(paths)))
    }

    /// Returns routes from explicit paths for some pairs of ranks, each as the NPUs from source to
    /// destination. Other pairs take shortest paths. Parallel links form a bundle, which is shared.
    ///
    /// # Errors
    /// A path does not fit the topology or its endpoints, visits an NPU twice, or a pair has two.
    pub fn node_paths(
        topology: Arc<Topology>,
        paths: impl IntoIterator<Item = (RankId, RankId, Vec<RankId>)>,
    ) -> Result<Routes, TopologyError> {
        let paths = NodePaths::new(&topology, paths)?;
        Ok(Routes::new(topology, Rule::NodePaths(paths)))
    }

    fn new(topology: Arc<Topology>, rule: Rule) -> Routes {
        let family = topology.family();
        let partial = family.is_some_and(super::Family::may_be_disconnected);
        let bundled = match rule {
            Rule::NodePaths(_) => true,
            Rule::ShortestPath => family.is_some_and(super::Family::shares_bundles),
            _ => false,
        };
        let on_npus = || topology.family().and_then(super::Family::grid).is_some();
        let anchors = match rule {
            // An anchor has one link to its vertex, regardless of parallel links.
            _ if bundled => Anchors::identity(&topology),
            Rule::ShortestPath | Rule::Minimal => Anchors::new(&topology),
            Rule::DimensionOrder if !on_npus() => Anchors::new(&topology),
            // A table may contain any vertex, and the dimensions of a grid are those of NPUs.
            _ => Anchors::identity(&topology),
        };
        let rows = match rule {
            Rule::DModK | Rule::Ecmp(_) => 0,
            _ => anchors.all().len(),
        };
        Routes {
            ends: Ends::new(&topology, &anchors),
            bundles: bundled.then(|| Bundles::in_graph(&topology)),
            has_unreachable_pairs: partial && components::unreachable_pair(&topology).is_some(),
            topology,
            rule,
            anchors,
            rows: std::iter::repeat_with(OnceLock::new).take(rows).collect(),
            wires: std::iter::repeat_with(OnceLock::new).take(rows).collect(),
        }
    }

    /// The topology.
    #[must_use]
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// The links from one rank to another, in order; the first link of each bundle. Empty from a
    /// rank to itself.
    ///
    /// # Errors
    /// An argument is not a rank of the topology, or no path exists.
    pub fn path(&self, from: RankId, to: RankId) -> Result<Vec<LinkId>, TopologyError> {
        self.check(from, to)?;
        if let Some(path) = self.listed_path(from, to) {
            return Ok(path.to_vec());
        }
        Ok(match &self.rule {
            _ if from == to => Vec::new(),
            Rule::Paths(paths) => paths.path(from, to).to_vec(),
            Rule::DModK | Rule::Ecmp(_) => self.walk(from, to).collect(),
            _ => self.by_row(from, to),
        })
    }

    /// The explicit path of a pair.
    #[inline]
    fn listed_path(&self, from: RankId, to: RankId) -> Option<&[LinkId]> {
        let Rule::NodePaths(paths) = &self.rule else { return None };
        paths.path(from, to)
    }

    /// Whether some ranks cannot reach others.
    #[must_use]
    pub fn has_unreachable_pairs(&self) -> bool {
        self.has_unreachable_pairs
    }

    /// Whether a path exists from one rank to another.
    ///
    /// # Panics
    /// An argument is not a rank of the topology.
    #[must_use]
    pub fn reach(&self, from: RankId, to: RankId) -> bool {
        if !self.has_unreachable_pairs || from == to || self.listed_path(from, to).is_some() {
            return true;
        }
        match &self.rule {
            Rule::Ecmp(ecmp) => ecmp.next(VertexId(from.0), from, to).is_some(),
            Rule::ShortestPath | Rule::NodePaths(_) => {
                let source = VertexId(from.0);
                self.next_by_row(from, to, source).is_some_and(|link| link != LinkId(NONE))
            }
            // Their tables have an entry for every pair.
            _ => true,
        }
    }

    /// Whether packets choose among the links of a bundle.
    #[inline]
    pub fn share_bundles(&self) -> bool {
        self.bundles.is_some()
    }

    /// The parallel links of this one, itself included, if routes share bundles; otherwise the link
    /// alone.
    #[inline]
    pub fn bundle(&self, link: LinkId) -> impl ExactSizeIterator<Item = LinkId> + use<> {
        let alone = link.0..link.0 + 1;
        self.bundles.as_ref().map_or(alone, |bundles| bundles.of(link)).map(LinkId)
    }

    /// The parameters of a link, or of the bundle that it represents.
    #[inline]
    pub fn parameters(&self, link: LinkId) -> LinkParameters {
        let alone = || self.topology.parameters(link);
        self.bundles.as_ref().map_or_else(alone, |bundles| bundles.parameters(link))
    }

    /// Follows a row from anchor to anchor and adds the links at both ends.
    fn by_row(&self, from: RankId, to: RankId) -> Vec<LinkId> {
        let destination = self.anchors.of(VertexId(to.0));
        let place = self.anchors.place(destination);
        let row = self.rows[place].get_or_init(|| self.ports(destination));
        let mut links: Vec<LinkId> = self.ends.up(from).into_iter().collect();
        let mut at = self.anchors.of(VertexId(from.0));
        while at != destination {
            let next = row.next(&self.topology, at, self.anchors.place(at));
            let link = next.unwrap_or(LinkId(NONE));
            links.push(link);
            at = self.topology.link_to(link);
        }
        links.extend(self.ends.down(to));
        links
    }

    /// Whether messages to one rank may take different links at the same vertex.
    pub fn depend_on_source(&self) -> bool {
        matches!(self.rule, Rule::Paths(_) | Rule::Ecmp(_) | Rule::NodePaths(_))
    }

    /// The next link at `at` of a message that has crossed `hops` links. The result is valid only
    /// at vertices of its path.
    ///
    /// # Panics
    /// An argument is not a rank of the topology, or `at` is not on the path.
    #[inline]
    pub fn next_link(&self, from: RankId, to: RankId, at: VertexId, hops: usize) -> LinkId {
        let link = match &self.rule {
            Rule::Paths(paths) => Some(paths.path(from, to)[hops]),
            Rule::DModK | Rule::Ecmp(_) => self.chosen(from, to, at),
            Rule::NodePaths(listed) => match listed.path(from, to) {
                Some(path) => path.get(hops).copied(),
                None => self.next_by_row(from, to, at),
            },
            _ => self.next_by_row(from, to, at),
        };
        link.unwrap_or(LinkId(NONE))
    }

    #[inline]
    fn next_by_row(&self, from: RankId, to: RankId, at: VertexId) -> Option<LinkId> {
        let destination = self.anchors.of(VertexId(to.0));
        if at == destination {
            return self.ends.down(to);
        }
        let slot = &self.rows[self.anchors.place(destination)];
        let row = match slot.get() {
            Some(row) => row,
            None => slot.get_or_init(|| self.ports(destination)),
        };
        // Vertices other than anchors have no index in rows: the message is still at its NPU.
        row.next(&self.topology, at, self.anchors.place(at)).or_else(|| self.ends.up(from))
    }

    /// Computes the path link by link.
    fn walk(&self, from: RankId, to: RankId) -> impl Iterator<Item = LinkId> + '_ {
        let mut at = VertexId(from.0);
        std::iter::from_fn(move || {
            let link = self.chosen(from, to, at)?;
            at = self.topology.link_to(link);
            Some(link)
        })
    }

    fn chosen(&self, from: RankId, to: RankId, at: VertexId) -> Option<LinkId> {
        match &self.rule {
            Rule::Ecmp(ecmp) => ecmp.next(at, from, to),
            _ => d_mod_k::next(&self.topology, at, to),
        }
    }

    /// The contention-free latency, rate and hops from one rank to another, mostly from a cached
    /// row. Contention-free models use this for every message.
    ///
    /// # Panics
    /// An argument is not a rank of the topology: check [`Topology::npus`] first.
    #[inline]
    #[must_use]
    pub fn pair(&self, from: RankId, to: RankId) -> Wire {
        assert!(
            from.max(to).0 < self.topology.npus(),
            "{} has no {from} or {to}",
            self.topology.name()
        );
        if from == to {
            return Wire::NOWHERE;
        }
        if let Some(path) = self.listed_path(from, to) {
            return self.wire(Wire::NOWHERE, path.iter().copied());
        }
        let destination = self.anchors.of(VertexId(to.0));
        let Some(slot) = self.wires.get(self.anchors.place(destination)) else {
            return self.wire(Wire::NOWHERE, self.walk(from, to));
        };
        let row = match slot.get() {
            Some(row) => row,
            None => slot.get_or_init(|| self.wire_row(destination)),
        };
        let source = self.anchors.of(VertexId(from.0));
        let between = row.from(self.anchors.place(source));
        self.wire(between, self.ends.up(from).into_iter().chain(self.ends.down(to)))
    }

    /// Returns a wire extended by links.
    #[inline]
    fn wire(&self, wire: Wire, links: impl Iterator<Item = LinkId>) -> Wire {
        links.fold(wire, |wire, link| wire.and(self.parameters(link)))
    }

    /// As [`Routes::pair`], for unchecked ranks.
    ///
    /// # Errors
    /// An argument is not a rank of the topology, or no path exists.
    pub fn try_pair(&self, from: RankId, to: RankId) -> Result<Wire, TopologyError> {
        self.check(from, to)?;
        Ok(self.pair(from, to))
    }

    #[cold]
    fn wire_row(&self, to: VertexId) -> WireRow {
        // Only anchors of NPUs are needed. If all NPUs are anchors, they come first; the entries of
        // an explicit table for other vertices may loop.
        let npus = self.topology.npus() as usize;
        let sources = if self.ends.are_none() { npus } else { self.anchors.all().len() };
        let parameters = |link| (self.topology.link_to(link), self.parameters(link));
        let from_row = |row| WireRow::from_row(parameters, &self.anchors, sources, to, row);
        match (&self.rule, self.rows[self.anchors.place(to)].get()) {
            (Rule::Paths(paths), _) => WireRow::from_paths(&self.topology, RankId(to.0), paths),
            (_, Some(row)) => from_row(&row.row(&self.topology, &self.anchors)),
            // The row itself is cached only when a path is requested.
            (_, None) => from_row(&self.row(to)),
        }
    }

    #[cold]
    fn ports(&self, to: VertexId) -> Ports {
        Ports::of(&self.topology, &self.anchors, self.row(to))
    }

    #[cold]
    fn row(&self, to: VertexId) -> Row {
        match &self.rule {
            Rule::ShortestPath | Rule::NodePaths(_) => {
                shortest_path::row(&self.topology, &self.anchors, to)
            }
            Rule::DimensionOrder => dimension_order::row(&self.topology, &self.anchors, to),
            Rule::Minimal => shortest_path::minimal_row(&self.topology, &self.anchors, to),
            Rule::DModK | Rule::Ecmp(_) | Rule::NextHops | Rule::Paths(_) => Row::default(),
        }
    }

    fn check(&self, from: RankId, to: RankId) -> Result<(), TopologyError> {
        let (from_vertex, to_vertex) = (self.vertex(from)?, self.vertex(to)?);
        if self.reach(from, to) {
            return Ok(());
        }
        let name = |vertex| self.topology.vertex_name(vertex).to_owned();
        Err(TopologyError::Unreachable { from: name(from_vertex), to: name(to_vertex) })
    }

    fn vertex(&self, rank: RankId) -> Result<VertexId, TopologyError> {
        let last = self.topology.npus() - 1;
        self.topology.npu(rank).ok_or(TopologyError::UnknownRank { rank, last })
    }
}

impl std::fmt::Debug for Routes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rule = match &self.rule {
            Rule::Ecmp(ecmp) => {
                return write!(f, "Routes(ECMP with seed {} on {:?})", ecmp.seed, self.topology);
            }
            Rule::NodePaths(paths) => {
                return write!(f, "Routes({paths}else shortest path on {:?})", self.topology);
            }
            Rule::DModK => "D-mod-K",
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
