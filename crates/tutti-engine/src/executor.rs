//! The executor: schedules ready ranks and executes their steps. It accesses the network only
//! through its model.

mod ended;
mod forked;

use std::collections::VecDeque;

use super::awaited::Awaited;
use super::combining::Combining;
use super::dispatch::Dispatch;
use super::mailbox::{Letters, Mailbox};
use super::matching::Matching;
use super::record::{Activity, Span};
use super::transit::Parcel;
use super::{EngineError, Probe, Simulation};
use tutti_network::{Carried, Carrier, Cursor, MessageModel, Port, Ticket};
use tutti_schedule::{Local, Message, Step};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

/// The progress of a rank.
#[derive(Clone, Copy)]
struct Progress {
    clock: Time,
    port: Port,
    /// When all messages sent so far have arrived, if the rank waits for its sends.
    sent: Time,
    /// Its messages in flight, and whether it waits only for them.
    in_flight: u32,
    held: bool,
    step: u32,
    steps: u32,
    mailbox: Mailbox,
    /// Letters that must be in the mailbox before the next match; zero while not waiting.
    needs: u32,
}

impl Progress {
    /// The state before the first step.
    fn of_all<M: MessageModel>(simulation: &Simulation<'_, M>) -> Vec<Progress> {
        (0..simulation.schedule.shape().ranks)
            .map(|rank| Progress {
                clock: simulation.conditions.start(RankId(rank)),
                port: Port::default(),
                sent: Time::ZERO,
                in_flight: 0,
                held: false,
                step: 0,
                steps: simulation.schedule.steps(RankId(rank)),
                mailbox: Mailbox::EMPTY,
                needs: 0,
            })
            .collect()
    }
}

/// Messages, and the bytes in them.
#[derive(Clone, Copy, Default)]
struct Moved {
    messages: u64,
    bytes: u128,
}

impl Moved {
    fn count(&mut self, messages: usize, each: Bytes) {
        self.messages += messages as u64;
        self.bytes += messages as u128 * u128::from(each.0);
    }
}

/// The state of a run.
pub(super) struct Executor<'a, M: MessageModel, C: Carrier, P: Probe> {
    simulation: &'a Simulation<'a, M>,
    carrier: &'a mut C,
    probe: &'a mut P,
    ranks: Vec<Progress>,
    letters: Letters,
    awaited: Awaited,
    dispatch: Dispatch<'a, M>,
    /// Whether messages are offered to the network, which requests them again, instead of handed
    /// over.
    offers: bool,
    /// The in-network reductions.
    combining: Combining,
    /// The messages of a multicast.
    forked: Vec<(Ticket, Carried)>,
    /// Messages that have just arrived.
    arrived: Vec<Parcel>,
    ready: VecDeque<RankId>,
    /// The current step.
    step: Step,
    matching: Matching,
    waits_for_sends: bool,
    messages: u64,
    bytes: u128,
    /// The surplus of received over sent messages due to multicasts, less that of in-network
    /// reductions.
    copied: Moved,
    combined: Moved,
    /// The first send to a rank that does not exist.
    invalid_send: Option<EngineError>,
}

impl<'a, M: MessageModel, C: Carrier, P: Probe> Executor<'a, M, C, P> {
    pub(super) fn new(
        simulation: &'a Simulation<'a, M>,
        carrier: &'a mut C,
        probe: &'a mut P,
    ) -> Self {
        // A recorded run stores all messages anyway.
        let offers = !P::OBSERVES
            && !simulation.conditions.delay_messages()
            && carrier.prefers_offers().is_some_and(|rate| simulation.model.keeps_order(rate));
        let mut combining = Combining::default();
        if C::IN_NETWORK && carrier.combines() {
            let (found, combines) = Combining::of(simulation, &*carrier);
            carrier.expect(combines);
            combining = found;
        }
        Executor {
            simulation,
            carrier,
            probe,
            ranks: Progress::of_all(simulation),
            letters: Letters::default(),
            awaited: Awaited::default(),
            dispatch: Dispatch::new(simulation),
            offers,
            combining,
            forked: Vec::new(),
            arrived: Vec::new(),
            ready: VecDeque::new(),
            step: Step::new(),
            matching: Matching::default(),
            waits_for_sends: simulation.conditions.waits_for_sends(),
            messages: 0,
            bytes: 0,
            copied: Moved::default(),
            combined: Moved::default(),
            invalid_send: None,
        }
    }

