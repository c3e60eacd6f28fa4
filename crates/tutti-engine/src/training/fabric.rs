//! Collectives on endpoints, packet by packet: the events of chunks, in order of time.
//!
//! A chunk of a collective starts at an NPU when [`crate::endpoint::Admission`] admits it. It is
//! loaded, passes the phases of its schedule, and is stored. In a phase the NPU sends local packets
//! and handles packets of other NPUs, as the [`crate::dataflow`] of the schedule demands. A packet
//! passes the stops of its handling in order, then the network.
//!
//! **Symmetry.** If all NPUs do the same at the same time, an NPU receives from one neighbour what
//! it sends to the other, simultaneously. One NPU with links to itself therefore represents all
//! ([`Population::One`]); [`Population::All`] simulates each, and tests compare the two.
//! Simultaneous events are ordered by (chunk, message, packet), so the index of an NPU has no
//! effect.

use std::collections::BTreeMap;

use super::TrainingRunError;
use super::algorithms::Algorithms;
use super::entry::Order;
use super::event::{Event, Events, Job, Kind};
use super::network::{Messages, StepNetwork};
use super::npu::{Awaited, Cause, Npu, Piece};
use super::operations::Operations;
use super::transfers::Cuts;
use super::trees::Trees;
use super::windows::Windows;
use crate::endpoint::ace::Handover;
use crate::endpoint::{Endpoint, Handling};
use tutti_units::{Bytes, Time};

/// The simulated NPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Population {
    /// One NPU, which represents all.
    One,
    /// Every NPU.
    All,
}

/// How finely transfers are simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Packet by packet, behind endpoints.
    #[default]
    Packets,
    /// As flows between NPUs, without endpoints.
    Flows,
}

/// The network side of a training run.
#[derive(Clone, Debug)]
pub struct TrainingFabric {
    /// The network.
    pub network: StepNetwork,
    /// The dimensions of the NPU numbers, innermost first; on a torus, its rings.
    pub sizes: Vec<u32>,
    /// The schedules of collectives.
    pub algorithms: Algorithms,
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
    /// How finely transfers are simulated.
    pub detail: Detail,
    /// Time from the issue of a collective on an NPU until it starts there.
    pub launch: Time,
}

impl TrainingFabric {
    /// Checks that the dimensions have the NPUs of the network.
    pub(super) fn check_sizes(&self) -> Result<(), TrainingRunError> {
        let npus = self.network.npus();
        let count = |product: u64, &size: &u32| product.saturating_mul(u64::from(size));
        let product = self.sizes.iter().fold(1, count);
        if product == u64::from(npus) {
            return Ok(());
        }
        let sizes = self.sizes.clone();
        Err(TrainingRunError::WrongSizes { sizes, product, npus })
    }
}

