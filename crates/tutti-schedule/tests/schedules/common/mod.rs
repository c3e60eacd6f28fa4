//! A slow and simple interpreter of a schedule that tries every interleaving.
//!
//! It models the messages of a step as non-blocking MPI calls: all sends and receives are posted
//! together. From then on each chunk of a send may be read at any moment until the step ends. Each
//! chunk that was read may be written to the receiver's slot at any moment from the posting of the
//! receive until its step ends. A step ends when its sends are read and its receives written; then
//! its local ops run. Buffers are unlimited.
//!
//! Two accesses can conflict only if they are to the same chunk of the same slot of a rank, in the
//! same step, and one of them is a write. The search branches only there and makes all other moves
//! at once; [`at_random`] makes every move separately, in any order, to check that.
#![allow(unreachable_pub, reason = "a module of a test")]

use std::collections::{BTreeMap, BTreeSet};

use tutti_schedule::collective::Postcondition;
use tutti_schedule::{Local, Message, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

/// A value: equal ids are equal bits, whatever data is sent.
pub type Id = usize;

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// Every rank has finished: the result slot of each rank, chunk by chunk.
    Results(Vec<Vec<Option<Id>>>),
    /// An access that is never allowed, or ranks that wait forever.
    Fault(&'static str),
}

/// An access of a message to a chunk of a rank's slot.
type Placement = (usize, Slot, u32);

/// The results of a search.
pub struct Seen {
    pub endings: BTreeSet<Ending>,
    /// Whether a chunk of a send was read after a receive of its step had overwritten it.
    pub read_late: bool,
    /// Whether the search was cut off.
    pub is_cut: bool,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Moving {
    from: usize,
    to: usize,
    send: (Slot, u32),
    /// The receive, once posted: its slot and first chunk.
    recv: Option<(Slot, u32)>,
    /// For each chunk: the value read, and whether it was written.
    chunks: Vec<(Option<Id>, bool)>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct State {
    memory: BTreeMap<Placement, Id>,
    /// For each rank: its step, and whether it is posted.
    at: Vec<(usize, bool)>,
    moving: Vec<Moving>,
    /// Receives that are posted before their sends, by source and destination.
    open: Vec<(usize, usize, Run)>,
}

/// Chunks of a slot: the first, and the number.
type Run = (Slot, u32, usize);

/// Reads (false) or writes (true) a chunk of a message.
type Move = (usize, usize, bool);

/// The values so far: contributions and folds.
#[derive(Default)]
struct Values {
    leaves: BTreeMap<(u32, u32), Id>,
    folds: BTreeMap<Vec<Id>, Id>,
    /// The number of times each contribution is in each value.
    holds: Vec<BTreeMap<(u32, u32), u32>>,
}

impl Values {
    fn leaf(&mut self, origin: u32, chunk: u32) -> Id {
        let next = self.holds.len();
        let id = *self.leaves.entry((origin, chunk)).or_insert(next);
        if id == next {
            self.holds.push(BTreeMap::from([((origin, chunk), 1)]));
        }
        id
    }

    fn fold(&mut self, operands: Vec<Id>) -> Id {
        if let [only] = operands[..] {
            return only;
        }
        let next = self.holds.len();
        let mut holds = BTreeMap::new();
        for (leaf, count) in operands.iter().flat_map(|&id| &self.holds[id]) {
            *holds.entry(*leaf).or_default() += count;
        }
        let id = *self.folds.entry(operands).or_insert(next);
        if id == next {
            self.holds.push(holds);
        }
        id
    }
}

/// Interprets one schedule.
pub struct Interpreter {
    shape: Shape,
    programs: Vec<Vec<Step>>,
    values: Values,
    pub seen: Seen,
}

impl Interpreter {
    pub fn new(schedule: &dyn Schedule) -> Interpreter {
        let step = |rank, index| {
            let mut step = Step::new();
            schedule.step(rank, index, &mut step);
            step
        };
        let program = |rank| (0..schedule.steps(rank)).map(|index| step(rank, index)).collect();
        let programs = (0..schedule.shape().ranks).map(|rank| program(RankId(rank))).collect();
        let seen = Seen { endings: BTreeSet::new(), read_late: false, is_cut: false };
        Interpreter { shape: schedule.shape().clone(), programs, values: Values::default(), seen }
    }

    fn start(&mut self) -> State {
        let Shape { collective, ranks, chunks, .. } = self.shape;
        let mut memory = BTreeMap::new();
        for (rank, chunk) in (0..ranks).flat_map(|rank| (0..chunks).map(move |chunk| (rank, chunk)))
        {
            if let Some(held) = collective.before(RankId(rank), chunk, ranks, chunks) {
                let id = self.values.leaf(held.origin.0, held.chunk);
                memory.insert((rank as usize, Slot::DATA, chunk), id);
            }
        }
        let at = vec![(0, false); ranks as usize];
        State { memory, at, moving: Vec::new(), open: Vec::new() }
    }

    /// Tries every interleaving, up to `most` states.
    pub fn search(&mut self, most: usize) {
        let mut known = BTreeSet::new();
        let mut stack = vec![self.start()];
        while let Some(mut state) = stack.pop() {
            if let Err(fault) = self.settle(&mut state) {
                self.seen.endings.insert(Ending::Fault(fault));
                continue;
            }
            if known.len() == most {
                self.seen.is_cut = true;
                return;
            }
            if !known.insert(state.clone()) {
                continue;
            }
            let moves = state.moves();
            if moves.is_empty() {
                let ending = self.ending(&state);
                self.seen.endings.insert(ending);
            }
            for one in moves {
                let mut next = state.clone();
                match self.make(&mut next, one) {
                    Ok(()) => stack.push(next),
                    Err(fault) => _ = self.seen.endings.insert(Ending::Fault(fault)),
                }
            }
        }
    }

    /// Makes all moves that cannot conflict: posts, ends of steps, accesses to chunks of one
    /// message only.
    fn settle(&mut self, state: &mut State) -> Result<(), &'static str> {
        loop {
            let before = state.clone();
            for rank in 0..state.at.len() {
                self.post(state, rank)?;
                self.end(state, rank)?;
            }
            for one in state.moves() {
                if !self.matters(state, one) {
                    self.make(state, one)?;
                }
            }
            if *state == before {
                return Ok(());
            }
        }
    }

    /// Returns whether another message of the step accesses the same chunk, and one of them writes.
    fn matters(&self, state: &State, (which, chunk, writes): Move) -> bool {
        let (rank, slot, chunk) = state.moving[which].place(chunk, writes);
        let (step, _) = state.at[rank];
        let Some(step) = self.programs[rank].get(step) else { return false };
        let touches = |message: &&Message| {
            message.slot == slot && message.chunks.iter().any(|one| one == chunk)
        };
        let (sends, recvs) =
            (step.sends.iter().filter(touches).count(), step.recvs.iter().filter(touches).count());
        recvs > usize::from(writes) || writes && sends > 0
    }

    fn post(&self, state: &mut State, rank: usize) -> Result<(), &'static str> {
        let (step, is_posted) = state.at[rank];
        let Some(step) = self.programs[rank].get(step) else { return Ok(()) };
        if is_posted {
            return Ok(());
        }
        state.at[rank].1 = true;
        for send in &step.sends {
            let to = send.peer.index();
            let chunks = vec![(None, false); send.chunks.len() as usize];
            let send = (send.slot, send.chunks.start);
            state.moving.push(Moving { from: rank, to, send, recv: None, chunks });
        }
        let run = |recv: &Message| (recv.slot, recv.chunks.start, recv.chunks.len() as usize);
        state.open.extend(step.recvs.iter().map(|recv| (recv.peer.index(), rank, run(recv))));
        // The k-th send from one rank to another matches the k-th receive.
        let mut at = 0;
        while at < state.open.len() {
            let (from, to, (slot, start, count)) = state.open[at];
            let meets = |one: &&mut Moving| (one.from, one.to, one.recv) == (from, to, None);
            let earlier = state.open[..at].iter().any(|&(a, b, _)| (a, b) == (from, to));
            let Some(sent) = state.moving.iter_mut().find(meets).filter(|_| !earlier) else {
                at += 1;
                continue;
            };
            if sent.chunks.len() != count {
                return Err("a message of another length");
            }
            sent.recv = Some((slot, start));
            state.open.remove(at);
        }
        Ok(())
    }

    /// Ends the step of a rank if its messages are complete.
    fn end(&mut self, state: &mut State, rank: usize) -> Result<(), &'static str> {
        let (at, is_posted) = state.at[rank];
        let waits = |one: &Moving| {
            one.from == rank && one.chunks.iter().any(|(read, _)| read.is_none())
                || one.to == rank
                    && one.recv.is_some()
                    && one.chunks.iter().any(|(_, is_written)| !is_written)
        };
        if !is_posted
            || state.moving.iter().any(waits)
            || state.open.iter().any(|&(_, to, _)| to == rank)
        {
            return Ok(());
        }
        state.moving.retain(|one| one.to != rank || one.recv.is_none());
        let step = self.programs[rank][at].clone();
        for local in &step.locals {
            self.local(state, rank, &step, local)?;
        }
        state.at[rank] = (at + 1, false);
        Ok(())
    }

    fn local(
        &mut self,
        state: &mut State,
        rank: usize,
        step: &Step,
        local: &Local,
    ) -> Result<(), &'static str> {
        let read = |state: &State, slot, chunk| {
            state.memory.get(&(rank, slot, chunk)).copied().ok_or("a read of nothing")
        };
        match *local {
            Local::Reduce { into, operands, chunks } => {
                for chunk in chunks.iter() {
                    let slots = step.operands(operands).iter();
                    let held = slots.map(|&slot| read(state, slot, chunk));
                    let sum = self.values.fold(held.collect::<Result<_, _>>()?);
                    state.memory.insert((rank, into, chunk), sum);
                }
            }
            Local::Copy { from, into, chunks, to } => {
                let held = chunks.iter().map(|chunk| read(state, from, chunk));
                let held = held.collect::<Result<Vec<_>, _>>()?;
                for (chunk, id) in (to..).zip(held) {
                    state.memory.insert((rank, into, chunk), id);
                }
            }
            Local::Compute { .. } | Local::Sleep { .. } => {}
        }
        Ok(())
    }

    fn make(&mut self, state: &mut State, one: Move) -> Result<(), &'static str> {
        let (which, chunk, writes) = one;
        let place = state.moving[which].place(chunk, writes);
        let at = state.at[place.0];
        if writes {
            let id = state.moving[which].chunks[chunk].0.expect("it was read");
            state.memory.insert(place, id);
            state.moving[which].chunks[chunk].1 = true;
        } else {
            let late = |other: &Moving| other.to == place.0 && other.has_written(place);
            self.seen.read_late |= at.1 && state.moving.iter().any(late);
            let id = *state.memory.get(&place).ok_or("a read of nothing")?;
            state.moving[which].chunks[chunk].0 = Some(id);
        }
        Ok(())
    }

    fn ending(&self, state: &State) -> Ending {
        if state.at.iter().zip(&self.programs).any(|((at, _), program)| *at < program.len()) {
            return Ending::Fault("ranks that wait");
        }
        if !state.moving.is_empty() {
            return Ending::Fault("a message that is not received");
        }
        let chunk = |rank, chunk| state.memory.get(&(rank, self.shape.result, chunk)).copied();
        let of_rank = |rank| (0..self.shape.chunks).map(|one| chunk(rank, one)).collect();
        Ending::Results((0..state.at.len()).map(of_rank).collect())
    }

    /// Runs once with every move made separately, in an order chosen by `draw`.
    pub fn at_random(&mut self, mut draw: impl FnMut(usize) -> usize) -> Ending {
        let mut state = self.start();
        loop {
            let mut moves: Vec<Option<Move>> = state.moves().into_iter().map(Some).collect();
            moves.extend(state.at.iter().map(|_| None));
            let picked = draw(moves.len());
            let made = match moves[picked] {
                Some(one) => self.make(&mut state, one),
                None => self.step_of(&mut state, draw(self.programs.len())),
            };
            if let Err(fault) = made {
                return Ending::Fault(fault);
            }
            let mut settled = state.clone();
            if self.settle_ranks(&mut settled).is_ok()
                && settled == state
                && state.moves().is_empty()
            {
                return self.ending(&state);
            }
        }
    }

    fn step_of(&mut self, state: &mut State, rank: usize) -> Result<(), &'static str> {
        self.post(state, rank)?;
        self.end(state, rank)
    }

    fn settle_ranks(&mut self, state: &mut State) -> Result<(), &'static str> {
        (0..state.at.len()).try_for_each(|rank| self.step_of(state, rank))
    }

    /// Returns whether an ending satisfies the collective's postcondition.
    pub fn is_right(&self, ending: &Ending) -> bool {
        let Ending::Results(results) = ending else { return false };
        let Shape { collective, ranks, chunks, .. } = self.shape;
        let right = |rank: u32, chunk: u32| {
            let held = results[rank as usize][chunk as usize].map(|id| &self.values.holds[id]);
            let each_once = |expected: BTreeSet<(u32, u32)>| {
                held.is_some_and(|held| {
                    held.values().all(|&count| count == 1) && held.keys().copied().eq(expected)
                })
            };
            match collective.after(RankId(rank), chunk, ranks, chunks) {
                Postcondition::Anything => true,
                Postcondition::One(one) => each_once(BTreeSet::from([(one.origin.0, one.chunk)])),
                Postcondition::SumOfAll { chunk } => {
                    each_once((0..ranks).map(|rank| (rank, chunk)).collect())
                }
                Postcondition::FromAll { .. } => held.is_some_and(|held| {
                    let origins: BTreeSet<u32> = held.keys().map(|&(origin, _)| origin).collect();
                    origins.len() == ranks as usize
                }),
            }
        };
        (0..ranks).all(|rank| (0..chunks).all(|chunk| right(rank, chunk)))
    }
}

impl State {
    /// Returns the currently possible accesses.
    fn moves(&self) -> Vec<Move> {
        let mut found = Vec::new();
        for (which, one) in self.moving.iter().enumerate() {
            for (chunk, &(read, is_written)) in one.chunks.iter().enumerate() {
                if read.is_none() {
                    found.push((which, chunk, false));
                } else if one.recv.is_some() && !is_written {
                    found.push((which, chunk, true));
                }
            }
        }
        found
    }
}

impl Moving {
    fn place(&self, chunk: usize, writes: bool) -> Placement {
        let chunk = u32::try_from(chunk).expect("few chunks");
        let (rank, (slot, start)) = if writes {
            (self.to, self.recv.expect("it is posted"))
        } else {
            (self.from, self.send)
        };
        (rank, slot, start + chunk)
    }

    /// Returns whether it has written this place.
    fn has_written(&self, place: Placement) -> bool {
        let written = |chunk: usize| self.chunks[chunk].1 && self.place(chunk, true) == place;
        self.recv.is_some() && (0..self.chunks.len()).any(written)
    }
}
