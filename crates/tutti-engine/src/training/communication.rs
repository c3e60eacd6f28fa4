//! The communication of a run, in one of two levels of detail.

use std::sync::Arc;

use super::arbiter::MemoryUse;
use super::bulk::Bulk;
use super::fabric::{Detail, Running, TrainingFabric};
use super::network::StepNetwork;
use super::npu::Cause;
use super::operations::Operations;
use super::record::Used;
use super::stuck::Mismatch;
use super::windows::Windows;
use super::{Population, TrainingRunError};
use crate::endpoint::{Server, ServerUse};
use tutti_network::packet::LinkUse;
use tutti_units::Time;

/// The communication of a run.
pub(super) enum Communication<'a> {
    /// Packets behind endpoints.
    Endpoints(Box<Running<'a>>),
    /// Bulk transfers.
    Bulk(Box<Bulk<'a>>),
}

impl<'a> Communication<'a> {
    pub(super) fn new(
        fabric: &'a TrainingFabric,
        operations: &Arc<Operations>,
        window: Time,
    ) -> Result<Communication<'a>, TrainingRunError> {
        let isolated = matches!(fabric.network, StepNetwork::Isolated(_));
        if fabric.detail == Detail::Packets && !isolated {
            let running = Running::new(fabric, operations, window)?;
            return Ok(Communication::Endpoints(Box::new(running)));
        }
        if window > Time::ZERO {
            return Err(TrainingRunError::NoWindows);
        }
        let bulk = Bulk::new(fabric, Arc::clone(operations))?;
        Ok(Communication::Bulk(Box::new(bulk)))
    }

    /// The time of the next event, if it is not after `until`.
    pub(super) fn next(&mut self, until: Option<Time>) -> Option<Time> {
        match self {
            Communication::Endpoints(running) => running.next(until),
            Communication::Bulk(bulk) => bulk.next(until),
        }
    }

    /// Executes the next event.
    pub(super) fn step(&mut self) {
        match self {
            Communication::Endpoints(running) => running.step(),
            Communication::Bulk(bulk) => bulk.step(),
        }
    }

    /// Why a run with endpoints is stuck, if NPUs have started different chunks.
    pub(super) fn mismatch(&self) -> Option<Mismatch> {
        match self {
            Communication::Endpoints(running) => running.mismatch(),
            Communication::Bulk(_) => None,
        }
    }

    /// Issues an operation on an NPU.
    pub(super) fn issue(&mut self, npu: u32, operation: usize, now: Time) {
        match self {
            Communication::Endpoints(running) => running.issue(npu, operation, now),
            Communication::Bulk(bulk) => bulk.issue(npu, operation, now),
        }
    }

    /// The operations completed since the last call.
    pub(super) fn take_done(&mut self, into: &mut Vec<(u32, usize)>) {
        match self {
            Communication::Endpoints(running) => running.take_done(into),
            Communication::Bulk(bulk) => bulk.take_done(into),
        }
    }

    /// Whether all resources have been released.
    pub(super) fn is_at_rest(&self) -> bool {
        match self {
            Communication::Endpoints(running) => running.is_at_rest(),
            Communication::Bulk(bulk) => bulk.is_at_rest(),
        }
    }

    /// The use of the memory server of an NPU's endpoint; none without a server.
    pub(super) fn memory_use(&self, npu: u32, now: Time) -> MemoryUse {
        let Communication::Endpoints(running) = self else { return MemoryUse::default() };
        let Some(server) = running.fabric.endpoint.memory else { return MemoryUse::default() };
        let (busy, ahead) = running.npus[npu as usize].servers[server].busy_at(now);
        MemoryUse { busy, ahead }
    }

    /// Utilisation of every link of a graph.
    pub(super) fn graph_links(&self) -> Vec<LinkUse> {
        match self {
            Communication::Endpoints(running) => {
                running.messages.as_ref().map(super::network::Messages::used_links)
            }
            Communication::Bulk(bulk) => bulk.used_links(),
        }
        .unwrap_or_default()
    }

    /// Busy time of links, and time in which endpoints had a chunk.
    pub(super) fn windows(self) -> (Windows, Windows) {
        match self {
            Communication::Endpoints(running) => (running.links, running.active),
            Communication::Bulk(_) => (Windows::new(Time::ZERO), Windows::new(Time::ZERO)),
        }
    }

    /// What an NPU has used.
    pub(super) fn used(&self, npu: u32, network: &StepNetwork, graph: &[LinkUse]) -> Used {
        let Communication::Endpoints(running) = self else {
            let links = network.exit_links(npu).into_iter().filter_map(|link| graph.get(link));
            return Used { links: links.map(used_link).collect(), ..Used::default() };
        };
        let npu = &running.npus[npu as usize];
        Used {
            servers: npu.servers.iter().map(Server::used).collect(),
            links: npu.links.iter().map(|link| link.server.used()).collect(),
            stalls: Cause::NAMES.into_iter().zip(npu.stalls).collect(),
            active: npu.active_time,
        }
    }
}

fn used_link(link: &LinkUse) -> ServerUse {
    let LinkUse { packets, bytes, busy } = *link;
    ServerUse { busy, waited: Time::ZERO, bytes, pieces: packets }
}

impl TrainingFabric {
    /// The number of simulated NPUs.
    pub(super) fn simulated(&self) -> usize {
        match self.population {
            Population::One => 1,
            Population::All => self.network.npus() as usize,
        }
    }
}
