//! The reference engine: all events in a queue ordered by time, all steps stored in memory.
//!
//! It is slow and short, and shares only the network model with the fast engine. Both must yield
//! the same times for every rank.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::{EngineError, Simulation, Waiting};
use tutti_network::{MessageModel, Port};
use tutti_schedule::{Local, Step};
use tutti_units::Time;
use tutti_units::ids::RankId;

/// Events are handled by time, then in order of creation.
type Queue = BinaryHeap<Reverse<(Time, u64, Event)>>;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The rank starts its next step.
    Start(u32),
    /// A message has arrived completely.
    Arrive { to: u32 },
}

struct Rank {
    steps: Vec<Step>,
    at: usize,
    clock: Time,
    port: Port,
    waiting: bool,
    /// When all its messages so far have arrived.
    sent: Time,
}

/// Returns the completion time of each rank.
///
/// # Errors
/// When ranks wait for messages that never arrive.
///
/// # Panics
/// When the schedule sends to ranks that do not exist.
pub fn finish_times<M: MessageModel>(run: &Simulation<'_, M>) -> Result<Vec<Time>, EngineError> {
    let mut ranks = materialise(run);
    let mut queue = Queue::new();
    let mut sequence = 0;
    let mut inbox: BTreeMap<(u32, u32), VecDeque<Time>> = BTreeMap::new();
    for (rank, state) in (0..).zip(&ranks) {
        queue.push(Reverse((state.clock, sequence, Event::Start(rank))));
        sequence += 1;
    }
    while let Some(Reverse((now, _, event))) = queue.pop() {
        let rank = match event {
            Event::Start(rank) => {
                for (arrival, to) in send_all(run, &mut ranks, &mut inbox, rank) {
                    queue.push(Reverse((arrival.max(now), sequence, Event::Arrive { to })));
                    sequence += 1;
                }
                rank
            }
            Event::Arrive { to } => to,
        };
        let state = &mut ranks[rank as usize];
        if let Some(next) = try_finish_step(run, state, &mut inbox, (rank, now)) {
            queue.push(Reverse((next, sequence, Event::Start(rank))));
            sequence += 1;
        }
    }
    outcome(&ranks, &inbox)
}

fn materialise<M: MessageModel>(run: &Simulation<'_, M>) -> Vec<Rank> {
    let step = |rank, index| {
        let mut step = Step::new();
        run.schedule.step(rank, index, &mut step);
        step
    };
    (0..run.schedule.shape().ranks)
        .map(RankId)
        .map(|rank| Rank {
            steps: (0..run.schedule.steps(rank)).map(|index| step(rank, index)).collect(),
            at: 0,
            clock: run.conditions.start(rank) + run.costs.launch,
            port: Port::default(),
            waiting: false,
            sent: Time::ZERO,
        })
        .collect()
}

/// Issues the sends of a rank's step; returns their destinations and arrival times.
fn send_all<M: MessageModel>(
    run: &Simulation<'_, M>,
    ranks: &mut [Rank],
    inbox: &mut BTreeMap<(u32, u32), VecDeque<Time>>,
    rank: u32,
) -> Vec<(Time, u32)> {
    let state = &mut ranks[rank as usize];
    let Some(step) = state.steps.get(state.at) else { return Vec::new() };
    let number = u32::try_from(state.at).expect("steps are counted in 32 bits");
    let lost = run.conditions.before_step(RankId(rank), number);
    let ready = run.conditions.done(RankId(rank), state.clock, lost);
    state.clock = ready;
    state.port.start_burst();
    state.waiting = true;
    let mut sent = Vec::new();
    for (index, send) in (0..).zip(&step.sends) {
        let bytes = run.layout.bytes(send.chunks);
        let outcome = run.model.send(&mut state.port, state.clock, bytes);
        let late = run.conditions.late((RankId(rank), number, index), send.peer, bytes);
        state.clock = outcome.free;
        let arrival = outcome.arrival + late;
        state.sent = state.sent.max(arrival);
        inbox.entry((rank, send.peer.0)).or_default().push_back(arrival);
        sent.push((arrival, send.peer.0));
    }
    state.clock = run.conditions.done(RankId(rank), ready, state.clock - ready);
    sent
}

