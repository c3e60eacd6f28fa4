//! Transfers without endpoints: collectives as rounds of flows, or with the time that each takes
//! alone.
//!
//! A collective starts when all NPUs of its group have issued it. A group has a communicator for
//! activations and one for weights and their gradients, as in Megatron-Core. Each executes one
//! collective at a time, by priority. A round of flows ends when all of them have been transmitted,
//! after the latencies of the messages that they stand for; then the next round starts. A
//! collective may have a least time, such as that of a library, which its flows do not shorten; all
//! of its flows then start together, as the least time contains its steps. Collectives of several
//! rounds are divided into up to eight pieces: a piece starts a round when the previous piece has
//! transmitted it. In a network that multicasts or reduces, a round has one flow for each part of a
//! multicast or combine. NPUs relay nothing and handle nothing: links are shared, memory and
//! processors are not used.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use super::bulk_plans::{FirstBatch, FirstRounds, Known, Plan, pieces, places, plans, share};
use super::entry::Entry;
use super::fabric::TrainingFabric;
use super::flows::{Flows, News};
use super::network::{Isolated, Sharing, StepNetwork};
use super::operations::{Operation, Operations};
use super::{Population, TrainingRunError};
use crate::workload::{Content, Rings, Transfer};
use tutti_network::packet::LinkUse;
use tutti_units::Time;

/// What happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A round of a part of the collective of a communicator has ended.
    Round { communicator: u32, part: u16 },
    /// The collective of a communicator has ended.
    Collective { communicator: u32, operation: u32 },
    /// A message has arrived.
    Message { sender: u32, operation: u32 },
}

/// A group of NPUs, which performs collectives of activations or of weights.
#[derive(Clone, Debug, Default)]
struct Communicator {
    /// Collectives that some of its NPUs have issued, and how many.
    issued: Vec<(usize, u32)>,
    /// Collectives that have not started.
    waiting: Entry,
    running: Option<Collective>,
}

/// A running collective.
#[derive(Clone, Debug)]
struct Collective {
    operation: usize,
    /// The parts: the pieces of the first channel, then those of the next.
    parts: Vec<Part>,
    /// The number of pieces of a channel.
    pieces: usize,
    /// Parts that have not ended.
    left: usize,
    started: Time,
}

/// A piece of a channel of a collective.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// The current or next round.
    round: usize,
    /// How many rounds have started, and how many have been transmitted.
    started: usize,
    sent: usize,
    /// Flows in transmission.
    flows: u32,
}

/// The run of the transfers.
pub(super) struct Bulk<'a> {
    fabric: &'a TrainingFabric,
    operations: Arc<Operations>,
    network: Transport<'a>,
    /// By operation: the rounds of each channel, and the communicator of the first group.
    plans: Vec<Option<Plan>>,
    first: Vec<u32>,
    communicators: Vec<Communicator>,
    /// By operation: the place of the first group in `known`; operations with equal rounds share it.
    places: Vec<u32>,
    known: Vec<Known>,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    serial: u64,
    /// Messages of which one side is complete, by receiver and operation: whether it has arrived.
    half_done: BTreeMap<(u32, usize), bool>,
    done: Vec<(u32, usize)>,
}

