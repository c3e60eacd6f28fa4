//! The time of a schedule of recursive multiplying on a flat network, by classes of ranks that behave alike.
//!
//! Without distance and noise, the times of a rank depend only on whether it collects or merges, and on the
//! digits of its virtual rank. Let M be the product of the bases of the exchanges so far. Ranks of a block of M
//! consecutive virtual ranks then differ only by their low part (w mod M). There are three kinds of blocks: the
//! first ones, with all ranks late; at most one mixed block; and the rest. A group of the next exchange has one
//! member from each of B consecutive blocks, all with the same low part. A [`Row`] of three states represents
//! every low part with these states, and an exchange maps rows to rows. Of `P x B` messages only those of one
//! group per row are evaluated, on the network models. The result equals the engine's to the picosecond.

use super::Flat;
use tutti_network::{MessageModel, Port};
use tutti_schedule::notation::{Notation, Stage};
use tutti_units::Time;

/// The state of a rank between two steps.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    clock: Time,
    send_free: Time,
    recv_free: Time,
}

/// All low parts whose ranks are in these states.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    /// In the first blocks; the default if there are no such blocks.
    first: State,
    /// In the mixed block.
    mixed: State,
    /// In the blocks after it.
    rest: State,
    /// Whether the low part is below that of the walk's limit.
    below: bool,
}

/// How many blocks there are of each kind.
#[derive(Clone, Copy)]
struct Blocks {
    first: u32,
    mixed: bool,
    all: u32,
}

/// One run through the stages of a schedule.
pub(super) struct Walk<'a> {
    flat: &'a Flat,
    /// When each message of a sender arrives, for the three kinds of senders.
    sent: [Vec<Time>; 3],
    inbox: Vec<Time>,
    rows: Vec<Row>,
    next: Vec<Row>,
    blocks: Blocks,
    /// Product of the bases so far.
    mask: u32,
    /// Low parts below this one are distinguished from the others.
    limit: u32,
    /// Evaluated messages.
    pub(super) work: u64,
}

/// The kinds of senders.
const FIRST: usize = 0;
const MIXED: usize = 1;
const REST: usize = 2;

