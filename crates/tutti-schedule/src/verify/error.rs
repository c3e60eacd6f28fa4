//! What can be wrong with a schedule: each error says where, what, and what was expected.

use crate::collective::{Collective, Contribution};
use crate::{At, ChunkRange, ExplicitError, Slot, Wait};
use tutti_units::ids::RankId;

/// Why a schedule is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "VerificationError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum VerifyError {
    /// The shape contradicts itself.
    #[error("the schedule's shape makes no sense: {problem}")]
    Shape { problem: String },
    /// One phase of a schedule by itself.
    #[error(
        "{name} is only a part of its collective and cannot be proved alone: verify the whole schedule"
    )]
    Part { name: String },
    /// More than this verifier can hold.
    #[error("the schedule is too large to verify: {what}, at most {most}")]
    TooLarge { what: String, most: u64 },
    /// A peer that is no rank.
    #[error("{at}: {op} names rank {peer} as its peer, but the ranks are 0 to {last}")]
    PeerOutside { at: At, op: &'static str, peer: u32, last: u32 },
    /// A message to itself.
    #[error("{at}: {op} names the rank itself as its peer: use a copy")]
    OwnPeer { at: At, op: &'static str },
    /// Chunks outside the payload.
    #[error("{at}: {op} touches chunks {start}..{end}, but the payload's are 0..{chunks}")]
    ChunksOutside { at: At, op: &'static str, start: u64, end: u64, chunks: u32 },
    /// A slot outside the shape.
    #[error("{at}: {op} touches {slot}, but the schedule has {slots} slot(s), counted from data")]
    SlotOutside { at: At, op: &'static str, slot: Slot, slots: u32 },
    /// A fold of nothing.
    #[error("{at}: reduce into {into} has no operands")]
    NoOperands { at: At, into: Slot },
    /// A receive that may overwrite what is being sent.
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
    /// Two receives into one place.
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
    /// A read of what nothing has written.
    #[error("{at}: {op} reads {slot}[{chunk}], which nothing has written")]
    NothingThere { at: At, op: &'static str, slot: Slot, chunk: u32 },
    /// A message that is longer or shorter than its receive.
    #[error(
        "{from} sends chunks {sent} ({} of them) to {to}, whose matching recv takes chunks {expected} \
         ({} of them)", sent.len(), expected.len()
    )]
    LengthMismatch { from: At, to: At, sent: ChunkRange, expected: ChunkRange },
    /// A multicast to a rank, or a combine from one, twice.
    #[error("{at}: {op} names {peer} twice, whose part in it is one message")]
    NamedTwice { at: At, op: &'static str, peer: RankId },
    /// A contribution that its receiver takes by itself.
    #[error(
        "{from} contributes to a combine at {to}, which takes the message with a recv: make it a send, or the \
         recv a part of a combine"
    )]
    NotCombined { from: At, to: RankId },
    /// A combine of what was sent by itself.
    #[error(
        "{at}: combine takes a message of {from}, which sends it by itself: make the send contribute"
    )]
    NotContributed { at: At, from: RankId },
    /// A contribution of other chunks than the others'.
    #[error(
        "{from} contributes chunks {sent} to the combine at {to}, which is of chunks {expected}: all members \
         of a combine send the same"
    )]
    UnlikeCombine { from: At, to: At, sent: ChunkRange, expected: ChunkRange },
    /// A receive without a message.
    #[error("{} waits for a message from {} that is never sent{}", wait.at, wait.from, others(waits))]
    NeverSent { wait: Wait, waits: Vec<Wait> },
    /// A message without a receive.
    #[error("{from} sends chunks {chunks} of {slot} to {to}, which never receives them{}", more(*count))]
    NeverReceived { from: At, to: RankId, slot: Slot, chunks: ChunkRange, count: usize },
    /// Ranks that wait for each other, whatever is buffered.
    #[error("deadlock: {}{}", around(cycle), beside(cycle, waits))]
    Deadlock { cycle: Vec<Wait>, waits: Vec<Wait> },
    /// A result position that nothing has written.
    #[error("{rank} ends with nothing at chunk {chunk} of its result")]
    NotWritten { rank: RankId, chunk: u32 },
    /// Another chunk than the one that belongs there.
    #[error(
        "{rank} ends with {} at chunk {chunk} of its result, where {} belongs",
        name(found),
        name(wanted)
    )]
    WrongChunk { rank: RankId, chunk: u32, wanted: Contribution, found: Contribution },
    /// A contribution that did not arrive.
    #[error("{rank} ends without {} in chunk {chunk} of its result{}", name(contribution), more(*count))]
    Missing { rank: RankId, chunk: u32, contribution: Contribution, count: usize },
    /// A contribution that was folded in more than once.
    #[error("{rank} ends with {} more than once in chunk {chunk} of its result{}", name(contribution), at_fold(fold.as_ref()))]
    Doubled { rank: RankId, chunk: u32, contribution: Contribution, fold: Option<Fold> },
    /// A contribution that does not belong there.
    #[error(
        "{rank} ends with {} in chunk {chunk} of its result, where it does not belong",
        name(contribution)
    )]
    Foreign { rank: RankId, chunk: u32, contribution: Contribution },
    /// Wrong contributions that could not be told one by one.
    #[error(
        "{rank} ends with the wrong contributions in chunk {chunk} of its result: {found} of them, and \
         each of {wanted} was expected once"
    )]
    Miscounted { rank: RankId, chunk: u32, found: u32, wanted: u32 },
}

/// The fold that took in a contribution a second time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fold {
    /// Where it stands.
    pub at: At,
    /// The chunk it folds.
    pub chunk: u32,
    /// The first operand that holds the contribution, and whom that was received from.
    pub first: (Slot, Option<RankId>),
    /// The second.
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
            ": the reduce of chunk {} at {} finds it in {first} and in {second}",
            fold.chunk, fold.at
        )
    })
}

fn more(count: usize) -> String {
    if count > 1 { format!(" (and {} more like it)", count - 1) } else { String::new() }
}

/// Waits, told from one rank to the next; the first ten of them.
fn around(waits: &[Wait]) -> String {
    let told = |wait: &Wait| format!("{} waits for {}", wait.at, wait.from);
    let shown = waits.iter().take(10).map(told).collect::<Vec<_>>().join(", ");
    let left = waits.len().saturating_sub(10);
    if left > 0 { format!("{shown}, and {left} more") } else { shown }
}

/// All waits, unless the cycle, which is made of some of them, has told them already.
fn beside(cycle: &[Wait], waits: &[Wait]) -> String {
    if cycle.len() == waits.len() { String::new() } else { others(waits) }
}

/// The waits of a schedule that is stuck.
fn others(waits: &[Wait]) -> String {
    if waits.len() < 2 {
        return String::new();
    }
    format!("; all that wait: {}", around(waits))
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
