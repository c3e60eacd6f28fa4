//! Lengths of links, for delays and energies that depend on them.

use std::fmt;

use super::UnitError;
use super::quantity::Quantity;

/// A length in integer micrometres.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Length(u64);

impl Length {
    /// Converts from micrometres.
    #[must_use]
    pub const fn from_um(um: u64) -> Length {
        Length(um)
    }

    /// The length in micrometres.
    #[must_use]
    pub const fn um(self) -> u64 {
        self.0
    }

    /// Parses `"12.5 mm"`; units are um, mm, cm, m and km.
    ///
    /// # Errors
    /// The text is not a length, has no unit, or is finer than a micrometre.
    pub fn parse(text: &str) -> Result<Length, UnitError> {
        let exact = QUANTITY.parse(text)?;
        if exact.denominator != 1 {
            return Err(QUANTITY.too_fine(text));
        }
        u64::try_from(exact.numerator).map(Length).map_err(|_| QUANTITY.too_large(text))
    }
}

const QUANTITY: Quantity = Quantity {
    name: "length",
    example: "\"12.5 mm\"",
    finest: "1 um",
    largest: "about 18 billion km",
    units: &[
        ("um", 1, 1),
        ("mm", 1_000, 1),
        ("cm", 10_000, 1),
        ("m", 1_000_000, 1),
        ("km", 1_000_000_000, 1),
    ],
};

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0..1_000 => (1, "um"),
            1_000..1_000_000 => (1_000, "mm"),
            1_000_000..1_000_000_000 => (1_000_000, "m"),
            _ => (1_000_000_000, "km"),
        };
        super::decimal(f, self.0, scale)?;
        write!(f, " {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_and_printed_exactly() {
        for (um, text) in [(0, "0 um"), (750, "750 um"), (12_500, "12.5 mm"), (3_000_000, "3 m")] {
            assert_eq!(Length::parse(text).unwrap(), Length::from_um(um));
            assert_eq!(Length::from_um(um).to_string(), text);
        }
        assert_eq!(Length::parse("2 cm").unwrap().um(), 20_000);
        assert_eq!(Length::parse("1.2 km").unwrap().to_string(), "1.2 km");
        assert!(matches!(Length::parse("0.5 um"), Err(UnitError::TooFine { .. })));
        assert!(matches!(Length::parse("3"), Err(UnitError::MissingUnit { .. })));
        assert!(matches!(Length::parse("3 inches"), Err(UnitError::UnknownUnit { .. })));
    }
}
