//! Errors of a schedule: each reports the position, the problem and the expectation.

use crate::collective::{Collective, Contribution};
use crate::{At, ChunkRange, ExplicitError, Slot, Wait};
use tutti_units::ids::RankId;

/// An incorrect schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "VerificationError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum VerifyError {
    /// An inconsistent shape.
    #[error("invalid schedule shape: {problem}")]
    Shape { problem: String },
    /// One phase of a schedule alone.
    #[error(
        "{name} is one phase of a collective and cannot be verified alone: verify the complete schedule"
    )]
    Part { name: String },
    /// A schedule above the limits of this verifier.
    #[error("the schedule is too large to verify: {what}: expected at most {most}")]
    TooLarge { what: String, most: u64 },
    /// A peer outside the ranks.
    #[error("{at}: {op} names rank {peer} as its peer, but the ranks are 0 to {last}")]
    PeerOutside { at: At, op: &'static str, peer: u32, last: u32 },
    /// A message to the rank itself.
    #[error("{at}: {op} names the rank itself as its peer: use a copy")]
    OwnPeer { at: At, op: &'static str },
    /// Chunks outside the payload.
    #[error("{at}: {op} accesses chunks {start}..{end}, but the payload has chunks 0..{chunks}")]
    ChunksOutside { at: At, op: &'static str, start: u64, end: u64, chunks: u32 },
    /// A slot outside the shape.
    #[error("{at}: {op} accesses {slot}, but the schedule has {slots} slot(s), counted from data")]
    SlotOutside { at: At, op: &'static str, slot: Slot, slots: u32 },
    /// A fold without operands.
    #[error("{at}: reduce into {into} has no operands")]
    NoOperands { at: At, into: Slot },
    /// A receive that may overwrite data being sent.
    #[error(
        "{at}: recv of {slot}[{chunks}] from {from} writes what the send of {slot}[{sent}] to {to} in \
         the same step reads: receive into another slot and copy it, or receive in the next step"
    )]
    RecvIntoSend {
        at: At,
        slot: Slot,
        chunks: ChunkRange,
        from: RankId,
        sent: ChunkRange,
        to: RankId,
    },
    /// Two receives into the same chunk.
    #[error(
        "{at}: recv of {slot}[{first}] from {first_from} and recv of {slot}[{second}] from \
         {second_from} in the same step write the same place: receive into different slots"
    )]
    RecvsOverlap {
        at: At,
        slot: Slot,
        first: ChunkRange,
        first_from: RankId,
        second: ChunkRange,
        second_from: RankId,
    },
    /// A read of a position that was not written.
    #[error("{at}: {op} reads {slot}[{chunk}], which has not been written")]
    NothingThere { at: At, op: &'static str, slot: Slot, chunk: u32 },
    /// A message whose length differs from that of its receive.
    #[error(
        "{from} sends chunks {sent} (length {}) to {to}, but the matching recv takes chunks {expected} \
         (length {})", sent.len(), expected.len()
    )]
    LengthMismatch { from: At, to: At, sent: ChunkRange, expected: ChunkRange },
    /// A block that moves to the position of another, which may have another size.
    #[error(
        "{from} moves blocks {sent} to the positions {expected} of {to}: expected the same positions, since \
         the blocks of an all_to_all_v have different sizes"
    )]
    BlockMoved { from: At, to: At, sent: ChunkRange, expected: ChunkRange },
    /// A multicast or combine that names a rank twice.
    #[error("{at}: {op} names {peer} twice: expected one message per rank")]
    NamedTwice { at: At, op: &'static str, peer: RankId },
    /// A contribution that is received without a combine.
    #[error(
        "{from} contributes to a combine at {to}, but {to} takes the message with a recv: make it a send, or the \
         recv a part of a combine"
    )]
    NotCombined { from: At, to: RankId },
    /// A combine of a plain send.
    #[error("{at}: combine takes a message from {from} that is a plain send: make it a contribute")]
    NotContributed { at: At, from: RankId },
    /// A contribution of different chunks.
    #[error(
        "{from} contributes chunks {sent} to the combine at {to}, which combines chunks {expected}: all \
         ranks contribute the same chunks"
    )]
    UnlikeCombine { from: At, to: At, sent: ChunkRange, expected: ChunkRange },
    /// A receive without a message.
    #[error("{} waits for a message from {} that is never sent{}", wait.at, wait.from, others(waits))]
    NeverSent { wait: Wait, waits: Vec<Wait> },
    /// A message without a receive.
    #[error("{from} sends chunks {chunks} of {slot} to {to}, which never receives them{}", more(*count))]
    NeverReceived { from: At, to: RankId, slot: Slot, chunks: ChunkRange, count: usize },
    /// Ranks that wait for each other, with any buffering.
    #[error("deadlock: {}{}", chain(cycle), other_waits(cycle, waits))]
    Deadlock { cycle: Vec<Wait>, waits: Vec<Wait> },
    /// A result position that was not written.
    #[error("{rank}: nothing was written to chunk {chunk} of the result")]
    NotWritten { rank: RankId, chunk: u32 },
    /// A chunk other than the expected one.
    #[error(
        "{rank}: chunk {chunk} of the result holds {}: expected {}",
        name(found),
        name(expected)
    )]
    WrongChunk { rank: RankId, chunk: u32, expected: Contribution, found: Contribution },
    /// A missing contribution.
    #[error("{rank}: chunk {chunk} of the result lacks {}{}", name(contribution), more(*count))]
    Missing { rank: RankId, chunk: u32, contribution: Contribution, count: usize },
    /// A contribution that was folded more than once.
    #[error("{rank}: chunk {chunk} of the result contains {} more than once{}", name(contribution), at_fold(fold.as_ref()))]
    Doubled { rank: RankId, chunk: u32, contribution: Contribution, fold: Option<Fold> },
    /// A contribution that does not belong there.
    #[error(
        "{rank}: chunk {chunk} of the result contains {}, which does not belong there",
        name(contribution)
    )]
    Foreign { rank: RankId, chunk: u32, contribution: Contribution },
    /// Wrong contributions that could not be identified.
    #[error(
        "{rank}: chunk {chunk} of the result holds the wrong {found} contributions: expected {expected}, \
         each once"
    )]
    Miscounted { rank: RankId, chunk: u32, found: u32, expected: u32 },
}