enum Transport<'a> {
    Flows(Flows<'a, Event>),
    Isolated(&'a Isolated),
}

impl<'a> Transport<'a> {
    fn of(network: &'a StepNetwork) -> Result<Transport<'a>, TrainingRunError> {
        match network {
            StepNetwork::Isolated(isolated) => Ok(Transport::Isolated(isolated)),
            StepNetwork::Graph(graph) if matches!(graph.sharing, Sharing::Flows(_)) => {
                Ok(Transport::Flows(Flows::new(graph)))
            }
            _ => Err(TrainingRunError::NoFlows),
        }
    }
}

/// Returns the communicator of the first group of each operation, and the number of communicators.
fn communicators(fabric: &TrainingFabric, operations: &Operations) -> (Vec<u32>, u32) {
    let mut count = 0;
    let mut bases: BTreeMap<(Rings, Content), u32> = BTreeMap::new();
    let mut first = Vec::with_capacity(operations.all.len());
    for (operation, groups) in operations.all.iter().zip(&operations.groups) {
        let base = *bases.entry(operation.communicator()).or_insert(count);
        if base == count {
            count += fabric.network.npus() / groups.size;
        }
        first.push(base);
    }
    (first, count)
}

impl<'a> Bulk<'a> {
    pub(super) fn new(
        fabric: &'a TrainingFabric,
        operations: Arc<Operations>,
    ) -> Result<Bulk<'a>, TrainingRunError> {
        if fabric.population == Population::One {
            return Err(TrainingRunError::NotSymmetric);
        }
        let network = Transport::of(&fabric.network)?;
        let plans = match &network {
            Transport::Isolated(isolated) => {
                isolated.check(&operations.all)?;
                vec![None; operations.all.len()]
            }
            Transport::Flows(_) => plans(fabric, &operations)?,
        };
        let (first, communicators) = communicators(fabric, &operations);
        let places = places(fabric, &operations, &plans);
        let all = places.iter().zip(&operations.groups);
        let count = all.map(|(&place, groups)| place + fabric.network.npus() / groups.size).max();
        Ok(Bulk {
            fabric,
            operations,
            network,
            plans,
            first,
            communicators: vec![Communicator::default(); communicators as usize],
            places,
            known: vec![Known::default(); count.unwrap_or(0) as usize],
            events: BinaryHeap::new(),
            serial: 0,
            half_done: BTreeMap::new(),
            done: Vec::new(),
        })
    }

    fn at(&mut self, time: Time, event: Event) {
        self.events.push(Reverse((time, self.serial, event)));
        self.serial += 1;
    }

    pub(super) fn take_done(&mut self, into: &mut Vec<(u32, usize)>) {
        into.append(&mut self.done);
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.events.is_empty()
            && self.half_done.is_empty()
            && self.communicators.iter().all(|one| one.running.is_none() && one.issued.is_empty())
    }

    pub(super) fn used_links(&self) -> Option<Vec<LinkUse>> {
        match &self.network {
            Transport::Flows(flows) => Some(flows.used_links()),
            Transport::Isolated(_) => None,
        }
    }

    /// Issues an operation on an NPU.
    pub(super) fn issue(&mut self, npu: u32, operation: usize, now: Time) {
        match self.operations.all[operation] {
            Operation::Collective(transfer) => self.join(npu, operation, transfer, now),
            Operation::Send(message) => {
                let to = self.operations.groups[operation].ahead(npu, message.ahead);
                let id = u32::try_from(operation).expect("fewer than 2^32 operations");
                let event = Event::Message { sender: npu, operation: id };
                match &mut self.network {
                    Transport::Flows(flows) => flows.send(npu, to, message.bytes, now, event),
                    Transport::Isolated(isolated) => {
                        let time = now + isolated.message(message.bytes);
                        self.at(time, event);
                    }
                }
            }
            Operation::Recv(_) => {
                if self.half_done.insert((npu, operation), false) == Some(true) {
                    self.half_done.remove(&(npu, operation));
                    self.done.push((npu, operation));
                }
            }
        }
    }

    /// An NPU has issued a collective; it may start with the last NPU of the group.
    fn join(&mut self, npu: u32, operation: usize, transfer: Transfer, now: Time) {
        let groups = &self.operations.groups[operation];
        let communicator = self.first[operation] + groups.group(npu);
        let state = &mut self.communicators[communicator as usize];
        let found = state.issued.iter().position(|&(one, _)| one == operation);
        let at = found.unwrap_or_else(|| {
            state.issued.push((operation, 0));
            state.issued.len() - 1
        });
        state.issued[at].1 += 1;
        if state.issued[at].1 < groups.size {
            return;
        }
        state.issued.swap_remove(at);
        if let Transport::Isolated(isolated) = self.network
            && isolated.concurrent
        {
            return self.take_time(isolated, (communicator, operation), now);
        }
        state.waiting.put(operation, transfer.level, 1, now);
        self.start_next(communicator, now);
    }

    /// A communicator without a running collective starts the next one.
    fn start_next(&mut self, communicator: u32, now: Time) {
        let state = &mut self.communicators[communicator as usize];
        if state.running.is_some() {
            return;
        }
        let Some((operation, ..)) = state.waiting.first(self.fabric.order) else { return };
        state.waiting.take(self.fabric.order);
        let pieces = pieces(self.fabric, self.operations.all[operation], &self.plans[operation]);
        let left = pieces * self.plans[operation].as_ref().map_or(0, |plan| plan.len());
        let parts = vec![Part::default(); left];
        state.running = Some(Collective { operation, parts, pieces, left, started: now });
        if let Transport::Isolated(isolated) = self.network {
            return self.take_time(isolated, (communicator, operation), now);
        }
        if pieces == 1 && self.start_together(communicator, operation, now) {
            return;
        }
        for part in (0..left).step_by(pieces) {
            self.start_round(communicator, part, now);
        }
    }

    /// Starts the first rounds of all channels as one batch, if the network accepts it.
    fn start_together(&mut self, communicator: u32, operation: usize, now: Time) -> bool {
        let (Some(plan), Some(place)) =
            (&self.plans[operation], self.place(operation, communicator))
        else {
            return false;
        };
        let Transport::Flows(flows) = &mut self.network else { return false };
        let groups = &self.operations.groups[operation];
        let group = communicator - self.first[operation];
        let known = &mut self.known[place].batch;
        if matches!(known, FirstBatch::Unknown) {
            let found = FirstRounds::of(plan, groups, group, flows);
            *known = found.map_or(FirstBatch::Separate, FirstBatch::Batch);
        }
        let FirstBatch::Batch(first) = known else { return false };
        let all = self.operations.all[operation].bytes();
        if !all.0.is_multiple_of(plan.len() as u64) {
            return false;
        }
        let bytes = plan[0].flow.share(share(all, 0, plan.len()), first.chunks);
        let parts: Vec<(Event, u32)> = (0..)
            .zip(&first.messages)
            .map(|(part, &count)| (Event::Round { communicator, part }, count))
            .collect();
        if !flows.send_batch(first.pattern, &parts, bytes, now) {
            return false;
        }
        if let Some(running) = &mut self.communicators[communicator as usize].running {
            for (part, &flows) in running.parts.iter_mut().zip(&first.messages) {
                (part.started, part.flows) = (1, flows);
            }
        }
        true
    }

    /// What is known of the rounds of a collective on a communicator.
    fn place(&self, operation: usize, communicator: u32) -> Option<usize> {
        let group = communicator.checked_sub(self.first[operation])?;
        Some((self.places[operation] + group) as usize)
    }

    /// A collective ends after its time alone.
    fn take_time(
        &mut self,
        isolated: &Isolated,
        (communicator, operation): (u32, usize),
        now: Time,
    ) {
        let time = isolated.time(self.operations.all[operation]);
        let operation = u32::try_from(operation).expect("fewer than 2^32 operations");
        self.at(now + time, Event::Collective { communicator, operation });
    }

    /// Starts the flows of the round of a part, unless the previous piece has not transmitted it.
    fn start_round(&mut self, communicator: u32, part: usize, now: Time) {
        let state = &mut self.communicators[communicator as usize];
        let Some(running) = &mut state.running else { return };
        let (operation, pieces) = (running.operation, running.pieces);
        let Part { round, started, .. } = running.parts[part];
        let Some(plan) = &self.plans[operation] else { return };
        let rounds = &plan[part / pieces];
        let is_first = part.is_multiple_of(pieces);
        let waits = !is_first && running.parts[part - 1].sent <= round;
        if started > round || waits || round == rounds.rounds.len() {
            return;
        }
        let groups = &self.operations.groups[operation];
        let group = communicator - self.first[operation];
        let bytes = share(self.operations.all[operation].bytes(), part, running.parts.len());
        let id = u16::try_from(part).expect("fewer than 2^16 parts");
        let event = Event::Round { communicator, part: id };
        let Transport::Flows(flows) = &mut self.network else { return };
        let mut count = 0;
        for rank in 0..groups.size {
            let from = groups.npu(group, rank);
            for (to, chunks) in rounds.sends(round, rank) {
                let bytes = rounds.flow.share(bytes, chunks);
                flows.send(from, groups.npu(group, to), bytes, now, event);
                count += 1;
            }
            for (inwards, leaves, chunks) in rounds.trees(round, rank) {
                let leaves: Vec<u32> = leaves.iter().map(|&leaf| groups.npu(group, leaf)).collect();
                let bytes = rounds.flow.share(bytes, chunks);
                count += flows.send_tree((from, inwards), &leaves, bytes, now, event);
            }
        }
        let part = &mut running.parts[part];
        (part.started, part.flows) = (round + 1, count);
    }

    /// A collective has ended on all NPUs of its group.
    fn end(&mut self, communicator: u32, operation: usize, now: Time) {
        self.communicators[communicator as usize].running = None;
        let groups = &self.operations.groups[operation];
        let group = communicator - self.first[operation];
        self.done.extend((0..groups.size).map(|rank| (groups.npu(group, rank), operation)));
        self.start_next(communicator, now);
    }

    /// The time of the next event, if it is not after `until`.
    pub(super) fn next(&mut self, until: Option<Time>) -> Option<Time> {
        loop {
            let next = self.events.peek().map(|Reverse((time, ..))| *time);
            let until = next.into_iter().chain(until).min().unwrap_or(Time::MAX);
            let Transport::Flows(flows) = &mut self.network else { break };
            let Some(News { of, transmitted, arrived, time }) = flows.next(until) else { break };
            match of {
                Event::Message { .. } if arrived => self.at(time, of),
                Event::Round { communicator, part } if transmitted => {
                    self.transmitted((communicator, part), time);
                }
                _ => {}
            }
        }
        let next = self.events.peek().map(|Reverse((time, ..))| *time);
        next.filter(|&time| until.is_none_or(|until| time <= until))
    }

    /// A flow of a round has been transmitted.
    fn transmitted(&mut self, (communicator, part): (u32, u16), time: Time) {
        let state = &mut self.communicators[communicator as usize];
        let Some(running) = &mut state.running else { return };
        let (operation, channel) = (running.operation, usize::from(part) / running.pieces);
        let at = &mut running.parts[usize::from(part)];
        at.flows -= 1;
        if at.flows > 0 {
            return;
        }
        at.sent += 1;
        let (round, next) = (at.round, usize::from(part) + 1);
        let is_last = next.is_multiple_of(running.pieces);
        let latency = self.latency(operation, communicator, (channel, round));
        self.at(time + latency, Event::Round { communicator, part });
        if !is_last {
            self.start_round(communicator, next, time);
        }
    }

    /// A round of a part has ended: its next round starts.
    fn end_round(&mut self, communicator: u32, part: usize, now: Time) {
        let state = &mut self.communicators[communicator as usize];
        let Some(running) = &mut state.running else { return };
        let Some(plan) = &self.plans[running.operation] else { return };
        running.parts[part].round += 1;
        let round = running.parts[part].round;
        if round == plan[part / running.pieces].rounds.len() {
            running.left -= 1;
            if running.left == 0 {
                let (operation, started) = (running.operation, running.started);
                return self.end_flows(communicator, operation, (started, now));
            }
        }
        self.start_round(communicator, part, now);
    }

    /// The flows of a collective have ended; it ends, unless its least time has not passed.
    fn end_flows(&mut self, communicator: u32, operation: usize, (started, now): (Time, Time)) {
        let least = match self.operations.all[operation] {
            Operation::Collective(transfer) => self.fabric.algorithms.least(transfer),
            _ => Time::ZERO,
        };
        if started + least <= now {
            return self.end(communicator, operation, now);
        }
        let operation = u32::try_from(operation).expect("fewer than 2^32 operations");
        self.at(started + least, Event::Collective { communicator, operation });
    }

    /// The latencies of the messages that follow each other in a round: the longest path.
    fn latency(
        &mut self,
        operation: usize,
        communicator: u32,
        (channel, round): (usize, usize),
    ) -> Time {
        let Some(plan) = &self.plans[operation] else { return Time::ZERO };
        let Some(place) = self.place(operation, communicator) else { return Time::ZERO };
        let mut known = self.known[place].latencies.iter();
        if let Some(&(_, latency)) = known.find(|(at, _)| *at == (channel, round)) {
            return latency;
        }
        let Transport::Flows(flows) = &self.network else { return Time::ZERO };
        let groups = &self.operations.groups[operation];
        let group = communicator - self.first[operation];
        let rounds = &plan[channel];
        let pair = |(from, to)| {
            let (source, target) = (groups.npu(group, from), groups.npu(group, to));
            (from as usize, to as usize, flows.latency(source, target))
        };
        let pairs: Vec<_> = rounds.pairs(round).into_iter().map(pair).collect();
        let mut reached = vec![Time::ZERO; groups.size as usize];
        for _ in 0..rounds.rounds[round].steps {
            let before = reached.clone();
            for &(from, to, latency) in &pairs {
                reached[to] = reached[to].max(before[from] + latency);
            }
        }
        let latency = reached.into_iter().max().unwrap_or(Time::ZERO);
        self.known[place].latencies.push(((channel, round), latency));
        latency
    }

    /// Executes the next event.
    pub(super) fn step(&mut self) {
        let Some(Reverse((now, _, event))) = self.events.pop() else { return };
        match event {
            Event::Round { communicator, part } => {
                self.end_round(communicator, usize::from(part), now);
            }
            Event::Collective { communicator, operation } => {
                self.end(communicator, operation as usize, now);
            }
            Event::Message { sender, operation } => {
                let operation = operation as usize;
                self.done.push((sender, operation));
                let Some(receiver) = self.operations.receiver(sender, operation) else { return };
                let at = (receiver, operation + 1);
                if self.half_done.insert(at, true) == Some(false) {
                    self.half_done.remove(&at);
                    self.done.push(at);
                }
            }
        }
    }
}
