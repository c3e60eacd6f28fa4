//! Injection queues of offered messages: per link or port, the first few messages and a cursor from which the
//! others are requested again.
//!
//! What a rank sends follows from its step and from when it was ready. A full queue therefore stores the cursor
//! of the first message that does not fit, and the steps that its rank has started since. Memory is bounded by
//! the number of links, plus one entry per step started while a queue is full.

use std::collections::VecDeque;

use crate::Cursor;
use tutti_units::Time;
use tutti_units::ids::RankId;

/// Capacity of a queue; when it is empty, as many messages are requested again.
const KNOWN: usize = 32;

/// The time of a cause, and the round of link service at that time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Stamp {
    pub(super) time: Time,
    pub(super) round: u32,
}

/// A message without packets yet.
#[derive(Clone, Copy)]
pub(super) struct Offered {
    pub(super) destination: RankId,
    pub(super) bytes: u64,
    /// When its first byte is at its source's port.
    pub(super) head: Time,
    /// How many messages were sent before it.
    pub(super) serial: u64,
    /// When it was offered.
    pub(super) stamp: Stamp,
}

/// A step started while a queue was full, from the first message that a queue does not store.
#[derive(Clone, Copy)]
pub(super) struct StartedStep {
    pub(super) start: Cursor,
    pub(super) stamp: Stamp,
    /// The number of the message at the start.
    pub(super) serial: u64,
}

/// The steps of a rank that queues still have to request; `passed` steps precede them.
#[derive(Default)]
struct Chain {
    passed: usize,
    steps: VecDeque<StartedStep>,
}

impl Chain {
    fn get(&self, step: usize) -> Option<&StartedStep> {
        self.steps.get(step - self.passed)
    }

    /// The number of the next step.
    fn end(&self) -> usize {
        self.passed + self.steps.len()
    }
}

/// Where a queue continues: the step of the chain, and the position in it.
#[derive(Clone, Copy)]
struct Rest {
    step: usize,
    at: Cursor,
}

#[derive(Default)]
struct QueueList {
    known: VecDeque<Offered>,
    /// Set if the queue is full, or was full at its last request.
    rest: Option<Rest>,
}

/// The queues of all links and ports at which messages enter.
pub(super) struct InjectionQueues {
    /// The first such link.
    first: u32,
    /// The first queue of each rank, and the end of the last rank's.
    starts: Box<[u32]>,
    injection: Box<[QueueList]>,
    /// When the first message of a queue is due, if its injection is scheduled; else `Time::MAX`.
    enters: Box<[Time]>,
    /// The number of scheduled injections.
    expected: usize,
    chains: Box<[Chain]>,
    /// Stored messages and steps, now and at the peak.
    held: usize,
    most: usize,
}

impl InjectionQueues {
    /// Creates the queues of the links from `first` on; `starts` holds the first queue of each rank and the total.
    pub(super) fn new(first: u32, starts: Box<[u32]>) -> InjectionQueues {
        let count = starts.last().copied().unwrap_or(0) as usize;
        let ranks = starts.len().saturating_sub(1);
        InjectionQueues {
            first,
            injection: (0..count).map(|_| QueueList::default()).collect(),
            enters: vec![Time::MAX; count].into(),
            expected: 0,
            chains: (0..ranks).map(|_| Chain::default()).collect(),
            starts,
            held: 0,
            most: 0,
        }
    }

    /// Appends a message to the queue of a link, or records that it must be requested again.
    pub(super) fn offer(&mut self, link: u32, at: &Cursor, offered: Offered) {
        let place = self.place(link);
        let line = &self.injection[place];
        let (incomplete, full) = (line.rest.is_some(), line.known.len() == KNOWN);
        let chain = &mut self.chains[at.rank.index()];
        let known = chain.steps.back().is_some_and(|started| started.start.step == at.step);
        if !known && (full || !chain.steps.is_empty()) {
            let Offered { stamp, serial, .. } = offered;
            chain.steps.push_back(StartedStep { start: *at, stamp, serial });
            self.held += 1;
        }
        if incomplete {
            return;
        }
        if full {
            self.injection[place].rest = Some(Rest { step: chain.end() - 1, at: *at });
        } else {
            self.push(link, offered);
        }
        self.most = self.most.max(self.held);
    }

    /// Appends a message to the queue of a link, which is not full.
    pub(super) fn push(&mut self, link: u32, offered: Offered) {
        self.held += 1;
        self.injection[self.place(link)].known.push_back(offered);
    }

    pub(super) fn has_space(&self, link: u32) -> bool {
        self.injection[self.place(link)].known.len() < KNOWN
    }

    /// The first message of a queue.
    pub(super) fn front(&self, link: u32) -> Option<&Offered> {
        self.injection[self.place(link)].known.front()
    }

    /// Dequeues the first message; the flag states whether more must be requested before the next access.
    pub(super) fn pop(&mut self, link: u32) -> Option<(Offered, bool)> {
        let place = self.place(link);
        let line = &mut self.injection[place];
        let offered = line.known.pop_front()?;
        self.held -= 1;
        Some((offered, line.known.is_empty() && line.rest.is_some()))
    }

    /// The cursor from which to request more, and its step.
    pub(super) fn rest(&self, link: u32) -> Option<(Cursor, StartedStep)> {
        let Rest { step, at } = self.injection[self.place(link)].rest?;
        Some((at, *self.chains[at.rank.index()].get(step)?))
    }

    /// Records that a step has been replayed, completely or up to a cursor.
    pub(super) fn supplied(&mut self, link: u32, left: Option<Cursor>) {
        let place = self.place(link);
        let Some(Rest { step, at }) = self.injection[place].rest else { return };
        let rank = at.rank.index();
        let next = || self.chains[rank].get(step + 1).map(|b| Rest { step: step + 1, at: b.start });
        self.injection[place].rest = left.map(|at| Rest { step, at }).or_else(next);
        if left.is_none() {
            self.forget(rank);
        }
        self.most = self.most.max(self.held);
    }

    /// Discards the steps of a rank that no queue requests any more.
    fn forget(&mut self, rank: usize) {
        let of_rank = self.starts[rank] as usize..self.starts[rank + 1] as usize;
        let requested =
            self.injection[of_rank].iter().filter_map(|line| Some(line.rest?.step)).min();
        let chain = &mut self.chains[rank];
        let passed = requested.unwrap_or(chain.end()) - chain.passed;
        chain.steps.drain(..passed);
        chain.passed += passed;
        self.held -= passed;
    }

    /// Schedules the injection of the first message; returns whether it was not scheduled yet.
    pub(super) fn expect(&mut self, link: u32, head: Time) -> bool {
        let enters = &mut self.enters[self.place(link)];
        if *enters == Time::MAX {
            *enters = head;
            self.expected += 1;
            return true;
        }
        false
    }

    /// Clears the scheduled injection.
    pub(super) fn enter(&mut self, link: u32) {
        self.enters[self.place(link)] = Time::MAX;
        self.expected -= 1;
    }

    /// Whether the first message is due now.
    #[inline]
    pub(super) fn is_due(&self, link: u32, now: Time) -> bool {
        let place = self.place(link);
        self.expected > 0 && self.enters.get(place) == Some(&now)
    }

    /// The peak number of stored messages and steps.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// The index of a link's queue; out of range for links at which no message enters.
    #[inline]
    fn place(&self, link: u32) -> usize {
        link.wrapping_sub(self.first) as usize
    }
}
