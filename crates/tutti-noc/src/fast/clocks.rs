//! Routers with different clocks. A cycle of the network visits only routers and nodes of which a
//! cycle starts.

use super::Network;
use super::bits::{Members, low};
use super::state::{NetworkState, Serial, count};
use crate::clocks::Clock;
use crate::packet::Source;
use crate::{Channel, End, Settings, Wiring};

/// A clock, and who has it.
struct Domain {
    /// In picoseconds.
    period: u64,
    routers: Members,
    /// Nodes that inject with it.
    nodes: Members,
    /// Its cycle that started last, and whether that was since the last cycle of the network.
    cycle: u64,
    starts: bool,
}

/// The path of flits or credits from one clock to another.
#[derive(Clone, Copy)]
struct Crossing {
    from: u32,
    to: u32,
    /// Cycles of the sender until they are on the wire, and picoseconds there.
    departs_after: u64,
    on_wire: u64,
    /// Cycles of the receiver before it uses them.
    waits: u64,
    /// The first cycle of the receiver that takes no earlier flit.
    next: u64,
}

/// The clocks of a network.
pub(super) struct Clocks {
    /// A cycle of the network, in picoseconds.
    cycle: u64,
    domains: Vec<Domain>,
    domain_of: Vec<u32>,
    /// Routers of which a cycle starts now, and nodes that may inject now.
    routers: Members,
    nodes: Members,
    /// Flits by output port, credits by input port, and credits of nodes by output port.
    flits: Vec<Crossing>,
    credits: Vec<Crossing>,
    ejections: Vec<Crossing>,
}

impl Clocks {
    /// The clocks, if routers differ in them.
    pub(super) fn if_needed<const W: usize>(
        wiring: &Wiring,
        settings: &Settings,
        layout: &NetworkState<W>,
    ) -> Option<Box<Clocks>> {
        settings.has_clocks(wiring.cycle()).then(|| Box::new(Clocks::new(wiring, settings, layout)))
    }

    fn new<const W: usize>(
        wiring: &Wiring,
        settings: &Settings,
        layout: &NetworkState<W>,
    ) -> Clocks {
        let mut known: Vec<Clock> = Vec::new();
        let mut domain_of = Vec::new();
        for clock in &settings.clocks {
            let place = known.iter().position(|other| other == clock);
            domain_of.push(count(place.unwrap_or(known.len())));
            if place.is_none() {
                known.push(*clock);
            }
        }
        let members = || Members::new(layout.routers.len());
        let domain = |clock: &Clock| Domain {
            period: clock.period.ps(),
            routers: members(),
            nodes: Members::new(wiring.nodes() as usize),
            cycle: 0,
            starts: false,
        };
        let mut clocks = Clocks {
            cycle: wiring.cycle().ps(),
            domains: known.iter().map(domain).collect(),
            domain_of,
            routers: members(),
            nodes: Members::new(wiring.nodes() as usize),
            flits: Vec::new(),
            credits: Vec::new(),
            ejections: Vec::new(),
        };
        clocks.join(wiring);
        clocks.connect(wiring, settings, layout);
        clocks
    }

    /// Enters routers and nodes into their domains.
    fn join(&mut self, wiring: &Wiring) {
        for (router, &domain) in self.domain_of.iter().enumerate() {
            self.domains[domain as usize].routers.set(router);
        }
        for node in 0..wiring.nodes() {
            let into = &wiring.channels()[wiring.injects(node) as usize];
            let domain = self.domain(into, into.to);
            self.domains[domain as usize].nodes.set(node as usize);
        }
    }

    fn connect<const W: usize>(
        &mut self,
        wiring: &Wiring,
        settings: &Settings,
        layout: &NetworkState<W>,
    ) {
        let channel = |&channel: &u32| wiring.channels()[channel as usize];
        for wire in layout.channels.iter().map(channel) {
            let traversal = match wire.from {
                End::Router { .. } => settings.traversal_delay,
                End::Node(_) => 0,
            };
            let [waits, _] = settings.synchronisers(&wire, wiring.cycle());
            let flit = self.crossing(&wire, wire.from, traversal, wire.parameters.latency, waits);
            self.flits.push(flit);
            self.ejections.push(self.credit(&wire, wiring, settings));
        }
        for router in 0..wiring.routers() {
            for wire in wiring.inputs(router).iter().map(channel) {
                self.credits.push(self.credit(&wire, wiring, settings));
            }
        }
    }

    /// The path of the credits of a channel.
    fn credit(&self, wire: &Channel, wiring: &Wiring, settings: &Settings) -> Crossing {
        let delay = match wire.from {
            End::Router { .. } => settings.credit_delay,
            End::Node(_) => 0,
        };
        let [_, waits] = settings.synchronisers(wire, wiring.cycle());
        self.crossing(wire, wire.to, 0, wire.parameters.credit_latency, waits + delay)
    }

    fn crossing(
        &self,
        wire: &Channel,
        from: End,
        before: u32,
        latency: u32,
        waits: u32,
    ) -> Crossing {
        let to = if from == wire.from { wire.to } else { wire.from };
        Crossing {
            from: self.domain(wire, from),
            to: self.domain(wire, to),
            departs_after: u64::from(before) + 1,
            on_wire: u64::from(latency) * self.cycle,
            waits: u64::from(waits),
            next: 0,
        }
    }

    /// The domain of an end of a channel; that of the other end for a node.
    fn domain(&self, channel: &Channel, end: End) -> u32 {
        let other = if end == channel.from { channel.to } else { channel.from };
        match (end, other) {
            (End::Router { router, .. }, _) | (_, End::Router { router, .. }) => {
                self.domain_of[router as usize]
            }
            (End::Node(_), End::Node(_)) => unreachable!("one end of a channel is a router"),
        }
    }

