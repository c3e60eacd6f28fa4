//! The binary form of GOAL: a header, a table of the ranks, and per rank operations and an appendix.
//!
//! All integers are little-endian. The header has the magic number, the number of ranks, the largest
//! CPU and the largest network interface. The table has the start and the end of each rank, counted
//! from byte 8. A rank has its number of operations, its number of operations without dependencies,
//! the latter's indices, the operations, and the appendix: the operations that await each operation.

use std::io::Read;

use super::{Goal, ReadError, TraceError, UNIT};
use crate::trace::builder::GraphBuilder;
use crate::trace::{ANY, kind};
use tutti_units::ids::RankId;

pub(super) const MAGIC: u64 = 4223;
const INVALIDATED: u64 = 2342;
/// Bytes of the magic number, of the header with it, of a row of the table, and of an operation.
pub(super) const COOKIE: u64 = 8;
pub(super) const HEADER: u64 = 14;
pub(super) const ROW: u64 = 16;
pub(super) const NODE: usize = 39;
/// The types of operations.
pub(super) const SEND: u8 = 1;
pub(super) const RECEIVE: u8 = 2;
pub(super) const COMPUTE: u8 = 3;
/// The peer and the tag of receives that accept any.
const ANY_VALUE: u32 = u32::MAX;

/// Reads the binary form of GOAL from a file of `length` bytes.
///
/// # Errors
/// When the file cannot be read or is damaged.
pub fn read_binary(mut file: impl Read, length: u64) -> Result<Goal, ReadError> {
    let table = table(&mut file, length)?;
    let ranks = u32::try_from(table.len() / 16).unwrap_or(u32::MAX);
    let mut reader =
        Ranks { ranks, builder: GraphBuilder::default(), other_nics: 0, counts: vec![] };
    let mut reached = table.len() as u64 + HEADER - COOKIE;
    let mut data = Vec::new();
    for (rank, row) in (0..ranks).zip(table.chunks_exact(16)) {
        let (start, end) = (long(row, 0), long(row, 8));
        if !(reached <= start && start <= end && end <= length - COOKIE) {
            let problem = format!("rank {rank} is at bytes {start} to {end} of the file");
            return Err(damaged(None, problem).into());
        }
        skip(&mut file, start - reached)?;
        data.clear();
        (&mut file).take(end - start).read_to_end(&mut data)?;
        if (data.len() as u64) < end - start {
            return Err(damaged(None, "the file has become shorter".to_owned()).into());
        }
        reached = end;
        reader.read(RankId(rank), &data)?;
    }
    Ok(Goal { graph: reader.builder.finish()?, other_nics: reader.other_nics })
}

/// Reads the header and the starts and ends of the ranks.
fn table(file: &mut impl Read, length: u64) -> Result<Vec<u8>, ReadError> {
    let mut head = Vec::new();
    file.take(HEADER).read_to_end(&mut head)?;
    let mut cookie = [0; 8];
    let known = head.len().min(8);
    cookie[..known].copy_from_slice(&head[..known]);
    let cookie = u64::from_le_bytes(cookie);
    if cookie == INVALIDATED {
        return Err(TraceError::Overwritten.into());
    }
    if cookie != MAGIC || (head.len() as u64) < HEADER {
        return Err(damaged(None, format!("starts with {cookie}")).into());
    }
    let ranks = u64::from(word(&head, 8));
    if ranks == 0 || length.saturating_sub(HEADER) < ranks * ROW {
        return Err(damaged(None, format!("{ranks} ranks in {length} bytes")).into());
    }
    let mut table = Vec::new();
    file.take(ranks * ROW).read_to_end(&mut table)?;
    Ok(table)
}

fn skip(file: &mut impl Read, bytes: u64) -> std::io::Result<u64> {
    if bytes == 0 { Ok(0) } else { std::io::copy(&mut file.take(bytes), &mut std::io::sink()) }
}

struct Ranks {
    ranks: u32,
    builder: GraphBuilder,
    other_nics: u64,
    /// The dependencies of each operation of a rank.
    counts: Vec<u32>,
}

impl Ranks {
    fn read(&mut self, rank: RankId, data: &[u8]) -> Result<(), TraceError> {
        let [nodes, roots] =
            if data.len() < 8 { [0, u32::MAX] } else { [word(data, 0), word(data, 4)] };
        let start = 8 + 4 * u64::from(roots);
        let appendix = start + NODE as u64 * u64::from(nodes);
        let length = data.len() as u64;
        if data.len() < 8 || appendix > length || !(length - appendix).is_multiple_of(4) {
            let problem = format!("{nodes} operations in {length} bytes");
            return Err(damaged(Some(rank), problem));
        }
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let (nodes, after) = (&data[index(start)..index(appendix)], &data[index(appendix)..]);
        for node in nodes.chunks_exact(NODE) {
            if !self.push(node) {
                return Err(damaged(Some(rank), explained(nodes, self.ranks)));
            }
        }
        self.require(nodes, after).map_err(|problem| damaged(Some(rank), problem))?;
        self.builder.end_rank();
        Ok(())
    }

