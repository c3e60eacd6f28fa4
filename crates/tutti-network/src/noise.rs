//! Injected noise: arrival skew, noise on processors, noise on messages.
//!
//! Every draw is a pure function of (seed, kind, rank, step, index). The generator is counter-based
//! (Philox 4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
//! A draw therefore does not depend on the order of draws or the number of threads. It is the same on every
//! platform: integer arithmetic, and a logarithm from `libm`, not from the system.
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

/// The noise of a run. The default has no effect.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Noise {
    /// The seed of all draws.
    pub seed: u64,
    /// How late each rank enters the collective.
    pub start_skew: Distribution,
    /// Time that a rank's processor loses at the start of each step.
    pub step: Distribution,
    /// Time by which each message arrives later.
    pub message: Distribution,
    /// Times in which a rank's processor is interrupted.
    pub detours: Option<Detours>,
}

impl Noise {
    /// Whether the noise has no effect.
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

    /// Time that the processor of `rank` loses at the start of `step`.
    #[inline]
    #[must_use]
    pub fn on_step(&self, rank: RankId, step: u32) -> Time {
        self.draw(&self.step, Stream::Step, rank, step, 0)
    }

    /// Delay of the `index`-th message that `rank` sends in `step`.
    #[inline]
    #[must_use]
    pub fn on_message(&self, rank: RankId, step: u32, index: u32) -> Time {
        self.draw(&self.message, Stream::Message, rank, step, index)
    }

    /// When `rank` completes `work` that it starts at `start`, including detours.
    #[inline]
    #[must_use]
    pub fn done(&self, rank: RankId, start: Time, work: Time) -> Time {
        match &self.detours {
            None => start + work,
            Some(detours) => detours.done(self.phase(detours, rank), start, work),
        }
    }

    /// The phase of `rank` in the cycle of its detours at time zero.
    fn phase(&self, detours: &Detours, rank: RankId) -> Time {
        let rank = if detours.aligned() { 0 } else { rank.0 };
        let bits = random_bits(self.seed, [Stream::Phase as u32, rank, 0, 0]);
        Time::from_ps(scale(bits, u128::from(detours.cycle().ps())))
    }

    /// The random bits for the queueing delay of the `index`-th message that `rank` sends in `step`, at the
    /// `hop`-th link of its route.
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

/// The random stream of a draw. The numbers must not change: they determine the draws of a seed.
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
