//! The result of a training run.

use std::sync::Arc;

use super::communication::Communication;
use super::npu::Stall;
use super::processor::Processor;
use super::windows::Windows;
use super::{Breakdown, TaskSpan, TrainingRun};
use crate::endpoint::ServerUse;
use tutti_network::packet::LinkUse;
use tutti_units::Time;

/// The result of an NPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpuRecord {
    /// The breakdown of its time.
    pub breakdown: Breakdown,
    /// The completion time of each iteration.
    pub iterations: Vec<Time>,
    /// Every task, in completion order; in runs of more than 1,024 NPUs only for the first NPU of each
    /// program.
    pub spans: Vec<TaskSpan>,
    /// The utilisation of the servers of its endpoint.
    pub servers: Vec<(Arc<str>, ServerUse)>,
    /// The utilisation of the links that leave it, by name.
    pub links: Vec<(String, ServerUse)>,
    /// The stalls of chunks and packets, except for servers.
    pub stalls: Vec<(&'static str, Stall)>,
    /// How long its endpoint had at least one chunk.
    pub active: Time,
}

/// The result of a training run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainingOutcome {
    /// The completion time.
    pub end: Time,
    /// Every simulated NPU: one representative, or all.
    pub npus: Vec<NpuRecord>,
    /// Utilisation of every link of a graph, by link id; empty on a torus of FIFO links.
    pub graph_links: Vec<LinkUse>,
    /// Busy time of all simulated links.
    pub links: Windows,
    /// Time in which the simulated endpoints had a chunk.
    pub active: Windows,
    /// Busy time of all simulated processors.
    pub computing: Windows,
}

/// What an NPU has used.
#[derive(Default)]
pub(super) struct Used {
    pub(super) servers: Vec<ServerUse>,
    pub(super) links: Vec<ServerUse>,
    pub(super) stalls: Vec<(&'static str, Stall)>,
    pub(super) active: Time,
}

pub(super) fn outcome(
    run: &TrainingRun,
    fabric: Communication,
    processors: Vec<Processor>,
    computing: Windows,
    end: Time,
) -> TrainingOutcome {
    let graph_links = fabric.graph_links();
    let used = |npu| fabric.used(npu, &run.fabric.network, &graph_links);
    let npus = (0..).zip(processors);
    let npus = npus.map(|(npu, processor)| record(run, npu, used(npu), processor)).collect();
    let (links, active) = fabric.windows();
    TrainingOutcome { end, npus, graph_links, links, active, computing }
}

fn record(run: &TrainingRun, npu: u32, used: Used, processor: Processor) -> NpuRecord {
    let kinds = run.fabric.endpoint.servers.iter().map(|kind| Arc::clone(&kind.name));
    let names = run.fabric.network.names(npu);
    NpuRecord {
        breakdown: processor.breakdown,
        iterations: processor.iterations,
        spans: processor.spans,
        servers: kinds.zip(used.servers).collect(),
        links: names.into_iter().zip(used.links).collect(),
        stalls: used.stalls,
        active: used.active,
    }
}
