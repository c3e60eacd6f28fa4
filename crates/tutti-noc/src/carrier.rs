//! Messages of schedules over a flit network.
//!
//! A message is divided into packets, and packets into flits; the head flit of a packet may carry
//! the route alone. A node injects its messages sequentially, in the order in which they were
//! sent. Where an NPU is several nodes, each takes the next packet of the message that the fewest
//! others inject, the oldest if equal. Packets are distributed round-robin to the receiver's nodes.
//! A packet is injected from the first full cycle in which its first byte leaves according to the
//! endpoint model. A message arrives with its last flit, never before the model allows.
//!
//! **The endpoints** are those of [packets](tutti_network::packet). A sender's time per byte is the
//! serialization of its port. A receiver's time per byte is an ejection port of that rate, which
//! the packets of all messages share.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::endpoints::Endpoints;
use super::packet::{Delivery, Order, Source};
use super::watchdog::{NetworkWatchdog, Watchdog};
use super::{FlitError, Network, Settings, Wiring, deadlock};
use tutti_network::packet::Ends;
use tutti_network::{Carried, Carrier, Deadlock, Ticket};
use tutti_topology::{Distances, Family, Topology, UNREACHABLE};
use tutti_units::ids::{RankId, VertexId};
use tutti_units::{Bytes, Time};

/// How messages are divided into packets and flits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packing {
    flit: Bytes,
    packet: u32,
    header: u32,
}

impl Packing {
    /// Flits of `flit` payload bytes; packets of at most `packet` flits, of which `header` flits
    /// carry no payload.
    ///
    /// # Errors
    /// When flits are empty, or packets have no payload flit.
    pub fn new(flit: Bytes, packet: u32, header: u32) -> Result<Packing, FlitError> {
        if flit == Bytes(0) {
            let expected = "at least 1 B".to_owned();
            return Err(FlitError::OutOfRange { what: "flit", value: 0, expected });
        }
        if packet <= header {
            let (value, expected) =
                (u64::from(packet), format!("more than the header of {header}"));
            return Err(FlitError::OutOfRange { what: "flits of a packet", value, expected });
        }
        Ok(Packing { flit, packet, header })
    }

    /// Rejects routers whose buffers are smaller than a packet.
    ///
    /// # Errors
    /// When packets need buffer space for all of their flits, and the buffers are smaller.
    pub fn check(&self, settings: &Settings) -> Result<(), FlitError> {
        let (buffer, packet) = (settings.least_buffer(), self.packet);
        if settings.cut_through && packet > buffer {
            return Err(FlitError::BufferSmallerThanPacket { buffer, packet });
        }
        Ok(())
    }

    /// The payload of a flit.
    #[must_use]
    pub fn flit(&self) -> Bytes {
        self.flit
    }

    /// The most flits of a packet.
    #[must_use]
    pub fn packet(&self) -> u32 {
        self.packet
    }
}

/// No message.
const NOTHING: u64 = u64::MAX;

/// Carries messages as packets of flits.
pub struct FlitCarrier<'a> {
    network: Network,
    wiring: Arc<Wiring>,
    /// The distances in the graph, if some of its NPUs may be unable to reach others.
    distances: Option<Distances>,
    messages: Messages<'a>,
    /// Cycles without a move after which packets in flight are deadlocked.
    patience: u64,
    deadlock: Option<Deadlock>,
}

/// A message that has not fully arrived.
#[derive(Clone, Copy)]
struct Message {
    ticket: Ticket,
    destination: u32,
    /// When its first byte leaves.
    head: Time,
    /// The cycle in which the first flit of its next packet can be injected.
    start: u64,
    bytes: Bytes,
    /// Flits that are not in packets yet.
    remaining: u64,
    /// Packets in flight.
    missing: u64,
    /// When the last of the arrived packets has passed the receiver's port; no earlier than the
    /// endpoint model allows.
    received: Time,
}

/// The messages of all nodes.
struct Messages<'a> {
    packing: Packing,
    endpoints: Endpoints<'a>,
    /// By number, which is the tag of its packets.
    all: BTreeMap<u64, Message>,
    /// Nodes of each NPU.
    ports: u32,
    /// Per NPU, the messages that it has not injected completely.
    queues: Vec<VecDeque<u64>>,
    /// Per node, the packet that it injects next.
    cut: Vec<Option<Order>>,
    /// Per node, the message that it injects.
    serves: Vec<u64>,
    /// Per NPU, the number of packets sent to it, which are distributed round-robin to its nodes.
    packets_to: Vec<u32>,
    /// Nodes without a message to send.
    idle: Vec<bool>,
    refilled: Vec<(u32, u8)>,
    next: u64,
    vc_grants: u64,
}

