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

use super::graph::Graph;
use super::matching::Matching;
use super::{Operations, TraceError, kind};
use crate::{Conditions, EngineError};
use tutti_network::{Carried, MessageModel, Port, Progress, Stepped, Ticket};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

/// The most blocked ranks that an error lists.
const LISTED: usize = 16;

/// The inputs of a run.
pub struct TraceRun<'a, M: MessageModel> {
    trace: &'a [Operations],
    graph: Graph,
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
    /// Checks a trace.
    ///
    /// # Errors
    /// When columns have different lengths or values are out of range.
    pub fn new(
        trace: &'a [Operations],
        model: &'a M,
        conditions: Conditions<'a>,
    ) -> Result<Self, TraceError> {
        Ok(TraceRun { trace, graph: Graph::of(trace)?, model, conditions })
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

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The dependencies of an operation are satisfied.
    Ready(u32),
    /// A stream may be free.
    Wake(u32),
    /// A message has arrived.
    Arrive(u32),
}

/// A serial number and an operation; the lowest serial first.
type Waiting = BinaryHeap<Reverse<(u64, u32)>>;

#[derive(Default)]
struct Stream {
    free: Time,
    /// When it is woken next.
    wakes: Option<Time>,
    /// Computations and receives.
    waiting: Waiting,
    /// Sends, which also wait for the port.
    sends: Waiting,
}

struct Executor<'r, 'n, M: MessageModel> {
    run: &'r TraceRun<'r, M>,
    network: Option<&'n mut (dyn Stepped + 'n)>,
    in_flight: usize,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    serial: u64,
    needs: Vec<u32>,
    ready: Vec<Time>,
    streams: Vec<Stream>,
    ports: Vec<Port>,
    /// Whether the last operation of a rank was a send, so that the burst continues.
    bursts: Vec<bool>,
    matching: Matching,
    /// The started ranks of timed collectives by number: operations, and since when.
    meetings: BTreeMap<i64, Vec<(u32, Time)>>,
    outcome: TraceOutcome,
    completed: usize,
}

