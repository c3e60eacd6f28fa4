//! The fast engine: work follows flits, not routers.
//!
//! A cycle visits only events: flits and credits that arrive (a list per cycle), nodes that have a
//! flit to inject, routers in which some head waits for a VC or some flit for the switch. Requests
//! and arbiters are bits of machine words. The arrival of a flit is scheduled as soon as it wins
//! the switch, since nothing can stop it any more. The engine follows [`super::oracle`] cycle by
//! cycle.

mod allocate;
mod bits;
mod clocks;
mod events;
mod general;
mod nodes;
mod state;
mod waits;
mod wheel;

use std::sync::Arc;

use self::bits::{Bits, Members};
use self::clocks::Clocks;
use self::events::Events;
use self::general::General;
use self::nodes::Nodes;
use self::state::{
    Flit, INJECTING, InPort, InVc, NONE, NetworkState, OutPort, OutVc, Router, Serial, Stage,
    count, low_half,
};
use super::measure::Stalls;
use super::packet::{Delivery, Head, Order, Source};
use super::routing::{Candidate, Chance, Routing, RoutingContext};
use super::settings::Settings;
use super::{FlitError, Wiring};

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
struct Packet {
    head: Head,
    order: Order,
    injected: u64,
    head_arrived: u64,
}

/// A running flit network; W words of 64 bits hold a bit for each VC of a router.
pub(super) struct Network<const W: usize> {
    settings: Settings,
    vcs: usize,
    routing: Arc<dyn Routing>,
    /// Output ports by router and destination, for routings that are fixed; empty for others.
    table: Vec<u16>,
    /// The VCs of each class, a bit for each.
    allowed: Vec<u64>,
    routers: Vec<Router<W>>,
    in_vcs: Vec<InVc>,
    out_vcs: Vec<OutVc>,
    in_ports: Vec<InPort>,
    out_ports: Vec<OutPort>,
    serial: Vec<Serial>,
    channels: Vec<u32>,
    /// Whether some output port or node cannot send a flit in each cycle.
    slow: bool,
    /// Whether credits may leave later than in the cycle that frees them.
    late_credits: bool,
    /// Whether some free VCs cannot be allocated, since they lack buffer space.
    restricts_vcs: bool,
    /// Whether VCs request the switch even without a credit, since delays count from the request.
    always_requests: bool,
    cycle: u64,
    /// The buffers of all input VCs, [`Settings::buffer`] slots each.
    slots: Vec<Flit>,
    /// The candidates of packets that have several, by input VC.
    candidates: Vec<Vec<Candidate>>,
    /// The port of a VC counted from a router's first.
    port_of: Vec<u32>,
    general: Option<Box<General>>,
    /// The clocks of routers, if they differ.
    clocks: Option<Box<Clocks>>,
    packets: Vec<Packet>,
    unused: Vec<u32>,
    events: Events,
    active: Members,
    nodes: Nodes,
    now: u64,
    scratch: Scratch<W>,
}

/// Scratch space of a router's turn; empty between turns.
struct Scratch<const W: usize> {
    /// Per output VC or port, the inputs that request it.
    requests: Vec<Bits<W>>,
    /// Per input port, the VC it chose.
    chosen: Vec<usize>,
    candidates: Vec<Candidate>,
    refilled: Vec<(u32, u8)>,
}

impl<const W: usize> Scratch<W> {
    /// For routers with at most `vcs` input VCs and output VCs.
    fn new(vcs: usize) -> Scratch<W> {
        Scratch {
            requests: vec![Bits::EMPTY; vcs],
            chosen: vec![0; vcs],
            candidates: Vec::new(),
            refilled: Vec::new(),
        }
    }
}

