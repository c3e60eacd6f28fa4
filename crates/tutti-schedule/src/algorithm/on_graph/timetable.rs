//! A timetable: which chunk goes from whom to whom at which time, as a schedule.
//!
//! A rank's step is a time at which it has something to do: it sends, receives, then folds. With slots of
//! time ([`Receiving::InSlot`]) both ends of a message meet in the same step, what is received can be sent on in
//! the next, and nothing needs to be buffered. With times ([`Receiving::Late`]) a rank goes on sending while
//! messages are on their way to it, and waits for them no sooner than before it sends anything that was to
//! start after they were there: links need not stand idle between two steps, and as many messages as
//! are sent meanwhile wait at the receiver.

use crate::collective::Collective;
use crate::{ChunkRange, Explicit, ExplicitError, Slot, Step};
use tutti_units::ids::RankId;

/// One message. Times are even, so that a step fits between two of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::algorithm) struct Move {
    /// When it starts, and from when on it may be sent on: the next slot, or a time.
    pub(in crate::algorithm) sent: u64,
    pub(in crate::algorithm) there: u64,
    pub(in crate::algorithm) chunk: u32,
    pub(in crate::algorithm) from: u32,
    pub(in crate::algorithm) to: u32,
    /// Whether it is folded into what the receiver has, or takes its place.
    pub(in crate::algorithm) folds: bool,
}

/// In which step a message is received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::algorithm) enum Receiving {
    /// In that of the slot in which it is sent.
    #[default]
    InSlot,
    /// In the last that begins before the message may be sent on.
    Late,
}

/// Messages on so many ranks and chunks.
#[derive(Clone, Debug, Default)]
pub(in crate::algorithm) struct Timetable {
    pub(in crate::algorithm) ranks: u32,
    pub(in crate::algorithm) chunks: u32,
    /// When the last message may be sent on.
    pub(in crate::algorithm) end: u64,
    pub(in crate::algorithm) receiving: Receiving,
    pub(in crate::algorithm) moves: Vec<Move>,
}

/// A message, and at which time the step is that sends it (at its source), or receives it.
type Placed = (u64, Move);

impl Timetable {
    /// The same backwards in time: trees that spread chunks become trees that fold them.
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

    /// This, and then another.
    pub(in crate::algorithm) fn then(mut self, next: Timetable) -> Timetable {
        let later =
            |one: Move| Move { sent: one.sent + self.end, there: one.there + self.end, ..one };
        self.moves.extend(next.moves.into_iter().map(later));
        self.end += next.end;
        self
    }

    /// As a schedule.
    pub(in crate::algorithm) fn lay_out(
        self,
        name: &str,
        collective: Collective,
    ) -> Result<Explicit, ExplicitError> {
        let ranks = self.ranks;
        // Those of one step go round: to the next rank first, so that no receiver is last in all senders'
        // turn.
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

/// In which step of its receiver each message is received; `sends` are in order.
fn received(moves: Vec<Move>, sends: &[Placed], receiving: Receiving) -> Vec<Placed> {
    let at = |one: Move| {
        if receiving == Receiving::InSlot {
            return (one.sent, one);
        }
        let before = sends.partition_point(|(at, of)| (of.from, *at) < (one.to, one.there));
        let last = sends[..before].last().filter(|(_, of)| of.from == one.to);
        let Some(&(last, _)) = last else { return (one.there - 1, one) };
        // What the same step sends must not be overwritten by what it receives.
        let same = sends[..before].iter().rev();
        let mut same = same.take_while(|(at, of)| of.from == one.to && *at == last);
        let collides = same.any(|(_, of)| of.chunk == one.chunk);
        (last + u64::from(collides), one)
    };
    moves.into_iter().map(at).collect()
}

/// Takes the messages at the beginning for which it holds.
fn leading<'a>(placed: &mut &'a [Placed], holds: impl Fn(&Placed) -> bool) -> &'a [Placed] {
    let end = placed.iter().position(|one| !holds(one)).unwrap_or(placed.len());
    let (taken, rest) = placed.split_at(end);
    *placed = rest;
    taken
}

/// A message for each run of chunks that one rank sends another at one time.
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
    // What is folded waits in scratch: for each chunk a slot of its own for each sender.
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
        // In the order of the ranks, its own where it belongs.
        let own = of_chunk.partition_point(|(_, from, _)| *from < rank);
        let slot = |&(.., slot): &(u32, u32, Slot)| slot;
        let (lower, higher) = of_chunk.split_at(own);
        let operands = lower.iter().map(slot).chain([Slot::DATA]).chain(higher.iter().map(slot));
        step.reduce(Slot::DATA, operands, ChunkRange::one(of_chunk[0].0));
    }
    step
}
