//! Quantities with units: the only place where they are parsed, converted and rounded.
//!
//! Time is an integer number of picoseconds, data an integer number of bytes. A time per byte is an
//! exact fraction, so that 900 GB/s and 0.4 ns/B are exact until bytes are converted to time. That
//! one conversion rounds up and uses 128 bits. GB is 10^9 bytes, GiB 2^30; rates are per direction.
#![deny(unsafe_code)]

// The derived code refers to this crate by name.
extern crate self as tutti_units;

mod exact;
pub mod ids;
mod length;
mod pace;
pub mod parameter;
mod quantity;
pub mod random;
pub mod refusal;

pub use length::Length;
pub use pace::{Frequency, OpRate};
pub use tutti_derive::{Named, Refusal};

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use quantity::Quantity;
pub use quantity::gcd;

/// Why a quantity cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "UnitError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum UnitError {
    /// The text is not `<number> <unit>`.
    #[error("`{text}` is not a {quantity}: expected a number and a unit, such as {example}")]
    Malformed { text: String, quantity: &'static str, example: &'static str },
    /// A number without a unit.
    #[error("`{text}` has no unit: a {quantity} needs one of {units}, such as {example}")]
    MissingUnit { text: String, quantity: &'static str, units: String, example: &'static str },
    /// A unit of another quantity.
    #[error("`{unit}` in `{text}` is not a unit of {quantity}: expected one of {units}")]
    UnknownUnit { text: String, unit: String, quantity: &'static str, units: String },
    /// A value finer than the resolution; nothing is rounded silently.
    #[error("`{text}` is finer than {finest}, the finest {quantity} there is")]
    TooFine { text: String, quantity: &'static str, finest: &'static str },
    /// A value beyond the range.
    #[error("`{text}` is too large for a {quantity}: the largest is {largest}")]
    TooLarge { text: String, quantity: &'static str, largest: &'static str },
    /// Zero for a quantity that must be positive.
    #[error("`{text}` is zero: a {quantity} must be positive")]
    Zero { text: String, quantity: &'static str },
    /// A negative value.
    #[error("`{text}` is negative: a {quantity} cannot be")]
    Negative { text: String, quantity: &'static str },
}

/// A point or span of simulated time in integer picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(u64);

impl Time {
    /// The start of every simulation, and the empty span.
    pub const ZERO: Time = Time(0);
    /// The value at which sums saturate. A run that ends after [`Time::LATEST`] is an error.
    pub const MAX: Time = Time(u64::MAX);
    /// The latest time at which a run may end: results store times as signed 64-bit integers.
    pub const LATEST: Time = Time(i64::MAX.unsigned_abs());

    /// Converts from picoseconds.
    #[inline]
    #[must_use]
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// The time in picoseconds.
    #[inline]
    #[must_use]
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// The span multiplied by `n`.
    #[inline]
    #[must_use]
    pub const fn times(self, n: u64) -> Time {
        Time(self.0.saturating_mul(n))
    }

    /// Scales a duration at nominal speed to `speed`, rounded up; [`Time::MAX`] at speed zero.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a speed is a measured ratio; the cast saturates, and NaN becomes zero"
    )]
    pub fn at_speed(self, speed: f64) -> Time {
        Time((self.0 as f64 / speed).ceil() as u64)
    }

    /// Parses `"1.34 us"`; units are ps, ns, us, ms and s.
    ///
    /// # Errors
    /// The text is not a time, has no unit, or is finer than a picosecond.
    pub fn parse(text: &str) -> Result<Time, UnitError> {
        let exact = Quantity::TIME.parse(text)?;
        if exact.denominator != 1 {
            return Err(Quantity::TIME.too_fine(text));
        }
        u64::try_from(exact.numerator).map(Time).map_err(|_| Quantity::TIME.too_large(text))
    }
}

impl Add for Time {
    type Output = Time;
    #[inline]
    fn add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, other: Time) {
        *self = *self + other;
    }
}

impl Sub for Time {
    type Output = Time;
    /// The span from `other` to `self`; zero if `other` is later.
    #[inline]
    fn sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
}

impl std::iter::Sum for Time {
    fn sum<I: Iterator<Item = Time>>(iter: I) -> Time {
        iter.fold(Time::ZERO, Add::add)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0..1_000 => (1, "ps"),
            1_000..1_000_000 => (1_000, "ns"),
            1_000_000..1_000_000_000 => (1_000_000, "us"),
            1_000_000_000..1_000_000_000_000 => (1_000_000_000, "ms"),
            _ => (1_000_000_000_000, "s"),
        };
        decimal(f, self.0, scale)?;
        write!(f, " {unit}")
    }
}