impl<const W: usize> Network<W> {
    /// An empty network. The caller has checked `wiring` and `settings`, and that W words suffice.
    pub(super) fn new(
        wiring: &Wiring,
        settings: &Settings,
        routing: Arc<dyn Routing>,
    ) -> Result<Network<W>, FlitError> {
        let layout = NetworkState::<W>::of(wiring, settings);
        let in_vcs = layout.in_vcs.len();
        let most_vcs = layout.most_ports() * settings.vcs;
        let cycle = wiring.cycle().ps();
        let serial = settings.queues_behind_switch();
        let clocks = Clocks::if_needed(wiring, settings, &layout);
        let general = General::if_needed(&layout, settings)?;
        let is_narrow = layout.serial.iter().any(|port| port.flit_time > cycle);
        Ok(Network {
            vcs: settings.vcs as usize,
            table: table(wiring, &*routing),
            allowed: settings.classes.iter().map(|vcs| vcs.mask()).collect(),
            routing,
            slow: serial || is_narrow || clocks.is_some(),
            late_credits: general.is_some() || clocks.is_some(),
            restricts_vcs: settings.busy_when_full || settings.cut_through,
            always_requests: settings.switch_delay > 1 || settings.hold_switch,
            cycle,
            slots: vec![Flit::new(0, false, false); in_vcs * settings.buffer as usize],
            candidates: vec![Vec::new(); in_vcs],
            port_of: (0..most_vcs).map(|vc| vc / settings.vcs).collect(),
            general,
            packets: Vec::new(),
            unused: Vec::new(),
            events: Events::new(&layout, settings, serial, clocks.as_deref()),
            clocks,
            active: Members::new(layout.routers.len()),
            nodes: Nodes::new(wiring, settings, &layout),
            now: 0,
            scratch: Scratch::new(most_vcs as usize),
            settings: settings.clone(),
            routers: layout.routers,
            in_vcs: layout.in_vcs,
            out_vcs: layout.out_vcs,
            in_ports: layout.in_ports,
            out_ports: layout.out_ports,
            serial: layout.serial,
            channels: layout.channels,
        })
    }

    /// The next cycle.
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Packets injected or being injected that have not arrived.
    pub(super) fn in_flight(&self) -> usize {
        self.packets.len() - self.unused.len()
    }

    /// Flits sent over each channel.
    pub(super) fn sent(&self) -> Vec<u64> {
        let mut sent = vec![0; self.channels.len()];
        for (port, &channel) in self.out_ports.iter().zip(&self.channels) {
            sent[channel as usize] = port.sent;
        }
        sent
    }

    /// How often a flit has been sent.
    pub(super) fn moves(&self) -> u64 {
        self.out_ports.iter().map(|port| port.sent).sum()
    }

    /// Flits sent by each VC of each channel, modulo 2^32: by channel, then VC.
    pub(super) fn sent_by_vc(&self) -> Vec<u32> {
        let mut sent = vec![0; self.out_vcs.len()];
        for (vcs, &channel) in self.out_vcs.chunks(self.vcs).zip(&self.channels) {
            let place = channel as usize * self.vcs;
            let counts = sent[place..place + self.vcs].iter_mut();
            counts.zip(vcs).for_each(|(count, vc)| *count = vc.sent);
        }
        sent
    }

    /// Flits in each input VC.
    pub(super) fn occupancy(&self) -> Vec<u32> {
        self.in_vcs.iter().map(|vc| u32::from(vc.length)).collect()
    }

    /// Why the first flits are stalled.
    pub(super) fn count_stalls(&self, stalls: &mut Stalls) {
        for vc in self.in_vcs.iter().filter(|vc| vc.length > 0) {
            stalls.busy += 1;
            match vc.stage {
                Stage::Idle | Stage::Routing => stalls.routing += 1,
                Stage::Waiting | Stage::Pending => stalls.no_vc += 1,
                Stage::Active if self.out_vcs[vc.out as usize].credits == 0 => {
                    stalls.no_credit += 1
                }
                Stage::Active => stalls.switch += 1,
            }
        }
    }

    /// Skips cycles without events, up to `end`. Ignores packets that the source got since it was
    /// last polled.
    #[inline]
    pub(super) fn rest(&mut self, end: Option<u64>) {
        if self.events.is_empty()
            && self.nodes.are_idle()
            && !self.active.any()
            && self.general.as_ref().is_none_or(|general| general.is_idle())
        {
            let due = self.nodes.next_due(self.now).into_iter().chain(end).min();
            self.now = due.unwrap_or(self.now).max(self.now);
        }
    }

    /// One cycle.
    pub(super) fn step<S: Source>(&mut self, source: &mut S) {
        if let Some(clocks) = &mut self.clocks {
            clocks.advance(self.now);
        }
        self.take_credits();
        self.take_arrivals();
        self.take_ejections(source);
        self.inject(source);
        self.allocate_all();
        self.now += 1;
    }

    fn take_credits(&mut self) {
        if !self.events.credits.has(self.now) {
            return;
        }
        let credits = self.events.credits.take(self.now);
        for &out in &credits {
            self.take_credit(out as usize);
        }
        self.events.credits.restore(self.now, credits);
    }

