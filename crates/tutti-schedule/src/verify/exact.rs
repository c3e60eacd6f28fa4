//! The exact verifier: tracks every contribution. Slow and simple; the reference for the fast
//! verifier.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::{Fold, Reproducibility, Verification, VerifyError, check, stuck};
use crate::collective::{Contribution, Postcondition};
use crate::{At, Blocks, Explicit, Local, Message, Schedule, Shape, Slot, Step, Wait};
use tutti_units::ids::RankId;

/// Verifies a schedule by tracking every contribution.
pub(super) fn verify(schedule: &dyn Schedule) -> Result<Verification, VerifyError> {
    check::shape(schedule)?;
    let programs = programs(schedule);
    let mut checker = check::Checker::new(schedule.shape());
    for (at, step) in all_steps(&programs) {
        checker.check(at, step)?;
        check::few_hazards(at, step)?;
    }
    let mut run = SymbolicRun::new(schedule.shape(), &programs);
    run.finish(&checker)?;
    let reproducibility = run.judge(schedule.blocks())?;
    let count = |of: fn(&Step) -> usize| all_steps(&programs).map(|(_, s)| of(s) as u64).sum();
    let buffering = (0..).find(|&buffering| finishes(&programs, buffering)).unwrap_or(0);
    Ok(Verification {
        steps: all_steps(&programs).count() as u64,
        messages: count(|step| step.sends.len()),
        reductions: run.reductions,
        buffering,
        in_flight: 0,
        waiting: 0,
        multicasts: checker.marks(),
        combines: 0,
        reproducibility,
    })
}

type Programs = Vec<Vec<Step>>;

fn programs(schedule: &dyn Schedule) -> Programs {
    let explicit = Explicit::of(schedule);
    let step = |rank, index| {
        let mut step = Step::new();
        explicit.step(rank, index, &mut step);
        step
    };
    let program = |rank| (0..explicit.steps(rank)).map(|index| step(rank, index)).collect();
    (0..schedule.shape().ranks).map(|rank| program(RankId(rank))).collect()
}

fn all_steps(programs: &Programs) -> impl Iterator<Item = (At, &Step)> {
    (0..)
        .map(RankId)
        .zip(programs)
        .flat_map(|(rank, steps)| (0..).zip(steps).map(move |(step, ops)| (At { rank, step }, ops)))
}

/// Returns whether the schedule completes with `buffering` buffered messages per pair of ranks.
fn finishes(programs: &Programs, buffering: u32) -> bool {
    let mut sent: BTreeMap<(RankId, RankId), u64> = BTreeMap::new();
    let mut taken: BTreeMap<(RankId, RankId), u64> = BTreeMap::new();
    let mut at = vec![0; programs.len()];
    let mut posted = vec![false; programs.len()];
    loop {
        let mut moved = false;
        for (rank, program) in (0..).map(RankId).zip(programs) {
            let Some(step): Option<&Step> = program.get(at[rank.index()]) else { continue };
            if !posted[rank.index()] {
                step.sends.iter().for_each(|m| *sent.entry((rank, m.peer)).or_default() += 1);
                step.recvs.iter().for_each(|m| *taken.entry((m.peer, rank)).or_default() += 1);
                posted[rank.index()] = true;
                moved = true;
            }
            let [sent, taken] =
                [&sent, &taken].map(|counts| |pair| counts.get(&pair).copied().unwrap_or(0));
            let through =
                |m: &Message| sent((rank, m.peer)) <= taken((rank, m.peer)) + u64::from(buffering);
            let arrived = |m: &Message| taken((m.peer, rank)) <= sent((m.peer, rank));
            if step.sends.iter().all(through) && step.recvs.iter().all(arrived) {
                at[rank.index()] += 1;
                posted[rank.index()] = false;
                moved = true;
            }
        }
        if !moved {
            return at.iter().zip(programs).all(|(&at, program)| at == program.len());
        }
    }
}

/// The content of a position: its contributions and fold tree.
struct Value {
    /// The number of times each contribution is included.
    holds: BTreeMap<Contribution, u64>,
    /// The contributions from left to right, if none is included twice.
    sequence: Option<Vec<Contribution>>,
    /// Equal for values whose fold trees are equal up to the order of the operands of an addition.
    tree: usize,
    /// The fold that produced it, and its operands.
    fold: Option<Folded>,
}

