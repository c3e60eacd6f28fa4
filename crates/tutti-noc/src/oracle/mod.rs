//! The reference model of the flit network: in each cycle every channel, every node, every router,
//! every port and every VC is inspected.
//!
//! Slow, and shares only its parameters with the fast network, so that the two can be validated
//! against each other: they deliver the same packets in the same cycles. The routers are the
//! input-queued routers of BookSim 2 (N. Jiang et al., "A detailed and flexible cycle-accurate
//! network-on-chip simulator", ISPASS 2013), and recorded runs of that are reproduced to the cycle.
//!
//! Routers, the ends of channels and nodes count the cycles of their clocks, and act in a cycle of
//! the network only if one of theirs has started since the one before.
//!
//! A cycle has rounds, as many as [`Settings::rounds_in`]; rounds are numbered through all cycles,
//! with [`Settings::most_rounds`] numbers for each. A stage of one cycle that starts in a round is over in that round, and the next stage
//! starts in the round after. A stage of more cycles is over in the first round of its last cycle.

mod audit;
mod clock;
mod matching;
mod node;
mod parts;
mod router;
mod switch;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::clock::Ends;
use self::node::Node;
use self::parts::{Flit, Output, Packet, Wire};
use self::router::Router;
use super::packet::{Delivery, Source};
use super::routing::Routing;
use super::{Channel, End, FlitError, Settings, Wiring};

/// A flit network.
#[derive(Debug)]
pub struct ReferenceNetwork {
    settings: Settings,
    routing: Arc<dyn Routing>,
    cycle: u64,
    wires: Vec<Wire>,
    routers: Vec<Router>,
    nodes: Vec<Node>,
    packets: BTreeMap<u64, Packet>,
    serial: u64,
    now: u64,
}

/// The settings and the time, for all parts.
struct Rules<'a> {
    settings: &'a Settings,
    routing: &'a dyn Routing,
    /// The cycle of the network.
    now: u64,
    /// When this cycle of the router or node starts.
    picoseconds: u64,
    /// The number of this round, and of the one after it.
    round: u64,
    next: u64,
}

impl Rules<'_> {
    /// The last round of a stage of `delay` cycles that starts in `round`.
    fn end_of(&self, round: u64, cycles: u32) -> u64 {
        let rounds = self.settings.most_rounds();
        if cycles <= 1 { round } else { (round / rounds + u64::from(cycles) - 1) * rounds }
    }
}

impl ReferenceNetwork {
    /// An empty network.
    ///
    /// # Errors
    /// When a setting is out of range, or clashes with another, or an allocator is invalid.
    pub fn new(
        wiring: &Wiring,
        settings: &Settings,
        routing: Arc<dyn Routing>,
    ) -> Result<ReferenceNetwork, FlitError> {
        settings.check()?;
        settings.check_buffers(wiring.routers(), routing.least_vcs())?;
        settings.check_clocks(wiring)?;
        let wire = |channel| wire(channel, wiring, settings);
        let wires = wiring.channels().iter().map(wire).collect();
        let routers = (0..wiring.routers()).map(|id| Router::new(id, wiring, settings));
        let routers = routers.collect::<Result<_, _>>()?;
        let queues = settings.queues_per_node();
        let node = |id| Node::new(id, Output::new(wiring, wiring.injects(id), settings), queues);
        Ok(ReferenceNetwork {
            settings: settings.clone(),
            routing,
            cycle: wiring.cycle().ps(),
            wires,
            routers,
            nodes: (0..wiring.nodes()).map(node).collect(),
            packets: BTreeMap::new(),
            serial: 0,
            now: 0,
        })
    }

    /// The next cycle.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Whether no packet is in the network or being injected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Flits sent on each channel of the wiring, including flits that have left their buffers for
    /// it.
    #[must_use]
    pub fn sent(&self) -> Vec<u64> {
        self.sent_by_vc().chunks(self.settings.vcs as usize).map(|vcs| vcs.iter().sum()).collect()
    }

    /// The same by channel, then VC.
    #[must_use]
    pub fn sent_by_vc(&self) -> Vec<u64> {
        let mut sent = Vec::new();
        for wire in &self.wires {
            let first = sent.len();
            sent.extend_from_slice(&wire.sent);
            let End::Router { router, port } = wire.channel.from else { continue };
            let router = &self.routers[router as usize];
            let crossing = router.switch.crossing.iter().filter(|one| one.port == port);
            let bound = crossing
                .map(|one| one.flit)
                .chain(router.outputs[port as usize].queue.iter().copied());
            bound.for_each(|flit| sent[first + flit.vc as usize] += 1);
        }
        sent
    }

    /// Flits in the buffer of each input VC: by router, then input port, then VC.
    #[must_use]
    pub fn occupancy(&self) -> Vec<u32> {
        let inputs = self.routers.iter().flat_map(|router| &router.inputs);
        inputs.flat_map(|input| &input.vcs).map(|vc| count(vc.flits.len())).collect()
    }

    /// One cycle.
    pub fn step(&mut self, source: &mut impl Source) {
        let time = self.now * self.cycle;
        self.wires.iter_mut().for_each(|wire| wire.clocks.tick(time));
        self.routers.iter_mut().for_each(|router| router.clock.tick(time));
        self.receive_credits();
        self.receive_flits(source);
        self.inject(source);
        for router in 0..self.routers.len() {
            if let Some(cycle) = self.routers[router].clock.started {
                self.run_router(router, cycle);
            }
        }
        self.send();
        self.now += 1;
    }