impl<'a> FlitCarrier<'a> {
    /// An empty network of the wiring and the settings, with nodes as ranks.
    #[must_use]
    pub fn new(
        network: Network,
        wiring: Arc<Wiring>,
        settings: &Settings,
        packing: Packing,
        ends: Ends,
    ) -> FlitCarrier<'a> {
        let nodes = wiring.nodes() as usize;
        let npus = nodes / wiring.ports() as usize;
        let messages = Messages {
            packing,
            endpoints: Endpoints::new(wiring.cycle(), packing.flit, ends, npus),
            all: BTreeMap::new(),
            ports: wiring.ports(),
            queues: vec![VecDeque::new(); npus],
            cut: vec![None; nodes],
            serves: vec![NOTHING; nodes],
            packets_to: vec![0; npus],
            idle: vec![true; nodes],
            refilled: Vec::new(),
            next: 0,
            vc_grants: 0,
        };
        let patience = Watchdog::PATIENCE + longest_wait(&wiring, settings);
        let distances =
            wiring.topology().filter(|graph| may_be_disconnected(graph)).map(Arc::clone);
        let distances = distances.map(Distances::fewest_hops);
        FlitCarrier { network, wiring, distances, messages, patience, deadlock: None }
    }

    /// Stops early when `stop` is set: then no further message arrives.
    #[must_use]
    pub fn until(mut self, stop: &'a AtomicBool) -> FlitCarrier<'a> {
        self.messages.endpoints.stop = Some(stop);
        self
    }

    /// The network, for statistics of its channels.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// VCs that routers have allocated to packets which have arrived.
    #[must_use]
    pub fn vc_grants(&self) -> u64 {
        self.messages.vc_grants
    }

    /// Runs a cycle, and skips the following cycles without events. An arrival in a later cycle can
    /// make ranks send, so the skip ends there.
    fn step(&mut self) {
        self.network.step(&mut self.messages);
        self.network.rest(self.messages.endpoints.due());
    }

    fn report_deadlock(&mut self, since: u64) {
        let waiting = deadlock::waiting(&self.wiring, &self.network.deadlock_cycle());
        let cycle = waiting.iter().map(ToString::to_string).collect();
        let messages = self.messages.all.len();
        self.deadlock = Some(self.messages.endpoints.deadlock(since, messages, cycle));
    }
}

fn may_be_disconnected(graph: &Topology) -> bool {
    graph.family().is_some_and(Family::may_be_disconnected)
}

/// Cycles that may pass between two moves of a packet without contention.
fn longest_wait(wiring: &Wiring, settings: &Settings) -> u64 {
    let cycle = wiring.cycle().ps();
    let channels = wiring.channels().iter().map(|channel| {
        let parameters = channel.parameters;
        let on_channel = u64::from(parameters.latency) + u64::from(parameters.credit_latency);
        on_channel + parameters.flit_time.ps().div_ceil(cycle)
    });
    let Settings { routing_delay, vc_delay, switch_delay, traversal_delay, credit_delay, .. } =
        *settings;
    let delays = [routing_delay, vc_delay, switch_delay, traversal_delay, credit_delay];
    // Both ends of a channel add up to a cycle until their next edge, and their synchronisers.
    let synchronisers = settings.clocks.iter().map(|clock| 2 * clock.synchroniser + 2).max();
    let cycles = delays.into_iter().chain(synchronisers).map(u64::from).sum::<u64>();
    channels.max().unwrap_or(0)
        + cycles * settings.longest_period(wiring.cycle()).ps().div_ceil(cycle)
}

impl Carrier for FlitCarrier<'_> {
    const CONTENDED: bool = true;

    fn carry(&mut self, ticket: Ticket, message: Carried) {
        let Carried { source, destination, bytes, arrival } = message;
        let endpoints = &mut self.messages.endpoints;
        if source == destination {
            return endpoints.arrive(ticket, arrival);
        }
        let head = endpoints.departure(&message);
        let start = endpoints.cycle_of(head).max(self.network.now());
        let remaining = endpoints.flits(bytes);
        let (destination, missing, received) = (destination.0, 0, arrival);
        let message =
            Message { ticket, destination, head, start, bytes, remaining, missing, received };
        self.messages.put(source.0, message);
    }

    fn next_arrival(&mut self) -> Option<(Ticket, Time)> {
        // Reported deliveries lie in the past: a message is delivered only when no message in
        // flight can arrive before it.
        let mut watchdog = NetworkWatchdog::new(self.patience, &self.network);
        while !self.messages.all.is_empty() {
            if self.messages.endpoints.due().is_some_and(|due| due <= self.network.now()) {
                break;
            }
            self.step();
            if self.messages.endpoints.is_stopped() {
                return None;
            }
            if !watchdog.is_due(self.network.now()) {
                continue;
            }
            if let Some(since) = watchdog.check(&self.network) {
                if self.messages.endpoints.due().is_none() {
                    self.report_deadlock(since);
                }
                break;
            }
        }
        self.messages.endpoints.report()
    }

    fn has_unreachable_pairs(&self) -> bool {
        self.distances.is_some()
    }

    fn reaches(&self, from: RankId, to: RankId) -> bool {
        let hops = |distances: &Distances| distances.hops(VertexId(from.0), VertexId(to.0));
        self.distances.as_ref().is_none_or(|distances| hops(distances) != UNREACHABLE)
    }

    fn deadlock(&self) -> Option<Deadlock> {
        self.deadlock.clone()
    }
}