    #[inline]
    fn take_credit(&mut self, out: usize) {
        let vc = &mut self.out_vcs[out];
        vc.credits += 1;
        let owner = vc.owner;
        if owner < INJECTING {
            if vc.credits == 1 {
                self.ready(owner);
            }
        } else if owner == NONE
            && self.settings.wait_for_tail_credit
            && vc.credits == self.out_ports[vc.port as usize].capacity
        {
            self.out_ports[vc.port as usize].free |= 1 << vc.vc;
        }
    }

    /// An input VC has an output VC with a credit: its router inspects it if there is a flit.
    #[inline]
    fn ready(&mut self, in_vc: u32) {
        let vc = &self.in_vcs[in_vc as usize];
        if vc.length > 0 && !vc.switch_pending {
            let router = vc.router as usize;
            self.routers[router].ready.set(usize::from(vc.local));
            self.active.set(router);
        }
    }

    fn take_arrivals(&mut self) {
        self.route_fresh();
        if self.events.arrivals.has(self.now) {
            let arrivals = self.events.arrivals.take(self.now);
            for &(flit, in_vc) in &arrivals {
                self.arrive(flit, in_vc);
            }
            self.events.arrivals.restore(self.now, arrivals);
        }
        if !self.events.routed.is_empty() {
            let routed = self.events.routed.take(self.now);
            for &in_vc in &routed {
                self.request_vc(in_vc);
            }
            self.events.routed.restore(self.now, routed);
        }
    }

    /// Heads that have become first are routed.
    #[inline]
    fn route_fresh(&mut self) {
        if self.events.fresh.is_empty() {
            return;
        }
        if self.clocks.is_some() {
            return self.route_fresh_clocked();
        }
        // Routing makes no packet the first of a VC; the list's memory is reused.
        let mut fresh = std::mem::take(&mut self.events.fresh);
        for &in_vc in &fresh {
            self.route(in_vc, self.first_flit(in_vc as usize));
        }
        fresh.clear();
        self.events.fresh = fresh;
    }

    #[inline]
    fn arrive(&mut self, flit: Flit, in_vc: u32) {
        let depth = self.settings.buffer as usize;
        let vc = &mut self.in_vcs[in_vc as usize];
        let mut slot = vc.front as usize + vc.length as usize;
        if slot >= depth {
            slot -= depth;
        }
        self.slots[in_vc as usize * depth + slot] = flit;
        vc.length += 1;
        match vc.stage {
            Stage::Idle => self.route(in_vc, flit),
            Stage::Active
                if vc.length == 1
                    && (self.always_requests || self.out_vcs[vc.out as usize].credits > 0) =>
            {
                self.ready(in_vc);
            }
            _ => {}
        }
    }

    /// The flit that is first in a VC.
    #[inline]
    fn first_flit(&self, in_vc: usize) -> Flit {
        self.slots[in_vc * self.settings.buffer as usize + self.in_vcs[in_vc].front as usize]
    }

    /// The head that is first in a VC is routed. Always inlined: the call would take 2 % of the
    /// instructions.
    #[inline(always)]
    fn route(&mut self, in_vc: u32, flit: Flit) {
        if self.table.is_empty() {
            self.find_candidates(in_vc, flit);
        } else {
            let vc = &mut self.in_vcs[in_vc as usize];
            let head = &mut self.packets[flit.packet() as usize].head;
            head.hops += 1;
            let nodes = self.nodes.count();
            vc.port = self.table[vc.router as usize * nodes + head.destination as usize];
            vc.allowed = self.allowed[usize::from(head.class)];
        }
        if self.settings.routing_delay == 0 {
            self.request_vc(in_vc);
        } else {
            self.delay_request(in_vc);
        }
    }

    /// A head will request a VC when it has been routed.
    #[inline(never)]
    fn delay_request(&mut self, in_vc: u32) {
        self.in_vcs[in_vc as usize].stage = Stage::Routing;
        let delay = u64::from(self.settings.routing_delay);
        if let Some(clocks) = &self.clocks {
            let router = self.in_vcs[in_vc as usize].router;
            self.events.routed.push(clocks.ahead(router, delay), in_vc);
        } else if let Some(general) = &mut self.general {
            general.route_until(self.now, delay, in_vc);
        } else {
            self.events.routed.push(self.now + delay, in_vc);
        }
    }

