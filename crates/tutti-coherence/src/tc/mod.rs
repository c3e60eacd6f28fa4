//! Token coherence (M. Martin, M. Hill, D. Wood, "Token Coherence: Decoupling Performance and Correctness",
//! ISCA 2003).
//!
//! A line has a token for each core and one more, the owner's; to read takes one and the line, to write all.
//! They are in caches, in memory at the home, in messages, and at cores that wait for more. A miss: the requester
//! broadcasts (`transient_read`, `transient_write`); to a read the owner, a cache or memory, answers with the line
//! and a token (memory with all, if it has all), to a write everyone with all tokens he has, the owner with
//! the line (`tokens`, `tokens_data`). Others do not answer. A core that waits for the line itself does not answer,
//! either. What falls out of a cache goes home (`tokens_home`, `tokens_data_home`).
//!
//! If a miss is not done after about twice the time that its core's misses took of late, it asks again, and after
//! [`SystemSettings::reissues`](super::SystemSettings::reissues) times sends a persistent request (`activate`):
//! from then on every node sends all tokens of the line that it has, or gets, to that core (for a read: the
//! owner's) until it says that it is done (`deactivate`). A core that is asked for the line that it waits for, by one
//! who writes or to write itself, knows that the line is contended and so in some cache: if it has not come after
//! twice the time that lines from caches took of late it sends the persistent request without asking again.

mod moves;
mod others;
mod persistent;
mod requester;
mod tokens;

use super::cache::Held;
use super::chip::{Chip, Event};
use super::packet::{Kind, Packet};
use super::system::Engine;
use persistent::Table;
use tokens::Bundle;
use tutti_noc::smart::Responses;

/// What a core has got for its miss so far, and what it has done for it.
#[derive(Clone, Default)]
struct Got {
    bundle: Bundle,
    /// The cycles in which it asked.
    asked: Vec<u64>,
    persistent: bool,
    /// Whether others want the line in a way that only one can have it.
    contended: bool,
    /// Where and when the message came from that brought tokens last, as far as it said.
    last: Option<Packet>,
    /// Whether the line came from memory.
    from_memory: bool,
}

/// See the module.
pub(super) struct Tc {
    /// Tokens of a line.
    all: u32,
    got: Vec<Got>,
    /// By line, what is at the home; the line itself is in memory.
    at_home: Vec<(u32, bool)>,
    /// By node.
    tables: Vec<Table>,
    /// By core, how long its requests took of late: all, and those answered by caches.
    mean: Vec<[u64; 2]>,
}

impl Tc {
    pub(super) fn new(chip: &Chip) -> Tc {
        let (nodes, all) = (chip.nodes as usize, chip.nodes + 1);
        Tc {
            all,
            got: vec![Got::default(); nodes],
            at_home: vec![(all, true); chip.memory.lines() as usize],
            tables: vec![Table::new(chip.nodes); nodes],
            mean: vec![[chip.settings.dram_cycles + 50, 50]; nodes],
        }
    }
}

impl Engine for Tc {
    fn miss(&mut self, chip: &mut Chip, core: u32) {
        self.got[core as usize] = Got::default();
        self.ask(chip, core);
    }

    fn arrived(&mut self, chip: &mut Chip, node: u32, id: u32) {
        let packet = chip.packets.get(id);
        if !packet.kind.is_broadcast() {
            let packet = *packet;
            chip.packets.done(id);
            match packet.kind {
                Kind::TokensHome | Kind::TokensDataHome => {
                    self.received_home(chip, node, &packet);
                }
                _ => self.received(chip, node, &packet),
            }
            return;
        }
        let &Packet { line, kind, from, write, serial, .. } = packet;
        match kind {
            Kind::Activate => self.tables[node as usize].activate(from, line, write, serial),
            Kind::Deactivate => self.tables[node as usize].deactivate(from, serial),
            _ if chip.settings.home(line) == node => self.ask_home(chip, id),
            _ => {}
        }
        // A cache that has nothing of the line has nothing to say.
        let concerned = chip.has(node, line) || chip.misses(node, line);
        if concerned || chip.settings.home(line) == node {
            chip.after(chip.settings.snoop_cycles, Event::Snoop { node, packet: id });
        } else {
            chip.packets.done(id);
        }
    }

    fn answered(&mut self, _: &mut Chip, _: u32, _: u32, _: &Responses) {}

    fn snoop(&mut self, chip: &mut Chip, node: u32, id: u32) {
        let mut packet = *chip.packets.get(id);
        chip.packets.done(id);
        packet.asked = chip.now - chip.settings.snoop_cycles;
        match packet.kind {
            Kind::Activate | Kind::Deactivate => self.enforce(chip, node, packet.line),
            _ => self.answer(chip, node, &packet),
        }
    }

    fn home(&mut self, chip: &mut Chip, id: u32) {
        let mut packet = *chip.packets.get(id);
        chip.packets.done(id);
        packet.asked = chip.now - chip.settings.home_cycles;
        self.answer_home(chip, &packet);
    }

    fn timeout(&mut self, chip: &mut Chip, core: u32, serial: u64) {
        let Some(miss) = chip.cores[core as usize].miss else { return };
        let got = &self.got[core as usize];
        if miss.serial != serial || got.persistent {
            return;
        }
        let again = got.asked.len() <= chip.settings.reissues as usize && !got.contended;
        if !again && self.tables[core as usize].may_activate(miss.line) {
            self.insist(chip, core);
            return;
        }
        if chip.stats.counts() {
            chip.stats.run.reissues += 1;
        }
        self.ask(chip, core);
    }

    fn fallen(&mut self, chip: &mut Chip, core: u32, held: &Held) {
        self.give_home(chip, core, held.line, Bundle::of(held));
    }

    fn describe(&self, chip: &Chip, core: u32) -> String {
        let Some(miss) = chip.cores[core as usize].miss else { return String::new() };
        let got = &self.got[core as usize];
        let own = chip.held(core, miss.line).map_or(0, |held| held.tokens);
        let (tokens, all, home) =
            (own + got.bundle.tokens, self.all, self.at_home[miss.line as usize].0);
        let insists = if got.persistent { ", its request is persistent" } else { "" };
        format!("; it has {tokens} of {all} tokens, memory {home}{insists}")
    }
}
