//! Verifies schedules in which all ranks act alike, by executing rank 0 only.
//!
//! A rotation by `r` adds `r` to every rank and `r` shards to every chunk. A schedule is rotated if
//! every step of rank `r` is that of rank 0, rotated by `r`, as in a ring. This is checked for each
//! step of each rank. If every step sends as many messages to the rank at a distance as it receives
//! from the rank at that distance in the other direction, then by induction
//! - all ranks execute step i before one executes step i + 1, without buffers, and the messages of
//!   step i meet in step i. The first rank to post a step finds no receive of its messages, and the
//!   last finds all of its messages sent, which are the maxima of unexpected messages;
//! - what rank `r` holds is what rank 0 holds, rotated by `r`. A received value is hence a value of
//!   rank 0, rotated by the distance of the sender.
//!
//! Pre- and postconditions of the collectives here are the same for all ranks after a rotation, so
//! the results of rank 0 stand for all. Whatever does not fit is left to the verifier of all ranks,
//! which also explains errors. Tests compare the two.

use std::collections::{BTreeMap, BTreeSet};

use super::check::{self, Checker};
use super::fast::COMPUTED;
use super::fingerprint::{Adder, Value, leaf};
use super::{Reproducibility, Verification};
use crate::collective::{Collective, Contribution, Postcondition};
use crate::{At, ChunkRange, Digit, Local, Message, Schedule, Slot, Step};
use tutti_units::ids::RankId;

/// The maximum number of positions of a rank.
const MAX_POSITIONS: u64 = 1 << 22;

/// Verifies a rotated schedule; `None` if it is not one, or has an error.
pub(super) fn verify(schedule: &dyn Schedule) -> Option<Verification> {
    let rotation = Rotation::of(schedule)?;
    check::shape(schedule).ok()?;
    let steps = schedule.steps(RankId(0));
    if (1..rotation.ranks).any(|rank| schedule.steps(RankId(rank)) != steps) {
        return None;
    }
    let mut run = First::new(schedule, rotation);
    let mut checker = Checker::new(schedule.shape());
    let (mut first, mut other) = (Step::new(), Step::new());
    for index in 0..steps {
        first.clear();
        schedule.step(RankId(0), index, &mut first);
        checker.check(At { rank: RankId(0), step: index }, &first).ok()?;
        for rank in 1..rotation.ranks {
            other.clear();
            schedule.step(RankId(rank), index, &mut other);
            if !rotation.maps(&first, &other, rank) {
                return None;
            }
        }
        run.step(&first)?;
    }
    let reproducibility = Results::of(&run, schedule)?.judge()?;
    let (ranks, traffic) = (u64::from(rotation.ranks), run.traffic);
    Some(Verification {
        steps: ranks * u64::from(steps),
        messages: ranks * traffic.messages,
        reductions: ranks * traffic.reductions,
        buffering: 0,
        in_flight: traffic.in_flight,
        waiting: traffic.waiting,
        multicasts: 0,
        combines: 0,
        reproducibility,
    })
}

/// The sizes of a rotation.
#[derive(Clone, Copy)]
struct Rotation {
    ranks: u32,
    chunks: u32,
    /// The chunks of a shard.
    shard: u32,
}

impl Rotation {
    fn of(schedule: &dyn Schedule) -> Option<Rotation> {
        let shape = schedule.shape();
        let (ranks, chunks) = (shape.ranks, shape.chunks);
        let is_alike = matches!(
            shape.collective,
            Collective::AllReduce
                | Collective::ReduceScatter
                | Collective::AllGather
                | Collective::AllToAll
        );
        let positions = u64::from(chunks) * u64::from(shape.slots);
        // Contributions are numbered below `COMPUTED`.
        let ids = u64::from(ranks) * u64::from(chunks);
        let fits = ranks > 1
            && chunks.is_multiple_of(ranks)
            && positions <= MAX_POSITIONS
            && ids < u64::from(COMPUTED);
        let ring = Digit { stride: 1, size: ranks };
        let is_rotated = is_alike && fits && schedule.symmetry()? == [ring];
        is_rotated.then(|| Rotation { ranks, chunks, shard: chunks / ranks })
    }

    #[inline]
    fn rank(self, rank: u32, by: u32) -> u32 {
        wrap(rank + by, self.ranks)
    }

