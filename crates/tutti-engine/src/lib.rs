//! The engine: runs a schedule on a network model and says when each rank is done.
//!
//! The models of [`tutti_network`] are free of contention: what becomes of a message depends on its
//! sender alone, and when a rank goes on depends only on the messages its step waits for. The order in
//! which ranks are looked at therefore cannot change any time, and the engine takes the cheapest: causal
//! order. A rank runs until it waits; the message that completes what it waits for puts it at the end of
//! a queue. [`oracle`] does the same the obvious way, with every event in a queue ordered by time, and
//! tests hold the two together.
//!
//! The life of a message: the executor asks the schedule for a step, hands each send to
//! [`MessageModel::send`], puts the arrival in the receiver's mailbox, and when all that the receiver's
//! step waits for is there, takes it in order of arrival through [`MessageModel::receive`].
#![deny(unsafe_code)]

mod awaited;
mod combining;
mod conditions;
mod dispatch;
pub mod endpoint;
mod error;
mod executor;
mod mailbox;
mod matching;
#[cfg(any(test, feature = "oracle"))]
pub mod oracle;
mod probe;
mod record;
pub mod results;
pub mod training;
mod transit;
pub mod workload;

pub use conditions::{Conditions, Distance, Disturbance, Loaded, LocalCosts, Ranks, Routed};
pub use error::{EngineError, Waiting};
pub use probe::{Probe, Silent, TimelineProbe};
pub use record::{Activity, MessageRecord, Outcome, Span, Timeline};

use std::sync::atomic::{AtomicBool, Ordering};

use executor::Executor;
use tutti_network::{Carrier, MessageModel, Uncontended};
use tutti_schedule::{Layout, Message, Schedule, Step};
use tutti_units::ids::RankId;

/// A schedule, a payload, a network model and the conditions they meet: all that a run depends on.
#[derive(Clone, Copy)]
pub struct Simulation<'a, M: MessageModel> {
    /// What to run.
    pub schedule: &'a dyn Schedule,
    /// On how much data; its chunks must be the schedule's.
    pub layout: Layout,
    /// How long messages take.
    pub model: &'a M,
    /// How long local work takes.
    pub costs: LocalCosts,
    /// What else gets in the way: skew, noise, slow ranks, distance.
    pub conditions: Conditions<'a>,
}

impl<M: MessageModel> Simulation<'_, M> {
    /// Runs to the end.
    ///
    /// # Errors
    /// When there is no way for a message, ranks wait for messages that never come, messages are left
    /// over, nothing moved at all, or time ran out of its range.
    pub fn run(&self) -> Result<Outcome, EngineError> {
        self.run_with(&mut Silent)
    }

    /// Runs to the end and records every span and message.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn run_recorded(&self) -> Result<(Outcome, Timeline), EngineError> {
        let mut probe = TimelineProbe::default();
        let outcome = self.run_with(&mut probe)?;
        Ok((outcome, probe.into_timeline()))
    }

    /// Runs to the end with an observer.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn run_with<P: Probe>(&self, probe: &mut P) -> Result<Outcome, EngineError> {
        self.run_through(&mut Uncontended, &AtomicBool::new(false), probe)
    }

    /// Runs to the end, or until somebody sets `stop`, over a network in which messages meet.
    ///
    /// # Errors
    /// As [`Simulation::run`], and when it was stopped.
    pub fn run_through<C: Carrier, P: Probe>(
        &self,
        carrier: &mut C,
        stop: &AtomicBool,
        probe: &mut P,
    ) -> Result<Outcome, EngineError> {
        self.check_layout()?;
        self.check_ways(carrier)?;
        let stopped = || stop.load(Ordering::Relaxed);
        let mut executor = Executor::new(self, carrier, probe);
        for rank in (0..self.schedule.shape().ranks).map(RankId) {
            executor.advance(rank);
            if stopped() {
                return Err(EngineError::Stopped);
            }
        }
        loop {
            while let Some(rank) = executor.next_ready() {
                executor.resume(rank);
                if stopped() {
                    return Err(EngineError::Stopped);
                }
            }
            if stopped() || !executor.next_arrival() {
                break;
            }
        }
        if stopped() { Err(EngineError::Stopped) } else { executor.finish() }
    }

    /// Refuses messages for which there is no way, before any is sent.
    fn check_ways<C: Carrier>(&self, carrier: &C) -> Result<(), EngineError> {
        let distance = self.conditions.distance.filter(|distance| distance.lacks_ways());
        if distance.is_none() && !carrier.lacks_ways() {
            return Ok(());
        }
        let reaches = |sender, receiver| {
            carrier.reaches(sender, receiver)
                && distance.is_none_or(|d| d.reaches(sender, receiver))
        };
        let ranks = self.schedule.shape().ranks;
        let mut content = Step::new();
        for sender in (0..ranks).map(RankId) {
            for step in 0..self.schedule.steps(sender) {
                content.clear();
                self.schedule.step(sender, step, &mut content);
                let lost =
                    |message: &&Message| message.peer.0 < ranks && !reaches(sender, message.peer);
                if let Some(message) = content.sends.iter().find(lost) {
                    return Err(EngineError::NoWay { sender, step, receiver: message.peer });
                }
            }
        }
        Ok(())
    }

    fn check_layout(&self) -> Result<(), EngineError> {
        let (layout, schedule) = (self.layout.chunks(), self.schedule.shape().chunks);
        if layout == schedule { Ok(()) } else { Err(EngineError::WrongLayout { layout, schedule }) }
    }
}
