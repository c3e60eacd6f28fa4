//! The simple executor of traces, for tests: one heap of events, lists of waiting operations, and
//! queues of messages by source, destination and tag.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::graph::TraceGraph;
use super::{ANY, TraceOutcome, kind};
use tutti_network::{MessageModel, Port};
use tutti_units::{Bytes, Time};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ready(u32),
    Wake(usize),
    Arrive(u32),
}

#[derive(Clone, Default)]
struct Stream {
    free: Time,
    wakes: Option<Time>,
    /// Serial numbers and operations.
    waiting: Vec<(u64, u32)>,
}

type Channel = (u32, u32, i64);

/// Runs a trace without timed collectives, without contention; `None` if it does not finish, or
/// messages are never received.
pub(super) fn run<M: MessageModel>(graph: &TraceGraph, model: &M) -> Option<TraceOutcome> {
    let (ranks, operations, needs) = (graph.ranks(), graph.operations(), graph.needs());
    let mut oracle = Oracle {
        graph,
        model,
        events: BinaryHeap::new(),
        serial: 0,
        needs: (0..operations).map(|at| needs.get(at)).collect(),
        ready: vec![Time::ZERO; operations],
        streams: vec![Stream::default(); graph.streams_of(ranks - 1).end],
        ports: vec![Port::default(); ranks],
        bursts: vec![false; ranks],
        sends: BTreeMap::new(),
        receives: BTreeMap::new(),
        posted: vec![Vec::new(); ranks],
        arrived: vec![Vec::new(); ranks],
        partner: vec![None; operations],
        arrival: vec![None; operations],
        completed: 0,
        outcome: TraceOutcome {
            finish: vec![Time::ZERO; ranks],
            busy: vec![Time::ZERO; ranks],
            ..TraceOutcome::default()
        },
    };
    oracle.start();
    while let Some(Reverse((now, serial, event))) = oracle.events.pop() {
        oracle.handle(now, serial, event);
    }
    let unmatched =
        |&(at, partner): &(u32, &Option<u32>)| graph.kind(at) == kind::SEND && partner.is_none();
    let lost = (0..).zip(&oracle.partner).any(|each| unmatched(&each));
    (oracle.completed == operations && !lost).then_some(oracle.outcome)
}

struct Oracle<'a, M> {
    graph: &'a TraceGraph,
    model: &'a M,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    serial: u64,
    needs: Vec<u64>,
    ready: Vec<Time>,
    streams: Vec<Stream>,
    ports: Vec<Port>,
    bursts: Vec<bool>,
    /// Unmatched sends and receives by channel.
    sends: BTreeMap<Channel, VecDeque<u32>>,
    receives: BTreeMap<Channel, VecDeque<u32>>,
    /// By rank: open receives, and messages that have arrived unmatched.
    posted: Vec<Vec<u32>>,
    arrived: Vec<Vec<u32>>,
    partner: Vec<Option<u32>>,
    arrival: Vec<Option<Time>>,
    completed: usize,
    outcome: TraceOutcome,
}