/// Writes `value / scale` without loss; scale is a power of ten.
fn decimal(f: &mut fmt::Formatter<'_>, value: u64, scale: u64) -> fmt::Result {
    let (quotient, rest) = (value / scale, value % scale);
    if rest == 0 {
        return write!(f, "{quotient}");
    }
    let digits = scale.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    write!(f, "{quotient}.{}", fraction.trim_end_matches('0'))
}

/// An amount of data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Parses `"64 KiB"` or `"8 B"`; decimal (KB, MB, GB, TB) and binary (KiB, MiB, GiB, TiB)
    /// units.
    ///
    /// # Errors
    /// The text is not a size, has no unit, or is not an integer number of bytes.
    pub fn parse(text: &str) -> Result<Bytes, UnitError> {
        let exact = Quantity::SIZE.parse(text)?;
        if exact.denominator != 1 {
            return Err(Quantity::SIZE.too_fine(text));
        }
        u64::try_from(exact.numerator).map(Bytes).map_err(|_| Quantity::SIZE.too_large(text))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (power, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
            if self.0 >= 1 << power && self.0.is_multiple_of(1 << power) {
                return write!(f, "{} {unit}", self.0 >> power);
            }
        }
        write!(f, "{} B", self.0)
    }
}

/// Time per byte as an exact fraction: `ps` picoseconds for every `bytes` bytes.
///
/// The parameters beta, gamma and G of the literature have this type; a link rate is its inverse.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TimePerByte {
    ps: u64,
    bytes: u64,
}

impl Default for TimePerByte {
    fn default() -> TimePerByte {
        TimePerByte::ZERO
    }
}

impl TimePerByte {
    /// Zero time for any number of bytes.
    pub const ZERO: TimePerByte = TimePerByte { ps: 0, bytes: 1 };

    /// `ps` picoseconds per `bytes` bytes; `None` if `bytes` is zero.
    #[must_use]
    pub fn new(ps: u64, bytes: u64) -> Option<TimePerByte> {
        if bytes == 0 {
            return None;
        }
        let common = gcd(u128::from(ps), u128::from(bytes)).max(1);
        let narrow = |wide: u128| u64::try_from(wide / common).ok();
        Some(TimePerByte { ps: narrow(u128::from(ps))?, bytes: narrow(u128::from(bytes))? })
    }

    /// The fraction in lowest terms: picoseconds and bytes.
    #[must_use]
    pub const fn fraction(self) -> (u64, u64) {
        (self.ps, self.bytes)
    }

    /// The time for `bytes`, rounded up to a picosecond.
    #[inline]
    #[must_use]
    pub fn of(self, bytes: Bytes) -> Time {
        let product = u128::from(bytes.0) * u128::from(self.ps);
        if let Ok(narrow) = u64::try_from(product) {
            return Time(if self.bytes == 1 { narrow } else { narrow.div_ceil(self.bytes) });
        }
        Time(u64::try_from(product.div_ceil(u128::from(self.bytes))).unwrap_or(u64::MAX))
    }