/// The run of a fabric.
pub(super) struct Running<'a> {
    pub(super) fabric: &'a TrainingFabric,
    pub(super) cuts: Cuts,
    pub(super) npus: Vec<Npu>,
    /// An NPU in its initial state.
    fresh: Npu,
    pub(super) events: Events,
    /// Packets on a network other than a torus.
    pub(super) messages: Option<Messages<'a>>,
    /// Packets of multicasts and combines that await others of the same tree.
    pub(super) trees: Trees,
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
        operations: &Operations,
        window: Time,
    ) -> Result<Running<'a>, TrainingRunError> {
        let TrainingFabric { network, endpoint, .. } = fabric;
        let cuts = Cuts::of_run(fabric, operations)?;
        let npu = |npu| {
            let mut npu = Npu::new(endpoint, &network.exits(npu), cuts.classes);
            npu.chunks.resize(cuts.chunks(), super::npu::Chunk::default());
            npu.unfinished = cuts.cuts.iter().map(|cut| cut.chunks).collect();
            npu
        };
        let count = u32::try_from(fabric.simulated()).expect("fewer than 2^32 NPUs");
        Ok(Running {
            fabric,
            npus: (0..count).map(npu).collect(),
            fresh: npu(0),
            events: Events::new(),
            messages: Messages::new(network),
            trees: Trees::default(),
            early: BTreeMap::new(),
            done: Vec::new(),
            links: Windows::new(window),
            active: Windows::new(window),
            cuts,
        })
    }

    /// The time of the next event, if it is not after `until`.
    pub(super) fn next(&mut self, until: Option<Time>) -> Option<Time> {
        self.run_network(until);
        self.events.next().filter(|&time| until.is_none_or(|until| time <= until))
    }

    /// The transfers completed since the last call.
    pub(super) fn take_done(&mut self, into: &mut Vec<(u32, usize)>) {
        into.append(&mut self.done);
    }

    /// Whether all resources have been released: SRAM space, FSMs, buffers, chunks.
    pub(super) fn is_at_rest(&self) -> bool {
        self.events.is_empty()
            && self.early.is_empty()
            && self.trees.is_empty()
            && self.npus.iter().all(|npu| npu.has_released_all(&self.fresh))
    }

    /// Issues a collective, or a side of a message, on an NPU.
    pub(super) fn issue(&mut self, npu: u32, transfer: usize, now: Time) {
        let cut = &self.cuts.cuts[transfer];
        if cut.message.is_some() {
            for chunk in cut.first..cut.first + cut.chunks {
                self.npus[npu as usize].start_chunk(chunk, now);
                let loaded = self.cuts.sizes(chunk).loaded;
                self.move_chunk((npu, chunk), Kind::Load, loaded, now);
            }
            return;
        }
        self.npus[npu as usize].entry.put(transfer, cut.level, cut.chunks, now);
        self.admit(npu, now);
    }

    /// Executes the next event.
    pub(super) fn step(&mut self) {
        let Some(event) = self.events.pop() else { return };
        let Event { time, chunk, step, piece, hop, kind, stop, npu } = event;
        let job = self.located(Job::new(npu, kind, Piece { chunk, step, piece, hop }));
        match kind {
            Kind::Left => self.leave(npu, stop, time),
            Kind::Came if stop == 0 => self.arrive(job, time),
            _ => self.go(job, stop, time),
        }
        if kind == Kind::Load {
            self.load(npu, time);
        }
        // With many chunks only after the first packet of each message: the check visits all chunks.
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
            let (partition, entry) = self.cuts.partition(chunk, 0, state.classes());
            if state.open == Some(0) || !state.has_space(partition, entry) {
                return;
            }
            state.open = state.open.map(|open| open - 1);
            state.reserve_space(partition, entry);
            state.entry.take(self.fabric.order);
            state.stall(Cause::Entry, now - since);
            state.start_chunk(chunk, now);
            let loaded = self.cuts.sizes(chunk).loaded;
            self.move_chunk((npu, chunk), Kind::Load, loaded, now);
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
        if kind == Kind::Load {
            let messages = (0..count).map(|piece| (chunk, piece));
            self.npus[npu as usize].loading.extend(messages);
            return self.load(npu, now);
        }
        for piece in 0..count {
            self.go(Job::new(npu, kind, Piece { chunk, step: 0, piece, hop: 0 }), 0, now);
        }
    }

    /// Loads messages while there are free DMA slots.
    pub(super) fn load(&mut self, npu: u32, now: Time) {
        loop {
            let state = &mut self.npus[npu as usize];
            if state.loads == Some(0) {
                return;
            }
            let Some((chunk, piece)) = state.loading.pop_front() else { return };
            state.loads = state.loads.map(|loads| loads - 1);
            let at = Piece { chunk, step: 0, piece, hop: 0 };
            self.go(Job::new(npu, Kind::Load, at), 0, now);
        }
    }

    /// A chunk has been loaded or stored.
    pub(super) fn moved(&mut self, (npu, chunk): (u32, u32), kind: Kind, now: Time) {
        if kind == Kind::Load { self.enter((npu, chunk), now) } else { self.end((npu, chunk), now) }
    }

    /// A chunk waits for its phase.
    fn enter(&mut self, (npu, chunk): (u32, u32), now: Time) {
        let state = &mut self.npus[npu as usize];
        let at = &mut state.chunks[chunk as usize];
        if self.cuts.is_message(chunk) {
            at.running = true;
            return self.run(npu, chunk, 0, now);
        }
        at.since = now;
        let pool = self.cuts.pool(chunk, at.phase);
        state.fsms[pool].waiting.push_back(chunk);
        self.start(npu, pool, now);
    }

    /// Starts the phase of the chunks that wait in `pool`, while there are FSMs and space.
    fn start(&mut self, npu: u32, pool: usize, now: Time) {
        loop {
            let state = &mut self.npus[npu as usize];
            let Some(&chunk) = state.fsms[pool].waiting.front() else { return };
            let Some(class) = state.free_fsm(pool) else {
                state.fsms[pool].blocked_by = Some(Cause::Fsm);
                return;
            };
            let at = state.chunks[chunk as usize];
            if state.handover == Handover::Ahead {
                let (next, bytes) = self.cuts.partition(chunk, at.phase + 1, state.classes());
                if !state.has_space(next, bytes) {
                    state.fsms[pool].blocked_by = Some(Cause::NextPartition);
                    return;
                }
                state.reserve_space(next, bytes);
            }
            state.fsms[class].free = state.fsms[class].free.map(|free| free - 1);
            let from = &mut state.fsms[pool];
            from.waiting.pop_front();
            let cause = from.blocked_by.take().unwrap_or(Cause::Fsm);
            state.stall(cause, now - at.since);
            let started = &mut state.chunks[chunk as usize];
            started.running = true;
            started.fsm = u16::try_from(class).unwrap_or(u16::MAX);
            self.run(npu, chunk, at.phase as usize, now);
        }
    }

    /// Starts the sends of a phase that await nothing, and packets received early.
    fn run(&mut self, npu: u32, chunk: u32, phase: usize, now: Time) {
        let (list, sizes) = (self.cuts.list(npu, chunk), self.cuts.sizes(chunk));
        let handled = sizes.handled(list, phase);
        if list.awaits_messages {
            let awaited = Awaited {
                packets: list
                    .recvs_of(phase)
                    .map(|recv| sizes.packets(list.recvs[recv as usize].length))
                    .collect(),
                messages: list
                    .sends_of(phase)
                    .map(|send| list.sends[send as usize].awaits)
                    .collect(),
            };
            self.npus[npu as usize].awaited.insert(chunk, awaited);
        }
        self.npus[npu as usize].chunks[chunk as usize].left = handled;
        for send in self.cuts.list(npu, chunk).sends_of(phase) {
            if self.cuts.list(npu, chunk).sends[send as usize].awaits == 0 {
                self.start_send((npu, chunk), send, now);
            }
        }
        for at in self.early.remove(&(npu, chunk)).into_iter().flatten() {
            self.arrive(Job::new(npu, Kind::Came, at), now);
        }
        if handled == 0 {
            self.end_phase(npu, chunk, now);
        }
    }

    /// Starts the packets of a send.
    pub(super) fn start_send(&mut self, (npu, chunk): (u32, u32), send: u32, now: Time) {
        let length = self.cuts.list(npu, chunk).sends[send as usize].length;
        for piece in 0..self.cuts.sizes(chunk).packets(length) {
            let at = Piece { chunk, step: send, piece, hop: 0 };
            self.start_handling(Job::new(npu, Kind::Own, at), now);
        }
    }

    /// A packet arrives. At its receiver it waits until its chunk is in the phase; an NPU relays it at
    /// once.
    fn arrive(&mut self, job: Job, now: Time) {
        let Job { npu, at, .. } = job;
        if self.is_relayed(job) {
            return self.start_handling(job, now);
        }
        let chunk = self.npus[npu as usize].chunks[at.chunk as usize];
        let phase = self.cuts.list(npu, at.chunk).phase_of(at.step);
        if chunk.running && chunk.phase as usize == phase {
            self.start_handling(job, now);
        } else {
            self.early.entry((npu, at.chunk)).or_default().push(at);
        }
    }

    /// A phase is complete: the chunk moves on when the next partition has space.
    pub(super) fn end_phase(&mut self, npu: u32, chunk: u32, now: Time) {
        let state = &mut self.npus[npu as usize];
        state.awaited.remove(&chunk);
        let at = &mut state.chunks[chunk as usize];
        at.running = false;
        at.since = now;
        if self.cuts.is_message(chunk) {
            at.phase += 1;
            let result = self.cuts.sizes(chunk).result;
            return self.move_chunk((npu, chunk), Kind::Store, result, now);
        }
        if state.handover == Handover::Ahead {
            self.move_on(npu, chunk, now);
            return self.go_on(npu, now);
        }
        let pool = self.cuts.pool(chunk, at.phase);
        state.fsms[pool].awaiting_space.push_back(chunk);
        self.go_on(npu, now);
    }

    /// Moves chunks with a complete phase on, while the next partition has space.
    fn hand_over(&mut self, npu: u32, pool: usize, now: Time) {
        loop {
            let state = &mut self.npus[npu as usize];
            let Some(&chunk) = state.fsms[pool].awaiting_space.front() else { return };
            let at = state.chunks[chunk as usize];
            let (next, bytes) = self.cuts.partition(chunk, at.phase + 1, state.classes());
            if !state.has_space(next, bytes) {
                return;
            }
            state.reserve_space(next, bytes);
            state.fsms[pool].awaiting_space.pop_front();
            state.stall(Cause::NextPartition, now - at.since);
            self.move_on(npu, chunk, now);
        }
    }

    /// A chunk moves to the next phase, where it has space: its FSM and its space are released.
    fn move_on(&mut self, npu: u32, chunk: u32, now: Time) {
        let state = &mut self.npus[npu as usize];
        let at = &mut state.chunks[chunk as usize];
        let (partition, entry) = self.cuts.partition(chunk, at.phase, self.cuts.classes);
        at.phase += 1;
        let finished = at.phase as usize == self.cuts.phases(chunk);
        let fsms = &mut state.fsms[usize::from(at.fsm)];
        fsms.free = fsms.free.map(|free| free + 1);
        state.release_space(partition, entry);
        if finished {
            let result = self.cuts.sizes(chunk).result;
            self.move_chunk((npu, chunk), Kind::Store, result, now);
        } else {
            self.enter((npu, chunk), now);
        }
    }

    /// A chunk has been stored and is complete.
    fn end(&mut self, (npu, chunk): (u32, u32), now: Time) {
        let transfer = self.cuts.transfer_of(chunk);
        let result = self.cuts.sizes(chunk).result;
        let state = &mut self.npus[npu as usize];
        if !self.cuts.is_message(chunk) {
            state.release_space(state.classes(), result);
            state.open = state.open.map(|open| open + 1);
        }
        if let Some(since) = state.end_chunk(chunk, now) {
            self.active.add(since, now);
        }
        state.unfinished[transfer] -= 1;
        if state.unfinished[transfer] == 0 {
            self.done.push((npu, transfer));
        }
        self.go_on(npu, now);
    }

    /// Resources have been released: waiting chunks continue, those of any FSM and of later phases
    /// first.
    fn go_on(&mut self, npu: u32, now: Time) {
        for pool in (0..self.npus[npu as usize].fsms.len()).rev() {
            self.hand_over(npu, pool, now);
            self.start(npu, pool, now);
        }
        self.admit(npu, now);
    }
}
