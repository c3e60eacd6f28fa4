//! The notation of recursive multiplying: `a8,a4`, `c6m2,a2,a2,e6m2`, `m1g2a3,n1g3a2`.
//!
//! A schedule is a comma-separated list of stages, the same on every rank (Ruefenacht, Bull, Booth,
//! "Generalisation of recursive doubling for AllReduce", Parallel Computing 69 (2017), section
//! 4.2):
//!
//! - `aB`: an exchange between the members of groups of B.
//! - `cTmB`, first, and `eTmB`, last: ranks below T collapse in groups of B to one rank each, and
//!   receive the result from it at the end.
//! - `mRgGaB`, first, and `nRgGaB`, last: R remainder ranks join the first and the last exchange of
//!   the other ranks, each of which has G groups of B.
//!
//! This module owns the text form: parsing, printing, and all rules that do not depend on the use
//! of the stages. A notation that parses prints as the same text, byte for byte, and describes a
//! schedule for exactly one number of ranks, [`Notation::ranks`].

mod error;

pub use error::{NotationError, Problem};

/// The maximum length of the text: the largest possible schedule is far shorter.
pub const MAX_LENGTH: usize = 1024;

/// One stage of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the list of the module names the fields")]
pub enum Stage {
    /// `aB`: all members of a group of `base` ranks exchange their partial results.
    Factor { base: u32 },
    /// `cTmB`: groups of `base` ranks below `threshold` reduce to the last of each group.
    Collapse { threshold: u32, base: u32 },
    /// `eTmB`: the collapsed ranks receive the result.
    Expand { threshold: u32, base: u32 },
    /// `mRgGaB`: an exchange in `groups` groups of `base`, to which the remainder ranks send.
    Merge { remainder: u32, groups: u32, base: u32 },
    /// `nRgGaB`: an exchange in `groups` groups of `base`, from which the remainder ranks receive.
    InverseMerge { remainder: u32, groups: u32, base: u32 },
}

impl Stage {
    /// Returns the letters of the stage; each precedes one of its [`Stage::numbers`].
    fn letters(self) -> &'static str {
        match self {
            Stage::Factor { .. } => "a",
            Stage::Collapse { .. } => "cm",
            Stage::Expand { .. } => "em",
            Stage::Merge { .. } => "mga",
            Stage::InverseMerge { .. } => "nga",
        }
    }

    /// Returns the numbers, in the order of the letters; unused ones are zero.
    fn numbers(self) -> [u32; 3] {
        match self {
            Stage::Factor { base } => [base, 0, 0],
            Stage::Collapse { threshold, base } | Stage::Expand { threshold, base } => {
                [threshold, base, 0]
            }
            Stage::Merge { remainder, groups, base }
            | Stage::InverseMerge { remainder, groups, base } => [remainder, groups, base],
        }
    }

    /// Returns the stage that starts with `letter`, with these numbers.
    fn from_letter(letter: char, [first, second, third]: [u32; 3]) -> Option<Stage> {
        Some(match letter {
            'a' => Stage::Factor { base: first },
            'c' => Stage::Collapse { threshold: first, base: second },
            'e' => Stage::Expand { threshold: first, base: second },
            'm' => Stage::Merge { remainder: first, groups: second, base: third },
            'n' => Stage::InverseMerge { remainder: first, groups: second, base: third },
            _ => return None,
        })
    }

    /// Returns the base B, the group size.
    #[must_use]
    pub fn base(self) -> u32 {
        match self {
            Stage::Factor { base }
            | Stage::Collapse { base, .. }
            | Stage::Expand { base, .. }
            | Stage::Merge { base, .. }
            | Stage::InverseMerge { base, .. } => base,
        }
    }

    /// Returns whether all participating ranks exchange in it, so that its base divides their
    /// number.
    #[must_use]
    pub fn is_exchange(self) -> bool {
        !matches!(self, Stage::Collapse { .. } | Stage::Expand { .. })
    }

    /// Returns the offset of number `index` from the start of the stage.
    fn offset(self, index: usize) -> usize {
        let before = self.numbers().into_iter().take(index);
        before.map(|number| 1 + digits(number)).sum::<usize>() + 1
    }

    fn length(self) -> usize {
        let count = self.letters().len();
        self.offset(count - 1) + digits(self.numbers()[count - 1])
    }
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.letters().chars().zip(self.numbers()).try_for_each(|(l, n)| write!(f, "{l}{n}"))
    }
}