impl<M: MessageModel> Oracle<'_, M> {
    fn start(&mut self) {
        for rank in 0..self.graph.ranks() {
            for chosen in [kind::SEND, kind::RECEIVE, kind::COMPUTE] {
                for at in self.graph.of_rank(rank) {
                    if self.needs[at as usize] == 0 && self.graph.kind(at) == chosen {
                        self.push(Time::ZERO, Event::Ready(at));
                    }
                }
            }
        }
    }

    fn push(&mut self, at: Time, event: Event) {
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, event)));
    }

    fn handle(&mut self, now: Time, serial: u64, event: Event) {
        match event {
            Event::Wake(stream) => self.wake(stream, now),
            Event::Ready(at) if self.graph.kind(at) == kind::RECEIVE => {
                self.release(at, now, true);
                if self.post(at) {
                    self.enqueue(at, serial, now);
                }
            }
            Event::Ready(at) => self.enqueue(at, serial, now),
            Event::Arrive(message) => {
                if let Some(receive) = self.arrives(message, now) {
                    self.enqueue(receive, serial, now);
                }
            }
        }
    }

    fn stream(&self, at: u32) -> usize {
        self.graph.stream(self.graph.rank(at), at)
    }

    /// When an operation can start.
    fn starts(&self, at: u32) -> Time {
        let free = self.streams[self.stream(at)].free;
        let port = self.model.next_send(&self.ports[self.graph.rank(at) as usize]);
        if self.graph.kind(at) == kind::SEND { free.max(port) } else { free }
    }

    fn enqueue(&mut self, at: u32, serial: u64, now: Time) {
        let stream = self.stream(at);
        if self.starts(at) <= now {
            self.execute(at, now);
        } else {
            self.streams[stream].waiting.push((serial, at));
        }
        self.schedule(stream);
    }

    fn first(&self, stream: usize) -> Option<(Time, u64, u32)> {
        let waiting = self.streams[stream].waiting.iter();
        waiting.map(|&(serial, at)| (self.starts(at), serial, at)).min()
    }

    fn schedule(&mut self, stream: usize) {
        let Some((time, serial, _)) = self.first(stream) else { return };
        if self.streams[stream].wakes.is_none_or(|wakes| time < wakes) {
            self.streams[stream].wakes = Some(time);
            self.events.push(Reverse((time, serial, Event::Wake(stream))));
        }
    }

    fn wake(&mut self, stream: usize, now: Time) {
        if self.streams[stream].wakes != Some(now) {
            return;
        }
        self.streams[stream].wakes = None;
        if let Some((.., at)) = self.first(stream).filter(|&(time, ..)| time <= now) {
            self.streams[stream].waiting.retain(|&(_, waits)| waits != at);
            self.execute(at, now);
        }
        self.schedule(stream);
    }

    fn execute(&mut self, at: u32, now: Time) {
        let (kind, rank) = (self.graph.kind(at), self.graph.rank(at) as usize);
        let end = match kind {
            kind::SEND => self.send(at, now),
            kind::RECEIVE => {
                let message = self.partner[at as usize].unwrap();
                let arrival = self.arrival[message as usize].unwrap();
                let bytes = Bytes(self.graph.amount(message));
                self.model.receive(&mut self.ports[rank], now, arrival, bytes)
            }
            _ => now + Time::from_ps(self.graph.amount(at)),
        };
        self.bursts[rank] = kind == kind::SEND;
        if kind != kind::RECEIVE {
            self.release(at, now, true);
        }
        let stream = self.stream(at);
        self.streams[stream].free = end;
        self.outcome.busy[rank] += end - now;
        self.outcome.finish[rank] = self.outcome.finish[rank].max(end);
        self.release(at, end, false);
        self.completed += 1;
    }

    fn release(&mut self, at: u32, now: Time, on_start: bool) {
        for position in self.graph.followers(at) {
            let follower = self.graph.follower(at, position);
            if follower.on_start == on_start {
                let next = follower.operation as usize;
                self.ready[next] = self.ready[next].max(now);
                self.needs[next] -= 1;
                if self.needs[next] == 0 {
                    self.push(self.ready[next], Event::Ready(follower.operation));
                }
            }
        }
    }

    fn send(&mut self, at: u32, now: Time) -> Time {
        let rank = self.graph.rank(at) as usize;
        if !self.bursts[rank] {
            self.ports[rank].start_burst();
        }
        let bytes = Bytes(self.graph.amount(at));
        let sent = self.model.send(&mut self.ports[rank], now, bytes);
        self.outcome.messages += 1;
        self.outcome.bytes += u128::from(bytes.0);
        let channel = self.channel(at);
        match self.receives.entry(channel).or_default().pop_front() {
            Some(receive) => self.pair(at, receive),
            None => self.sends.entry(channel).or_default().push_back(at),
        }
        self.push(sent.arrival, Event::Arrive(at));
        sent.free
    }

    fn channel(&self, at: u32) -> Channel {
        let (rank, peer) = (self.graph.rank(at), self.graph.peer(at).unsigned_abs());
        let sends = self.graph.kind(at) == kind::SEND;
        let (source, destination) = if sends { (rank, peer) } else { (peer, rank) };
        (source, destination, self.graph.tag(at))
    }

    fn pair(&mut self, send: u32, receive: u32) {
        self.partner[send as usize] = Some(receive);
        self.partner[receive as usize] = Some(send);
    }

    /// Posts a receive; returns whether its message has arrived.
    fn post(&mut self, receive: u32) -> bool {
        let rank = self.graph.rank(receive) as usize;
        let mut channel = self.channel(receive);
        if self.graph.is_open(receive) {
            let mut arrived = self.arrived[rank].iter().copied();
            let fits = |&message: &u32| {
                self.partner[message as usize].is_none() && self.accepts(receive, message)
            };
            let Some(message) = arrived.find(fits) else {
                self.posted[rank].push(receive);
                return false;
            };
            channel = self.channel(message);
        }
        let Some(message) = self.sends.entry(channel).or_default().pop_front() else {
            self.receives.entry(channel).or_default().push_back(receive);
            return false;
        };
        self.pair(message, receive);
        self.arrival[message as usize].is_some()
    }

    /// Notes an arrival; returns the receive that has the message now.
    fn arrives(&mut self, message: u32, now: Time) -> Option<u32> {
        self.arrival[message as usize] = Some(now);
        if self.partner[message as usize].is_some() {
            return self.partner[message as usize];
        }
        let channel = self.channel(message);
        let rank = channel.1 as usize;
        self.arrived[rank].push(message);
        let mut posted = self.posted[rank].iter();
        let at = posted.position(|&receive| self.accepts(receive, message))?;
        let receive = self.posted[rank].remove(at);
        // Messages of a channel do not overtake each other.
        let oldest = self.sends.entry(channel).or_default().pop_front()?;
        self.pair(oldest, receive);
        self.arrival[oldest as usize].map(|_| receive)
    }

    fn accepts(&self, receive: u32, message: u32) -> bool {
        let (peer, tag) = (self.graph.peer(receive), self.graph.tag(receive));
        let from = peer == ANY || peer.unsigned_abs() == self.graph.rank(message);
        from && (tag == i64::from(ANY) || tag == self.graph.tag(message))
    }
}
