//! Checks the invariants of coherence. It observes only, and keeps separate records of copies,
//! accesses, tokens and responses. Invariants:
//!
//! - A line has a single writer and no reader, or only readers.
//! - A load returns the value of the last store, in the order in which stores complete.
//! - With tokens: those in caches, memory, messages and misses add up to the tokens of the line,
//!   one of them the owner token; a core that may write has all.
//! - A broadcast has one response per member.

use std::collections::BTreeMap;

use super::cache::CachedLine;
use super::error::CoherenceError;
use super::program::{LINE_WORDS, WORD_BYTES};

/// Records of a line.
#[derive(Clone, Copy, Default)]
struct LineRecord {
    /// Deviation of the numbers of tokens and owner tokens from the correct ones.
    tokens: i64,
    owners: i64,
    /// The core that may write, plus one; 0 for none.
    writer: u32,
    readers: u32,
}

/// The checker; see the module.
pub(super) struct Checker {
    enabled: bool,
    /// Tokens per line; 0 without tokens.
    tokens: u32,
    lines: Vec<LineRecord>,
    /// A bit per line and core: whether the core has a copy; [`Checker::stride`] words per line.
    copies: Vec<u64>,
    stride: usize,
    /// All words, after the completed stores.
    words: Vec<u64>,
    /// Lines whose tokens moved in the current event.
    moved: Vec<u32>,
    /// By serial number of the miss: its line, and the number of outstanding responses.
    outstanding: BTreeMap<u64, (u32, u32)>,
    violation: Option<(u32, String)>,
}

impl Checker {
    pub(super) fn new(enabled: bool, cores: u32, tokens: u32, memory: &[u64]) -> Checker {
        let lines = memory.len() / LINE_WORDS;
        let stride = (cores as usize).div_ceil(64);
        let (lines, copies) = if enabled {
            (vec![LineRecord::default(); lines], vec![0; lines * stride])
        } else {
            Default::default()
        };
        let words = if enabled { memory.to_vec() } else { Vec::new() };
        let (moved, outstanding) = (Vec::new(), BTreeMap::new());
        Checker {
            enabled,
            tokens,
            lines,
            copies,
            stride,
            words,
            moved,
            outstanding,
            violation: None,
        }
    }

    /// Returns the first violation.
    #[inline]
    pub(super) fn result(&mut self, cycle: u64) -> Result<(), CoherenceError> {
        if self.moved.is_empty() && self.violation.is_none() {
            Ok(())
        } else {
            self.take_violation(cycle)
        }
    }

    fn take_violation(&mut self, cycle: u64) -> Result<(), CoherenceError> {
        self.check_tokens();
        let Some((line, problem)) = self.violation.take() else { return Ok(()) };
        let line = u64::from(line) * LINE_WORDS as u64 * WORD_BYTES;
        Err(CoherenceError::Incoherent { cycle, line, problem })
    }

    fn report(&mut self, line: u32, problem: String) {
        self.violation.get_or_insert((line, problem));
    }

    /// Updates the records after a change of a core's copy.
    #[inline]
    pub(super) fn copy(
        &mut self,
        core: u32,
        before: Option<&CachedLine>,
        after: Option<&CachedLine>,
    ) {
        if self.enabled {
            self.copy_changed(core, before, after);
        }
    }