    /// Appends an operation; returns whether its values are valid.
    fn push(&mut self, node: &[u8]) -> bool {
        let Some(kind) = kind_of(node) else { return false };
        if problem(node, kind, self.ranks).is_some() {
            return false;
        }
        let (peer, size, tag) = (word(node, 5), long(node, 9), word(node, 17));
        self.other_nics += u64::from(node[22] != 0);
        let computes = kind == kind::COMPUTE;
        let amount = if computes { size * UNIT } else { size };
        let peer = i32::try_from(peer).unwrap_or(ANY);
        let tag = match tag {
            _ if computes => 0,
            ANY_VALUE => ANY.into(),
            tag => tag.into(),
        };
        self.builder.push(kind, amount, (peer, tag), node[21].into());
        true
    }

    /// Adds the dependencies of a rank.
    fn require(&mut self, nodes: &[u8], after: &[u8]) -> Result<(), String> {
        let listed = (after.len() / 4) as u64;
        let operations = || (0_u32..).zip(nodes.chunks_exact(NODE));
        let lists =
            |node: &[u8]| [(word(node, 23), word(node, 27)), (word(node, 31), word(node, 35))];
        let total: u64 =
            operations().flat_map(|(_, node)| lists(node)).map(|(count, _)| u64::from(count)).sum();
        if total != listed {
            return Err(format!("{listed} dependencies in the appendix"));
        }
        let within = |(count, first): (u32, u32)| {
            count == 0 || u64::from(first) + u64::from(count) <= listed
        };
        if !operations().flat_map(|(_, node)| lists(node)).all(within) {
            return Err("an operation's dependencies lie beyond the appendix".to_owned());
        }
        self.counts.clear();
        self.counts.resize(nodes.len() / NODE, 0);
        let contradiction = || "the numbers of dependencies contradict the appendix".to_owned();
        for (on, node) in operations() {
            for (list, on_start) in lists(node).into_iter().zip([false, true]) {
                let (count, first) = (list.0 as usize, list.1 as usize);
                for at in first..first + count {
                    let owner = word(after, 4 * at);
                    let counted = self.counts.get_mut(owner as usize).ok_or_else(contradiction)?;
                    *counted += 1;
                    self.builder.require(owner, on, on_start);
                }
            }
        }
        if operations().any(|(at, node)| self.counts[at as usize] != word(node, 0)) {
            return Err(contradiction());
        }
        Ok(())
    }
}

/// The first invalid value of a rank: of a type, else of a peer, else of a size, else of a tag.
fn explained(nodes: &[u8], ranks: u32) -> String {
    let operations = || nodes.chunks_exact(NODE).enumerate();
    if let Some((at, node)) = operations().find(|(_, node)| kind_of(node).is_none()) {
        return format!("operation {at} has type {}", node[4]);
    }
    let problems = operations().filter_map(|(at, node)| {
        let (rank, name, value) = problem(node, kind_of(node)?, ranks)?;
        Some((rank, at, name, value))
    });
    match problems.min() {
        Some((_, at, name, value)) => format!("operation {at} has {name} {value}"),
        None => String::new(),
    }
}

fn kind_of(node: &[u8]) -> Option<u8> {
    match node[4] {
        SEND => Some(kind::SEND),
        RECEIVE => Some(kind::RECEIVE),
        COMPUTE => Some(kind::COMPUTE),
        _ => None,
    }
}

/// The first invalid value of an operation: the position of its column, its name, and the value.
fn problem(node: &[u8], kind: u8, ranks: u32) -> Option<(u8, &'static str, u64)> {
    let (peer, size, tag) = (word(node, 5), long(node, 9), word(node, 17));
    let computes = kind == kind::COMPUTE;
    let any = kind == kind::RECEIVE && peer == ANY_VALUE;
    let largest = i64::MAX.unsigned_abs();
    if !computes && !any && peer >= ranks {
        return Some((0, "peer", peer.into()));
    }
    if size > if computes { largest / UNIT } else { largest } {
        return Some((1, "size", size));
    }
    if kind == kind::SEND && tag == ANY_VALUE {
        return Some((2, "tag", tag.into()));
    }
    None
}

fn damaged(rank: Option<RankId>, problem: String) -> TraceError {
    TraceError::Damaged { rank, problem }
}

fn word(data: &[u8], at: usize) -> u32 {
    let bytes = data.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    u32::from_le_bytes(bytes.unwrap_or_default())
}

fn long(data: &[u8], at: usize) -> u64 {
    let bytes = data.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    u64::from_le_bytes(bytes.unwrap_or_default())
}
