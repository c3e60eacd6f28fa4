//! Schedules over meshes of several hops per cycle: how messages are cut, and what the mesh did.

use std::fmt;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use tutti_analysis::bound::Ports;
use tutti_engine::training::Mesh;
use tutti_network::packet::Ends;
use tutti_network::{Serialization, Stepped};
use tutti_noc::FlitError;
use tutti_noc::smart::{Counts, Cutting, FabricCarrier, FanIn, FanOut};
use tutti_units::{Bytes, Time, TimePerByte};

use crate::errors::{raised_by_flits, refuse};
use crate::run::Used;
use crate::schedule::Number;
use crate::smart::SmartMesh;

/// A mesh and how messages are cut for it.
#[pyclass(frozen, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct MeshFlits {
    mesh: SmartMesh,
    cutting: Cutting,
}

#[pymethods]
impl MeshFlits {
    /// Flits of `flit` bytes, and packets to one rank of at most `packet` of them.
    #[new]
    #[pyo3(signature = (mesh, *, cycle_ps, flit, packet))]
    fn new(mesh: &SmartMesh, cycle_ps: u64, flit: u64, packet: Number) -> PyResult<MeshFlits> {
        let (cycle, payload) = (Time::from_ps(cycle_ps), Bytes(flit));
        let cutting = Cutting { cycle, payload, packet: packet.0, class: 0 };
        cutting.check(&mesh.settings).map_err(|error| raised_by_flits(&error))?;
        Ok(MeshFlits { mesh: mesh.clone(), cutting })
    }

    /// Whether routers fork multicasts.
    #[getter]
    fn forks(&self) -> bool {
        self.mesh.settings.fan_out != FanOut::Unicasts
    }

    /// Whether routers combine.
    #[getter]
    fn combines(&self) -> bool {
        self.mesh.settings.fan_in != FanIn::Unicasts
    }
}

impl MeshFlits {
    /// Refuses more ranks than there are nodes.
    pub(crate) fn check(&self, ranks: u32) -> PyResult<()> {
        let nodes = self.mesh.settings.nodes();
        if ranks <= nodes {
            return Ok(());
        }
        let message = format!("{ranks} ranks are more than the mesh's {nodes} nodes");
        Err(refuse("TopologyError", "too_few_nodes", &message))
    }

    /// What a byte takes to pass between a node and its router: a flit per cycle.
    pub(crate) fn ports(&self) -> Ports {
        let port = TimePerByte::new(self.cutting.cycle.ps(), self.cutting.payload.0);
        let port = port.unwrap_or(TimePerByte::ZERO);
        Ports { injection: port, ejection: Serialization::of_every_byte(port) }
    }

    /// Whether multicasts or combines are the network's, so that a rank need not send each message.
    pub(crate) fn is_in_network(&self) -> bool {
        self.forks() || self.combines()
    }

    /// An empty mesh.
    pub(crate) fn carrier<'a>(
        &self,
        ends: Ends,
        stop: &'a AtomicBool,
    ) -> Result<FabricCarrier<'a>, FlitError> {
        Ok(self.empty(ends)?.until(stop))
    }

    /// What happened in it.
    pub(crate) fn used(carrier: &FabricCarrier<'_>) -> Used {
        let counts: Counts = *carrier.counts();
        Used::ByMesh { counts: Box::new(counts), beyond: carrier.beyond() }
    }
}

impl MeshFlits {
    /// The mesh as the network of a training step on so many NPUs.
    pub(crate) fn of_step(&self, npus: u32) -> PyResult<StepMesh> {
        if npus < 2 {
            let message = format!("a training step on {npus} NPU: expected at least 2 NPUs");
            return Err(refuse("TopologyError", "argument", &message));
        }
        self.check(npus)?;
        self.empty(Ends::FREE).map_err(|error| raised_by_flits(&error))?;
        Ok(StepMesh { mesh: self.clone(), npus })
    }

    fn empty<'a>(&self, ends: Ends) -> Result<FabricCarrier<'a>, FlitError> {
        let fabric = self.mesh.build(&self.mesh.settings)?;
        FabricCarrier::new(fabric, &self.mesh.settings, self.cutting, ends)
    }
}

/// The mesh of a training step.
pub(crate) struct StepMesh {
    mesh: MeshFlits,
    npus: u32,
}

impl fmt::Debug for StepMesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StepMesh { mesh, npus } = self;
        f.debug_struct("StepMesh")
            .field("settings", &mesh.mesh.settings)
            .field("npus", npus)
            .finish()
    }
}

impl Mesh for StepMesh {
    fn npus(&self) -> u32 {
        self.npus
    }

    fn multicasts(&self) -> bool {
        self.mesh.forks()
    }

    fn reduces(&self) -> bool {
        self.mesh.combines()
    }

    fn port(&self) -> (TimePerByte, Time) {
        (self.mesh.ports().injection, self.mesh.cutting.cycle)
    }

    fn network(&self) -> Box<dyn Stepped + '_> {
        Box::new(self.mesh.empty(Ends::FREE).expect("`of_step` has built it"))
    }
}
