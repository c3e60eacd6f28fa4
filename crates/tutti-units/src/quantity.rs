//! Parses a number and a unit exactly.

use super::{TimePerByte, UnitError};

/// A parsed value in base units, exactly.
pub(super) struct Exact {
    pub(super) numerator: u128,
    pub(super) denominator: u128,
}

impl Exact {
    /// Converts to a time per byte: the value is in ps per byte or, for `inverse`, in bytes per
    /// second.
    pub(super) fn into_fraction(self, inverse: bool) -> Option<TimePerByte> {
        let (ps, bytes) = if inverse {
            (self.denominator.checked_mul(1_000_000_000_000)?, self.numerator)
        } else {
            (self.numerator, self.denominator)
        };
        let common = gcd(ps, bytes).max(1);
        TimePerByte::new(u64::try_from(ps / common).ok()?, u64::try_from(bytes / common).ok()?)
    }
}

/// A quantity: its units as multiples (numerator, denominator) of the base unit.
pub(super) struct Quantity {
    pub(super) name: &'static str,
    pub(super) example: &'static str,
    pub(super) finest: &'static str,
    pub(super) largest: &'static str,
    pub(super) units: &'static [(&'static str, u128, u128)],
}

impl Quantity {
    pub(super) const TIME: Quantity = Quantity {
        name: "time",
        example: "\"1.34 us\"",
        finest: "1 ps",
        largest: "about 213 days",
        units: &[
            ("ps", 1, 1),
            ("ns", 1_000, 1),
            ("us", 1_000_000, 1),
            ("ms", 1_000_000_000, 1),
            ("s", 1_000_000_000_000, 1),
        ],
    };
    pub(super) const SIZE: Quantity = Quantity {
        name: "size",
        example: "\"64 KiB\"",
        finest: "1 B",
        largest: "16 EiB",
        units: &[
            ("B", 1, 1),
            ("KB", 1_000, 1),
            ("MB", 1_000_000, 1),
            ("GB", 1_000_000_000, 1),
            ("TB", 1_000_000_000_000, 1),
            ("KiB", 1 << 10, 1),
            ("MiB", 1 << 20, 1),
            ("GiB", 1 << 30, 1),
            ("TiB", 1 << 40, 1),
        ],
    };
    pub(super) const TIME_PER_BYTE: Quantity = Quantity {
        name: "time per byte",
        example: "\"0.4 ns/B\"",
        finest: "a fraction of 10^-18 s",
        largest: "16 s/B",
        units: &[
            ("ps/B", 1, 1),
            ("ns/B", 1_000, 1),
            ("us/B", 1_000_000, 1),
            ("s/B", 1_000_000_000_000, 1),
        ],
    };
    pub(super) const RATE: Quantity = Quantity {
        name: "rate",
        example: "\"68 GB/s\"",
        finest: "a fraction of 1 B/s",
        largest: "16 EB/s",
        units: &[
            ("B/s", 1, 1),
            ("KB/s", 1_000, 1),
            ("MB/s", 1_000_000, 1),
            ("GB/s", 1_000_000_000, 1),
            ("TB/s", 1_000_000_000_000, 1),
            ("KiB/s", 1 << 10, 1),
            ("MiB/s", 1 << 20, 1),
            ("GiB/s", 1 << 30, 1),
            ("TiB/s", 1 << 40, 1),
            ("b/s", 1, 8),
            ("Kb/s", 125, 1),
            ("Mb/s", 125_000, 1),
            ("Gb/s", 125_000_000, 1),
            ("Tb/s", 125_000_000_000, 1),
        ],
    };

    pub(super) fn parse(&self, text: &str) -> Result<Exact, UnitError> {
        let trimmed = text.trim();
        let split = trimmed
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_')))
            .unwrap_or(trimmed.len());
        let (number, unit) = (&trimmed[..split], trimmed[split..].trim());
        if let Some(positive) = number.strip_prefix('-') {
            self.decimal(text, positive)?;
            return Err(UnitError::Negative { text: text.to_owned(), quantity: self.name });
        }
        let (digits, shift) = self.decimal(text, number)?;
        if unit.is_empty() {
            return Err(UnitError::MissingUnit {
                text: text.to_owned(),
                quantity: self.name,
                units: self.unit_list(),
                example: self.example,
            });
        }
        let Some(&(_, multiple, divisor)) = self.units.iter().find(|(name, ..)| *name == unit)
        else {
            return Err(UnitError::UnknownUnit {
                text: text.to_owned(),
                unit: unit.to_owned(),
                quantity: self.name,
                units: self.unit_list(),
            });
        };
        let numerator = digits.checked_mul(multiple).ok_or_else(|| self.too_large(text))?;
        let denominator = divisor * 10_u128.pow(shift);
        let common = gcd(numerator, denominator).max(1);
        Ok(Exact { numerator: numerator / common, denominator: denominator / common })
    }

    /// A decimal number as its digits and the number of decimal places.
    fn decimal(&self, text: &str, number: &str) -> Result<(u128, u32), UnitError> {
        let malformed = || UnitError::Malformed {
            text: text.to_owned(),
            quantity: self.name,
            example: self.example,
        };
        let (integer, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{integer}{}", fraction.trim_end_matches('0'));
        let digital = digits.bytes().all(|b| b.is_ascii_digit());
        if integer.is_empty() || number.ends_with('.') || !digital || digits.len() > 24 {
            return Err(malformed());
        }
        let shift = u32::try_from(fraction.trim_end_matches('0').len()).map_err(|_| malformed())?;
        digits.parse().map(|value| (value, shift)).map_err(|_| malformed())
    }

    fn unit_list(&self) -> String {
        self.units.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn too_fine(&self, text: &str) -> UnitError {
        UnitError::TooFine { text: text.to_owned(), quantity: self.name, finest: self.finest }
    }

    pub(super) fn too_large(&self, text: &str) -> UnitError {
        UnitError::TooLarge { text: text.to_owned(), quantity: self.name, largest: self.largest }
    }
}

/// Returns the greatest common divisor.
#[must_use]
pub fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
