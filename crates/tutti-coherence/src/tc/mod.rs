//! Token coherence (M. Martin, M. Hill, D. Wood, "Token Coherence: Decoupling Performance and
//! Correctness", ISCA 2003).
//!
//! A line has one token per core and an owner token. One token and the line permit reading; all
//! tokens permit writing. Tokens are in caches, in memory at the home, in messages, and at cores
//! whose miss lacks further tokens.
//!
//! Miss: the requester broadcasts (`transient_read`, `transient_write`). To a read, the owner, a
//! cache or memory, responds with the line and one token; memory with all, if it has all. To a
//! write, all holders respond with all their tokens, and the owner with the line (`tokens`,
//! `tokens_data`). No other node responds, nor does a core that waits for the line itself. Evicted
//! tokens go to the home (`tokens_home`, `tokens_data_home`).
//!
//! Timeout: a request times out after about twice the mean time of the core's recent requests. The
//! core reissues it [`SystemSettings::reissues`](super::SystemSettings::reissues) times and then
//! sends a persistent request (`activate`). Every node then forwards all tokens of the line that it
//! has or receives to that core (for a read: only the owner token), until the core deactivates the
//! request (`deactivate`).
//!
//! Contention: if a core that waits for a line receives another request for it, and either of them
//! writes, the line is contended and therefore in a cache. The timeout is then based on the
//! requests that caches served, and the core sends the persistent request without a reissue.

mod moves;
mod others;
mod persistent;
mod requester;
mod tokens;

use super::cache::CachedLine;
use super::chip::{Chip, Event};
use super::packet::{Kind, Packet};
use super::system::Engine;
use persistent::Table;
use tokens::Bundle;
use tutti_noc::smart::Responses;

/// Progress of a core's miss.
#[derive(Clone, Default)]
struct Attempt {
    bundle: Bundle,
    /// The cycles in which the core sent a request.
    requests: Vec<u64>,
    persistent: bool,
    /// Whether another core requests the line, and one of the two writes.
    contended: bool,
    /// The last message that brought tokens.
    last_tokens: Option<Packet>,
    /// Whether memory sent the line.
    from_memory: bool,
}

/// The TC protocol; see the module.
pub(super) struct Tc {
    /// Tokens per line.
    all: u32,
    attempts: Vec<Attempt>,
    /// By line, the tokens at the home, and whether the owner token is among them; the data are in
    /// memory.
    at_home: Vec<(u32, bool)>,
    /// By node.
    tables: Vec<Table>,
    /// By core, the mean latency of recent requests in cycles: of all requests, and of those
    /// served by caches.
    mean: Vec<[u64; 2]>,
}

impl Tc {
    pub(super) fn new(chip: &Chip) -> Tc {
        let (nodes, all) = (chip.nodes as usize, chip.nodes + 1);
        Tc {
            all,
            attempts: vec![Attempt::default(); nodes],
            at_home: vec![(all, true); chip.memory.lines() as usize],
            tables: vec![Table::new(chip.nodes); nodes],
            mean: vec![[chip.settings.dram_cycles + 50, 50]; nodes],
        }
    }
}

impl Engine for Tc {
    fn miss(&mut self, chip: &mut Chip, core: u32) {
        self.attempts[core as usize] = Attempt::default();
        self.send_transient(chip, core);
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
            _ if chip.settings.home(line) == node => self.schedule_home(chip, id),
            _ => {}
        }
        // A cache without tokens of the line ignores the request.
        let concerned = chip.has(node, line) || chip.misses(node, line);
        if concerned || chip.settings.home(line) == node {
            chip.after(chip.settings.snoop_cycles, Event::Snoop { node, packet: id });
        } else {
            chip.packets.done(id);
        }
    }

    fn responded(&mut self, _: &mut Chip, _: u32, _: u32, _: &Responses) {}

    fn snoop(&mut self, chip: &mut Chip, node: u32, id: u32) {
        let mut packet = *chip.packets.get(id);
        chip.packets.done(id);
        packet.request_arrived = chip.now - chip.settings.snoop_cycles;
        match packet.kind {
            Kind::Activate | Kind::Deactivate => self.enforce(chip, node, packet.line),
            _ => self.respond(chip, node, &packet),
        }
    }

    fn home(&mut self, chip: &mut Chip, id: u32) {
        let mut packet = *chip.packets.get(id);
        chip.packets.done(id);
        packet.request_arrived = chip.now - chip.settings.home_cycles;
        self.respond_home(chip, &packet);
    }

    fn timeout(&mut self, chip: &mut Chip, core: u32, serial: u64) {
        let Some(miss) = chip.cores[core as usize].miss else { return };
        let attempt = &self.attempts[core as usize];
        if miss.serial != serial || attempt.persistent {
            return;
        }
        let reissue =
            attempt.requests.len() <= chip.settings.reissues as usize && !attempt.contended;
        if !reissue && self.tables[core as usize].may_activate(miss.line) {
            self.send_persistent(chip, core);
            return;
        }
        if chip.stats.counts() {
            chip.stats.run.reissues += 1;
        }
        self.send_transient(chip, core);
    }

    fn evicted(&mut self, chip: &mut Chip, core: u32, held: &CachedLine) {
        self.send_tokens_home(chip, core, held.line, Bundle::of(held));
    }

    fn describe(&self, chip: &Chip, core: u32) -> String {
        let Some(miss) = chip.cores[core as usize].miss else { return String::new() };
        let attempt = &self.attempts[core as usize];
        let own = chip.held(core, miss.line).map_or(0, |held| held.tokens);
        let (tokens, all, home) =
            (own + attempt.bundle.tokens, self.all, self.at_home[miss.line as usize].0);
        let persistent = if attempt.persistent { ", its request is persistent" } else { "" };
        format!("; it has {tokens} of {all} tokens, memory {home}{persistent}")
    }
}
