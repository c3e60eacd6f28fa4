//! The chip that the protocols share: cores, caches, memory, fabric and events.

use super::cache::{CachedLine, Caches, State};
use super::checker::Checker;
use super::core::{Core, Miss, Pending};
use super::error::CoherenceError;
use super::event_queue::EventQueue;
use super::memory::Memory;
use super::packet::{Kind, Packet, Packets};
use super::program::{Access, LINE_WORDS};
use super::run::{MissKind, Parts};
use super::settings::SystemSettings;
use super::stats::{Source, Stats};
use tutti_noc::smart::{Cast, Combine, Fabric, Flow, FlowId, Message, NodeSet};
use tutti_noc::{FlitError, Watchdog};

/// An event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A core continues after its access.
    Resume(u32),
    /// A core repeats its access.
    Issue(u32),
    /// The lookup in a core's caches ends.
    Lookup(u32),
    /// A message is sent.
    Send(u32),
    /// A message within a node arrives.
    Deliver { node: u32, packet: u32 },
    /// The snoop of a cache for a message ends.
    Snoop { node: u32, packet: u32 },
    /// A home processes a message.
    Home(u32),
    /// A request of a core times out.
    Timeout { core: u32, serial: u64 },
}

/// See the module.
pub(super) struct Chip {
    pub(super) settings: SystemSettings,
    pub(super) fabric: Box<dyn Fabric>,
    pub(super) nodes: u32,
    pub(super) now: u64,
    /// The first cycle that can still have events.
    pub(super) earliest: u64,
    pub(super) events: EventQueue<Event>,
    pub(super) packets: Packets,
    pub(super) cores: Vec<Core>,
    pub(super) caches: Vec<Caches>,
    /// A bit per line and core: whether the core's caches have the line. Saves searching them.
    presence: Vec<u64>,
    pub(super) memory: Memory,
    pub(super) checker: Checker,
    pub(super) stats: Stats,
    /// Evicted lines that the protocol has not processed.
    pub(super) evicted: Vec<(u32, CachedLine)>,
    /// Number of cores that have not finished.
    pub(super) unfinished: u32,
    /// Watches for accesses that complete and cores that continue.
    pub(super) progress: Watchdog,
    pub(super) error: Option<CoherenceError>,
    words: usize,
    serials: u64,
}

impl Chip {
    pub(super) fn new(
        settings: &SystemSettings,
        threads: Vec<super::program::Thread>,
        words: Vec<u64>,
        fabric: Box<dyn Fabric>,
    ) -> Chip {
        let (nodes, count) = (fabric.nodes(), words.len());
        let threads_count = u32::try_from(threads.len()).expect("no more threads than nodes");
        let mut threads = threads.into_iter();
        let core = |_| Core { thread: threads.next(), ..Core::default() };
        let cores = (0..nodes).map(core).collect();
        let on = settings.check || cfg!(debug_assertions);
        let memory = Memory::new(settings, words);
        let tokens = if settings.protocol == super::Protocol::Tc { nodes + 1 } else { 0 };
        let mut chip = Chip {
            fabric,
            nodes,
            now: 0,
            earliest: 0,
            events: EventQueue::new(),
            packets: Packets::default(),
            cores,
            caches: (0..nodes).map(|_| Caches::new(settings)).collect(),
            checker: Checker::new(on, nodes, tokens, memory.words()),
            presence: vec![0; memory.lines() as usize * nodes.div_ceil(64) as usize],
            memory,
            stats: Stats::new(threads_count, on),
            evicted: Vec::new(),
            unfinished: threads_count,
            progress: Watchdog::new(settings.patience, 1),
            error: None,
            words: count,
            serials: 0,
            settings: settings.clone(),
        };
        for core in 0..threads_count {
            chip.events.schedule(0, 0, Event::Resume(core));
        }
        chip
    }

