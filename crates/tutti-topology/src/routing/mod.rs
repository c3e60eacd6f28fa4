//! Routes: over which links a message travels from one rank to another.
//!
//! Most rules end in the same thing: for a destination, the next link at each vertex (a row). Rows are
//! made when they are first asked for, so a large graph costs only what is used of it; they may be made
//! by several threads at once and are the same whoever makes them. Where the rule allows it, rows are
//! kept for anchors only, and an NPU with a single neighbour adds its own link at either end. D-mod-K
//! and ECMP keep nothing: each path is walked when it is asked for.

mod bundles;
mod d_mod_k;
mod dimension_order;
mod ecmp;
mod ends;
mod explicit;
mod given;
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
use given::Given;
use ports::Ports;
use tutti_units::ids::{LinkId, RankId, VertexId};
use wires::WireRow;

/// The next link towards one destination, by the place of an anchor; [`NONE`] at the destination and
/// where no message to it passes.
type Row = Box<[u32]>;

/// No link.
const NONE: u32 = u32::MAX;

/// The routes between all ranks of a topology.
pub struct Routes {
    topology: Arc<Topology>,
    rule: Rule,
    anchors: Anchors,
    ends: Ends,
    /// By the place of an anchor; none where paths are walked.
    rows: Box<[OnceLock<Ports>]>,
    wires: Box<[OnceLock<WireRow>]>,
    /// Links between the same two vertices, where routes share them.
    bundles: Option<Bundles>,
    /// Whether some ranks are out of reach of others.
    has_unreachable_pairs: bool,
}

enum Rule {
    ShortestPath,
    DimensionOrder,
    Minimal,
    DModK,
    Ecmp(Ecmp),
    /// All rows are there from the beginning.
    NextHops,
    Paths(Paths),
    /// Ways for some pairs, the shortest paths for the others.
    Given(Given),
}

impl Routes {
    /// The path with the fewest hops; among these the least latency, then the lowest link id at the
    /// first place where two differ.
    #[must_use]
    pub fn shortest_path(topology: Arc<Topology>) -> Routes {
        Routes::new(topology, Rule::ShortestPath)
    }

