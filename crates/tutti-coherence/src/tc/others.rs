//! What caches and memory do about the requests of others.

use super::Tc;
use super::tokens::Bundle;
use crate::chip::{Chip, Event};
use crate::packet::{Kind, Packet};
use crate::settings::Defect;

impl Tc {
    /// A cache has been looked into for a transient request.
    pub(super) fn answer(&mut self, chip: &mut Chip, node: u32, packet: &Packet) {
        let line = packet.line;
        if let Some(miss) = chip.cores[node as usize].miss
            && miss.line == line
        {
            let got = &mut self.got[node as usize];
            if (packet.write || miss.write) && !got.contended {
                got.contended = true;
                self.wait(chip, node, miss.serial);
            }
            return;
        }
        if self.tables[node as usize].first(line).is_some() {
            return;
        }
        let Some(&held) = chip.held(node, line) else { return };
        let path = [node, packet.requester];
        let owner = held.state.owns();
        let cycle = chip.now + if owner { chip.settings.data_cycles } else { 0 };
        if packet.write {
            let ignored = chip.settings.defect == Some(Defect::IgnoredInvalidation);
            let bundle = match ignored && !owner {
                true => Bundle::of(&held).to_send(),
                false => self.take_all(chip, node, line),
            };
            self.give(chip, cycle, path, packet, bundle);
        } else if owner {
            let mut rest = Bundle::of(&held);
            let words = rest.words;
            let mut taken = Bundle { tokens: 1, owner: false, dirty: false, words };
            if rest.tokens == 1 {
                taken = std::mem::take(&mut rest);
            } else {
                rest.tokens -= 1;
                taken.owner = chip.settings.defect == Some(Defect::CopiedOwner);
            }
            self.shrink(chip, node, line, rest);
            self.give(chip, cycle, path, packet, taken);
        }
    }

    /// A transient request has come to memory.
    pub(super) fn ask_home(&self, chip: &mut Chip, id: u32) {
        chip.after(chip.settings.home_cycles, Event::Home(id));
    }

    /// Memory has turned to a transient request.
    pub(super) fn answer_home(&mut self, chip: &mut Chip, packet: &Packet) {
        let line = packet.line;
        let home = chip.settings.home(line);
        let (tokens, owner) = self.at_home[line as usize];
        if tokens == 0 || self.tables[home as usize].first(line).is_some() {
            return;
        }
        let take = match (packet.write || tokens == self.all, owner) {
            (true, _) => tokens,
            (false, true) => 1,
            (false, false) => return,
        };
        // A reader leaves the owner's token with memory while there is another one.
        let owner = owner && take == tokens;
        self.give_from_home(chip, packet, take, owner, !packet.write || owner);
    }

    /// Sends some of the tokens that memory has, with the line or without.
    pub(super) fn give_from_home(
        &mut self,
        chip: &mut Chip,
        cause: &Packet,
        take: u32,
        owner: bool,
        data: bool,
    ) {
        let line = cause.line;
        let at_home = &mut self.at_home[line as usize];
        at_home.0 -= take;
        at_home.1 &= !owner;
        chip.checker.tokens(line, -i64::from(take), -i64::from(owner));
        let home = chip.settings.home(line);
        let (mut words, mut cycle) = (None, chip.now);
        if data {
            words = Some(chip.memory.line(line));
            cycle = chip.memory.read(chip.now, line);
        }
        let bundle = Bundle { tokens: take, owner, dirty: false, words };
        let cause = Packet { from_memory: data, ..*cause };
        self.give(chip, cycle, [home, cause.requester], &cause, bundle);
    }

    /// Tokens have come to memory.
    pub(super) fn received_home(&mut self, chip: &mut Chip, node: u32, packet: &Packet) {
        let &Packet { line, tokens, owner, .. } = packet;
        if let Some(words) = packet.words {
            chip.memory.write(chip.now, line, &words);
        }
        let at_home = &mut self.at_home[line as usize];
        at_home.0 += tokens;
        at_home.1 |= owner;
        self.enforce(chip, node, line);
    }

    /// Sends what a node has of a line to the one whose persistent request goes first, if there is one.
    pub(super) fn enforce(&mut self, chip: &mut Chip, node: u32, line: u32) {
        let Some((first, write)) = self.tables[node as usize].first(line) else { return };
        let mut cause = Packet::new(Kind::Activate, line, node, first);
        (cause.requester, cause.asked) = (first, chip.now);
        if chip.settings.home(line) == node {
            let (tokens, owner) = self.at_home[line as usize];
            if write && tokens > 0 {
                self.give_from_home(chip, &cause, tokens, owner, owner);
            } else if !write && owner {
                self.give_from_home(chip, &cause, 1, true, true);
            }
        }
        if first == node {
            return;
        }
        let bundle = match write {
            true => Some(self.take_all(chip, node, line)).filter(|bundle| bundle.tokens > 0),
            false => self.take_owner(chip, node, line),
        };
        if let Some(bundle) = bundle {
            let data = if bundle.words.is_some() { chip.settings.data_cycles } else { 0 };
            self.give(chip, chip.now + data, [node, first], &cause, bundle);
        }
    }
}
