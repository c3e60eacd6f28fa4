//! Requests and replies: packets that nodes return for others, and nodes that wait for them.

use std::collections::VecDeque;

use super::statistics::Estimate;
use super::window::WindowTally;
use super::{Load, MeasurementPlan};
use crate::packet::{Delivery, Order};
use crate::traffic::{Injectors, NEVER, PacketSize, load_seed};

/// A load whose packets may have replies, and whose nodes may have a limited number of them.
#[derive(Clone, Debug)]
pub struct Requests {
    /// The packets: requests if there are replies.
    pub load: Load,
    /// The replies, in the class after that of the requests.
    pub reply: Option<Reply>,
    /// The most packets of a node without a reply or, if there are no replies, in flight. A node
    /// with that many creates its next packet after one of them ends.
    pub outstanding: Option<u32>,
    /// The packets of a node in the run; then it creates no more.
    pub count: Option<u64>,
    /// Loads with the same number share an injection queue of each node, with their replies. If
    /// absent, requests and replies have a queue each.
    pub queue: Option<u32>,
}

/// The packet that a node sends back for each request.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Its size, drawn for each request.
    pub size: PacketSize,
    /// Cycles from the arrival of the request to the creation of the reply.
    pub delay: u64,
}

impl Requests {
    /// The classes that it uses.
    pub(super) fn classes(&self) -> usize {
        1 + usize::from(self.reply.is_some())
    }

    /// The injection queue of each class of some loads, for [`crate::Settings::queues`]. Queues are
    /// numbered in the order of their first classes.
    #[must_use]
    pub fn queues(loads: &[Requests]) -> Vec<u8> {
        let mut named: Vec<(u32, u8)> = Vec::new();
        let (mut queues, mut next) = (Vec::new(), 0_u8);
        let mut fresh = || {
            next = next.saturating_add(1);
            next - 1
        };
        for load in loads {
            let known = |&&(name, _): &&(u32, u8)| Some(name) == load.queue;
            let shared = named.iter().find(known).map(|&(_, queue)| queue);
            let first = shared.unwrap_or_else(&mut fresh);
            queues.push(first);
            named.extend(load.queue.map(|name| (name, first)));
            if load.reply.is_some() {
                queues.push(if load.queue.is_some() { first } else { fresh() });
            }
        }
        queues
    }
}

/// Requests from creation to the arrival of their replies.
#[derive(Clone, PartialEq, Debug)]
pub struct RoundTrips {
    /// The class of the requests.
    pub class: usize,
    /// From the creation of a request to the arrival of its reply, in cycles.
    pub latency: Estimate,
    /// The minimum and maximum.
    pub extremes: (u64, u64),
    /// Latencies that 50, 90, 99 and 99.9 % of the requests do not exceed.
    pub quantiles: [u64; 4],
    /// The number of these requests.
    pub requests: u64,
}

/// What the packets of a class are.
#[derive(Clone, Copy)]
enum Role {
    /// Requests of the load with this number.
    Request(usize),
    /// Replies to requests of the load with this number.
    Reply(usize),
}

/// A reply that a node has to send.
struct Pending {
    /// The cycle from which it may be sent.
    ready: u64,
    destination: u32,
    flits: u32,
    /// When its request was created.
    requested: u64,
}

/// The state of a load.
struct Requesters {
    requests: Requests,
    /// The class of its packets.
    class: u8,
    seed: u64,
    injectors: Injectors,
    /// By node: packets that have not ended, packets created, and when the last one ended.
    open: Vec<u32>,
    created: Vec<u64>,
    ended: Vec<u64>,
    round_trips: WindowTally,
}

/// What the network knows about a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Polled {
    /// It polls the queue later: it injects a packet of it.
    Later,
    /// The queue had no packet.
    Nothing,
    /// The queue has a packet that is ready in a cycle.
    At(u64),
}

/// The source of packets of loads with replies or limits.
pub(super) struct RequestSupply {
    loads: Vec<Requesters>,
    roles: Vec<Role>,
    /// By class, its queue; by queue, its classes.
    queues: Vec<u8>,
    members: Vec<Vec<u8>>,
    /// By node, then class: replies to send.
    replies: Vec<VecDeque<Pending>>,
    /// By node, then queue.
    polled: Vec<Polled>,
    refilled: Vec<(u32, u8)>,
    hastened: Vec<(u32, u8)>,
}

impl RequestSupply {
    pub(super) fn new(
        loads: &[Requests],
        nodes: u32,
        seed: u64,
        settings: &MeasurementPlan,
    ) -> RequestSupply {
        let (mut roles, mut requesters) = (Vec::new(), Vec::new());
        for (number, requests) in loads.iter().enumerate() {
            let class = u8::try_from(roles.len()).unwrap_or(u8::MAX);
            let seed = load_seed(seed, roles.len());
            requesters.push(Requesters::new(requests.clone(), class, nodes, seed, settings));
            roles.push(Role::Request(number));
            roles.extend(requests.reply.is_some().then_some(Role::Reply(number)));
        }
        let queues = Requests::queues(loads);
        let mut members =
            vec![Vec::new(); queues.iter().max().map_or(0, |&last| last as usize + 1)];
        for (class, &queue) in (0..).zip(&queues) {
            members[usize::from(queue)].push(class);
        }
        RequestSupply {
            loads: requesters,
            replies: (0..nodes as usize * roles.len()).map(|_| VecDeque::new()).collect(),
            polled: vec![Polled::Later; nodes as usize * members.len()],
            refilled: Vec::new(),
            hastened: Vec::new(),
            roles,
            queues,
            members,
        }
    }

