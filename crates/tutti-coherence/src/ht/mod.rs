//! The protocol with a home per line that keeps no directory (AMD HyperTransport).
//!
//! A miss: the requester asks the home (`read`, `write`); the home waits for what it does for the line
//! before, broadcasts the request (`probe`), and begins to read memory, whose copy goes to the requester
//! in any case (`memory_data`). Every other cache answers (`answers`, a reduction) with two bits, whether it had a
//! copy and whether it is the owner; an owner sends its copy, too (`owner_data`). When the requester has
//! all answers, and the line if it needs it, it does its access and tells the home (`unblock`), which turns to
//! the next request of the line. So requests of a line are done one after the other.
//!
//! Who writes back an owned line (`put`) keeps it until the home is ready for it (`put_granted`); if somebody
//! else has become the owner in the meantime nothing is written (`put_cancelled`), otherwise the line
//! (`put_data`). Either ends the home's wait. Lines that memory has the same of are dropped silently.
//!
//! With [`Collector::Home`] answers go to the home, which tells the requester what they say
//! (`all_answered`).

mod home;

use std::collections::BTreeMap;

use super::cache::{Held, State, Words};
use super::chip::{Chip, Event};
use super::packet::{HAD_COPY, Kind, OWNER, Packet};
use super::run::Parts;
use super::settings::{Collector, Defect, SharedHint};
use super::stats::Source;
use super::system::Engine;
use home::Homes;
use tutti_noc::smart::{FlowId, Responses};

/// What a core has got for its miss so far.
#[derive(Clone, Copy, Default)]
struct Got {
    /// What answers said so far.
    bits: u64,
    /// The cycle in which the last of them came.
    answered: Option<u64>,
    owner: Option<Words>,
    /// Memory's copy, and whether it says that a cache owns the line.
    memory: Option<(Words, bool)>,
}

impl Got {
    /// The line, if the copy that counts has come.
    fn data(&self, hint: SharedHint) -> Option<(Words, Source)> {
        let owner = self.owner.map(|words| (words, Source::Cache));
        let memory = self.memory.map(|(words, _)| (words, Source::Memory));
        let owned = match hint {
            SharedHint::Or => self.bits & OWNER != 0,
            // Without hints memory has to have spoken; an owner's copy counts in any case.
            SharedHint::Never => owner.is_some() || self.memory.is_some_and(|(_, owned)| owned),
        };
        if owned { owner } else { memory }
    }
}

/// What a cache has to know of a probe.
struct Asked {
    line: u32,
    write: bool,
    home: u32,
    requester: u32,
    serial: u64,
    flow: Option<FlowId>,
}

impl Asked {
    fn of(packet: &Packet) -> Asked {
        let &Packet { line, write, from: home, requester, serial, flow, .. } = packet;
        Asked { line, write, home, requester, serial, flow }
    }
}

/// A line that is being written back.
#[derive(Clone, Copy)]
struct Putting {
    words: Words,
    /// Whether nobody else has become the owner since.
    valid: bool,
}

/// See the module.
pub(super) struct Ht {
    /// By core.
    got: Vec<Got>,
    putting: Vec<BTreeMap<u32, Putting>>,
    homes: Homes,
}

impl Ht {
    pub(super) fn new(chip: &Chip) -> Ht {
        let nodes = chip.nodes as usize;
        Ht {
            got: vec![Got::default(); nodes],
            putting: vec![BTreeMap::new(); nodes],
            homes: Homes::new(chip.memory.lines(), chip.nodes),
        }
    }

    /// A probe has come to a cache.
    fn probed(&mut self, chip: &mut Chip, node: u32, id: u32) {
        let packet = chip.packets.get(id);
        if packet.requester == node {
            chip.packets.done(id);
            return;
        }
        // Of arrivals elsewhere the last one counts: this one, or one more.
        if packet.arriving <= 1 {
            self.homes.probed(packet.requester, packet.serial, chip.now);
        }
        if chip.settings.defect == Some(Defect::EarlyAnswer) {
            let asked = Asked::of(packet);
            self.reply(chip, node, &asked, HAD_COPY);
            chip.after(20 * chip.settings.snoop_cycles, Event::Snoop { node, packet: id });
            return;
        }
        chip.after(chip.settings.snoop_cycles, Event::Snoop { node, packet: id });
    }

