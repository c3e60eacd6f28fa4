//! Injected randomness: skew at the start, noise on processors, noise on the wire.
//!
//! Every draw is a pure function of (seed, kind, rank, step, index): the generator is counter-based
//! (Philox 4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011),
//! so a draw depends neither on the order in which a run asks nor on how many threads ask, and is the
//! same on every platform: integer arithmetic, and a logarithm from `libm`, not from the system.
//!
//! Seeds that differ by one give unrelated draws: repetition k of an experiment may use seed + k.

mod detours;
mod distribution;
mod error;
mod normal;
mod text;

pub use detours::Detours;
pub use distribution::{Distribution, Part};
pub use error::NoiseError;

use tutti_units::Time;
use tutti_units::ids::RankId;
use tutti_units::random::{random_bits, scale};

/// The disturbances of a run. The default is none.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Noise {
    /// Whose draws these are.
    pub seed: u64,
    /// How late each rank enters the collective.
    pub start_skew: Distribution,
    /// Time that a rank's processor loses at the start of each step.
    pub step: Distribution,
    /// Time by which each message arrives later.
    pub message: Distribution,
    /// Times in which a rank's processor does something else.
    pub detours: Option<Detours>,
}

impl Noise {
    /// Whether nothing is disturbed.
    #[must_use]
    pub fn is_none(&self) -> bool {
        let drawn = [&self.start_skew, &self.step, &self.message];
        drawn.into_iter().all(Distribution::is_none)
            && self.detours.as_ref().is_none_or(Detours::is_none)
    }

    /// How late `rank` enters the collective.
    #[inline]
    #[must_use]
    pub fn on_start(&self, rank: RankId) -> Time {
        self.draw(&self.start_skew, Stream::StartSkew, rank, 0, 0)
    }

    /// What the processor of `rank` loses at the start of `step`.
    #[inline]
    #[must_use]
    pub fn on_step(&self, rank: RankId, step: u32) -> Time {
        self.draw(&self.step, Stream::Step, rank, step, 0)
    }

    /// By how much the `index`-th message that `rank` sends in `step` is late.
    #[inline]
    #[must_use]
    pub fn on_message(&self, rank: RankId, step: u32, index: u32) -> Time {
        self.draw(&self.message, Stream::Message, rank, step, index)
    }

    /// When `rank` is done with `work` that it begins at `start`: detours that it meets come on top.
    #[inline]
    #[must_use]
    pub fn done(&self, rank: RankId, start: Time, work: Time) -> Time {
        match &self.detours {
            None => start + work,
            Some(detours) => detours.done(self.phase(detours, rank), start, work),
        }
    }

    /// How far into the cycle of its detours `rank` is at time zero.
    fn phase(&self, detours: &Detours, rank: RankId) -> Time {
        let rank = if detours.aligned() { 0 } else { rank.0 };
        let bits = random_bits(self.seed, [Stream::Phase as u32, rank, 0, 0]);
        Time::from_ps(scale(bits, u128::from(detours.cycle().ps())))
    }

    /// The random bits for the wait of the `index`-th message that `rank` sends in `step`, at the `hop`-th
    /// link of its way.
    #[inline]
    pub fn bits_on_link(&self, rank: RankId, step: u32, index: u32, hop: u32) -> u64 {
        let seed = random_bits(self.seed, [Stream::Link as u32, hop, 0, 0]);
        random_bits(seed, [Stream::Link as u32, rank.0, step, index])
    }

    #[inline]
    fn draw(
        &self,
        distribution: &Distribution,
        stream: Stream,
        rank: RankId,
        step: u32,
        index: u32,
    ) -> Time {
        match distribution {
            Distribution::None => Time::ZERO,
            Distribution::Fixed(time) => *time,
            random => random.draw(random_bits(self.seed, [stream as u32, rank.0, step, index])),
        }
    }
}

/// What a draw is for; the numbers are part of what a seed means and stay as they are.
#[derive(Clone, Copy)]
enum Stream {
    StartSkew = 0,
    Step = 1,
    Message = 2,
    Phase = 3,
    Link = 4,
}

#[cfg(test)]
mod tests;