    fn copy_changed(&mut self, core: u32, before: Option<&CachedLine>, after: Option<&CachedLine>) {
        let Some(line) = before.or(after).map(|held| held.line) else { return };
        let count =
            |held: Option<&CachedLine>| held.map_or((0, false), |h| (h.tokens, h.state.owns()));
        let ((had, owned), (has, owns)) = (count(before), count(after));
        if self.tokens > 0 && (had, owned) != (has, owns) {
            self.tokens(line, i64::from(has) - i64::from(had), i64::from(owns) - i64::from(owned));
        }
        let (word, bit) = (line as usize * self.stride + core as usize / 64, 1 << (core % 64));
        let record = &mut self.lines[line as usize];
        if self.copies[word] & bit != 0 {
            record.readers -= 1;
            self.copies[word] &= !bit;
        }
        if record.writer == core + 1 {
            record.writer = 0;
        }
        let Some(held) = after else { return };
        record.readers += 1;
        self.copies[word] |= bit;
        let other = record.writer;
        if held.state.writable() {
            record.writer = core + 1;
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

    /// Checks a load.
    #[inline]
    pub(super) fn loaded(&mut self, core: u32, word: usize, value: u64) {
        if self.enabled && self.words[word] != value {
            let (line, last, address) = (line_of(word), self.words[word], 8 * word);
            self.report(
                line,
                format!(
                    "core {core} reads {value} from {address:#x}, where the last store wrote {last}"
                ),
            );
        }
    }

    /// Records and checks a store.
    #[inline]
    pub(super) fn stored(&mut self, core: u32, word: usize, value: u64) {
        if !self.enabled {
            return;
        }
        self.words[word] = value;
        let line = line_of(word);
        if self.lines[line as usize].writer != core + 1 {
            self.report(line, format!("core {core} writes without permission"));
        }
    }

    /// Records tokens that were added somewhere (positive) or removed (negative).
    #[inline]
    pub(super) fn tokens(&mut self, line: u32, tokens: i64, owners: i64) {
        if !self.enabled {
            return;
        }
        let record = &mut self.lines[line as usize];
        record.tokens += tokens;
        record.owners += owners;
        self.moved.push(line);
    }

    /// Checks at the end of an event that tokens are conserved.
    fn check_tokens(&mut self) {
        while let Some(line) = self.moved.pop() {
            let LineRecord { tokens, owners, .. } = self.lines[line as usize];
            if tokens != 0 {
                let (of, are) = (self.tokens, i64::from(self.tokens) + tokens);
                self.report(line, format!("there are {are} tokens instead of {of}"));
            }
            if owners != 0 {
                let are = 1 + owners;
                self.report(line, format!("there are {are} owner tokens instead of one"));
            }
        }
    }

    /// Records a broadcast that `members` caches respond to.
    pub(super) fn expect_responses(&mut self, line: u32, serial: u64, members: u32) {
        if self.enabled {
            self.outstanding.insert(serial, (line, members));
        }
    }

    /// Records `count` responses; `last` if the fabric reports them as the last.
    pub(super) fn responses_arrived(&mut self, line: u32, serial: u64, count: u32, last: bool) {
        if !self.enabled {
            return;
        }
        let missing = self.outstanding.get(&serial).map_or(0, |&(_, missing)| missing);
        let left = i64::from(missing) - i64::from(count);
        if left < 0 || (left == 0) != last {
            let reported = if last { "reported as the last" } else { "reported as not the last" };
            self.report(
                line,
                format!("{count} responses arrived, {reported}, while {missing} were outstanding"),
            );
        }
        match u32::try_from(left) {
            Ok(left) if left > 0 => _ = self.outstanding.insert(serial, (line, left)),
            _ => _ = self.outstanding.remove(&serial),
        }
    }

    /// Returns the number of outstanding responses of a miss, if the checker is enabled.
    pub(super) fn outstanding_responses(&self, serial: u64) -> Option<u32> {
        self.outstanding.get(&serial).map(|&(_, missing)| missing)
    }

    /// Checks after the run that no message is left and that memory has the words of the stores.
    pub(super) fn check_end(&mut self, memory: &[u64], messages: usize) {
        if !self.enabled {
            return;
        }
        if messages > 0 {
            self.report(0, format!("{messages} messages were never processed"));
        }
        if let Some(word) = (0..memory.len()).find(|&word| memory[word] != self.words[word]) {
            let (is, last, address) = (memory[word], self.words[word], 8 * word);
            self.report(
                line_of(word),
                format!("{address:#x} is {is} at the end, where the last store wrote {last}"),
            );
        }
        if let Some((_, &(line, missing))) = self.outstanding.first_key_value() {
            self.report(line, format!("{missing} responses to a broadcast never arrived"));
        }
    }
}

fn line_of(word: usize) -> u32 {
    u32::try_from(word / LINE_WORDS).expect("`System::new` checks the size")
}
