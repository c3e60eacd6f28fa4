//! Schedules of a given size as traces.

use super::builder::GraphBuilder;
use super::{Operations, TraceError, TraceGraph, kind};
use crate::LocalCosts;
use tutti_schedule::{Layout, Local, Message, Schedule, Step};
use tutti_units::Time;
use tutti_units::ids::RankId;

/// Turns a schedule into a trace with the dependencies of its steps: sends in order, then the
/// receives, then local work. Multicasts and in-network reductions become separate messages.
///
/// # Errors
/// When the trace has too many operations.
pub fn lower(
    schedule: &dyn Schedule,
    layout: &Layout<'_>,
    costs: &LocalCosts,
) -> Result<TraceGraph, TraceError> {
    let mut step = Step::new();
    let mut builder = GraphBuilder::default();
    for rank in (0..schedule.shape().ranks).map(RankId) {
        let mut lowering = Lowering { of: Operations::new(), tail: Vec::new(), layout, costs };
        for index in 0..schedule.steps(rank) {
            step.clear();
            schedule.step(rank, index, &mut step);
            lowering.add(&step);
        }
        builder.add(&lowering.of);
    }
    builder.finish()
}

struct Lowering<'a> {
    of: Operations,
    /// The operations that the next one awaits.
    tail: Vec<i64>,
    layout: &'a Layout<'a>,
    costs: &'a LocalCosts,
}

impl Lowering<'_> {
    fn add(&mut self, step: &Step) {
        for send in &step.sends {
            let at = self.message(kind::SEND, send);
            self.tail = vec![at];
        }
        if step.recvs.len() > 1 && self.tail.len() > 1 {
            // One operation in between avoids a dependency for each pair.
            self.compute(Time::ZERO);
        }
        let posted: Vec<i64> =
            step.recvs.iter().map(|recv| self.message(kind::RECEIVE, recv)).collect();
        if !posted.is_empty() {
            self.tail = posted;
        }
        for &local in &step.locals {
            let time = self.time(local);
            if time != Time::ZERO {
                self.compute(time);
            }
        }
    }

    fn message(&mut self, kind: u8, message: &Message) -> i64 {
        let bytes = i64::try_from(self.layout.bytes(message.chunks).0).unwrap_or(i64::MAX);
        let peer = i32::try_from(message.peer.0).unwrap_or(i32::MAX);
        let at = self.of.push(kind, bytes, (peer, 0), 0);
        self.require_tail();
        at
    }

    fn compute(&mut self, time: Time) {
        let duration = i64::try_from(time.ps()).unwrap_or(i64::MAX);
        let at = self.of.push(kind::COMPUTE, duration, (-1, 0), 0);
        self.require_tail();
        self.tail = vec![at];
    }

    fn require_tail(&mut self) {
        for &on in &self.tail {
            self.of.require(on);
        }
    }

    fn time(&self, local: Local) -> Time {
        match local {
            Local::Reduce { operands, chunks, .. } => {
                self.costs.reduce(operands.len(), self.layout.bytes(chunks))
            }
            Local::Copy { chunks, .. } => self.costs.copy.of(self.layout.bytes(chunks)),
            Local::Compute { duration } | Local::Sleep { duration } => duration,
        }
    }
}
