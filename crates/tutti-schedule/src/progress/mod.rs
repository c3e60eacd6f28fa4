//! Executes a schedule in a causal order: posts steps, matches messages, and finds blocked ranks.
//!
//! A rank posts all sends and receives of a step at once. A receive completes when its message is
//! posted. A send completes when its receive is posted, or when fewer than `buffering` earlier
//! messages of the pair are unmatched. `buffering` starts at zero (rendezvous) and grows by one
//! only when nothing else can progress. This finds the minimum buffering of a schedule in one
//! execution. Progress that is possible with k buffers is possible with k + 1 and is never undone,
//! because every rank waits for all of a step and the order on each pair fixes the matches.
//!
//! A [`Store`] implements the content of messages.

mod alone;
mod pairs;
mod queues;

use std::collections::VecDeque;

use super::{Message, Schedule, Slot, Step};
use pairs::{Queue, QueueIndex};
use queues::{Kind, Node, Queues};
use tutti_units::ids::RankId;

/// Messages of a step whose queues are looked up together, so that the loads overlap instead of
/// waiting for memory sequentially.
const BATCH: usize = 16;

/// A step of a rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct At {
    pub rank: RankId,
    pub step: u32,
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, step {}", self.rank, self.step)
    }
}

/// One side of a message and its step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) at: At,
    pub(super) message: Message,
}

/// The contents of the ranks, and the effects of messages and local ops.
pub(super) trait Store {
    /// The content of a message in flight.
    type Payload;
    /// A failed step.
    type Error;

    /// Checks a step before it is posted; must refuse invalid peers and the rank itself.
    fn start(&mut self, at: At, step: &Step) -> Result<(), Self::Error>;
    /// Moves the content of a message directly from the sender's slot to the receiver's.
    fn transfer(&mut self, send: Side, recv: Side) -> Result<(), Self::Error>;
    /// Reads the content of a message from the sender's slot.
    fn take(&mut self, send: Side) -> Result<Self::Payload, Self::Error>;
    /// Writes it to the receiver's slot.
    fn put(&mut self, payload: Self::Payload, send: Side, recv: Side) -> Result<(), Self::Error>;
    /// Executes the local ops of a step after its messages, which are no longer part of it.
    fn finish(&mut self, at: At, step: &Step) -> Result<(), Self::Error>;
}

/// A rank that waits, in this step, for a message from another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct Wait {
    pub at: At,
    pub from: RankId,
}

/// The observed traffic.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) steps: u64,
    pub(super) messages: u64,
    pub(super) buffering: u32,
    pub(super) in_flight: u32,
    pub(super) waiting: u32,
}

/// The end of an execution. It is complete if both lists are empty.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) traffic: Traffic,
    /// Receives that can never complete.
    pub(super) waits: Vec<Wait>,
    /// Messages without a receive; listed only if every rank has finished.
    pub(super) leftover: Vec<Side>,
}

/// Executes `schedule` to its end, or until nothing can progress.
pub(super) fn walk<S: Store>(schedule: &dyn Schedule, store: &mut S) -> Result<Outcome, S::Error> {
    let ranks = schedule.shape().ranks;
    let state = |rank| Rank { steps: schedule.steps(RankId(rank)), ..Rank::default() };
    let mut walk = Walk {
        store,
        ranks: (0..ranks).map(state).collect(),
        waiting: vec![0; ranks as usize],
        queues: Queues::new(),
        alone: 0,
        buffered: Vec::new(),
        posted: vec![Step::new()],
        spare: Vec::new(),
        ready: VecDeque::new(),
        traffic: Traffic::default(),
    };
    let starts = (0..ranks).filter(|&rank| walk.ranks[rank as usize].steps > 0);
    walk.ready = starts.collect();
    let mut ahead = Ahead::default();
    loop {
        while let Some(rank) = walk.ready.pop_front() {
            let step = ahead.next(schedule, &walk, RankId(rank));
            walk.post(RankId(rank), step)?;
        }
        if !walk.buffer_more()? {
            return Ok(walk.outcome());
        }
    }
}

/// Generates each step while the previous one is posted. Reading a step right after it is written
/// would wait until its bytes are in the cache: a message is written in parts and read at once.
#[derive(Default)]
struct Ahead {
    steps: [Step; 2],
    /// The index of the next step in `steps`.
    next: usize,
    /// The rank whose step it is.
    of: Option<RankId>,
}

