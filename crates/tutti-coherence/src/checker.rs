//! Whether what happens is coherent: looks on, and changes nothing.
//!
//! It keeps books of its own, told of each copy that comes, changes and goes, each access, each token
//! that is put somewhere and taken from there, and each answer. What it demands at any time:
//!
//! - a line has a single writer and no readers, or any number of readers;
//! - a load answers what was stored last, in the order in which stores were done;
//! - with tokens, those in caches, memory, messages and misses are those that the line has, one of them
//!   the owner's, and whoever may write holds all;
//! - a broadcast has as many answers as it has members.

use std::collections::BTreeMap;

use super::cache::Held;
use super::error::CoherenceError;
use super::program::{LINE_WORDS, WORD_BYTES};

/// What is kept of a line.
#[derive(Clone, Copy, Default)]
struct Books {
    /// Tokens and owner tokens, wherever they are, less those it should have.
    tokens: i64,
    owners: i64,
    /// The core that may write, and one; 0 for none.
    writer: u32,
    readers: u32,
}

/// Looks on; see the module.
pub(super) struct Checker {
    on: bool,
    /// Tokens of a line; 0 without tokens.
    tokens: u32,
    lines: Vec<Books>,
    /// Bit by bit, whether a core has a copy of a line: [`Checker::stride`] words for each line.
    copies: Vec<u64>,
    stride: usize,
    /// All words, as stores have left them.
    words: Vec<u64>,
    /// Lines whose tokens moved in this event.
    moved: Vec<u32>,
    /// By serial of the miss, its line, and how many answers are still to come.
    answers: BTreeMap<u64, (u32, u32)>,
    found: Option<(u32, String)>,
}

impl Checker {
    pub(super) fn new(on: bool, cores: u32, tokens: u32, memory: &[u64]) -> Checker {
        let lines = memory.len() / LINE_WORDS;
        let stride = (cores as usize).div_ceil(64);
        let (lines, copies) = if on {
            (vec![Books::default(); lines], vec![0; lines * stride])
        } else {
            Default::default()
        };
        let words = if on { memory.to_vec() } else { Vec::new() };
        let (moved, answers) = (Vec::new(), BTreeMap::new());
        Checker { on, tokens, lines, copies, stride, words, moved, answers, found: None }
    }

    /// What was found first.
    #[inline]
    pub(super) fn verdict(&mut self, cycle: u64) -> Result<(), CoherenceError> {
        if self.moved.is_empty() && self.found.is_none() { Ok(()) } else { self.decide(cycle) }
    }

    fn decide(&mut self, cycle: u64) -> Result<(), CoherenceError> {
        self.settle();
        let Some((line, problem)) = self.found.take() else { return Ok(()) };
        let line = u64::from(line) * LINE_WORDS as u64 * WORD_BYTES;
        Err(CoherenceError::Incoherent { cycle, line, problem })
    }

    fn report(&mut self, line: u32, problem: String) {
        self.found.get_or_insert((line, problem));
    }

    /// A core's copy was one thing and is another.
    #[inline]
    pub(super) fn copy(&mut self, core: u32, before: Option<&Held>, after: Option<&Held>) {
        if self.on {
            self.copy_changed(core, before, after);
        }
    }

    fn copy_changed(&mut self, core: u32, before: Option<&Held>, after: Option<&Held>) {
        let Some(line) = before.or(after).map(|held| held.line) else { return };
        let count = |held: Option<&Held>| held.map_or((0, false), |h| (h.tokens, h.state.owns()));
        let ((had, owned), (has, owns)) = (count(before), count(after));
        if self.tokens > 0 && (had, owned) != (has, owns) {
            self.tokens(line, i64::from(has) - i64::from(had), i64::from(owns) - i64::from(owned));
        }
        let (word, bit) = (line as usize * self.stride + core as usize / 64, 1 << (core % 64));
        let books = &mut self.lines[line as usize];
        if self.copies[word] & bit != 0 {
            books.readers -= 1;
            self.copies[word] &= !bit;
        }
        if books.writer == core + 1 {
            books.writer = 0;
        }
        let Some(held) = after else { return };
        books.readers += 1;
        self.copies[word] |= bit;
        let other = books.writer;
        if held.state.writable() {
            books.writer = core + 1;
        }
        if other != 0 {
            let other = other - 1;
            self.report(line, format!("core {core} has a copy while core {other} may write"));
        } else if held.state.writable() && self.lines[line as usize].readers > 1 {
            let others = self.holders(line).filter(|&other| other != core as usize);
            let others: Vec<String> = others.map(|other| other.to_string()).collect();
            let others = others.join(", ");
            self.report(line, format!("core {core} may write while others have copies: {others}"));
        }
        if self.tokens > 0 && held.state.writable() && held.tokens != self.tokens {
            let (has, of) = (held.tokens, self.tokens);
            self.report(line, format!("core {core} may write with {has} of {of} tokens"));
        }
    }

