//! Formats a time per byte so that parsing yields the same fraction.

use super::TimePerByte;

const PS_PER_S: u128 = 1_000_000_000_000;

impl TimePerByte {
    /// Returns a rate (`"68 GB/s"`) if it is a finite decimal, otherwise a time per byte. `None` if
    /// neither is finite, which no parsed value is.
    #[must_use]
    pub fn exact_text(self) -> Option<String> {
        let rates = [(PS_PER_S, "TB/s"), (1_000_000_000, "GB/s"), (1_000_000, "MB/s"), (1, "B/s")];
        let per_second = u128::from(self.bytes) * PS_PER_S;
        let rate = (self.ps != 0).then(|| {
            let ps = u128::from(self.ps);
            // The largest unit with a value of at least one, otherwise the smallest.
            let fitting = rates.iter().find(|(scale, _)| per_second >= scale * ps);
            let (scale, unit) = *fitting.or(rates.last())?;
            Some(format!("{} {unit}", finite_decimal(per_second, ps * scale)?))
        });
        rate.flatten().or_else(|| {
            let per_byte = finite_decimal(u128::from(self.ps), u128::from(self.bytes) * 1000)?;
            Some(format!("{per_byte} ns/B"))
        })
    }
}

/// The quotient in decimal, if it has at most the 24 digits that the parser reads.
fn finite_decimal(numerator: u128, denominator: u128) -> Option<String> {
    let mut text = (numerator / denominator).to_string();
    let mut rest = numerator % denominator;
    let mut separator = ".";
    while rest != 0 {
        rest = rest.checked_mul(10)?;
        text.push_str(separator);
        text.push_str(&(rest / denominator).to_string());
        rest %= denominator;
        separator = "";
        if text.len() > 1 + 24 {
            return None;
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_are_written_as_people_write_them() {
        for (text, written) in [
            ("68 GB/s", "68 GB/s"),
            ("400 Gb/s", "50 GB/s"),
            ("0.4 ns/B", "2.5 GB/s"),
            ("0.3 ns/B", "0.3 ns/B"),
            ("1.8 TB/s", "1.8 TB/s"),
            ("12 B/s", "12 B/s"),
            ("3 b/s", "0.375 B/s"),
            ("1 KiB/s", "1024 B/s"),
            ("0 ns/B", "0 ns/B"),
        ] {
            let value = TimePerByte::parse(text).unwrap();
            let exact = value.exact_text().unwrap();
            assert_eq!(TimePerByte::parse(&exact).unwrap(), value, "{text} as {exact}");
            assert_eq!(exact, written);
        }
        assert_eq!(TimePerByte::new(3, 7).unwrap().exact_text(), None);
    }

    proptest! {
        #[test]
        fn what_was_read_is_written_without_loss(
            units in 1_u32..100_000,
            digits in "[0-9]{1,4}",
            unit in prop::sample::select(vec!["GB/s", "Gb/s", "MiB/s", "ns/B", "ps/B", "TB/s"]),
        ) {
            let text = format!("{units}.{digits} {unit}");
            let value = TimePerByte::parse(&text).unwrap();
            let exact = value.exact_text().unwrap();
            prop_assert_eq!(TimePerByte::parse(&exact).unwrap(), value);
        }
    }
}