impl Ahead {
    /// Returns the step of a rank that was the first of the queue, and generates the step of the
    /// rank that is now the first.
    #[inline]
    fn next<S: Store>(
        &mut self,
        schedule: &dyn Schedule,
        walk: &Walk<'_, S>,
        rank: RankId,
    ) -> &mut Step {
        if self.of != Some(rank) {
            self.generate(schedule, walk, rank);
        }
        let index = self.next;
        self.next = 1 - index;
        self.of = None;
        if let Some(&first) = walk.ready.front() {
            self.generate(schedule, walk, RankId(first));
        }
        &mut self.steps[index]
    }

    #[inline]
    fn generate<S: Store>(&mut self, schedule: &dyn Schedule, walk: &Walk<'_, S>, rank: RankId) {
        let step = &mut self.steps[self.next];
        step.clear();
        schedule.step(rank, walk.ranks[rank.index()].at, step);
        self.of = Some(rank);
    }
}

/// The state of a rank.
#[derive(Default)]
struct Rank {
    /// The posted or next step.
    at: u32,
    steps: u32,
    /// Incomplete sends and receives of the posted step.
    open: u32,
    /// The index in [`Walk::posted`] of what is stored of the posted step; 0 if nothing is.
    posted: u32,
    /// The only send of the posted step, if it is pending and in no queue. Most steps of most
    /// schedules have one send and one receive, and need no queues.
    send: Option<Message>,
    /// As `send`, of its only receive.
    recv: Option<Message>,
}

struct Walk<'a, S: Store> {
    store: &'a mut S,
    ranks: Vec<Rank>,
    /// Messages posted for a rank without a receive yet.
    waiting: Vec<u32>,
    queues: Queues,
    /// Pending messages that are in no queue but in [`Rank::send`] or [`Rank::recv`].
    alone: u32,
    buffered: Vec<Option<(Side, S::Payload)>>,
    /// The posted steps with local ops: these ops and, once messages are buffered, the sends that
    /// may have to be buffered. Other messages are only in the queues.
    posted: Vec<Step>,
    /// Unused indices in `posted`. The last is reused first, while it is in the cache.
    spare: Vec<u32>,
    ready: VecDeque<u32>,
    traffic: Traffic,
}