    #[inline]
    fn chunk(self, chunk: u32, by: u32) -> u32 {
        wrap(chunk + by * self.shard, self.chunks)
    }

    /// Returns whether a range is another, rotated; a range that would be divided is not.
    #[inline]
    fn maps_range(self, from: ChunkRange, to: ChunkRange, by: u32) -> bool {
        from.len() == to.len()
            && (from.is_empty() || to.start == self.chunk(from.start, by))
            && to.start <= to.end
            && to.end <= self.chunks
    }

    #[inline]
    fn maps_message(self, from: &Message, to: &Message, by: u32) -> bool {
        from.slot == to.slot
            && to.peer.0 == self.rank(from.peer.0, by)
            && self.maps_range(from.chunks, to.chunks, by)
    }

    fn maps_local(
        self,
        (from, of): (&Step, &Local),
        (to, other): (&Step, &Local),
        by: u32,
    ) -> bool {
        match (*of, *other) {
            (
                Local::Reduce { into, operands, chunks },
                Local::Reduce { into: also, operands: others, chunks: range },
            ) => {
                into == also
                    && from.operands(operands) == to.operands(others)
                    && self.maps_range(chunks, range, by)
            }
            (
                Local::Copy { from: source, into, chunks, to: place },
                Local::Copy { from: other, into: also, chunks: range, to: also_place },
            ) => {
                let places = |start, count| ChunkRange::new(start, start + count);
                (source, into) == (other, also)
                    && self.maps_range(chunks, range, by)
                    && also_place <= self.chunks - range.len()
                    && self.maps_range(
                        places(place, chunks.len()),
                        places(also_place, range.len()),
                        by,
                    )
            }
            (of, other) => of == other,
        }
    }

    /// Returns whether a step is another, rotated.
    #[inline]
    fn maps(self, from: &Step, to: &Step, by: u32) -> bool {
        let messages = |from: &[Message], to: &[Message]| {
            from.len() == to.len()
                && from.iter().zip(to).all(|(from, to)| self.maps_message(from, to, by))
        };
        let mut locals = from.locals.iter().zip(&to.locals);
        messages(&from.sends, &to.sends)
            && messages(&from.recvs, &to.recvs)
            && from.locals.len() == to.locals.len()
            && locals.all(|(of, other)| self.maps_local((from, of), (to, other), by))
            && from.marks().is_empty()
            && to.marks().is_empty()
    }

    fn contribution(self, id: u32, by: u32) -> u32 {
        let (origin, chunk) = (id / self.chunks, id % self.chunks);
        self.rank(origin, by) * self.chunks + self.chunk(chunk, by)
    }

    fn held(self, held: Held, by: u32) -> Held {
        match held {
            Held { id, .. } if id < COMPUTED => Held { id: self.contribution(id, by), turn: 0 },
            Held { id, turn } => Held { id, turn: self.rank(turn, by) },
        }
    }
}

#[inline]
fn wrap(value: u32, size: u32) -> u32 {
    if value >= size { value - size } else { value }
}

/// The value at a position: a contribution, or a fold of rank 0, rotated by `turn`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    id: u32,
    turn: u32,
}

/// The counts of a rank.
#[derive(Clone, Copy, Default)]
struct Traffic {
    messages: u64,
    reductions: u64,
    in_flight: u32,
    waiting: u32,
}

/// The execution of rank 0.
struct First {
    rotation: Rotation,
    /// By slot and chunk.
    held: Vec<Option<Held>>,
    /// The end of the operands of each fold in `operands`.
    ends: Vec<usize>,
    operands: Vec<Held>,
    traffic: Traffic,
    /// Messages of the step by the distance of their peer; working memory.
    sent: Vec<(u32, u32)>,
    received: Vec<(u32, u32)>,
}

impl First {
    fn new(schedule: &dyn Schedule, rotation: Rotation) -> First {
        let shape = schedule.shape();
        let Rotation { ranks, chunks, .. } = rotation;
        let mut held = vec![None; chunks as usize * shape.slots as usize];
        for (chunk, held) in (0..chunks).zip(&mut held) {
            let before = shape.collective.before(RankId(0), chunk, ranks, chunks);
            *held = before.map(|of| Held { id: number(of, chunks), turn: 0 });
        }
        First {
            rotation,
            held,
            ends: Vec::new(),
            operands: Vec::new(),
            traffic: Traffic::default(),
            sent: Vec::new(),
            received: Vec::new(),
        }
    }