impl<'a> Walk<'a> {
    pub(super) fn new(flat: &'a Flat) -> Walk<'a> {
        Walk {
            flat,
            sent: Default::default(),
            inbox: Vec::new(),
            rows: Vec::new(),
            next: Vec::new(),
            blocks: Blocks { first: 0, mixed: false, all: 1 },
            mask: 1,
            limit: 0,
            work: 0,
        }
    }

    /// When the last rank is done.
    pub(super) fn time(&mut self, notation: &Notation) -> Time {
        let stages = notation.stages();
        self.mask = 1;
        self.rows.clear();
        match stages[0] {
            Stage::Collapse { threshold, base } => {
                self.collapse(notation.inner(), threshold / base, base);
                self.exchanges(&stages[1..stages.len() - 1]);
                self.expand(base)
            }
            Stage::Merge { remainder, base, .. } => {
                let last = stages[stages.len() - 1].base();
                self.limit = remainder % (notation.inner() / last);
                let joined = self.merge(notation.inner(), remainder, base);
                self.exchanges(&stages[1..stages.len() - 1]);
                self.inverse_merge(joined, remainder, last)
            }
            _ => {
                self.limit = 0;
                self.blocks = Blocks { first: 0, mixed: false, all: notation.inner() };
                self.rows.push(Row::default());
                self.exchanges(stages);
                self.finals().map(|(state, _)| state.clock).max().unwrap_or_default()
            }
        }
    }

    fn exchanges(&mut self, stages: &[Stage]) {
        for stage in stages {
            self.exchange(stage.base());
        }
    }

    /// Sends a step's messages; the state after them, and in `self.sent[kind]` when each arrives.
    fn send(&mut self, kind: usize, state: State, messages: u32) -> (State, Port) {
        let mut port =
            Port { send_free: state.send_free, recv_free: state.recv_free, ..Port::default() };
        let mut clock = state.clock;
        let sent = &mut self.sent[kind];
        sent.clear();
        for _ in 0..messages {
            let message = self.flat.model.send(&mut port, clock, self.flat.bytes);
            sent.push(message.arrival);
            clock = message.free;
        }
        self.work += u64::from(messages);
        (State { clock, ..state }, port)
    }

    /// Takes what is in the inbox, which is sorted here, and folds so many operands.
    fn take(&mut self, (state, mut port): (State, Port), operands: u32) -> State {
        let Flat { model, bytes, costs } = self.flat;
        // The inbox consists of a few runs that are in order already, which this sort makes use of.
        self.inbox.sort();
        let mut clock = state.clock;
        for &arrival in &self.inbox {
            clock = model.receive(&mut port, clock, arrival, *bytes);
        }
        self.work += self.inbox.len() as u64;
        if operands > 1 {
            clock += costs.reduce(operands, *bytes);
        }
        State { clock, send_free: port.send_free, recv_free: port.recv_free }
    }

    /// An exchange among ranks that are all in one state.
    fn alike(&mut self, state: State, base: u32) -> State {
        let sender = self.send(REST, state, base - 1);
        self.inbox.clone_from(&self.sent[REST]);
        self.take(sender, base)
    }

    /// An exchange of every group.
    fn exchange(&mut self, base: u32) {
        let Blocks { first, mixed, all } = self.blocks;
        let after = Blocks {
            first: first / base,
            mixed: mixed || !first.is_multiple_of(base),
            all: all / base,
        };
        let digit_of_limit = self.limit / self.mask % base;
        let rows = std::mem::take(&mut self.rows);
        let mut known = [(None, State::default()); 2];
        for row in &rows {
            let mut to = Row::default();
            if after.first > 0 {
                to.first = self.known_alike(&mut known[0], row.first, base);
            }
            if after.first + u32::from(after.mixed) < after.all {
                to.rest = self.known_alike(&mut known[1], row.rest, base);
            }
            let members = Blocks { first: first % base, mixed, all: base };
            let senders = after.mixed.then(|| self.senders(row, members, base - 1));
            for digit in 0..base {
                to.below = digit < digit_of_limit || digit == digit_of_limit && row.below;
                if let Some(senders) = &senders {
                    self.address(digit, members);
                    to.mixed = self.take(senders[members.kind(digit)], base);
                }
                self.next.push(to);
            }
        }
        self.rows = rows;
        self.turn(after, base);
    }

    /// Starts the next exchange.
    fn turn(&mut self, after: Blocks, base: u32) {
        self.blocks = after;
        self.mask *= base;
        std::mem::swap(&mut self.rows, &mut self.next);
        self.next.clear();
        self.rows.sort_unstable();
        self.rows.dedup();
    }

    fn known_alike(
        &mut self,
        known: &mut (Option<State>, State),
        state: State,
        base: u32,
    ) -> State {
        if known.0 != Some(state) {
            *known = (Some(state), self.alike(state, base));
        }
        known.1
    }

    /// The three kinds of members of a mixed group after they have sent.
    fn senders(&mut self, row: &Row, members: Blocks, messages: u32) -> [(State, Port); 3] {
        let has = |there: bool, state: State| if there { (state, messages) } else { (state, 0) };
        let rest = members.first + u32::from(members.mixed) < members.all;
        let (first, mixed, rest) =
            (has(members.first > 0, row.first), has(members.mixed, row.mixed), has(rest, row.rest));
        [
            self.send(FIRST, first.0, first.1),
            self.send(MIXED, mixed.0, mixed.1),
            self.send(REST, rest.0, rest.1),
        ]
    }

    /// Puts into the inbox what the member of this digit is sent: message i comes from digit - i.
    fn address(&mut self, digit: u32, members: Blocks) {
        self.inbox.clear();
        for sender in (0..members.all).filter(|sender| *sender != digit) {
            let distance =
                if sender < digit { digit - sender } else { digit + members.all - sender };
            self.inbox.push(self.sent[members.kind(sender)][distance as usize - 1]);
        }
    }

    /// The states of all ranks that took part, and whether each is below the limit.
    fn finals(&self) -> impl Iterator<Item = (State, bool)> {
        let Blocks { first, mixed, .. } = self.blocks;
        self.rows.iter().map(move |row| match (first, mixed) {
            (0, false) => (row.rest, false),
            (0, true) => (row.mixed, row.below),
            _ => (row.first, true),
        })
    }

    /// The first `groups` ranks have collected.
    fn collapse(&mut self, inner: u32, groups: u32, base: u32) {
        self.send(REST, State::default(), 1);
        let arrival = self.sent[REST][0];
        self.inbox.clear();
        self.inbox.resize(base as usize - 1, arrival);
        let first = self.take((State::default(), Port::default()), base);
        self.limit = groups;
        self.blocks = Blocks { first: groups, mixed: false, all: inner };
        self.rows.push(Row { first, ..Row::default() });
    }

    /// Collecting ranks return the result.
    fn expand(&mut self, base: u32) -> Time {
        let giver = self.send(REST, State::default(), 1).0;
        let waiting = State { clock: giver.clock, ..State::default() };
        let finals: Vec<_> = self.finals().collect();
        let mut last = Time::ZERO;
        for (state, collects) in finals {
            last = last.max(state.clock);
            if collects {
                let sent = self.send(MIXED, state, base - 1).0;
                self.inbox.clear();
                self.inbox.extend(self.sent[MIXED].last());
                let got = self.take((waiting, Port::default()), 1);
                last = last.max(sent.clock).max(got.clock);
            }
        }
        last
    }

    /// The first exchange with the remainder; the state of a remainder rank after it.
    fn merge(&mut self, inner: u32, remainder: u32, base: u32) -> State {
        let groups = inner / base;
        let (joined, _) = self.send(MIXED, State::default(), base);
        let joined = State { clock: joined.clock, ..State::default() };
        let sender = self.send(REST, State::default(), base - 1);
        let digit_of_limit = self.limit % base;
        for digit in 0..base {
            let (some, more) = (remainder / groups, !remainder.is_multiple_of(groups));
            let rest = self.merged(sender, digit, some, base);
            let first =
                if more { self.merged(sender, digit, some + 1, base) } else { State::default() };
            let below = digit < digit_of_limit;
            self.next.push(Row { first, mixed: State::default(), rest, below });
        }
        self.turn(Blocks { first: remainder % groups, mixed: false, all: groups }, base);
        joined
    }

    fn merged(&mut self, sender: (State, Port), digit: u32, joining: u32, base: u32) -> State {
        self.inbox.clone_from(&self.sent[REST]);
        let arrival = self.sent[MIXED][digit as usize];
        self.inbox.extend((0..joining).map(|_| arrival));
        self.take(sender, base + joining)
    }

    /// The last exchange, whose members also send to the remainder ranks that listen.
    fn inverse_merge(&mut self, joined: State, remainder: u32, base: u32) -> Time {
        let groups = self.mask;
        let members = self.blocks;
        let rows = std::mem::take(&mut self.rows);
        let mut last = Time::ZERO;
        for row in &rows {
            let listening = remainder / groups + u32::from(row.below);
            let messages = base - 1 + listening;
            let senders = self.senders(row, members, messages);
            for digit in 0..base {
                self.address(digit, members);
                last = last.max(self.take(senders[members.kind(digit)], base).clock);
            }
            if listening > 0 {
                // Of the remainder ranks of one group, the last one completes last.
                let nth = messages as usize - 1;
                self.inbox.clear();
                let arrivals = (0..base).map(|digit| self.sent[members.kind(digit)][nth]);
                self.inbox.extend(arrivals);
                let port = Port { send_free: joined.send_free, ..Port::default() };
                last = last.max(self.take((joined, port), base).clock);
            }
        }
        self.rows = rows;
        last
    }
}

impl Blocks {
    /// What a block, or the member from it, is.
    fn kind(self, block: u32) -> usize {
        if block < self.first {
            FIRST
        } else if block == self.first && self.mixed {
            MIXED
        } else {
            REST
        }
    }
}
