//! The routes of messages through a topology.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tutti_analysis::bound::GraphBound;
use tutti_network::flow::FlowRouting;
use tutti_network::packet::{Choice, PacketRouting};
use tutti_schedule::collective::Collective;
use tutti_topology::{Distances, Family, Routes, Topology, TopologyError};
use tutti_units::ids::RankId;

/// The routes between all ranks of a topology, or a per-packet routing algorithm.
///
/// Clones share the routes and the cached lower bounds of the topology.
#[derive(Clone)]
pub struct Routing {
    /// One route per pair; minimal routes for per-packet routing.
    routes: Arc<Routes>,
    bounds: Arc<GraphBounds>,
    per_packet: Option<PerPacket>,
}

/// A per-packet routing algorithm.
#[derive(Clone)]
pub(crate) struct PerPacket {
    pub(crate) distances: Arc<Distances>,
    pub(crate) choice: Choice,
}

impl Routing {
    /// One route per pair of ranks.
    #[must_use]
    pub fn fixed(routes: Routes) -> Routing {
        Routing { routes: Arc::new(routes), bounds: Arc::default(), per_packet: None }
    }

    /// The choice of a link for each packet at each vertex: with at most one global link in a
    /// dragonfly, else on paths with the fewest hops.
    ///
    /// # Errors
    /// When the routes of a dragonfly cannot be built.
    pub fn per_packet(topology: &Arc<Topology>, choice: Choice) -> Result<Routing, TopologyError> {
        let graph = || Arc::clone(topology);
        let is_dragonfly = topology.family().and_then(Family::dragonfly).is_some();
        let (routes, distances) = if is_dragonfly {
            (Routes::minimal(graph())?, Distances::one_global(graph())?)
        } else {
            (Routes::shortest_path(graph()), Distances::fewest_hops(graph()))
        };
        let per_packet = Some(PerPacket { distances: Arc::new(distances), choice });
        Ok(Routing { per_packet, ..Routing::fixed(routes) })
    }

    /// The routes; for per-packet routing, minimal ones.
    #[must_use]
    pub fn routes(&self) -> &Arc<Routes> {
        &self.routes
    }

    /// The topology.
    #[must_use]
    pub fn topology(&self) -> &Arc<Topology> {
        self.routes.topology()
    }

    /// The per-packet routing algorithm; `None` for fixed routes.
    #[must_use]
    pub fn choice(&self) -> Option<Choice> {
        self.per_packet.as_ref().map(|per_packet| per_packet.choice)
    }

    /// Rejects more ranks than NPUs.
    pub(crate) fn check_ranks(&self, ranks: u32) -> Result<(), TopologyError> {
        // If the last rank exists, all do.
        let last = RankId(ranks.saturating_sub(1));
        self.routes.try_pair(last, last).map(|_| ())
    }

    /// The per-packet routing as the network of a training step takes it.
    pub(crate) fn choosing(&self, seed: u64) -> Option<(Arc<Distances>, Choice, u64)> {
        let PerPacket { distances, choice } = self.per_packet.as_ref()?;
        Some((Arc::clone(distances), *choice, seed))
    }

    pub(crate) fn of_flows(&self) -> FlowRouting<'_> {
        match &self.per_packet {
            Some(per_packet) => FlowRouting::Spread(&per_packet.distances),
            None => FlowRouting::Routed(&self.routes),
        }
    }

    pub(crate) fn of_packets(&self, seed: u64) -> PacketRouting<'_> {
        match &self.per_packet {
            Some(PerPacket { distances, choice }) => {
                PacketRouting::PerPacket { distances, choice: *choice, seed }
            }
            None => PacketRouting::Routed(&self.routes),
        }
    }

    /// The contribution of the topology to lower bounds: whether messages share links, and by
    /// vertex whether it multicasts or reduces, if any does.
    pub(crate) fn bound(
        &self,
        collective: Collective,
        ranks: u32,
        is_shared: bool,
        in_network: Option<Vec<bool>>,
    ) -> GraphBound {
        self.bounds.of(self.topology(), collective, ranks, (is_shared, in_network))
    }
}

impl fmt::Debug for Routing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(choice) = self.choice() {
            write!(f, "{choice} instead of ")?;
        }
        self.routes.fmt(f)
    }
}

/// A collective with its root, a rank count, whether links are shared, and by vertex whether it
/// multicasts or reduces, if any does.
type BoundKey = (&'static str, Option<u32>, u32, bool, Option<Vec<bool>>);

/// The contribution of a topology to lower bounds, cached per key.
#[derive(Default)]
struct GraphBounds(Mutex<BTreeMap<BoundKey, GraphBound>>);

impl GraphBounds {
    fn of(
        &self,
        topology: &Topology,
        collective: Collective,
        ranks: u32,
        (is_shared, in_network): (bool, Option<Vec<bool>>),
    ) -> GraphBound {
        let root = collective.root().map(|root| root.0);
        let key = (collective.name(), root, ranks, is_shared, in_network.clone());
        // Bounds are deterministic, so the cache of a poisoned lock is valid.
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *cached.entry(key).or_insert_with(|| match in_network {
            Some(vertices) => GraphBound::in_network(topology, collective, ranks, &vertices),
            None => GraphBound::through(topology, collective, ranks, is_shared),
        })
    }
}