    fn at(&self, slot: Slot, chunk: u32) -> usize {
        slot.0 as usize * self.rotation.chunks as usize + chunk as usize
    }

    /// Executes a checked step.
    fn step(&mut self, step: &Step) -> Option<()> {
        self.messages(step)?;
        for local in &step.locals {
            match *local {
                Local::Reduce { into, operands, chunks } => {
                    self.reduce(into, step.operands(operands), chunks)?;
                }
                Local::Copy { from, into, chunks, to } => self.copy((from, chunks), (into, to))?,
                Local::Compute { .. } | Local::Sleep { .. } => {}
            }
        }
        Some(())
    }

    /// The k-th receive from a distance takes the k-th send over that distance.
    fn messages(&mut self, step: &Step) -> Option<()> {
        let ranks = self.rotation.ranks;
        let (mut sent, mut received) =
            (std::mem::take(&mut self.sent), std::mem::take(&mut self.received));
        sent.clear();
        received.clear();
        sent.extend((0..).zip(&step.sends).map(|(at, send)| (ranks - send.peer.0, at)));
        received.extend((0..).zip(&step.recvs).map(|(at, recv)| (recv.peer.0, at)));
        sent.sort_unstable();
        received.sort_unstable();
        if sent.len() != received.len() {
            return None;
        }
        for (&(distance, send), &(from, recv)) in sent.iter().zip(&received) {
            let (send, recv) = (&step.sends[send as usize], &step.recvs[recv as usize]);
            if distance != from || send.chunks.len() != recv.chunks.len() {
                return None;
            }
            for (chunk, to) in send.chunks.iter().zip(recv.chunks.iter()) {
                let held = self.held[self.at(send.slot, chunk)]?;
                let at = self.at(recv.slot, to);
                self.held[at] = Some(self.rotation.held(held, from));
            }
        }
        let depth = sent.chunk_by(|one, next| one.0 == next.0).map(<[_]>::len).max();
        let count = |length| u32::try_from(length).ok();
        let traffic = &mut self.traffic;
        traffic.messages += sent.len() as u64;
        traffic.in_flight = traffic.in_flight.max(count(depth.unwrap_or(0))?);
        traffic.waiting = traffic.waiting.max(count(received.len())?);
        (self.sent, self.received) = (sent, received);
        Some(())
    }

    fn reduce(&mut self, into: Slot, slots: &[Slot], chunks: ChunkRange) -> Option<()> {
        self.traffic.reductions += u64::from(chunks.len()) * (slots.len() as u64 - 1);
        for chunk in chunks.iter() {
            let first = self.operands.len();
            for &slot in slots {
                let held = self.held[self.at(slot, chunk)]?;
                self.operands.push(held);
            }
            let result = if let [only] = self.operands[first..] {
                self.operands.truncate(first);
                only
            } else {
                let fold = u32::try_from(self.ends.len()).ok()?;
                self.ends.push(self.operands.len());
                Held { id: COMPUTED.checked_add(fold)?, turn: 0 }
            };
            let at = self.at(into, chunk);
            self.held[at] = Some(result);
        }
        Some(())
    }

    fn copy(&mut self, (from, chunks): (Slot, ChunkRange), (into, to): (Slot, u32)) -> Option<()> {
        let values: Option<Vec<Held>> =
            chunks.iter().map(|chunk| self.held[self.at(from, chunk)]).collect();
        for (chunk, held) in (to..).zip(values?) {
            let at = self.at(into, chunk);
            self.held[at] = Some(held);
        }
        Some(())
    }

    /// The operands of a fold.
    fn operands(&self, id: u32) -> &[Held] {
        let fold = (id - COMPUTED) as usize;
        let start = fold.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.operands[start..self.ends[fold]]
    }
}

fn number(of: Contribution, chunks: u32) -> u32 {
    of.origin.0 * chunks + of.chunk
}

