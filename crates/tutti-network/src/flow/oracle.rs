//! The reference model: the same rules without optimisation. At every event, all active flows are solved from
//! scratch by raising all rates in turn, with every link and port searched for the next one that is full.
//!
//! It is slow and short, and shares only routes and parameters with the fast network. Both yield the same times.

use std::collections::BTreeMap;

use super::resources::surcharged;
use super::route::Crossing;
use super::tree::{Gathering, Leaf, Tree};
use super::{ALL, FlowLevel, FlowRouting};
use crate::packet::Ends;
use crate::route_tree::Branching;
use crate::{Carried, Carrier, Combined, Serialization, Ticket};
use tutti_units::ids::{LinkId, RankId};
use tutti_units::{Bytes, Time, TimePerByte};

enum Event {
    Start(Sent),
    Deliver(Ticket),
}

/// What a flow carries.
#[derive(Clone)]
enum Sent {
    Message(Carried, Ticket),
    Tree(Tree, Bytes),
}

impl Sent {
    fn bytes(&self) -> Bytes {
        match *self {
            Sent::Message(Carried { bytes, .. }, _) | Sent::Tree(_, bytes) => bytes,
        }
    }

    /// The ranks that inject, and the ranks that eject; none for a message of a rank to itself.
    fn ends(&self) -> (Vec<RankId>, Vec<RankId>) {
        match self {
            Sent::Message(Carried { source, destination, .. }, _) if source == destination => {
                (vec![], vec![])
            }
            Sent::Message(message, _) => (vec![message.source], vec![message.destination]),
            Sent::Tree(tree, _) => tree.ends(),
        }
    }
}

/// An active flow.
struct Flow {
    /// The messages that arrive, with the latencies from the end of the transmission.
    leaves: Vec<Leaf>,
    /// The resources that take time, each with the capacity taken per unit of the flow's rate.
    uses: Vec<(usize, u32)>,
    start: Time,
    /// Duration of the transmission without other flows.
    alone: Time,
    /// Rates without other flows and now, in bytes per picosecond.
    rate_alone: f64,
    rate: f64,
    left: f64,
    since: Time,
    slowed: bool,
}

/// Flows on the links of a graph.
pub struct ReferenceFlows<'a> {
    routing: FlowRouting<'a>,
    declared: FlowLevel,
    hands_over: Serialization,
    takes: Serialization,
    /// Time per byte of links, injection ports, ejection ports.
    resources: Vec<TimePerByte>,
    now: Time,
    sequence: u64,
    events: BTreeMap<(Time, u64), Event>,
    flows: Vec<Flow>,
    combines: Vec<Gathering>,
}