/// A list of stages that form a schedule.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Notation {
    stages: Vec<Stage>,
    /// Ranks that take part in the exchanges.
    inner: u32,
    ranks: u32,
}

impl Notation {
    /// Parses `a8,a4`.
    ///
    /// # Errors
    /// If the text is malformed or breaks a rule.
    pub fn parse(text: &str) -> Result<Notation, NotationError> {
        if text.len() > MAX_LENGTH {
            let start: String = text.chars().take(48).collect();
            let at = start.len();
            return Err(NotationError { text: start, at, problem: Problem::TooLong });
        }
        let mut reader = Reader { text, at: 0 };
        let stages = reader.stages().map_err(|(at, problem)| NotationError {
            text: text.to_owned(),
            at,
            problem,
        })?;
        Notation::new(stages)
    }

    /// Returns the notation of these stages, under the same rules.
    ///
    /// # Errors
    /// If the stages break a rule.
    pub fn new(stages: Vec<Stage>) -> Result<Notation, NotationError> {
        let mut notation = Notation { stages, inner: 1, ranks: 1 };
        match notation.validate() {
            Ok((inner, ranks)) => {
                notation.inner = inner;
                notation.ranks = ranks;
                Ok(notation)
            }
            Err((place, problem)) => Err(notation.error(place, problem)),
        }
    }

    /// Returns the stages, in order.
    #[must_use]
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Returns the number of ranks that take part in the exchanges: the product of their bases.
    #[must_use]
    pub fn inner(&self) -> u32 {
        self.inner
    }

    /// Returns the number of ranks of the schedule.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Checks that it is a schedule for `ranks` ranks.
    ///
    /// # Errors
    /// If it is one for another number, with the position of the mismatch.
    pub fn check(&self, ranks: u32) -> Result<(), NotationError> {
        if self.ranks == ranks {
            return Ok(());
        }
        let first = self.stages[0];
        let needed = match first {
            Stage::Collapse { threshold, base } => {
                if threshold > ranks {
                    let problem = Problem::ThresholdBeyondRanks { threshold, ranks };
                    return Err(self.error(ErrorPosition::number(0, 0), problem));
                }
                ranks - threshold / base * (base - 1)
            }
            Stage::Merge { remainder, .. } => {
                if remainder >= ranks {
                    let problem = Problem::RemainderBeyondRanks { remainder, ranks };
                    return Err(self.error(ErrorPosition::number(0, 0), problem));
                }
                ranks - remainder
            }
            _ => ranks,
        };
        let problem = Problem::WrongProduct { product: self.inner, needed, ranks };
        Err(self.error(self.first_misfit(needed), problem))
    }

    /// Returns the first stage whose base does not divide the required product.
    fn first_misfit(&self, needed: u32) -> ErrorPosition {
        let mut left = needed;
        for (index, stage) in self.stages.iter().enumerate() {
            match *stage {
                Stage::Merge { .. } => return ErrorPosition::number(index, 1),
                Stage::Factor { base } if left.is_multiple_of(base) => left /= base,
                Stage::Factor { .. } => return ErrorPosition::number(index, 0),
                Stage::Collapse { .. } => {}
                Stage::Expand { .. } | Stage::InverseMerge { .. } => {
                    return ErrorPosition { stage: index, number: None };
                }
            }
        }
        ErrorPosition { stage: self.stages.len(), number: None }
    }