/// The results of rank 0 that are reduced from all ranks.
struct Results<'a> {
    run: &'a First,
    adder: Adder,
    /// Each fold that is a result, with the chunk that it reduces without a rotation.
    folds: BTreeMap<u32, u32>,
    /// The values that may be evaluated; beyond, the other verifier is as fast.
    budget: u64,
}

impl Results<'_> {
    /// Checks the results that are not reduced, and that all ranks have the same sums.
    fn of<'a>(run: &'a First, schedule: &dyn Schedule) -> Option<Results<'a>> {
        let shape = schedule.shape();
        let rotation = run.rotation;
        let Rotation { ranks, chunks, .. } = rotation;
        let mut folds = BTreeMap::new();
        for chunk in 0..chunks {
            let held = || run.held[run.at(shape.result, chunk)];
            match shape.collective.after(RankId(0), chunk, ranks, chunks) {
                Postcondition::Anything => {}
                Postcondition::One(one) => {
                    (held()? == Held { id: number(one, chunks), turn: 0 }).then_some(())?;
                }
                _ => {
                    let held = held().filter(|held| held.id >= COMPUTED)?;
                    let home = rotation.chunk(chunk, wrap(ranks - held.turn, ranks));
                    (*folds.entry(held.id).or_insert(home) == home).then_some(())?;
                    // Rank 1 has here what rank 0 has a shard before, rotated.
                    let before = run.at(shape.result, rotation.chunk(chunk, ranks - 1));
                    let of_next = || Some(rotation.held(run.held[before]?, 1));
                    let is_shared = shape.collective == Collective::AllReduce;
                    (!is_shared || of_next()? == held).then_some(())?;
                }
            }
        }
        let budget = u64::from(ranks) * u64::from(chunks);
        Some(Results { run, adder: Adder::new(ranks), folds, budget })
    }

    /// Compares the sums with those expected; returns their class.
    fn judge(mut self) -> Option<Reproducibility> {
        let mut class = Reproducibility::ALL;
        let rotation = self.run.rotation;
        for turn in 0..rotation.ranks {
            if self.folds.is_empty() || !(class.sequential || class.rank_order) {
                break;
            }
            let values = self.evaluate(turn)?;
            for (&fold, &home) in &self.folds {
                let value = values[&(fold, turn)];
                let expected = self.in_rank_order(rotation.chunk(home, turn));
                (value.summed() == expected.summed()).then_some(())?;
                class.sequential &= value.tree == expected.tree;
                class.rank_order &= value.sequence == expected.sequence;
            }
        }
        Some(class)
    }

    /// The sequential sum of a chunk in rank order.
    fn in_rank_order(&self, chunk: u32) -> Value {
        let Rotation { ranks, chunks, .. } = self.run.rotation;
        let leaves = (1..ranks).map(|origin| leaf(origin * chunks + chunk));
        leaves.fold(leaf(chunk), |sum, leaf| self.adder.add(&sum, &leaf))
    }

    /// Evaluates the results rotated by `turn`, by fold and rotation.
    fn evaluate(&mut self, turn: u32) -> Option<BTreeMap<(u32, u32), Value>> {
        let rotation = self.run.rotation;
        let mut needed: BTreeSet<_> = self.folds.keys().map(|&fold| (fold, turn)).collect();
        let mut order = Vec::new();
        // A fold reads earlier ones.
        while let Some((fold, turn)) = needed.pop_last() {
            self.budget = self.budget.checked_sub(self.run.operands(fold).len() as u64)?;
            let operands = self.run.operands(fold).iter().map(|&held| rotation.held(held, turn));
            needed.extend(
                operands.filter(|held| held.id >= COMPUTED).map(|held| (held.id, held.turn)),
            );
            order.push((fold, turn));
        }
        let mut values = BTreeMap::new();
        for (fold, turn) in order.into_iter().rev() {
            let operands = self.run.operands(fold).iter().map(|&held| rotation.held(held, turn));
            let value = |held: Held| match held {
                Held { id, .. } if id < COMPUTED => leaf(id),
                Held { id, turn } => values[&(id, turn)],
            };
            let sum = operands.map(value).reduce(|sum, value| self.adder.add(&sum, &value))?;
            values.insert((fold, turn), sum);
        }
        Some(values)
    }
}

#[cfg(test)]
mod tests;
