//! What can be wrong with a notation, where, and what would be right.

use super::{MAX_LENGTH, Stage};

/// A notation that breaks a rule: the text, the byte where it goes wrong, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at character {} of `{}`: {problem}", self.column() + 1, self.line())]
pub struct NotationError {
    /// The notation; only its start when it is too long to be one.
    pub text: String,
    /// The byte of `text` that the error points at; its length when the text ends too early.
    pub at: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a notation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum Problem {
    /// Nothing there.
    #[error("no stages: expected at least one")]
    Empty,
    /// More text than any schedule needs.
    #[error("too long: expected at most {MAX_LENGTH} characters")]
    TooLong,
    /// No letter of a stage.
    #[error("expected a stage, `a`, `c`, `e`, `m` or `n`, found {}", shown(*found))]
    UnknownStage { found: Option<char> },
    /// Something else than what must follow.
    #[error("expected {wanted}, found {}", shown(*found))]
    Unexpected { wanted: &'static str, found: Option<char> },
    /// `a04`.
    #[error("a number starts with 0: expected it without leading zeros")]
    LeadingZero,
    /// More than 32 bits.
    #[error("the number is too large: expected at most {}", u32::MAX)]
    NumberTooLarge,
    /// Groups of one, or of none.
    #[error("a base of {base}: expected at least 2")]
    BaseTooSmall { base: u32 },
    /// `c7m2`.
    #[error("a threshold of {threshold}: expected a positive multiple of the base {base}")]
    ThresholdIndivisible { threshold: u32, base: u32 },
    /// `m0g2a3`.
    #[error("a remainder of 0 ranks: expected at least 1")]
    NoRemainder,
    /// A collapse or merge after another stage.
    #[error("`{stage}` after another stage: expected it first")]
    NotFirst { stage: Stage },
    /// An expand or inverse merge before another stage.
    #[error("`{stage}` before another stage: expected it last")]
    NotLast { stage: Stage },
    /// One of a pair.
    #[error("`{stage}` has no counterpart: expected {wanted}")]
    Unmatched { stage: Stage, wanted: String },
    /// `m1g3a3,n1g3a2`.
    #[error(
        "{groups} groups of {base} among the {inner} ranks of the exchanges: expected {wanted} groups"
    )]
    WrongGroups { groups: u32, base: u32, inner: u32, wanted: u32 },
    /// More collapsed groups than ranks in the exchanges.
    #[error(
        "the collapse leaves {groups} groups, but the exchanges have only {inner} ranks: \
         expected at most {inner} groups"
    )]
    TooManyGroups { groups: u32, inner: u32 },
    /// More ranks than ids.
    #[error("more ranks than can be counted: expected at most {}", u32::MAX)]
    TooManyRanks,
    /// A threshold that no rank reaches.
    #[error("a threshold of {threshold} on {ranks} ranks: expected at most {ranks}")]
    ThresholdBeyondRanks { threshold: u32, ranks: u32 },
    /// A remainder that leaves no ranks for the exchanges.
    #[error("a remainder of {remainder} on {ranks} ranks: expected fewer than {ranks}")]
    RemainderBeyondRanks { remainder: u32, ranks: u32 },
    /// Bases that do not multiply to the number of ranks.
    #[error("the bases multiply to {product}: expected {needed} for {ranks} ranks")]
    WrongProduct { product: u32, needed: u32, ranks: u32 },
}

impl Problem {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Problem::Empty | Problem::UnknownStage { .. } | Problem::Unexpected { .. } => {
                "stages look like a4, c6m2 ... e6m2, m1g2a3 ... n1g3a2, separated by `,`".to_owned()
            }
            Problem::TooLong => "the bases multiply, so few stages go a long way".to_owned(),
            Problem::LeadingZero | Problem::NumberTooLarge => "write plain numbers".to_owned(),
            Problem::BaseTooSmall { .. } => "leave out a stage that does nothing".to_owned(),
            Problem::ThresholdIndivisible { threshold, base } => {
                let base = (*base).max(1);
                let below = threshold / base * base;
                format!("{} or {} would do", below.max(base), below.saturating_add(base))
            }
            Problem::NoRemainder => "leave out the merge: use `a` stages alone".to_owned(),
            Problem::NotFirst { .. } => "move it to the start".to_owned(),
            Problem::NotLast { .. } => "move it to the end".to_owned(),
            Problem::Unmatched { .. } => "they come in pairs".to_owned(),
            Problem::WrongGroups { wanted, .. } => format!("write g{wanted}"),
            Problem::TooManyGroups { .. } => "collapse fewer ranks, or in larger groups".to_owned(),
            Problem::TooManyRanks => "the bases multiply to the number of ranks".to_owned(),
            Problem::ThresholdBeyondRanks { .. } => "collapse fewer ranks".to_owned(),
            Problem::RemainderBeyondRanks { .. } => "merge fewer ranks".to_owned(),
            Problem::WrongProduct { needed, .. } => {
                format!("choose bases that multiply to {needed}, or another number of ranks")
            }
        }
    }
}

impl NotationError {
    /// The text on one line, one column per character.
    fn line(&self) -> String {
        self.text
            .chars()
            .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
            .collect()
    }

    /// How many characters stand before the place.
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
