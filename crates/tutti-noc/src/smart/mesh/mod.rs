//! The fast mesh: each cycle visits only routers with ready flits, and walks each path once.
//!
//! [`super::oracle`] is the reference model of the same semantics; tests compare the two arrival by
//! arrival.

mod allocate;
#[cfg(debug_assertions)]
mod audit;
mod geometry;
mod hold;
mod inject;
mod land;
mod paths;
mod preset;
mod ranks;
mod state;
mod tables;
#[cfg(test)]
mod tests;
mod trees;
mod turns;
mod vcs;

use std::collections::VecDeque;

use super::counts::Counts;
use super::fabric::Fabric;
use super::flows::Flows;
use super::message::{Arrival, Cast, Flow, FlowId, Message, Responses};
use super::record::{Event, EventKind};
use super::settings::{FanIn, Settings};
use crate::{FlitError, Watchdog};
use allocate::Grant;
use geometry::{Geometry, PORTS, router_of};
use land::Landings;
use state::{Packets, index};
use tables::Tables;
use vcs::{SEVERAL, VcId, Vcs};

/// A mesh of routers with multi-hop links.
pub struct Mesh {
    settings: Settings,
    geometry: Geometry,
    flows: Flows,
    tables: Tables,
    packets: Packets,
    vcs: Vcs,
    /// By node and class: packets that the NIC has not fully injected.
    queues: Vec<VecDeque<u32>>,
    /// By node: a bit for each class with such a packet.
    classes_queued: Vec<u16>,
    /// A bit for each node with such a packet, and packets in all.
    queued: Vec<u64>,
    waiting: u64,
    /// By node: the class that injects next.
    turns: Vec<u8>,
    /// By input and by output: the arbitration pointer.
    input_turns: Vec<u8>,
    output_turns: Vec<u8>,
    landings: Landings,
    /// Arrivals that [`Settings::eject_cost`] delays.
    late: VecDeque<Arrival>,
    /// The grants of this cycle, and by router the granted inputs and outputs.
    grants: Vec<Grant>,
    granted: Vec<(u8, u8)>,
    paths: ranks::Scratch,
    /// With [`Settings::bypass_turns`].
    bends: turns::Bends,
    /// With [`Settings::hold`], the buffered responses that can be combined.
    buffered: Vec<hold::Buffered>,
    now: u64,
    watchdog: Watchdog,
    counts: Counts,
    record: Option<Vec<Event>>,
    #[cfg(debug_assertions)]
    audit: audit::Audit,
}

impl Mesh {
    /// An empty mesh.
    ///
    /// # Errors
    /// When the settings are invalid.
    pub fn new(settings: &Settings) -> Result<Mesh, FlitError> {
        settings.check()?;
        let geometry = Geometry::new(settings);
        let nodes = settings.nodes() as usize;
        let farthest = geometry.shift(settings.columns.max(settings.rows));
        let ahead = index(farthest) + settings.sag_extra_cycle as usize + 2;
        Ok(Mesh {
            flows: Flows::new(settings.nodes()),
            tables: Tables::new(settings),
            packets: Packets::default(),
            vcs: Vcs::new(settings, &geometry),
            queues: vec![VecDeque::new(); nodes * settings.classes.len()],
            classes_queued: vec![0; nodes],
            queued: vec![0; nodes.div_ceil(64)],
            waiting: 0,
            turns: vec![0; nodes],
            input_turns: vec![0; nodes * PORTS],
            output_turns: vec![0; nodes * PORTS],
            landings: Landings::new(ahead, nodes * PORTS),
            late: VecDeque::new(),
            grants: Vec::new(),
            granted: vec![(0, 0); nodes],
            paths: ranks::Scratch::new(nodes),
            bends: turns::Bends::new(if settings.bypass_turns { nodes } else { 0 }),
            buffered: Vec::new(),
            now: 0,
            watchdog: Watchdog::new(settings.patience, 1),
            counts: Counts::default(),
            record: None,
            #[cfg(debug_assertions)]
            audit: audit::Audit::new(nodes, ahead),
            geometry,
            settings: settings.clone(),
        })
    }

    /// The settings that it was built with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Starts or stops recording events.
    pub fn record(&mut self, on: bool) {
        self.record = on.then(Vec::new);
    }

    /// The events since the last call, in order.
    pub fn take_record(&mut self) -> Vec<Event> {
        self.record.as_mut().map(std::mem::take).unwrap_or_default()
    }

    #[inline]
    fn note(&mut self, router: u32, packet: u32, kind: EventKind) {
        if let Some(events) = &mut self.record {
            let packet = self.packets.get(packet).serial;
            events.push(Event { cycle: self.now, router, packet, kind });
        }
    }

    /// The cycle in which flits with a path granted now cross the links.
    fn crossing(&self) -> u64 {
        self.now + 1 + u64::from(self.settings.sag_extra_cycle)
    }

    /// A flit will land at its VC in a cycle, with a mask of outputs there.
    #[inline]
    fn schedule(&mut self, crossing: u64, place: VcId, mask: u8) {
        let vc = self.vcs.at_mut(place);
        (vc.due, vc.mask) = (vc.due + 1, mask);
        self.landings.add(crossing, place);
    }

