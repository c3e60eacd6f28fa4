//! Responses of caches and memory to requests of other cores.

use super::Tc;
use super::tokens::Bundle;
use crate::chip::{Chip, Event};
use crate::packet::{Kind, Packet};
use crate::settings::Defect;

impl Tc {
    /// Responds to a transient request after the snoop of a cache.
    pub(super) fn respond(&mut self, chip: &mut Chip, node: u32, packet: &Packet) {
        let line = packet.line;
        if let Some(miss) = chip.cores[node as usize].miss
            && miss.line == line
        {
            let attempt = &mut self.attempts[node as usize];
            if (packet.write || miss.write) && !attempt.contended {
                attempt.contended = true;
                self.start_timeout(chip, node, miss.serial);
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
            self.send_tokens(chip, cycle, path, packet, bundle);
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
            self.send_tokens(chip, cycle, path, packet, taken);
        }
    }

    /// A transient request arrived at memory.
    pub(super) fn schedule_home(&self, chip: &mut Chip, id: u32) {
        chip.after(chip.settings.home_cycles, Event::Home(id));
    }

    /// Responds to a transient request at its home.
    pub(super) fn respond_home(&mut self, chip: &mut Chip, packet: &Packet) {
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
        // A reader does not get the owner token while memory has another one.
        let owner = owner && take == tokens;
        self.send_tokens_from_home(chip, packet, take, owner, !packet.write || owner);
    }

    /// Sends tokens of memory, with or without the line.
    pub(super) fn send_tokens_from_home(
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
        self.send_tokens(chip, cycle, [home, cause.requester], &cause, bundle);
    }

    /// Tokens arrived at memory.
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

    /// Forwards a node's tokens of a line to the first persistent requester, if any.
    pub(super) fn enforce(&mut self, chip: &mut Chip, node: u32, line: u32) {
        let Some((first, write)) = self.tables[node as usize].first(line) else { return };
        let mut cause = Packet::new(Kind::Activate, line, node, first);
        (cause.requester, cause.request_arrived) = (first, chip.now);
        if chip.settings.home(line) == node {
            let (tokens, owner) = self.at_home[line as usize];
            if write && tokens > 0 {
                self.send_tokens_from_home(chip, &cause, tokens, owner, owner);
            } else if !write && owner {
                self.send_tokens_from_home(chip, &cause, 1, true, true);
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
            self.send_tokens(chip, chip.now + data, [node, first], &cause, bundle);
        }
    }
}