    /// The most cycles of the network until flits, credits and routed heads are due, behind so many
    /// flits.
    pub(super) fn longest(&self, queued: u64, routing: u64) -> [u64; 3] {
        let longest = self.domains.iter().map(|domain| domain.period).max().unwrap_or(self.cycle);
        let cycles = |time: u64| time.div_ceil(self.cycle) + 1;
        let most = |crossings: &mut dyn Iterator<Item = &Crossing>| {
            let time =
                |path: &Crossing| (path.departs_after + path.waits + 1) * longest + path.on_wire;
            crossings.map(time).max().unwrap_or(0)
        };
        let flits = most(&mut self.flits.iter()) + queued * longest;
        let credits = most(&mut self.credits.iter().chain(&self.ejections));
        [cycles(flits), cycles(credits), cycles((routing + 1) * longest)]
    }

    /// Finds the routers and nodes of which a cycle starts in cycle `now` of the network.
    pub(super) fn advance(&mut self, now: u64) {
        self.routers.empty();
        let time = now * self.cycle;
        for domain in &mut self.domains {
            domain.cycle = time / domain.period;
            domain.starts = (domain.cycle * domain.period).div_ceil(self.cycle) == now;
            if domain.starts {
                self.routers.extend(&domain.routers);
            }
        }
    }

    /// Selects the nodes that inject before the start of cycle `now` of the network, or at it.
    fn select_nodes(&mut self, now: u64, before: bool) {
        self.nodes.empty();
        let time = now * self.cycle;
        for domain in self.domains.iter().filter(|domain| domain.starts) {
            if (domain.cycle * domain.period < time) == before {
                self.nodes.extend(&domain.nodes);
            }
        }
    }

    /// The routers of a word of which a cycle starts now.
    pub(super) fn routers(&self, word: usize) -> u64 {
        self.routers.word(word)
    }

    pub(super) fn may_inject(&self, node: usize) -> bool {
        self.nodes.word(node / 64) >> (node % 64) & 1 != 0
    }

    /// The cycle of the network for a router's cycle that is so many after the current one.
    pub(super) fn ahead(&self, router: u32, cycles: u64) -> u64 {
        let domain = &self.domains[self.domain_of[router as usize] as usize];
        self.cycle_of((domain.cycle + cycles) * domain.period)
    }

    fn cycle_of(&self, time: u64) -> u64 {
        time.div_ceil(self.cycle)
    }

    /// When the current cycle of the sender at an output port ends.
    pub(super) fn end(&self, port: usize) -> u64 {
        let Domain { period, cycle, .. } = self.domains[self.flits[port].from as usize];
        (cycle + 1) * period
    }

    /// The cycle of the receiver that uses what is sent now.
    fn used(&self, path: &Crossing) -> u64 {
        let (from, to) = (&self.domains[path.from as usize], &self.domains[path.to as usize]);
        let arrives = (from.cycle + path.departs_after) * from.period + path.on_wire;
        arrives.div_ceil(to.period) + path.waits
    }

    /// When a flit that is sent now from an output port is received: one in a cycle of the receiver.
    pub(super) fn send(&mut self, port: usize, serial: &mut Serial) -> u64 {
        let path = self.flits[port];
        let Domain { period, cycle, .. } = self.domains[path.from as usize];
        serial.occupy(cycle * period, self.cycle);
        let received = self.used(&path).max(path.next);
        self.flits[port].next = received + 1;
        self.cycle_of(received * self.domains[path.to as usize].period)
    }

    /// When a credit that an input port frees now counts.
    pub(super) fn credit_of_input(&self, port: usize) -> u64 {
        let path = &self.credits[port];
        self.cycle_of(self.used(path) * self.domains[path.to as usize].period)
    }

    /// When the credit of a flit that a node ejects now counts at an output port.
    pub(super) fn credit_of_node(&self, port: usize) -> u64 {
        let path = &self.ejections[port];
        self.cycle_of(self.used(path) * self.domains[path.to as usize].period)
    }
}

impl<const W: usize> Network<W> {
    /// Nodes whose cycle started before that of the network inject, and poll for their next
    /// packets: these are not older than the cycle.
    pub(super) fn inject_before<S: Source>(&mut self, source: &mut S, due: &mut Vec<u32>) {
        self.select_nodes(true);
        self.nodes.set_early(true);
        self.inject_active(source);
        self.nodes.set_early(false);
        due.append(&mut self.nodes.reloaded);
        self.select_nodes(false);
    }

    fn select_nodes(&mut self, before: bool) {
        if let Some(clocks) = &mut self.clocks {
            clocks.select_nodes(self.now, before);
        }
    }

    /// Allocates in every router with requests of which a cycle starts.
    pub(super) fn allocate_clocked(&mut self) {
        for index in 0..self.active.words() {
            let mut word = self.active.word(index) & self.due_routers(index);
            while word != 0 {
                let router = index * 64 + low(word);
                word &= word - 1;
                self.allocate(router);
            }
        }
    }

    /// The routers of a word of which a cycle starts now; all with one clock.
    pub(super) fn due_routers(&self, word: usize) -> u64 {
        self.clocks.as_ref().map_or(u64::MAX, |clocks| clocks.routers(word))
    }

    /// Heads that have become first are routed in the next cycle of their router.
    pub(super) fn route_fresh_clocked(&mut self) {
        let mut fresh = std::mem::take(&mut self.events.fresh);
        fresh.retain(|&in_vc| {
            let router = self.in_vcs[in_vc as usize].router as usize;
            let starts = self.due_routers(router / 64) >> (router % 64) & 1 != 0;
            if starts {
                self.route(in_vc, self.first_flit(in_vc as usize));
            }
            !starts
        });
        self.events.fresh = fresh;
    }
}
