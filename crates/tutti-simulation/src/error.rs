//! Errors of platforms, cases and runs.

use tutti_engine::EngineError;
use tutti_engine::trace::TraceError;
use tutti_noc::FlitError;
use tutti_schedule::LayoutError;
use tutti_schedule::algorithm::AlgorithmError;
use tutti_topology::TopologyError;

/// Why a platform or a case is rejected, or a run fails.
#[derive(Clone, Debug, PartialEq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "TopologyError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum SimulationError {
    /// Flows without links.
    #[error("the platform has flows but no topology: expected links that they share")]
    #[refusal(kind = "argument")]
    FlowsWithoutTopology,
    /// Packets without links.
    #[error("the platform has packets but no topology: expected links on which packets queue")]
    #[refusal(kind = "argument")]
    PacketsWithoutTopology,
    /// Flits without the topology of their routers.
    #[error("flits go through a topology, and the platform has none, or another one")]
    #[refusal(kind = "argument")]
    FlitsOnAnotherTopology,
    /// A mesh with another network.
    #[error("the platform has both a mesh and another network")]
    #[refusal(class = "ConfigError", kind = "invalid")]
    MeshWithTopology,
    /// Routing by the state of queues, with flows.
    #[error("routing `{routing}` depends on queues: expected packets or flits")]
    #[refusal(kind = "argument")]
    RoutingNeedsQueues { routing: &'static str },
    /// Per-packet routing without packets.
    #[error("routing `{routing}` is per packet, but the platform has no packets")]
    #[refusal(kind = "argument")]
    RoutingNeedsPackets { routing: &'static str },
    /// Trees of switches without fixed routes.
    #[error(
        "routing `{routing}` has several routes per pair of ranks, but switches that multicast or \
         reduce need one: expected another routing"
    )]
    #[refusal(kind = "argument")]
    TreesNeedOneRoute { routing: &'static str },
    /// A name of switches that the topology lacks.
    #[error(
        "topology {topology} has no switch `{switch}` to multicast or reduce: expected one of \
         {known}"
    )]
    #[refusal(kind = "argument")]
    UnknownSwitch { topology: String, switch: String, known: String },
    /// More ranks than nodes.
    #[error("{ranks} ranks are more than the mesh's {nodes} nodes")]
    TooFewNodes { ranks: u32, nodes: u32 },
    /// A training step on one NPU.
    #[error("a training step on {npus} NPU: expected at least 2 NPUs")]
    #[refusal(kind = "argument")]
    SingleNpu { npus: u32 },
    /// A training step on a network that it does not support.
    #[error("expected either flows or packets on a topology")]
    #[refusal(kind = "argument")]
    NoStepNetwork,
    /// A trace on routers.
    #[error("traces do not run on flit networks")]
    #[refusal(class = "ConfigError", kind = "invalid")]
    TraceOnFlits,
    /// Background flows without messages that share links.
    #[error("background flows need a platform with the flow model or packets")]
    #[refusal(class = "ConfigError", kind = "invalid")]
    NothingSharesFlows,
    /// Background load without links.
    #[error("a background load needs links, but the platform has no topology")]
    #[refusal(class = "NoiseError", kind = "no_links")]
    LoadWithoutTopology,
    /// A speed that is not positive.
    #[error("speed {speed} of rank {rank} is invalid: expected a positive number")]
    #[refusal(class = "NoiseError", kind = "speed")]
    Speed { rank: usize, speed: f64 },
    /// Ranks beyond the topology's NPUs, or an invalid topology.
    #[error(transparent)]
    #[refusal(transparent)]
    Topology(#[from] TopologyError),
    /// A size that does not suit the schedule.
    #[error(transparent)]
    #[refusal(transparent)]
    Layout(#[from] LayoutError),
    /// An invalid algorithm.
    #[error(transparent)]
    #[refusal(transparent)]
    Algorithm(#[from] AlgorithmError),
    /// Invalid routers, or messages that cannot be cut for them.
    #[error(transparent)]
    #[refusal(transparent)]
    Flits(#[from] FlitError),
    /// An invalid trace.
    #[error(transparent)]
    #[refusal(transparent)]
    Trace(#[from] TraceError),
    /// A run without a result.
    #[error(transparent)]
    #[refusal(transparent)]
    Run(#[from] EngineError),
}
