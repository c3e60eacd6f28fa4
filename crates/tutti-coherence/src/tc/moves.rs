//! Sending, taking and receiving tokens.

use super::Tc;
use super::tokens::Bundle;
use crate::chip::Chip;
use crate::packet::{Kind, Packet};
use crate::settings::Defect;

impl Tc {
    /// Sends tokens to a core in response to `cause`.
    pub(super) fn send_tokens(
        &self,
        chip: &mut Chip,
        cycle: u64,
        [from, to]: [u32; 2],
        cause: &Packet,
        bundle: Bundle,
    ) {
        let kind = if bundle.words.is_some() { Kind::TokensData } else { Kind::Tokens };
        let packet = Packet::new(kind, cause.line, from, to);
        self.dispatch(chip, cycle, packet, cause, bundle);
    }

    /// Sends tokens to memory.
    pub(super) fn send_tokens_home(&self, chip: &mut Chip, from: u32, line: u32, bundle: Bundle) {
        let words = bundle.words.filter(|_| bundle.owner && bundle.dirty);
        let kind = if words.is_some() { Kind::TokensDataHome } else { Kind::TokensHome };
        let packet = Packet::new(kind, line, from, chip.settings.home(line));
        self.dispatch(chip, chip.now, packet, &packet, Bundle { words, ..bundle });
    }

    pub(super) fn dispatch(
        &self,
        chip: &mut Chip,
        cycle: u64,
        mut packet: Packet,
        cause: &Packet,
        bundle: Bundle,
    ) {
        let Bundle { mut tokens, owner, dirty, words } = bundle;
        if chip.settings.defect == Some(Defect::LostToken) && tokens > 1 {
            tokens -= 1;
        }
        chip.checker.tokens(packet.line, i64::from(tokens), i64::from(owner));
        (packet.tokens, packet.owner, packet.dirty, packet.words) = (tokens, owner, dirty, words);
        (packet.serial, packet.request_arrived) = (cause.serial, cause.request_arrived);
        packet.from_memory = cause.from_memory;
        chip.send_at(cycle, packet);
    }

    /// Takes all tokens of a line from a node: from its cache and from its core's miss.
    pub(super) fn take_all(&mut self, chip: &mut Chip, node: u32, line: u32) -> Bundle {
        let mut bundle = Bundle::default();
        if let Some(held) = chip.discard(node, line) {
            bundle = Bundle::of(&held);
        }
        if chip.misses(node, line) {
            let collected = std::mem::take(&mut self.attempts[node as usize].bundle);
            chip.checker.tokens(line, -i64::from(collected.tokens), -i64::from(collected.owner));
            bundle.merge(&collected);
        }
        bundle.to_send()
    }

    /// Takes the owner token, if the node has it.
    pub(super) fn take_owner(&mut self, chip: &mut Chip, node: u32, line: u32) -> Option<Bundle> {
        let held = chip.held(node, line).copied();
        if let Some(held) = held.filter(|held| held.state.owns()) {
            let mut rest = Bundle::of(&held);
            let taken = rest.split_owner();
            self.shrink(chip, node, line, rest);
            return Some(taken);
        }
        let misses = chip.misses(node, line);
        let collected = &mut self.attempts[node as usize].bundle;
        if !misses || !collected.owner {
            return None;
        }
        let taken = collected.split_owner();
        chip.checker.tokens(line, -1, -1);
        Some(taken)
    }

    /// Reduces a cache's tokens to `rest`.
    pub(super) fn shrink(&self, chip: &mut Chip, node: u32, line: u32, rest: Bundle) {
        match rest.words {
            Some(words) => {
                let held = rest.held(line, self.all, words);
                chip.change(node, line, |copy| *copy = held);
            }
            None => _ = chip.discard(node, line),
        }
    }

    /// Tokens arrived at a core.
    pub(super) fn received(&mut self, chip: &mut Chip, node: u32, packet: &Packet) {
        let &Packet { line, tokens, owner, dirty, words, .. } = packet;
        let bundle = Bundle { tokens, owner, dirty, words };
        chip.checker.tokens(line, -i64::from(tokens), -i64::from(owner));
        if let Some((first, write)) = self.tables[node as usize].first(line)
            && first != node
            && (write || owner)
        {
            let cause = Packet { request_arrived: chip.now, ..*packet };
            self.send_tokens(chip, chip.now, [node, first], &cause, bundle.to_send());
            return;
        }
        if chip.misses(node, line) {
            chip.checker.tokens(line, i64::from(tokens), i64::from(owner));
            let attempt = &mut self.attempts[node as usize];
            attempt.bundle.merge(&bundle);
            attempt.last_tokens = Some(*packet);
            if words.is_some() {
                attempt.from_memory = packet.from_memory;
            }
            self.try_finish(chip, node);
            return;
        }
        let Some(held) = chip.held(node, line) else {
            return self.send_tokens_home(chip, node, line, bundle);
        };
        let mut more = Bundle::of(held);
        more.merge(&bundle);
        let held = more.held(line, self.all, held.words);
        chip.change(node, line, |copy| *copy = held);
    }
}
