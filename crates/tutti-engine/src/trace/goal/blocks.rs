//! The text of a file in pieces that end with the block of a rank.

use std::io::Read;

/// Bytes that are read at once.
const READ: usize = 1 << 20;

/// Where the scan is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    /// In a comment up to the end of the line.
    Line,
    /// In a comment up to `*/`.
    Block,
}

/// Cuts a text after each `}` outside of comments, which is the end of a block, or an error. A token
/// is never cut.
pub(super) struct Blocks<R> {
    file: R,
    buffer: Vec<u8>,
    /// The piece that was returned last.
    piece: std::ops::Range<usize>,
    state: State,
    /// Whether the file is read completely, and whether its last piece has been returned.
    ended: bool,
    done: bool,
}

impl<R: Read> Blocks<R> {
    pub(super) fn of(file: R) -> Blocks<R> {
        let (buffer, state) = (Vec::new(), State::Code);
        Blocks { file, buffer, piece: 0..0, state, ended: false, done: false }
    }

    /// The next piece; only the last one has no `}` at its end, and it may be empty.
    pub(super) fn next(&mut self) -> std::io::Result<Option<&[u8]>> {
        if self.done {
            return Ok(None);
        }
        self.piece.start = self.piece.end;
        let mut at = self.piece.start;
        loop {
            if let Some(end) = self.scan(&mut at) {
                self.piece.end = end;
                return Ok(Some(&self.buffer[self.piece.clone()]));
            }
            if self.ended {
                self.done = true;
                return Ok(Some(&self.buffer[self.piece.start..]));
            }
            at -= self.piece.start;
            self.fill()?;
        }
    }

    /// Moves the current piece to the start of the buffer, and reads more.
    fn fill(&mut self) -> std::io::Result<()> {
        self.buffer.drain(..self.piece.start);
        self.piece = 0..0;
        let before = self.buffer.len();
        let limit = READ.max(before) as u64;
        let read = (&mut self.file).take(limit).read_to_end(&mut self.buffer)?;
        self.ended = read == 0;
        Ok(())
    }

    /// Scans from a position on; returns the end of the piece if it is in the buffer. Stops before
    /// bytes whose meaning depends on those that follow the buffer.
    fn scan(&mut self, at: &mut usize) -> Option<usize> {
        let text = &self.buffer[..];
        loop {
            let rest = text.get(*at..).unwrap_or_default();
            match self.state {
                State::Code => {
                    let Some(found) = rest.iter().position(|&byte| matches!(byte, b'}' | b'/'))
                    else {
                        *at = text.len();
                        return None;
                    };
                    *at += found;
                    if rest[found] == b'}' {
                        *at += 1;
                        return Some(*at);
                    }
                    match rest.get(found + 1) {
                        Some(b'/') => self.state = State::Line,
                        Some(b'*') => self.state = State::Block,
                        // An error, which the parser reports.
                        Some(_) => {
                            *at += 1;
                            continue;
                        }
                        None => return None,
                    }
                    *at += 2;
                }
                State::Line => {
                    let Some(found) = rest.iter().position(|&byte| byte == b'\n') else {
                        *at = text.len();
                        return None;
                    };
                    *at += found;
                    self.state = State::Code;
                }
                State::Block => {
                    let Some(found) = rest.windows(2).position(|pair| pair == b"*/") else {
                        *at = (*at).max(text.len().saturating_sub(1));
                        return None;
                    };
                    *at += found + 2;
                    self.state = State::Code;
                }
            }
        }
    }
}
