//! A value with its bounds.

use std::ops::{Add, Mul};

/// A value that is not below zero, and the bounds that its sources leave it.
///
/// Bounds are added and multiplied as if all that is uncertain erred in the same direction: they enclose
/// what is possible, and say nothing of how likely it is.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Interval {
    /// No less than this.
    pub low: f64,
    /// As the sources give it.
    pub nominal: f64,
    /// No more than this.
    pub high: f64,
}

impl Interval {
    /// A value without doubt.
    #[must_use]
    pub const fn exact(value: f64) -> Interval {
        Interval { low: value, nominal: value, high: value }
    }

    /// The same `factor` times over; a factor is not below zero.
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