    /// Schedules an event `cycles` cycles from now.
    #[inline]
    pub(super) fn after(&mut self, cycles: u64, event: Event) {
        let cycle = (self.now + cycles).max(self.earliest);
        self.events.schedule(self.now, cycle, event);
    }

    // --- cores ---------------------------------------------------------------------------------

    /// Runs a core up to its next memory access or work.
    pub(super) fn resume(&mut self, id: u32) {
        self.progress.moved(self.now);
        loop {
            let core = &mut self.cores[id as usize];
            let Some(thread) = &mut core.thread else { return };
            match thread.resume(core.value) {
                None => {
                    core.thread = None;
                    self.unfinished -= 1;
                    return;
                }
                Some(Access::Compute { cycles }) => {
                    self.instructions(cycles);
                    if cycles > 0 {
                        self.after(cycles, Event::Resume(id));
                        return;
                    }
                }
                Some(access @ (Access::Begin | Access::End)) => {
                    self.enter_or_leave_region(id, access)
                }
                Some(access) => {
                    self.instructions(1);
                    self.start_access(id, access);
                    return;
                }
            }
        }
    }

    #[inline]
    fn instructions(&mut self, count: u64) {
        if self.stats.counts() {
            self.stats.run.instructions += count;
        }
    }

    /// Returns whether an unfinished core computes on registers.
    pub(super) fn computes(&self) -> bool {
        self.cores.iter().any(|core| core.thread.is_some() && core.pending.is_none())
    }

    fn enter_or_leave_region(&mut self, core: u32, access: Access) {
        let (counts, memory) = (*self.fabric.counts(), self.memory.traffic());
        let result = match access {
            Access::Begin => self.stats.begin(self.now, counts, memory),
            _ => self.stats.end(self.now, counts, memory),
        };
        if let Err(what) = result {
            self.fail(CoherenceError::Region { cycle: self.now, core, what });
        }
    }

    fn start_access(&mut self, core: u32, access: Access) {
        match Pending::new(access, self.words, self.now) {
            Ok(pending) => {
                self.cores[core as usize].pending = Some(pending);
                self.issue(core);
            }
            Err(address) => {
                let end = self.words as u64 * 8;
                self.fail(CoherenceError::Address { cycle: self.now, core, address, end });
            }
        }
    }

    /// Starts a core's access; an L1 hit completes it.
    pub(super) fn issue(&mut self, id: u32) {
        let core = &mut self.cores[id as usize];
        let pending = core.pending.as_mut().expect("a core with an access in progress");
        pending.issued = self.now;
        let (line, write) = (pending.line, pending.write);
        if let Some(since) = core.spinning.take()
            && self.stats.counts()
        {
            self.stats.run.spun += self.now - since;
        }
        let state = self.caches[id as usize].l1.touch(line).map(|held| held.state);
        let l1 = self.settings.l1_cycles;
        if state.is_some_and(|state| !write || state.writable()) {
            self.perform(id, l1);
            return;
        }
        if self.stats.counts() {
            self.stats.run.l1_misses += 1;
        }
        let cycles = if state.is_some() { l1 } else { l1 + self.settings.l2_cycles };
        self.after(cycles, Event::Lookup(id));
    }

    /// Completes a core's access after the lookup, or starts a miss; returns whether it misses.
    pub(super) fn finish_lookup(&mut self, id: u32) -> bool {
        let pending = self.cores[id as usize].pending.expect("a core with an access in progress");
        let Pending { line, write, issued, .. } = pending;
        let caches = &mut self.caches[id as usize];
        if let Some(evicted) = caches.promote(line) {
            self.evict(id, evicted);
        }
        let state = self.caches[id as usize].l1.touch(line).map(|held| held.state);
        if state.is_some_and(|state| !write || state.writable()) {
            self.perform(id, 0);
            return false;
        }
        self.serials += 1;
        let kind = match (write, state) {
            (false, _) => MissKind::Read,
            (true, None) => MissKind::Write,
            (true, Some(_)) => MissKind::Upgrade,
        };
        let (serial, now) = (self.serials, self.now);
        let miss = Miss { line, write, kind, serial, issued, lookup_done: now, sent: now };
        self.cores[id as usize].miss = Some(miss);
        true
    }

