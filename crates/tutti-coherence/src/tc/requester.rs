//! A core with a miss: transient requests, timeouts, persistent requests, completion.

use super::Tc;
use super::tokens::Bundle;
use crate::chip::{Chip, Event};
use crate::packet::{Kind, Packet};
use crate::run::Parts;
use crate::settings::Defect;
use crate::stats::Source;

impl Tc {
    /// Broadcasts a transient request, and starts its timeout.
    pub(super) fn send_transient(&mut self, chip: &mut Chip, core: u32) {
        let miss = chip.cores[core as usize].miss.expect("a core with a miss");
        let home = chip.settings.home(miss.line);
        let kind = if miss.write { Kind::TransientWrite } else { Kind::TransientRead };
        let mut packet = Packet::new(kind, miss.line, core, core);
        (packet.serial, packet.write) = (miss.serial, miss.write);
        // Memory processes the message in addition to each other node.
        let id = chip.broadcast(packet, 1);
        if home == core {
            self.schedule_home(chip, id);
        }
        self.attempts[core as usize].requests.push(chip.now);
        self.start_timeout(chip, core, miss.serial);
    }

    pub(super) fn start_timeout(&self, chip: &mut Chip, core: u32, serial: u64) {
        let [all, from_caches] = self.mean[core as usize];
        let mean = if self.attempts[core as usize].contended { from_caches } else { all };
        let timeout = (2 * mean).max(chip.settings.shortest_timeout);
        chip.after(timeout, Event::Timeout { core, serial });
    }

    /// Sends a persistent request.
    pub(super) fn send_persistent(&mut self, chip: &mut Chip, core: u32) {
        let miss = chip.cores[core as usize].miss.expect("a core with a miss");
        let attempt = &mut self.attempts[core as usize];
        attempt.persistent = true;
        attempt.requests.push(chip.now);
        let mut packet = Packet::new(Kind::Activate, miss.line, core, core);
        (packet.serial, packet.write) = (miss.serial, miss.write);
        chip.broadcast(packet, 0);
        if chip.stats.counts() {
            chip.stats.run.persistent += 1;
        }
        self.tables[core as usize].activate(core, miss.line, miss.write, miss.serial);
        self.enforce(chip, core, miss.line);
    }

    /// Completes a miss if the core has the line and enough tokens.
    pub(super) fn try_finish(&mut self, chip: &mut Chip, core: u32) {
        let Some(miss) = chip.cores[core as usize].miss else { return };
        let line = miss.line;
        let attempt = &self.attempts[core as usize];
        let has = chip.held(core, line).map(Bundle::of);
        let mut bundle = has.unwrap_or_default();
        bundle.merge(&attempt.bundle);
        let early = u32::from(chip.settings.defect == Some(Defect::EarlyWrite));
        let needs = if miss.write { self.all - early } else { 1 };
        let Some(words) = bundle.words.filter(|_| bundle.tokens >= needs) else { return };
        let source = match (has.is_some(), attempt.from_memory) {
            (true, _) => Source::OwnCopy,
            (false, true) => Source::Memory,
            (false, false) => Source::Cache,
        };
        let parts = self.parts(chip, core);
        let attempt = std::mem::take(&mut self.attempts[core as usize]);
        let Bundle { tokens, owner, .. } = attempt.bundle;
        chip.checker.tokens(line, -i64::from(tokens), -i64::from(owner));
        let all = if miss.write { bundle.tokens } else { self.all };
        let held = bundle.held(line, all, words);
        if has.is_some() {
            chip.change(core, line, |copy| *copy = held);
        } else {
            chip.install(core, held);
        }
        chip.finish(core, &parts, source);
        if attempt.persistent {
            let mut packet = Packet::new(Kind::Deactivate, line, core, core);
            packet.serial = miss.serial;
            chip.broadcast(packet, 0);
            let table = &mut self.tables[core as usize];
            table.deactivate(core, miss.serial);
            table.mark(line);
        }
        self.enforce(chip, core, line);
    }

    /// Returns the latency components of a miss that completes now.
    pub(super) fn parts(&mut self, chip: &Chip, core: u32) -> Parts {
        let (now, attempt) = (chip.now, &self.attempts[core as usize]);
        let miss = chip.cores[core as usize].miss.expect("a core with a miss");
        let last = attempt.last_tokens.as_ref();
        let arrived = last.map_or(now, |last| last.request_arrived);
        // The request that led to the tokens; the first one if tokens arrived unrequested.
        let request = attempt.requests.iter().rev().find(|&&sent| sent <= arrived);
        let request = request.or(attempt.requests.first()).copied().unwrap_or(miss.lookup_done);
        let arrived = arrived.max(request);
        let sent = last.map_or(now, |last| last.sent).max(arrived);
        let from_memory = last.is_some_and(|last| last.from_memory);
        let update = |mean: &mut u64| *mean = (7 * *mean + (now - request)).div_ceil(8);
        let [all, from_caches] = &mut self.mean[core as usize];
        update(all);
        if !from_memory {
            update(from_caches);
        }
        let mut parts = Parts {
            lookup: miss.lookup_done - miss.issued,
            wait: request - miss.lookup_done,
            probe: arrived - request,
            data: now - sent,
            ..Parts::default()
        };
        match from_memory {
            true => parts.memory = sent - arrived,
            false => parts.snoop = sent - arrived,
        }
        parts
    }
}
