//! Compute rates: operations per second, and clock cycles.

use std::fmt;

use super::quantity::Quantity;
use super::{Time, UnitError};

/// Picoseconds in a second.
const PS_PER_S: u64 = 1_000_000_000_000;

/// Operations per second; a multiply-accumulate counts as two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpRate(u64);

impl OpRate {
    /// Converts from operations per second.
    #[must_use]
    pub const fn per_second(operations: u64) -> OpRate {
        OpRate(operations)
    }

    /// The operations per second.
    #[must_use]
    pub const fn operations(self) -> u64 {
        self.0
    }

    /// Parses `"120 TFLOP/s"`.
    ///
    /// # Errors
    /// The text is not a rate of operations, has no unit, or is zero.
    pub fn parse(text: &str) -> Result<OpRate, UnitError> {
        integer(&OP_RATE, text).map(OpRate)
    }

    /// The time of a number of operations, rounded up to a picosecond; [`Time::MAX`] at rate zero.
    #[must_use]
    pub fn of(self, operations: u64) -> Time {
        if operations == 0 {
            return Time::ZERO;
        }
        if self.0 == 0 {
            return Time::MAX;
        }
        let ps = (u128::from(operations) * u128::from(PS_PER_S)).div_ceil(u128::from(self.0));
        Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for OpRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0..1_000_000_000_000 => (1_000_000_000, "GFLOP/s"),
            _ => (1_000_000_000_000, "TFLOP/s"),
        };
        super::decimal(f, self.0, scale)?;
        write!(f, " {unit}")
    }
}

/// Cycles per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Frequency(u64);

impl Frequency {
    /// Converts from hertz.
    #[must_use]
    pub const fn per_second(cycles: u64) -> Frequency {
        Frequency(cycles)
    }

    /// The cycles per second.
    #[must_use]
    pub const fn hertz(self) -> u64 {
        self.0
    }

    /// Parses `"1245 MHz"`.
    ///
    /// # Errors
    /// The text is not a frequency, has no unit, is zero, or is not an integer number of hertz.
    pub fn parse(text: &str) -> Result<Frequency, UnitError> {
        integer(&FREQUENCY, text).map(Frequency)
    }

    /// The time of a number of cycles, rounded up to a picosecond.
    #[must_use]
    pub fn of(self, cycles: u64) -> Time {
        OpRate(self.0).of(cycles)
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0..1_000_000_000 => (1_000_000, "MHz"),
            _ => (1_000_000_000, "GHz"),
        };
        super::decimal(f, self.0, scale)?;
        write!(f, " {unit}")
    }
}

fn integer(quantity: &Quantity, text: &str) -> Result<u64, UnitError> {
    let exact = quantity.parse(text)?;
    if exact.denominator != 1 {
        return Err(quantity.too_fine(text));
    }
    match u64::try_from(exact.numerator) {
        Ok(0) => Err(UnitError::Zero { text: text.to_owned(), quantity: quantity.name }),
        Ok(value) => Ok(value),
        Err(_) => Err(quantity.too_large(text)),
    }
}

const OP_RATE: Quantity = Quantity {
    name: "rate of operations",
    example: "\"120 TFLOP/s\"",
    finest: "1 FLOP/s",
    largest: "18 EFLOP/s",
    units: &[
        ("FLOP/s", 1, 1),
        ("MFLOP/s", 1_000_000, 1),
        ("GFLOP/s", 1_000_000_000, 1),
        ("TFLOP/s", 1_000_000_000_000, 1),
        ("PFLOP/s", 1_000_000_000_000_000, 1),
    ],
};

const FREQUENCY: Quantity = Quantity {
    name: "frequency",
    example: "\"1245 MHz\"",
    finest: "1 Hz",
    largest: "18 EHz",
    units: &[("Hz", 1, 1), ("kHz", 1_000, 1), ("MHz", 1_000_000, 1), ("GHz", 1_000_000_000, 1)],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_and_written() {
        for text in ["120 TFLOP/s", "1.5 TFLOP/s", "2.5 GFLOP/s"] {
            assert_eq!(OpRate::parse(text).unwrap().to_string(), text);
        }
        for text in ["1.245 GHz", "940 MHz"] {
            assert_eq!(Frequency::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Frequency::parse("1245 MHz").unwrap().hertz(), 1_245_000_000);
    }

    #[test]
    fn fractions_of_a_picosecond_round_up() {
        let rate = OpRate::parse("120 TFLOP/s").unwrap();
        assert_eq!(rate.of(121), Time::from_ps(2));
        assert_eq!(rate.of(120), Time::from_ps(1));
        assert_eq!(Frequency::parse("1245 MHz").unwrap().of(1), Time::from_ps(804));
        assert_eq!(OpRate::per_second(0).of(1), Time::MAX);
        assert_eq!(OpRate::per_second(0).of(0), Time::ZERO);
    }

    #[test]
    fn what_is_none_is_refused() {
        assert!(matches!(OpRate::parse("120"), Err(UnitError::MissingUnit { .. })));
        assert!(matches!(OpRate::parse("0 FLOP/s"), Err(UnitError::Zero { .. })));
        assert!(matches!(Frequency::parse("1.5 Hz"), Err(UnitError::TooFine { .. })));
    }
}