    /// Performs a core's access, for which its L1 has the line and the permission, and resumes the
    /// core after `cycles` cycles. A spin that reads its value waits until the copy is invalidated.
    fn perform(&mut self, id: u32, cycles: u64) {
        let core = &mut self.cores[id as usize];
        let pending = core.pending.expect("a core with an access in progress");
        let (word, offset) = (pending.word, pending.word % LINE_WORDS);
        let held = self.caches[id as usize].l1.get_mut(pending.line).expect("the line is cached");
        let old = held.words[offset];
        self.checker.loaded(id, word, old);
        if let Some(new) = pending.new_value(old) {
            held.words[offset] = new;
            (held.state, held.dirty) = (State::Modified, true);
            self.checker.stored(id, word, new);
        }
        if self.stats.counts() {
            self.stats.run.accesses += 1;
        }
        self.progress.moved(self.now);
        core.value = old;
        if matches!(pending.access, Access::SpinWhile { value, .. } if value == old) {
            core.spinning = Some(self.now);
            return;
        }
        core.pending = None;
        self.after(cycles, Event::Resume(id));
    }

    /// Completes a miss: performs the access and resumes the core.
    pub(super) fn finish(&mut self, core: u32, parts: &Parts, source: Source) {
        let miss = self.cores[core as usize].miss.take().expect("a core with a miss");
        self.stats.missed(self.now, &miss, parts, source);
        self.caches[core as usize].l1.touch(miss.line);
        let work = self.settings.work_per_miss;
        self.instructions(work);
        self.perform(core, 1 + work);
    }

    // --- caches --------------------------------------------------------------------------------

    /// Returns word and bit of a core and line in `presence`.
    #[inline]
    fn presence_of(&self, core: u32, line: u32) -> (usize, u64) {
        let stride = self.nodes.div_ceil(64) as usize;
        (line as usize * stride + core as usize / 64, 1 << (core % 64))
    }

    /// Returns whether a core's caches have a line.
    #[inline]
    pub(super) fn has(&self, core: u32, line: u32) -> bool {
        let (word, bit) = self.presence_of(core, line);
        self.presence[word] & bit != 0
    }

    /// Returns a core's copy of a line.
    #[inline]
    pub(super) fn held(&self, core: u32, line: u32) -> Option<&CachedLine> {
        if self.has(core, line) { self.caches[core as usize].get(line) } else { None }
    }

    /// Returns whether a core waits for a line.
    #[inline]
    pub(super) fn misses(&self, core: u32, line: u32) -> bool {
        self.cores[core as usize].miss.is_some_and(|miss| miss.line == line)
    }

    /// Inserts a line into a core's caches. The protocol processes evicted lines later in this
    /// cycle.
    pub(super) fn install(&mut self, core: u32, held: CachedLine) {
        self.checker.copy(core, None, Some(&held));
        let (word, bit) = self.presence_of(core, held.line);
        self.presence[word] |= bit;
        if let Some(evicted) = self.caches[core as usize].insert(held) {
            self.evict(core, evicted);
        }
    }

    fn evict(&mut self, core: u32, held: CachedLine) {
        self.checker.copy(core, Some(&held), None);
        self.forget(core, held.line);
        self.evicted.push((core, held));
    }

    fn forget(&mut self, core: u32, line: u32) {
        let (word, bit) = self.presence_of(core, line);
        self.presence[word] &= !bit;
    }

    /// Changes a cached copy.
    pub(super) fn change(&mut self, core: u32, line: u32, change: impl FnOnce(&mut CachedLine)) {
        let held = self.caches[core as usize].get_mut(line).expect("the line is cached");
        let before = *held;
        change(held);
        self.checker.copy(core, Some(&before), Some(held));
    }

