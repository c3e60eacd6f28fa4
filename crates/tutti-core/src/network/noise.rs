//! Injected randomness: skew at the start, noise on processors, noise on the wire.
//!
//! Every draw is a pure function of (seed, kind, rank, step, index): the generator is counter-based
//! (Philox 4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011),
//! so a draw depends neither on the order in which a run asks nor on how many threads ask, and is the
//! same on every platform: integer arithmetic, and a logarithm from `libm`, not from the system.
//!
//! Seeds that differ by one give unrelated draws: repetition k of an experiment may use seed + k.

use std::fmt;
use std::sync::Arc;

use crate::ids::RankId;
use crate::units::{Time, UnitError};

/// Why a text is no distribution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum NoiseError {
    /// Neither a name nor `name(arguments)`.
    #[error("`{text}` is no distribution: expected one of {}", FORMS)]
    Malformed { text: String },
    /// No distribution has that name.
    #[error("there is no distribution `{name}`: expected one of {}", FORMS)]
    Unknown { name: String },
    /// Too few or too many arguments.
    #[error("`{text}` has {given} arguments: expected {expected}")]
    Arguments { text: String, given: usize, expected: &'static str },
    /// An argument that is no time.
    #[error("`{text}`: {problem}")]
    Value { text: String, problem: UnitError },
    /// A uniform distribution whose bounds are the wrong way round.
    #[error("`{text}` begins after it ends: {low} is more than {high}")]
    Inverted { text: String, low: Time, high: Time },
    /// A recorded distribution without samples.
    #[error("a recorded distribution has at least one sample")]
    NoSamples,
}

const FORMS: &str =
    "none, fixed(1 us), uniform(0 ns, 2 us), exponential(500 ns), recorded(1 us, 3 us, 2 us)";

/// How long a disturbance lasts.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Distribution {
    /// No disturbance.
    #[default]
    None,
    /// Always this long.
    Fixed(Time),
    /// Any picosecond from the first to the second, both included, each as likely.
    Uniform(Time, Time),
    /// Exponential with this mean, rounded to the nearest picosecond; at most 36.8 times the mean.
    Exponential(Time),
    /// One of these samples, each as likely: a measured distribution.
    Recorded(Arc<[Time]>),
}

impl Distribution {
    /// Uniform between two bounds.
    ///
    /// # Errors
    /// When `low` is more than `high`.
    pub fn uniform(low: Time, high: Time) -> Result<Distribution, NoiseError> {
        if low > high {
            let text = format!("uniform({low}, {high})");
            return Err(NoiseError::Inverted { text, low, high });
        }
        Ok(Distribution::Uniform(low, high))
    }

    /// Draws from a list of samples.
    ///
    /// # Errors
    /// When there are none.
    pub fn recorded(samples: &[Time]) -> Result<Distribution, NoiseError> {
        if samples.is_empty() {
            return Err(NoiseError::NoSamples);
        }
        Ok(Distribution::Recorded(samples.into()))
    }

    /// Parses `none`, `fixed(1 us)`, `uniform(0 ns, 2 us)`, `exponential(500 ns)` or
    /// `recorded(1 us, 3 us, 2 us)`.
    ///
    /// # Errors
    /// When the text is none of these, or a time in it cannot be read.
    pub fn parse(text: &str) -> Result<Distribution, NoiseError> {
        let (name, times) = split(text)?;
        let arguments = |expected| NoiseError::Arguments {
            text: text.trim().to_owned(),
            given: times.len(),
            expected,
        };
        match (name, &times[..]) {
            ("none", []) => Ok(Distribution::None),
            ("none", _) => Err(arguments("none at all")),
            ("fixed", [time]) => Ok(Distribution::Fixed(*time)),
            ("fixed", _) => Err(arguments("one, the time")),
            ("uniform", [low, high]) => Distribution::uniform(*low, *high),
            ("uniform", _) => Err(arguments("two, the least and the most")),
            ("exponential", [mean]) => Ok(Distribution::Exponential(*mean)),
            ("exponential", _) => Err(arguments("one, the mean")),
            ("recorded", samples) => Distribution::recorded(samples),
            _ => Err(NoiseError::Unknown { name: name.to_owned() }),
        }
    }

    /// Whether every draw is zero.
    #[must_use]
    pub fn is_none(&self) -> bool {
        match self {
            Distribution::None => true,
            Distribution::Fixed(time) | Distribution::Exponential(time) => *time == Time::ZERO,
            Distribution::Uniform(_, high) => *high == Time::ZERO,
            Distribution::Recorded(samples) => samples.iter().all(|sample| *sample == Time::ZERO),
        }
    }

    /// The mean in picoseconds, for reports.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shown to people, never simulated with")]
    pub fn mean_ps(&self) -> f64 {
        match self {
            Distribution::None => 0.0,
            Distribution::Fixed(time) | Distribution::Exponential(time) => time.ps() as f64,
            Distribution::Uniform(low, high) => f64::midpoint(low.ps() as f64, high.ps() as f64),
            Distribution::Recorded(samples) => {
                samples.iter().map(|sample| sample.ps() as f64).sum::<f64>() / samples.len() as f64
            }
        }
    }