impl<'a> ReferenceFlows<'a> {
    /// As [`super::FlowNetwork::new`].
    #[must_use]
    pub fn new(routing: FlowRouting<'a>, declared: FlowLevel, ends: Ends) -> ReferenceFlows<'a> {
        let takes = if declared.ejection.is_some() { None } else { ends.takes };
        let takes = takes.unwrap_or(Serialization::NONE);
        let hands_over = ends.hands_over;
        let zero = TimePerByte::ZERO;
        let ports = [
            declared.injection.unwrap_or(zero).max(hands_over.per_byte()),
            declared.ejection.unwrap_or(zero).max(takes.per_byte()),
        ];
        let topology = routing.topology();
        let mut resources: Vec<_> = topology.links().map(|link| routing.rate(link)).collect();
        for port in ports {
            resources.extend((0..topology.npus()).map(|_| port));
        }
        let (now, sequence, events) = (Time::ZERO, 0, BTreeMap::new());
        ReferenceFlows {
            routing,
            declared,
            hands_over,
            takes,
            resources,
            now,
            sequence,
            events,
            flows: Vec::new(),
            combines: Vec::new(),
        }
    }

    fn at(&mut self, time: Time, event: Event) {
        self.sequence += 1;
        self.events.insert((time, self.sequence), event);
    }

    /// The transmission time of a flow without other flows.
    fn time(&self, route: &[Crossing], bytes: Bytes) -> Time {
        let mut times = vec![self.hands_over.of(bytes), self.takes.of(bytes)];
        for crossing in route {
            let rate = self.routing.rate(LinkId(crossing.link));
            times.push(rate.of(crossing.bytes(bytes)));
        }
        let FlowLevel { injection, ejection, per_message, .. } = self.declared;
        for port in [injection, ejection, per_message].into_iter().flatten() {
            times.push(port.of(bytes));
        }
        times.into_iter().max().unwrap_or(Time::ZERO)
    }

    /// The links of a flow, and the messages that arrive.
    fn route(&self, sent: &Sent) -> (Vec<Crossing>, Vec<Leaf>) {
        let mut route = Vec::new();
        match sent.clone() {
            Sent::Message(Carried { source, destination: rank, .. }, ticket) => {
                let mut latency = Time::ZERO;
                if source != rank {
                    latency = self.routing.route(source, rank, &mut route);
                }
                (route, vec![Leaf { rank, ticket, latency }])
            }
            Sent::Tree(mut tree, _) => {
                tree.route(&self.routing, &mut route);
                (route, tree.leaves)
            }
        }
    }

    fn start(&mut self, sent: &Sent) {
        let bytes = sent.bytes();
        let (route, leaves) = self.route(sent);
        let alone = self.time(&route, bytes);
        if alone == Time::ZERO {
            return self.deliver(leaves);
        }
        let charged = self.hands_over.charged(bytes).min(self.takes.charged(bytes));
        let charged = if charged == Bytes(0) { bytes } else { charged };
        let mut uses = Vec::new();
        let limit = self.declared.per_message.unwrap_or(TimePerByte::ZERO);
        let (ps, of) = self.hands_over.per_byte_of(bytes).max(limit).fraction();
        let mut rate_alone = real(of) / real(ps);
        for (resource, share, is_endpoint) in self.resources_of(&route, sent) {
            let taken = surcharged(share, bytes, charged);
            let counted = if is_endpoint { share } else { taken };
            rate_alone = rate_alone.min(self.capacity(resource) / part(counted.into()));
            uses.push((resource, taken));
        }
        let (rate, left, slowed) = (0.0, real(charged.0), false);
        let (start, since) = (self.now, self.now);
        let flow = Flow { leaves, uses, start, alone, rate_alone, rate, left, since, slowed };
        self.flows.push(flow);
    }

    fn deliver(&mut self, leaves: Vec<Leaf>) {
        for Leaf { ticket, latency, .. } in leaves {
            self.at(self.now + latency, Event::Deliver(ticket));
        }
    }

    /// When the first byte of a message leaves its sender's port.
    fn departure(&self, message: &Carried) -> Time {
        (message.arrival - self.hands_over.of(message.bytes)).max(self.now)
    }

    /// Starts a flow, now or later.
    fn begin(&mut self, sent: Sent, start: Time) {
        if start == self.now {
            self.start(&sent);
        } else {
            self.at(start, Event::Start(sent));
        }
    }

    /// The resources that take time: index, share of the flow's bytes, and whether it is a port with the rate
    /// of its endpoint.
    fn resources_of(&self, route: &[Crossing], sent: &Sent) -> Vec<(usize, u32, bool)> {
        let topology = self.routing.topology();
        let (links, npus) = (topology.link_count(), topology.npus() as usize);
        let mut found: Vec<_> = route.iter().map(|c| (c.link as usize, c.share, false)).collect();
        let (sources, destinations) = sent.ends();
        let is_slower = |port: Option<TimePerByte>, endpoint: Serialization| {
            port.is_some_and(|port| port >= endpoint.per_byte())
        };
        let injects = !is_slower(self.declared.injection, self.hands_over);
        let ejects = !is_slower(self.declared.ejection, self.takes);
        found.extend(sources.iter().map(|rank| (links + rank.index(), ALL, injects)));
        found.extend(destinations.iter().map(|rank| (links + npus + rank.index(), ALL, ejects)));
        found.retain(|&(resource, ..)| self.resources[resource] != TimePerByte::ZERO);
        found
    }

    /// Bytes per picosecond.
    fn capacity(&self, resource: usize) -> f64 {
        let (ps, bytes) = self.resources[resource].fraction();
        real(bytes) / real(ps)
    }

    /// The max-min fair rate of every flow.
    fn rates(&self) -> Vec<f64> {
        let mut rates: Vec<Option<f64>> = vec![None; self.flows.len()];
        let mut free: Vec<f64> = (0..self.resources.len()).map(|r| self.capacity(r)).collect();
        let mut users = vec![0; free.len()];
        for (resource, _) in self.flows.iter().flat_map(|flow| &flow.uses) {
            users[*resource] += 1;
        }
        while rates.contains(&None) {
            let mut rising = vec![0; free.len()];
            for (flow, _) in self.flows.iter().zip(&rates).filter(|(_, rate)| rate.is_none()) {
                for &(resource, share) in &flow.uses {
                    rising[resource] += u64::from(share);
                }
            }
            // A resource with a single flow limits it by `rate_alone`.
            let full = |resource: usize| match users[resource] {
                0 | 1 => f64::INFINITY,
                _ => free[resource] / part(rising[resource]),
            };
            let levels = (0..free.len()).filter(|&r| rising[r] > 0).map(full);
            let alone = self.flows.iter().zip(&rates).filter(|(_, rate)| rate.is_none());
            let level = levels.chain(alone.map(|(flow, _)| flow.rate_alone));
            let level = level.fold(f64::INFINITY, f64::min);
            let mut taken = vec![0; free.len()];
            for (flow, rate) in self.flows.iter().zip(&mut rates).filter(|(_, rate)| rate.is_none())
            {
                let limited = flow.uses.iter().any(|&(resource, _)| full(resource) <= level);
                if limited || flow.rate_alone <= level {
                    *rate = Some(level);
                    for &(resource, share) in &flow.uses {
                        taken[resource] += u64::from(share);
                    }
                }
            }
            for (free, taken) in free.iter_mut().zip(taken) {
                *free -= level * part(taken);
            }
        }
        rates.into_iter().flatten().collect()
    }

    /// Solves all flows at the current time; returns whether a rate has changed.
    fn settle(&mut self) -> bool {
        let (now, mut is_changed) = (self.now, false);
        for (flow, rate) in self.rates().into_iter().enumerate() {
            let flow = &mut self.flows[flow];
            if flow.rate.total_cmp(&rate).is_ne() {
                if now > flow.since {
                    flow.left -= flow.rate * real((now - flow.since).ps());
                    flow.slowed |= flow.rate.total_cmp(&flow.rate_alone).is_ne();
                }
                (flow.rate, flow.since) = (rate, now);
                is_changed = true;
            }
        }
        is_changed
    }
}

impl Flow {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative")]
    fn end(&self) -> Time {
        if !self.slowed && self.rate.total_cmp(&self.rate_alone).is_eq() {
            return self.start + self.alone;
        }
        let span = (self.left.max(0.0) / self.rate - 1.0 / 64.0).ceil().max(0.0);
        self.since + Time::from_ps(span as u64)
    }
}

/// A share, or a sum of shares, as a factor.
fn part(share: u64) -> f64 {
    real(share) / f64::from(ALL)
}

#[expect(clippy::cast_precision_loss, reason = "times are rounded at the end")]
fn real(value: u64) -> f64 {
    value as f64
}

impl Carrier for ReferenceFlows<'_> {
    const CONTENDED: bool = true;
    const IN_NETWORK: bool = true;

