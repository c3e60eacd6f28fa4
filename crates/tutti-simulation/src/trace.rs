//! Runs of traces on a platform.

use std::sync::atomic::AtomicBool;

use tutti_engine::trace::{TraceGraph, TraceOutcome, TraceRun};
use tutti_engine::{Conditions, Distance, Routed};
use tutti_network::flow::FlowNetwork;
use tutti_network::packet::{Ends, PacketNetwork};
use tutti_network::{Stepped, dispatch};

use crate::{Contention, Platform, SimulationError};

impl Platform {
    /// Runs a trace to completion or until `stop` is set. `seed` is
    /// that of per-packet routing.
    ///
    /// # Errors
    /// When the platform has routers or fewer NPUs than the trace has ranks, the trace is invalid,
    /// or the run gives no result.
    pub fn run_trace(
        &self,
        trace: &TraceGraph,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<TraceOutcome, SimulationError> {
        if matches!(self.contention(), Contention::Flits(_) | Contention::Mesh(_)) {
            return Err(SimulationError::TraceOnFlits);
        }
        if trace.ranks() > 0 {
            self.check_ranks(u32::try_from(trace.ranks()).unwrap_or(u32::MAX))?;
        }
        let included = self.model().serialization();
        let free = self.free_routing();
        let routed = free.map(|routing| Routed { routes: routing.routes(), included });
        let distance = routed.as_ref().map(|routed| routed as &dyn Distance);
        let conditions = Conditions { disturbance: None, distance };
        dispatch!(self.model(), model => {
            let run = TraceRun::new(trace, model, conditions)?;
            Ok(self.with_network(seed, |network| run.run(network, stop))?)
        })
    }

    fn with_network<R>(&self, seed: u64, run: impl FnOnce(Option<&mut dyn Stepped>) -> R) -> R {
        let ends = Ends::of(self.model());
        match (self.contention(), self.routing()) {
            (Contention::Flow(flow), Some(routing)) => {
                run(Some(&mut FlowNetwork::new(routing.of_flows(), flow.clone(), ends)))
            }
            (Contention::Packets(packets), Some(routing)) => {
                let routing = routing.of_packets(seed);
                run(Some(&mut PacketNetwork::new(routing, packets.clone(), ends)))
            }
            _ => run(None),
        }
    }
}
