//! The simulation of a program on a chip.

use std::sync::atomic::{AtomicBool, Ordering};

use super::cache::CachedLine;
use super::chip::{Chip, Event};
use super::error::CoherenceError;
use super::ht::Ht;
use super::packet::Kind;
use super::program::{Check, Program};
use super::run::SystemRun;
use super::settings::{Protocol, SystemSettings};
use super::tc::Tc;
use tutti_noc::smart::{Arrival, Fabric, Responses};

/// The event handlers of a protocol.
pub(super) trait Engine {
    /// A core misses; [`Chip::cores`] describes the miss.
    fn miss(&mut self, chip: &mut Chip, core: u32);

    /// A message arrived at a node. The handler calls [`super::packet::Packets::done`] once the
    /// message is processed.
    fn arrived(&mut self, chip: &mut Chip, node: u32, packet: u32);

    /// Responses arrived at their collector.
    fn responded(&mut self, chip: &mut Chip, node: u32, packet: u32, responses: &Responses);

    /// The snoop of a cache for a message ends.
    fn snoop(&mut self, chip: &mut Chip, node: u32, packet: u32);

    /// A home processes a message.
    fn home(&mut self, chip: &mut Chip, packet: u32);

    /// A request of a core timed out.
    fn timeout(&mut self, chip: &mut Chip, core: u32, serial: u64);

    /// A core's caches evicted a line.
    fn evicted(&mut self, chip: &mut Chip, core: u32, held: &CachedLine);

    /// Describes what the miss of a core waits for, in errors; empty or starting with a semicolon.
    fn describe(&self, chip: &Chip, core: u32) -> String;
}

/// A program on a chip.
pub struct System {
    chip: Chip,
    engine: Box<dyn Engine>,
    check: Check,
    /// Words of the program; the memory is padded to full lines.
    words: usize,
    /// The cycle in which the last core finished.
    finished: Option<u64>,
    arrivals: Vec<Arrival>,
}

/// Cycles between checks of progress, the limit and the stop flag.
const CHECK_INTERVAL: u64 = 1024;

impl System {
    /// Returns a system that runs thread i at node i, on a fabric with the settings of
    /// [`SystemSettings::fit`].
    ///
    /// # Errors
    /// When the settings are invalid, or program, fabric and settings do not match.
    pub fn new(
        settings: &SystemSettings,
        program: Program,
        fabric: Box<dyn Fabric>,
    ) -> Result<System, CoherenceError> {
        let nodes = fabric.nodes();
        settings.check(nodes)?;
        let Program { threads, memory, check } = program;
        if threads.is_empty() || threads.len() > nodes as usize {
            return Err(CoherenceError::Threads { threads: threads.len(), nodes });
        }
        let most = 8 * (u64::from(u32::MAX) - 1);
        if memory.is_empty() || memory.len() as u64 > most {
            return Err(CoherenceError::Memory { words: memory.len(), most });
        }
        let words = memory.len();
        let chip = Chip::new(settings, threads, memory, fabric);
        let engine: Box<dyn Engine> = match settings.protocol {
            Protocol::Ht => Box::new(Ht::new(&chip)),
            Protocol::Tc => Box::new(Tc::new(&chip)),
        };
        Ok(System { chip, engine, check, words, finished: None, arrivals: Vec::new() })
    }

    /// Runs the program to its end, and checks the result.
    ///
    /// # Errors
    /// When `stop` is set; when the protocol violates coherence, or the fabric stalls; when the
    /// program accesses an address outside its memory, does not finish, or has a wrong result.
    pub fn run(mut self, stop: &AtomicBool) -> Result<SystemRun, CoherenceError> {
        let mut next_check = 0;
        while self.cycle()? {
            if self.chip.now >= next_check {
                next_check = self.chip.now + CHECK_INTERVAL;
                self.check_progress(stop)?;
            }
        }
        self.finish()
    }

    /// Simulates a cycle, or skips to the next event; returns false at the end.
    fn cycle(&mut self) -> Result<bool, CoherenceError> {
        let now = self.chip.now;
        self.chip.earliest = now;
        while let Some(event) = self.chip.events.pop(now) {
            self.event(event)?;
        }
        if self.finished.is_none() && self.chip.unfinished == 0 {
            self.finished = Some(now);
        }
        if !self.chip.fabric.is_empty() {
            self.step()?;
            return Ok(true);
        }
        match self.chip.events.next(now) {
            Some(next) => {
                self.chip.fabric.skip_to(next);
                self.chip.now = next;
                Ok(true)
            }
            None if self.chip.unfinished == 0 => Ok(false),
            None => Err(CoherenceError::Deadlock { cycle: now, waiting: self.waiting() }),
        }
    }

