//! The parser: lines to an explicit schedule, every error with its line.

use super::FIRST_LINE;
use crate::collective::Collective;
use crate::{Builder, ChunkRange, Explicit, ExplicitError, Message, Op, Slot, Step};
use tutti_units::ids::RankId;
use tutti_units::{Time, UnitError};

/// An invalid text form; lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "TextError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum TextError {
    /// An unreadable line.
    #[error("line {line}: `{text}` cannot be read: expected {expected}")]
    Malformed { line: usize, text: String, expected: &'static str },
    /// An unreadable duration.
    #[error("line {line}: {source}")]
    Duration { line: usize, source: UnitError },
    /// An invalid op.
    #[error("line {line}: {source}")]
    Refused { line: usize, source: ExplicitError },
    /// A missing header line.
    #[error("line {line}: the header lacks the line `{key}`: expected it before the first rank")]
    MissingHeader { line: usize, key: &'static str },
    /// A repeated header line.
    #[error("line {line}: the header line `{key}` appears twice")]
    SecondHeader { line: usize, key: String },
    /// A rank after a higher one.
    #[error(
        "line {line}: rank {rank} comes after rank {before}: expected ranks in ascending order"
    )]
    RankOrder { line: usize, rank: u32, before: u32 },
    /// An op outside a step.
    #[error("line {line}: `{text}` is outside a step: expected `rank` and `step` lines first")]
    OutsideStep { line: usize, text: String },
    /// An op out of order.
    #[error(
        "line {line}: `{text}` is out of order in its step: expected sends, then recvs, then local ops"
    )]
    OpOrder { line: usize, text: String },
}

/// Parses a schedule.
///
/// # Errors
/// The first error of the text, with its line.
pub fn read(text: &str) -> Result<Explicit, TextError> {
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(index, line)| Line { number: index + 1, text: line.trim() })
        .filter(|line| !line.text.is_empty() && !line.text.starts_with('#'));
    let first = lines.next().unwrap_or(Line { number: 1, text: "" });
    if first.text != FIRST_LINE {
        return Err(first.malformed("the first line `tutti schedule 1`"));
    }
    let mut header = Header::default();
    let mut lines = lines.peekable();
    let mut last = first.number;
    while let Some(line) = lines.next_if(|line| line.keyword() != "rank") {
        header.read(line)?;
        last = line.number;
    }
    let mut body = Body { builder: header.builder(last)?, rank: None, step: None };
    for line in lines {
        body.read(line)?;
        last = line.number;
    }
    body.end_step();
    body.builder.build().map_err(|source| TextError::Refused { line: last, source })
}

/// A line of the text, without leading and trailing blanks.
#[derive(Clone, Copy)]
struct Line<'a> {
    number: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    fn keyword(self) -> &'a str {
        self.text.split_whitespace().next().unwrap_or("")
    }

    /// Returns the text after the keyword.
    fn rest(self) -> &'a str {
        self.text[self.keyword().len()..].trim()
    }

    fn malformed(self, expected: &'static str) -> TextError {
        TextError::Malformed { line: self.number, text: self.text.to_owned(), expected }
    }

    fn number(self, text: &str, expected: &'static str) -> Result<u32, TextError> {
        text.parse().map_err(|_| self.malformed(expected))
    }

    fn slot(self, text: &str) -> Result<Slot, TextError> {
        let expected = "a slot: `data`, `s1`, `s2`, ...";
        match text.strip_prefix('s') {
            _ if text == "data" => Ok(Slot::DATA),
            Some(scratch) => match self.number(scratch, expected)? {
                0 => Err(self.malformed(expected)),
                scratch => Ok(Slot(scratch)),
            },
            None => Err(self.malformed(expected)),
        }
    }

    /// `slot[chunks]`.
    fn place(self, text: &str, expected: &'static str) -> Result<(Slot, ChunkRange), TextError> {
        let inner = text.strip_suffix(']').and_then(|text| text.split_once('['));
        let (slot, chunks) = inner.ok_or_else(|| self.malformed(expected))?;
        let slot = self.slot(slot)?;
        if let Some((start, end)) = chunks.split_once("..") {
            let [start, end] = [self.number(start, expected)?, self.number(end, expected)?];
            return Ok((slot, ChunkRange::new(start, end)));
        }
        let start = self.number(chunks, expected)?;
        let end = start.checked_add(1).ok_or_else(|| self.malformed(expected))?;
        Ok((slot, ChunkRange::new(start, end)))
    }

    /// `slot[chunks] <word> peer`.
    fn message(self, word: &str, expected: &'static str) -> Result<Message, TextError> {
        let mut words = self.rest().split_whitespace();
        let (Some(place), Some(middle), Some(peer), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(self.malformed(expected));
        };
        if middle != word {
            return Err(self.malformed(expected));
        }
        let (slot, chunks) = self.place(place, expected)?;
        Ok(Message { peer: RankId(self.number(peer, expected)?), slot, chunks })
    }

    /// `slot[chunks] = operands`.
    fn fold(self, expected: &'static str) -> Result<(Slot, ChunkRange, &'a str), TextError> {
        let sides = self.rest().split_once('=');
        let (place, operands) = sides.ok_or_else(|| self.malformed(expected))?;
        let (into, chunks) = self.place(place.trim(), expected)?;
        Ok((into, chunks, operands))
    }

    /// Rows of numbers, separated by `;`.
    fn sizes(self) -> Result<Vec<u64>, TextError> {
        let words = self.rest().split([' ', '\t', ';']).filter(|word| !word.is_empty());
        let expected = "`blocks` and a size per source and destination, such as `blocks 0 4; 9 1`";
        words.map(|word| word.parse().map_err(|_| self.malformed(expected))).collect()
    }

    fn duration(self) -> Result<Time, TextError> {
        let line = self.number;
        Time::parse(self.rest()).map_err(|source| TextError::Duration { line, source })
    }
}

