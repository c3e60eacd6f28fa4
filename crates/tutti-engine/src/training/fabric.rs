//! Collectives on a torus, packet by packet: the events of endpoints and links, in order of time.
//!
//! A chunk of a collective starts at an NPU when [`crate::endpoint::Admission`] admits it. It is
//! loaded, passes its phases, and is stored. In a phase the NPU sends local packets and handles
//! packets from its neighbour. A packet passes the stops of its handling in order, then the link.
//!
//! **Symmetry.** If all NPUs do the same at the same time, an NPU receives from one neighbour what
//! it sends to the other, simultaneously. One NPU with links to itself therefore represents all
//! ([`Population::One`]); [`Population::All`] simulates each, and tests compare the two.
//! Simultaneous events are ordered by (chunk, step, packet), so the index of an NPU has no effect.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::TrainingRunError;
use super::entry::Order;
use super::event::{Event, Job, Kind};
use super::npu::{Cause, Npu, Piece, Waiting};
use super::plan::{PhaseKind, Shape, Torus};
use super::transfers::Cuts;
use super::windows::Windows;
use crate::endpoint::ace::Handover;
use crate::endpoint::{Endpoint, Handling};
use crate::workload::Transfer;
use tutti_units::{Bytes, Time};

/// The simulated NPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Population {
    /// One NPU, which represents all.
    One,
    /// Every NPU.
    All,
}

/// The network side of a training run.
#[derive(Clone, Debug)]
pub struct TrainingFabric {
    /// The torus.
    pub torus: Torus,
    /// The endpoint of each NPU.
    pub endpoint: Endpoint,
    /// Maximum bytes of a chunk.
    pub chunk: Bytes,
    /// The number of chunks of a collective of any size; None: by the chunk size.
    pub parts: Option<u32>,
    /// Maximum bytes per load or store.
    pub message: Bytes,
    /// The priority of collectives.
    pub order: Order,
    /// The simulated NPUs.
    pub population: Population,
}

/// The run of a fabric.
pub(super) struct Running<'a> {
    fabric: &'a TrainingFabric,
    cuts: Cuts,
    npus: Vec<Npu>,
    /// An NPU in its initial state.
    fresh: Npu,
    events: BinaryHeap<Reverse<Event>>,
    /// Packets received before their chunk reached the phase.
    early: BTreeMap<(u32, u32), Vec<Piece>>,
    /// (NPU, transfer) completed since the last call of `take_done`.
    done: Vec<(u32, usize)>,
    /// Busy time of links, and times in which endpoints had a chunk.
    pub(super) links: Windows,
    pub(super) active: Windows,
}

