//! Platforms: a network model, the costs of local work, and what messages share.

use std::sync::Arc;

use tutti_analysis::bound::Ports;
use tutti_engine::LocalCosts;
use tutti_engine::training::{Graph, Sharing, StepNetwork};
use tutti_network::flow::FlowLevel;
use tutti_network::packet::{Choice, Packets};
use tutti_network::{Model, Switches, classes_of_switches};
use tutti_topology::Topology;

use crate::mesh::StepMesh;
use crate::{Flits, MeshFlits, Routing, SimulationError};

/// What concurrent messages share.
#[derive(Clone, Debug)]
pub enum Contention {
    /// Nothing: messages do not delay each other. With routes, each takes at least the latency of
    /// its links and the time of the slowest link.
    Free,
    /// Links, by max-min fairness.
    Flow(FlowLevel),
    /// Queues of packets at links.
    Packets(Packets),
    /// Routers of the topology, flit by flit.
    Flits(Box<Flits>),
    /// A SMART mesh instead of a topology.
    Mesh(Box<MeshFlits>),
}

impl Contention {
    /// Whether messages may delay each other.
    #[must_use]
    pub fn is_some(&self) -> bool {
        !matches!(self, Contention::Free)
    }

    /// The switches that multicast, and the switches that reduce.
    fn switches(&self) -> [&Switches; 2] {
        match self {
            Contention::Flow(flow) => [&flow.multicast, &flow.reduce],
            Contention::Packets(packets) => [&packets.multicast, &packets.reduce],
            Contention::Free | Contention::Flits(_) | Contention::Mesh(_) => [&Switches::None; 2],
        }
    }

    /// Whether the network performs multicasts or reductions, so that a rank need not send each
    /// message.
    #[must_use]
    pub fn is_in_network(&self) -> bool {
        match self {
            Contention::Mesh(mesh) => mesh.forks() || mesh.combines(),
            _ => self.switches().into_iter().any(Switches::is_some),
        }
    }

    /// By vertex, whether it multicasts or reduces; `None` if none does.
    pub(crate) fn in_network_on(&self, topology: &Topology) -> Option<Vec<bool>> {
        let switches = self.switches();
        let [multicast, reduce] = switches.map(|switches| switches.on(topology));
        let either = || multicast.into_iter().zip(reduce).map(|(a, b)| a || b).collect();
        switches.into_iter().any(Switches::is_some).then(either)
    }

    /// The ports of an NPU, if messages share them.
    pub(crate) fn ports(&self, model: &Model) -> Option<Ports> {
        match self {
            Contention::Free => None,
            Contention::Flow(flow) => Some(Ports::of((flow.injection, flow.ejection), model)),
            Contention::Packets(packets) => {
                Some(Ports::of((packets.injection, packets.ejection), model))
            }
            Contention::Flits(flits) => Some(flits.ports(model)),
            Contention::Mesh(mesh) => Some(mesh.ports()),
        }
    }

    fn check(&self, routing: Option<&Routing>) -> Result<(), SimulationError> {
        let choice = routing.and_then(Routing::choice);
        match (self, routing) {
            (Contention::Flow(_), None) => Err(SimulationError::FlowsWithoutTopology),
            (Contention::Packets(_), None) => Err(SimulationError::PacketsWithoutTopology),
            (Contention::Mesh(_), Some(_)) => Err(SimulationError::MeshWithTopology),
            (Contention::Flits(flits), _) => {
                let is_same = routing.is_some_and(|routing| flits.are_on(routing.topology()));
                if is_same { Ok(()) } else { Err(SimulationError::FlitsOnAnotherTopology) }
            }
            (Contention::Flow(_), Some(routing)) => match choice {
                Some(choice) if choice != Choice::Adaptive => {
                    Err(SimulationError::RoutingNeedsQueues { routing: choice.name() })
                }
                _ => self.check_switches(routing),
            },
            (Contention::Packets(_), Some(routing)) => self.check_switches(routing),
            (Contention::Free | Contention::Mesh(_), _) => match choice {
                Some(choice) => {
                    Err(SimulationError::RoutingNeedsPackets { routing: choice.name() })
                }
                None => Ok(()),
            },
        }
    }

