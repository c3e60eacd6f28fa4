//! Schedules over flit networks: how messages are cut, and what the network did.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use tutti_analysis::bound::Ports;
use tutti_network::packet::{Ends, LinkUse};
use tutti_network::{Model, Serialization};
use tutti_noc::routing::Routing;
use tutti_noc::{FlitCarrier, Network, Packing, Settings, Wiring};
use tutti_topology::Topology;
use tutti_units::{Time, TimePerByte};

use crate::errors::{raised_by_flits, refuse};
use crate::noc::FlitNetwork;
use crate::run::Used;
use crate::schedule::Number;
use crate::topology::Routes;

/// A network and how messages are cut for it.
#[pyclass(frozen, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct Flits {
    wiring: Arc<Wiring>,
    settings: Settings,
    routing: Arc<dyn Routing>,
    packing: Packing,
}

#[pymethods]
impl Flits {
    /// Packets of at most `packet` flits, of which `header` carry nothing of a message.
    #[new]
    #[pyo3(signature = (network, *, packet, header))]
    fn new(network: &FlitNetwork, packet: Number, header: Number) -> PyResult<Flits> {
        let packing = Packing::new(network.flit, packet.0, header.0);
        let packing = packing.and_then(|packing| {
            packing.check(&network.settings)?;
            Ok(packing)
        });
        Ok(Flits {
            wiring: Arc::clone(&network.wiring),
            settings: network.settings.clone(),
            routing: Arc::clone(&network.routing),
            packing: packing.map_err(|error| raised_by_flits(&error))?,
        })
    }
}

impl Flits {
    /// The same with another seed of all that is random in routers.
    pub(crate) fn with_seed(&self, seed: u64) -> Flits {
        Flits { settings: Settings { seed, ..self.settings.clone() }, ..self.clone() }
    }

    /// Refuses routes through another graph.
    pub(crate) fn check(&self, routes: Option<&Routes>) -> PyResult<()> {
        let same = |routes: &Routes| {
            let (here, there) = (self.wiring.topology(), routes.inner.topology());
            here.is_some_and(|here| Arc::ptr_eq(here, there) || **here == **there)
        };
        if routes.is_some_and(same) {
            return Ok(());
        }
        let message = "flits go through a topology, and the platform has none, or another one";
        Err(refuse("TopologyError", "argument", message))
    }

    /// What a byte takes to pass between an NPU and its links.
    pub(crate) fn ports(&self, model: &Model) -> Ports {
        let own = (0..self.wiring.nodes()).all(|node| !self.wiring.is_leaf(node));
        let port = |channel: u32| {
            let time = self.wiring.channels()[channel as usize].parameters.flit_time;
            let time = time.max(self.wiring.cycle()).ps();
            let bytes = self.packing.flit().0 * u64::from(self.wiring.ports());
            let port = own.then(|| TimePerByte::new(time, bytes));
            port.flatten().unwrap_or(TimePerByte::ZERO)
        };
        let (injection, ejection) = (port(self.wiring.injects(0)), port(self.wiring.ejects(0)));
        let takes = model.takes().filter(|takes| takes.per_byte() > ejection);
        let ejection = takes.unwrap_or(Serialization::of_every_byte(ejection));
        Ports { injection, ejection }
    }

    /// An empty network.
    pub(crate) fn carrier<'a>(&self, ends: Ends, stop: &'a AtomicBool) -> FlitCarrier<'a> {
        let network = Network::new(&self.wiring, &self.settings, Arc::clone(&self.routing))
            .expect("the same was built when the network was checked");
        let wiring = Arc::clone(&self.wiring);
        FlitCarrier::new(network, wiring, &self.settings, self.packing, ends).until(stop)
    }

    /// What the links did.
    pub(crate) fn used(&self, carrier: &FlitCarrier<'_>) -> Used {
        let sent = carrier.network().sent();
        let graph = self.wiring.topology();
        let links = graph.map_or_else(Vec::new, |graph| self.by_link(graph, &sent));
        Used::ByFlits { links, sent, vc_grants: carrier.vc_grants() }
    }

    fn by_link(&self, graph: &Topology, sent: &[u64]) -> Vec<LinkUse> {
        let of = |channel: u32| {
            let flits = sent[channel as usize];
            let time = self.wiring.channels()[channel as usize].parameters.flit_time;
            LinkUse {
                packets: flits,
                bytes: flits.saturating_mul(self.packing.flit().0),
                busy: Time::from_ps(flits.saturating_mul(time.max(self.wiring.cycle()).ps())),
            }
        };
        let link = |link| self.wiring.channel_of(link).map(of).unwrap_or_default();
        graph.links().map(link).collect()
    }
}