    /// Returns a rank the mailbox of which may hold all messages of its step.
    pub(super) fn next_ready(&mut self) -> Option<RankId> {
        self.ready.pop_front()
    }

    /// The clock of a rank.
    pub(super) fn time_of(&self, rank: RankId) -> Time {
        self.ranks[rank.index()].clock
    }

    /// Runs the network until a message arrives; returns whether one did.
    pub(super) fn next_arrival(&mut self) -> bool {
        let next = if self.offers {
            self.carrier.next_arrival_of(&mut self.dispatch)
        } else if self.dispatch.transit.is_empty() {
            None
        } else {
            self.carrier.next_arrival()
        };
        let Some((ticket, arrival)) = next else { return false };
        let mut arrived = std::mem::take(&mut self.arrived);
        self.dispatch.transit.arrive(ticket, arrival, &mut arrived);
        for parcel in arrived.drain(..) {
            self.hand_over(parcel.source, parcel.destination, parcel.arrival);
            if self.waits_for_sends {
                self.put_arrived(parcel.source, parcel.arrival);
            }
            if P::OBSERVES {
                let Parcel { source, destination, bytes, sent, arrival, .. } = parcel;
                self.probe.sent(source, destination, bytes, sent, arrival);
            }
        }
        self.arrived = arrived;
        true
    }

    /// Notes that a message of a rank that waits for its sends has arrived.
    fn put_arrived(&mut self, source: RankId, arrival: Time) {
        let sender = &mut self.ranks[source.index()];
        sender.sent = arrival.max(sender.sent);
        sender.in_flight -= 1;
        if sender.in_flight == 0 && std::mem::take(&mut sender.held) {
            self.ready.push_back(source);
        }
    }

    /// Puts a message into the mailbox of its receiver, and wakes the receiver.
    #[inline]
    fn hand_over(&mut self, source: RankId, destination: RankId, arrival: Time) {
        if C::CONTENDED && self.awaited.take(destination, source) {
            self.take_at_once(destination, arrival);
            if self.awaited.missing(destination) == Some(0) {
                self.ready.push_back(destination);
            }
            return;
        }
        let receiver = &mut self.ranks[destination.index()];
        self.letters.put(&mut receiver.mailbox, source, arrival);
        if receiver.mailbox.count() == receiver.needs {
            self.ready.push_back(destination);
        }
    }

    /// Receives a message on arrival: only its arrival time and the rank's clock matter.
    #[inline]
    fn take_at_once(&mut self, rank: RankId, arrival: Time) {
        let progress = &mut self.ranks[rank.index()];
        let (model, clock) = (self.simulation.model, progress.clock);
        progress.clock = model.receive(&mut progress.port, clock, arrival, Bytes(0));
    }

    /// Makes a rank wait by bit mask if messages arrive in order of time; receives messages that
    /// have arrived.
    fn await_rest(&mut self, rank: RankId) {
        let sources = self.step.recvs.iter().map(|recv| recv.peer);
        let of = self.ranks.len();
        if !self.offers || self.waits_for_sends || !self.awaited.wait_for(rank, of, sources) {
            return;
        }
        let progress = &mut self.ranks[rank.index()];
        progress.needs = 0;
        let awaited = &mut self.awaited;
        let is_awaited = |source| awaited.take(rank, source);
        let arrivals = self.matching.pick(&mut self.letters, &mut progress.mailbox, is_awaited);
        for arrival in arrivals {
            self.take_at_once(rank, arrival);
        }
    }

    /// Delays the first step of a rank by the launch, which neither its speed nor noise affects.
    pub(super) fn launch(&mut self, rank: RankId) {
        let called = self.ranks[rank.index()].clock;
        let launched = called + self.simulation.costs.launch;
        self.ranks[rank.index()].clock = launched;
        if P::OBSERVES {
            self.record_span(rank, 0, Activity::Launch, (called, launched), None, Bytes(0));
        }
    }

    /// Resumes a waiting rank.
    pub(super) fn resume(&mut self, rank: RankId) {
        self.load_step(rank);
        if self.receive_all(rank) {
            self.end_step(rank);
            self.advance(rank);
        }
    }

    /// Runs a rank from the start of its next step until it blocks or completes.
    pub(super) fn advance(&mut self, rank: RankId) {
        while self.ranks[rank.index()].step < self.ranks[rank.index()].steps {
            self.load_step(rank);
            self.begin_step(rank);
            if !self.receive_all(rank) {
                return;
            }
            self.end_step(rank);
        }
    }

