//! The flows in flight and the event loop.

use super::FlowLevel;
use super::batch::{self, Batches};
use super::ends::Ends as FlowEnds;
use super::max_min::MaxMin;
use super::resource::rate_of;
use super::resources::Resources;
use super::route::{Crossing, FlowRouting, RecentRoutes};
use super::transmission::Flow;
use super::tree::{Gathering, Leaf, Tree};
use crate::packet::{Ends, LinkUse};
use crate::queue::EventQueue;
use crate::route_tree::Branching;
use crate::slab::Slab;
use crate::{BackgroundFlow, Carried, Carrier, Combined, Progress, Serialization, Stepped, Ticket};
use std::collections::BTreeMap;
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time, TimePerByte};

#[derive(Clone, Copy)]
pub(super) enum Event {
    /// The first byte of a message leaves its sender's port.
    Start(u32),
    /// A message has arrived completely.
    Deliver(Ticket),
    /// A background flow sends its next message.
    Background(u32),
}

/// The ticket of background messages.
const BACKGROUND: Ticket = Ticket(u32::MAX);

/// Flows on the links of a graph: the state of a run.
pub struct FlowNetwork<'a> {
    pub(super) routing: FlowRouting<'a>,
    /// The ports as declared, without the serialization of the endpoints.
    ports: FlowLevel,
    /// The sender's and the receiver's serialization.
    pub(super) hands_over: Serialization,
    takes: Serialization,
    pub(super) events: EventQueue<Event>,
    pub(super) ends: FlowEnds,
    pub(super) flows: Slab<Flow>,
    pub(super) resources: Resources,
    max_min: MaxMin,
    /// Flows started so far.
    pub(super) serial: u64,
    background: Vec<BackgroundFlow>,
    pub(super) recent: RecentRoutes,
    /// Multicasts and combines, by flow.
    trees: BTreeMap<u32, Tree>,
    /// The announced combines.
    combines: Vec<Gathering>,
    pub(super) batches: Batches,
    branching: Branching,
    /// Working memory.
    route: Vec<Crossing>,
}

/// The larger of two times per byte.
fn slower(a: Option<TimePerByte>, b: TimePerByte) -> Option<TimePerByte> {
    Some(a.map_or(b, |a| a.max(b)))
}

impl<'a> FlowNetwork<'a> {
    /// An empty network; `ends` is the serialization of sender and receiver.
    #[must_use]
    pub fn new(routing: FlowRouting<'a>, flows: FlowLevel, ends: Ends) -> FlowNetwork<'a> {
        let takes = ends.takes.filter(|_| flows.ejection.is_none()).unwrap_or(Serialization::NONE);
        let injection = slower(flows.injection, ends.hands_over.per_byte());
        let ejection = slower(flows.ejection, takes.per_byte());
        let limited = FlowLevel { injection, ejection, ..FlowLevel::default() };
        let charges_all = [
            flows.injection.is_some_and(|port| port >= ends.hands_over.per_byte()),
            flows.ejection.is_some_and(|port| port >= takes.per_byte()),
        ];
        let topology = routing.topology();
        FlowNetwork {
            branching: Branching::with_npus(topology, &flows.multicast, &flows.reduce),
            routing,
            ports: flows,
            hands_over: ends.hands_over,
            takes,
            events: EventQueue::new(),
            ends: FlowEnds::default(),
            flows: Slab::new(),
            resources: Resources::new(&routing, &limited, charges_all),
            max_min: MaxMin::default(),
            serial: 0,
            background: Vec::new(),
            recent: RecentRoutes::default(),
            trees: BTreeMap::new(),
            combines: Vec::new(),
            batches: Batches::default(),
            route: Vec::new(),
        }
    }

    /// Adds background traffic.
    #[must_use]
    pub fn with_background(mut self, flows: &[BackgroundFlow]) -> FlowNetwork<'a> {
        for (index, flow) in (0..).zip(flows) {
            self.events.push(flow.start, Event::Background(index));
        }
        self.background = flows.to_vec();
        self
    }