/// Ends the step of a rank if all its messages have arrived; returns the start of its next step.
fn try_finish_step<M: MessageModel>(
    run: &Simulation<'_, M>,
    state: &mut Rank,
    inbox: &mut BTreeMap<(u32, u32), VecDeque<Time>>,
    (rank, now): (u32, Time),
) -> Option<Time> {
    if !state.waiting {
        return None;
    }
    let step = &state.steps[state.at];
    for (arrival, position) in take_messages(step, inbox, (rank, now))? {
        let bytes = run.layout.bytes(step.recvs[position].chunks);
        state.clock = run.model.receive(&mut state.port, state.clock, arrival, bytes);
    }
    if run.conditions.waits_for_sends() {
        state.clock = state.clock.max(state.sent);
    }
    state.clock = run.conditions.done(RankId(rank), state.clock, Time::ZERO);
    for local in &step.locals {
        state.clock = local_end(run, RankId(rank), *local, state.clock);
    }
    state.at += 1;
    state.waiting = false;
    (state.at < state.steps.len()).then_some(state.clock)
}

/// Takes the messages of a step in order of arrival, if all have arrived; returns their arrival
/// times and receives.
fn take_messages(
    step: &Step,
    inbox: &mut BTreeMap<(u32, u32), VecDeque<Time>>,
    (rank, now): (u32, Time),
) -> Option<Vec<(Time, usize)>> {
    let mut expected: BTreeMap<u32, usize> = BTreeMap::new();
    for recv in &step.recvs {
        *expected.entry(recv.peer.0).or_default() += 1;
    }
    let arrived = |peer: u32| {
        let arrivals = inbox.get(&(peer, rank)).into_iter().flatten();
        arrivals.take_while(|&&arrival| arrival <= now).count()
    };
    if expected.iter().any(|(&peer, &count)| arrived(peer) < count) {
        return None;
    }
    let mut arrivals = Vec::new();
    for (position, recv) in step.recvs.iter().enumerate() {
        let queue = inbox.get_mut(&(recv.peer.0, rank)).expect("was counted above");
        arrivals.push((queue.pop_front().expect("was counted above"), position));
    }
    arrivals.sort_unstable();
    Some(arrivals)
}

fn local_end<M: MessageModel>(
    run: &Simulation<'_, M>,
    rank: RankId,
    local: Local,
    now: Time,
) -> Time {
    let nominal = match local {
        Local::Reduce { operands, chunks, .. } => {
            run.costs.reduce(operands.len(), run.layout.bytes(chunks))
        }
        Local::Copy { chunks, .. } => run.costs.copy.of(run.layout.bytes(chunks)),
        Local::Compute { duration } => duration,
        Local::Sleep { duration } => return now + duration,
    };
    run.conditions.done(rank, now, run.conditions.local(rank, nominal))
}

fn outcome(
    ranks: &[Rank],
    inbox: &BTreeMap<(u32, u32), VecDeque<Time>>,
) -> Result<Vec<Time>, EngineError> {
    let left = |peer: RankId, rank: u32| inbox.get(&(peer.0, rank)).map_or(0, VecDeque::len);
    let waiting: Vec<Waiting> = (0..)
        .zip(ranks)
        .filter(|(_, state)| state.at < state.steps.len())
        .map(|(rank, state)| Waiting {
            rank: RankId(rank),
            step: u32::try_from(state.at).expect("steps are counted in 32 bits"),
            on: state.steps[state.at].recvs.iter().map(|recv| recv.peer).collect(),
        })
        .map(|mut waiting| {
            waiting.on.retain(|&peer| left(peer, waiting.rank.0) == 0);
            waiting
        })
        .collect();
    if waiting.is_empty() {
        return Ok(ranks.iter().map(|state| state.clock).collect());
    }
    let total = u32::try_from(ranks.len()).expect("ranks are counted in 32 bits");
    Err(EngineError::Deadlock { stuck: waiting.len(), waiting, ranks: total })
}