impl<'a> Running<'a> {
    pub(super) fn new(
        fabric: &'a TrainingFabric,
        transfers: &[Transfer],
        window: Time,
    ) -> Result<Running<'a>, TrainingRunError> {
        let TrainingFabric { torus, endpoint, population, .. } = fabric;
        let cuts = Cuts::new(fabric, transfers)?;
        let mut npu = Npu::new(endpoint, torus, torus.classes());
        npu.chunks.resize(cuts.chunks(), super::npu::Chunk::default());
        npu.unfinished = cuts.cuts.iter().map(|cut| cut.chunks).collect();
        let count = match population {
            Population::One => 1,
            Population::All => torus.npus() as usize,
        };
        Ok(Running {
            fabric,
            cuts,
            npus: vec![npu.clone(); count],
            fresh: npu,
            events: BinaryHeap::new(),
            early: BTreeMap::new(),
            done: Vec::new(),
            links: Windows::new(window),
            active: Windows::new(window),
        })
    }

    pub(super) fn npus(&self) -> &[Npu] {
        &self.npus
    }

    /// The time of the next event.
    pub(super) fn next(&self) -> Option<Time> {
        self.events.peek().map(|Reverse(event)| event.time)
    }

    /// The transfers completed since the last call.
    pub(super) fn take_done(&mut self, into: &mut Vec<(u32, usize)>) {
        into.append(&mut self.done);
    }

    /// Whether all resources have been released: SRAM space, FSMs, buffers, chunks.
    pub(super) fn is_at_rest(&self) -> bool {
        self.events.is_empty()
            && self.early.is_empty()
            && self.npus.iter().all(|npu| npu.has_released_all(&self.fresh))
    }

    /// Issues a collective on an NPU.
    pub(super) fn issue(&mut self, npu: u32, transfer: usize, now: Time) {
        let cut = &self.cuts.cuts[transfer];
        self.npus[npu as usize].entry.put(transfer, cut.level, cut.chunks, now);
        self.admit(npu, now);
    }

    /// Executes the next event.
    pub(super) fn step(&mut self) {
        let Some(Reverse(event)) = self.events.pop() else { return };
        let Event { time, chunk, step, piece, hop, kind, stop, npu } = event;
        let job = Job { npu, kind, at: Piece { chunk, step, piece, hop } };
        match kind {
            Kind::Left => self.leave(job, time),
            Kind::Came if stop == 0 => self.arrive(job, time),
            _ => self.go(job, stop, time),
        }
        // With many chunks only after the first packet of each step: the check visits all chunks.
        if cfg!(debug_assertions) && (piece == 0 || self.cuts.chunks() <= 64) {
            self.npus[npu as usize].check(&self.fresh, &self.cuts);
        }
    }

    /// Admits chunks while there is space.
    fn admit(&mut self, npu: u32, now: Time) {
        loop {
            let state = &mut self.npus[npu as usize];
            let Some((transfer, index, since)) = state.entry.first(self.fabric.order) else {
                return;
            };
            let chunk = self.cuts.cuts[transfer].first + index;
            let Shape { phase, entry, .. } = self.cuts.shapes(chunk)[0];
            if state.open == Some(0) || !state.has_space(phase.class, entry) {
                return;
            }
            state.open = state.open.map(|open| open - 1);
            state.reserve_space(phase.class, entry);
            state.entry.take(self.fabric.order);
            state.stall(Cause::Entry, now - since);
            state.start_chunk(chunk, now);
            self.move_chunk((npu, chunk), Kind::Load, entry, now);
        }
    }

    /// Loads or stores a chunk, one message at a time.
    fn move_chunk(&mut self, (npu, chunk): (u32, u32), kind: Kind, bytes: Bytes, now: Time) {
        let handling = if kind == Kind::Load { Handling::Load } else { Handling::Store };
        let count = bytes.0.div_ceil(self.fabric.message.0);
        let moves = !self.fabric.endpoint.recipe(handling).is_empty();
        let count = if moves { u32::try_from(count).unwrap_or(u32::MAX) } else { 0 };
        self.npus[npu as usize].chunks[chunk as usize].left = count;
        if count == 0 {
            return self.moved((npu, chunk), kind, now);
        }
        for piece in 0..count {
            self.go(Job { npu, kind, at: Piece { chunk, step: 0, piece, hop: 0 } }, 0, now);
        }
    }

    /// A chunk has been loaded or stored.
    fn moved(&mut self, (npu, chunk): (u32, u32), kind: Kind, now: Time) {
        if kind == Kind::Load { self.enter((npu, chunk), now) } else { self.end((npu, chunk), now) }
    }

    /// A chunk waits for its phase.
    fn enter(&mut self, (npu, chunk): (u32, u32), now: Time) {
        let state = &mut self.npus[npu as usize];
        let at = &mut state.chunks[chunk as usize];
        at.since = now;
        let class = self.cuts.shapes(chunk)[at.phase as usize].phase.class;
        state.fsms[class].waiting.push_back(chunk);
        self.start(npu, class, now);
    }

    /// Starts the phase of the chunks that wait for `class`, while there are FSMs and space.
    fn start(&mut self, npu: u32, class: usize, now: Time) {
        loop {
            let state = &mut self.npus[npu as usize];
            let Some(&chunk) = state.fsms[class].waiting.front() else { return };
            if state.fsms[class].free == Some(0) {
                state.fsms[class].blocked_by = Some(Cause::Fsm);
                return;
            }
            let at = state.chunks[chunk as usize];
            if state.handover == Handover::Ahead {
                let (next, bytes) = self.cuts.after(chunk, at.phase as usize, state.fsms.len());
                if !state.has_space(next, bytes) {
                    state.fsms[class].blocked_by = Some(Cause::NextPartition);
                    return;
                }
                state.reserve_space(next, bytes);
            }
            let fsms = &mut state.fsms[class];
            fsms.waiting.pop_front();
            fsms.free = fsms.free.map(|free| free - 1);
            let cause = fsms.blocked_by.take().unwrap_or(Cause::Fsm);
            state.stall(cause, now - at.since);
            let shape = self.cuts.shapes(chunk)[at.phase as usize];
            let chunk_state = &mut state.chunks[chunk as usize];
            chunk_state.running = true;
            chunk_state.left = shape.handled();
            self.run(npu, chunk, shape, now);
        }
    }

    /// Starts the first packets of a phase, and packets received early.
    fn run(&mut self, npu: u32, chunk: u32, shape: Shape, now: Time) {
        let steps = if shape.phase.kind == PhaseKind::AllToAll { shape.steps } else { 1 };
        for step in shape.first..shape.first + steps {
            for piece in 0..shape.pieces {
                let at = Piece { chunk, step, piece, hop: 0 };
                self.start_handling(Job { npu, kind: Kind::Own, at }, now);
            }
        }
        if self.early.is_empty() {
            return;
        }
        let Some(pieces) = self.early.remove(&(npu, chunk)) else { return };
        for at in pieces {
            self.arrive(Job { npu, kind: Kind::Came, at }, now);
        }
    }

    /// A packet arrives from a neighbour.
    fn arrive(&mut self, job: Job, now: Time) {
        let (phase, _) = self.cuts.at(job.at.chunk, job.at.step);
        let chunk = self.npus[job.npu as usize].chunks[job.at.chunk as usize];
        if chunk.running && chunk.phase as usize == phase {
            self.start_handling(job, now);
        } else {
            self.early.entry((job.npu, job.at.chunk)).or_default().push(job.at);
        }
    }

    /// The handling of a packet.
    #[inline]
    fn handling(&self, job: Job, shape: &Shape) -> Handling {
        match (shape.phase.kind, job.kind) {
            (_, Kind::Load) => Handling::Load,
            (_, Kind::Store) => Handling::Store,
            (_, Kind::Own) => shape.sending(),
            (PhaseKind::AllToAll, _) if self.next_hop(job.at, shape).is_some() => Handling::PassOn,
            (_, _) => shape.receiving(job.at.step),
        }
    }

    /// The ring and direction of a packet's next hop in an all-to-all.
    fn next_hop(&self, at: Piece, shape: &Shape) -> Option<(usize, u8)> {
        let cut = &self.cuts.cuts[self.cuts.transfer_of(at.chunk)];
        cut.torus.hop(at.step - shape.first + 1, u32::from(at.hop))
    }

    /// The next link of a packet.
    #[inline]
    fn direction(&self, at: Piece, shape: &Shape) -> (usize, u8) {
        let phase = shape.phase;
        if phase.kind == PhaseKind::AllToAll {
            return self.next_hop(at, shape).unwrap_or((phase.ring, 0));
        }
        (phase.ring, phase.direction_of(at.chunk))
    }

    /// Starts to handle a packet when the buffer of its link has space.
    fn start_handling(&mut self, job: Job, now: Time) {
        if let Some(port) = self.fabric.endpoint.port {
            let (_, shape) = self.cuts.at(job.at.chunk, job.at.step);
            if self.handling(job, shape).sends() {
                let (ring, direction) = self.direction(job.at, shape);
                let state = &mut self.npus[job.npu as usize];
                let link = &mut state.links[2 * ring + usize::from(direction)];
                if link.held >= port {
                    let own = job.kind == Kind::Own;
                    let link = 2 * ring + usize::from(direction);
                    return state.wait(link, (own, job.at), now);
                }
                link.held += 1;
            }
        }
        self.go(job, 0, now);
    }

    /// A packet has left for its link: the next waiting one is handled.
    fn leave(&mut self, job: Job, now: Time) {
        let (_, shape) = self.cuts.at(job.at.chunk, job.at.step);
        let (ring, direction) = self.direction(job.at, shape);
        let state = &mut self.npus[job.npu as usize];
        let link = &mut state.links[2 * ring + usize::from(direction)];
        let Some(Reverse(Waiting { since, own, at, .. })) = link.waiting.pop() else {
            link.held -= 1;
            return;
        };
        state.stall(Cause::Port, now - since);
        let kind = if own { Kind::Own } else { Kind::Came };
        self.go(Job { npu: job.npu, kind, at }, 0, now);
    }

    /// Moves a packet from stop to stop until one takes time.
    fn go(&mut self, job: Job, from: u8, now: Time) {
        let Job { npu, kind, at } = job;
        let (handling, bytes) = self.piece(job);
        let mut stop = from;
        while let Some(next) = self.fabric.endpoint.recipe(handling).get(usize::from(stop)) {
            let server = &mut self.npus[npu as usize].servers[next.server];
            let (_, done) = server.serve(now, Bytes(bytes.0 * next.times));
            stop += 1;
            if !next.aside && done > now {
                let Piece { chunk, step, piece, hop } = at;
                let event = Event { time: done, chunk, step, piece, hop, kind, stop, npu };
                self.events.push(Reverse(event));
                return;
            }
        }
        self.finish(job, handling, bytes, now);
    }

    /// The handling of a packet, and its size.
    #[inline]
    fn piece(&self, job: Job) -> (Handling, Bytes) {
        let Piece { chunk, step, piece, .. } = job.at;
        if matches!(job.kind, Kind::Load | Kind::Store) {
            return self.moved_piece(job);
        }
        let (_, shape) = self.cuts.at(chunk, step);
        (self.handling(job, shape), shape.bytes(piece))
    }

    fn moved_piece(&self, job: Job) -> (Handling, Bytes) {
        let chunk = job.at.chunk;
        let cut = &self.cuts.cuts[self.cuts.transfer_of(chunk)];
        let (handling, all) = match job.kind {
            Kind::Load => (Handling::Load, cut.shapes(chunk)[0].entry),
            _ => (Handling::Store, cut.done(chunk)),
        };
        let before = u64::from(job.at.piece) * self.fabric.message.0;
        (handling, Bytes((all.0 - before).min(self.fabric.message.0)))
    }

    /// A packet has passed its last stop.
    fn finish(&mut self, job: Job, handling: Handling, bytes: Bytes, now: Time) {
        if handling.sends() {
            self.send(job, bytes, now);
        }
        if job.kind == Kind::Own || handling == Handling::PassOn {
            return;
        }
        let Job { npu, kind, at } = job;
        let chunk = &mut self.npus[npu as usize].chunks[at.chunk as usize];
        chunk.left -= 1;
        if chunk.left == 0 {
            match kind {
                Kind::Load | Kind::Store => self.moved((npu, at.chunk), kind, now),
                _ => self.end_phase(npu, at.chunk, now),
            }
        }
    }

    /// Sends a packet on its link.
    fn send(&mut self, job: Job, bytes: Bytes, now: Time) {
        let Job { npu, kind, at } = job;
        let (_, shape) = self.cuts.at(at.chunk, at.step);
        let (ring, direction) = self.direction(at, shape);
        let onward = if shape.phase.kind == PhaseKind::AllToAll {
            Piece { hop: at.hop + 1, ..at }
        } else {
            Piece { step: at.step + u32::from(kind == Kind::Came), ..at }
        };
        let link = &mut self.npus[npu as usize].links[2 * ring + usize::from(direction)];
        let (start, left) = link.server.serve(now, bytes);
        let time = left + link.latency + self.fabric.endpoint.delay;
        let time = time + self.fabric.torus.relay(ring, bytes);
        self.links.add(start, left);
        if self.fabric.endpoint.port.is_some() {
            let Piece { chunk, step, piece, hop } = at;
            let event =
                Event { time: left, chunk, step, piece, hop, kind: Kind::Left, stop: 0, npu };
            self.events.push(Reverse(event));
        }
        let npu = match self.fabric.population {
            Population::One => npu,
            Population::All => self.fabric.torus.neighbour(npu, ring, direction),
        };
        let Piece { chunk, step, piece, hop } = onward;
        let event = Event { time, chunk, step, piece, hop, kind: Kind::Came, stop: 0, npu };
        self.events.push(Reverse(event));
    }

    /// A phase is complete: the chunk moves on when the next partition has space.
    fn end_phase(&mut self, npu: u32, chunk: u32, now: Time) {
        let state = &mut self.npus[npu as usize];
        let at = &mut state.chunks[chunk as usize];
        at.running = false;
        at.since = now;
        if state.handover == Handover::Ahead {
            self.move_on(npu, chunk, now);
            return self.go_on(npu, now);
        }
        let class = self.cuts.shapes(chunk)[at.phase as usize].phase.class;
        state.fsms[class].awaiting_space.push_back(chunk);
        self.go_on(npu, now);
    }

    /// Moves chunks with a complete phase on, while the next partition has space.
    fn hand_over(&mut self, npu: u32, class: usize, now: Time) {
        loop {
            let state = &mut self.npus[npu as usize];
            let Some(&chunk) = state.fsms[class].awaiting_space.front() else { return };
            let at = state.chunks[chunk as usize];
            let (next, bytes) = self.cuts.after(chunk, at.phase as usize, state.fsms.len());
            if !state.has_space(next, bytes) {
                return;
            }
            state.reserve_space(next, bytes);
            state.fsms[class].awaiting_space.pop_front();
            state.stall(Cause::NextPartition, now - at.since);
            self.move_on(npu, chunk, now);
        }
    }

    /// A chunk moves to the next phase, where it has space: its FSM and its space are released.
    fn move_on(&mut self, npu: u32, chunk: u32, now: Time) {
        let shapes = self.cuts.shapes(chunk);
        let state = &mut self.npus[npu as usize];
        let at = &mut state.chunks[chunk as usize];
        let Shape { phase, entry, .. } = shapes[at.phase as usize];
        at.phase += 1;
        let finished = at.phase as usize == shapes.len();
        let fsms = &mut state.fsms[phase.class];
        fsms.free = fsms.free.map(|free| free + 1);
        state.release_space(phase.class, entry);
        if finished {
            let done = self.cuts.cuts[self.cuts.transfer_of(chunk)].done(chunk);
            self.move_chunk((npu, chunk), Kind::Store, done, now);
        } else {
            self.enter((npu, chunk), now);
        }
    }

    /// A chunk has been stored and is complete.
    fn end(&mut self, (npu, chunk): (u32, u32), now: Time) {
        let transfer = self.cuts.transfer_of(chunk);
        let done = self.cuts.cuts[transfer].done(chunk);
        let state = &mut self.npus[npu as usize];
        state.release_space(state.fsms.len(), done);
        state.open = state.open.map(|open| open + 1);
        if let Some(since) = state.end_chunk(chunk, now) {
            self.active.add(since, now);
        }
        state.unfinished[transfer] -= 1;
        if state.unfinished[transfer] == 0 {
            self.done.push((npu, transfer));
        }
        self.go_on(npu, now);
    }

    /// Resources have been released: waiting chunks continue, later phases first.
    fn go_on(&mut self, npu: u32, now: Time) {
        for class in (0..self.npus[npu as usize].fsms.len()).rev() {
            self.hand_over(npu, class, now);
            self.start(npu, class, now);
        }
        self.admit(npu, now);
    }
}