    /// Checks all rules; returns the ranks in the exchanges and in total.
    fn validate(&self) -> Result<(u32, u32), (ErrorPosition, Problem)> {
        if self.stages.is_empty() {
            return Err((ErrorPosition::number(0, 0), Problem::Empty));
        }
        for (index, &stage) in self.stages.iter().enumerate() {
            check_numbers(index, stage)?;
            self.check_position(index, stage)?;
        }
        let inner = self.product()?;
        self.check_merges(inner)?;
        let outside = match self.stages[0] {
            Stage::Collapse { threshold, base } => {
                let groups = threshold / base;
                if groups > inner {
                    let problem = Problem::TooManyGroups { groups, inner };
                    return Err((ErrorPosition::number(0, 0), problem));
                }
                threshold - groups
            }
            Stage::Merge { remainder, .. } => remainder,
            _ => 0,
        };
        let ranks =
            inner.checked_add(outside).ok_or((ErrorPosition::number(0, 0), Problem::TooManyRanks));
        ranks.map(|ranks| (inner, ranks))
    }

    /// Collapse and merge come first, their counterparts last, and only together.
    fn check_position(&self, index: usize, stage: Stage) -> Result<(), (ErrorPosition, Problem)> {
        let first = self.stages[0];
        let last = self.stages[self.stages.len() - 1];
        let place = ErrorPosition { stage: index, number: None };
        match stage {
            Stage::Factor { .. } => Ok(()),
            Stage::Collapse { .. } | Stage::Merge { .. } if index > 0 => {
                Err((place, Problem::NotFirst { stage }))
            }
            Stage::Expand { .. } | Stage::InverseMerge { .. } if index + 1 < self.stages.len() => {
                Err((place, Problem::NotLast { stage }))
            }
            Stage::Collapse { threshold, base } => match last {
                Stage::Expand { threshold: t, base: b } if (t, b) == (threshold, base) => Ok(()),
                _ => Err((place, Problem::Unmatched { stage, expected: counterpart(stage) })),
            },
            Stage::Expand { .. } if matches!(first, Stage::Collapse { .. }) => Ok(()),
            Stage::Merge { remainder, .. } => match last {
                Stage::InverseMerge { remainder: r, .. } if r == remainder => Ok(()),
                _ => Err((place, Problem::Unmatched { stage, expected: counterpart(stage) })),
            },
            Stage::InverseMerge { .. } if matches!(first, Stage::Merge { .. }) => Ok(()),
            _ => Err((place, Problem::Unmatched { stage, expected: counterpart(stage) })),
        }
    }

    fn product(&self) -> Result<u32, (ErrorPosition, Problem)> {
        let mut product: u32 = 1;
        for (index, stage) in self.stages.iter().enumerate().filter(|(_, s)| s.is_exchange()) {
            let place = ErrorPosition { stage: index, number: None };
            product = product.checked_mul(stage.base()).ok_or((place, Problem::TooManyRanks))?;
        }
        Ok(product)
    }

    fn check_merges(&self, inner: u32) -> Result<(), (ErrorPosition, Problem)> {
        for (index, &stage) in self.stages.iter().enumerate() {
            if let Stage::Merge { groups, base, .. } | Stage::InverseMerge { groups, base, .. } =
                stage
                && groups != inner / base
            {
                let problem = Problem::WrongGroups { groups, base, inner, expected: inner / base };
                return Err((ErrorPosition::number(index, 1), problem));
            }
        }
        Ok(())
    }

    fn error(&self, place: ErrorPosition, problem: Problem) -> NotationError {
        let before: usize = self.stages.iter().take(place.stage).map(|s| s.length() + 1).sum();
        let within = match (place.number, self.stages.get(place.stage)) {
            (Some(number), Some(stage)) => stage.offset(number),
            _ => 0,
        };
        let text = self.to_string();
        let at = (before + within).min(text.len());
        NotationError { text, at, problem }
    }
}