    /// The utilisation of each link of the graph, by link id; packets are messages. Counts messages whose
    /// transmission has ended.
    #[must_use]
    pub fn link_use(&self) -> Vec<LinkUse> {
        self.resources.link_use(&self.routing)
    }

    /// Stores a message whose first byte leaves its sender's port at `start`.
    pub(super) fn post(
        &mut self,
        ticket: Ticket,
        pair: (RankId, RankId),
        bytes: Bytes,
        start: Time,
    ) -> u32 {
        let flow = Flow::new(ticket, pair, bytes, start);
        self.flows.put(flow)
    }

    /// Starts the transmission of a posted message.
    pub(super) fn start(&mut self, id: u32) {
        if self.flows[id].batch != batch::NONE {
            return self.start_batch(id);
        }
        let now = self.events.now();
        let mut route = std::mem::take(&mut self.route);
        route.clear();
        let Flow { source, destination, bytes, .. } = self.flows[id];
        let mut latency = Time::ZERO;
        if let Some(tree) = self.trees.get_mut(&id) {
            tree.route(&self.routing, &mut route);
        } else if source != destination {
            latency = self.recent.route(&self.routing, source, destination, &mut route);
        }
        let alone = self.alone(&route, bytes);
        let charged = self.charged(bytes);
        self.serial += 1;
        let flow = &mut self.flows[id];
        (flow.serial, flow.start, flow.since) = (self.serial, now, now);
        (flow.alone, flow.latency, flow.left) = (alone, latency, approximate(charged));
        if alone == Time::ZERO {
            self.deliver(id);
        } else {
            self.transmit(id, &mut route);
        }
        self.route = route;
    }

    /// Removes a flow that is transmitted; its message arrives after its latency.
    fn deliver(&mut self, id: u32) -> Flow {
        let now = self.events.now();
        let flow = self.flows.remove(id);
        match self.trees.remove(&id) {
            None if flow.is_silent => {}
            None => self.events.push(now + flow.latency, Event::Deliver(flow.ticket)),
            Some(tree) => {
                for leaf in tree.leaves {
                    self.events.push(now + leaf.latency, Event::Deliver(leaf.ticket));
                }
            }
        }
        flow
    }

    /// The duration of a transmission without other flows: the longest time on a link, at a port or at an
    /// endpoint.
    pub(super) fn alone(&self, route: &[Crossing], bytes: Bytes) -> Time {
        let links = route.iter().map(|crossing| self.resources.time(*crossing, bytes));
        let FlowLevel { injection, ejection, per_message, .. } = self.ports;
        let ports = [injection, ejection, per_message].into_iter().flatten();
        let ports = ports.map(|port| port.of(bytes));
        let endpoints = self.hands_over.of(bytes).max(self.takes.of(bytes));
        links.chain(ports).fold(endpoints, Time::max)
    }

    /// The highest rate at which a sender transmits a message.
    pub(super) fn sender_rate(&self, bytes: Bytes) -> f64 {
        // The port has the rate of the fastest messages.
        let sender = self.hands_over.per_byte_of(bytes);
        rate_of(self.ports.per_message.map_or(sender, |limit| limit.max(sender)))
    }

    /// The bytes that the endpoints charge; all if they charge none of a short message.
    pub(super) fn charged(&self, bytes: Bytes) -> Bytes {
        let charged = self.hands_over.charged(bytes).min(self.takes.charged(bytes));
        if charged == Bytes(0) { bytes } else { charged }
    }

    /// Adds a flow to the resources on its route.
    fn transmit(&mut self, id: u32, route: &mut Vec<Crossing>) {
        let Flow { source, destination, bytes, serial, .. } = self.flows[id];
        let charged = self.charged(bytes);
        if let Some(tree) = self.trees.get(&id) {
            let (sources, destinations) = tree.ends();
            route.extend(self.resources.ports(&sources, &destinations));
        } else if source != destination {
            route.extend(self.resources.ports(&[source], &[destination]));
        }
        for crossing in &*route {
            if let Some(batch) = self.resources.batch(crossing.link) {
                self.expand(batch);
            }
        }
        let is_path = !self.trees.contains_key(&id);
        let now = self.events.now();
        let shares = self.resources.join(id, route, is_path, (bytes, charged), now);
        let rate_alone = self.resources.rate_alone(id).min(self.sender_rate(bytes));
        self.resources.set_alone(id, rate_alone, shares);
        let flow = &mut self.flows[id];
        flow.rate_alone = rate_alone;
        if !shares {
            flow.rate = rate_alone;
            self.ends.set(id, flow.exact_end(), serial);
        }
    }

