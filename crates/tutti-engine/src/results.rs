//! Figures derived from a run: completion time, skew, bandwidths. No simulation here.

use crate::Outcome;
use tutti_schedule::collective::Collective;
use tutti_units::{Bytes, Time};

impl Outcome {
    /// From the first rank's entry to the last rank's end.
    #[must_use]
    pub fn completion_time(&self) -> Time {
        let first = self.start.iter().min().copied().unwrap_or(Time::ZERO);
        self.finish.iter().max().copied().unwrap_or(Time::ZERO) - first
    }

    /// From the first rank's end to the last rank's: the skew that the collective leaves behind.
    #[must_use]
    pub fn finish_skew(&self) -> Time {
        let first = self.finish.iter().min().copied().unwrap_or(Time::ZERO);
        self.finish.iter().max().copied().unwrap_or(Time::ZERO) - first
    }
}

/// Algorithm bandwidth in bytes per second: the collective's size over its completion time.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "reported, never used in a simulation")]
pub fn algbw(size: Bytes, completion: Time) -> f64 {
    size.0 as f64 / (completion.ps() as f64 / 1e12)
}

/// Bus bandwidth in bytes per second: algbw x the collective's factor, comparable with a link's
/// rate.
#[must_use]
pub fn busbw(collective: Collective, ranks: u32, size: Bytes, completion: Time) -> f64 {
    algbw(size, completion) * collective.busbw_factor(ranks)
}