    /// Changes a cache's copy as a probe wants it; what there is to answer.
    fn look(&mut self, chip: &mut Chip, node: u32, line: u32, write: bool) -> (u64, Option<Words>) {
        if let Some(&held) = chip.held(node, line) {
            let ignored = chip.settings.defect == Some(Defect::IgnoredInvalidation);
            if write && !(ignored && held.state == State::Shared) {
                chip.discard(node, line);
            } else if !write && held.state.writable() {
                let state =
                    if held.state == State::Modified { State::Owned } else { State::Shared };
                chip.change(node, line, |held| held.state = state);
            }
            let owns = held.state.owns();
            return (HAD_COPY | if owns { OWNER } else { 0 }, owns.then_some(held.words));
        }
        match self.putting[node as usize].get_mut(&line) {
            Some(putting) if putting.valid => {
                putting.valid = !write;
                (HAD_COPY | OWNER, Some(putting.words))
            }
            _ => (0, None),
        }
    }

    /// Answers a probe.
    fn reply(&mut self, chip: &mut Chip, node: u32, probe: &Asked, bits: u64) {
        if chip.settings.collector == Collector::Home && node == probe.home {
            self.homes.own_answer(chip, probe.requester, probe.serial, bits);
        } else if let Some(flow) = probe.flow {
            chip.answer(node, flow, bits);
        }
    }

    /// Ends a miss if there is all it needs.
    fn try_finish(&mut self, chip: &mut Chip, core: u32) {
        let got = self.got[core as usize];
        let miss = chip.cores[core as usize].miss.expect("a core that misses");
        let Some(answered) = got.answered else { return };
        let has = chip.has(core, miss.line);
        let alone = got.bits == 0 && chip.settings.shared_hint == SharedHint::Or;
        let state = match (miss.write, alone) {
            (true, _) => State::Modified,
            (false, true) => State::Exclusive,
            (false, false) => State::Shared,
        };
        let source = if has {
            chip.change(core, miss.line, |held| (held.state, held.dirty) = (state, miss.write));
            Source::Own
        } else {
            let Some((words, source)) = got.data(chip.settings.shared_hint) else { return };
            let line = miss.line;
            chip.install(core, Held { line, state, dirty: miss.write, tokens: 0, words });
            source
        };
        let mut parts = self.homes.parts(core, &miss, answered, chip.settings.snoop_cycles);
        let rest = chip.now - answered;
        match source {
            Source::Memory => parts.memory = rest,
            Source::Cache | Source::Own => parts.data = rest,
        }
        self.end(chip, core, &parts, source);
    }

    fn end(&mut self, chip: &mut Chip, core: u32, parts: &Parts, source: Source) {
        let miss = chip.cores[core as usize].miss.expect("a core that misses");
        chip.finish(core, parts, source);
        let mut unblock =
            Packet::new(Kind::Unblock, miss.line, core, chip.settings.home(miss.line));
        (unblock.serial, unblock.write) = (miss.serial, miss.write);
        chip.send(unblock);
    }

    /// Sends a core's request.
    fn request(&mut self, chip: &mut Chip, core: u32) {
        let now = chip.now;
        let miss = chip.cores[core as usize].miss.as_mut().expect("a core that misses");
        miss.sent = now;
        let kind = if miss.write { Kind::Write } else { Kind::Read };
        let (line, serial, write) = (miss.line, miss.serial, miss.write);
        self.got[core as usize] = Got::default();
        let mut packet = Packet::new(kind, line, core, chip.settings.home(line));
        (packet.serial, packet.write) = (serial, write);
        chip.send(packet);
    }

    /// The home is ready for a line that a core writes back.
    fn put_granted(&mut self, chip: &mut Chip, node: u32, packet: &Packet) {
        let line = packet.line;
        let putting = self.putting[node as usize].remove(&line).expect("it is being written back");
        let kind = if putting.valid { Kind::PutData } else { Kind::PutCancelled };
        let mut answer = Packet::new(kind, line, node, packet.from);
        answer.words = putting.valid.then_some(putting.words);
        chip.send(answer);
        if chip.cores[node as usize].miss.is_some_and(|miss| miss.line == line) {
            self.request(chip, node);
        }
    }