    fn event(&mut self, event: Event) -> Result<(), CoherenceError> {
        let (chip, engine) = (&mut self.chip, &mut self.engine);
        match event {
            Event::Resume(core) => chip.resume(core),
            Event::Issue(core) => chip.issue(core),
            Event::Lookup(core) => {
                if chip.finish_lookup(core) {
                    engine.miss(chip, core);
                }
            }
            Event::Send(packet) => chip.post(packet),
            Event::Deliver { node, packet } => engine.arrived(chip, node, packet),
            Event::Snoop { node, packet } => engine.snoop(chip, node, packet),
            Event::Home(packet) => engine.home(chip, packet),
            Event::Timeout { core, serial } => engine.timeout(chip, core, serial),
        }
        self.settle()
    }

    /// Simulates a cycle of the fabric, and processes the arrivals.
    fn step(&mut self) -> Result<(), CoherenceError> {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        self.chip.fabric.step(&mut arrivals);
        self.chip.earliest = self.chip.now + 1;
        for arrival in arrivals.drain(..) {
            self.arrival(&arrival);
            self.settle()?;
        }
        self.arrivals = arrivals;
        self.chip.now += 1;
        Ok(())
    }

    fn arrival(&mut self, arrival: &Arrival) {
        let chip = &mut self.chip;
        let id = u32::try_from(arrival.tag).expect("tags are numbers of messages");
        let now = chip.now;
        let Some(responses) = &arrival.responses else {
            let packet = chip.packets.get_mut(id);
            packet.arriving -= 1;
            if packet.arriving == 0 && packet.kind.is_broadcast() && chip.stats.counts() {
                chip.stats.run.broadcasts.add(now - packet.sent);
            }
            self.engine.arrived(chip, arrival.node, id);
            return;
        };
        let packet = chip.packets.get(id);
        debug_assert_eq!(packet.kind, Kind::Responses);
        chip.checker.responses_arrived(packet.line, packet.serial, responses.count, responses.last);
        if responses.last {
            chip.stats.reductions(now, -1);
        }
        if chip.stats.counts() {
            chip.stats.run.response_packets += 1;
            if responses.last {
                chip.stats.run.reductions.add(now - arrival.created);
            }
        }
        self.engine.responded(chip, arrival.node, id, responses);
    }

    /// Processes evicted lines, and returns the first error.
    #[inline]
    fn settle(&mut self) -> Result<(), CoherenceError> {
        while let Some((core, held)) = self.chip.evicted.pop() {
            self.engine.evicted(&mut self.chip, core, &held);
        }
        if let Some(error) = self.chip.error.take() {
            return Err(error);
        }
        self.chip.checker.result(self.chip.now)
    }

    fn check_progress(&self, stop: &AtomicBool) -> Result<(), CoherenceError> {
        let chip = &self.chip;
        let (cycle, patience, limit) = (chip.now, chip.settings.patience, chip.settings.limit);
        if stop.load(Ordering::Relaxed) {
            return Err(CoherenceError::Stopped { cycle });
        }
        if chip.fabric.stalled_since().is_some() {
            return Err(CoherenceError::FabricStuck { cycle, waiting: self.waiting() });
        }
        let until = chip.events.next(cycle).unwrap_or(cycle);
        if chip.progress.is_stalled(until) && !chip.computes() {
            return Err(CoherenceError::NoProgress { cycle, patience, waiting: self.waiting() });
        }
        if cycle > limit {
            return Err(CoherenceError::Endless { limit, waiting: self.waiting() });
        }
        Ok(())
    }

    /// Describes what the first few waiting cores wait for, in errors.
    fn waiting(&self) -> String {
        const SHOWN: usize = 4;
        let describe = |core: u32| {
            let pending = self.chip.cores[core as usize].pending?;
            let miss = self.engine.describe(&self.chip, core);
            Some(format!("core {core} {}{miss}", pending.describe()))
        };
        let all: Vec<String> = (0..self.chip.nodes).filter_map(describe).collect();
        let mut text = all[..all.len().min(SHOWN)].join(", ");
        if all.is_empty() {
            "no core waits for an access".clone_into(&mut text);
        } else if all.len() > SHOWN {
            text.push_str(&format!(", and {} more wait", all.len() - SHOWN));
        }
        text
    }

    /// Writes dirty lines back to memory, and checks the result.
    fn finish(mut self) -> Result<SystemRun, CoherenceError> {
        let cycles = self.finished.expect("all cores have finished");
        let chip = &mut self.chip;
        if chip.stats.is_inside() {
            let what = "finishes last, and no core has ended the region of interest";
            return Err(CoherenceError::Region { cycle: cycles, core: 0, what });
        }
        for caches in &chip.caches {
            for held in caches.iter().filter(|held| held.dirty) {
                chip.memory.set(held.line, &held.words);
            }
        }
        chip.checker.check_end(chip.memory.words(), chip.packets.len());
        chip.checker.result(chip.now)?;
        let (counts, traffic) = (*chip.fabric.counts(), chip.memory.traffic());
        let words = &chip.memory.words()[..self.words];
        (self.check)(words).map_err(|problem| CoherenceError::Wrong { cycles, problem })?;
        let mut run = self.chip.stats.finish(cycles, counts, traffic);
        run.memory = self.chip.memory.words()[..self.words].to_vec();
        Ok(run)
    }
}