#[derive(Default)]
struct Header<'a> {
    name: Option<Line<'a>>,
    collective: Option<Line<'a>>,
    root: Option<Line<'a>>,
    ranks: Option<Line<'a>>,
    chunks: Option<Line<'a>>,
    blocks: Option<Line<'a>>,
    slots: Option<Line<'a>>,
    result: Option<Line<'a>>,
}

impl<'a> Header<'a> {
    fn read(&mut self, line: Line<'a>) -> Result<(), TextError> {
        let field = match line.keyword() {
            "name" => &mut self.name,
            "collective" => &mut self.collective,
            "root" => &mut self.root,
            "ranks" => &mut self.ranks,
            "chunks" => &mut self.chunks,
            "blocks" => &mut self.blocks,
            "slots" => &mut self.slots,
            "result" => &mut self.result,
            _ => {
                let keys = "name, collective, root, ranks, chunks, blocks, slots, result or rank";
                return Err(line.malformed(keys));
            }
        };
        if field.replace(line).is_some() {
            let key = line.keyword().to_owned();
            return Err(TextError::SecondHeader { line: line.number, key });
        }
        Ok(())
    }

    fn builder(&self, last: usize) -> Result<Builder, TextError> {
        let need = |field: Option<Line<'a>>, key| {
            field.ok_or(TextError::MissingHeader { line: last, key })
        };
        let count = |line: Line| line.number(line.rest(), "an integer");
        let [ranks, chunks] = [need(self.ranks, "ranks")?, need(self.chunks, "chunks")?];
        let mut builder = Explicit::builder(self.collective(last)?, count(ranks)?, count(chunks)?);
        let at_fault = match builder.problem() {
            Some(ExplicitError::NoChunks | ExplicitError::Blocks { .. }) => chunks,
            Some(ExplicitError::WrongRoot { .. }) => self.root.unwrap_or(ranks),
            _ => ranks,
        };
        refuse(&builder, at_fault)?;
        if let Some(name) = self.name {
            builder.name(name.rest());
            refuse(&builder, name)?;
        }
        if let Some(blocks) = self.blocks {
            builder.blocks(&blocks.sizes()?);
            refuse(&builder, blocks)?;
        }
        if let Some(slots) = self.slots {
            builder.slots(count(slots)?);
        }
        if let Some(result) = self.result {
            builder.result(result.slot(result.rest())?);
            refuse(&builder, result)?;
        }
        Ok(builder)
    }

    fn collective(&self, last: usize) -> Result<Collective, TextError> {
        let missing = |key| TextError::MissingHeader { line: last, key };
        let line = self.collective.ok_or(missing("collective"))?;
        let collective = Collective::from_name(line.rest(), RankId(0))
            .ok_or_else(|| line.malformed("a collective, such as `collective all_reduce`"))?;
        match (collective.root(), self.root) {
            (None, None) => Ok(collective),
            (None, Some(root)) => Err(root.malformed("no root: this collective has none")),
            (Some(_), None) => Err(missing("root")),
            (Some(_), Some(root)) => {
                Ok(collective.with_root(RankId(root.number(root.rest(), "a rank")?)))
            }
        }
    }
}

/// Returns the builder's error, if any, with the number of `line`.
fn refuse(builder: &Builder, line: Line) -> Result<(), TextError> {
    let refused =
        |source: &ExplicitError| TextError::Refused { line: line.number, source: source.clone() };
    builder.problem().map_or(Ok(()), |source| Err(refused(source)))
}

struct Body<'a> {
    builder: Builder,
    rank: Option<u32>,
    /// The current step, with its name.
    step: Option<(&'a str, Step)>,
}

impl<'a> Body<'a> {
    fn read(&mut self, line: Line<'a>) -> Result<(), TextError> {
        match line.keyword() {
            "rank" => self.rank(line),
            "step" if self.rank.is_some() => {
                self.end_step();
                self.step = Some((line.rest(), Step::new()));
                Ok(())
            }
            _ => self.op(line),
        }?;
        refuse(&self.builder, line)
    }