impl Messages<'_> {
    fn put(&mut self, npu: u32, message: Message) {
        self.all.insert(self.next, message);
        self.queues[npu as usize].push_back(self.next);
        for node in npu * self.ports..(npu + 1) * self.ports {
            if std::mem::take(&mut self.idle[node as usize]) {
                self.refilled.push((node, 0));
            }
        }
        self.next += 1;
    }

    /// The message that a node of an NPU injects next: the oldest of the messages with the fewest
    /// nodes.
    fn choose(&self, npu: u32) -> Option<u64> {
        let queue = &self.queues[npu as usize];
        if self.ports == 1 {
            return queue.front().copied();
        }
        let nodes = (npu * self.ports) as usize..((npu + 1) * self.ports) as usize;
        let busy =
            |number: &&u64| self.serves[nodes.clone()].iter().filter(|n| n == number).count();
        queue.iter().min_by_key(busy).copied()
    }

    /// Divides off the next packet of a message.
    fn cut(&mut self, npu: u32, number: u64) -> Order {
        let mut message = self.all[&number];
        let payload = u64::from(self.packing.packet - self.packing.header);
        let carried = message.remaining.min(payload);
        let created = message.start;
        message.remaining -= carried;
        message.missing += 1;
        if message.remaining == 0 {
            self.queues[npu as usize].retain(|&other| other != number);
        } else {
            let cut = self.endpoints.flits(message.bytes) - message.remaining;
            let cut = self.endpoints.carried(message.bytes, cut);
            let next = message.head + self.endpoints.handed_over(cut, message.bytes);
            message.start = message.start.max(self.endpoints.cycle_of(next));
        }
        self.all.insert(number, message);
        let packets_to = &mut self.packets_to[message.destination as usize];
        let destination = message.destination * self.ports + *packets_to % self.ports;
        *packets_to = packets_to.wrapping_add(1);
        let flits = u32::try_from(carried).unwrap_or(u32::MAX) + self.packing.header;
        Order { created, destination, flits, class: 0, priority: 0, tag: number }
    }

    /// When a packet has passed the receiver's port.
    fn passes(&mut self, message: &Message, delivery: &Delivery) -> Time {
        let endpoints = &mut self.endpoints;
        let flits = u64::from(delivery.flits - self.packing.header);
        let bytes = endpoints.carried(message.bytes, flits);
        // The last byte enters this long after the first, and takes at least as long as the head.
        let port_time = endpoints.handed_over(bytes, message.bytes);
        let handed_over = endpoints.time_of(delivery.created) + port_time;
        let transit = endpoints.time_of(delivery.head_arrived - delivery.injected);
        let tail = endpoints.time_of(delivery.arrived).max(handed_over + transit);
        let head = endpoints.time_of(delivery.head_arrived);
        endpoints.take(delivery.destination / self.ports, head, tail, bytes)
    }
}

impl Source for Messages<'_> {
    fn next_at(&mut self, node: u32, _: u8) -> Option<u64> {
        let (place, npu) = (node as usize, node / self.ports);
        self.serves[place] = NOTHING;
        let chosen = self.choose(npu);
        self.idle[place] = chosen.is_none();
        let number = chosen?;
        let order = self.cut(npu, number);
        self.serves[place] = number;
        self.cut[place] = Some(order);
        Some(order.created)
    }

    fn take(&mut self, node: u32, class: u8, _: u64) -> Order {
        let order = self.cut[node as usize].take().expect("next_at found a message");
        Order { class, ..order }
    }

    fn delivered(&mut self, delivery: &Delivery) {
        self.vc_grants += u64::from(delivery.hops);
        let Some(mut message) = self.all.remove(&delivery.tag) else { return };
        message.received = message.received.max(self.passes(&message, delivery));
        message.missing -= 1;
        if message.missing == 0 && message.remaining == 0 {
            return self.endpoints.arrive(message.ticket, message.received);
        }
        self.all.insert(delivery.tag, message);
    }

    fn refilled(&mut self, queues: &mut Vec<(u32, u8)>) {
        queues.append(&mut self.refilled);
    }
}
