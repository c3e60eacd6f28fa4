//! For tests: an obvious symbolic executor that says what every rank holds in the end, and when.
//!
//! Contents are written out as the list of origins in the order of the fold; messages wait in one queue
//! per pair of ranks. Time follows the pipelining postal model, in which the closed forms hold exactly.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::{Entry, Request, Stage, build, critical_path};
use crate::collective::{Collective, Contribution, Wanted};
use crate::ids::RankId;
use crate::schedule::{ChunkRange, Local, Schedule, Slot, Step};

/// What a position holds: which chunk, of which ranks, in the order of the fold.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Content {
    chunk: u32,
    origins: Rc<Vec<u32>>,
}

type Buffer = BTreeMap<(u32, u32), Content>;

/// A network in whole picoseconds per chunk; see [`Run::walk`].
const LATENCY: u64 = 1_000_000;
const OVERHEAD: u64 = 70_000;
const TRANSFER: u64 = 500;
const FOLD: u64 = 30;

struct Message {
    arrival: u64,
    contents: Vec<Content>,
}

struct Run<'a> {
    schedule: &'a dyn Schedule,
    buffers: Vec<Buffer>,
    clocks: Vec<u64>,
    queues: BTreeMap<(u32, u32), VecDeque<Message>>,
    /// Picoseconds are counted in this fraction of a chunk, so that all divisions come out even.
    per_chunk: u64,
}