/// A fold: the step, the chunk and the operands.
type Folded = (At, u32, Vec<(Slot, Held)>);

/// A message in flight: the step and the send, and its content.
type Sent = (At, Message, Vec<Rc<Value>>);

/// A value in a slot, and the rank from which it was received.
#[derive(Clone)]
struct Held {
    value: Rc<Value>,
    from: Option<RankId>,
}

/// Numbers fold trees such that equal trees have equal numbers.
#[derive(Default)]
struct Trees {
    leaves: BTreeMap<Contribution, usize>,
    pairs: BTreeMap<(usize, usize), usize>,
}

impl Trees {
    fn leaf(&mut self, contribution: Contribution) -> usize {
        let next = self.leaves.len() + self.pairs.len();
        *self.leaves.entry(contribution).or_insert(next)
    }

    fn pair(&mut self, a: usize, b: usize) -> usize {
        let next = self.leaves.len() + self.pairs.len();
        *self.pairs.entry((a.min(b), a.max(b))).or_insert(next)
    }
}

struct SymbolicRun<'a> {
    shape: &'a Shape,
    programs: &'a Programs,
    slots: BTreeMap<(RankId, Slot, u32), Held>,
    /// Messages in flight, per source and destination.
    queues: BTreeMap<(RankId, RankId), VecDeque<Sent>>,
    trees: Trees,
    reductions: u64,
}

