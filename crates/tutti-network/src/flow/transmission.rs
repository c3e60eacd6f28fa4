//! The transmission of a message at rates that change.

use super::batch;
use crate::Ticket;
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

/// A message, from when it is handed over until its transmission ends.
#[derive(Clone, Copy)]
pub(super) struct Flow {
    pub(super) ticket: Ticket,
    pub(super) source: RankId,
    pub(super) destination: RankId,
    pub(super) bytes: Bytes,
    /// How many flows started before it.
    pub(super) serial: u64,
    pub(super) start: Time,
    /// The duration of its transmission without other flows.
    pub(super) alone: Time,
    /// From the end of the transmission to the arrival.
    pub(super) latency: Time,
    /// Bytes per picosecond without other flows, and now.
    pub(super) rate_alone: f64,
    pub(super) rate: f64,
    /// Bytes left at `since`, when the rate last changed.
    pub(super) left: f64,
    pub(super) since: Time,
    /// The batch that it stands for, if any.
    pub(super) batch: u32,
    /// Whether its arrival is not reported.
    pub(super) is_silent: bool,
    /// Whether it was ever slower than without other flows.
    slowed: bool,
    /// Whether its key among the ends is its end at the current rate; or else, its end at the rate `highest`,
    /// which its own has not exceeded since.
    pub(super) is_exact: bool,
    highest: f64,
}

/// Tolerance of a rounded-up end, in picoseconds: more than the rounding errors of a transmission of seconds.
const TOLERANCE: f64 = 1.0 / 64.0;

/// How far the rate of a flow may rise until the earliest time at which it may end is computed again.
const MARGIN: f64 = 1.5;

impl Flow {
    /// A message whose first byte leaves its sender's port at `start`.
    pub(super) fn new(
        ticket: Ticket,
        (source, destination): (RankId, RankId),
        bytes: Bytes,
        start: Time,
    ) -> Flow {
        Flow {
            ticket,
            source,
            destination,
            bytes,
            serial: 0,
            start,
            alone: Time::ZERO,
            latency: Time::ZERO,
            rate_alone: f64::INFINITY,
            rate: 0.0,
            left: 0.0,
            since: start,
            batch: batch::NONE,
            is_silent: false,
            slowed: false,
            is_exact: false,
            highest: 0.0,
        }
    }

    /// Sets the rate from `now` on.
    #[expect(clippy::cast_precision_loss, reason = "spans far below 2^53 ps")]
    pub(super) fn set_rate(&mut self, rate: f64, now: Time) {
        let span = now - self.since;
        if span > Time::ZERO {
            self.left = (self.left - self.rate * span.ps() as f64).max(0.0);
            self.slowed |= self.rate.total_cmp(&self.rate_alone).is_ne();
        }
        (self.rate, self.since) = (rate, now);
    }

    /// When the transmission ends at the current rate.
    fn end(&self) -> Time {
        if self.is_undisturbed() {
            return self.start + self.alone;
        }
        self.since + Time::from_ps(rounded_up(self.left / self.rate - TOLERANCE))
    }

    /// Whether it was never slower than without other flows.
    fn is_undisturbed(&self) -> bool {
        !self.slowed && self.rate.total_cmp(&self.rate_alone).is_eq()
    }

    /// When the transmission ends at the current rate, as its new key.
    pub(super) fn exact_end(&mut self) -> Time {
        (self.is_exact, self.highest) = (true, self.rate);
        self.end()
    }

    /// The new key after a change of the rate; none if the former one is still no later than the end. Rates
    /// change far more often than flows end, so most are not exact.
    pub(super) fn new_end(&mut self) -> Option<Time> {
        if self.is_undisturbed() {
            return Some(self.exact_end());
        }
        self.is_exact = false;
        (self.rate > self.highest).then(|| {
            self.highest = MARGIN * self.rate;
            self.earliest_end()
        })
    }

    /// A time before the end of a transmission that never exceeds the rate `highest`, further before it than
    /// the rounding errors of all later rates.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "rounded down, and the cast saturates"
    )]
    fn earliest_end(&self) -> Time {
        let span = self.left / self.highest;
        let age = (self.since - self.start).ps() as f64;
        self.since + Time::from_ps((span - 1e-9 * (span + age) - 1.0) as u64)
    }
}

/// A number rounded up, or 0 if it is negative. A conversion is faster than `f64::ceil`, a call.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and numbers above 2^53 are integers"
)]
fn rounded_up(number: f64) -> u64 {
    let below = number as u64;
    below.saturating_add(u64::from((below as f64) < number))
}
