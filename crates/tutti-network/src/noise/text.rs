//! The text form of distributions: `name(argument, argument)`, where the arguments of a mixture are
//! distributions themselves.

use super::distribution::{Distribution, Part};
use super::error::NoiseError;
use tutti_units::Time;

/// A name and its arguments.
pub(super) struct Call<'a> {
    text: &'a str,
    pub(super) name: &'a str,
    pub(super) arguments: Vec<&'a str>,
}

/// `name(argument, argument)` as a name and its arguments.
pub(super) fn split(text: &str) -> Result<Call<'_>, NoiseError> {
    let text = text.trim();
    let malformed = || NoiseError::Malformed { text: text.to_owned() };
    let Some((name, rest)) = text.split_once('(') else {
        // A bare time is probably meant as `fixed(..)`.
        let first = |first: char| first.is_ascii_digit() || first == '-';
        let plain = !text.is_empty() && !text.contains([')', ',', ' ']) && !text.starts_with(first);
        let bare = Call { text, name: text, arguments: Vec::new() };
        return if plain { Ok(bare) } else { Err(malformed()) };
    };
    let inner = rest.strip_suffix(')').ok_or_else(malformed)?;
    let name = name.trim();
    if name != "mixture" && inner.contains(['(', ')']) {
        return Err(malformed());
    }
    let arguments = if inner.trim().is_empty() { Vec::new() } else { top_level(inner) };
    Ok(Call { text, name, arguments })
}

/// Splits at the commas outside parentheses.
fn top_level(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let separates = move |letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    };
    text.split(separates).map(str::trim).collect()
}

impl<'a> Call<'a> {
    /// The arguments, when there are as many as expected.
    pub(super) fn exactly<const N: usize>(
        &self,
        expected: &'static str,
    ) -> Result<[&'a str; N], NoiseError> {
        self.arguments[..].try_into().map_err(|_| self.wrong_count(expected))
    }

    pub(super) fn wrong_count(&self, expected: &'static str) -> NoiseError {
        NoiseError::Arguments { text: self.text.to_owned(), given: self.arguments.len(), expected }
    }

    pub(super) fn time(&self, argument: &str) -> Result<Time, NoiseError> {
        Time::parse(argument)
            .map_err(|problem| NoiseError::Value { text: self.text.to_owned(), problem })
    }

    pub(super) fn number(&self, argument: &str) -> Result<f64, NoiseError> {
        argument.parse().map_err(|_| NoiseError::Number {
            text: self.text.to_owned(),
            number: argument.to_owned(),
            expected: "a number without a unit",
        })
    }

    /// The components of a mixture: a probability and a distribution each.
    pub(super) fn parts(&self) -> Result<Vec<Part>, NoiseError> {
        let part = |argument: &&str| {
            let (chance, distribution) = argument.split_once(' ').unwrap_or((argument, ""));
            let chance = self.number(chance)?;
            Ok(Part { chance, distribution: Distribution::parse(distribution)? })
        };
        self.arguments.iter().map(part).collect()
    }
}