    /// The transmission of a flow has ended.
    fn end(&mut self, id: u32) -> Ticket {
        let Flow { ticket, bytes, .. } = self.deliver(id);
        self.resources.leave(id, bytes, self.events.now());
        ticket
    }

    /// A background flow sends a message, and schedules the next.
    fn send_background(&mut self, index: u32) {
        let now = self.events.now();
        let Some(flow) = self.background[index as usize].take() else { return };
        let BackgroundFlow { source, destination, bytes, period, count, .. } = flow;
        if count > 0 {
            self.events.push(now + period, Event::Background(index));
        }
        let id = self.post(BACKGROUND, (source, destination), bytes, now);
        self.start(id);
    }

    /// Accepts a multicast or combine whose first byte leaves its port at `start`. Its first leaf stands for
    /// it while it is transmitted.
    fn plant(&mut self, tree: Tree, bytes: Bytes, start: Time) {
        let Some(&Leaf { ticket, .. }) = tree.leaves.first() else { return };
        let id = self.post(ticket, (tree.root, tree.root), bytes, start);
        self.trees.insert(id, tree);
        self.begin(id, start);
    }

    /// Starts a posted message, now or later.
    pub(super) fn begin(&mut self, id: u32, start: Time) {
        if start == self.events.now() {
            self.start(id);
        } else {
            self.events.push(start, Event::Start(id));
        }
    }

    /// When the first byte of a message leaves its sender's port.
    fn departure(&self, message: &Carried) -> Time {
        (message.arrival - self.hands_over.of(message.bytes)).max(self.events.now())
    }

    /// Solves what has changed at the current time.
    fn settle(&mut self) {
        let now = self.events.now();
        let FlowNetwork { flows, ends, resources, max_min, .. } = self;
        max_min.solve(resources);
        for &(id, rate) in &max_min.rates {
            let flow = &mut flows[id];
            if flow.rate.total_cmp(&rate).is_ne() {
                flow.set_rate(rate, now);
                if let Some(end) = flow.new_end() {
                    ends.set(id, end.max(now), flow.serial);
                }
            }
        }
    }

    /// The earliest end of a transmission, and the flow. Its key is made exact when it is needed.
    fn first_end(&mut self, until: Time) -> Option<(Time, u32)> {
        loop {
            let (time, id) = self.ends.first(until)?;
            let flow = &mut self.flows[id];
            if flow.is_exact {
                return Some((time, id));
            }
            let end = flow.exact_end().max(self.events.now());
            self.ends.set(id, end, flow.serial);
        }
    }

    /// Advances to the next event or end; `None` if there is none until the given time.
    fn advance(&mut self, until: Time) -> Option<()> {
        let end = self.first_end(Time::MAX).map(|(time, _)| time);
        let next = match (self.events.earliest(), end) {
            (Some(event), Some(end)) => event.min(end),
            (event, end) => event.or(end)?,
        };
        (next <= until).then(|| self.events.advance_to(next))
    }
}

#[expect(clippy::cast_precision_loss, reason = "times are rounded at the end")]
pub(super) fn approximate(bytes: Bytes) -> f64 {
    bytes.0 as f64
}

