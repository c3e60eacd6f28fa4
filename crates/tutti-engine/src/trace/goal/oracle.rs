//! The simple reader of GOAL text: one map of labels per rank, columns per rank.

use std::collections::BTreeMap;

use crate::trace::{Operations, TraceError, kind};

/// Picoseconds of a unit of a computation.
const UNIT: i64 = 1000;

/// The largest tag; larger numbers, like -1, mean any tag.
const MOST_TAG: u64 = u32::MAX as u64 - 1;

/// A trace, and what is lost in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Goal {
    /// The operations of each rank.
    pub(super) ranks: Vec<Operations>,
    /// Operations on another network interface than 0.
    pub(super) other_nics: u64,
}

/// Reads GOAL text. Computations are in ns.
///
/// # Errors
/// When the text is not GOAL; the error names the line.
pub(super) fn read(text: &[u8]) -> Result<Goal, TraceError> {
    let mut reader = Reader { words: Words { text, at: 0, line: 1 }, other_nics: 0 };
    let mut ranks = None;
    let mut blocks = BTreeMap::new();
    loop {
        match reader.words.next()? {
            Token::End => break,
            Token::NewLine => {}
            Token::Word(b"num_ranks") if ranks.is_none() => {
                ranks = Some(reader.number("the number of ranks", u64::from(u32::MAX >> 1))?);
            }
            Token::Word(b"rank") => {
                let rank = reader.number("the number of a rank", u64::from(u32::MAX >> 1))?;
                if blocks.contains_key(&rank) {
                    return reader
                        .refuse(&format!("a second block of rank {rank}"), "one per rank");
                }
                reader.expect(b"{")?;
                blocks.insert(rank, reader.block()?);
            }
            token => return reader.unexpected(token, "`num_ranks` or `rank`"),
        }
    }
    let Some(ranks) = ranks else {
        return reader.refuse("the number of ranks is missing", "`num_ranks`");
    };
    let last = blocks.last_key_value().map_or(0, |(rank, _)| rank + 1);
    if blocks.len() as u64 != ranks || last != ranks {
        let missing = (0..).find(|rank| !blocks.contains_key(rank)).unwrap_or_default();
        let problem = format!("{} blocks for {ranks} ranks", blocks.len());
        let problem = format!("{problem}; the first missing block is of rank {missing}");
        return reader.refuse(&problem, "a block for each rank");
    }
    Ok(Goal { ranks: blocks.into_values().collect(), other_nics: reader.other_nics })
}

/// A word, a delimiter or an end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    /// A word, number, brace or colon.
    Word(&'a [u8]),
    NewLine,
    End,
}

/// The tokens of a text, without blanks and comments.
struct Words<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Result<Token<'a>, TraceError> {
        loop {
            let Some(&first) = self.text.get(self.at) else { return Ok(Token::End) };
            match first {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' => {
                    self.at += 1;
                    self.line += 1;
                    return Ok(Token::NewLine);
                }
                b'/' => self.skip_comment()?,
                b'{' | b'}' | b':' => {
                    self.at += 1;
                    return Ok(Token::Word(&self.text[self.at - 1..self.at]));
                }
                _ => return Ok(self.word()),
            }
        }
    }

    fn word(&mut self) -> Token<'a> {
        let start = self.at;
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let rest = &self.text[start..];
        let length = rest.iter().position(|byte| !is_word(byte)).unwrap_or(rest.len());
        self.at += length.max(1);
        Token::Word(&self.text[start..self.at])
    }

    fn skip_comment(&mut self) -> Result<(), TraceError> {
        let rest = &self.text[self.at..];
        if rest.starts_with(b"//") {
            self.at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            return Ok(());
        }
        let end = rest.windows(2).skip(2).position(|pair| pair == b"*/");
        match end.filter(|_| rest.starts_with(b"/*")) {
            Some(end) => {
                let length = end + 4;
                self.line += rest[..length].iter().filter(|&&byte| byte == b'\n').count();
                self.at += length;
                Ok(())
            }
            None => Err(TraceError::Text {
                line: self.line,
                problem: "`/` starts no comment that ends".to_owned(),
                expected: "`//` or `/* ... */`".to_owned(),
            }),
        }
    }
}

struct Reader<'a> {
    words: Words<'a>,
    other_nics: u64,
}

/// A dependency: the operation, the label that it requires, whether on its start, and the line.
type Requirement<'a> = (u32, &'a [u8], bool, usize);

impl<'a> Reader<'a> {
    fn refuse<T>(&self, problem: &str, expected: &str) -> Result<T, TraceError> {
        let (problem, expected) = (problem.to_owned(), expected.to_owned());
        Err(TraceError::Text { line: self.words.line, problem, expected })
    }

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
    fn block(&mut self) -> Result<Operations, TraceError> {
        let mut of = Operations::new();
        let mut labels = Labels::default();
        let mut requirements: Vec<Requirement<'a>> = Vec::new();
        loop {
            match self.words.next()? {
                Token::NewLine => {}
                Token::Word(b"}") => break,
                Token::Word(word) if is_operation(word) => self.operation(word, &mut of)?,
                Token::Word(label) if label[0].is_ascii_alphabetic() => {
                    let line = self.words.line;
                    let on_start = match self.words.next()? {
                        Token::Word(b":") => {
                            labels.add(label, of.len(), line)?;
                            match self.words.next()? {
                                Token::Word(word) if is_operation(word) => {
                                    self.operation(word, &mut of)?;
                                }
                                token => return self.unexpected(token, OPERATIONS),
                            }
                            continue;
                        }
                        Token::Word(b"requires") => false,
                        Token::Word(b"irequires") => true,
                        token => return self.unexpected(token, "`:`, `requires` or `irequires`"),
                    };
                    let token = self.words.next()?;
                    let other = match token {
                        Token::Word(other) if other[0].is_ascii_alphabetic() => other,
                        token => return self.unexpected(token, "a label"),
                    };
                    requirements.push((labels.find(label, line)?, other, on_start, line));
                    self.end_line()?;
                }
                token => return self.unexpected(token, "an operation, a label or `}`"),
            }
        }
        add_requirements(&mut of, &labels, requirements)?;
        Ok(of)
    }

