//! The result of a training run.

use super::fabric::Running;
use super::npu::{Cause, Npu, Stall};
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
    /// Every task, in completion order.
    pub spans: Vec<TaskSpan>,
    /// The utilisation of the servers of its endpoint.
    pub servers: Vec<(&'static str, ServerUse)>,
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

pub(super) fn outcome(
    run: &TrainingRun,
    fabric: Running,
    processors: Vec<Processor>,
    computing: Windows,
    end: Time,
) -> TrainingOutcome {
    let npus = (0..).zip(fabric.npus()).zip(processors);
    let npus = npus.map(|((id, npu), processor)| record(run, (id, npu), processor)).collect();
    let graph_links = fabric.messages.as_ref().map(super::network::Messages::used_links);
    let graph_links = graph_links.unwrap_or_default();
    TrainingOutcome {
        end,
        npus,
        graph_links,
        links: fabric.links,
        active: fabric.active,
        computing,
    }
}

fn record(run: &TrainingRun, (id, npu): (u32, &Npu), processor: Processor) -> NpuRecord {
    let kinds = run.fabric.endpoint.servers.iter().map(|kind| kind.name);
    let names = run.fabric.network.names(id);
    NpuRecord {
        breakdown: processor.breakdown,
        iterations: processor.iterations,
        spans: processor.spans,
        servers: kinds.zip(npu.servers.iter().map(crate::endpoint::Server::used)).collect(),
        links: names.into_iter().zip(npu.links.iter().map(|link| link.server.used())).collect(),
        stalls: Cause::NAMES.into_iter().zip(npu.stalls).collect(),
        active: npu.active_time,
    }
}