    #[inline]
    fn load_step(&mut self, rank: RankId) {
        self.step.clear();
        let step = self.ranks[rank.index()].step;
        self.simulation.schedule.step(rank, step, &mut self.step);
    }

    /// Noise, then the step's sends in order.
    fn begin_step(&mut self, rank: RankId) {
        let Progress { clock: before, mut port, step, .. } = self.ranks[rank.index()];
        let conditions = &self.simulation.conditions;
        let ready = conditions.done(rank, before, conditions.before_step(rank, step));
        let mut clock = ready;
        port.start_burst();
        if C::IN_NETWORK {
            self.carrier.begin_step(rank);
        }
        if P::OBSERVES {
            self.record_span(rank, step, Activity::Noise, (before, ready), None, Bytes(0));
        }
        let mut index = 0;
        while index < self.step.sends.len() {
            if let Some(run) = self.forked_from(index) {
                clock = self.fork(rank, step, run, clock, &mut port);
                index = run.end as usize;
            } else {
                clock = self.send(rank, step, index, clock, &mut port);
                index += 1;
            }
        }
        clock = self.detour(rank, (ready, clock));
        let progress = &mut self.ranks[rank.index()];
        progress.clock = clock;
        progress.port = port;
    }

    /// Sends the `index`-th message of the current step; returns when the rank is free.
    #[inline]
    fn send(&mut self, rank: RankId, step: u32, index: usize, now: Time, port: &mut Port) -> Time {
        let Simulation { layout, model, conditions, .. } = self.simulation;
        let Message { peer, chunks, .. } = self.step.sends[index];
        let bytes = layout.bytes(chunks);
        let nth = u32::try_from(index).unwrap_or(u32::MAX);
        let at = Cursor { rank, step, index: nth, ready: now, port: *port };
        let sent = model.send(port, now, bytes);
        let arrival = sent.arrival + conditions.late((rank, step, nth), peer, bytes);
        self.messages += 1;
        self.bytes += u128::from(bytes.0);
        if peer.index() >= self.ranks.len() {
            self.note_invalid_send(rank, step, peer);
            return sent.free;
        }
        if P::OBSERVES {
            self.record_span(rank, step, Activity::Send, (now, sent.free), Some(peer), bytes);
        }
        if self.waits_for_sends {
            let sender = &mut self.ranks[rank.index()];
            if C::CONTENDED {
                sender.in_flight += 1;
            } else {
                sender.sent = arrival.max(sender.sent);
            }
        }
        if C::CONTENDED {
            let message = Carried { source: rank, destination: peer, bytes, arrival };
            self.give(&at, message);
            return sent.free;
        }
        self.hand_over(rank, peer, arrival);
        if P::OBSERVES {
            self.probe.sent(rank, peer, bytes, now, arrival);
        }
        sent.free
    }

    /// Hands a message to a network with contention.
    #[inline]
    fn give(&mut self, at: &Cursor, message: Carried) {
        if self.offers && message.source != message.destination {
            return self.carrier.offer(at, message);
        }
        let pair = (message.source, message.destination);
        let ticket = self.dispatch.transit.send(pair, message.bytes, at.ready);
        let combine = if C::IN_NETWORK && self.carrier.combines() {
            let contributes = self.step.contributions().any(|send| send == at.index);
            contributes.then(|| self.combining.next(pair.0, pair.1)).flatten()
        } else {
            None
        };
        match combine {
            Some(combine) => self.carrier.contribute(combine, ticket, message),
            None => self.carrier.carry(ticket, message),
        }
    }

    /// Receives the step's messages if all have arrived; else notes how many letters the next match
    /// requires.
    fn receive_all(&mut self, rank: RankId) -> bool {
        let progress = &mut self.ranks[rank.index()];
        if progress.in_flight > 0 {
            progress.needs = 0;
            progress.held = true;
            return false;
        }
        if C::CONTENDED && self.awaited.missing(rank).is_some() {
            self.awaited.end(rank);
        } else {
            let mailbox = &mut progress.mailbox;
            let missing = self.matching.run(&self.step.recvs, &mut self.letters, mailbox);
            if missing > 0 {
                progress.needs = progress.mailbox.count() + missing;
                self.await_rest(rank);
                return false;
            }
            progress.needs = 0;
            for index in 0..self.matching.matched.len() {
                let (arrival, position) = self.matching.matched[index];
                self.receive(rank, arrival, position);
            }
        }
        self.wait_for_sends(rank);
        let now = self.ranks[rank.index()].clock;
        self.ranks[rank.index()].clock = self.detour(rank, (now, now));
        true
    }

