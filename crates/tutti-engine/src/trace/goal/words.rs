//! The tokens of GOAL text.

use super::TraceError;

/// A word, a delimiter or an end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A word, number, brace or colon.
    Word(&'a [u8]),
    NewLine,
    End,
}

/// The tokens of a text, without blanks and comments.
pub(super) struct Words<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    pub(super) line: usize,
}

/// The class of a byte.
#[derive(Clone, Copy)]
enum Class {
    Blank,
    NewLine,
    Slash,
    /// A token of one byte.
    Single,
    /// A part of a word.
    Word,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Single; 256];
    let mut byte = 0_u8;
    loop {
        classes[byte as usize] = match byte {
            b' ' | b'\t' | b'\r' => Class::Blank,
            b'\n' => Class::NewLine,
            b'/' => Class::Slash,
            b'_' | b'-' => Class::Word,
            _ if byte.is_ascii_alphanumeric() => Class::Word,
            _ => Class::Single,
        };
        if byte == u8::MAX {
            break classes;
        }
        byte += 1;
    }
};

impl<'a> Words<'a> {
    #[inline]
    pub(super) fn next(&mut self) -> Result<Token<'a>, TraceError> {
        loop {
            let Some(&first) = self.text.get(self.at) else { return Ok(Token::End) };
            match CLASSES[first as usize] {
                Class::Blank => self.at += 1,
                Class::NewLine => {
                    self.at += 1;
                    self.line += 1;
                    return Ok(Token::NewLine);
                }
                Class::Slash => self.skip_comment()?,
                Class::Single => {
                    self.at += 1;
                    return Ok(Token::Word(&self.text[self.at - 1..self.at]));
                }
                Class::Word => return Ok(self.word()),
            }
        }
    }

    #[inline]
    fn word(&mut self) -> Token<'a> {
        let start = self.at;
        let rest = &self.text[start..];
        let is_word = |&byte: &u8| matches!(CLASSES[byte as usize], Class::Word);
        self.at += rest.iter().position(|byte| !is_word(byte)).unwrap_or(rest.len());
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

/// A number in decimal digits.
#[inline]
pub(super) fn number(word: &[u8]) -> Option<u64> {
    let digit = |sum: u64, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    };
    if word.is_empty() { None } else { word.iter().try_fold(0, digit) }
}
