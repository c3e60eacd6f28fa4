//! The protocol with a home per line and no directory (AMD HyperTransport).
//!
//! Miss: the requester sends a request to the home (`read`, `write`). The home finishes earlier
//! requests of the line, broadcasts the request (`probe`), and starts to read memory, whose copy
//! always goes to the requester (`memory_data`). Every other cache sends a response (`responses`, a
//! reduction) of two bits: whether it had a copy, and whether it is the owner. An owner also sends
//! its copy (`owner_data`). Once the requester has all responses, and the line if needed, it
//! performs the access and notifies the home (`unblock`), which starts the next request of the
//! line. Requests of a line are thus serialised.
//!
//! Write-back: a cache that evicts an owned line requests a write-back (`put`) and stores the line
//! until the home acknowledges (`put_granted`). It then sends the line (`put_data`), or a
//! cancellation if another core has become the owner (`put_cancelled`). Either unblocks the line.
//! Lines that equal memory are dropped silently.
//!
//! With [`Collector::Home`] responses go to the home, which sends the combined response to the
//! requester (`all_responses`).

mod home;

use std::collections::BTreeMap;

use super::cache::{CachedLine, State, Words};
use super::chip::{Chip, Event};
use super::packet::{HAD_COPY, Kind, OWNER, Packet};
use super::run::Parts;
use super::settings::{Collector, Defect, SharedHint};
use super::stats::Source;
use super::system::Engine;
use home::Homes;
use tutti_noc::smart::{FlowId, Responses};

/// Responses and data that a core received for its miss.
#[derive(Clone, Copy, Default)]
struct Received {
    /// The OR of the responses.
    bits: u64,
    /// The cycle in which the last response arrived.
    last_response: Option<u64>,
    owner: Option<Words>,
    /// Memory's copy, and whether memory reports that a cache owns the line.
    memory: Option<(Words, bool)>,
}

impl Received {
    /// Returns the valid copy of the line, if it has arrived.
    fn data(&self, hint: SharedHint) -> Option<(Words, Source)> {
        let owner = self.owner.map(|words| (words, Source::Cache));
        let memory = self.memory.map(|(words, _)| (words, Source::Memory));
        let owned = match hint {
            SharedHint::Or => self.bits & OWNER != 0,
            // Without hints memory reports an owner; an owner's copy is always valid.
            SharedHint::Never => owner.is_some() || self.memory.is_some_and(|(_, owned)| owned),
        };
        if owned { owner } else { memory }
    }
}

/// The part of a probe that caches process.
struct Probe {
    line: u32,
    write: bool,
    home: u32,
    requester: u32,
    serial: u64,
    flow: Option<FlowId>,
}

impl Probe {
    fn of(packet: &Packet) -> Probe {
        let &Packet { line, write, from: home, requester, serial, flow, .. } = packet;
        Probe { line, write, home, requester, serial, flow }
    }
}

/// A write-back in progress.
#[derive(Clone, Copy)]
struct WriteBack {
    words: Words,
    /// Whether no other core has become the owner.
    valid: bool,
}

/// The HT protocol; see the module.
pub(super) struct Ht {
    /// By core.
    received: Vec<Received>,
    write_backs: Vec<BTreeMap<u32, WriteBack>>,
    homes: Homes,
}

impl Ht {
    pub(super) fn new(chip: &Chip) -> Ht {
        let nodes = chip.nodes as usize;
        Ht {
            received: vec![Received::default(); nodes],
            write_backs: vec![BTreeMap::new(); nodes],
            homes: Homes::new(chip.memory.lines(), chip.nodes),
        }
    }

