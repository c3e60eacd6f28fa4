//! The chip that all protocols work on: cores, caches, memory, the fabric, and what is to happen when.

use super::agenda::Agenda;
use super::cache::{Caches, Held, State};
use super::checker::Checker;
use super::core::{Core, Miss, Pending};
use super::error::CoherenceError;
use super::memory::Memory;
use super::packet::{Kind, Packet, Packets};
use super::program::{Access, LINE_WORDS};
use super::run::{MissKind, Parts};
use super::settings::SystemSettings;
use super::stats::{Source, Stats};
use tutti_noc::smart::{Cast, Combine, Fabric, Flow, FlowId, Message, NodeSet};
use tutti_noc::{FlitError, Watchdog};

/// What is to happen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A core goes on with the answer to its access.
    Resume(u32),
    /// A core begins its access again.
    Issue(u32),
    /// A core has looked into its caches.
    Look(u32),
    /// A message is sent.
    Send(u32),
    /// A message within a node arrives.
    Deliver { node: u32, packet: u32 },
    /// A cache has been looked into for a message.
    Snoop { node: u32, packet: u32 },
    /// A home turns to a message.
    Home(u32),
    /// A core has waited long enough for a miss.
    Timeout { core: u32, serial: u64 },
}

/// See the module.
pub(super) struct Chip {
    pub(super) settings: SystemSettings,
    pub(super) fabric: Box<dyn Fabric>,
    pub(super) nodes: u32,
    pub(super) now: u64,
    /// The first cycle for which something can still be put down.
    pub(super) earliest: u64,
    pub(super) agenda: Agenda<Event>,
    pub(super) packets: Packets,
    pub(super) cores: Vec<Core>,
    pub(super) caches: Vec<Caches>,
    /// Bit by bit, whether a core's caches have a line: so those that have not are not searched.
    presence: Vec<u64>,
    pub(super) memory: Memory,
    pub(super) checker: Checker,
    pub(super) stats: Stats,
    /// What fell out of caches and the protocol has not seen yet.
    pub(super) fallen: Vec<(u32, Held)>,
    /// Cores that are not finished.
    pub(super) unfinished: u32,
    /// Watches for accesses that complete and cores that continue.
    pub(super) progress: Watchdog,
    pub(super) trouble: Option<CoherenceError>,
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
            agenda: Agenda::new(),
            packets: Packets::default(),
            cores,
            caches: (0..nodes).map(|_| Caches::new(settings)).collect(),
            checker: Checker::new(on, nodes, tokens, memory.words()),
            presence: vec![0; memory.lines() as usize * nodes.div_ceil(64) as usize],
            memory,
            stats: Stats::new(threads_count, on),
            fallen: Vec::new(),
            unfinished: threads_count,
            progress: Watchdog::new(settings.patience, 1),
            trouble: None,
            words: count,
            serials: 0,
            settings: settings.clone(),
        };
        for core in 0..threads_count {
            chip.agenda.put(0, 0, Event::Resume(core));
        }
        chip
    }

    /// Puts an event down, for so many cycles from now.
    #[inline]
    pub(super) fn after(&mut self, cycles: u64, event: Event) {
        let cycle = (self.now + cycles).max(self.earliest);
        self.agenda.put(self.now, cycle, event);
    }

    // --- cores ---------------------------------------------------------------------------------

    /// Lets a core go on, up to its next access to memory or work.
    pub(super) fn resume(&mut self, id: u32) {
        self.progress.moved(self.now);
        loop {
            let core = &mut self.cores[id as usize];
            let Some(thread) = &mut core.thread else { return };
            match thread.resume(core.answer) {
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
                Some(access @ (Access::Begin | Access::End)) => self.mark(id, access),
                Some(access) => {
                    self.instructions(1);
                    self.begin(id, access);
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

    /// Whether a core that is not finished works on registers.
    pub(super) fn computes(&self) -> bool {
        self.cores.iter().any(|core| core.thread.is_some() && core.pending.is_none())
    }

    fn mark(&mut self, core: u32, access: Access) {
        let (counts, memory) = (*self.fabric.counts(), self.memory.traffic());
        let result = match access {
            Access::Begin => self.stats.begin(self.now, counts, memory),
            _ => self.stats.end(self.now, counts, memory),
        };
        if let Err(what) = result {
            self.fail(CoherenceError::Region { cycle: self.now, core, what });
        }
    }

    fn begin(&mut self, core: u32, access: Access) {
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

    /// Begins a core's access: done at once if the first cache has the line.
    pub(super) fn issue(&mut self, id: u32) {
        let core = &mut self.cores[id as usize];
        let pending = core.pending.as_mut().expect("a core that has an access to do");
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
        self.after(cycles, Event::Look(id));
    }

    /// When its caches have been looked into: does a core's access if they have the line, and otherwise
    /// begins a miss; whether it does.
    pub(super) fn look(&mut self, id: u32) -> bool {
        let pending = self.cores[id as usize].pending.expect("a core that has an access to do");
        let Pending { line, write, issued, .. } = pending;
        let caches = &mut self.caches[id as usize];
        if let Some(fallen) = caches.promote(line) {
            self.fell(id, fallen);
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
        let miss = Miss { line, write, kind, serial, issued, looked: now, sent: now };
        self.cores[id as usize].miss = Some(miss);
        true
    }

    /// Does a core's access, for which its first cache has what it takes, and lets it go on after so many
    /// cycles; a core that spins goes on when its copy is gone.
    fn perform(&mut self, id: u32, cycles: u64) {
        let core = &mut self.cores[id as usize];
        let pending = core.pending.expect("a core that has an access to do");
        let (word, place) = (pending.word, pending.word % LINE_WORDS);
        let held = self.caches[id as usize].l1.get_mut(pending.line).expect("the line is there");
        let old = held.words[place];
        self.checker.loaded(id, word, old);
        if let Some(new) = pending.new_value(old) {
            held.words[place] = new;
            (held.state, held.dirty) = (State::Modified, true);
            self.checker.stored(id, word, new);
        }
        if self.stats.counts() {
            self.stats.run.accesses += 1;
        }
        self.progress.moved(self.now);
        core.answer = old;
        if matches!(pending.access, Access::SpinWhile { value, .. } if value == old) {
            core.spinning = Some(self.now);
            return;
        }
        core.pending = None;
        self.after(cycles, Event::Resume(id));
    }

    /// A miss has what it takes: the core does its access and goes on.
    pub(super) fn finish(&mut self, core: u32, parts: &Parts, source: Source) {
        let miss = self.cores[core as usize].miss.take().expect("a core that misses");
        self.stats.missed(self.now, &miss, parts, source);
        self.caches[core as usize].l1.touch(miss.line);
        self.perform(core, 1);
    }

    // --- caches --------------------------------------------------------------------------------

    /// The place of a core's bit for a line.
    #[inline]
    fn presence_of(&self, core: u32, line: u32) -> (usize, u64) {
        let stride = self.nodes.div_ceil(64) as usize;
        (line as usize * stride + core as usize / 64, 1 << (core % 64))
    }

    /// Whether a core's caches have a line.
    #[inline]
    pub(super) fn has(&self, core: u32, line: u32) -> bool {
        let (word, bit) = self.presence_of(core, line);
        self.presence[word] & bit != 0
    }

    /// A core's copy of a line.
    #[inline]
    pub(super) fn held(&self, core: u32, line: u32) -> Option<&Held> {
        if self.has(core, line) { self.caches[core as usize].get(line) } else { None }
    }

    /// Whether a core waits for a line.
    #[inline]
    pub(super) fn misses(&self, core: u32, line: u32) -> bool {
        self.cores[core as usize].miss.is_some_and(|miss| miss.line == line)
    }

    /// Puts a line into a core's caches; what falls out is seen by the protocol later in this cycle.
    pub(super) fn install(&mut self, core: u32, held: Held) {
        self.checker.copy(core, None, Some(&held));
        let (word, bit) = self.presence_of(core, held.line);
        self.presence[word] |= bit;
        if let Some(fallen) = self.caches[core as usize].insert(held) {
            self.fell(core, fallen);
        }
    }

    fn fell(&mut self, core: u32, held: Held) {
        self.checker.copy(core, Some(&held), None);
        self.forget(core, held.line);
        self.fallen.push((core, held));
    }

    fn forget(&mut self, core: u32, line: u32) {
        let (word, bit) = self.presence_of(core, line);
        self.presence[word] &= !bit;
    }

    /// Changes a copy that is there.
    pub(super) fn change(&mut self, core: u32, line: u32, change: impl FnOnce(&mut Held)) {
        let held = self.caches[core as usize].get_mut(line).expect("the line is there");
        let before = *held;
        change(held);
        self.checker.copy(core, Some(&before), Some(held));
    }

    /// Takes a copy out; a core that spins on it looks again.
    pub(super) fn discard(&mut self, core: u32, line: u32) -> Option<Held> {
        if !self.has(core, line) {
            return None;
        }
        self.forget(core, line);
        let held = self.caches[core as usize].remove(line).expect("the line is there");
        self.checker.copy(core, Some(&held), None);
        let waiting = &self.cores[core as usize];
        if waiting.spinning.is_some() && waiting.pending.is_some_and(|pending| pending.line == line)
        {
            self.after(1, Event::Issue(core));
        }
        Some(held)
    }

    // --- messages ------------------------------------------------------------------------------

    /// Sends a message, or puts it down for a later cycle.
    pub(super) fn send_at(&mut self, cycle: u64, packet: Packet) {
        let id = self.packets.add(packet);
        if cycle <= self.now {
            self.post(id);
        } else {
            self.agenda.put(self.now, cycle, Event::Send(id));
        }
    }

    /// Sends a message now.
    pub(super) fn send(&mut self, packet: Packet) {
        self.send_at(self.now, packet);
    }

    /// Broadcasts a message; it is looked at once at each other node, and so often besides. Its number.
    pub(super) fn broadcast(&mut self, mut packet: Packet, besides: u32) -> u32 {
        packet.arriving = self.nodes - 1;
        packet.remaining = self.nodes - 1 + besides;
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

    /// Opens a reduction to a node; the packet is handed back with what arrives of it.
    pub(super) fn open(&mut self, packet: Packet, members: NodeSet, held: bool) -> Option<FlowId> {
        let (line, serial, kind, destination) =
            (packet.line, packet.serial, packet.kind, packet.to);
        self.checker.asked(line, serial, members.len());
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

    /// A node answers.
    pub(super) fn answer(&mut self, node: u32, flow: FlowId, bits: u64) {
        let (created, class) = (self.now, Kind::Answers.class());
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
        self.trouble.get_or_insert(error);
    }
}
