//! The state of an NPU: servers, links, SRAM space, chunks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::entry::Entry;
use super::event::Job;
use crate::endpoint::ace::Handover;
use crate::endpoint::{Admission, Endpoint, Server, Service};
use tutti_units::{Bytes, Time, TimePerByte};

/// The cause of a stall of a chunk or packet, except for servers; an index into [`Npu::stalls`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, tutti_units::Named)]
pub(super) enum Cause {
    /// A chunk waits for space in the first partition or for admission.
    Entry,
    /// A chunk waits for an FSM of its phase.
    Fsm,
    /// A chunk waits for space in the next partition.
    NextPartition,
    /// A packet waits for space in the buffer of its link.
    Port,
}

/// The total time and number of stalls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stall {
    /// Total time.
    pub time: Time,
    /// Number of stalls.
    pub count: u64,
}

/// The state of a chunk at an NPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chunk {
    /// Its phase, which is the number of completed phases.
    pub(super) phase: u32,
    /// The class of the FSM that processes it.
    pub(super) fsm: u16,
    /// Whether its phase has started.
    pub(super) running: bool,
    /// Packets of its phase (or of its load or store) still to be handled.
    pub(super) left: u32,
    /// The start of its wait.
    pub(super) since: Time,
    /// How many chunks started before it.
    pub(super) age: u64,
    /// Whether it is in flight.
    pub(super) held: bool,
}

/// A packet of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Piece {
    pub(super) chunk: u32,
    pub(super) step: u32,
    pub(super) piece: u32,
    pub(super) hop: u16,
}

/// A packet that waits for the buffer of a link; the oldest chunk has priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Waiting {
    /// The age of its chunk.
    pub(super) rank: u64,
    /// Its sequence number among the waiting packets of the NPU.
    pub(super) turn: u64,
    pub(super) since: Time,
    pub(super) own: bool,
    pub(super) at: Piece,
    /// Its receiver, if its route depends on the sender; else the NPU.
    pub(super) to: u32,
}

/// What the sends of a phase of a chunk still await.
#[derive(Clone, Debug, Default)]
pub(super) struct Awaited {
    /// By receive of the phase: packets that have not been handled.
    pub(super) packets: Vec<u32>,
    /// By send of the phase: messages that have not been handled.
    pub(super) messages: Vec<u32>,
}

/// A link that leaves an NPU.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) server: Server,
    pub(super) latency: Time,
    /// Packets in its buffer.
    pub(super) held: u32,
    pub(super) waiting: BinaryHeap<Reverse<Waiting>>,
}

impl Link {
    fn new(server: Server, latency: Time) -> Link {
        Link { server, latency, held: 0, waiting: BinaryHeap::new() }
    }
}

/// The FSMs of a phase, and the chunks that wait for one; or the chunks that any FSM processes.
#[derive(Clone, Debug, Default)]
pub(super) struct FsmPool {
    /// How many are free; None: unlimited.
    pub(super) free: Option<u32>,
    pub(super) waiting: VecDeque<u32>,
    /// Chunks with a complete phase for which the next partition has no space.
    pub(super) awaiting_space: VecDeque<u32>,
    /// What blocks the first waiting chunk.
    pub(super) blocked_by: Option<Cause>,
}

impl FsmPool {
    fn of(free: u32) -> FsmPool {
        FsmPool { free: Some(free), ..FsmPool::default() }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.awaiting_space.is_empty()
    }
}

/// An NPU.
#[derive(Clone, Debug)]
pub(super) struct Npu {
    pub(super) servers: Vec<Server>,
    /// In the order of the network; on a torus two per ring, one per direction. On a graph the
    /// queues follow, one per NPU to which packets are sent.
    pub(super) links: Vec<Link>,
    /// On a graph, by receiver: its queue, a number among `links`.
    queues: BTreeMap<u32, u16>,
    pub(super) chunks: Vec<Chunk>,
    pub(super) entry: Entry,
    /// Chunks that may still start; None if the SRAM space limits them.
    pub(super) open: Option<u32>,
    /// Free bytes of each partition; empty without partitions.
    pub(super) space: Vec<u64>,
    pub(super) handover: Handover,
    /// By class, and one more for the chunks that any FSM processes.
    pub(super) fsms: Vec<FsmPool>,
    pub(super) stalls: [Stall; 4],
    /// Messages that may still be loaded; None: unlimited.
    pub(super) loads: Option<u32>,
    /// Messages of chunks that wait to be loaded.
    pub(super) loading: VecDeque<(u32, u32)>,
    /// Incomplete chunks of each transfer.
    pub(super) unfinished: Vec<u32>,
    /// Of running chunks whose sends await messages.
    pub(super) awaited: BTreeMap<u32, Awaited>,
    /// How many chunks have started, and how many packets have waited.
    pub(super) started: u64,
    turns: u64,
    /// Chunks in flight, the start of the current active period, and the total of earlier ones.
    pub(super) active: u32,
    pub(super) active_since: Time,
    pub(super) active_time: Time,
}