    /// The complete bytes transferred in a time; `u64::MAX` for zero time per byte.
    #[must_use]
    pub fn bytes_in(self, time: Time) -> Bytes {
        let product = u128::from(time.0) * u128::from(self.bytes);
        let bytes = product.checked_div(u128::from(self.ps)).unwrap_or(u128::MAX);
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// Parses a time per byte (`"0.4 ns/B"`) or its inverse, a rate (`"68 GB/s"`, `"400 Gb/s"`; `B`
    /// is bytes, `b` bits).
    ///
    /// # Errors
    /// The text is neither, or is a rate of zero.
    pub fn parse(text: &str) -> Result<TimePerByte, UnitError> {
        let trimmed = text.trim();
        if trimmed.ends_with("/B") {
            let exact = Quantity::TIME_PER_BYTE.parse(trimmed)?;
            return exact
                .into_fraction(false)
                .ok_or_else(|| Quantity::TIME_PER_BYTE.too_large(text));
        }
        let exact = Quantity::RATE.parse(trimmed)?;
        if exact.numerator == 0 {
            return Err(UnitError::Zero { text: text.to_owned(), quantity: Quantity::RATE.name });
        }
        exact.into_fraction(true).ok_or_else(|| Quantity::RATE.too_large(text))
    }

    /// Bytes per second, for display only.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shown to people, never computed with")]
    pub fn bytes_per_second(self) -> f64 {
        self.bytes as f64 / self.ps as f64 * 1e12
    }

    /// Picoseconds per byte, for display and for closed forms in real numbers.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shown to people, never simulated with")]
    pub fn ps_per_byte(self) -> f64 {
        self.ps as f64 / self.bytes as f64
    }

    /// The time per byte of two parallel links, whose rates add up. Exact unless the fraction has
    /// more than 64 bits.
    #[must_use]
    pub fn in_parallel_with(self, other: TimePerByte) -> TimePerByte {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        let (here, there) = (product(self.bytes, other.ps), product(other.bytes, self.ps));
        let both = product(self.ps, other.ps);
        let (ps, bytes) = match here.checked_add(there) {
            Some(bytes) => (both, bytes),
            None => (both / 2, here / 2 + there / 2),
        };
        let common = gcd(ps, bytes).max(1);
        let (ps, bytes) = (ps / common, bytes / common);
        let excess = 64 - ps.max(bytes).leading_zeros().min(64);
        let narrow = |value: u128| u64::try_from(value >> excess).unwrap_or(u64::MAX);
        TimePerByte::new(narrow(ps), narrow(bytes).max(1)).unwrap_or(self)
    }

    /// Whether `self` takes longer per byte than `other`.
    #[must_use]
    pub fn slower_than(self, other: TimePerByte) -> bool {
        u128::from(self.ps) * u128::from(other.bytes)
            > u128::from(other.ps) * u128::from(self.bytes)
    }
}

/// Ordered by time per byte: the slower, the greater.
impl Ord for TimePerByte {
    fn cmp(&self, other: &TimePerByte) -> std::cmp::Ordering {
        let cross = |a: u64, b: u64| u128::from(a) * u128::from(b);
        cross(self.ps, other.bytes).cmp(&cross(other.ps, self.bytes))
    }
}

impl PartialOrd for TimePerByte {
    fn partial_cmp(&self, other: &TimePerByte) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for TimePerByte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns/B", self.ps_per_byte() / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_turn_into_time_rounded_up() {
        // 10^6 B at 400 GB/s (3.2 Tb/s) is 2.5 us; 1 B at 900 GB/s is 1.11 ps, at 1.8 TB/s 0.56 ps.
        let at = |rate| TimePerByte::parse(rate).unwrap();
        assert_eq!(at("400 GB/s").of(Bytes(1_000_000)).ps(), 2_500_000);
        assert_eq!(at("3.2 Tb/s").of(Bytes(1_000_000)).ps(), 2_500_000);
        assert_eq!(at("900 GB/s").of(Bytes(1)).ps(), 2);
        assert_eq!(at("900 GB/s").of(Bytes(9)).ps(), 10);
        assert_eq!(at("1.8 TB/s").of(Bytes(1)).ps(), 1);
        assert_eq!(at("0.4 ns/B").of(Bytes(8)).ps(), 3_200);
        assert_eq!(at("0.0001 ps/B").of(Bytes(1)).ps(), 1);
        assert_eq!(at("1 B/s").of(Bytes(u64::MAX)), Time::MAX);
    }

    #[test]
    fn quantities_are_read_exactly() {
        assert_eq!(Time::parse("1.34 us").unwrap().ps(), 1_340_000);
        assert_eq!(Time::parse("500ns").unwrap().ps(), 500_000);
        assert_eq!(Bytes::parse("64 KiB").unwrap().0, 65_536);
        assert_eq!(Bytes::parse("1.5 KB").unwrap().0, 1_500);
        assert_eq!(TimePerByte::parse("8 Gb/s").unwrap(), TimePerByte::parse("1 GB/s").unwrap());
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        assert!(matches!(Time::parse("500"), Err(UnitError::MissingUnit { .. })));
        assert!(matches!(Time::parse("500 GB"), Err(UnitError::UnknownUnit { .. })));
        assert!(matches!(Time::parse("0.3 ps"), Err(UnitError::TooFine { .. })));
        assert!(matches!(Time::parse("-1 ns"), Err(UnitError::Negative { .. })));
        assert!(matches!(Time::parse(". ns"), Err(UnitError::Malformed { .. })));
        assert!(matches!(Time::parse(""), Err(UnitError::Malformed { .. })));
        assert!(matches!(Time::parse("999999999 s"), Err(UnitError::TooLarge { .. })));
        assert!(matches!(TimePerByte::parse("0 GB/s"), Err(UnitError::Zero { .. })));
    }

    #[test]
    fn times_print_in_a_fitting_unit_without_loss() {
        for (ps, text) in
            [(7, "7 ps"), (1_340_000, "1.34 us"), (1_000, "1 ns"), (1_001, "1.001 ns")]
        {
            assert_eq!(Time::from_ps(ps).to_string(), text);
            assert_eq!(Time::parse(text).unwrap().ps(), ps);
        }
    }
}