    /// Rejects names of switches that the topology lacks, and trees without fixed routes.
    fn check_switches(&self, routing: &Routing) -> Result<(), SimulationError> {
        let switches = self.switches();
        if !switches.into_iter().any(Switches::is_some) {
            return Ok(());
        }
        if let Some(choice) = routing.choice() {
            return Err(SimulationError::TreesNeedOneRoute { routing: choice.name() });
        }
        let topology = routing.topology();
        match switches.into_iter().find_map(|switches| switches.unknown_on(topology)) {
            Some(unknown) => Err(SimulationError::UnknownSwitch {
                topology: topology.name().to_owned(),
                switch: unknown.to_owned(),
                known: classes_of_switches(topology).join(", "),
            }),
            None => Ok(()),
        }
    }
}

/// A machine: a network model, the costs of local work, routes through a topology whose first NPUs
/// are the ranks, and what messages share.
#[derive(Clone, Debug)]
pub struct Platform {
    model: Model,
    costs: LocalCosts,
    routing: Option<Routing>,
    contention: Contention,
}

impl Platform {
    /// A platform; without routing, all ranks are at equal distance.
    ///
    /// # Errors
    /// When the contention needs a topology or another routing, or names switches that the topology
    /// lacks.
    pub fn new(
        model: Model,
        costs: LocalCosts,
        routing: Option<Routing>,
        contention: Contention,
    ) -> Result<Platform, SimulationError> {
        contention.check(routing.as_ref())?;
        Ok(Platform { model, costs, routing, contention })
    }

    /// The network model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The costs of local work.
    #[must_use]
    pub fn costs(&self) -> &LocalCosts {
        &self.costs
    }

    /// The routing through the topology, if there is one.
    #[must_use]
    pub fn routing(&self) -> Option<&Routing> {
        self.routing.as_ref()
    }

    /// What concurrent messages share.
    #[must_use]
    pub fn contention(&self) -> &Contention {
        &self.contention
    }

    /// The routes that delay messages without contention.
    pub(crate) fn free_routing(&self) -> Option<&Routing> {
        self.routing.as_ref().filter(|_| !self.contention.is_some())
    }

    /// Rejects more ranks than the topology or the mesh has.
    pub(crate) fn check_ranks(&self, ranks: u32) -> Result<(), SimulationError> {
        if let Some(routing) = &self.routing {
            routing.check_ranks(ranks)?;
        }
        match &self.contention {
            Contention::Mesh(mesh) => mesh.check_ranks(ranks),
            _ => Ok(()),
        }
    }

    /// The network of a training step on `npus` nodes of a mesh, or on all NPUs of a topology. The
    /// step has its own endpoint model, so the network model and the costs of local work do not
    /// apply. `seed` is that of per-packet routing.
    ///
    /// # Errors
    /// When there are fewer than 2 NPUs, the mesh has fewer nodes, or messages share neither links
    /// nor a mesh.
    pub fn step_network(&self, npus: u32, seed: u64) -> Result<StepNetwork, SimulationError> {
        let sharing = match &self.contention {
            Contention::Mesh(mesh) => return step_mesh(mesh, npus),
            Contention::Flow(flow) => Sharing::Flows(flow.clone()),
            Contention::Packets(packets) => Sharing::Packets(packets.clone()),
            Contention::Free | Contention::Flits(_) => return Err(SimulationError::NoStepNetwork),
        };
        let routing = self.routing.as_ref().ok_or(SimulationError::NoStepNetwork)?;
        let npus = routing.topology().npus();
        if npus < 2 {
            return Err(SimulationError::SingleNpu { npus });
        }
        let (routes, choosing) = (Arc::clone(routing.routes()), routing.choosing(seed));
        Ok(StepNetwork::Graph(Graph { routes, choosing, sharing }))
    }
}

fn step_mesh(mesh: &MeshFlits, npus: u32) -> Result<StepNetwork, SimulationError> {
    if npus < 2 {
        return Err(SimulationError::SingleNpu { npus });
    }
    mesh.check_ranks(npus)?;
    Ok(StepNetwork::Mesh(Arc::new(StepMesh { mesh: mesh.clone(), npus })))
}
