//! A timetable: chunk, source, destination and time of each message, converted to a schedule.
//!
//! A rank's step is a time at which it is active: it sends, receives, then folds. With time slots
//! ([`Receiving::InSlot`]) both ends of a message meet in the same step, received data can be
//! forwarded in the next, and no message is buffered. With times ([`Receiving::Late`]) a rank
//! continues sending while messages to it are in flight. It waits for them only before it sends a
//! message that starts after their arrival. Links need not idle between two steps, and the messages
//! sent meanwhile wait at the receiver.

use crate::collective::Collective;
use crate::{ChunkRange, Explicit, ExplicitError, Slot, Step};
use tutti_units::ids::RankId;

/// One message. Times are even, so that a step fits between two of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::algorithm) struct Move {
    /// The start, and the time from which it may be forwarded: the next slot, or a time.
    pub(in crate::algorithm) sent: u64,
    pub(in crate::algorithm) there: u64,
    pub(in crate::algorithm) chunk: u32,
    pub(in crate::algorithm) from: u32,
    pub(in crate::algorithm) to: u32,
    /// Whether it is folded into the receiver's value, or replaces it.
    pub(in crate::algorithm) folds: bool,
}

/// The step in which a message is received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::algorithm) enum Receiving {
    /// The step of the slot in which it is sent.
    #[default]
    InSlot,
    /// The last step that starts before the message may be forwarded.
    Late,
}

/// The messages of a schedule.
#[derive(Clone, Debug, Default)]
pub(in crate::algorithm) struct Timetable {
    pub(in crate::algorithm) ranks: u32,
    pub(in crate::algorithm) chunks: u32,
    /// The time at which the last message may be forwarded.
    pub(in crate::algorithm) end: u64,
    pub(in crate::algorithm) receiving: Receiving,
    pub(in crate::algorithm) moves: Vec<Move>,
}

/// A message, and the time of the step that sends or receives it.
type Placed = (u64, Move);

impl Timetable {
    /// Returns the timetable backwards in time: trees that distribute chunks become trees that fold
    /// them.
    pub(in crate::algorithm) fn reversed(mut self) -> Timetable {
        for one in &mut self.moves {
            *one = Move {
                sent: self.end - one.there,
                there: self.end - one.sent,
                from: one.to,
                to: one.from,
                folds: !one.folds,
                ..*one
            };
        }
        self
    }

    /// Returns this timetable followed by another.
    pub(in crate::algorithm) fn then(mut self, next: Timetable) -> Timetable {
        let later =
            |one: Move| Move { sent: one.sent + self.end, there: one.there + self.end, ..one };
        self.moves.extend(next.moves.into_iter().map(later));
        self.end += next.end;
        self
    }

    /// Converts the timetable to a schedule.
    pub(in crate::algorithm) fn lay_out(
        self,
        name: &str,
        collective: Collective,
    ) -> Result<Explicit, ExplicitError> {
        let ranks = self.ranks;
        // The messages of a step start with the next rank, so that no receiver is last for all
        // senders.
        let turn = |one: &Move| (ranks + one.to - one.from) % ranks;
        let mut sends: Vec<Placed> = self.moves.iter().map(|&one| (one.sent, one)).collect();
        sends.sort_unstable_by_key(|(at, one)| (one.from, *at, turn(one), one.chunk));
        let mut recvs = received(self.moves, &sends, self.receiving);
        recvs.sort_unstable_by_key(|(at, one)| (one.to, *at, turn(one), one.sent, one.chunk));
        let mut builder = Explicit::builder(collective, ranks, self.chunks);
        builder.name(name);
        let (mut sends, mut recvs) = (&sends[..], &recvs[..]);
        for rank in 0..ranks {
            for index in 0_u32.. {
                let next = |placed: &[Placed], of: fn(&Move) -> u32| {
                    placed.first().filter(|(_, one)| of(one) == rank).map(|(at, _)| *at)
                };
                let times = [next(sends, |one| one.from), next(recvs, |one| one.to)];
                let Some(now) = times.into_iter().flatten().min() else { break };
                let sent = leading(&mut sends, |(at, one)| one.from == rank && *at == now);
                let received = leading(&mut recvs, |(at, one)| one.to == rank && *at == now);
                let label = match self.receiving {
                    Receiving::InSlot => format!("slot {}", now / 2),
                    Receiving::Late => format!("step {index}"),
                };
                builder.step(RankId(rank), &label, step(rank, sent, received));
            }
        }
        builder.build()
    }
}