    /// Invalidates a copy; a core that spins on it reads again.
    pub(super) fn discard(&mut self, core: u32, line: u32) -> Option<CachedLine> {
        if !self.has(core, line) {
            return None;
        }
        self.forget(core, line);
        let held = self.caches[core as usize].remove(line).expect("the line is cached");
        self.checker.copy(core, Some(&held), None);
        let waiting = &self.cores[core as usize];
        if waiting.spinning.is_some() && waiting.pending.is_some_and(|pending| pending.line == line)
        {
            self.after(1, Event::Issue(core));
        }
        Some(held)
    }

    // --- messages ------------------------------------------------------------------------------

    /// Sends a message now or in a later cycle.
    pub(super) fn send_at(&mut self, cycle: u64, packet: Packet) {
        let id = self.packets.add(packet);
        if cycle <= self.now {
            self.post(id);
        } else {
            self.events.schedule(self.now, cycle, Event::Send(id));
        }
    }

    /// Sends a message now.
    pub(super) fn send(&mut self, packet: Packet) {
        self.send_at(self.now, packet);
    }

    /// Broadcasts a message, which each other node and `extra` further recipients process; returns
    /// its number.
    pub(super) fn broadcast(&mut self, mut packet: Packet, extra: u32) -> u32 {
        packet.arriving = self.nodes - 1;
        packet.remaining = self.nodes - 1 + extra;
        let id = self.packets.add(packet);
        self.post(id);
        id
    }

    pub(super) fn post(&mut self, id: u32) {
        let packet = self.packets.get_mut(id);
        packet.sent = self.now;
        let Packet { kind, from, to, words, .. } = *packet;
        if !kind.is_broadcast() && from == to {
            self.after(1, Event::Deliver { node: to, packet: id });
            return;
        }
        let cast = match kind.is_broadcast() {
            true => Cast::Many(NodeSet::all_but(self.nodes, from)),
            false => Cast::One(to),
        };
        let flits = if words.is_some() { self.settings.data_flits } else { 1 };
        let (created, class, tag) = (self.now, kind.class(), u64::from(id));
        self.stats.sent(kind);
        let sent = self.fabric.send(Message { created, source: from, cast, class, flits, tag });
        self.accept(sent);
    }

    /// Opens a reduction of responses to a node. Arrivals return the number of `packet`.
    pub(super) fn open(&mut self, packet: Packet, members: NodeSet, held: bool) -> Option<FlowId> {
        let (line, serial, kind, destination) =
            (packet.line, packet.serial, packet.kind, packet.to);
        self.checker.expect_responses(line, serial, members.len());
        let tag = u64::from(self.packets.add(packet));
        let flow = Flow {
            created: self.now,
            destination,
            members,
            class: kind.class(),
            combine: match self.settings.shared_hint {
                super::SharedHint::Or => Combine::Or,
                super::SharedHint::Never => Combine::Count,
            },
            held,
            tag,
        };
        self.stats.sent(kind);
        self.stats.reductions(self.now, 1);
        let opened = self.fabric.open(flow);
        self.accept(opened)
    }

    /// Sends a response of a node.
    pub(super) fn respond(&mut self, node: u32, flow: FlowId, bits: u64) {
        let (created, class) = (self.now, Kind::Responses.class());
        let cast = Cast::Response(flow, bits);
        let sent =
            self.fabric.send(Message { created, source: node, cast, class, flits: 1, tag: 0 });
        self.accept(sent);
    }

    fn accept<T>(&mut self, result: Result<T, FlitError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(source) => {
                self.fail(CoherenceError::Fabric { cycle: self.now, source });
                None
            }
        }
    }

    pub(super) fn fail(&mut self, error: CoherenceError) {
        self.error.get_or_insert(error);
    }
}
