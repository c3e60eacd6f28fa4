//! Messages that were offered: in line at their source, for each link or port the first few known, and of the
//! rest only where to ask for them again.
//!
//! What a rank sends follows from its step and from when it was ready, so a line that is full notes the place of
//! the first message that it has no room for, and the steps that its rank has begun since. All of this is
//! bounded by links; a step that is begun while a line is full costs a note, a message costs nothing.

use std::collections::VecDeque;

use crate::Cursor;
use tutti_units::Time;
use tutti_units::ids::RankId;

/// Messages of a line that are known; when all have set off, as many are asked for again.
const KNOWN: usize = 32;

/// When something was brought about: at a time, after so many rounds of links that started packets then.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Stamp {
    pub(super) time: Time,
    pub(super) round: u32,
}

/// A message of which no packet has been cut.
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

/// A step begun while a line was full, from the place on that is not known to all lines.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    pub(super) start: Cursor,
    pub(super) stamp: Stamp,
    /// Of the message at the start.
    pub(super) serial: u64,
}

/// The steps of a rank that lines still have to ask for; `passed` came before them.
#[derive(Default)]
struct Chain {
    passed: usize,
    steps: VecDeque<Begun>,
}

impl Chain {
    fn get(&self, step: usize) -> Option<&Begun> {
        self.steps.get(step - self.passed)
    }

    /// The number that the next one will have.
    fn end(&self) -> usize {
        self.passed + self.steps.len()
    }
}

/// Where the messages go on that a line has no room for: in which step of the chain, at which place.
#[derive(Clone, Copy)]
struct Rest {
    step: usize,
    at: Cursor,
}

#[derive(Default)]
struct Line {
    known: VecDeque<Offered>,
    /// Only where the line is full, or was when it was last asked for more.
    rest: Option<Rest>,
}

/// The lines of all links and ports at which messages enter.
pub(super) struct Lines {
    /// The first such link.
    first: u32,
    /// By rank, its lines; and where the last one's end.
    starts: Box<[u32]>,
    lines: Box<[Line]>,
    /// When the first in line will enter, where nobody else is before it; `Time::MAX` elsewhere.
    enters: Box<[Time]>,
    /// How many lines have such a time.
    expected: usize,
    chains: Box<[Chain]>,
    /// Messages known and steps noted, now and at most.
    held: usize,
    most: usize,
}

impl Lines {
    /// Of links from `first` on; by rank, how many before its own, and how many in all.
    pub(super) fn new(first: u32, starts: Box<[u32]>) -> Lines {
        let count = starts.last().copied().unwrap_or(0) as usize;
        let ranks = starts.len().saturating_sub(1);
        Lines {
            first,
            lines: (0..count).map(|_| Line::default()).collect(),
            enters: vec![Time::MAX; count].into(),
            expected: 0,
            chains: (0..ranks).map(|_| Chain::default()).collect(),
            starts,
            held: 0,
            most: 0,
        }
    }

    /// Puts a message last into the line of a link, or notes that it is to be asked for again.
    pub(super) fn offer(&mut self, link: u32, at: &Cursor, offered: Offered) {
        let place = self.place(link);
        let line = &self.lines[place];
        let (asks, full) = (line.rest.is_some(), line.known.len() == KNOWN);
        let chain = &mut self.chains[at.rank.index()];
        let known = chain.steps.back().is_some_and(|begun| begun.start.step == at.step);
        if !known && (full || !chain.steps.is_empty()) {
            let Offered { stamp, serial, .. } = offered;
            chain.steps.push_back(Begun { start: *at, stamp, serial });
            self.held += 1;
        }
        if asks {
            return;
        }
        if full {
            self.lines[place].rest = Some(Rest { step: chain.end() - 1, at: *at });
        } else {
            self.push(link, offered);
        }
        self.most = self.most.max(self.held);
    }

    /// Puts a message last into the line of a link that has room.
    pub(super) fn push(&mut self, link: u32, offered: Offered) {
        self.held += 1;
        self.lines[self.place(link)].known.push_back(offered);
    }

    pub(super) fn has_room(&self, link: u32) -> bool {
        self.lines[self.place(link)].known.len() < KNOWN
    }

    /// The first in line.
    pub(super) fn front(&self, link: u32) -> Option<&Offered> {
        self.lines[self.place(link)].known.front()
    }

    /// Takes the first in line; whether more have to be asked for before anybody looks at the line again.
    pub(super) fn pop(&mut self, link: u32) -> Option<(Offered, bool)> {
        let place = self.place(link);
        let line = &mut self.lines[place];
        let offered = line.known.pop_front()?;
        self.held -= 1;
        Some((offered, line.known.is_empty() && line.rest.is_some()))
    }

    /// Where to ask for more, and the step.
    pub(super) fn rest(&self, link: u32) -> Option<(Cursor, Begun)> {
        let Rest { step, at } = self.lines[self.place(link)].rest?;
        Some((at, *self.chains[at.rank.index()].get(step)?))
    }

    /// All of a step has been told, or all up to a place.
    pub(super) fn told(&mut self, link: u32, left: Option<Cursor>) {
        let place = self.place(link);
        let Some(Rest { step, at }) = self.lines[place].rest else { return };
        let rank = at.rank.index();
        let next = || self.chains[rank].get(step + 1).map(|b| Rest { step: step + 1, at: b.start });
        self.lines[place].rest = left.map(|at| Rest { step, at }).or_else(next);
        if left.is_none() {
            self.forget(rank);
        }
        self.most = self.most.max(self.held);
    }

    /// Forgets the steps of a rank that no line asks for any more.
    fn forget(&mut self, rank: usize) {
        let of_rank = self.starts[rank] as usize..self.starts[rank + 1] as usize;
        let asked = self.lines[of_rank].iter().filter_map(|line| Some(line.rest?.step)).min();
        let chain = &mut self.chains[rank];
        let passed = asked.unwrap_or(chain.end()) - chain.passed;
        chain.steps.drain(..passed);
        chain.passed += passed;
        self.held -= passed;
    }

    /// The first in line will enter at that time; whether that is news.
    pub(super) fn expect(&mut self, link: u32, head: Time) -> bool {
        let enters = &mut self.enters[self.place(link)];
        if *enters == Time::MAX {
            *enters = head;
            self.expected += 1;
            return true;
        }
        false
    }

    /// It enters now, or need not any more.
    pub(super) fn enter(&mut self, link: u32) {
        self.enters[self.place(link)] = Time::MAX;
        self.expected -= 1;
    }

    /// Whether the first in line is to enter now.
    #[inline]
    pub(super) fn is_due(&self, link: u32, now: Time) -> bool {
        let place = self.place(link);
        self.expected > 0 && self.enters.get(place) == Some(&now)
    }

    /// The most messages known and steps noted that there ever were at once.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Beyond the end for links at which nothing enters.
    #[inline]
    fn place(&self, link: u32) -> usize {
        link.wrapping_sub(self.first) as usize
    }
}
