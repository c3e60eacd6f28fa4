//! Platforms and what their messages share.

use std::sync::Arc;

use pyo3::prelude::*;
use tutti_noc::Packing;
use tutti_noc::smart::Cutting;
use tutti_units::{Bytes, Time};

use crate::errors::OrRaise;
use crate::network::{FlowLevel, Model, Packets};
use crate::noc::FlitNetwork;
use crate::schedule::Number;
use crate::smart::SmartMesh;
use crate::topology::Routes;

/// A network of routers and how messages are cut for it.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct Flits(tutti_simulation::Flits);

#[pymethods]
impl Flits {
    /// Packets of at most `packet` flits, of which `header` carry no payload.
    #[new]
    #[pyo3(signature = (network, *, packet, header))]
    fn new(network: &FlitNetwork, packet: Number, header: Number) -> PyResult<Flits> {
        let packing = Packing::new(network.flit, packet.0, header.0).or_raise()?;
        let (wiring, routing) = (Arc::clone(&network.wiring), Arc::clone(&network.routing));
        let flits =
            tutti_simulation::Flits::new(wiring, network.settings.clone(), routing, packing);
        flits.or_raise().map(Flits)
    }
}

/// A SMART mesh and how messages are cut for it.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct MeshFlits(tutti_simulation::MeshFlits);

#[pymethods]
impl MeshFlits {
    /// Flits of `flit` bytes, and packets to one rank of at most `packet` of them.
    #[new]
    #[pyo3(signature = (mesh, *, cycle_ps, flit, packet))]
    fn new(mesh: &SmartMesh, cycle_ps: u64, flit: u64, packet: Number) -> PyResult<MeshFlits> {
        let (cycle, payload) = (Time::from_ps(cycle_ps), Bytes(flit));
        let cutting = Cutting { cycle, payload, packet: packet.0, class: 0 };
        let settings = mesh.settings.clone();
        let flits = tutti_simulation::MeshFlits::new(mesh.design, settings, cutting);
        flits.or_raise().map(MeshFlits)
    }

    /// Whether routers fork multicasts.
    #[getter]
    fn forks(&self) -> bool {
        self.0.forks()
    }

    /// Whether routers combine.
    #[getter]
    fn combines(&self) -> bool {
        self.0.combines()
    }
}

/// What concurrent messages share.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct Contention(tutti_simulation::Contention);

#[pymethods]
impl Contention {
    /// Nothing.
    #[staticmethod]
    fn free() -> Contention {
        Contention(tutti_simulation::Contention::Free)
    }

    /// Links, by max-min fairness.
    #[staticmethod]
    fn flow(flow: &FlowLevel) -> Contention {
        Contention(tutti_simulation::Contention::Flow(flow.0.clone()))
    }

    /// Queues of packets at links.
    #[staticmethod]
    fn packets(packets: &Packets) -> Contention {
        Contention(tutti_simulation::Contention::Packets(packets.0.clone()))
    }

    /// Routers of the topology, flit by flit.
    #[staticmethod]
    fn flits(flits: &Flits) -> Contention {
        Contention(tutti_simulation::Contention::Flits(Box::new(flits.0.clone())))
    }

    /// A SMART mesh instead of a topology.
    #[staticmethod]
    fn mesh(mesh: &MeshFlits) -> Contention {
        Contention(tutti_simulation::Contention::Mesh(Box::new(mesh.0.clone())))
    }
}

/// A network model, the costs of local work, routes, and what messages share.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct Platform(pub(crate) Arc<tutti_simulation::Platform>);

#[pymethods]
impl Platform {
    /// Without routes, all ranks are at equal distance.
    #[new]
    #[pyo3(signature = (model, contention=None, *, routes=None))]
    fn new(
        model: &Model,
        contention: Option<&Contention>,
        routes: Option<&Routes>,
    ) -> PyResult<Platform> {
        let contention = contention.map(|contention| contention.0.clone());
        let contention = contention.unwrap_or(tutti_simulation::Contention::Free);
        let routing = routes.map(|routes| routes.0.clone());
        let platform = tutti_simulation::Platform::new(model.0, model.1, routing, contention);
        platform.or_raise().map(|platform| Platform(Arc::new(platform)))
    }
}