/// Assigns each message to a step of its receiver; `sends` are in order.
fn received(moves: Vec<Move>, sends: &[Placed], receiving: Receiving) -> Vec<Placed> {
    let at = |one: Move| {
        if receiving == Receiving::InSlot {
            return (one.sent, one);
        }
        let before = sends.partition_point(|(at, of)| (of.from, *at) < (one.to, one.there));
        let last = sends[..before].last().filter(|(_, of)| of.from == one.to);
        let Some(&(last, _)) = last else { return (one.there - 1, one) };
        // A receive must not overwrite the data of a send in the same step.
        let same = sends[..before].iter().rev();
        let mut same = same.take_while(|(at, of)| of.from == one.to && *at == last);
        let collides = same.any(|(_, of)| of.chunk == one.chunk);
        (last + u64::from(collides), one)
    };
    moves.into_iter().map(at).collect()
}

/// Removes and returns the leading messages for which `holds` is true.
fn leading<'a>(placed: &mut &'a [Placed], holds: impl Fn(&Placed) -> bool) -> &'a [Placed] {
    let end = placed.iter().position(|one| !holds(one)).unwrap_or(placed.len());
    let (taken, rest) = placed.split_at(end);
    *placed = rest;
    taken
}

/// Merges contiguous chunks between the same ranks at the same time into messages.
fn merged(placed: &[Placed]) -> impl Iterator<Item = (Move, ChunkRange)> {
    let follows = |(_, a): &Placed, (_, b): &Placed| {
        (a.from, a.to, a.sent, a.folds, a.chunk + 1) == (b.from, b.to, b.sent, b.folds, b.chunk)
    };
    placed.chunk_by(follows).map(|run| {
        let first = run[0].1;
        (first, ChunkRange::new(first.chunk, run[run.len() - 1].1.chunk + 1))
    })
}

fn step(rank: u32, sent: &[Placed], received: &[Placed]) -> Step {
    let mut step = Step::new();
    for (one, chunks) in merged(sent) {
        step.send(RankId(one.to), Slot::DATA, chunks);
    }
    // Folded chunks are received into scratch: one slot per chunk and sender.
    let mut folded: Vec<(u32, u32, Slot)> = Vec::new();
    for (one, chunks) in merged(received) {
        let mut slot = Slot::DATA;
        if one.folds {
            let taken =
                folded.iter().filter(|(chunk, ..)| chunks.overlaps(ChunkRange::one(*chunk)));
            slot = Slot(1 + taken.map(|(.., slot)| slot.0).max().unwrap_or(0));
            folded.extend(chunks.iter().map(|chunk| (chunk, one.from, slot)));
        }
        step.recv(RankId(one.from), slot, chunks);
    }
    folded.sort_unstable();
    for of_chunk in folded.chunk_by(|a, b| a.0 == b.0) {
        // In rank order, including the rank's value.
        let own = of_chunk.partition_point(|(_, from, _)| *from < rank);
        let slot = |&(.., slot): &(u32, u32, Slot)| slot;
        let (lower, higher) = of_chunk.split_at(own);
        let operands = lower.iter().map(slot).chain([Slot::DATA]).chain(higher.iter().map(slot));
        step.reduce(Slot::DATA, operands, ChunkRange::one(of_chunk[0].0));
    }
    step
}
