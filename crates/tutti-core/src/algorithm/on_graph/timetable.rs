//! A timetable: which chunk goes from whom to whom in which slot of time, as a schedule.
//!
//! A rank's step is a slot in which it has something to do: it sends, receives, then folds. What is received
//! in a slot can be sent on in the next, so both ends of a message meet in the same slot, and nothing
//! needs to be buffered.

use crate::collective::Collective;
use crate::ids::RankId;
use crate::schedule::{ChunkRange, Explicit, ExplicitError, Slot, Step};

/// One message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::algorithm) struct Move {
    pub(in crate::algorithm) slot: u32,
    pub(in crate::algorithm) chunk: u32,
    pub(in crate::algorithm) from: u32,
    pub(in crate::algorithm) to: u32,
    /// Whether it is folded into what the receiver has, or takes its place.
    pub(in crate::algorithm) folds: bool,
}

/// Messages on so many ranks and chunks.
#[derive(Clone, Debug, Default)]
pub(in crate::algorithm) struct Timetable {
    pub(in crate::algorithm) ranks: u32,
    pub(in crate::algorithm) chunks: u32,
    pub(in crate::algorithm) slots: u32,
    pub(in crate::algorithm) moves: Vec<Move>,
}

impl Timetable {
    /// The same backwards in time: trees that spread chunks become trees that fold them.
    pub(in crate::algorithm) fn reversed(mut self) -> Timetable {
        for one in &mut self.moves {
            *one = Move {
                slot: self.slots - 1 - one.slot,
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
        let later = next.moves.into_iter().map(|one| Move { slot: one.slot + self.slots, ..one });
        self.moves.extend(later);
        self.slots += next.slots;
        self
    }

    /// As a schedule.
    pub(in crate::algorithm) fn lay_out(
        mut self,
        name: &str,
        collective: Collective,
    ) -> Result<Explicit, ExplicitError> {
        let ranks = self.ranks;
        // In a slot, a rank's sends go round: to the next rank first, so that no receiver is last in
        // all senders' turn.
        self.moves.sort_unstable_by_key(|one| {
            (one.from, one.slot, (ranks + one.to - one.from) % ranks, one.chunk)
        });
        let sends = self.moves.clone();
        self.moves.sort_unstable_by_key(|one| {
            (one.to, one.slot, (ranks + one.to - one.from) % ranks, one.chunk)
        });
        let mut builder = Explicit::builder(collective, ranks, self.chunks);
        builder.name(name);
        let (mut sends, mut recvs) = (&sends[..], &self.moves[..]);
        for rank in 0..ranks {
            loop {
                let next = |moves: &[Move], at: fn(&Move) -> u32| {
                    moves.first().filter(|one| at(one) == rank).map(|one| one.slot)
                };
                let slots = [next(sends, |one| one.from), next(recvs, |one| one.to)];
                let Some(slot) = slots.into_iter().flatten().min() else { break };
                let sent = leading(&mut sends, |one| one.from == rank && one.slot == slot);
                let received = leading(&mut recvs, |one| one.to == rank && one.slot == slot);
                builder.step(RankId(rank), &format!("slot {slot}"), step(rank, sent, received));
            }
        }
        builder.build()
    }
}

/// Takes the moves at the beginning for which it holds.
fn leading<'a>(moves: &mut &'a [Move], holds: impl Fn(&Move) -> bool) -> &'a [Move] {
    let end = moves.iter().position(|one| !holds(one)).unwrap_or(moves.len());
    let (taken, rest) = moves.split_at(end);
    *moves = rest;
    taken
}

fn step(rank: u32, sent: &[Move], received: &[Move]) -> Step {
    let mut step = Step::new();
    for one in sent {
        step.send(RankId(one.to), Slot::DATA, ChunkRange::one(one.chunk));
    }
    // What is folded waits in scratch: for each chunk a slot of its own for each sender.
    let mut folded: Vec<(u32, u32, Slot)> = Vec::new();
    for one in received {
        let mut slot = Slot::DATA;
        if one.folds {
            let before = folded.iter().filter(|(chunk, ..)| *chunk == one.chunk).count();
            slot = Slot(1 + u32::try_from(before).unwrap_or(u32::MAX - 1));
            folded.push((one.chunk, one.from, slot));
        }
        step.recv(RankId(one.from), slot, ChunkRange::one(one.chunk));
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