impl<'a> SymbolicRun<'a> {
    fn new(shape: &'a Shape, programs: &'a Programs) -> SymbolicRun<'a> {
        let (slots, queues, trees) = (BTreeMap::new(), BTreeMap::new(), Trees::default());
        let mut run = SymbolicRun { shape, programs, slots, queues, trees, reductions: 0 };
        for rank in (0..shape.ranks).map(RankId) {
            for chunk in 0..shape.chunks {
                let held = shape.collective.before(rank, chunk, shape.ranks, shape.chunks);
                if let Some(contribution) = held {
                    let value = Rc::new(run.leaf(contribution));
                    run.slots.insert((rank, Slot::DATA, chunk), Held { value, from: None });
                }
            }
        }
        run
    }

    fn leaf(&mut self, contribution: Contribution) -> Value {
        Value {
            holds: BTreeMap::from([(contribution, 1)]),
            sequence: Some(vec![contribution]),
            tree: self.trees.leaf(contribution),
            fold: None,
        }
    }

    /// Executes all steps, with unlimited buffering.
    fn finish(&mut self, checker: &check::Checker) -> Result<(), VerifyError> {
        let mut at = vec![0; self.programs.len()];
        let mut sent = vec![false; self.programs.len()];
        loop {
            let mut moved = false;
            for (rank, program) in (0..).map(RankId).zip(self.programs) {
                while let Some(step) = program.get(at[rank.index()]) {
                    let here = At { rank, step: u32::try_from(at[rank.index()]).unwrap_or(0) };
                    if !std::mem::replace(&mut sent[rank.index()], true) {
                        self.send(here, step)?;
                        moved = true;
                    }
                    if !self.receive(here, step, checker)? {
                        break;
                    }
                    self.locals(here, step)?;
                    at[rank.index()] += 1;
                    sent[rank.index()] = false;
                    moved = true;
                }
            }
            if !moved {
                return self.nothing_left(&at);
            }
        }
    }

    fn send(&mut self, at: At, step: &Step) -> Result<(), VerifyError> {
        for message in &step.sends {
            let read = |chunk| self.read(at, "send", message.slot, chunk).map(|held| held.value);
            let values = message.chunks.iter().map(read).collect::<Result<_, _>>()?;
            let queue = self.queues.entry((at.rank, message.peer)).or_default();
            queue.push_back((at, *message, values));
        }
        Ok(())
    }

    /// Receives the step's messages if all of them have arrived.
    fn receive(
        &mut self,
        at: At,
        step: &Step,
        checker: &check::Checker,
    ) -> Result<bool, VerifyError> {
        let mut needed: BTreeMap<RankId, usize> = BTreeMap::new();
        step.recvs.iter().for_each(|recv| *needed.entry(recv.peer).or_default() += 1);
        let there = |peer| self.queues.get(&(peer, at.rank)).map_or(0, VecDeque::len);
        if needed.iter().any(|(&peer, &count)| there(peer) < count) {
            return Ok(false);
        }
        for recv in &step.recvs {
            let queue = self.queues.entry((recv.peer, at.rank)).or_default();
            let Some((from, sent, values)) = queue.pop_front() else { return Ok(false) };
            checker.pair((from, sent.chunks), (at, recv.chunks))?;
            for (chunk, value) in recv.chunks.iter().zip(values) {
                let held = Held { value, from: Some(recv.peer) };
                self.slots.insert((at.rank, recv.slot, chunk), held);
            }
        }
        Ok(true)
    }

    fn locals(&mut self, at: At, step: &Step) -> Result<(), VerifyError> {
        for local in &step.locals {
            match *local {
                Local::Reduce { into, operands, chunks } => {
                    for chunk in chunks.iter() {
                        let slots = step.operands(operands);
                        let read = |&slot| Ok((slot, self.read(at, "reduce", slot, chunk)?));
                        let held = slots.iter().map(read).collect::<Result<Vec<_>, _>>()?;
                        let held = self.fold(at, chunk, held);
                        self.slots.insert((at.rank, into, chunk), held);
                    }
                }
                Local::Copy { from, into, chunks, to } => {
                    let read = |chunk| self.read(at, "copy", from, chunk);
                    let values = chunks.iter().map(read).collect::<Result<Vec<_>, _>>()?;
                    for (chunk, held) in (to..).zip(values) {
                        self.slots.insert((at.rank, into, chunk), held);
                    }
                }
                Local::Compute { .. } | Local::Sleep { .. } => {}
            }
        }
        Ok(())
    }

    fn fold(&mut self, at: At, chunk: u32, operands: Vec<(Slot, Held)>) -> Held {
        let mut values = operands.iter().map(|(_, held)| &held.value);
        let first = values.next().expect("a step with an empty fold is refused");
        if operands.len() == 1 {
            return operands[0].1.clone();
        }
        let (mut holds, mut sequence) = (first.holds.clone(), first.sequence.clone());
        let mut tree = first.tree;
        for value in values {
            self.reductions += 1;
            tree = self.trees.pair(tree, value.tree);
            sequence = sequence.zip(value.sequence.clone()).map(|(a, b)| [a, b].concat());
            for (&contribution, &times) in &value.holds {
                let count = holds.entry(contribution).or_default();
                *count = count.saturating_add(times);
                sequence = sequence.filter(|_| *count == 1);
            }
        }
        let fold = Some((at, chunk, operands));
        Held { value: Rc::new(Value { holds, sequence, tree, fold }), from: None }
    }

    fn read(&self, at: At, op: &'static str, slot: Slot, chunk: u32) -> Result<Held, VerifyError> {
        let held = self.slots.get(&(at.rank, slot, chunk));
        held.cloned().ok_or(VerifyError::NothingThere { at, op, slot, chunk })
    }

    /// Checks after the last move that no rank waits and no messages are left.
    fn nothing_left(&self, at: &[usize]) -> Result<(), VerifyError> {
        let mut waits = Vec::new();
        for (rank, program) in (0..).map(RankId).zip(self.programs) {
            let Some(step) = program.get(at[rank.index()]) else { continue };
            let here = At { rank, step: u32::try_from(at[rank.index()]).unwrap_or(0) };
            let mut there: BTreeMap<RankId, usize> = BTreeMap::new();
            for recv in &step.recvs {
                let taken = there.entry(recv.peer).or_default();
                *taken += 1;
                if self.queues.get(&(recv.peer, rank)).map_or(0, VecDeque::len) < *taken {
                    waits.push(Wait { at: here, from: recv.peer });
                }
            }
        }
        waits.sort_unstable();
        waits.dedup();
        if !waits.is_empty() {
            return Err(stuck::waits(&waits));
        }
        let left = self.queues.values().filter_map(|queue| Some((queue.front()?, queue.len())));
        let Some(((from, message, _), count)) = left.min_by_key(|((from, ..), _)| *from) else {
            return Ok(());
        };
        let Message { peer: to, slot, chunks } = *message;
        Err(VerifyError::NeverReceived { from: *from, to, slot, chunks, count })
    }

    fn judge(&mut self, blocks: Option<&Blocks>) -> Result<Reproducibility, VerifyError> {
        let Shape { collective, ranks, chunks, result, .. } = *self.shape;
        let mut class = Reproducibility::ALL;
        for chunk in 0..chunks {
            let mut trees = Vec::new();
            for rank in (0..ranks).map(RankId) {
                let postcondition = collective.after(rank, chunk, ranks, chunks);
                let is_empty = blocks.is_some_and(|blocks| blocks.is_empty(chunk));
                if postcondition == Postcondition::Anything || is_empty {
                    continue;
                }
                let held = self.slots.get(&(rank, result, chunk));
                let value = held.ok_or(VerifyError::NotWritten { rank, chunk })?.value.clone();
                right(rank, chunk, postcondition, ranks, &value)?;
                if let Postcondition::SumOfAll { chunk } = postcondition {
                    let all =
                        (0..ranks).map(|origin| Contribution { origin: RankId(origin), chunk });
                    let leaves: Vec<_> = all.clone().map(|leaf| self.trees.leaf(leaf)).collect();
                    let sequential = leaves.into_iter().reduce(|a, b| self.trees.pair(a, b));
                    class.sequential &= sequential == Some(value.tree);
                    class.rank_order &= value.sequence == Some(all.collect());
                    trees.push((value.tree, value.sequence.clone()));
                }
            }
            class.same_on_all_ranks &= trees.iter().all(|(tree, _)| *tree == trees[0].0);
            class.same_order_on_all_ranks &= trees.iter().all(|order| *order == trees[0]);
        }
        Ok(class)
    }
}