impl std::fmt::Display for Notation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, stage) in self.stages.iter().enumerate() {
            write!(f, "{}{stage}", if index > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

/// A stage, or one of its numbers: the position of an error.
#[derive(Clone, Copy)]
struct ErrorPosition {
    stage: usize,
    number: Option<usize>,
}

impl ErrorPosition {
    fn number(stage: usize, number: usize) -> ErrorPosition {
        ErrorPosition { stage, number: Some(number) }
    }
}

/// Checks the numbers of a stage alone.
fn check_numbers(index: usize, stage: Stage) -> Result<(), (ErrorPosition, Problem)> {
    let base = stage.base();
    if base < 2 {
        let number = stage.letters().len() - 1;
        return Err((ErrorPosition::number(index, number), Problem::BaseTooSmall { base }));
    }
    match stage {
        Stage::Collapse { threshold, base } | Stage::Expand { threshold, base }
            if threshold == 0 || threshold % base != 0 =>
        {
            Err((
                ErrorPosition::number(index, 0),
                Problem::ThresholdIndivisible { threshold, base },
            ))
        }
        Stage::Merge { remainder: 0, .. } | Stage::InverseMerge { remainder: 0, .. } => {
            Err((ErrorPosition::number(index, 0), Problem::NoRemainder))
        }
        _ => Ok(()),
    }
}

/// Returns the required counterpart at the other end.
fn counterpart(stage: Stage) -> String {
    match stage {
        Stage::Collapse { threshold, base } => {
            format!("`{}` at the end", Stage::Expand { threshold, base })
        }
        Stage::Expand { threshold, base } => {
            format!("`{}` at the start", Stage::Collapse { threshold, base })
        }
        Stage::Merge { remainder, .. } => format!("`n{remainder}g...a...` at the end"),
        Stage::InverseMerge { remainder, .. } => format!("`m{remainder}g...a...` at the start"),
        Stage::Factor { .. } => String::new(),
    }
}

fn digits(number: u32) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// A parser of stages; every error is a byte and a problem.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn stages(&mut self) -> Result<Vec<Stage>, (usize, Problem)> {
        if self.text.is_empty() {
            return Err((0, Problem::Empty));
        }
        let mut stages = Vec::new();
        loop {
            stages.push(self.stage()?);
            match self.peek() {
                None => return Ok(stages),
                Some(',') => self.at += 1,
                found => return Err(self.expected("`,` or the end", found)),
            }
        }
    }

    fn stage(&mut self) -> Result<Stage, (usize, Problem)> {
        let found = self.peek();
        let letter = found.unwrap_or(' ');
        let Some(stage) = Stage::from_letter(letter, [0; 3]) else {
            return Err((self.at, Problem::UnknownStage { found }));
        };
        let mut numbers = [0; 3];
        for (number, letter) in numbers.iter_mut().zip(stage.letters().chars()) {
            match self.peek() {
                Some(found) if found == letter => self.at += 1,
                found => return Err(self.expected(expected_letter(letter), found)),
            }
            *number = self.number()?;
        }
        Stage::from_letter(letter, numbers).ok_or((self.at, Problem::UnknownStage { found }))
    }

    fn number(&mut self) -> Result<u32, (usize, Problem)> {
        let start = self.at;
        let rest = &self.text[start..];
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return Err(self.expected("an integer", self.peek()));
        }
        let digits = &rest[..length];
        if length > 1 && digits.starts_with('0') {
            return Err((start, Problem::LeadingZero));
        }
        self.at += length;
        digits.parse().map_err(|_| (start, Problem::NumberTooLarge))
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn expected(&self, expected: &'static str, found: Option<char>) -> (usize, Problem) {
        (self.at, Problem::Unexpected { expected, found })
    }
}

fn expected_letter(letter: char) -> &'static str {
    match letter {
        'm' => "`m` and the base",
        'g' => "`g` and the number of groups",
        _ => "`a` and the base",
    }
}

#[cfg(test)]
mod tests;
