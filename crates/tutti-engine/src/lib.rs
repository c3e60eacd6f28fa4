//! The engine: simulates a schedule on a network model and yields the completion time of each rank.
//!
//! The models of [`tutti_network`] are contention-free: the times of a message depend only on its
//! sender, and a rank continues as soon as the messages of its step have arrived. The order in
//! which ranks are simulated therefore has no effect, and the engine uses the cheapest one: causal
//! order. A rank runs until it blocks; the last message it waits for appends it to the ready queue.
//! [`oracle`] is the reference model, with all events in a queue ordered by time; tests compare the
//! two.
//!
//! The life of a message: the executor generates a step from the schedule, passes each send to
//! [`MessageModel::send`], and puts the arrival in the receiver's mailbox. When all messages of the
//! receiver's step have arrived, it receives them in order of arrival through
//! [`MessageModel::receive`].
#![deny(unsafe_code)]

mod awaited;
mod combining;
mod conditions;
pub mod dataflow;
mod dispatch;
pub mod endpoint;
mod error;
mod executor;
mod mailbox;
mod matching;
#[cfg(any(test, feature = "oracle"))]
pub mod oracle;
pub mod perfetto;
mod probe;
mod record;
pub mod results;
pub mod trace;
pub mod training;
mod transit;
mod workers;
pub mod workload;

pub use conditions::{Conditions, Distance, Disturbance, Loaded, LocalCosts, Ranks, Routed};
pub use error::{EngineError, Waiting};
pub use probe::{Probe, Silent, TimelineProbe};
pub use record::{Activity, MessageRecord, Outcome, Span, Timeline};

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use executor::Executor;
use tutti_network::{Carrier, MessageModel, Uncontended};
use tutti_schedule::{Layout, Message, Schedule, Step};
use tutti_units::ids::RankId;
use workers::{OfWorkers, Workers};

/// The inputs of a run: schedule, payload, network model and conditions.
#[derive(Clone, Copy)]
pub struct Simulation<'a, M: MessageModel> {
    /// The schedule.
    pub schedule: &'a dyn Schedule,
    /// The payload layout; it has the chunks of the schedule.
    pub layout: Layout<'a>,
    /// The network model.
    pub model: &'a M,
    /// The cost of local work.
    pub costs: LocalCosts,
    /// Skew, noise, slow ranks and distance.
    pub conditions: Conditions<'a>,
}

impl<M: MessageModel> Simulation<'_, M> {
    /// Runs to completion.
    ///
    /// # Errors
    /// When a message has no path, ranks are blocked forever, messages are never received, no
    /// message is sent, or the time is out of range.
    pub fn run(&self) -> Result<Outcome, EngineError> {
        self.run_with(&mut Silent)
    }

    /// Runs to completion and records every span and message.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn run_recorded(&self) -> Result<(Outcome, Timeline), EngineError> {
        let mut probe = TimelineProbe::default();
        let outcome = self.run_with(&mut probe)?;
        Ok((outcome, probe.into_timeline().by_rank(self.schedule)))
    }

    /// Runs to completion with an observer.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn run_with<P: Probe>(&self, probe: &mut P) -> Result<Outcome, EngineError> {
        self.run_through(&mut Uncontended, &AtomicBool::new(false), probe)
    }

    /// Runs to completion, or until `stop` is set, over a network with contention.
    ///
    /// # Errors
    /// As [`Simulation::run`], and when it was stopped.
    pub fn run_through<C: Carrier, P: Probe>(
        &self,
        carrier: &mut C,
        stop: &AtomicBool,
        probe: &mut P,
    ) -> Result<Outcome, EngineError> {
        self.run_before(&AtomicU64::new(u64::MAX), carrier, stop, probe)
    }

    /// As [`Simulation::run_through`], but ends as soon as a rank exceeds `latest`, a time in ps
    /// that other threads may lower.
    ///
    /// # Errors
    /// As [`Simulation::run_through`], and when a rank ends later than `latest`.
    pub fn run_before<C: Carrier, P: Probe>(
        &self,
        latest: &AtomicU64,
        carrier: &mut C,
        stop: &AtomicBool,
        probe: &mut P,
    ) -> Result<Outcome, EngineError> {
        self.check_layout()?;
        self.check_paths(carrier)?;
        match Workers::of(self.schedule) {
            None => self.execute(latest, carrier, stop, probe),
            Some(workers) => self.execute_workers(&workers, latest, carrier, stop, probe),
        }
    }

    /// Runs each channel of a rank as a rank. Probes observe these.
    fn execute_workers<C: Carrier, P: Probe>(
        &self,
        workers: &Workers<'_>,
        latest: &AtomicU64,
        carrier: &mut C,
        stop: &AtomicBool,
        probe: &mut P,
    ) -> Result<Outcome, EngineError> {
        let per_rank = workers.per_rank();
        let Conditions { disturbance, distance } = self.conditions;
        let disturbance = disturbance.map(|of_ranks| OfWorkers { of_ranks, per_rank });
        let distance = distance.map(|of_ranks| OfWorkers { of_ranks, per_rank });
        let conditions = Conditions {
            disturbance: disturbance.as_ref().map(|one| one as &dyn Disturbance),
            distance: distance.as_ref().map(|one| one as &dyn Distance),
        };
        let of_workers = Simulation { schedule: workers, conditions, ..*self };
        let mut carrier = OfWorkers { of_ranks: carrier, per_rank };
        let outcome = of_workers.execute(latest, &mut carrier, stop, probe);
        outcome.map(|outcome| per_rank.outcome(outcome)).map_err(|error| per_rank.error(error))
    }

    fn execute<C: Carrier, P: Probe>(
        &self,
        latest: &AtomicU64,
        carrier: &mut C,
        stop: &AtomicBool,
        probe: &mut P,
    ) -> Result<Outcome, EngineError> {
        let stopped = || stop.load(Ordering::Relaxed);
        let mut executor = Executor::new(self, carrier, probe);
        for rank in (0..self.schedule.shape().ranks).map(RankId) {
            executor.launch(rank);
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
                if executor.time_of(rank).ps() > latest.load(Ordering::Relaxed) {
                    return Err(EngineError::TooLate);
                }
            }
            if stopped() || !executor.next_arrival() {
                break;
            }
        }
        if stopped() { Err(EngineError::Stopped) } else { executor.finish() }
    }

    /// Returns an error for messages without a path, before any is sent.
    fn check_paths<C: Carrier>(&self, carrier: &C) -> Result<(), EngineError> {
        let distance = self.conditions.distance.filter(|distance| distance.has_unreachable_pairs());
        if distance.is_none() && !carrier.has_unreachable_pairs() {
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
                    return Err(EngineError::NoPath { sender, step, receiver: message.peer });
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