    /// All rounds of a cycle of a router.
    fn run_router(&mut self, router: usize, cycle: u64) {
        let router = &mut self.routers[router];
        let (most, rounds) = (self.settings.most_rounds(), self.settings.rounds_in(cycle));
        for round in 0..rounds {
            let next = if round + 1 < rounds { round + 1 } else { most };
            let rules = Rules {
                settings: &self.settings,
                routing: &*self.routing,
                now: self.now,
                picoseconds: cycle * router.clock.period,
                round: cycle * most + round,
                next: cycle * most + next,
            };
            router.round(&rules, &mut self.packets);
        }
    }

    fn receive_credits(&mut self) {
        for wire in &mut self.wires {
            for vc in wire.take_credits() {
                let output = match wire.channel.from {
                    End::Router { router, port } => {
                        &mut self.routers[router as usize].outputs[port as usize]
                    }
                    End::Node(node) => &mut self.nodes[node as usize].output,
                };
                output.credit(vc, &self.settings);
            }
        }
    }

    /// Flits that are due enter buffers, or are ejected, in order of the nodes.
    fn receive_flits(&mut self, source: &mut impl Source) {
        let mut ejected = BTreeMap::new();
        for wire in &mut self.wires {
            let Some(flit) = wire.take_flit() else { continue };
            match wire.channel.to {
                End::Router { router, port } => {
                    self.routers[router as usize].receive(port as usize, flit);
                }
                End::Node(node) => {
                    wire.send_credits(vec![flit.vc]);
                    ejected.insert(node, flit);
                }
            }
        }
        for (node, flit) in ejected {
            self.eject(node, flit, source);
        }
    }

    fn eject(&mut self, node: u32, flit: Flit, source: &mut impl Source) {
        let Some(packet) = self.packets.get_mut(&flit.packet) else { return };
        assert_eq!(packet.order.destination, node, "a flit is ejected at its destination");
        if flit.head {
            packet.head_arrived = self.now;
        }
        if flit.tail {
            source.delivered(&delivery(packet, self.now));
            self.packets.remove(&flit.packet);
        }
    }

    /// Nodes whose cycle started before that of the network do not know packets created in it.
    fn inject(&mut self, source: &mut impl Source) {
        self.ask(source);
        self.inject_started(source, |start, now| start < now);
        for node in &mut self.nodes {
            node.load(self.now, &mut self.serial, &mut self.packets, source);
        }
        self.inject_started(source, |start, now| start == now);
    }

    /// Nodes inject of which a cycle starts at some time.
    fn inject_started(&mut self, source: &mut impl Source, injects: impl Fn(u64, u64) -> bool) {
        for node in 0..self.nodes.len() {
            let clock = self.wires[self.nodes[node].output.channel].clocks.from;
            let Some(start) = clock.start().filter(|&start| injects(start, self.now * self.cycle))
            else {
                continue;
            };
            let rules = Rules {
                settings: &self.settings,
                routing: &*self.routing,
                now: self.now,
                picoseconds: start,
                round: 0,
                next: 0,
            };
            let node = &mut self.nodes[node];
            let Some((flit, queue)) = node.inject(&rules, &mut self.packets) else { continue };
            let wire = &mut self.wires[node.output.channel];
            node.output.occupy(rules.picoseconds);
            wire.send(flit);
            if flit.tail {
                node.expect(queue, source);
            }
        }
    }

    /// Polls for packets: all queues at first, then queues with new packets.
    fn ask(&mut self, source: &mut impl Source) {
        let mut queues = Vec::new();
        if self.now == 0 {
            for node in 0..count(self.nodes.len()) {
                let per_node = self.settings.queues_per_node();
                queues.extend((0..=u8::MAX).take(per_node).map(|queue| (node, queue)));
            }
        } else {
            source.refilled(&mut queues);
            source.hastened(&mut queues);
        }
        for (node, queue) in queues {
            self.nodes[node as usize].expect(usize::from(queue), source);
        }
    }

    /// Sends what has crossed the switches: a flit for each output and a credit message for each
    /// input.
    fn send(&mut self) {
        for router in self.routers.iter_mut().filter(|router| router.clock.started.is_some()) {
            for output in &mut router.outputs {
                if let Some(flit) = output.queue.pop_front() {
                    self.wires[output.channel].send(flit);
                }
            }
            for input in &mut router.inputs {
                if let Some(credits) = input.credits.pop_front() {
                    self.wires[input.channel].send_credits(credits);
                }
            }
        }
    }
}

fn wire(channel: &Channel, wiring: &Wiring, settings: &Settings) -> Wire {
    let credit_delay = match channel.from {
        End::Router { .. } => settings.credit_delay,
        End::Node(_) => 0,
    };
    let (flits, credits) = Default::default();
    let sent = vec![0; settings.vcs as usize];
    let clocks = Ends::new(channel, wiring, settings);
    let cycle = wiring.cycle().ps();
    Wire { channel: *channel, clocks, cycle, flits, credits, credit_delay, sent }
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

/// Counts are bounded by what a graph may hold.
fn count(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than 2^32 of anything")
}