    fn of_class(&self, node: u32, class: u8) -> usize {
        node as usize * self.roles.len() + usize::from(class)
    }

    fn of_queue(&self, node: u32, queue: u8) -> usize {
        node as usize * self.members.len() + usize::from(queue)
    }

    /// When the next packet of a class is ready.
    fn ready_at(&self, node: u32, class: u8) -> Option<u64> {
        match self.roles[usize::from(class)] {
            Role::Request(load) => self.loads[load].next_at(node),
            // A node that receives the last flit in a cycle sends from the next one on.
            Role::Reply(_) => {
                self.replies[self.of_class(node, class)].front().map(|reply| reply.ready + 1)
            }
        }
    }

    /// When the next packet of a queue is ready.
    fn earliest(&self, node: u32, queue: u8) -> Option<u64> {
        let members = self.members[usize::from(queue)].iter();
        members.filter_map(|&class| self.ready_at(node, class)).min()
    }

    pub(super) fn next_at(&mut self, node: u32, queue: u8) -> Option<u64> {
        let next = self.earliest(node, queue);
        let place = self.of_queue(node, queue);
        self.polled[place] = next.map_or(Polled::Nothing, Polled::At);
        next
    }

    /// The class of the next packet of a queue: of the packets that are ready, replies precede
    /// requests, as in BookSim 2 (`TrafficManager::_IssuePacket`), and earlier ones later ones. A
    /// request that was ready may be a cycle late, since a reply has just arrived.
    fn next_class(&self, node: u32, queue: u8, now: u64) -> Option<u8> {
        let key = |&class: &u8| {
            let ready = self.ready_at(node, class)?;
            let is_request = matches!(self.roles[usize::from(class)], Role::Request(_));
            Some((ready > now, is_request, ready, class))
        };
        let members = self.members[usize::from(queue)].iter();
        members.filter_map(key).min().map(|(_, _, _, class)| class)
    }

    pub(super) fn take(&mut self, node: u32, queue: u8, now: u64) -> Order {
        let class = self.next_class(node, queue, now).expect("next_at returned its cycle");
        let place = self.of_queue(node, queue);
        self.polled[place] = Polled::Later;
        match self.roles[usize::from(class)] {
            Role::Request(load) => self.loads[load].take(node),
            Role::Reply(load) => {
                let place = self.of_class(node, class);
                let reply = self.replies[place].pop_front().expect("it is the next packet");
                Order {
                    created: reply.ready,
                    destination: reply.destination,
                    flits: reply.flits,
                    class,
                    priority: self.loads[load].requests.load.priority,
                    tag: reply.requested,
                }
            }
        }
    }

    pub(super) fn delivered(&mut self, delivery: &Delivery) {
        match self.roles[usize::from(delivery.class)] {
            Role::Request(load) => match self.loads[load].reply_to(delivery) {
                None => self.end(load, delivery.source, delivery.arrived),
                Some(reply) => {
                    let class = delivery.class + 1;
                    let place = self.of_class(delivery.destination, class);
                    self.replies[place].push_back(reply);
                    self.announce(delivery.destination, class);
                }
            },
            Role::Reply(load) => {
                self.count(delivery);
                self.end(load, delivery.destination, delivery.arrived);
            }
        }
    }

    /// A packet of a node has ended: it has arrived, or its reply has.
    fn end(&mut self, load: usize, node: u32, now: u64) {
        let requesters = &mut self.loads[load];
        requesters.open[node as usize] -= 1;
        requesters.ended[node as usize] = now;
        let class = requesters.class;
        self.announce(node, class);
    }

    /// Names a queue that the network believes empty, or expects later.
    fn announce(&mut self, node: u32, class: u8) {
        let queue = self.queues[usize::from(class)];
        let place = self.of_queue(node, queue);
        match self.polled[place] {
            Polled::Later => return,
            Polled::Nothing => self.refilled.push((node, queue)),
            Polled::At(cycle) => {
                if self.earliest(node, queue).is_none_or(|ready| ready >= cycle) {
                    return;
                }
                self.hastened.push((node, queue));
            }
        }
        self.polled[place] = Polled::Later;
    }

    pub(super) fn refilled(&mut self, queues: &mut Vec<(u32, u8)>) {
        queues.append(&mut self.refilled);
    }

    pub(super) fn hastened(&mut self, queues: &mut Vec<(u32, u8)>) {
        queues.append(&mut self.hastened);
    }