    /// Takes a flit out of the network at its node.
    fn eject(&mut self, place: VcId, arrivals: &mut Vec<Arrival>) {
        let vc = *self.vcs.at(place);
        let router = router_of(place.input);
        self.counts.ejected += 1;
        let packet = self.packets.get_mut(vc.packet);
        if vc.is(SEVERAL) && vc.left + 1 < packet.flits {
            return;
        }
        let mut arrival = Arrival {
            arrived: self.now + u64::from(self.settings.eject_cost),
            node: router,
            source: packet.source,
            created: packet.created,
            class: packet.class,
            tag: packet.tag,
            responses: None,
        };
        match packet.kind {
            state::Kind::One => {}
            state::Kind::Many => {
                assert!(packet.members.remove(router), "node {router} gets a multicast twice");
            }
            state::Kind::Response(flow) | state::Kind::Single(flow) => {
                let (count, value) = self.vcs.sum(place);
                if packet.kind == state::Kind::Response(flow) {
                    self.tables.leaves(flow, router, place);
                }
                arrival.responses = Some(Responses { flow, count, value, last: false });
            }
        }
        self.note(router, vc.packet, EventKind::Arrived);
        if self.settings.eject_cost == 0 {
            arrivals.push(self.arrived(arrival));
        } else {
            self.late.push_back(arrival);
        }
    }

    /// Counts arriving responses, and closes their flow with the last one: not earlier, since its
    /// id and its entry must not be reused before.
    fn arrived(&mut self, mut arrival: Arrival) -> Arrival {
        if let Some(responses) = &mut arrival.responses {
            let held = self.flows.get(responses.flow).held;
            responses.last = self.flows.arrived(responses.flow, responses.count);
            if responses.last && !held {
                self.tables.close(responses.flow);
            }
        }
        arrival
    }

    fn count_cycles(&mut self, cycles: u64) {
        self.counts.cycles += cycles;
        self.counts.table_entries += self.tables.waiting * cycles;
        self.counts.buffered_flows += self.tables.buffered * cycles;
    }
}

impl Fabric for Mesh {
    fn now(&self) -> u64 {
        self.now
    }

    fn nodes(&self) -> u32 {
        self.settings.nodes()
    }

    fn open(&mut self, flow: Flow) -> Result<FlowId, FlitError> {
        let combines = self.settings.fan_in != FanIn::Unicasts;
        if combines && flow.combine != super::Combine::Count && !self.settings.reducer {
            let problem = format!(
                "responses combined by {:?} need a reducer in the routers; expected `reducer = true`",
                flow.combine
            );
            return Err(FlitError::Clash { what: "combine", problem });
        }
        let id = self.flows.open(flow, self.settings.classes.len())?;
        self.tables.open(id, self.flows.get(id), &self.geometry);
        Ok(id)
    }

    fn release(&mut self, flow: FlowId) {
        if self.flows.release(flow) {
            self.tables.close(flow);
        }
    }

    fn send(&mut self, message: Message) -> Result<(), FlitError> {
        self.flows.check(&message, &self.settings)?;
        match (&message.cast, self.settings.tree()) {
            (Cast::Many(members), None) => {
                for node in members.iter() {
                    let one = Message { cast: Cast::One(node), ..message.clone() };
                    self.enqueue(&one);
                }
            }
            _ => self.enqueue(&message),
        }
        Ok(())
    }

    fn queued(&self, node: u32) -> usize {
        if self.queued[node as usize / 64] >> (node % 64) & 1 == 0 {
            return 0;
        }
        let classes = self.settings.classes.len();
        let queues = &self.queues[node as usize * classes..][..classes];
        let waits = |queue: &VecDeque<u32>| {
            let started = queue.front().is_some_and(|&slot| self.packets.get(slot).injected > 0);
            queue.len() - usize::from(started)
        };
        queues.iter().map(waits).sum()
    }

    fn step(&mut self, arrivals: &mut Vec<Arrival>) {
        self.inject();
        self.hold_responses();
        self.allocate();
        self.cross(arrivals);
        self.send_preset();
        self.land();
        self.vcs.release(self.now);
        while self.late.front().is_some_and(|arrival| arrival.arrived <= self.now) {
            let arrival = self.late.pop_front().expect("there is one in front");
            arrivals.push(self.arrived(arrival));
        }
        self.count_cycles(1);
        #[cfg(debug_assertions)]
        self.check_invariants();
        self.now += 1;
    }

    fn is_empty(&self) -> bool {
        self.packets.alive == 0 && self.late.is_empty()
    }

    fn skip_to(&mut self, cycle: u64) {
        debug_assert!(self.is_empty() && cycle >= self.now, "packets are in flight");
        self.count_cycles(cycle - self.now);
        for now in self.now..cycle.min(self.now + self.vcs.horizon()) {
            self.vcs.release(now);
        }
        #[cfg(debug_assertions)]
        self.audit.skip_cycles(self.now, cycle);
        self.now = cycle;
        self.watchdog.moved(cycle);
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn stalled_since(&self) -> Option<u64> {
        let stalled = !self.is_empty() && self.watchdog.is_stalled(self.now);
        stalled.then(|| self.watchdog.idle_from())
    }
}
