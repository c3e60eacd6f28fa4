//! The executor of traces: events in order of time, on any network.
//!
//! An operation is ready when its dependencies are satisfied. A computation occupies its stream for
//! its duration, a send for the overhead of the model, and a receive likewise once its message has
//! arrived. A posted receive does not occupy its stream while it waits. A timed collective occupies
//! its stream from its start on the rank, and ends its duration after the last rank of its group has
//! started it. All streams of a rank share its network port.
//!
//! The executor of schedules ([`crate::Simulation`]) runs a rank until it blocks, in causal order.
//! That is not correct here: streams of a rank compete for one port, so the order of time matters.
//! Both use the same models, ports and networks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::{AtomicBool, Ordering};

use super::graph::{NONE, TraceGraph};
use super::matching::Matching;
use super::narrow::Narrow;
use super::{TraceError, kind};
use crate::{Conditions, EngineError};
use tutti_network::{Carried, EventQueue, MessageModel, Port, Progress, Stepped, Ticket};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

/// The most blocked ranks that an error lists.
const LISTED: usize = 16;

/// The inputs of a run.
pub struct TraceRun<'a, M: MessageModel> {
    graph: &'a TraceGraph,
    model: &'a M,
    conditions: Conditions<'a>,
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceOutcome {
    /// When the last operation of each rank completes.
    pub finish: Vec<Time>,
    /// Time that the operations of each rank occupy its streams, summed.
    pub busy: Vec<Time>,
    /// The number of messages.
    pub messages: u64,
    /// Bytes in them.
    pub bytes: u128,
}

impl<'a, M: MessageModel> TraceRun<'a, M> {
    /// Checks the peers of a trace.
    ///
    /// # Errors
    /// When a peer is not a rank of the trace.
    pub fn new(
        graph: &'a TraceGraph,
        model: &'a M,
        conditions: Conditions<'a>,
    ) -> Result<Self, TraceError> {
        graph.check_peers()?;
        Ok(TraceRun { graph, model, conditions })
    }

    /// Runs to completion, or until `stop` is set; without a network, messages do not contend.
    ///
    /// # Errors
    /// When ranks wait forever, messages are never received, a message has no path, the run is
    /// stopped, or the time is out of range.
    pub fn run<'n>(
        &self,
        network: Option<&'n mut (dyn Stepped + 'n)>,
        stop: &AtomicBool,
    ) -> Result<TraceOutcome, EngineError> {
        let mut executor = Executor::new(self, network);
        executor.start();
        while let Some((now, event)) = executor.next() {
            executor.handle(now, event)?;
            if stop.load(Ordering::Relaxed) {
                return Err(EngineError::Stopped);
            }
        }
        executor.finish()
    }
}

/// An event of an operation; [`ARRIVES`] marks the arrival of its message.
#[derive(Clone, Copy)]
struct Event {
    serial: u64,
    operation: u32,
    /// The rank of the operation, or the destination of the message.
    rank: u32,
}

/// The bit of an operation whose message arrives; else its dependencies are satisfied.
const ARRIVES: u32 = 1 << 31;

/// What happens next.
enum Next {
    Event(Event),
    /// A stream may be free.
    Wake(u32),
}

/// A serial number and an operation; the lowest serial first.
type Waiting = BinaryHeap<Reverse<(u64, u32)>>;

struct Stream {
    rank: u32,
    free: Time,
    /// When it is woken next; `Time::MAX` if it is not.
    wakes: Time,
    /// Computations and receives.
    waiting: Waiting,
    /// Sends, which also wait for the port.
    sends: Waiting,
}

impl Stream {
    fn of_rank(rank: u32) -> Stream {
        let (waiting, sends) = (Waiting::new(), Waiting::new());
        Stream { rank, free: Time::ZERO, wakes: Time::MAX, waiting, sends }
    }
}

struct Executor<'r, 'n, M: MessageModel> {
    run: &'r TraceRun<'r, M>,
    network: Option<&'n mut (dyn Stepped + 'n)>,
    in_flight: usize,
    /// Serial numbers ascend, so that events of a time are in their order.
    events: EventQueue<Event>,
    /// The time and the serial number of the operation that waits, and its stream. An operation
    /// keeps its serial number, so that wakes have a separate queue.
    wakes: BinaryHeap<Reverse<(Time, u64, u32)>>,
    serial: u64,
    needs: Narrow,
    streams: Vec<Stream>,
    ports: Vec<Port>,
    /// Whether the last operation of a rank was a send, so that the burst continues.
    bursts: Vec<bool>,
    matching: Matching,
    /// The started ranks of timed collectives by number: operations, ranks, and since when.
    meetings: BTreeMap<i64, Vec<(u32, u32, Time)>>,
    outcome: TraceOutcome,
    completed: usize,
}

