//! Which schedule of recursive multiplying is fastest on a machine: scores, and a search that scales.
//!
//! On a **flat** network, without distance and noise, a schedule has a score without a run of the engine. It is
//! the closed form if there is one ([`Method::ClosedForm`]), else a simulation with one rank per equivalence
//! class ([`Method::Classes`]). Both equal the engine's time to the picosecond. [`Flat::rank`] scores every
//! schedule; [`best`] finds the best ones in larger search spaces, with a bound on the optimum.
//!
//! Where distances count, the order of the stages does too: [`orders`] finds candidates, for the engine to
//! decide between.

mod best;
mod bounds;
mod classes;
mod multiset;
mod orders;
mod products;

pub use best::{Best, Effort, best};
pub use bounds::Bounds;
pub use orders::{Candidate, orders};

use crate::closed_form;
use tutti_engine::LocalCosts;
use tutti_network::Model;
use tutti_schedule::algorithm::search::{Kind, factors};
use tutti_schedule::algorithm::stage_bound;
use tutti_schedule::notation::Notation;
use tutti_units::{Bytes, Time};

/// All that the time of a schedule depends on where distance plays no part.
#[derive(Clone, Copy, Debug)]
pub struct Flat {
    /// How long messages take.
    pub model: Model,
    /// The payload: all of it in each message.
    pub bytes: Bytes,
    /// How long local work takes.
    pub costs: LocalCosts,
}

/// How a time was found. Each is exact.
#[derive(Clone, Copy, PartialEq, Eq, Debug, tutti_units::Named)]
pub enum Method {
    /// Added up from a formula for each stage.
    #[named("closed form")]
    ClosedForm,
    /// Simulated with one rank for each class of ranks that behave alike.
    #[named("rank classes")]
    Classes,
}

/// A schedule and its time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scored {
    /// Until the last rank is done.
    pub time: Time,
    /// How that was found.
    pub method: Method,
    /// The schedule.
    pub notation: Notation,
}

impl Flat {
    /// The time of a schedule: the engine's, without its work.
    #[must_use]
    pub fn score(&self, notation: &Notation) -> (Time, Method) {
        let (time, method, _) = self.measure(notation);
        (self.costs.launch + time, method)
    }

    /// Its time without the launch, the method, and the number of evaluated messages.
    fn measure(&self, notation: &Notation) -> (Time, Method, u64) {
        if Kind::of(notation) == Kind::Factored
            && let Some(time) = self.closed_form(notation)
        {
            return (time, Method::ClosedForm, 0);
        }
        let mut walk = classes::Walk::new(self);
        let time = walk.time(notation);
        (time, Method::Classes, walk.work)
    }

    /// Whether the times of a factored schedule's stages add up, so that their order makes no difference.
    fn adds_up(&self) -> bool {
        self.closed_form(&factors(&[2, 2])).is_some()
    }

    fn closed_form(&self, notation: &Notation) -> Option<Time> {
        let reduce = |operands, bytes| self.costs.reduce(operands, bytes);
        closed_form::time(&self.model, &stage_bound(notation), self.bytes, 1, reduce)
    }

    /// Scores schedules, best first; of equal times the earlier one stays in front.
    #[must_use]
    pub fn rank(&self, notations: impl Iterator<Item = Notation>) -> Vec<Scored> {
        let score = |notation| {
            let (time, method) = self.score(&notation);
            Scored { time, method, notation }
        };
        let mut scored: Vec<Scored> = notations.map(score).collect();
        scored.sort_by_key(|scored| scored.time);
        scored
    }

    /// The lower bounds of schedules, without the launch.
    #[must_use]
    pub fn bounds(&self) -> Bounds<'_> {
        Bounds::new(self)
    }
}

#[cfg(test)]
mod tests;
