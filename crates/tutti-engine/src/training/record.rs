//! What a training run leaves.

use super::fabric::Running;
use super::npu::{Cause, Npu, Stall};
use super::processor::Processor;
use super::windows::Windows;
use super::{Breakdown, TaskSpan, TrainingRun};
use crate::endpoint::ServerUse;
use tutti_units::Time;

/// What one NPU did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpuRecord {
    /// Where its time went.
    pub breakdown: Breakdown,
    /// When each iteration was done.
    pub iterations: Vec<Time>,
    /// Every task, in the order in which they ended.
    pub spans: Vec<TaskSpan>,
    /// What each server of its endpoint did.
    pub servers: Vec<(&'static str, ServerUse)>,
    /// What its links did: two for each ring, one each way round.
    pub links: Vec<ServerUse>,
    /// Why chunks and pieces waited, besides for servers.
    pub stalls: Vec<(&'static str, Stall)>,
    /// How long its endpoint had at least one chunk.
    pub active: Time,
}

/// What a training run leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainingOutcome {
    /// When all was done.
    pub end: Time,
    /// Every simulated NPU: one that stands for all, or each.
    pub npus: Vec<NpuRecord>,
    /// How busy links were, all of those simulated together.
    pub links: Windows,
    /// In which times endpoints had a chunk, all of those simulated together.
    pub active: Windows,
    /// How busy processors were, all of those simulated together.
    pub computing: Windows,
}

pub(super) fn outcome(
    run: &TrainingRun,
    fabric: Running,
    processors: Vec<Processor>,
    computing: Windows,
    end: Time,
) -> TrainingOutcome {
    let npus = fabric.npus().iter().zip(processors);
    let npus = npus.map(|(npu, processor)| record(run, npu, processor)).collect();
    TrainingOutcome { end, npus, links: fabric.links, active: fabric.active, computing }
}

fn record(run: &TrainingRun, npu: &Npu, processor: Processor) -> NpuRecord {
    let kinds = run.fabric.endpoint.servers.iter().map(|kind| kind.name);
    NpuRecord {
        breakdown: processor.breakdown,
        iterations: processor.iterations,
        spans: processor.spans,
        servers: kinds.zip(npu.servers.iter().map(crate::endpoint::Server::used)).collect(),
        links: npu.links.iter().map(|link| link.server.used()).collect(),
        stalls: Cause::NAMES.into_iter().zip(npu.stalls).collect(),
        active: npu.active_time,
    }
}