    fn end_line(&mut self) -> Result<(), TraceError> {
        match self.words.next()? {
            Token::NewLine | Token::End => Ok(()),
            token => self.unexpected(token, "the end of the line"),
        }
    }

    /// Reads the rest of a line that starts with `calc`, `send` or `recv`.
    fn operation(&mut self, word: &[u8], of: &mut Operations) -> Result<(), TraceError> {
        if word == b"calc" {
            let most = i64::MAX / UNIT;
            let duration = self.number("a duration in ns", most.unsigned_abs())?;
            let [_, cpu, _] = self.attributes(false)?;
            of.push(kind::COMPUTE, signed(duration) * UNIT, (-1, 0), cpu);
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
        self.other_nics += u64::from(nic != 0);
        // The tag of `attributes` has 32 bits without a sign.
        let tag = if tag == -1 { -1 } else { i64::from(tag.cast_unsigned()) };
        let kind = if sends { kind::SEND } else { kind::RECEIVE };
        if sends && tag < 0 {
            return self.refuse("a send to any tag", "a tag of 0 or more");
        }
        of.push(kind, size, (peer, tag), cpu);
        Ok(())
    }

    /// Reads a size: `8b` or `8 b`.
    fn size(&mut self) -> Result<i64, TraceError> {
        let token = self.words.next()?;
        let Token::Word(word) = token else { return self.unexpected(token, "a size") };
        let digits = word.strip_suffix(b"b");
        let bytes = number(digits.unwrap_or(word)).and_then(|size| i64::try_from(size).ok());
        let Some(bytes) = bytes else { return self.unexpected(token, "a size such as `8b`") };
        if digits.is_none() {
            self.expect(b"b")?;
        }
        Ok(bytes)
    }

    /// Reads `tag`, `cpu` and `nic`, in any order, up to the end of the line.
    fn attributes(&mut self, of_message: bool) -> Result<[i32; 3], TraceError> {
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

    fn attribute(&mut self, at: usize) -> Result<i32, TraceError> {
        let token = self.words.next()?;
        let most = if at == 0 { MOST_TAG + 1 } else { u64::from(u8::MAX) };
        let value = match token {
            Token::Word(b"-1") if at == 0 => Some(MOST_TAG + 1),
            Token::Word(word) => number(word).filter(|&value| value <= most),
            _ => None,
        };
        let value = value.and_then(|value| u32::try_from(value).ok());
        match value {
            Some(value) => Ok(value.cast_signed()),
            None if at == 0 => self.unexpected(token, "a tag of 32 bits, or -1"),
            None => self.unexpected(token, "a number from 0 to 255"),
        }
    }
}

const OPERATIONS: &str = "`calc`, `send` or `recv`";

fn is_operation(word: &[u8]) -> bool {
    matches!(word, b"calc" | b"send" | b"recv")
}

/// A number in decimal digits.
fn number(word: &[u8]) -> Option<u64> {
    let digit = |sum: u64, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    };
    if word.is_empty() { None } else { word.iter().try_fold(0, digit) }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The labels of a rank.
#[derive(Default)]
struct Labels<'a>(BTreeMap<&'a [u8], u32>);

impl<'a> Labels<'a> {
    fn add(&mut self, label: &'a [u8], at: usize, line: usize) -> Result<(), TraceError> {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        if self.0.insert(label, at).is_none() {
            return Ok(());
        }
        let problem = format!("label `{}` is defined before", String::from_utf8_lossy(label));
        Err(TraceError::Text { line, problem, expected: "each label once per rank".to_owned() })
    }

    fn find(&self, label: &[u8], line: usize) -> Result<u32, TraceError> {
        self.0.get(label).copied().ok_or_else(|| {
            let short = &label[..label.len().min(40)];
            let problem = format!("unknown label `{}`", String::from_utf8_lossy(short));
            TraceError::Text { line, problem, expected: "a label of the same rank".to_owned() }
        })
    }
}

fn add_requirements(
    of: &mut Operations,
    labels: &Labels<'_>,
    mut requirements: Vec<Requirement<'_>>,
) -> Result<(), TraceError> {
    // Stable: the dependencies of an operation stay in the order of the file.
    requirements.sort_by_key(|&(at, ..)| at);
    let mut next = requirements.into_iter().peekable();
    for at in 0..of.len() {
        while let Some((_, label, on_start, line)) = next.next_if(|&(of, ..)| of as usize == at) {
            of.dependencies.push(i64::from(labels.find(label, line)?));
            of.on_start.push(on_start);
        }
        of.first_dependency[at + 1] = signed(of.dependencies.len() as u64);
    }
    Ok(())
}