    /// A probe arrived at a cache.
    fn probed(&mut self, chip: &mut Chip, node: u32, id: u32) {
        let packet = chip.packets.get(id);
        if packet.requester == node {
            chip.packets.done(id);
            return;
        }
        // The last arrival at another node: this one, or at most one later.
        if packet.arriving <= 1 {
            self.homes.probed(packet.requester, packet.serial, chip.now);
        }
        if chip.settings.defect == Some(Defect::EarlyResponse) {
            let probe = Probe::of(packet);
            self.reply(chip, node, &probe, HAD_COPY);
            chip.after(20 * chip.settings.snoop_cycles, Event::Snoop { node, packet: id });
            return;
        }
        chip.after(chip.settings.snoop_cycles, Event::Snoop { node, packet: id });
    }

    /// Applies a probe to a cache's copy; returns the response bits, and the data if the cache is
    /// the owner.
    fn apply_probe(
        &mut self,
        chip: &mut Chip,
        node: u32,
        line: u32,
        write: bool,
    ) -> (u64, Option<Words>) {
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
        match self.write_backs[node as usize].get_mut(&line) {
            Some(write_back) if write_back.valid => {
                write_back.valid = !write;
                (HAD_COPY | OWNER, Some(write_back.words))
            }
            _ => (0, None),
        }
    }

    /// Sends the response to a probe.
    fn reply(&mut self, chip: &mut Chip, node: u32, probe: &Probe, bits: u64) {
        if chip.settings.collector == Collector::Home && node == probe.home {
            self.homes.home_response(chip, probe.requester, probe.serial, bits);
        } else if let Some(flow) = probe.flow {
            chip.respond(node, flow, bits);
        }
    }

    /// Completes a miss if the requester has all responses and data.
    fn try_finish(&mut self, chip: &mut Chip, core: u32) {
        let received = self.received[core as usize];
        let miss = chip.cores[core as usize].miss.expect("a core with a miss");
        let Some(last_response) = received.last_response else { return };
        let has = chip.has(core, miss.line);
        let sole_copy = received.bits == 0 && chip.settings.shared_hint == SharedHint::Or;
        let state = match (miss.write, sole_copy) {
            (true, _) => State::Modified,
            (false, true) => State::Exclusive,
            (false, false) => State::Shared,
        };
        let source = if has {
            chip.change(core, miss.line, |held| (held.state, held.dirty) = (state, miss.write));
            Source::OwnCopy
        } else {
            let Some((words, source)) = received.data(chip.settings.shared_hint) else { return };
            let line = miss.line;
            chip.install(core, CachedLine { line, state, dirty: miss.write, tokens: 0, words });
            source
        };
        let mut parts = self.homes.parts(core, &miss, last_response, chip.settings.snoop_cycles);
        let wait = chip.now - last_response;
        match source {
            Source::Memory => parts.memory = wait,
            Source::Cache | Source::OwnCopy => parts.data = wait,
        }
        self.complete(chip, core, &parts, source);
    }

    fn complete(&mut self, chip: &mut Chip, core: u32, parts: &Parts, source: Source) {
        let miss = chip.cores[core as usize].miss.expect("a core with a miss");
        chip.finish(core, parts, source);
        let mut unblock =
            Packet::new(Kind::Unblock, miss.line, core, chip.settings.home(miss.line));
        (unblock.serial, unblock.write) = (miss.serial, miss.write);
        chip.send(unblock);
    }

    /// Sends a core's request.
    fn request(&mut self, chip: &mut Chip, core: u32) {
        let now = chip.now;
        let miss = chip.cores[core as usize].miss.as_mut().expect("a core with a miss");
        miss.sent = now;
        let kind = if miss.write { Kind::Write } else { Kind::Read };
        let (line, serial, write) = (miss.line, miss.serial, miss.write);
        self.received[core as usize] = Received::default();
        let mut packet = Packet::new(kind, line, core, chip.settings.home(line));
        (packet.serial, packet.write) = (serial, write);
        chip.send(packet);
    }