    /// Where NPUs or their routers stand in rows: first along dimension 0, then 1, and so on; in a torus
    /// the shorter way round, and the ascending one where both are equally short; over an express link
    /// where the destination is as far in the row, or further.
    ///
    /// # Errors
    /// When the topology was not built of a family with dimensions.
    pub fn dimension_order(topology: Arc<Topology>) -> Result<Routes, TopologyError> {
        if topology.family().and_then(super::Family::dimensions).is_none() {
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

    /// In a fat tree: up by the digits of the destination's number, which sends consecutive destinations
    /// over different links (Zahavi 2010), and down the one way there is.
    ///
    /// # Errors
    /// When the topology was not built as a fat tree.
    pub fn d_mod_k(topology: Arc<Topology>) -> Result<Routes, TopologyError> {
        if topology.family().and_then(super::Family::fat_tree).is_none() {
            return Err(TopologyError::NotAFatTree { topology: topology.name().to_owned() });
        }
        Ok(Routes::new(topology, Rule::DModK))
    }

    /// On any topology: at every vertex one of all links on paths with the fewest hops, drawn by a hash
    /// of source, destination, vertex and `seed`. All messages of a pair take the same path.
    #[must_use]
    pub fn ecmp(topology: Arc<Topology>, seed: u64) -> Routes {
        let rule = Rule::Ecmp(Ecmp::new(Arc::clone(&topology), seed));
        Routes::new(topology, rule)
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
            slot.get_or_init(|| Ports::of(&routes.topology, &routes.anchors, row));
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

    /// Routes by ways that are written down for some pairs of ranks, each the NPUs from its source to its
    /// destination; the shortest paths for the others. Links between the same two NPUs form a bundle, which
    /// is shared.
    ///
    /// # Errors
    /// When a way does not fit the topology or its ends, visits an NPU twice, or a pair has two.
    pub fn node_paths(
        topology: Arc<Topology>,
        ways: impl IntoIterator<Item = (RankId, RankId, Vec<RankId>)>,
    ) -> Result<Routes, TopologyError> {
        let given = Given::new(&topology, ways)?;
        Ok(Routes::new(topology, Rule::Given(given)))
    }

    fn new(topology: Arc<Topology>, rule: Rule) -> Routes {
        let family = topology.family();
        let partial = family.is_some_and(super::Family::may_be_disconnected);
        let bundled = match rule {
            Rule::Given(_) => true,
            Rule::ShortestPath => family.is_some_and(super::Family::shares_bundles),
            _ => false,
        };
        let on_npus = || topology.family().and_then(super::Family::grid).is_some();
        let anchors = match rule {
            // An anchor has one link to its vertex, whichever others there are.
            _ if bundled => Anchors::identity(&topology),
            Rule::ShortestPath | Rule::Minimal => Anchors::new(&topology),
            Rule::DimensionOrder if !on_npus() => Anchors::new(&topology),
            // A table may say anything about any vertex, and the dimensions of a grid are of NPUs.
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

    /// The topology they are for.
    #[must_use]
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// The links from one rank to another, in order, of a bundle the first; none from a rank to itself.
    ///
    /// # Errors
    /// When one of them is not a rank of the topology, or there is no way.
    pub fn path(&self, from: RankId, to: RankId) -> Result<Vec<LinkId>, TopologyError> {
        self.check(from, to)?;
        if let Some(way) = self.given(from, to) {
            return Ok(way.to_vec());
        }
        Ok(match &self.rule {
            _ if from == to => Vec::new(),
            Rule::Paths(paths) => paths.path(from, to).to_vec(),
            Rule::DModK | Rule::Ecmp(_) => self.walk(from, to).collect(),
            _ => self.by_row(from, to),
        })
    }

    /// The way of a pair that was written down.
    #[inline]
    fn given(&self, from: RankId, to: RankId) -> Option<&[LinkId]> {
        let Rule::Given(given) = &self.rule else { return None };
        given.way(from, to)
    }

    /// Whether some ranks are out of reach of others.
    #[must_use]
    pub fn has_unreachable_pairs(&self) -> bool {
        self.has_unreachable_pairs
    }

    /// Whether there is a way from one rank to another.
    ///
    /// # Panics
    /// When one of them is not a rank of the topology.
    #[must_use]
    pub fn reach(&self, from: RankId, to: RankId) -> bool {
        if !self.has_unreachable_pairs || from == to || self.given(from, to).is_some() {
            return true;
        }
        match &self.rule {
            Rule::Ecmp(ecmp) => ecmp.next(VertexId(from.0), from, to).is_some(),
            Rule::ShortestPath | Rule::Given(_) => {
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

    /// The links between the same two vertices as this one, itself included, where routes share them.
    #[inline]
    pub fn bundle(&self, link: LinkId) -> impl ExactSizeIterator<Item = LinkId> + use<> {
        let alone = link.0..link.0 + 1;
        self.bundles.as_ref().map_or(alone, |bundles| bundles.of(link)).map(LinkId)
    }

    /// What a link is like, or the bundle that it stands for.
    #[inline]
    pub fn parameters(&self, link: LinkId) -> LinkParameters {
        let alone = || self.topology.parameters(link);
        self.bundles.as_ref().map_or_else(alone, |bundles| bundles.parameters(link))
    }

    /// From anchor to anchor by a row, and the links at the ends.
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
        matches!(self.rule, Rule::Paths(_) | Rule::Ecmp(_) | Rule::Given(_))
    }

    /// The link that a message from one rank to another takes at `at`, having crossed `hops` links.
    /// Only at a place on its way the answer means something.
    ///
    /// # Panics
    /// When one of them is not a rank of the topology, or the message has no business there.
    #[inline]
    pub fn next_link(&self, from: RankId, to: RankId, at: VertexId, hops: usize) -> LinkId {
        let link = match &self.rule {
            Rule::Paths(paths) => Some(paths.path(from, to)[hops]),
            Rule::DModK | Rule::Ecmp(_) => self.chosen(from, to, at),
            Rule::Given(given) => match given.way(from, to) {
                Some(way) => way.get(hops).copied(),
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
        // What is no anchor has no place in rows: the message has not left its NPU.
        row.next(&self.topology, at, self.anchors.place(at)).or_else(|| self.ends.up(from))
    }

    /// Link by link, where each is chosen when a message is there.
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

    /// What the way from one rank to another comes to, mostly from a cached row. This is what models
    /// without contention ask for every message.
    ///
    /// # Panics
    /// When one of them is not a rank of the topology: check [`Topology::npus`] first.
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
        if let Some(way) = self.given(from, to) {
            return self.wire(Wire::NOWHERE, way.iter().copied());
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

    /// A wire with further links.
    #[inline]
    fn wire(&self, wire: Wire, links: impl Iterator<Item = LinkId>) -> Wire {
        links.fold(wire, |wire, link| wire.and(self.parameters(link)))
    }

    /// As [`Routes::pair`], for ranks that nobody has checked.
    ///
    /// # Errors
    /// When one of them is not a rank of the topology, or there is no way.
    pub fn try_pair(&self, from: RankId, to: RankId) -> Result<Wire, TopologyError> {
        self.check(from, to)?;
        Ok(self.pair(from, to))
    }

    #[cold]
    fn wire_row(&self, to: VertexId) -> WireRow {
        // Anchors of NPUs are asked for only. Where all NPUs are their own, they come first; and what
        // an explicit table says of other vertices may well be a loop.
        let npus = self.topology.npus() as usize;
        let sources = if self.ends.are_none() { npus } else { self.anchors.all().len() };
        let parameters = |link| (self.topology.link_to(link), self.parameters(link));
        let from_row = |row| WireRow::from_row(parameters, &self.anchors, sources, to, row);
        match (&self.rule, self.rows[self.anchors.place(to)].get()) {
            (Rule::Paths(paths), _) => WireRow::from_paths(&self.topology, RankId(to.0), paths),
            (_, Some(row)) => from_row(&row.row(&self.topology, &self.anchors)),
            // The row itself is kept only once someone asks for a path.
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
            Rule::ShortestPath | Rule::Given(_) => {
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
        Err(TopologyError::NoWay { from: name(from_vertex), to: name(to_vertex) })
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
            Rule::Given(given) => {
                return write!(f, "Routes({given}else shortest path on {:?})", self.topology);
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
