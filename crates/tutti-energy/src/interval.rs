//! A value with its bounds.

use std::ops::{Add, Mul};

/// A non-negative value with the bounds of its sources.
///
/// Bounds are added and multiplied as if all errors had the same direction. They enclose the
/// possible values and give no probability.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Interval {
    /// The lower bound.
    pub low: f64,
    /// The value given by the sources.
    pub nominal: f64,
    /// The upper bound.
    pub high: f64,
}

impl Interval {
    /// A value without uncertainty.
    #[must_use]
    pub const fn exact(value: f64) -> Interval {
        Interval { low: value, nominal: value, high: value }
    }

    /// The interval multiplied by a non-negative `factor`.
    #[must_use]
    pub fn times(self, factor: f64) -> Interval {
        Interval {
            low: self.low * factor,
            nominal: self.nominal * factor,
            high: self.high * factor,
        }
    }
}

impl Add for Interval {
    type Output = Interval;
    fn add(self, other: Interval) -> Interval {
        Interval {
            low: self.low + other.low,
            nominal: self.nominal + other.nominal,
            high: self.high + other.high,
        }
    }
}

impl Mul for Interval {
    type Output = Interval;
    fn mul(self, other: Interval) -> Interval {
        Interval {
            low: self.low * other.low,
            nominal: self.nominal * other.nominal,
            high: self.high * other.high,
        }
    }
}

impl std::iter::Sum for Interval {
    fn sum<I: Iterator<Item = Interval>>(iter: I) -> Interval {
        iter.fold(Interval::default(), Add::add)
    }
}