    fn carry(&mut self, ticket: Ticket, message: Carried) {
        let start = self.departure(&message);
        self.begin(Sent::Message(message, ticket), start);
    }

    fn forks(&self) -> bool {
        self.declared.multicast.is_some() && self.routing.is_fixed()
    }

    fn fork(&mut self, messages: &[(Ticket, Carried)]) {
        let Some(tree) = Tree::multicast(messages) else { return };
        let message = &messages[0].1;
        self.begin(Sent::Tree(tree, message.bytes), self.departure(message));
    }

    fn combines(&self) -> bool {
        self.declared.reduce.is_some() && self.routing.is_fixed()
    }

    fn parts(&self, root: RankId, leaves: &[RankId], inwards: bool) -> Vec<Vec<usize>> {
        let FlowLevel { multicast, reduce, .. } = &self.declared;
        let branching = Branching::with_npus(self.routing.topology(), multicast, reduce);
        self.routing.parts(&branching, (root, inwards), leaves)
    }

    fn expect(&mut self, combines: Vec<Combined>) {
        self.combines = combines.iter().map(Gathering::of).collect();
    }

    fn contribute(&mut self, combine: usize, ticket: Ticket, message: Carried) {
        let start = self.departure(&message);
        let last = self.combines[combine].add(message.source, ticket, start);
        if let Some((tree, start)) = last {
            self.begin(Sent::Tree(tree, message.bytes), start);
        }
    }

    fn next_arrival(&mut self) -> Option<(Ticket, Time)> {
        loop {
            while let Some(entry) = self.events.first_entry()
                && entry.key().0 == self.now
            {
                match entry.remove() {
                    Event::Start(sent) => self.start(&sent),
                    Event::Deliver(ticket) => return Some((ticket, self.now)),
                }
            }
            // All that happens at a time happens before the rates change.
            let has_ended = |flow: &Flow| flow.rate > 0.0 && flow.end() <= self.now;
            if self.flows.iter().any(has_ended) {
                let ended: Vec<_> = self.flows.extract_if(.., |flow| has_ended(flow)).collect();
                ended.into_iter().for_each(|flow| self.deliver(flow.leaves));
                continue;
            }
            if self.settle() {
                continue;
            }
            let ends = self.flows.iter().map(Flow::end);
            let next = ends.chain(self.events.keys().map(|&(time, _)| time)).min()?;
            self.now = next;
        }
    }
}
