//! Schedules over flit networks: how messages are cut, and what the network did.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tutti_analysis::bound::Ports;
use tutti_network::packet::{Ends, LinkUse};
use tutti_network::{Model, Serialization};
use tutti_noc::routing::Routing;
use tutti_noc::{FlitCarrier, FlitError, Network, Packing, Settings, Wiring};
use tutti_topology::Topology;
use tutti_units::{Time, TimePerByte};

use crate::NetworkUse;

/// Routers, and how messages are cut into packets of flits for them.
#[derive(Clone, Debug)]
pub struct Flits {
    wiring: Arc<Wiring>,
    settings: Arc<Settings>,
    routing: Arc<dyn Routing>,
    packing: Packing,
}

impl Flits {
    /// Packets of flits on routers. The routing of the platform does not apply.
    ///
    /// # Errors
    /// When the routers cannot be built, or their buffers do not hold a packet.
    pub fn new(
        wiring: Arc<Wiring>,
        settings: Settings,
        routing: Arc<dyn Routing>,
        packing: Packing,
    ) -> Result<Flits, FlitError> {
        packing.check(&settings)?;
        Network::new(&wiring, &settings, Arc::clone(&routing))?;
        Ok(Flits { wiring, settings: Arc::new(settings), routing, packing })
    }

    /// Whether the routers are those of this topology.
    pub(crate) fn are_on(&self, topology: &Arc<Topology>) -> bool {
        let same = |own: &Arc<Topology>| Arc::ptr_eq(own, topology) || **own == **topology;
        self.wiring.topology().is_some_and(same)
    }

    /// The time per byte between an NPU and its links.
    pub(crate) fn ports(&self, model: &Model) -> Ports {
        let is_router = (0..self.wiring.nodes()).all(|node| !self.wiring.is_leaf(node));
        let port = |channel: u32| {
            let time = self.wiring.channels()[channel as usize].parameters.flit_time;
            let time = time.max(self.wiring.cycle()).ps();
            let bytes = self.packing.flit().0 * u64::from(self.wiring.ports());
            let port = is_router.then(|| TimePerByte::new(time, bytes));
            port.flatten().unwrap_or(TimePerByte::ZERO)
        };
        let (injection, ejection) = (port(self.wiring.injects(0)), port(self.wiring.ejects(0)));
        let takes = model.takes().filter(|takes| takes.per_byte() > ejection);
        let ejection = takes.unwrap_or(Serialization::of_every_byte(ejection));
        Ports { injection, ejection }
    }

    /// An empty network, with a seed of all random choices of routers.
    pub(crate) fn carrier<'a>(
        &self,
        ends: Ends,
        seed: u64,
        stop: &'a AtomicBool,
    ) -> FlitCarrier<'a> {
        let settings = Settings { seed, ..Settings::clone(&self.settings) };
        let network = Network::new(&self.wiring, &settings, Arc::clone(&self.routing))
            .expect("the constructor has built it");
        let wiring = Arc::clone(&self.wiring);
        FlitCarrier::new(network, wiring, &settings, self.packing, ends).until(stop)
    }

    /// The use of the links.
    pub(crate) fn network_use(&self, carrier: &FlitCarrier<'_>) -> NetworkUse {
        let sent = carrier.network().sent();
        let graph = self.wiring.topology();
        let links = graph.map_or_else(Vec::new, |graph| self.by_link(graph, &sent));
        NetworkUse::Flits { links, sent, vc_grants: carrier.vc_grants() }
    }

    fn by_link(&self, graph: &Topology, sent: &[u64]) -> Vec<LinkUse> {
        let of = |channel: u32| {
            let flits = sent[channel as usize];
            let channel = &self.wiring.channels()[channel as usize];
            let time = self.settings.flit_time(channel, self.wiring.cycle());
            LinkUse {
                packets: flits,
                bytes: flits.saturating_mul(self.packing.flit().0),
                busy: Time::from_ps(flits.saturating_mul(time.ps())),
            }
        };
        let link = |link| self.wiring.channel_of(link).map(of).unwrap_or_default();
        graph.links().map(link).collect()
    }
}