impl<'r, 'n, M: MessageModel> Executor<'r, 'n, M> {
    fn new(run: &'r TraceRun<'r, M>, network: Option<&'n mut (dyn Stepped + 'n)>) -> Self {
        let (operations, ranks) = (run.graph.works.len(), run.trace.len());
        Executor {
            run,
            network,
            in_flight: 0,
            events: BinaryHeap::new(),
            serial: 0,
            needs: run.graph.needs.clone(),
            ready: vec![Time::ZERO; operations],
            streams: (0..run.graph.streams).map(|_| Stream::default()).collect(),
            ports: vec![Port::default(); ranks],
            bursts: vec![false; ranks],
            matching: Matching::new(&run.graph),
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
        let run = self.run;
        for rank in 0..run.trace.len() {
            let own = run.graph.first[rank]..run.graph.first[rank + 1];
            for chosen in [kind::SEND, kind::RECEIVE, kind::TIMED, kind::COMPUTE] {
                for at in own.clone() {
                    if self.needs[at as usize] == 0 && run.graph.works[at as usize].kind == chosen {
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

    /// The next event: of the network, if it is not later than the next event of the ranks.
    fn next(&mut self) -> Option<(Time, (u64, Event))> {
        let until = self.events.peek().map_or(Time::MAX, |Reverse((time, ..))| *time);
        while self.in_flight > 0 {
            let Some(network) = &mut self.network else { break };
            match network.progress(until) {
                Some(Progress::Arrived(Ticket(message), time)) => {
                    self.in_flight -= 1;
                    self.serial += 1;
                    return Some((time, (self.serial, Event::Arrive(message))));
                }
                Some(Progress::Left(..)) => {}
                None => break,
            }
        }
        self.events.pop().map(|Reverse((time, serial, event))| (time, (serial, event)))
    }

    fn handle(&mut self, now: Time, (serial, event): (u64, Event)) -> Result<(), EngineError> {
        match event {
            Event::Ready(operation) => {
                let work = &self.run.graph.works[operation as usize];
                if work.kind != kind::RECEIVE {
                    return self.enqueue(operation, serial, now);
                }
                self.release(operation, now, true);
                if self.matching.post(operation, work, &self.run.graph) {
                    return self.enqueue(operation, serial, now);
                }
            }
            Event::Arrive(message) => {
                if let Some(receive) = self.matching.arrived(message, now, &self.run.graph) {
                    return self.enqueue(receive, serial, now);
                }
            }
            Event::Wake(stream) => return self.wake(stream, now),
        }
        Ok(())
    }

    /// Executes an operation if its stream and its port are free; else it waits.
    fn enqueue(&mut self, operation: u32, serial: u64, now: Time) -> Result<(), EngineError> {
        let work = self.run.graph.works[operation as usize];
        let sends = work.kind == kind::SEND;
        let stream = &mut self.streams[work.stream as usize];
        let port = self.run.model.next_send(&self.ports[work.rank as usize]);
        if stream.free.max(if sends { port } else { Time::ZERO }) <= now {
            self.execute(operation, now)?;
        } else if sends {
            stream.sends.push(Reverse((serial, operation)));
        } else {
            stream.waiting.push(Reverse((serial, operation)));
        }
        self.schedule(work.stream);
        Ok(())
    }

    /// The operation of a stream that can start first: (time, serial, whether it is a send).
    fn first_waiting(&self, stream: u32) -> Option<(Time, u64, bool)> {
        let Stream { free, waiting, sends, .. } = &self.streams[stream as usize];
        let other = waiting.peek().map(|&Reverse((serial, _))| (*free, serial, false));
        let send = sends.peek().map(|&Reverse((serial, operation))| {
            let rank = self.run.graph.works[operation as usize].rank;
            let port = self.run.model.next_send(&self.ports[rank as usize]);
            (port.max(*free), serial, true)
        });
        [other, send].into_iter().flatten().min()
    }

    /// Wakes a stream when its first operation can start.
    fn schedule(&mut self, stream: u32) {
        let Some((time, serial, _)) = self.first_waiting(stream) else { return };
        if time == Time::MAX {
            return; // until a timed collective ends
        }
        let wakes = &mut self.streams[stream as usize].wakes;
        if wakes.is_none_or(|wakes| time < wakes) {
            *wakes = Some(time);
            self.events.push(Reverse((time, serial, Event::Wake(stream))));
        }
    }

    fn wake(&mut self, stream: u32, now: Time) -> Result<(), EngineError> {
        let wakes = &mut self.streams[stream as usize].wakes;
        if *wakes != Some(now) {
            return Ok(());
        }
        *wakes = None;
        // Another stream may have used the port since.
        if let Some((.., sends)) = self.first_waiting(stream).filter(|&(time, ..)| time <= now) {
            let Stream { waiting, sends: of_sends, .. } = &mut self.streams[stream as usize];
            let chosen = if sends { of_sends } else { waiting };
            if let Some(Reverse((_, operation))) = chosen.pop() {
                self.execute(operation, now)?;
            }
        }
        self.schedule(stream);
        Ok(())
    }

    fn execute(&mut self, operation: u32, now: Time) -> Result<(), EngineError> {
        let work = self.run.graph.works[operation as usize];
        let end = match work.kind {
            kind::SEND => self.send(operation, now)?,
            kind::RECEIVE => {
                let (message, arrival) = self.matching.arrival(operation);
                // With contention, the ejection port has already accounted for the bytes.
                let bytes = self.run.graph.works[message as usize].bytes();
                let bytes = if self.network.is_some() { Bytes(0) } else { bytes };
                let port = &mut self.ports[work.rank as usize];
                self.run.model.receive(port, now, arrival, bytes)
            }
            kind::TIMED => return self.meet(operation, now),
            _ => now + work.duration(),
        };
        self.bursts[work.rank as usize] = work.kind == kind::SEND;
        if work.kind != kind::RECEIVE {
            self.release(operation, now, true);
        }
        self.complete(operation, (now, end))
    }

    /// A rank starts a timed collective, which ends on all of its ranks after the last has started.
    fn meet(&mut self, operation: u32, now: Time) -> Result<(), EngineError> {
        let work = self.run.graph.works[operation as usize];
        self.bursts[work.rank as usize] = false;
        self.streams[work.stream as usize].free = Time::MAX;
        self.release(operation, now, true);
        let started = self.meetings.entry(work.tag).or_default();
        started.push((operation, now));
        if started.len() < work.peer.unsigned_abs() as usize {
            return Ok(());
        }
        for (member, since) in self.meetings.remove(&work.tag).unwrap_or_default() {
            let work = self.run.graph.works[member as usize];
            self.complete(member, (since, now + work.duration()))?;
            self.schedule(work.stream);
        }
        Ok(())
    }

    /// An operation occupies its stream from a start to an end.
    fn complete(&mut self, operation: u32, (start, end): (Time, Time)) -> Result<(), EngineError> {
        let work = self.run.graph.works[operation as usize];
        let rank = work.rank as usize;
        self.streams[work.stream as usize].free = end;
        self.outcome.busy[rank] += end - start;
        self.outcome.finish[rank] = self.outcome.finish[rank].max(end);
        if end > Time::LATEST {
            return Err(EngineError::TimeOverflow { rank: RankId(work.rank) });
        }
        self.release(operation, end, false);
        self.completed += 1;
        Ok(())
    }

    /// Hands a message to the network; returns when the stream is free.
    fn send(&mut self, operation: u32, now: Time) -> Result<Time, EngineError> {
        let graph = &self.run.graph;
        let work = &graph.works[operation as usize];
        let (rank, destination) = (RankId(work.rank), RankId(work.peer.unsigned_abs()));
        let step = graph.index(operation);
        let reaches = self.run.conditions.distance.is_none_or(|d| d.reaches(rank, destination))
            && self.network.as_ref().is_none_or(|network| network.connects(rank, destination));
        if !reaches {
            return Err(EngineError::NoPath { sender: rank, step, receiver: destination });
        }
        let port = &mut self.ports[work.rank as usize];
        if !self.bursts[work.rank as usize] {
            port.start_burst();
        }
        let bytes = work.bytes();
        let sent = self.run.model.send(port, now, bytes);
        let arrival = sent.arrival + self.run.conditions.late((rank, step, 0), destination, bytes);
        self.outcome.messages += 1;
        self.outcome.bytes += u128::from(bytes.0);
        self.matching.sent(operation, work, graph);
        match &mut self.network {
            Some(network) => {
                let message = Carried { source: rank, destination, bytes, arrival };
                network.send(Ticket(operation), message);
                self.in_flight += 1;
            }
            None => self.push(arrival, Event::Arrive(operation)),
        }
        Ok(sent.free)
    }

    /// Satisfies the dependencies on the start or on the completion of an operation.
    fn release(&mut self, operation: u32, now: Time, on_start: bool) {
        for at in self.run.graph.followers(operation) {
            let follower = self.run.graph.follower(at);
            if follower.on_start() != on_start {
                continue;
            }
            let next = follower.operation() as usize;
            self.ready[next] = self.ready[next].max(now);
            self.needs[next] -= 1;
            if self.needs[next] == 0 {
                self.push(self.ready[next], Event::Ready(follower.operation()));
            }
        }
    }

    fn finish(self) -> Result<TraceOutcome, EngineError> {
        let graph = &self.run.graph;
        if self.in_flight > 0 {
            let since = self.outcome.finish.iter().copied().max().unwrap_or_default();
            let (messages, deadlock_cycle) = (self.in_flight, Vec::new());
            return Err(EngineError::NetworkDeadlock { since, messages, deadlock_cycle });
        }
        if self.completed < graph.works.len() {
            return Err(self.blocked());
        }
        let lost = |&(at, work): &(u32, &super::graph::Work)| {
            work.kind == kind::SEND && self.matching.is_unmatched(at)
        };
        let mut unreceived = (0..).zip(&graph.works).filter(lost);
        if let Some((_, first)) = unreceived.next() {
            let (sender, receiver) = (RankId(first.rank), RankId(first.peer.unsigned_abs()));
            let count = 1 + unreceived.count() as u64;
            return Err(EngineError::Unreceived { count, sender, receiver });
        }
        Ok(self.outcome)
    }

    /// Names the ranks that wait, and the messages that they wait for.
    fn blocked(&self) -> EngineError {
        let graph = &self.run.graph;
        let mut waiting = Vec::new();
        let mut stuck = 0;
        for rank in 0..self.run.trace.len() {
            let own = graph.first[rank]..graph.first[rank + 1];
            let posted = own.clone().find(|&at| {
                let work = &graph.works[at as usize];
                let posted = work.kind == kind::RECEIVE && self.needs[at as usize] == 0;
                posted && self.matching.is_unmatched(at)
            });
            let mut started = self.meetings.values().flatten().map(|&(at, _)| at);
            let meets = || started.find(|at| own.contains(at));
            let cyclic = || own.clone().find(|&at| self.needs[at as usize] > 0);
            let Some(at) = posted.or_else(meets).or_else(cyclic) else { continue };
            stuck += 1;
            if waiting.len() < LISTED {
                waiting.push(self.explained(at));
            }
        }
        EngineError::TraceDeadlock {
            waiting: waiting.join("; "),
            stuck,
            ranks: self.run.trace.len(),
        }
    }

    fn explained(&self, at: u32) -> String {
        let work = &self.run.graph.works[at as usize];
        let (rank, index) = (RankId(work.rank), self.run.graph.index(at));
        if self.needs[at as usize] == 0 && work.kind == kind::TIMED {
            return format!("{rank} in operation {index} waits for other ranks of its collective");
        }
        if self.needs[at as usize] > 0 {
            return format!("{rank} in operation {index} has dependencies that never complete");
        }
        let source =
            u32::try_from(work.peer).map_or("any rank".to_owned(), |peer| RankId(peer).to_string());
        let tag = if work.tag < 0 { "any tag".to_owned() } else { format!("tag {}", work.tag) };
        format!("{rank} in operation {index} waits for {source} ({tag})")
    }
}