/// The fold that includes a contribution for the second time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fold {
    /// The step of the fold.
    pub at: At,
    /// The chunk that it folds.
    pub chunk: u32,
    /// The first operand with the contribution, and the rank from which it was received.
    pub first: (Slot, Option<RankId>),
    /// The second operand.
    pub second: (Slot, Option<RankId>),
}

fn name(contribution: &Contribution) -> String {
    format!("{}'s chunk {}", contribution.origin, contribution.chunk)
}

fn at_fold(fold: Option<&Fold>) -> String {
    let operand = |(slot, from): (Slot, Option<RankId>)| match from {
        Some(from) => format!("{slot} (received from {from})"),
        None => slot.to_string(),
    };
    fold.map_or_else(String::new, |fold| {
        let [first, second] = [operand(fold.first), operand(fold.second)];
        format!(
            ": the reduce of chunk {} at {} reads it from {first} and from {second}",
            fold.chunk, fold.at
        )
    })
}

fn more(count: usize) -> String {
    if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() }
}

/// Formats the first ten waits, from one rank to the next.
fn chain(waits: &[Wait]) -> String {
    let describe = |wait: &Wait| format!("{} waits for {}", wait.at, wait.from);
    let shown = waits.iter().take(10).map(describe).collect::<Vec<_>>().join(", ");
    let left = waits.len().saturating_sub(10);
    if left > 0 { format!("{shown}, and {left} more") } else { shown }
}

/// Formats all waits, unless the cycle contains all of them.
fn other_waits(cycle: &[Wait], waits: &[Wait]) -> String {
    if cycle.len() == waits.len() { String::new() } else { others(waits) }
}

/// Formats the waits of a blocked schedule.
fn others(waits: &[Wait]) -> String {
    if waits.len() < 2 {
        return String::new();
    }
    format!("; all waiting ranks: {}", chain(waits))
}

tutti_units::fields! {
    Collective => |value| value.name(),
    At => |value| (value.rank, value.step),
    Wait => |value| (value.at, value.from),
    Slot => |value| value.0,
    ChunkRange => |value| (value.start, value.end),
    Contribution => |value| (value.origin, value.chunk),
    Fold => |value| (value.at, value.chunk),
    ExplicitError => |value| value.to_string(),
}