    /// The draw that 64 random bits stand for.
    #[must_use]
    pub fn draw(&self, bits: u64) -> Time {
        match self {
            Distribution::None => Time::ZERO,
            Distribution::Fixed(time) => *time,
            Distribution::Uniform(low, high) => {
                let span = (*high - *low).ps();
                // Bits as a fraction of 2^64, of span + 1 values; bias below 2^-64 of the range.
                *low + Time::from_ps(scale(bits, u128::from(span) + 1))
            }
            Distribution::Exponential(mean) => exponential(*mean, bits),
            Distribution::Recorded(samples) => {
                let index = scale(bits, samples.len() as u128);
                usize::try_from(index).map_or(Time::ZERO, |index| samples[index])
            }
        }
    }
}

impl fmt::Display for Distribution {
    /// In the form that [`Distribution::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::None => f.write_str("none"),
            Distribution::Fixed(time) => write!(f, "fixed({time})"),
            Distribution::Uniform(low, high) => write!(f, "uniform({low}, {high})"),
            Distribution::Exponential(mean) => write!(f, "exponential({mean})"),
            Distribution::Recorded(samples) => {
                let texts: Vec<_> = samples.iter().map(Time::to_string).collect();
                write!(f, "recorded({})", texts.join(", "))
            }
        }
    }
}

/// The disturbances of a run. The default is none.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Noise {
    /// Whose draws these are.
    pub seed: u64,
    /// How late each rank enters the collective.
    pub start_skew: Distribution,
    /// Time that a rank's processor loses at the start of each step.
    pub step: Distribution,
    /// Time by which each message arrives later.
    pub message: Distribution,
}

impl Noise {
    /// Whether nothing is disturbed.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.start_skew.is_none() && self.step.is_none() && self.message.is_none()
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
}

/// 64 random bits for a counter.
#[inline]
pub(super) fn random_bits(seed: u64, counter: [u32; 4]) -> u64 {
    let [a, b, ..] = philox_4x32_10(counter, split_words(seed));
    u64::from(a) | u64::from(b) << 32
}

/// Philox 4x32 with ten rounds.
fn philox_4x32_10(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let [low_0, high_0] = split_words(u64::from(counter[0]) * 0xD251_1F53);
        let [low_1, high_1] = split_words(u64::from(counter[2]) * 0xCD9E_8D57);
        counter = [high_1 ^ counter[1] ^ key[0], low_1, high_0 ^ counter[3] ^ key[1], low_0];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

/// The low and the high half.
#[expect(clippy::cast_possible_truncation, reason = "the halves of 64 bits")]
pub(super) const fn split_words(bits: u64) -> [u32; 2] {
    [bits as u32, (bits >> 32) as u32]
}

/// `bits` / 2^64 of `range`, rounded down; `range` is at most 2^64.
pub(super) fn scale(bits: u64, range: u128) -> u64 {
    // bits < 2^64 and range <= 2^64, so the product is below 2^128.
    ((u128::from(bits) * range) >> 64) as u64
}

/// -mean ln(u) for u in (0, 1], in steps of 2^-53.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "53 bits are exact in f64; the result is not negative and saturates"
)]
fn exponential(mean: Time, bits: u64) -> Time {
    let u = ((bits >> 11) + 1) as f64 * 2.0_f64.powi(-53);
    Time::from_ps(libm::round(-libm::log(u) * mean.ps() as f64) as u64)
}

/// `name(time, time)` as a name and its times.
fn split(text: &str) -> Result<(&str, Vec<Time>), NoiseError> {
    let trimmed = text.trim();
    let malformed = || NoiseError::Malformed { text: trimmed.to_owned() };
    let Some((name, rest)) = trimmed.split_once('(') else {
        let plain = !trimmed.is_empty() && !trimmed.contains([')', ',', ' ']);
        return if plain { bare(trimmed) } else { Err(malformed()) };
    };
    let inner = rest.strip_suffix(')').ok_or_else(malformed)?;
    if inner.contains(['(', ')']) {
        return Err(malformed());
    }
    if inner.trim().is_empty() {
        return Ok((name.trim(), Vec::new()));
    }
    let parse = |part: &str| {
        Time::parse(part).map_err(|problem| NoiseError::Value { text: trimmed.to_owned(), problem })
    };
    Ok((name.trim(), inner.split(',').map(parse).collect::<Result<_, _>>()?))
}

/// A name without parentheses; a time on its own is a likely slip for `fixed(..)`.
fn bare(name: &str) -> Result<(&str, Vec<Time>), NoiseError> {
    if name.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
        return Err(NoiseError::Malformed { text: name.to_owned() });
    }
    Ok((name, Vec::new()))
}

#[cfg(test)]
mod tests;