    /// Zero, if a rank may continue while its messages are in flight.
    #[inline]
    fn wait_for_sends(&mut self, rank: RankId) {
        let Progress { clock: now, sent, step, .. } = self.ranks[rank.index()];
        if sent > now {
            self.ranks[rank.index()].clock = sent;
            if P::OBSERVES {
                self.record_span(rank, step, Activity::Wait, (now, sent), None, Bytes(0));
            }
        }
    }

    /// When a rank that handles messages from `start` to `end` is free, including detours.
    #[inline]
    fn detour(&mut self, rank: RankId, (start, end): (Time, Time)) -> Time {
        let done = self.simulation.conditions.done(rank, start, end - start);
        if P::OBSERVES {
            let step = self.ranks[rank.index()].step;
            self.record_span(rank, step, Activity::Noise, (end, done), None, Bytes(0));
        }
        done
    }

    #[inline]
    fn receive(&mut self, rank: RankId, arrival: Time, position: u32) {
        let Simulation { layout, model, .. } = self.simulation;
        let Message { peer, chunks, .. } = self.step.recvs[position as usize];
        let bytes = layout.bytes(chunks);
        let Progress { clock: now, step, .. } = self.ranks[rank.index()];
        // With contention, the ejection port has already accounted for the bytes.
        let passing = if C::CONTENDED { Bytes(0) } else { bytes };
        let rest = C::IN_NETWORK && self.carrier.combines() && self.is_combined(rank, position);
        let progress = &mut self.ranks[rank.index()];
        let held = if rest {
            self.combined.count(1, bytes);
            arrival.max(now)
        } else {
            model.receive(&mut progress.port, now, arrival, passing)
        };
        progress.clock = held;
        if P::OBSERVES {
            let here = arrival.max(now);
            self.record_span(rank, step, Activity::Wait, (now, here), Some(peer), bytes);
            self.record_span(rank, step, Activity::Recv, (here, held), Some(peer), bytes);
            self.probe.received(peer, rank, arrival, held);
        }
    }

    /// The step's local ops in order.
    fn end_step(&mut self, rank: RankId) {
        let step = self.ranks[rank.index()].step;
        // The network has done its reductions; reductions of combines come first.
        let in_network = C::IN_NETWORK && self.carrier.combines();
        let folded = if in_network { self.step.combines().count() } else { 0 };
        for index in 0..self.step.locals.len() {
            let (activity, nominal, bytes) = self.local(self.step.locals[index]);
            let nominal = if index < folded { self.folding(rank, index) } else { nominal };
            let asleep = activity == Activity::Sleep;
            let conditions = &self.simulation.conditions;
            let now = self.ranks[rank.index()].clock;
            let end = if asleep {
                now + nominal
            } else {
                conditions.done(rank, now, conditions.local(rank, nominal))
            };
            self.ranks[rank.index()].clock = end;
            if P::OBSERVES {
                self.record_span(rank, step, activity, (now, end), None, bytes);
            }
        }
        self.ranks[rank.index()].step = step + 1;
    }

    /// The activity, nominal duration and bytes of a local op.
    #[inline]
    fn local(&self, local: Local) -> (Activity, Time, Bytes) {
        let Simulation { layout, costs, .. } = self.simulation;
        match local {
            Local::Reduce { operands, chunks, .. } => {
                let bytes = layout.bytes(chunks);
                (Activity::Reduce, costs.reduce(operands.len(), bytes), bytes)
            }
            Local::Copy { chunks, .. } => {
                let bytes = layout.bytes(chunks);
                (Activity::Copy, costs.copy.of(bytes), bytes)
            }
            Local::Compute { duration } => (Activity::Compute, duration, Bytes(0)),
            Local::Sleep { duration } => (Activity::Sleep, duration, Bytes(0)),
        }
    }

    fn record_span(
        &mut self,
        rank: RankId,
        step: u32,
        activity: Activity,
        (start, end): (Time, Time),
        peer: Option<RankId>,
        bytes: Bytes,
    ) {
        let channel = 0;
        self.probe.span(Span { rank, channel, step, activity, start, end, peer, bytes });
    }
}