impl<S: Store> Walk<'_, S> {
    /// Posts the next step of a rank, `step`, and matches its messages.
    fn post(&mut self, rank: RankId, step: &mut Step) -> Result<(), S::Error> {
        let at = At { rank, step: self.ranks[rank.index()].at };
        self.store.start(at, step)?;
        self.traffic.messages += step.sends.len() as u64;
        let alone = self.without_queues();
        let mut open = count(step.sends.len() + step.recvs.len());
        open -= match step.sends[..] {
            [message] if alone => self.post_only_send(Side { at, message })?,
            _ => self.post_all(at, &step.sends, |peer| (peer, rank), Self::post_send)?,
        };
        open -= match step.recvs[..] {
            [message] if alone => self.post_only_recv(Side { at, message })?,
            _ => self.post_all(at, &step.recvs, |peer| (rank, peer), Self::post_recv)?,
        };
        if !step.locals.is_empty() {
            let posted = self.posted_index(rank);
            self.posted[posted].swap_locals(step);
        }
        if self.traffic.buffering > 0 {
            std::mem::swap(&mut self.posted(rank).sends, &mut step.sends);
        }
        self.ranks[rank.index()].open = open;
        if open == 0 { self.finish(rank) } else { Ok(()) }
    }

    /// Returns the stored part of the posted step of a rank.
    fn posted(&mut self, rank: RankId) -> &mut Step {
        let is_new = self.ranks[rank.index()].posted == 0;
        let posted = self.posted_index(rank);
        let step = &mut self.posted[posted];
        if is_new {
            step.clear();
        }
        step
    }

    /// Returns the index of the stored part of the posted step of a rank; a new one has ops of an
    /// earlier step: reading it right after it was cleared would wait, as in [`Ahead`].
    #[inline]
    fn posted_index(&mut self, rank: RankId) -> usize {
        let state = &mut self.ranks[rank.index()];
        if state.posted == 0 {
            state.posted = self.spare.pop().unwrap_or_else(|| {
                self.posted.push(Step::new());
                count(self.posted.len()) - 1
            });
        }
        state.posted as usize
    }

    /// Counts a send without a receive: the last of `depth` of its pair.
    #[inline]
    fn unexpected(&mut self, destination: RankId, depth: u32) {
        self.traffic.in_flight = self.traffic.in_flight.max(depth);
        let waiting = &mut self.waiting[destination.index()];
        *waiting += 1;
        self.traffic.waiting = self.traffic.waiting.max(*waiting);
    }

    /// Posts one side of some messages; returns how many complete. `pair` is (destination, source).
    #[inline]
    fn post_all(
        &mut self,
        at: At,
        messages: &[Message],
        pair: impl Fn(RankId) -> (RankId, RankId),
        post: impl Fn(&mut Self, Side, QueueIndex) -> Result<bool, S::Error>,
    ) -> Result<u32, S::Error> {
        // With buffering, queues are looked up one at a time, because posting may move them.
        let batch = if self.traffic.buffering == 0 { BATCH } else { 1 };
        let (mut places, mut done) = ([QueueIndex::default(); BATCH], 0);
        for messages in messages.chunks(batch) {
            self.queues.pairs.reserve(messages.len());
            self.queues.pairs.touch(messages.iter().map(|message| pair(message.peer)));
            for (place, message) in places.iter_mut().zip(messages) {
                *place = self.queues.pairs.find(pair(message.peer));
            }
            self.queues.touch_first(&places[..messages.len()]);
            for (&place, &message) in places.iter().zip(messages) {
                done += u32::from(post(self, Side { at, message }, place)?);
            }
        }
        Ok(done)
    }

    /// Returns whether the send completes.
    #[inline]
    fn post_send(&mut self, send: Side, place: QueueIndex) -> Result<bool, S::Error> {
        if self.alone > 0 && self.meet_recv(send)? {
            return Ok(true);
        }
        let (source, destination) = (send.at.rank, send.message.peer);
        let queue = *self.queues.pairs.at(place);
        if queue.head != 0 && self.queues.nodes[queue.head as usize].kind == Kind::Recv {
            let node = self.queues.pop(place, queue);
            let recv = self.side(destination, source, &node);
            self.store.transfer(send, recv)?;
            self.close(destination)?;
            return Ok(true);
        }
        let (node, depth) = self.queues.append(place, queue, Kind::Send, send.message);
        self.unexpected(destination, depth);
        let eager = depth <= self.traffic.buffering;
        if eager {
            self.queues.nodes[node as usize].kind = Kind::Eager;
        }
        Ok(eager)
    }

    /// Returns whether the receive completes.
    #[inline]
    fn post_recv(&mut self, recv: Side, place: QueueIndex) -> Result<bool, S::Error> {
        if self.alone > 0 && self.meet_send(recv)? {
            return Ok(true);
        }
        let (source, destination) = (recv.message.peer, recv.at.rank);
        let queue = *self.queues.pairs.at(place);
        if queue.head == 0 || self.queues.nodes[queue.head as usize].kind == Kind::Recv {
            self.queues.append(place, queue, Kind::Recv, recv.message);
            return Ok(false);
        }
        let node = self.queues.pop(place, queue);
        self.waiting[destination.index()] -= 1;
        if node.kind == Kind::Buffered {
            if let Some((send, payload)) = self.buffered[node.slot.0 as usize].take() {
                self.store.put(payload, send, recv)?;
            }
        } else {
            let send = self.side(source, destination, &node);
            self.store.transfer(send, recv)?;
        }
        if node.kind == Kind::Send {
            self.close(source)?;
        }
        if self.traffic.buffering > 0 {
            self.relax(destination, source)?;
        }
        Ok(true)
    }

    /// Returns the side that `rank` posted, in its current step, for a message to or from `peer`.
    #[inline]
    fn side(&self, rank: RankId, peer: RankId, node: &Node) -> Side {
        let at = At { rank, step: self.ranks[rank.index()].at };
        Side { at, message: Message { peer, slot: node.slot, chunks: node.chunks } }
    }

    /// Completes one send or receive of a rank.
    #[inline]
    fn close(&mut self, rank: RankId) -> Result<(), S::Error> {
        let state = &mut self.ranks[rank.index()];
        state.open -= 1;
        if state.open == 0 { self.finish(rank) } else { Ok(()) }
    }

    /// Ends the posted step of a rank, all of whose messages are complete.
    fn finish(&mut self, rank: RankId) -> Result<(), S::Error> {
        if self.traffic.buffering > 0 {
            self.keep_unmatched(rank)?;
        }
        let state = &mut self.ranks[rank.index()];
        let at = At { rank, step: state.at };
        state.at += 1;
        if state.at < state.steps {
            self.ready.push_back(rank.0);
        }
        self.traffic.steps += 1;
        match std::mem::take(&mut state.posted) {
            0 => Ok(()),
            posted => {
                self.spare.push(posted);
                let step = &mut self.posted[posted as usize];
                step.sends.clear();
                self.store.finish(at, step)
            }
        }
    }

    /// Reads the unreceived messages of an ending step before their slots change.
    #[inline(never)]
    fn keep_unmatched(&mut self, rank: RankId) -> Result<(), S::Error> {
        let messages = std::mem::take(&mut self.posted(rank).sends);
        for peer in messages.iter().map(|message| message.peer) {
            let place = self.queues.pairs.find((peer, rank));
            let Queue { head, tail } = *self.queues.pairs.at(place);
            // The step's messages are the last of the queue.
            let mut at = if messages.len() == 1 { tail } else { head };
            while at != 0 {
                let node = self.queues.nodes[at as usize];
                if node.kind == Kind::Eager {
                    let send = self.side(rank, peer, &node);
                    let payload = self.store.take(send)?;
                    let index = count(self.buffered.len());
                    self.buffered.push(Some((send, payload)));
                    let slot = Slot(index);
                    self.queues.nodes[at as usize] = Node { kind: Kind::Buffered, slot, ..node };
                }
                at = node.next;
            }
        }
        self.posted(rank).sends = messages;
        Ok(())
    }

    /// Completes the sends of a pair that now fit into its buffers; returns whether there were any.
    fn relax(&mut self, destination: RankId, source: RankId) -> Result<bool, S::Error> {
        let place = self.queues.pairs.find((destination, source));
        let Queue { head: mut at, tail } = *self.queues.pairs.at(place);
        let mut any = false;
        // All sends before the last that fits are complete; if that is the last of all, the queue
        // is not traversed.
        let [first, last] = [at, tail].map(|node| self.queues.nodes[node as usize].ordinal);
        if last.wrapping_sub(first) < self.traffic.buffering {
            at = tail;
        }
        for _ in 0..self.traffic.buffering {
            if at == 0 || self.queues.nodes[at as usize].kind == Kind::Recv {
                break;
            }
            let next = self.queues.nodes[at as usize].next;
            if self.queues.nodes[at as usize].kind == Kind::Send {
                self.queues.nodes[at as usize].kind = Kind::Eager;
                any = true;
                self.close(source)?;
            }
            at = next;
        }
        Ok(any)
    }

    /// Adds one buffer to every pair when all ranks are blocked; returns whether any rank can
    /// progress.
    fn buffer_more(&mut self) -> Result<bool, S::Error> {
        if self.alone > 0 {
            self.queue_all();
        }
        let pending = self.queues.pairs.pending();
        let sends =
            |&&(.., node): &&(_, _, u32)| self.queues.nodes[node as usize].kind != Kind::Recv;
        let pairs: Vec<_> = pending.iter().filter(sends).map(|&(d, s, _)| (d, s)).collect();
        if self.traffic.buffering == 0 {
            self.note_sends(&pending);
        }
        let mut any = false;
        self.traffic.buffering += 1;
        for (destination, source) in pairs {
            any |= self.relax(destination, source)?;
        }
        self.traffic.buffering -= u32::from(!any);
        Ok(any)
    }

    /// Writes the pending sends back into their steps, for [`Walk::keep_unmatched`].
    fn note_sends(&mut self, pending: &[(RankId, RankId, u32)]) {
        for &(destination, source, mut at) in pending {
            while at != 0 {
                let Node { next, slot, chunks, kind, .. } = self.queues.nodes[at as usize];
                if kind == Kind::Send {
                    self.posted(source).send(destination, slot, chunks);
                }
                at = next;
            }
        }
    }

    fn outcome(&self) -> Outcome {
        let (mut waits, mut leftover) = (Vec::new(), Vec::new());
        for (destination, source, mut node) in self.queues.pairs.pending() {
            while node != 0 {
                let Node { next, slot, kind, .. } = self.queues.nodes[node as usize];
                let step = self.ranks[destination.index()].at;
                if kind == Kind::Recv {
                    waits.push(Wait { at: At { rank: destination, step }, from: source });
                } else if let Some(Some((side, _))) = self.buffered.get(slot.0 as usize) {
                    leftover.push(*side);
                }
                node = next;
            }
        }
        waits.dedup();
        if !waits.is_empty() {
            leftover.clear();
        }
        Outcome { traffic: self.traffic, waits, leftover }
    }
}

fn count(messages: usize) -> u32 {
    u32::try_from(messages).expect("fewer than 2^32 messages are pending")
}