    /// Calls the routing for the candidates of a head.
    #[inline(never)]
    fn find_candidates(&mut self, in_vc: u32, flit: Flit) {
        let vc = &mut self.in_vcs[in_vc as usize];
        let router = &self.routers[vc.router as usize];
        let local = usize::from(vc.local);
        let input = self.port_of[local];
        let packet = &mut self.packets[flit.packet() as usize];
        let (out_vcs, out_ports, vcs) = (&self.out_vcs, &self.out_ports, self.vcs);
        let first_out = router.first_out as usize;
        let used = |port: u32| {
            let port = first_out + port as usize;
            let of_port = out_vcs[port * vcs..(port + 1) * vcs].iter();
            of_port.map(|vc| u32::from(out_ports[port].capacity - vc.credits)).sum()
        };
        let place = RoutingContext {
            router: vc.router,
            input,
            vc: count(local - input as usize * vcs),
            injected: self.in_ports[(router.first_in + input) as usize].injected,
            vcs: self.settings.classes[usize::from(packet.head.class)],
            chance: Chance::Seed(self.settings.seed),
            used: &used,
        };
        let candidates = &mut self.scratch.candidates;
        candidates.clear();
        self.routing.route(&place, &mut packet.head, candidates);
        packet.head.hops += 1;
        set_candidates(vc, &mut self.candidates[in_vc as usize], candidates);
    }

    /// A head starts to request a VC.
    #[inline]
    fn request_vc(&mut self, in_vc: u32) {
        let vc = &mut self.in_vcs[in_vc as usize];
        vc.stage = Stage::Waiting;
        let router = vc.router as usize;
        self.routers[router].vc_requests.set(usize::from(vc.local));
        self.active.set(router);
    }

    fn take_ejections<S: Source>(&mut self, source: &mut S) {
        if !self.events.ejections.has(self.now) {
            return;
        }
        let mut ejections = self.events.ejections.take(self.now);
        // In order of the nodes, whatever the order in which routers sent them.
        ejections.sort_unstable_by_key(|&(_, out)| self.out_vcs[out as usize].to);
        for &(flit, out) in &ejections {
            let port = self.out_vcs[out as usize].port as usize;
            let after = u64::from(self.out_ports[port].credit_after);
            let counts = self.clocks.as_ref().map(|clocks| clocks.credit_of_node(port));
            self.events.credits.push(counts.unwrap_or(self.now + after), out);
            let packet = &mut self.packets[flit.packet() as usize];
            if flit.is_head() {
                packet.head_arrived = self.now;
            }
            if flit.is_tail() {
                source.delivered(&delivery(packet, self.now));
                self.unused.push(flit.packet());
            }
        }
        self.events.ejections.restore(self.now, ejections);
    }

    /// Numbers a packet.
    fn admit(&mut self, packet: Packet) -> u32 {
        if let Some(id) = self.unused.pop() {
            self.packets[id as usize] = packet;
            return id;
        }
        self.packets.push(packet);
        count(self.packets.len() - 1)
    }
}

/// The most entries of a table of output ports.
const LARGEST_TABLE: u64 = 1 << 22;

/// The output ports of a fixed routing, by router and destination.
fn table(wiring: &Wiring, routing: &dyn Routing) -> Vec<u16> {
    let (routers, nodes) = (wiring.routers(), wiring.nodes());
    if u64::from(routers) * u64::from(nodes) > LARGEST_TABLE || routing.fixed(0, 0).is_none() {
        return Vec::new();
    }
    let port = |router, node| routing.fixed(router, node).map(low_half);
    (0..routers).flat_map(|router| (0..nodes).filter_map(move |node| port(router, node))).collect()
}

/// Stores the candidates of a packet.
#[inline]
fn set_candidates(vc: &mut InVc, many: &mut Vec<Candidate>, candidates: &[Candidate]) {
    let candidate = candidates[0];
    vc.port = low_half(candidate.port);
    vc.allowed = candidate.vcs.mask();
    vc.many = candidates.len() > 1;
    if vc.many {
        many.clear();
        many.extend_from_slice(candidates);
    }
}

fn delivery(packet: &Packet, now: u64) -> Delivery {
    Delivery {
        arrived: now,
        destination: packet.order.destination,
        source: packet.head.source,
        created: packet.order.created,
        injected: packet.injected,
        head_arrived: packet.head_arrived,
        hops: packet.head.hops,
        class: packet.order.class,
        flits: packet.order.flits,
        tag: packet.order.tag,
        serial: packet.head.serial,
    }
}