    fn rank(&mut self, line: Line) -> Result<(), TextError> {
        self.end_step();
        let rank = line.number(line.rest(), "`rank` and its number")?;
        if let Some(before) = self.rank.filter(|&before| before >= rank) {
            return Err(TextError::RankOrder { line: line.number, rank, before });
        }
        let last = self.builder.ranks() - 1;
        if rank > last {
            let source = ExplicitError::RankOutside { rank: RankId(rank), op: "take part", last };
            return Err(TextError::Refused { line: line.number, source });
        }
        self.rank = Some(rank);
        Ok(())
    }

    fn end_step(&mut self) {
        if let (Some(rank), Some((name, step))) = (self.rank, self.step.take()) {
            self.builder.step(RankId(rank), name, step);
        }
    }

    fn op(&mut self, line: Line) -> Result<(), TextError> {
        let Some((_, step)) = &mut self.step else {
            return Err(TextError::OutsideStep { line: line.number, text: line.text.to_owned() });
        };
        let op = read_op(line)?;
        let works = step.locals.len() > step.combines().count();
        let late = match op {
            Op::Send(_) | Op::Multicast { .. } | Op::Contribute(_) => {
                !step.recvs.is_empty() || works
            }
            Op::Recv(_) | Op::Combine { .. } => works,
            _ => false,
        };
        if late {
            return Err(TextError::OpOrder { line: line.number, text: line.text.to_owned() });
        }
        step.add(&op);
        Ok(())
    }
}

fn read_op(line: Line) -> Result<Op, TextError> {
    Ok(match line.keyword() {
        "send" => Op::Send(line.message("to", "`send slot[chunks] to rank`")?),
        "multicast" => multicast(line)?,
        "contribute" => Op::Contribute(line.message("to", "`contribute slot[chunks] to rank`")?),
        "combine" => combine(line)?,
        "recv" => Op::Recv(line.message("from", "`recv slot[chunks] from rank`")?),
        "reduce" => reduce(line)?,
        "copy" => copy(line)?,
        "compute" => Op::Compute { duration: line.duration()? },
        "sleep" => Op::Sleep { duration: line.duration()? },
        _ => {
            let known = "send, multicast, contribute, recv, combine, reduce, copy, compute, sleep, step or rank";
            return Err(line.malformed(known));
        }
    })
}

fn reduce(line: Line) -> Result<Op, TextError> {
    let (into, chunks, operands) = line.fold("`reduce slot[chunks] = slot + slot + ...`")?;
    let operands = match operands.trim() {
        "" => Vec::new(),
        slots => slots.split('+').map(|slot| line.slot(slot.trim())).collect::<Result<_, _>>()?,
    };
    Ok(Op::Reduce { into, operands, chunks })
}

fn multicast(line: Line) -> Result<Op, TextError> {
    let expected = "`multicast slot[chunks] to rank rank ...`";
    let (place, peers) = line.rest().split_once(" to").ok_or_else(|| line.malformed(expected))?;
    let (slot, chunks) = line.place(place.trim(), expected)?;
    let peer = |text: &str| line.number(text, expected).map(RankId);
    let peers: Vec<RankId> = peers.split_whitespace().map(peer).collect::<Result<_, _>>()?;
    if peers.is_empty() {
        return Err(line.malformed(expected));
    }
    Ok(Op::Multicast { peers, slot, chunks })
}

fn combine(line: Line) -> Result<Op, TextError> {
    let expected = "`combine slot[chunks] = slot + slot from rank + ...`, with at least one `from`";
    let (into, chunks, operands) = line.fold(expected)?;
    let operand = |text: &str| match text.split_once(" from ") {
        None => Ok((line.slot(text.trim())?, None)),
        Some((slot, from)) => {
            let from = line.number(from.trim(), expected)?;
            Ok((line.slot(slot.trim())?, Some(RankId(from))))
        }
    };
    let operands: Vec<(Slot, Option<RankId>)> =
        operands.split('+').map(operand).collect::<Result<_, TextError>>()?;
    if operands.iter().all(|(_, from)| from.is_none()) {
        return Err(line.malformed(expected));
    }
    Ok(Op::Combine { into, operands, chunks })
}

fn copy(line: Line) -> Result<Op, TextError> {
    let expected = "`copy slot[chunks] to slot[chunk]`";
    let (from, into) = line.rest().split_once(" to ").ok_or_else(|| line.malformed(expected))?;
    let (from, chunks) = line.place(from.trim(), expected)?;
    let (into, to) = line.place(into.trim(), expected)?;
    if to.len() != 1 {
        return Err(line.malformed(expected));
    }
    Ok(Op::Copy { from, into, chunks, to: to.start })
}
