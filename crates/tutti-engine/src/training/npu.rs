//! An NPU's side of the collectives under way: servers, links, room, chunks.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::entry::Entry;
use super::plan::Torus;
use crate::endpoint::ace::Handover;
use crate::endpoint::{Admission, Endpoint, Server, ServerKind};
use tutti_units::{Bytes, Time};

/// Why chunks or pieces waited, besides for servers; an index into [`Npu::stalls`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, tutti_units::Named)]
pub(super) enum Cause {
    /// A chunk, for room in the first partition or for its turn.
    Entry,
    /// A chunk, for a state machine of its phase.
    StateMachine,
    /// A chunk, for room in the next partition.
    Room,
    /// A piece, for room in the buffer of its link.
    Port,
}

/// How long something waited in all, and how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stall {
    /// All waits together.
    pub time: Time,
    /// How many there were.
    pub count: u64,
}

/// Where a chunk stands at one NPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chunk {
    /// Its phase; that many have been finished.
    pub(super) phase: u32,
    /// Whether its phase has begun.
    pub(super) running: bool,
    /// Pieces of its phase (or of its load or store) that are still to be handled.
    pub(super) left: u32,
    /// Since when it waits.
    pub(super) since: Time,
    /// How many chunks began before it.
    pub(super) age: u64,
    /// Whether it is under way.
    pub(super) held: bool,
}

/// A piece that waits for a buffer of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Piece {
    pub(super) chunk: u32,
    pub(super) step: u32,
    pub(super) piece: u32,
    pub(super) hop: u16,
}

/// A piece that waits outside a port; the chunk that began first goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Waiting {
    /// The age of its chunk.
    pub(super) rank: u64,
    /// How many came to wait before it, at any port of the NPU.
    pub(super) turn: u64,
    pub(super) since: Time,
    pub(super) own: bool,
    pub(super) at: Piece,
}

/// A link that leaves an NPU.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) server: Server,
    pub(super) latency: Time,
    /// Pieces that are handled for it or wait for it.
    pub(super) held: u32,
    pub(super) waiting: BinaryHeap<Reverse<Waiting>>,
}

/// State machines of a phase, and chunks that wait for one.
#[derive(Clone, Debug, Default)]
pub(super) struct Machines {
    /// How many are free; none: as many as it takes.
    pub(super) free: Option<u32>,
    pub(super) waiting: VecDeque<u32>,
    /// Chunks whose phase is over and for which the next partition has no room.
    pub(super) over: VecDeque<u32>,
    /// What the first of those that wait lacks.
    pub(super) lacks: Option<Cause>,
}

impl Machines {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.over.is_empty()
    }
}

/// An NPU.
#[derive(Clone, Debug)]
pub(super) struct Npu {
    pub(super) servers: Vec<Server>,
    /// Two for each ring: one each way round.
    pub(super) links: Vec<Link>,
    pub(super) chunks: Vec<Chunk>,
    pub(super) entry: Entry,
    /// Chunks that may still begin; none where room decides.
    pub(super) open: Option<u32>,
    /// Free bytes of each partition; empty where there are none.
    pub(super) rooms: Vec<u64>,
    pub(super) handover: Handover,
    pub(super) machines: Vec<Machines>,
    pub(super) stalls: [Stall; 4],
    /// Chunks of each transfer that are not done.
    pub(super) unfinished: Vec<u32>,
    /// How many chunks have begun, and how many pieces came to wait.
    pub(super) begun: u64,
    turns: u64,
    /// Chunks under way, since when there are any, and how long there were before.
    pub(super) active: u32,
    pub(super) active_since: Time,
    pub(super) active_time: Time,
}

impl Npu {
    pub(super) fn new(endpoint: &Endpoint, torus: &Torus, classes: usize) -> Npu {
        let link = |ring: &super::plan::Ring| {
            let server = Server::new(ServerKind { name: "link", per_byte: ring.per_byte });
            Link { server, latency: ring.latency, held: 0, waiting: BinaryHeap::new() }
        };
        let links = torus.rings().iter().flat_map(|ring| [link(ring), link(ring)]).collect();
        let (open, rooms, machines, handover) = match &endpoint.admission {
            Admission::Chunks(chunks) => {
                (Some(chunks.all), Vec::new(), vec![chunks.phase; classes], Handover::Ahead)
            }
            Admission::Partitions(partitions) => (
                None,
                partitions.rooms.iter().map(|room| room.0).collect(),
                partitions.fsms.clone(),
                partitions.handover,
            ),
        };
        let machines = machines
            .into_iter()
            .map(|free| Machines { free: Some(free), ..Machines::default() })
            .collect();
        Npu {
            servers: endpoint.servers.iter().map(|&kind| Server::new(kind)).collect(),
            links,
            chunks: Vec::new(),
            entry: Entry::default(),
            open,
            rooms,
            handover,
            machines,
            stalls: [Stall::default(); 4],
            unfinished: Vec::new(),
            begun: 0,
            turns: 0,
            active: 0,
            active_since: Time::ZERO,
            active_time: Time::ZERO,
        }
    }

    /// Whether nothing is held, as when nothing had begun.
    pub(super) fn holds_as_little_as(&self, fresh: &Npu) -> bool {
        let machines = self.machines.iter().zip(&fresh.machines);
        self.rooms == fresh.rooms
            && self.open == fresh.open
            && self.active == 0
            && machines.clone().all(|(now, then)| now.free == then.free && now.is_empty())
            && self.links.iter().all(|link| link.held == 0 && link.waiting.is_empty())
    }

    /// Counts a wait; none is not counted.
    #[inline]
    pub(super) fn stall(&mut self, cause: Cause, wait: Time) {
        if wait > Time::ZERO {
            let stall = &mut self.stalls[cause as usize];
            stall.time += wait;
            stall.count += 1;
        }
    }

    /// Whether partition `at` has room for `bytes`; always where there are no partitions.
    pub(super) fn has_room(&self, at: usize, bytes: Bytes) -> bool {
        self.rooms.get(at).is_none_or(|room| *room >= bytes.0)
    }

    pub(super) fn take_room(&mut self, at: usize, bytes: Bytes) {
        if let Some(room) = self.rooms.get_mut(at) {
            *room -= bytes.0;
        }
    }

    pub(super) fn give_room(&mut self, at: usize, bytes: Bytes) {
        if let Some(room) = self.rooms.get_mut(at) {
            *room += bytes.0;
        }
    }

    pub(super) fn begin_chunk(&mut self, chunk: u32, now: Time) {
        let begun = &mut self.chunks[chunk as usize];
        (begun.age, begun.held) = (self.begun, true);
        self.begun += 1;
        if self.active == 0 {
            self.active_since = now;
        }
        self.active += 1;
    }

    /// A piece comes to wait outside the port of `link`.
    pub(super) fn wait(&mut self, link: usize, (own, at): (bool, Piece), since: Time) {
        let rank = self.chunks[at.chunk as usize].age;
        let turn = self.turns;
        self.turns += 1;
        self.links[link].waiting.push(Reverse(Waiting { rank, turn, since, own, at }));
    }

    /// A chunk is done: since when there were any, if it was the last.
    pub(super) fn end_chunk(&mut self, chunk: u32, now: Time) -> Option<Time> {
        self.chunks[chunk as usize].held = false;
        self.active -= 1;
        (self.active == 0).then(|| {
            self.active_time += now - self.active_since;
            self.active_since
        })
    }
}
