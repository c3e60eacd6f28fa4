//! Reads GOAL text in one pass.

use std::collections::BTreeSet;
use std::io::Read;

use super::blocks::Blocks;
use super::words::{Token, Words, number};
use super::{Goal, ReadError, TraceError, UNIT};
use crate::trace::builder::GraphBuilder;
use crate::trace::kind;
use crate::trace::labels::Labels;

/// The largest tag; larger numbers, like -1, mean any tag.
const MOST_TAG: u64 = u32::MAX as u64 - 1;

const OPERATIONS: &str = "`calc`, `send` or `recv`";

/// Reads GOAL text. Computations are in ns.
///
/// # Errors
/// When the file cannot be read or is not GOAL; the error names the line.
pub fn read(file: impl Read) -> Result<Goal, ReadError> {
    let mut blocks = Blocks::of(file);
    let mut trace = Trace::default();
    let mut line = 1;
    while let Some(text) = blocks.next()? {
        let mut reader = Reader { words: Words { text, at: 0, line }, trace: &mut trace };
        reader.piece()?;
        line = reader.words.line;
    }
    Ok(trace.finish(line)?)
}

/// What has been read of a trace.
#[derive(Default)]
struct Trace {
    ranks: Option<u64>,
    /// The ranks of the blocks, in the order of the file.
    order: Vec<u64>,
    known: BTreeSet<u64>,
    builder: GraphBuilder,
    labels: Labels,
    other_nics: u64,
}

impl Trace {
    fn finish(self, line: usize) -> Result<Goal, TraceError> {
        let refuse = |problem: String, expected: &str| {
            Err(TraceError::Text { line, problem, expected: expected.to_owned() })
        };
        let Some(ranks) = self.ranks else {
            return refuse("the number of ranks is missing".to_owned(), "`num_ranks`");
        };
        let last = self.known.last().map_or(0, |rank| rank + 1);
        if self.order.len() as u64 != ranks || last != ranks {
            let missing = (0..).find(|rank| !self.known.contains(rank)).unwrap_or_default();
            let problem = format!("{} blocks for {ranks} ranks", self.order.len());
            let problem = format!("{problem}; the first missing block is of rank {missing}");
            return refuse(problem, "a block for each rank");
        }
        let mut graph = self.builder.finish()?;
        if !self.order.is_sorted() {
            let mut places: Vec<usize> = (0..self.order.len()).collect();
            places.sort_unstable_by_key(|&at| self.order[at]);
            graph = graph.reordered(&places);
        }
        Ok(Goal { graph, other_nics: self.other_nics })
    }
}

/// A dependency on a label that follows: the operation, the label, whether on its start, the line.
type Pending<'a> = (u32, &'a [u8], bool, usize);

/// Reads a piece of the text, up to the end of a block.
struct Reader<'a, 't> {
    words: Words<'a>,
    trace: &'t mut Trace,
}