impl<'r, 'n, M: MessageModel> Executor<'r, 'n, M> {
    fn new(run: &'r TraceRun<'r, M>, network: Option<&'n mut (dyn Stepped + 'n)>) -> Self {
        let graph = run.graph;
        let ranks = graph.ranks();
        let numbered = (0..).zip(0..ranks);
        let streams = numbered
            .flat_map(|(rank, at)| graph.streams_of(at).map(move |_| Stream::of_rank(rank)));
        Executor {
            run,
            network,
            in_flight: 0,
            events: EventQueue::new(),
            wakes: BinaryHeap::new(),
            serial: 0,
            needs: graph.needs(),
            streams: streams.collect(),
            ports: vec![Port::default(); ranks],
            bursts: vec![false; ranks],
            matching: Matching::new(graph),
            meetings: BTreeMap::new(),
            outcome: TraceOutcome {
                finish: vec![Time::ZERO; ranks],
                busy: vec![Time::ZERO; ranks],
                ..TraceOutcome::default()
            },
            completed: 0,
        }
    }

    /// Starts the operations without dependencies: rank by rank, in the order of followers.
    fn start(&mut self) {
        let graph = self.run.graph;
        for (rank, at) in (0..).zip(0..graph.ranks()) {
            for chosen in [kind::SEND, kind::RECEIVE, kind::TIMED, kind::COMPUTE] {
                for operation in graph.of_rank(at) {
                    if graph.kind(operation) == chosen && self.needs.get(operation as usize) == 0 {
                        self.push(Time::ZERO, operation, rank);
                    }
                }
            }
        }
    }

    fn push(&mut self, at: Time, operation: u32, rank: u32) {
        self.serial += 1;
        self.events.push(at, Event { serial: self.serial, operation, rank });
    }

    /// The next event: of the network, if it is not later than the next event of the ranks.
    fn next(&mut self) -> Option<(Time, Next)> {
        let queued = self.events.earliest().unwrap_or(Time::MAX);
        let (wake, before) =
            self.wakes.peek().map_or((Time::MAX, 0), |Reverse((time, serial, _))| (*time, *serial));
        while self.in_flight > 0 {
            let Some(network) = &mut self.network else { break };
            match network.progress(queued.min(wake)) {
                Some(Progress::Arrived(Ticket(message), time)) => {
                    self.in_flight -= 1;
                    self.serial += 1;
                    let rank = self.run.graph.peer(message).unsigned_abs();
                    let (serial, operation) = (self.serial, message | ARRIVES);
                    return Some((time, Next::Event(Event { serial, operation, rank })));
                }
                Some(Progress::Left(..)) => {}
                None => break,
            }
        }
        if queued <= wake && queued < Time::MAX {
            self.events.advance_to(queued);
            let first = self.events.present().next().map_or(u64::MAX, |event| event.serial);
            if queued < wake || first < before {
                return self.events.pop().map(|event| (queued, Next::Event(event)));
            }
        }
        self.wakes.pop().map(|Reverse((time, _, stream))| (time, Next::Wake(stream)))
    }

    fn handle(&mut self, now: Time, next: Next) -> Result<(), EngineError> {
        let Event { serial, operation, rank } = match next {
            Next::Event(event) => event,
            Next::Wake(stream) => return self.wake(stream, now),
        };
        if operation & ARRIVES != 0 {
            let message = operation & !ARRIVES;
            return match self.matching.arrived(message, (rank, now), self.run.graph) {
                Some(receive) => self.enqueue((receive, rank), serial, now),
                None => Ok(()),
            };
        }
        if self.run.graph.kind(operation) != kind::RECEIVE {
            return self.enqueue((operation, rank), serial, now);
        }
        self.release((operation, rank), now, true);
        if self.matching.post(operation, rank, self.run.graph) {
            return self.enqueue((operation, rank), serial, now);
        }
        Ok(())
    }

    /// Executes an operation if its stream and its port are free; else it waits.
    fn enqueue(
        &mut self,
        (operation, rank): (u32, u32),
        serial: u64,
        now: Time,
    ) -> Result<(), EngineError> {
        let sends = self.run.graph.kind(operation) == kind::SEND;
        let at = self.run.graph.stream(rank, operation);
        let stream = &mut self.streams[at];
        let port = self.run.model.next_send(&self.ports[rank as usize]);
        if stream.free.max(if sends { port } else { Time::ZERO }) <= now {
            self.execute((operation, rank), now)?;
        } else if sends {
            stream.sends.push(Reverse((serial, operation)));
        } else {
            stream.waiting.push(Reverse((serial, operation)));
        }
        self.schedule(at);
        Ok(())
    }

    /// The operation of a stream that can start first: (time, serial, whether it is a send).
    fn first_waiting(&self, stream: usize) -> Option<(Time, u64, bool)> {
        let Stream { rank, free, waiting, sends, .. } = &self.streams[stream];
        let other = waiting.peek().map(|&Reverse((serial, _))| (*free, serial, false));
        let send = sends.peek().map(|&Reverse((serial, _))| {
            let port = self.run.model.next_send(&self.ports[*rank as usize]);
            (port.max(*free), serial, true)
        });
        match (other, send) {
            (Some(other), Some(send)) => Some(other.min(send)),
            (other, send) => other.or(send),
        }
    }

    /// Wakes a stream when its first operation can start.
    fn schedule(&mut self, stream: usize) {
        let Some((time, serial, _)) = self.first_waiting(stream) else { return };
        // `Time::MAX`: until a timed collective ends.
        if time < self.streams[stream].wakes {
            self.streams[stream].wakes = time;
            let number = u32::try_from(stream).unwrap_or(NONE);
            self.wakes.push(Reverse((time, serial, number)));
        }
    }

    fn wake(&mut self, stream: u32, now: Time) -> Result<(), EngineError> {
        let at = stream as usize;
        if self.streams[at].wakes != now {
            return Ok(());
        }
        self.streams[at].wakes = Time::MAX;
        // Another stream may have used the port since.
        if let Some((.., sends)) = self.first_waiting(at).filter(|&(time, ..)| time <= now) {
            let Stream { rank, waiting, sends: of_sends, .. } = &mut self.streams[at];
            let (rank, chosen) = (*rank, if sends { of_sends } else { waiting });
            if let Some(Reverse((_, operation))) = chosen.pop() {
                self.execute((operation, rank), now)?;
            }
        }
        self.schedule(at);
        Ok(())
    }

    fn execute(&mut self, (operation, rank): (u32, u32), now: Time) -> Result<(), EngineError> {
        let graph = self.run.graph;
        let kind = graph.kind(operation);
        let end = match kind {
            kind::SEND => self.send((operation, rank), now)?,
            kind::RECEIVE => {
                let (message, arrival) = self.matching.arrival(operation);
                // With contention, the ejection port has already accounted for the bytes.
                let bytes = if self.network.is_some() { 0 } else { graph.amount(message) };
                let port = &mut self.ports[rank as usize];
                self.run.model.receive(port, now, arrival, Bytes(bytes))
            }
            kind::TIMED => return self.meet((operation, rank), now),
            _ => now + Time::from_ps(graph.amount(operation)),
        };
        self.bursts[rank as usize] = kind == kind::SEND;
        if kind != kind::RECEIVE {
            self.release((operation, rank), now, true);
        }
        self.complete((operation, rank), (now, end))
    }

    /// A rank starts a timed collective, which ends on all of its ranks after the last has started.
    fn meet(&mut self, (operation, rank): (u32, u32), now: Time) -> Result<(), EngineError> {
        let graph = self.run.graph;
        self.bursts[rank as usize] = false;
        self.streams[graph.stream(rank, operation)].free = Time::MAX;
        self.release((operation, rank), now, true);
        let tag = graph.tag(operation);
        let started = self.meetings.entry(tag).or_default();
        started.push((operation, rank, now));
        if started.len() < graph.peer(operation).unsigned_abs() as usize {
            return Ok(());
        }
        for (member, rank, since) in self.meetings.remove(&tag).unwrap_or_default() {
            let duration = Time::from_ps(graph.amount(member));
            self.complete((member, rank), (since, now + duration))?;
            self.schedule(graph.stream(rank, member));
        }
        Ok(())
    }

    /// An operation occupies its stream from a start to an end.
    fn complete(
        &mut self,
        (operation, rank): (u32, u32),
        (start, end): (Time, Time),
    ) -> Result<(), EngineError> {
        let stream = self.run.graph.stream(rank, operation);
        self.streams[stream].free = end;
        let at = rank as usize;
        self.outcome.busy[at] += end - start;
        self.outcome.finish[at] = self.outcome.finish[at].max(end);
        if end > Time::LATEST {
            return Err(EngineError::TimeOverflow { rank: RankId(rank) });
        }
        self.release((operation, rank), end, false);
        self.completed += 1;
        Ok(())
    }

    /// Hands a message to the network; returns when the stream is free.
    fn send(&mut self, (operation, rank): (u32, u32), now: Time) -> Result<Time, EngineError> {
        let graph = self.run.graph;
        let (source, to) = (RankId(rank), graph.peer(operation).unsigned_abs());
        let destination = RankId(to);
        let step = operation - graph.of_rank(rank as usize).start;
        let reaches = self.run.conditions.distance.is_none_or(|d| d.reaches(source, destination))
            && self.network.as_ref().is_none_or(|network| network.connects(source, destination));
        if !reaches {
            return Err(EngineError::NoPath { sender: source, step, receiver: destination });
        }
        let port = &mut self.ports[rank as usize];
        if !self.bursts[rank as usize] {
            port.start_burst();
        }
        let bytes = Bytes(graph.amount(operation));
        let sent = self.run.model.send(port, now, bytes);
        let late = self.run.conditions.late((source, step, 0), destination, bytes);
        let arrival = sent.arrival + late;
        self.outcome.messages += 1;
        self.outcome.bytes += u128::from(bytes.0);
        self.matching.sent(operation, graph);
        match &mut self.network {
            Some(network) => {
                let message = Carried { source, destination, bytes, arrival };
                network.send(Ticket(operation), message);
                self.in_flight += 1;
            }
            None => self.push(arrival, operation | ARRIVES, to),
        }
        Ok(sent.free)
    }

    /// Satisfies the dependencies on the start or on the completion of an operation.
    fn release(&mut self, (operation, rank): (u32, u32), now: Time, on_start: bool) {
        let graph = self.run.graph;
        for at in graph.followers(operation) {
            let follower = graph.follower(operation, at);
            if follower.on_start != on_start {
                continue;
            }
            let next = follower.operation as usize;
            let ready = &mut self.matching.times[next];
            *ready = (*ready).max(now);
            let ready = *ready;
            if self.needs.decrement(next) {
                self.push(ready, follower.operation, rank);
            }
        }
    }

    fn finish(self) -> Result<TraceOutcome, EngineError> {
        if self.in_flight > 0 {
            let since = self.outcome.finish.iter().copied().max().unwrap_or_default();
            let (messages, deadlock_cycle) = (self.in_flight, Vec::new());
            return Err(EngineError::NetworkDeadlock { since, messages, deadlock_cycle });
        }
        let graph = self.run.graph;
        if self.completed < graph.operations() {
            return Err(self.blocked());
        }
        let mut sends = (0..graph.ranks())
            .flat_map(|rank| graph.of_rank(rank))
            .filter(|&at| graph.kind(at) == kind::SEND && self.matching.is_unmatched(at));
        if let Some(first) = sends.next() {
            let sender = RankId(graph.rank(first));
            let receiver = RankId(graph.peer(first).unsigned_abs());
            let count = 1 + sends.count() as u64;
            return Err(EngineError::Unreceived { count, sender, receiver });
        }
        Ok(self.outcome)
    }

    /// Names the ranks that wait, and the messages that they wait for.
    fn blocked(&self) -> EngineError {
        let graph = self.run.graph;
        let mut waiting = Vec::new();
        let mut stuck = 0;
        for rank in 0..graph.ranks() {
            let needs = |at: u32| self.needs.get(at as usize) > 0;
            let posted = graph.of_rank(rank).find(|&at| {
                let posted = graph.kind(at) == kind::RECEIVE && !needs(at);
                posted && self.matching.is_unmatched(at)
            });
            let mut started = self.meetings.values().flatten().map(|&(at, ..)| at);
            let meets = || started.find(|at| graph.of_rank(rank).contains(at));
            let cyclic = || graph.of_rank(rank).find(|&at| needs(at));
            let Some(at) = posted.or_else(meets).or_else(cyclic) else { continue };
            stuck += 1;
            if waiting.len() < LISTED {
                waiting.push(self.explained(at));
            }
        }
        EngineError::TraceDeadlock { waiting: waiting.join("; "), stuck, ranks: graph.ranks() }
    }

    fn explained(&self, at: u32) -> String {
        let graph = self.run.graph;
        let (rank, index) = graph.place(at);
        let needs = self.needs.get(at as usize);
        if needs == 0 && graph.kind(at) == kind::TIMED {
            return format!("{rank} in operation {index} waits for other ranks of its collective");
        }
        if needs > 0 {
            return format!("{rank} in operation {index} has dependencies that never complete");
        }
        let (peer, tag) = (graph.peer(at), graph.tag(at));
        let source =
            u32::try_from(peer).map_or("any rank".to_owned(), |peer| RankId(peer).to_string());
        let tag = if tag < 0 { "any tag".to_owned() } else { format!("tag {tag}") };
        format!("{rank} in operation {index} waits for {source} ({tag})")
    }
}
