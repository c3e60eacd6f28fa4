//! Repetition of a schedule, as in benchmarks that divide the time by the number of repetitions.

use std::sync::Arc;

use super::compose::ComposeError;
use super::{Blocks, Channels, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

/// A schedule, `count` times in sequence. A rank starts the next repetition as soon as it completes
/// one, without a barrier. Each repetition works on the previous results, so it cannot be verified
/// as one collective.
pub struct Repeated {
    shape: Shape,
    inner: Arc<dyn Schedule>,
    count: u32,
}

impl Repeated {
    /// Repeats a schedule.
    ///
    /// # Errors
    /// If `count` is zero, or the result is in a slot other than the data.
    pub fn new(inner: Arc<dyn Schedule>, count: u32) -> Result<Repeated, ComposeError> {
        let mut shape = inner.shape().clone();
        if count == 0 {
            return Err(ComposeError::NoPhases);
        }
        if shape.result != Slot::DATA && count > 1 {
            return Err(ComposeError::OutOfPlace { name: shape.name });
        }
        shape.name = format!("{} x {count}", shape.name);
        Ok(Repeated { shape, inner, count })
    }
}

impl Schedule for Repeated {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        self.inner.steps(rank).saturating_mul(self.count)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        if let Some(within) = step.checked_rem(self.inner.steps(rank)) {
            self.inner.step(rank, within, out);
        }
    }

    fn blocks(&self) -> Option<&Blocks> {
        self.inner.blocks()
    }

    fn is_ordered(&self, rank: RankId, step: u32) -> bool {
        let within = step.checked_rem(self.inner.steps(rank));
        within.is_some_and(|within| self.inner.is_ordered(rank, within))
    }

    fn channels(&self) -> Option<Channels> {
        self.inner.channels()
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        let within = step.checked_rem(self.inner.steps(rank));
        within.map_or_else(String::new, |within| self.inner.step_name(rank, within))
    }
}
