//! Schedules over SMART meshes: how messages are cut, and what the mesh did.

use std::fmt;
use std::sync::atomic::AtomicBool;

use tutti_analysis::bound::Ports;
use tutti_engine::training::Mesh;
use tutti_network::packet::Ends;
use tutti_network::{Serialization, Stepped};
use tutti_noc::FlitError;
use tutti_noc::smart::{Cutting, Design, FabricCarrier, FanIn, FanOut, Settings};
use tutti_units::{Time, TimePerByte};

use crate::{NetworkUse, SimulationError};

/// A mesh whose flits pass several hops per cycle, and how messages are cut for it. Rank i is at
/// node i.
#[derive(Clone)]
pub struct MeshFlits {
    design: Design,
    settings: Settings,
    cutting: Cutting,
}

impl MeshFlits {
    /// A mesh of a design, with settings that may differ from those of the design.
    ///
    /// # Errors
    /// When the settings are invalid, or messages cannot be cut for them.
    pub fn new(
        design: Design,
        settings: Settings,
        cutting: Cutting,
    ) -> Result<MeshFlits, FlitError> {
        let mesh = MeshFlits { design, settings, cutting };
        mesh.cutting.check(&mesh.settings)?;
        mesh.empty(Ends::FREE)?;
        Ok(mesh)
    }

    /// The number of nodes.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.settings.nodes()
    }

    /// Whether routers fork multicasts.
    #[must_use]
    pub fn forks(&self) -> bool {
        self.settings.fan_out != FanOut::Unicasts
    }

    /// Whether routers combine.
    #[must_use]
    pub fn combines(&self) -> bool {
        self.settings.fan_in != FanIn::Unicasts
    }

    /// Rejects more ranks than nodes.
    pub(crate) fn check_ranks(&self, ranks: u32) -> Result<(), SimulationError> {
        let nodes = self.nodes();
        if ranks <= nodes { Ok(()) } else { Err(SimulationError::TooFewNodes { ranks, nodes }) }
    }

    /// The time per byte between a node and its router: a flit per cycle.
    pub(crate) fn ports(&self) -> Ports {
        let port = TimePerByte::new(self.cutting.cycle.ps(), self.cutting.payload.0);
        let port = port.unwrap_or(TimePerByte::ZERO);
        Ports { injection: port, ejection: Serialization::of_every_byte(port) }
    }

    /// An empty mesh.
    pub(crate) fn carrier<'a>(&self, ends: Ends, stop: &'a AtomicBool) -> FabricCarrier<'a> {
        self.empty(ends).expect("the constructor has built it").until(stop)
    }

    /// The use of the mesh.
    pub(crate) fn network_use(carrier: &FabricCarrier<'_>) -> NetworkUse {
        NetworkUse::Mesh { counts: Box::new(*carrier.counts()), beyond: carrier.beyond() }
    }

    fn empty<'a>(&self, ends: Ends) -> Result<FabricCarrier<'a>, FlitError> {
        let fabric = self.design.build(&self.settings)?;
        FabricCarrier::new(fabric, &self.settings, self.cutting, ends)
    }
}

impl fmt::Debug for MeshFlits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeshFlits").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The mesh of a training step.
#[derive(Debug)]
pub(crate) struct StepMesh {
    pub(crate) mesh: MeshFlits,
    pub(crate) npus: u32,
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
        Box::new(self.mesh.empty(Ends::FREE).expect("the constructor has built it"))
    }
}