    /// What a core's miss waits for has come.
    fn came(&mut self, chip: &mut Chip, node: u32, packet: &Packet) {
        let miss = chip.cores[node as usize].miss;
        if miss.is_none_or(|miss| miss.serial != packet.serial) {
            // A copy that was not needed, of a miss that is over.
            return;
        }
        let got = &mut self.got[node as usize];
        match packet.kind {
            Kind::OwnerData => got.owner = packet.words,
            Kind::MemoryData => {
                got.memory = packet.words.map(|words| (words, packet.bits & OWNER != 0));
            }
            _ => (got.bits, got.answered) = (packet.bits, Some(chip.now)),
        }
        self.try_finish(chip, node);
    }
}

impl Engine for Ht {
    fn miss(&mut self, chip: &mut Chip, core: u32) {
        let line = chip.cores[core as usize].miss.expect("a core that misses").line;
        // What is still being written back is asked for once that is done.
        if !self.putting[core as usize].contains_key(&line) {
            self.request(chip, core);
        }
    }

    fn arrived(&mut self, chip: &mut Chip, node: u32, id: u32) {
        match chip.packets.get(id).kind {
            Kind::Probe => return self.probed(chip, node, id),
            Kind::Read | Kind::Write | Kind::Put => return self.homes.request(chip, id),
            _ => {}
        }
        let packet = *chip.packets.get(id);
        match packet.kind {
            Kind::PutGranted => self.put_granted(chip, node, &packet),
            Kind::Unblock | Kind::PutData | Kind::PutCancelled => self.homes.end(chip, &packet),
            _ => self.came(chip, node, &packet),
        }
        chip.packets.done(id);
    }

    fn answered(&mut self, chip: &mut Chip, node: u32, id: u32, answers: &Responses) {
        if chip.settings.collector == Collector::Home {
            let packet = *chip.packets.get(id);
            self.homes.answered(chip, &packet, answers);
        } else {
            let got = &mut self.got[node as usize];
            got.bits |= answers.value;
            if answers.last {
                got.answered = Some(chip.now);
                self.try_finish(chip, node);
            }
        }
        if answers.last {
            chip.packets.done(id);
        }
    }

    fn snoop(&mut self, chip: &mut Chip, node: u32, id: u32) {
        let probe = Asked::of(chip.packets.get(id));
        chip.packets.done(id);
        let (bits, words) = self.look(chip, node, probe.line, probe.write);
        if chip.settings.defect != Some(Defect::EarlyAnswer) || node == probe.home {
            self.reply(chip, node, &probe, bits);
        }
        if words.is_some() {
            let mut data = Packet::new(Kind::OwnerData, probe.line, node, probe.requester);
            (data.serial, data.words) = (probe.serial, words);
            chip.send_at(chip.now + chip.settings.data_cycles, data);
        }
    }

    fn home(&mut self, chip: &mut Chip, id: u32) {
        self.homes.begin(chip, id);
    }

    fn timeout(&mut self, _: &mut Chip, _: u32, _: u64) {}

    fn fallen(&mut self, chip: &mut Chip, core: u32, held: &Held) {
        if !held.dirty {
            return;
        }
        let putting = Putting { words: held.words, valid: true };
        self.putting[core as usize].insert(held.line, putting);
        chip.send(Packet::new(Kind::Put, held.line, core, chip.settings.home(held.line)));
    }

    fn describe(&self, chip: &Chip, core: u32) -> String {
        let Some(miss) = chip.cores[core as usize].miss else { return String::new() };
        if self.putting[core as usize].contains_key(&miss.line) {
            return "; the line is still being written back".to_owned();
        }
        match self.got[core as usize].answered {
            None => format!("; {}", self.homes.describe(core, miss.serial, &chip.checker)),
            Some(_) => "; all have answered, and the line has not come".to_owned(),
        }
    }
}
