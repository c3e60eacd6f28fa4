//! Errors of a notation: position, problem and hint.

use super::{MAX_LENGTH, Stage};

/// A notation that breaks a rule: the text, the byte of the error, and the problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at character {} of `{}`: {problem}", self.column() + 1, self.line())]
pub struct NotationError {
    /// The notation; only its start if it is too long.
    pub text: String,
    /// The byte of `text` at which the error is; its length if the text ends too early.
    pub at: usize,
    /// The problem.
    pub problem: Problem,
}

/// A problem of a notation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum Problem {
    /// No stages.
    #[error("no stages: expected at least one")]
    Empty,
    /// A text above the maximum length.
    #[error("too long: expected at most {MAX_LENGTH} characters")]
    TooLong,
    /// A character that starts no stage.
    #[error("expected a stage, `a`, `c`, `e`, `m` or `n`, found {}", shown(*found))]
    UnknownStage { found: Option<char> },
    /// An unexpected character.
    #[error("expected {expected}, found {}", shown(*found))]
    Unexpected { expected: &'static str, found: Option<char> },
    /// `a04`.
    #[error("a number with leading zeros: expected none")]
    LeadingZero,
    /// A number above 32 bits.
    #[error("the number is too large: expected at most {}", u32::MAX)]
    NumberTooLarge,
    /// A base below two.
    #[error("a base of {base}: expected at least 2")]
    BaseTooSmall { base: u32 },
    /// `c7m2`.
    #[error("a threshold of {threshold}: expected a positive multiple of the base {base}")]
    ThresholdIndivisible { threshold: u32, base: u32 },
    /// `m0g2a3`.
    #[error("a remainder of 0 ranks: expected at least 1")]
    NoRemainder,
    /// A collapse or merge after another stage.
    #[error("`{stage}` after another stage: expected it as the first stage")]
    NotFirst { stage: Stage },
    /// An expand or inverse merge before another stage.
    #[error("`{stage}` before another stage: expected it as the last stage")]
    NotLast { stage: Stage },
    /// A stage without its counterpart.
    #[error("`{stage}` has no counterpart: expected {expected}")]
    Unmatched { stage: Stage, expected: String },
    /// `m1g3a3,n1g3a2`.
    #[error(
        "{groups} groups of {base} among the {inner} ranks of the exchanges: expected {expected} groups"
    )]
    WrongGroups { groups: u32, base: u32, inner: u32, expected: u32 },
    /// More collapsed groups than ranks in the exchanges.
    #[error(
        "the collapse leaves {groups} groups, but the exchanges have only {inner} ranks: \
         expected at most {inner} groups"
    )]
    TooManyGroups { groups: u32, inner: u32 },
    /// More ranks than 32 bits can count.
    #[error("too many ranks: expected at most {}", u32::MAX)]
    TooManyRanks,
    /// A threshold above the rank count.
    #[error("a threshold of {threshold} on {ranks} ranks: expected at most {ranks}")]
    ThresholdBeyondRanks { threshold: u32, ranks: u32 },
    /// A remainder that leaves no ranks for the exchanges.
    #[error("a remainder of {remainder} on {ranks} ranks: expected fewer than {ranks}")]
    RemainderBeyondRanks { remainder: u32, ranks: u32 },
    /// A product of the bases other than the required one.
    #[error("the product of the bases is {product}: expected {needed} for {ranks} ranks")]
    WrongProduct { product: u32, needed: u32, ranks: u32 },
}

impl Problem {
    /// Returns how to fix the problem.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Problem::Empty | Problem::UnknownStage { .. } | Problem::Unexpected { .. } => {
                "stages look like a4, c6m2 ... e6m2, m1g2a3 ... n1g3a2, separated by `,`".to_owned()
            }
            Problem::TooLong => "the bases multiply, so a few stages reach many ranks".to_owned(),
            Problem::LeadingZero | Problem::NumberTooLarge => {
                "write decimal numbers of at most 32 bits without leading zeros".to_owned()
            }
            Problem::BaseTooSmall { .. } => "remove the stage".to_owned(),
            Problem::ThresholdIndivisible { threshold, base } => {
                let base = (*base).max(1);
                let below = threshold / base * base;
                format!("use {} or {}", below.max(base), below.saturating_add(base))
            }
            Problem::NoRemainder => "remove the merge: use only `a` stages".to_owned(),
            Problem::NotFirst { .. } => "move it to the start".to_owned(),
            Problem::NotLast { .. } => "move it to the end".to_owned(),
            Problem::Unmatched { .. } => {
                "collapse and expand, and merge and inverse merge, come in pairs".to_owned()
            }
            Problem::WrongGroups { expected, .. } => format!("write g{expected}"),
            Problem::TooManyGroups { .. } => "collapse fewer ranks, or in larger groups".to_owned(),
            Problem::TooManyRanks => "the product of the bases is the number of ranks".to_owned(),
            Problem::ThresholdBeyondRanks { .. } => "collapse fewer ranks".to_owned(),
            Problem::RemainderBeyondRanks { .. } => "merge fewer ranks".to_owned(),
            Problem::WrongProduct { needed, .. } => {
                format!("choose bases with a product of {needed}, or another number of ranks")
            }
        }
    }
}

impl NotationError {
    /// Returns the text on one line, one column per character.
    fn line(&self) -> String {
        self.text
            .chars()
            .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
            .collect()
    }

    /// Returns the number of characters before the error.
    fn column(&self) -> usize {
        self.text.char_indices().take_while(|&(at, _)| at < self.at).count()
    }
}

fn shown(found: Option<char>) -> String {
    match found {
        None => "the end".to_owned(),
        Some(c) => format!("`{}`", c.escape_debug()),
    }
}