/// Checks a value against the postcondition.
fn right(
    rank: RankId,
    chunk: u32,
    postcondition: Postcondition,
    ranks: u32,
    value: &Value,
) -> Result<(), VerifyError> {
    let of_all =
        |chunk| (0..ranks).map(move |origin| Contribution { origin: RankId(origin), chunk });
    let expected: Vec<Contribution> = match postcondition {
        Postcondition::Anything => return Ok(()),
        Postcondition::One(one) => vec![one],
        Postcondition::SumOfAll { chunk } => of_all(chunk).collect(),
        Postcondition::FromAll { .. } => {
            let from = |origin: RankId| value.holds.keys().any(|held| held.origin == origin);
            let missing: Vec<_> = of_all(chunk).filter(|one| !from(one.origin)).collect();
            return none_missing(rank, chunk, &missing);
        }
    };
    if let Some((&contribution, _)) = value.holds.iter().find(|(_, times)| **times > 1) {
        let fold = doubling(value, contribution);
        return Err(VerifyError::Doubled { rank, chunk, contribution, fold });
    }
    let foreign = value.holds.keys().find(|held| !expected.contains(held));
    if let (Postcondition::One(expected), Some(&found), 1) =
        (postcondition, foreign, value.holds.len())
    {
        return Err(VerifyError::WrongChunk { rank, chunk, expected, found });
    }
    if let Some(&contribution) = foreign {
        return Err(VerifyError::Foreign { rank, chunk, contribution });
    }
    let missing = expected.into_iter().filter(|one| !value.holds.contains_key(one));
    none_missing(rank, chunk, &missing.collect::<Vec<_>>())
}

fn none_missing(rank: RankId, chunk: u32, missing: &[Contribution]) -> Result<(), VerifyError> {
    let Some(&contribution) = missing.first() else { return Ok(()) };
    Err(VerifyError::Missing { rank, chunk, contribution, count: missing.len() })
}

/// Returns the fold that includes a contribution for the second time.
fn doubling(value: &Value, contribution: Contribution) -> Option<Fold> {
    let (at, chunk, operands) = value.fold.as_ref()?;
    let times = |held: &Held| held.value.holds.get(&contribution).copied().unwrap_or(0);
    if let Some((_, held)) = operands.iter().find(|(_, held)| times(held) > 1) {
        return doubling(&held.value, contribution);
    }
    let mut holders = operands.iter().filter(|(_, held)| times(held) > 0);
    let mut holder = || holders.next().map(|(slot, held)| (*slot, held.from));
    Some(Fold { at: *at, chunk: *chunk, first: holder()?, second: holder()? })
}