impl<'a> Reader<'a, '_> {
    fn piece(&mut self) -> Result<(), TraceError> {
        loop {
            match self.words.next()? {
                Token::End => return Ok(()),
                Token::NewLine => {}
                Token::Word(b"num_ranks") if self.trace.ranks.is_none() => {
                    let most = u64::from(u32::MAX >> 1);
                    self.trace.ranks = Some(self.number("the number of ranks", most)?);
                }
                Token::Word(b"rank") => {
                    let rank = self.number("the number of a rank", u64::from(u32::MAX >> 1))?;
                    if !self.trace.known.insert(rank) {
                        return self
                            .refuse(&format!("a second block of rank {rank}"), "one per rank");
                    }
                    self.trace.order.push(rank);
                    self.expect(b"{")?;
                    self.block()?;
                }
                token => return self.unexpected(token, "`num_ranks` or `rank`"),
            }
        }
    }

    fn refuse<T>(&self, problem: &str, expected: &str) -> Result<T, TraceError> {
        let (problem, expected) = (problem.to_owned(), expected.to_owned());
        Err(TraceError::Text { line: self.words.line, problem, expected })
    }

    #[cold]
    fn unexpected<T>(&self, token: Token<'_>, expected: &str) -> Result<T, TraceError> {
        let (line, problem) = match token {
            Token::Word(word) => {
                let short = &word[..word.len().min(40)];
                (self.words.line, format!("`{}`", String::from_utf8_lossy(short)))
            }
            Token::NewLine => (self.words.line - 1, "the line ends".to_owned()),
            Token::End => (self.words.line, "the file ends".to_owned()),
        };
        Err(TraceError::Text { line, problem, expected: expected.to_owned() })
    }

    fn expect(&mut self, word: &[u8]) -> Result<(), TraceError> {
        match self.words.next()? {
            Token::Word(found) if found == word => Ok(()),
            token => self.unexpected(token, &format!("`{}`", String::from_utf8_lossy(word))),
        }
    }

    fn number(&mut self, what: &str, most: u64) -> Result<u64, TraceError> {
        let token = self.words.next()?;
        let Token::Word(word) = token else { return self.unexpected(token, what) };
        match number(word).filter(|&number| number <= most) {
            Some(number) => Ok(number),
            None => self.unexpected(token, &format!("{what}, at most {most}")),
        }
    }

    /// Reads the operations and dependencies of a rank.
    fn block(&mut self) -> Result<(), TraceError> {
        self.trace.labels.clear();
        let mut pending: Vec<Pending<'a>> = Vec::new();
        loop {
            match self.words.next()? {
                Token::NewLine => {}
                Token::Word(b"}") => break,
                Token::Word(word) if is_operation(word) => self.operation(word)?,
                token => match label_of(token) {
                    Some(label) => self.labelled(label, &mut pending)?,
                    None => return self.unexpected(token, "an operation, a label or `}`"),
                },
            }
        }
        // Of several unknown labels, the error names that of the first operation.
        pending.sort_by_key(|&(owner, ..)| owner);
        for (owner, label, on_start, line) in pending {
            let on = self.find(label, line)?;
            self.trace.builder.require(owner, on, on_start);
        }
        self.trace.builder.end_rank();
        Ok(())
    }

    /// Reads the rest of a line that starts with a label.
    fn labelled(
        &mut self,
        label: &'a [u8],
        pending: &mut Vec<Pending<'a>>,
    ) -> Result<(), TraceError> {
        let (line, end) = (self.words.line, self.words.at);
        let on_start = match self.words.next()? {
            Token::Word(b":") => {
                self.define(label, end, line)?;
                return match self.words.next()? {
                    Token::Word(word) if is_operation(word) => self.operation(word),
                    token => self.unexpected(token, OPERATIONS),
                };
            }
            Token::Word(b"requires") => false,
            Token::Word(b"irequires") => true,
            token => return self.unexpected(token, "`:`, `requires` or `irequires`"),
        };
        let token = self.words.next()?;
        let Some(other) = label_of(token) else { return self.unexpected(token, "a label") };
        let owner = self.find(label, line)?;
        match self.trace.labels.find(self.words.text, other) {
            Some(on) => self.trace.builder.require(owner, on, on_start),
            None => pending.push((owner, other, on_start, line)),
        }
        match self.words.next()? {
            Token::NewLine | Token::End => Ok(()),
            token => self.unexpected(token, "the end of the line"),
        }
    }

    /// Adds the label that ends at a position.
    fn define(&mut self, label: &[u8], end: usize, line: usize) -> Result<(), TraceError> {
        let operation = u32::try_from(self.trace.builder.len()).unwrap_or(u32::MAX);
        let place = end - label.len()..end;
        if self.trace.labels.add(self.words.text, place, operation) {
            return Ok(());
        }
        let problem = format!("label `{}` is defined before", String::from_utf8_lossy(label));
        Err(TraceError::Text { line, problem, expected: "each label once per rank".to_owned() })
    }

    fn find(&self, label: &[u8], line: usize) -> Result<u32, TraceError> {
        self.trace.labels.find(self.words.text, label).ok_or_else(|| {
            let short = &label[..label.len().min(40)];
            let problem = format!("unknown label `{}`", String::from_utf8_lossy(short));
            TraceError::Text { line, problem, expected: "a label of the same rank".to_owned() }
        })
    }

    /// Reads the rest of a line that starts with `calc`, `send` or `recv`.
    fn operation(&mut self, word: &[u8]) -> Result<(), TraceError> {
        if word == b"calc" {
            let duration = self.number("a duration in ns", i64::MAX.unsigned_abs() / UNIT)?;
            let [_, cpu, _] = self.attributes(false)?;
            self.trace.builder.push(kind::COMPUTE, duration * UNIT, (-1, 0), signed(cpu));
            return Ok(());
        }
        let sends = word == b"send";
        let size = self.size()?;
        self.expect(if sends { b"to" } else { b"from" })?;
        let token = self.words.next()?;
        let peer = match token {
            Token::Word(b"-1") if !sends => Some(-1),
            Token::Word(word) => number(word).and_then(|peer| i32::try_from(peer).ok()),
            _ => None,
        };
        let Some(peer) = peer else { return self.unexpected(token, "a rank") };
        let [tag, cpu, nic] = self.attributes(true)?;
        self.trace.other_nics += u64::from(nic != 0);
        let tag = if tag == u32::MAX { -1 } else { i64::from(tag) };
        let kind = if sends { kind::SEND } else { kind::RECEIVE };
        if sends && tag < 0 {
            return self.refuse("a send to any tag", "a tag of 0 or more");
        }
        self.trace.builder.push(kind, size, (peer, tag), signed(cpu));
        Ok(())
    }

    /// Reads a size: `8b` or `8 b`.
    fn size(&mut self) -> Result<u64, TraceError> {
        let token = self.words.next()?;
        let Token::Word(word) = token else { return self.unexpected(token, "a size") };
        let digits = word.strip_suffix(b"b");
        let bytes = number(digits.unwrap_or(word)).filter(|&size| i64::try_from(size).is_ok());
        let Some(bytes) = bytes else { return self.unexpected(token, "a size such as `8b`") };
        if digits.is_none() {
            self.expect(b"b")?;
        }
        Ok(bytes)
    }

    /// Reads `tag`, `cpu` and `nic`, in any order, up to the end of the line. A tag of
    /// [`u32::MAX`] is any.
    fn attributes(&mut self, of_message: bool) -> Result<[u32; 3], TraceError> {
        let mut found = [0; 3];
        let mut given = [false; 3];
        loop {
            let token = self.words.next()?;
            let at = match token {
                Token::Word(b"tag") if of_message => 0,
                Token::Word(b"cpu") => 1,
                Token::Word(b"nic") => 2,
                Token::NewLine | Token::End => return Ok(found),
                _ => return self.unexpected(token, "`tag`, `cpu`, `nic` or the end of the line"),
            };
            if std::mem::replace(&mut given[at], true) {
                return self.unexpected(token, "each attribute once");
            }
            found[at] = self.attribute(at)?;
        }
    }

    fn attribute(&mut self, at: usize) -> Result<u32, TraceError> {
        let token = self.words.next()?;
        let most = if at == 0 { MOST_TAG + 1 } else { u64::from(u8::MAX) };
        let value = match token {
            Token::Word(b"-1") if at == 0 => Some(MOST_TAG + 1),
            Token::Word(word) => number(word).filter(|&value| value <= most),
            _ => None,
        };
        let value = value.and_then(|value| u32::try_from(value).ok());
        match value {
            Some(value) => Ok(value),
            None if at == 0 => self.unexpected(token, "a tag of 32 bits, or -1"),
            None => self.unexpected(token, "a number from 0 to 255"),
        }
    }
}

fn is_operation(word: &[u8]) -> bool {
    matches!(word, b"calc" | b"send" | b"recv")
}

/// A token that is a label; a `}` would end the piece of the text, too.
fn label_of(token: Token<'_>) -> Option<&[u8]> {
    match token {
        Token::Word(word) if word[0].is_ascii_alphabetic() => Some(word),
        _ => None,
    }
}

/// A CPU, at most 255.
fn signed(cpu: u32) -> i32 {
    i32::try_from(cpu).unwrap_or(i32::MAX)
}