impl<'a> Run<'a> {
    fn new(schedule: &'a dyn Schedule, per_chunk: u64) -> Run<'a> {
        let shape = schedule.shape();
        let buffers = (0..shape.ranks)
            .map(|rank| {
                (0..shape.chunks)
                    .filter_map(|chunk| {
                        let held = shape.collective.before(
                            RankId(rank),
                            chunk,
                            shape.ranks,
                            shape.chunks,
                        )?;
                        let origins = Rc::new(vec![held.origin.0]);
                        Some(((0, chunk), Content { chunk: held.chunk, origins }))
                    })
                    .collect()
            })
            .collect();
        let clocks = vec![0; shape.ranks as usize];
        Run { schedule, buffers, clocks, queues: BTreeMap::new(), per_chunk }
    }

    /// Runs every rank as far as it can go, until all have ended.
    fn walk(&mut self) {
        let ranks = self.schedule.shape().ranks;
        // Per rank: its next step, and whether that step's sends have been issued.
        let mut at = vec![(0, false); ranks as usize];
        let mut step = Step::new();
        loop {
            let mut moved = false;
            for rank in 0..ranks {
                let (next, issued) = &mut at[rank as usize];
                while *next < self.schedule.steps(RankId(rank)) {
                    step.clear();
                    self.schedule.step(RankId(rank), *next, &mut step);
                    if !*issued {
                        self.check(rank, &step);
                        self.send(rank, &step);
                        *issued = true;
                        moved = true;
                    }
                    if !self.receive(rank, &step) {
                        break;
                    }
                    self.locals(rank, &step);
                    (*next, *issued, moved) = (*next + 1, false, true);
                }
            }
            if !moved {
                break;
            }
        }
        for (rank, (next, _)) in at.iter().enumerate() {
            let id = RankId(u32::try_from(rank).unwrap());
            assert_eq!(*next, self.schedule.steps(id), "{id} waits for ever in {:?}", self.name());
        }
        assert!(self.queues.values().all(VecDeque::is_empty), "{:?}: never received", self.name());
    }

    fn name(&self) -> (&str, Collective, u32) {
        let shape = self.schedule.shape();
        (&shape.name, shape.collective, shape.ranks)
    }

    fn check(&self, rank: u32, step: &Step) {
        let shape = self.schedule.shape();
        for recv in &step.recvs {
            for send in &step.sends {
                let clash = send.slot == recv.slot && send.chunks.overlaps(recv.chunks);
                assert!(!clash, "{:?}: rank {rank} writes {recv:?} while reading", self.name());
            }
        }
        for message in step.sends.iter().chain(&step.recvs) {
            assert!(message.peer.0 < shape.ranks && message.peer.0 != rank, "{message:?}");
            assert!(message.chunks.end <= shape.chunks && message.slot.0 < shape.slots);
            assert!(!message.chunks.is_empty());
        }
    }

    fn read(&self, rank: u32, slot: Slot, chunks: ChunkRange) -> Vec<Content> {
        chunks
            .iter()
            .map(|chunk| {
                let held = self.buffers[rank as usize].get(&(slot.0, chunk));
                held.cloned().unwrap_or_else(|| {
                    panic!("{:?}: rank {rank} has nothing at {slot:?} {chunk}", self.name())
                })
            })
            .collect()
    }

    fn write(&mut self, rank: u32, slot: Slot, to: u32, contents: Vec<Content>) {
        assert!(slot.0 < self.schedule.shape().slots);
        for (chunk, content) in (to..).zip(contents) {
            self.buffers[rank as usize].insert((slot.0, chunk), content);
        }
    }

    fn send(&mut self, rank: u32, step: &Step) {
        for send in &step.sends {
            let contents = self.read(rank, send.slot, send.chunks);
            let clock = &mut self.clocks[rank as usize];
            *clock += OVERHEAD + TRANSFER * self.per_chunk * u64::from(send.chunks.len());
            let message = Message { arrival: *clock + LATENCY, contents };
            self.queues.entry((rank, send.peer.0)).or_default().push_back(message);
        }
    }

    /// Takes all of a step's messages, or none while one is missing.
    fn receive(&mut self, rank: u32, step: &Step) -> bool {
        let mut wanted: BTreeMap<u32, usize> = BTreeMap::new();
        for recv in &step.recvs {
            *wanted.entry(recv.peer.0).or_default() += 1;
        }
        let there = |(peer, count): (&u32, &usize)| {
            self.queues.get(&(*peer, rank)).is_some_and(|queue| queue.len() >= *count)
        };
        if !wanted.iter().all(there) {
            return false;
        }
        for recv in &step.recvs {
            let message = self.queues.get_mut(&(recv.peer.0, rank)).unwrap().pop_front().unwrap();
            assert_eq!(message.contents.len(), recv.chunks.len() as usize, "{:?}", self.name());
            let clock = &mut self.clocks[rank as usize];
            *clock = message.arrival.max(*clock);
            self.write(rank, recv.slot, recv.chunks.start, message.contents);
        }
        true
    }

    fn locals(&mut self, rank: u32, step: &Step) {
        for local in &step.locals {
            match *local {
                Local::Reduce { into, operands, chunks } => {
                    let operands: Vec<_> = step.operands(operands).to_vec();
                    let pieces: Vec<_> =
                        operands.iter().map(|&slot| self.read(rank, slot, chunks)).collect();
                    let folded = (0..chunks.len() as usize).map(|i| {
                        assert!(pieces.iter().all(|piece| piece[i].chunk == pieces[0][i].chunk));
                        let origins = pieces.iter().flat_map(|piece| piece[i].origins.iter());
                        Content {
                            chunk: pieces[0][i].chunk,
                            origins: Rc::new(origins.copied().collect()),
                        }
                    });
                    let folded = folded.collect();
                    self.write(rank, into, chunks.start, folded);
                    let folds = operands.len() as u64 - 1;
                    self.clocks[rank as usize] +=
                        folds * FOLD * self.per_chunk * u64::from(chunks.len());
                }
                Local::Copy { from, into, chunks, to } => {
                    let contents = self.read(rank, from, chunks);
                    self.write(rank, into, to, contents);
                }
                Local::Compute { .. } | Local::Sleep { .. } => {}
            }
        }
    }

    /// Compares what the ranks hold with the postcondition.
    fn judge(&self) {
        let shape = self.schedule.shape();
        for rank in 0..shape.ranks {
            for position in 0..shape.chunks {
                let wanted =
                    shape.collective.after(RankId(rank), position, shape.ranks, shape.chunks);
                let (chunk, expected, once) = match wanted {
                    Wanted::Anything => continue,
                    Wanted::One(Contribution { origin, chunk }) => (chunk, vec![origin.0], true),
                    Wanted::SumOfAll { chunk } => (chunk, (0..shape.ranks).collect(), true),
                    Wanted::FromAll { chunk } => (chunk, (0..shape.ranks).collect(), false),
                };
                let range = ChunkRange::one(position);
                let held = &self.read(rank, shape.result, range)[0];
                let mut origins = held.origins.to_vec();
                origins.sort_unstable();
                if !once {
                    origins.dedup();
                }
                let at = (self.name(), rank, position);
                assert_eq!((held.chunk, origins), (chunk, expected), "at {at:?}");
            }
        }
    }
}

fn laid_out(notation: &str, collective: Collective, ranks: u32) -> std::sync::Arc<dyn Schedule> {
    build(notation, collective, ranks)
        .unwrap_or_else(|error| panic!("{notation}, {collective}, {ranks} ranks: {error}"))
}

/// Runs a schedule and compares the result with the collective's postcondition.
pub(super) fn performs(notation: &str, collective: Collective, ranks: u32) {
    let schedule = laid_out(notation, collective, ranks);
    // An algorithm that is left a choice names what it chose: another notation of the same schedule.
    let named = laid_out(&schedule.shape().name, collective, ranks);
    assert_eq!(schedule.shape(), named.shape(), "{notation}");
    let mut run = Run::new(&*schedule, 1);
    run.walk();
    run.judge();
}

/// Every collective that the entry claims on this many ranks; every root where there are few.
pub(super) fn claims(entry: &Entry, notation: &str, ranks: u32) {
    for collective in Collective::ALL {
        let argument = notation.split_once(':').map(|(_, argument)| argument);
        let request = Request { collective, ranks, argument };
        if !entry.collectives.contains(&collective.name()) || !(entry.claims)(&request) {
            continue;
        }
        let roots = if ranks <= 17 { 0..ranks } else { ranks / 3..ranks / 3 + 1 };
        let roots = if collective.root().is_some() { roots } else { 0..1 };
        for root in roots {
            performs(notation, collective.with_root(RankId(root)), ranks);
        }
    }
}

/// Every reduced chunk of the result is folded in rank order.
pub(super) fn folds_in_rank_order(notation: &str, collective: Collective, ranks: u32) {
    let schedule = laid_out(notation, collective, ranks);
    let mut run = Run::new(&*schedule, 1);
    run.walk();
    let shape = schedule.shape();
    for rank in 0..ranks {
        for chunk in 0..shape.chunks {
            let wanted = collective.after(RankId(rank), chunk, ranks, shape.chunks);
            if matches!(wanted, Wanted::SumOfAll { .. }) {
                let held = &run.read(rank, shape.result, ChunkRange::one(chunk))[0];
                let order = held.origins.to_vec();
                assert!(
                    order.is_sorted(),
                    "{:?}: rank {rank}, chunk {chunk}: {order:?}",
                    run.name()
                );
            }
        }
    }
}

/// Whether there is a closed form; where there is one, it equals the time of the slowest rank.
pub(super) fn critical_path_is_exact(notation: &str, collective: Collective, ranks: u32) -> bool {
    let Some(stages) = critical_path(notation, collective, ranks).unwrap() else {
        return false;
    };
    let schedule = laid_out(notation, collective, ranks);
    let of = u64::from(stages.iter().map(|stage| stage.of).max().unwrap());
    let chunks = u64::from(schedule.shape().chunks);
    let mut run = Run::new(&*schedule, of);
    run.walk();
    let time = |stage: &Stage| {
        let bytes = u64::from(stage.chunks) * of * chunks / u64::from(stage.of);
        LATENCY
            + u64::from(stage.messages) * (OVERHEAD + TRANSFER * bytes)
            + u64::from(stage.reductions) * FOLD * bytes
    };
    let expected: u64 = stages.iter().map(time).sum();
    let slowest = run.clocks.iter().copied().max().unwrap();
    assert_eq!(slowest, expected, "{notation}, {collective}, {ranks} ranks: {stages:?}");
    true
}
