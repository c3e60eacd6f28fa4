//! Distributions of durations, drawn from 64 random bits each.

use std::fmt;
use std::sync::Arc;

use super::NoiseError;
use super::normal::{normal_below, normal_quantile, picoseconds};
use super::text::{self, Call};
use tutti_units::Time;
use tutti_units::random::{scale, unit};

/// A distribution of durations.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Distribution {
    /// Always zero.
    #[default]
    None,
    /// A constant.
    Fixed(Time),
    /// Uniform on the picoseconds from the first to the second, inclusive.
    Uniform(Time, Time),
    /// Exponential with this mean, rounded to the nearest picosecond; at most 36.8 times the mean.
    Exponential(Time),
    /// Normal with this mean and standard deviation, truncated at zero.
    Normal(Time, Time),
    /// Lognormal: this median, and the standard deviation of the logarithm.
    Lognormal(Time, f64),
    /// Pareto, heavy-tailed: longer than t with probability (least / t)^shape, at most `most`.
    Pareto {
        /// The minimum.
        least: Time,
        /// The tail exponent; at 1 and below an unbounded tail has no mean.
        shape: f64,
        /// The maximum.
        most: Time,
    },
    /// One of these samples with equal probability: an empirical distribution.
    Recorded(Arc<[Time]>),
    /// A mixture of these components; zero with the remaining probability.
    Mixture(Arc<[Part]>),
}

/// A component of a mixture.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its probability.
    pub chance: f64,
    /// Its distribution.
    pub distribution: Distribution,
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

    /// Lognormal with this median.
    ///
    /// # Errors
    /// When `sigma` is negative or not finite.
    pub fn lognormal(median: Time, sigma: f64) -> Result<Distribution, NoiseError> {
        if sigma.is_finite() && sigma >= 0.0 {
            return Ok(Distribution::Lognormal(median, sigma));
        }
        let text = format!("lognormal({median}, {sigma})");
        Err(NoiseError::Number { text, number: sigma.to_string(), expected: "zero or more" })
    }

    /// Pareto from `least` on; `Time::MAX` as `most` leaves the tail unbounded.
    ///
    /// # Errors
    /// When `shape` is not positive, `least` is zero, or `most` is less than `least`.
    pub fn pareto(least: Time, shape: f64, most: Time) -> Result<Distribution, NoiseError> {
        let chosen = Distribution::Pareto { least, shape, most };
        if !(shape.is_finite() && shape > 0.0) {
            let (text, number) = (chosen.to_string(), shape.to_string());
            return Err(NoiseError::Number { text, number, expected: "a shape above zero" });
        }
        if least == Time::ZERO {
            let (text, number) = (chosen.to_string(), least.to_string());
            return Err(NoiseError::Number { text, number, expected: "a minimum above zero" });
        }
        if least > most {
            let text = chosen.to_string();
            return Err(NoiseError::Inverted { text, low: least, high: most });
        }
        Ok(chosen)
    }

    /// Draws from a list of samples.
    ///
    /// # Errors
    /// When the list is empty.
    pub fn recorded(samples: &[Time]) -> Result<Distribution, NoiseError> {
        if samples.is_empty() {
            return Err(NoiseError::NoSamples);
        }
        Ok(Distribution::Recorded(samples.into()))
    }

    /// Draws from one of several distributions.
    ///
    /// # Errors
    /// When the list is empty, a probability is not between 0 and 1, or they sum to more than 1.
    pub fn mixture(parts: Vec<Part>) -> Result<Distribution, NoiseError> {
        if parts.is_empty() {
            return Err(NoiseError::NoParts);
        }
        let text = || Distribution::Mixture(parts.clone().into()).to_string();
        if let Some(part) = parts.iter().find(|part| !(0.0..=1.0).contains(&part.chance)) {
            let (text, number) = (text(), part.chance.to_string());
            return Err(NoiseError::Number { text, number, expected: "a probability from 0 to 1" });
        }
        let total: f64 = parts.iter().map(|part| part.chance).sum();
        if total > 1.0 + ROUNDING {
            let (text, number) = (text(), total.to_string());
            return Err(NoiseError::Number {
                text,
                number,
                expected: "probabilities that sum to at most 1",
            });
        }
        Ok(Distribution::Mixture(parts.into()))
    }

    /// Parses what [`Distribution`] prints, such as `none`, `uniform(0 ns, 2 us)`, `pareto(1 us, 1.5)` or
    /// `mixture(0.01 exponential(10 us))`.
    ///
    /// # Errors
    /// When the text is not a distribution, or an argument is invalid.
    pub fn parse(text: &str) -> Result<Distribution, NoiseError> {
        let call = text::split(text)?;
        match call.name {
            "none" => call.exactly::<0>("no arguments").map(|[]| Distribution::None),
            "fixed" => {
                call.time(call.exactly::<1>("one, the duration")?[0]).map(Distribution::Fixed)
            }
            "uniform" => {
                let [low, high] = call.exactly("two, the minimum and the maximum")?;
                Distribution::uniform(call.time(low)?, call.time(high)?)
            }
            "exponential" => {
                call.time(call.exactly::<1>("one, the mean")?[0]).map(Distribution::Exponential)
            }
            "normal" => {
                let [mean, deviation] = call.exactly("two, the mean and the standard deviation")?;
                Ok(Distribution::Normal(call.time(mean)?, call.time(deviation)?))
            }
            "lognormal" => {
                let [median, sigma] =
                    call.exactly("two, the median and the standard deviation of the logarithm")?;
                Distribution::lognormal(call.time(median)?, call.number(sigma)?)
            }
            "pareto" => Self::parse_pareto(&call),
            "recorded" => {
                let times = call.arguments.iter().map(|time| call.time(time));
                Distribution::recorded(&times.collect::<Result<Vec<_>, _>>()?)
            }
            "mixture" => Distribution::mixture(call.parts()?),
            name => Err(NoiseError::Unknown { name: name.to_owned() }),
        }
    }

    fn parse_pareto(call: &Call) -> Result<Distribution, NoiseError> {
        match call.arguments[..] {
            [least, shape] => {
                Distribution::pareto(call.time(least)?, call.number(shape)?, Time::MAX)
            }
            [least, shape, most] => {
                Distribution::pareto(call.time(least)?, call.number(shape)?, call.time(most)?)
            }
            _ => Err(call.wrong_count("the minimum, the shape, and optionally the maximum")),
        }
    }

    /// Whether every draw is zero.
    #[must_use]
    pub fn is_none(&self) -> bool {
        match self {
            Distribution::None => true,
            Distribution::Fixed(time)
            | Distribution::Exponential(time)
            | Distribution::Lognormal(time, _) => *time == Time::ZERO,
            Distribution::Uniform(_, high) => *high == Time::ZERO,
            Distribution::Normal(mean, deviation) => {
                *mean == Time::ZERO && *deviation == Time::ZERO
            }
            Distribution::Pareto { .. } => false,
            Distribution::Recorded(samples) => samples.iter().all(|sample| *sample == Time::ZERO),
            Distribution::Mixture(parts) => {
                parts.iter().all(|part| share(part.chance) == 0 || part.distribution.is_none())
            }
        }
    }

    /// Maps 64 random bits to a draw.
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
            Distribution::Exponential(mean) => picoseconds(-libm::log(unit(bits)) * real(*mean)),
            Distribution::Normal(mean, deviation) => normal(*mean, *deviation, bits),
            Distribution::Lognormal(median, sigma) => lognormal(*median, *sigma, bits),
            Distribution::Pareto { least, shape, most } => pareto(*least, *shape, *most, bits),
            Distribution::Recorded(samples) => {
                let index = scale(bits, samples.len() as u128);
                usize::try_from(index).map_or(Time::ZERO, |index| samples[index])
            }
            Distribution::Mixture(parts) => one_of(parts, bits),
        }
    }
}

