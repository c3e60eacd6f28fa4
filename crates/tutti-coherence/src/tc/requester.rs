//! A core that misses: asks, waits, insists, and ends.

use super::Tc;
use super::tokens::Bundle;
use crate::chip::{Chip, Event};
use crate::packet::{Kind, Packet};
use crate::run::Parts;
use crate::settings::Defect;
use crate::stats::Source;

impl Tc {
    /// Asks all others, and waits for so long.
    pub(super) fn ask(&mut self, chip: &mut Chip, core: u32) {
        let miss = chip.cores[core as usize].miss.expect("a core that misses");
        let home = chip.settings.home(miss.line);
        let kind = if miss.write { Kind::TransientWrite } else { Kind::TransientRead };
        let mut packet = Packet::new(kind, miss.line, core, core);
        (packet.serial, packet.write) = (miss.serial, miss.write);
        // It is looked at once more than at each other node: by memory.
        let id = chip.broadcast(packet, 1);
        if home == core {
            self.ask_home(chip, id);
        }
        self.got[core as usize].asked.push(chip.now);
        self.wait(chip, core, miss.serial);
    }

    pub(super) fn wait(&self, chip: &mut Chip, core: u32, serial: u64) {
        let [all, from_caches] = self.mean[core as usize];
        let mean = if self.got[core as usize].contended { from_caches } else { all };
        let wait = (2 * mean).max(chip.settings.shortest_timeout);
        chip.after(wait, Event::Timeout { core, serial });
    }

    /// Sends a persistent request.
    pub(super) fn insist(&mut self, chip: &mut Chip, core: u32) {
        let miss = chip.cores[core as usize].miss.expect("a core that misses");
        let got = &mut self.got[core as usize];
        got.persistent = true;
        got.asked.push(chip.now);
        let mut packet = Packet::new(Kind::Activate, miss.line, core, core);
        (packet.serial, packet.write) = (miss.serial, miss.write);
        chip.broadcast(packet, 0);
        if chip.stats.counts() {
            chip.stats.run.persistent += 1;
        }
        self.tables[core as usize].activate(core, miss.line, miss.write, miss.serial);
        self.enforce(chip, core, miss.line);
    }

    /// Ends a miss if there is all it needs.
    pub(super) fn try_finish(&mut self, chip: &mut Chip, core: u32) {
        let Some(miss) = chip.cores[core as usize].miss else { return };
        let line = miss.line;
        let got = &self.got[core as usize];
        let has = chip.held(core, line).map(Bundle::of);
        let mut bundle = has.unwrap_or_default();
        bundle.merge(&got.bundle);
        let early = u32::from(chip.settings.defect == Some(Defect::EarlyWrite));
        let needs = if miss.write { self.all - early } else { 1 };
        let Some(words) = bundle.words.filter(|_| bundle.tokens >= needs) else { return };
        let source = match (has.is_some(), got.from_memory) {
            (true, _) => Source::Own,
            (false, true) => Source::Memory,
            (false, false) => Source::Cache,
        };
        let parts = self.parts(chip, core);
        let got = std::mem::take(&mut self.got[core as usize]);
        let Bundle { tokens, owner, .. } = got.bundle;
        chip.checker.tokens(line, -i64::from(tokens), -i64::from(owner));
        let all = if miss.write { bundle.tokens } else { self.all };
        let held = bundle.held(line, all, words);
        if has.is_some() {
            chip.change(core, line, |copy| *copy = held);
        } else {
            chip.install(core, held);
        }
        chip.finish(core, &parts, source);
        if got.persistent {
            let mut packet = Packet::new(Kind::Deactivate, line, core, core);
            packet.serial = miss.serial;
            chip.broadcast(packet, 0);
            let table = &mut self.tables[core as usize];
            table.deactivate(core, miss.serial);
            table.mark(line);
        }
        self.enforce(chip, core, line);
    }

    /// What a core's miss, which ends now, was spent on.
    pub(super) fn parts(&mut self, chip: &Chip, core: u32) -> Parts {
        let (now, got) = (chip.now, &self.got[core as usize]);
        let miss = chip.cores[core as usize].miss.expect("a core that misses");
        let last = got.last.as_ref();
        let came = last.map_or(now, |last| last.asked);
        // The request that was answered, unless the tokens came unasked.
        let asked = got.asked.iter().rev().find(|&&asked| asked <= came);
        let asked = asked.or(got.asked.first()).copied().unwrap_or(miss.looked);
        let came = came.max(asked);
        let sent = last.map_or(now, |last| last.sent).max(came);
        let from_memory = last.is_some_and(|last| last.from_memory);
        let update = |mean: &mut u64| *mean = (7 * *mean + (now - asked)).div_ceil(8);
        let [all, from_caches] = &mut self.mean[core as usize];
        update(all);
        if !from_memory {
            update(from_caches);
        }
        let mut parts = Parts {
            lookup: miss.looked - miss.issued,
            wait: asked - miss.looked,
            probe: came - asked,
            data: now - sent,
            ..Parts::default()
        };
        match from_memory {
            true => parts.memory = sent - came,
            false => parts.snoop = sent - came,
        }
        parts
    }
}