    /// The home acknowledged a write-back.
    fn put_granted(&mut self, chip: &mut Chip, node: u32, packet: &Packet) {
        let line = packet.line;
        let write_back =
            self.write_backs[node as usize].remove(&line).expect("a write-back in progress");
        let kind = if write_back.valid { Kind::PutData } else { Kind::PutCancelled };
        let mut response = Packet::new(kind, line, node, packet.from);
        response.words = write_back.valid.then_some(write_back.words);
        chip.send(response);
        if chip.cores[node as usize].miss.is_some_and(|miss| miss.line == line) {
            self.request(chip, node);
        }
    }

    /// Data or the combined responses for a miss arrived.
    fn receive(&mut self, chip: &mut Chip, node: u32, packet: &Packet) {
        let miss = chip.cores[node as usize].miss;
        if miss.is_none_or(|miss| miss.serial != packet.serial) {
            // An unneeded copy for a completed miss.
            return;
        }
        let received = &mut self.received[node as usize];
        match packet.kind {
            Kind::OwnerData => received.owner = packet.words,
            Kind::MemoryData => {
                received.memory = packet.words.map(|words| (words, packet.bits & OWNER != 0));
            }
            _ => (received.bits, received.last_response) = (packet.bits, Some(chip.now)),
        }
        self.try_finish(chip, node);
    }
}

impl Engine for Ht {
    fn miss(&mut self, chip: &mut Chip, core: u32) {
        let line = chip.cores[core as usize].miss.expect("a core with a miss").line;
        // A line in write-back is requested once that is done.
        if !self.write_backs[core as usize].contains_key(&line) {
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
            Kind::Unblock | Kind::PutData | Kind::PutCancelled => self.homes.finish(chip, &packet),
            _ => self.receive(chip, node, &packet),
        }
        chip.packets.done(id);
    }

    fn responded(&mut self, chip: &mut Chip, node: u32, id: u32, responses: &Responses) {
        if chip.settings.collector == Collector::Home {
            let packet = *chip.packets.get(id);
            self.homes.responded(chip, &packet, responses);
        } else {
            let received = &mut self.received[node as usize];
            received.bits |= responses.value;
            if responses.last {
                received.last_response = Some(chip.now);
                self.try_finish(chip, node);
            }
        }
        if responses.last {
            chip.packets.done(id);
        }
    }

    fn snoop(&mut self, chip: &mut Chip, node: u32, id: u32) {
        let probe = Probe::of(chip.packets.get(id));
        chip.packets.done(id);
        let (bits, words) = self.apply_probe(chip, node, probe.line, probe.write);
        if chip.settings.defect != Some(Defect::EarlyResponse) || node == probe.home {
            self.reply(chip, node, &probe, bits);
        }
        if words.is_some() {
            let mut data = Packet::new(Kind::OwnerData, probe.line, node, probe.requester);
            (data.serial, data.words) = (probe.serial, words);
            chip.send_at(chip.now + chip.settings.data_cycles, data);
        }
    }

    fn home(&mut self, chip: &mut Chip, id: u32) {
        self.homes.start(chip, id);
    }

    fn timeout(&mut self, _: &mut Chip, _: u32, _: u64) {}

    fn evicted(&mut self, chip: &mut Chip, core: u32, held: &CachedLine) {
        if !held.dirty {
            return;
        }
        let write_back = WriteBack { words: held.words, valid: true };
        self.write_backs[core as usize].insert(held.line, write_back);
        chip.send(Packet::new(Kind::Put, held.line, core, chip.settings.home(held.line)));
    }

    fn describe(&self, chip: &Chip, core: u32) -> String {
        let Some(miss) = chip.cores[core as usize].miss else { return String::new() };
        if self.write_backs[core as usize].contains_key(&miss.line) {
            return "; the line is still being written back".to_owned();
        }
        match self.received[core as usize].last_response {
            None => format!("; {}", self.homes.describe(core, miss.serial, &chip.checker)),
            Some(_) => "; all caches have responded, but the line has not arrived".to_owned(),
        }
    }
}