/// Tolerance for the sum of decimal probabilities in binary.
const ROUNDING: f64 = 1e-9;

/// A probability as a fraction of 2^64; probabilities within the tolerance of one map to 2^64.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a probability is between 0 and 1"
)]
fn share(chance: f64) -> u128 {
    if chance >= 1.0 - ROUNDING { 1 << 64 } else { libm::round(chance * 2.0_f64.powi(64)) as u128 }
}

#[expect(clippy::cast_precision_loss, reason = "draws have the precision of a float")]
fn real(time: Time) -> f64 {
    time.ps() as f64
}

/// The truncated normal deviate that a fraction u exceeds.
fn normal(mean: Time, deviation: Time, bits: u64) -> Time {
    if deviation == Time::ZERO {
        return mean;
    }
    let drawn_from = normal_below(real(mean) / real(deviation));
    // u = 1 is the lower bound, where the quantile would be infinite.
    let exceeded = (unit(bits) * drawn_from).min(1.0 - f64::EPSILON);
    picoseconds(real(mean) - real(deviation) * normal_quantile(exceeded))
}

fn lognormal(median: Time, sigma: f64, bits: u64) -> Time {
    let deviate = -normal_quantile(unit(bits).min(1.0 - f64::EPSILON));
    picoseconds(real(median) * libm::exp(sigma * deviate))
}

fn pareto(least: Time, shape: f64, most: Time, bits: u64) -> Time {
    let beyond = if most == Time::MAX { 0.0 } else { libm::pow(real(least) / real(most), shape) };
    let exceeded = beyond + unit(bits) * (1.0 - beyond);
    picoseconds(real(least) * libm::pow(exceeded, -1.0 / shape)).min(most)
}

/// Selects the component by the bits; the position within it supplies the bits for its draw.
fn one_of(parts: &[Part], bits: u64) -> Time {
    let (mut chance, mut start) = (0.0, 0_u128);
    for part in parts {
        chance += part.chance;
        let end = share(chance);
        if u128::from(bits) < end {
            let fraction = ((u128::from(bits) - start) << 64) / (end - start);
            return u64::try_from(fraction).map_or(Time::ZERO, |bits| part.distribution.draw(bits));
        }
        start = end;
    }
    Time::ZERO
}

impl fmt::Display for Distribution {
    /// In the form that [`Distribution::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::None => f.write_str("none"),
            Distribution::Fixed(time) => write!(f, "fixed({time})"),
            Distribution::Uniform(low, high) => write!(f, "uniform({low}, {high})"),
            Distribution::Exponential(mean) => write!(f, "exponential({mean})"),
            Distribution::Normal(mean, deviation) => write!(f, "normal({mean}, {deviation})"),
            Distribution::Lognormal(median, sigma) => write!(f, "lognormal({median}, {sigma})"),
            Distribution::Pareto { least, shape, most: Time::MAX } => {
                write!(f, "pareto({least}, {shape})")
            }
            Distribution::Pareto { least, shape, most } => {
                write!(f, "pareto({least}, {shape}, {most})")
            }
            Distribution::Recorded(samples) => {
                let texts: Vec<_> = samples.iter().map(Time::to_string).collect();
                write!(f, "recorded({})", texts.join(", "))
            }
            Distribution::Mixture(parts) => {
                let part = |part: &Part| format!("{} {}", part.chance, part.distribution);
                write!(f, "mixture({})", parts.iter().map(part).collect::<Vec<_>>().join(", "))
            }
        }
    }
}