    /// Visits class and flits of each packet created before `end` that its node has not started to
    /// inject. Packets of nodes with a limit are created when they are sent.
    pub(super) fn for_each_waiting(&self, end: u64, mut visit: impl FnMut(usize, u64)) {
        for requesters in self.loads.iter().filter(|one| one.is_unlimited()) {
            let (load, class) = (&requesters.requests.load, usize::from(requesters.class));
            requesters.injectors.for_each_before(end, |node, serial| {
                visit(class, u64::from(load.size.draw(requesters.seed, node, serial)));
            });
        }
        for (queue, replies) in self.replies.iter().enumerate() {
            let class = queue % self.roles.len();
            for reply in replies.iter().filter(|reply| reply.ready < end) {
                visit(class, u64::from(reply.flits));
            }
        }
    }

    /// Whether a packet that was created before `end` has not been sent, or a request of the window
    /// has no reply yet. Loads with a number of packets have to send all.
    pub(super) fn is_behind(&self, end: u64) -> bool {
        self.loads.iter().any(|requesters| requesters.is_behind(end))
            || self.replies.iter().flatten().any(|reply| reply.ready < end)
    }

    /// Counts round trips in another window, which contains all requests so far.
    pub(super) fn restart(&mut self, settings: &MeasurementPlan) {
        for Requesters { round_trips, .. } in &mut self.loads {
            *round_trips = round_trips.restarted(settings.phases, settings.batches);
        }
    }

    /// Counts the round trip that a packet ends, if it is a reply.
    pub(super) fn count(&mut self, delivery: &Delivery) {
        if let Role::Reply(load) = self.roles[usize::from(delivery.class)] {
            self.loads[load].round_trips.end(delivery.tag, delivery.arrived);
        }
    }

    pub(super) fn round_trips(&self) -> Vec<RoundTrips> {
        let answered = self.loads.iter().filter(|one| one.requests.reply.is_some());
        answered.map(Requesters::measured).collect()
    }
}

impl Requesters {
    fn new(
        requests: Requests,
        class: u8,
        nodes: u32,
        seed: u64,
        settings: &MeasurementPlan,
    ) -> Requesters {
        let senders: Vec<u32> =
            (0..nodes).filter(|&node| requests.load.pattern.sends(node)).collect();
        Requesters {
            class,
            seed,
            injectors: Injectors::new(requests.load.process, &senders, seed),
            open: vec![0; nodes as usize],
            created: vec![0; nodes as usize],
            ended: vec![0; nodes as usize],
            round_trips: WindowTally::new(settings.phases, settings.batches),
            requests,
        }
    }

    fn is_unlimited(&self) -> bool {
        self.requests.outstanding.is_none() && self.requests.count.is_none()
    }

    fn next_at(&self, node: u32) -> Option<u64> {
        let place = node as usize;
        let has_all = self.requests.count.is_some_and(|count| self.created[place] >= count);
        let is_full = self.requests.outstanding.is_some_and(|most| self.open[place] >= most);
        let next = self.injectors.next_at(node);
        (!has_all && !is_full && next != NEVER).then(|| next.max(self.earliest(place)))
    }

    /// The cycle from which a node may create packets: with a limit, after the last one ended.
    fn earliest(&self, node: usize) -> u64 {
        match self.requests.outstanding {
            Some(_) if self.ended[node] > 0 => self.ended[node] + 1,
            _ => 0,
        }
    }

    fn take(&mut self, node: u32) -> Order {
        let place = node as usize;
        let created = self.injectors.take(node);
        let cycle = created.cycle.max(self.earliest(place));
        self.open[place] += 1;
        self.created[place] += 1;
        if self.requests.reply.is_some() {
            self.round_trips.create(cycle, 1);
        }
        let load = &self.requests.load;
        Order {
            created: cycle,
            destination: load.pattern.destination(self.seed, node, created.serial).unwrap_or(node),
            flits: load.size.draw(self.seed, node, created.serial),
            class: self.class,
            priority: load.priority,
            tag: created.serial,
        }
    }

    /// The reply to a request that has arrived, if there are replies.
    fn reply_to(&self, delivery: &Delivery) -> Option<Pending> {
        let reply = self.requests.reply.as_ref()?;
        Some(Pending {
            ready: delivery.arrived + reply.delay,
            destination: delivery.source,
            // Apart from the draws of the requests.
            flits: reply.size.draw(!self.seed, delivery.source, delivery.tag),
            requested: delivery.created,
        })
    }

    fn is_behind(&self, end: u64) -> bool {
        if self.round_trips.missing > 0 {
            return true;
        }
        match self.requests.count {
            Some(count) => {
                let senders = (0..self.injectors.sources())
                    .filter(|&node| self.injectors.next_at(node) != NEVER);
                senders
                    .into_iter()
                    .any(|node| self.created[node as usize] < count || self.open[node as usize] > 0)
            }
            None => self.is_unlimited() && self.injectors.earliest() < end,
        }
    }

    fn measured(&self) -> RoundTrips {
        let WindowTally { latency, histogram, .. } = &self.round_trips;
        RoundTrips {
            class: usize::from(self.class),
            latency: latency.estimate(),
            extremes: histogram.extremes(),
            quantiles: histogram.quantiles(),
            requests: latency.total().1,
        }
    }
}

#[cfg(test)]
mod tests;