impl Carrier for FlowNetwork<'_> {
    const CONTENDED: bool = true;
    const IN_NETWORK: bool = true;

    fn carry(&mut self, ticket: Ticket, message: Carried) {
        let Carried { source, destination, bytes, .. } = message;
        let start = self.departure(&message);
        let id = self.post(ticket, (source, destination), bytes, start);
        self.begin(id, start);
    }

    fn forks(&self) -> bool {
        self.ports.multicast.is_some() && self.routing.is_fixed()
    }

    fn fork(&mut self, messages: &[(Ticket, Carried)]) {
        let Some(tree) = Tree::multicast(messages) else { return };
        let message = &messages[0].1;
        self.plant(tree, message.bytes, self.departure(message));
    }

    fn combines(&self) -> bool {
        self.ports.reduce.is_some() && self.routing.is_fixed()
    }

    fn parts(&self, root: RankId, leaves: &[RankId], inwards: bool) -> Vec<Vec<usize>> {
        self.routing.parts(&self.branching, (root, inwards), leaves)
    }

    fn expect(&mut self, combines: Vec<Combined>) {
        self.combines = combines.iter().map(Gathering::of).collect();
    }

    fn contribute(&mut self, combine: usize, ticket: Ticket, message: Carried) {
        let start = self.departure(&message);
        let gathering = &mut self.combines[combine];
        let bytes = gathering.bytes;
        if let Some((tree, start)) = gathering.add(message.source, ticket, start) {
            self.plant(tree, bytes, start);
        }
    }

    fn has_unreachable_pairs(&self) -> bool {
        self.routing.has_unreachable_pairs()
    }

    fn reaches(&self, from: RankId, to: RankId) -> bool {
        self.routing.reaches(from, to)
    }

    fn next_arrival(&mut self) -> Option<(Ticket, Time)> {
        loop {
            if let Progress::Arrived(ticket, time) = self.progress(Time::MAX)? {
                return Some((ticket, time));
            }
        }
    }
}

impl Stepped for FlowNetwork<'_> {
    fn send(&mut self, ticket: Ticket, message: Carried) {
        self.carry(ticket, message);
    }

    fn pattern(&mut self, pairs: &[(RankId, RankId)]) -> Option<u32> {
        self.add_pattern(pairs)
    }

    fn send_batch(
        &mut self,
        pattern: u32,
        tickets: &mut dyn Iterator<Item = Ticket>,
        bytes: Bytes,
        start: Time,
    ) -> bool {
        self.post_batch(pattern, tickets, bytes, start.max(self.events.now()))
    }

    fn tree_parts(&self, root: RankId, leaves: &[RankId], inwards: bool) -> Vec<Vec<usize>> {
        let takes = if inwards { self.combines() } else { self.forks() };
        let alone = || (0..leaves.len()).map(|index| vec![index]).collect();
        if takes { self.parts(root, leaves, inwards) } else { alone() }
    }

    fn send_tree(&mut self, messages: &[(Ticket, Carried)], inwards: bool) {
        let Some(&(_, message)) = messages.first() else { return };
        let start = self.departure(&message);
        let tree = if inwards { Tree::combine(messages) } else { Tree::multicast(messages) };
        if let Some(tree) = tree {
            self.plant(tree, message.bytes, start);
        }
    }

    fn connects(&self, from: RankId, to: RankId) -> bool {
        self.reaches(from, to)
    }

    fn used_links(&self) -> Vec<LinkUse> {
        self.link_use()
    }

    /// All events of a time happen before the rates change.
    fn progress(&mut self, until: Time) -> Option<Progress> {
        loop {
            while let Some(event) = self.events.pop() {
                match event {
                    Event::Start(id) => self.start(id),
                    Event::Background(index) => self.send_background(index),
                    Event::Deliver(BACKGROUND) => {}
                    Event::Deliver(ticket) => {
                        return Some(Progress::Arrived(ticket, self.events.now()));
                    }
                }
            }
            if let Some(ticket) = self.batches.ended.pop() {
                return Some(Progress::Left(ticket, self.events.now()));
            }
            if let Some((_, id)) = self.first_end(self.events.now()) {
                self.ends.remove(id);
                if self.flows[id].batch != batch::NONE {
                    self.end_batch(id);
                    continue;
                }
                let ticket = self.end(id);
                if ticket != BACKGROUND {
                    return Some(Progress::Left(ticket, self.events.now()));
                }
            } else if self.resources.is_dirty() {
                self.settle();
            } else {
                self.advance(until)?;
            }
        }
    }
}