impl Npu {
    /// An NPU with these links: time per byte and latency.
    pub(super) fn new(endpoint: &Endpoint, links: &[(TimePerByte, Time)], classes: usize) -> Npu {
        let link = |&(per_byte, latency): &(TimePerByte, Time)| {
            Link::new(Server::new(Service::at(per_byte)), latency)
        };
        let links = links.iter().map(link).collect();
        let (open, space, fsms, handover) = match &endpoint.admission {
            Admission::Chunks(chunks) => {
                (Some(chunks.all), Vec::new(), vec![chunks.phase; classes], Handover::Ahead)
            }
            Admission::Partitions(partitions) => (
                None,
                partitions.sizes.iter().map(|bytes| bytes.0).collect(),
                partitions.fsms.clone(),
                partitions.handover,
            ),
        };
        Npu {
            servers: endpoint.servers.iter().map(|kind| Server::new(kind.service)).collect(),
            links,
            queues: BTreeMap::new(),
            chunks: Vec::new(),
            entry: Entry::default(),
            open,
            space,
            handover,
            fsms: fsms.into_iter().map(FsmPool::of).chain([FsmPool::default()]).collect(),
            stalls: [Stall::default(); 4],
            loads: endpoint.loads,
            loading: VecDeque::new(),
            unfinished: Vec::new(),
            awaited: BTreeMap::new(),
            started: 0,
            turns: 0,
            active: 0,
            active_since: Time::ZERO,
            active_time: Time::ZERO,
        }
    }

    /// The queue of packets to an NPU: packets to one receiver do not block those to others.
    pub(super) fn queue(&mut self, to: u32) -> u16 {
        let next = u16::try_from(self.links.len()).expect("an NPU sends to fewer than 2^16 NPUs");
        let queue = *self.queues.entry(to).or_insert(next);
        if queue == next {
            let server = Server::new(Service::at(TimePerByte::ZERO));
            self.links.push(Link::new(server, Time::ZERO));
        }
        queue
    }

    /// Whether all resources are free, as in the initial state.
    pub(super) fn has_released_all(&self, fresh: &Npu) -> bool {
        let fsms = self.fsms.iter().zip(&fresh.fsms);
        self.space == fresh.space
            && self.loads == fresh.loads
            && self.loading.is_empty()
            && self.open == fresh.open
            && self.active == 0
            && self.awaited.is_empty()
            && fsms.clone().all(|(now, then)| now.free == then.free && now.is_empty())
            && self.links.iter().all(|link| link.held == 0 && link.waiting.is_empty())
    }

    /// Counts a stall, unless it is zero.
    #[inline]
    pub(super) fn stall(&mut self, cause: Cause, wait: Time) {
        if wait > Time::ZERO {
            let stall = &mut self.stalls[cause as usize];
            stall.time += wait;
            stall.count += 1;
        }
    }

    /// The number of classes, which is also the number of the partition of results.
    #[inline]
    pub(super) fn classes(&self) -> usize {
        self.fsms.len() - 1
    }

    /// A class with a free FSM for the chunks of a pool: for any FSM, the class with the most.
    #[inline]
    pub(super) fn free_fsm(&self, pool: usize) -> Option<usize> {
        let classes = self.classes();
        let found = if pool < classes {
            pool
        } else {
            (0..classes).rev().max_by_key(|&class| self.fsms[class].free)?
        };
        (self.fsms[found].free != Some(0)).then_some(found)
    }

    /// Whether partition `at` has space for `bytes`; always true without partitions.
    pub(super) fn has_space(&self, at: usize, bytes: Bytes) -> bool {
        self.space.get(at).is_none_or(|free| *free >= bytes.0)
    }

    pub(super) fn reserve_space(&mut self, at: usize, bytes: Bytes) {
        if let Some(free) = self.space.get_mut(at) {
            *free -= bytes.0;
        }
    }

    pub(super) fn release_space(&mut self, at: usize, bytes: Bytes) {
        if let Some(free) = self.space.get_mut(at) {
            *free += bytes.0;
        }
    }

    pub(super) fn start_chunk(&mut self, chunk: u32, now: Time) {
        let started = &mut self.chunks[chunk as usize];
        (started.age, started.held) = (self.started, true);
        self.started += 1;
        if self.active == 0 {
            self.active_since = now;
        }
        self.active += 1;
    }

    /// A packet waits for the buffer of `link`. Packets that the NPU relays for a chunk that it has not
    /// started go first.
    pub(super) fn wait(&mut self, link: usize, (own, job): (bool, Job), since: Time) {
        let Job { at, to, .. } = job;
        let rank = self.chunks[at.chunk as usize].age;
        let turn = self.turns;
        self.turns += 1;
        self.links[link].waiting.push(Reverse(Waiting { rank, turn, since, own, at, to }));
    }

    /// Completes a chunk; returns the start of the active period if it was the last chunk.
    pub(super) fn end_chunk(&mut self, chunk: u32, now: Time) -> Option<Time> {
        self.chunks[chunk as usize].held = false;
        self.active -= 1;
        (self.active == 0).then(|| {
            self.active_time += now - self.active_since;
            self.active_since
        })
    }
}