    fn holders(&self, line: u32) -> impl Iterator<Item = usize> + '_ {
        let first = line as usize * self.stride;
        let words = &self.copies[first..first + self.stride];
        (0..64 * self.stride).filter(|core| words[core / 64] >> (core % 64) & 1 == 1)
    }

    /// A core has read a word.
    #[inline]
    pub(super) fn loaded(&mut self, core: u32, word: usize, value: u64) {
        if self.on && self.words[word] != value {
            let (line, last, address) = (line_of(word), self.words[word], 8 * word);
            self.report(
                line,
                format!(
                    "core {core} reads {value} from {address:#x}, where {last} was stored last"
                ),
            );
        }
    }

    /// A core has written a word.
    #[inline]
    pub(super) fn stored(&mut self, core: u32, word: usize, value: u64) {
        if !self.on {
            return;
        }
        self.words[word] = value;
        let line = line_of(word);
        if self.lines[line as usize].writer != core + 1 {
            self.report(line, format!("core {core} writes, and may not"));
        }
    }

    /// Tokens were put somewhere, or taken from there.
    #[inline]
    pub(super) fn tokens(&mut self, line: u32, tokens: i64, owners: i64) {
        if !self.on {
            return;
        }
        let books = &mut self.lines[line as usize];
        books.tokens += tokens;
        books.owners += owners;
        self.moved.push(line);
    }

    /// At the end of an event: what was taken has been put somewhere.
    fn settle(&mut self) {
        while let Some(line) = self.moved.pop() {
            let Books { tokens, owners, .. } = self.lines[line as usize];
            if tokens != 0 {
                let (of, are) = (self.tokens, i64::from(self.tokens) + tokens);
                self.report(line, format!("there are {are} tokens, and not {of}"));
            }
            if owners != 0 {
                let are = 1 + owners;
                self.report(line, format!("there are {are} owner tokens, and not one"));
            }
        }
    }

    /// A broadcast has gone out which so many answer.
    pub(super) fn asked(&mut self, line: u32, serial: u64, members: u32) {
        if self.on {
            self.answers.insert(serial, (line, members));
        }
    }

    /// So many answers have come, the last ones or not.
    pub(super) fn answered(&mut self, line: u32, serial: u64, count: u32, last: bool) {
        if !self.on {
            return;
        }
        let missing = self.answers.get(&serial).map_or(0, |&(_, missing)| missing);
        let left = i64::from(missing) - i64::from(count);
        if left < 0 || (left == 0) != last {
            let said = if last { "and they are called the last" } else { "and more are to come" };
            self.report(line, format!("{count} answers came while {missing} were missing, {said}"));
        }
        match u32::try_from(left) {
            Ok(left) if left > 0 => _ = self.answers.insert(serial, (line, left)),
            _ => _ = self.answers.remove(&serial),
        }
    }

    /// Of the broadcast for a miss, if it is looked at.
    pub(super) fn missing_answers(&self, serial: u64) -> Option<u32> {
        self.answers.get(&serial).map(|&(_, missing)| missing)
    }

    /// At the end, when nothing is under way: the memory is as stores have left it.
    pub(super) fn over(&mut self, memory: &[u64], messages: usize) {
        if !self.on {
            return;
        }
        if messages > 0 {
            self.report(0, format!("{messages} messages were never looked at"));
        }
        if let Some(word) = (0..memory.len()).find(|&word| memory[word] != self.words[word]) {
            let (is, last, address) = (memory[word], self.words[word], 8 * word);
            self.report(
                line_of(word),
                format!("{address:#x} ends as {is}, where {last} was stored last"),
            );
        }
        if let Some((_, &(line, missing))) = self.answers.first_key_value() {
            self.report(line, format!("{missing} answers to a broadcast never came"));
        }
    }
}

fn line_of(word: usize) -> u32 {
    u32::try_from(word / LINE_WORDS).expect("the system has looked at it")
}
