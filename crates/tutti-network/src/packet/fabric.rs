//! The packets in flight and the event loop.

mod branch;
mod carrier;
mod source;

use std::collections::BTreeMap;

use super::active::ActiveLinks;
use super::buffers::Buffers;
use super::injection::InjectionQueues;
use super::links::{Link, LinkUse, Links};
use super::outbox::Outbox;
use super::pieces::{Message, Packet, Stage};
use super::prefetch::Prefetcher;
use super::routing::{HeadPosition, PacketRouting, Traveller, along};
use super::trees::{TREE, Trees};
use super::waiting::{Input, Neighbour, Queues};
use super::{Ends, NONE, Packets};
use crate::queue::EventQueue;
use crate::route_tree::Branching;
use crate::slab::Slab;
use crate::{BackgroundFlow, Combined, Serialization, Supply, Ticket};
use tutti_units::ids::{RankId, VertexId};
use tutti_units::{Bytes, Time};

#[derive(Clone, Copy)]
enum Event {
    /// The first byte of a posted message is at its source's port.
    Enter(u32),
    /// The first byte of the first message queued for a link is at its source's port.
    Due(u32),
    /// A packet's head is at the end of a link that is not its last: the packet, the number of
    /// links crossed, and the round in which it started.
    Arrive(u32, u16, u8),
    /// A packet that waits for a link may start.
    Wake(u32),
    /// A message has arrived completely.
    Deliver(u32),
    /// A background flow sends its next message.
    Traffic(u32),
}

impl Event {
    /// The packet that arrives.
    #[inline]
    fn arrives(self) -> Option<u32> {
        if let Event::Arrive(packet, ..) = self { Some(packet) } else { None }
    }
}

/// The ticket of background messages.
const BACKGROUND: Ticket = Ticket(u32::MAX);

/// The ticket of the results of combines; their contributions have their own.
const COMBINED: Ticket = Ticket(u32::MAX - 1);

/// Peak numbers of messages and packets stored during a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InFlight {
    /// Messages stored at their sources before injection, plus one entry per step of offered
    /// messages that are not stored.
    pub posted: usize,
    /// Messages with packets in flight.
    pub messages: usize,
    /// Packets that had not started to cross their last link.
    pub packets: usize,
}

/// Packets on the links of a graph: the state of a run.
pub struct PacketNetwork<'a> {
    routing: PacketRouting<'a>,
    packets: Packets,
    /// The sender's serialization: its port injects no faster.
    included: Serialization,
    /// The receiver's serialization, if it has an ejection port.
    takes: Option<Serialization>,
    events: EventQueue<Event>,
    links: Links,
    buffers: Buffers,
    queues: Queues,
    outbox: Outbox,
    injection: InjectionQueues,
    /// Links whose first queued message enters before any link is served.
    due: Vec<u32>,
    /// Messages sent so far.
    serial: u64,
    /// The round of link service at the current time.
    round: u32,
    /// Per packet, rounds that do not fit into its event.
    late_rounds: Vec<u32>,
    messages: Slab<Message>,
    in_flight: Slab<Packet>,
    /// Per packet, its routing state; empty unless packets choose their routes.
    chosen: Vec<Traveller>,
    /// Links to serve after all events of the current time.
    active: ActiveLinks,
    prefetch: Prefetcher,
    /// Background flows, each with the number of messages still to send.
    background: Vec<BackgroundFlow>,
    /// Bytes of a full packet on the wire.
    full: u64,
    /// Multicasts and combines, if switches perform them.
    trees: Option<Trees>,
    /// The announced combines, each with its tree once a rank has contributed.
    combines: Vec<(Combined, Option<RankId>)>,
    /// The trees of combines, by the message of the result.
    results: BTreeMap<u32, RankId>,
}

impl<'a> PacketNetwork<'a> {
    /// An empty network.
    #[must_use]
    pub fn new(routing: PacketRouting<'a>, packets: Packets, ends: Ends) -> PacketNetwork<'a> {
        let takes = if packets.ejection.is_none() { ends.takes } else { None };
        let ejection = packets.ejection.or(takes.map(Serialization::per_byte));
        let packets = Packets { ejection, ..packets };
        let links = Links::new(routing.topology(), &packets);
        let in_network = packets.multicast.is_some() || packets.reduce.is_some();
        let trees = in_network.then(|| {
            let (multicast, reduce) = (&packets.multicast, &packets.reduce);
            Trees::new(Branching::without_npus(routing.topology(), multicast, reduce))
        });
        PacketNetwork {
            trees,
            combines: Vec::new(),
            results: BTreeMap::new(),
            full: (packets.size + packets.header).0,
            routing,
            packets,
            included: ends.hands_over,
            takes,
            events: EventQueue::new(),
            outbox: Outbox::new(links.all.len()),
            injection: source::injection(&routing, &links),
            due: Vec::new(),
            serial: 0,
            round: 0,
            late_rounds: Vec::new(),
            buffers: Buffers::new(links.all.len()),
            active: ActiveLinks::new(links.all.len()),
            links,
            queues: Queues::new(),
            messages: Slab::new(),
            in_flight: Slab::new(),
            chosen: Vec::new(),
            background: Vec::new(),
            prefetch: Prefetcher::new(),
        }
    }

    /// Adds background traffic.
    #[must_use]
    pub fn with_background(mut self, flows: &[BackgroundFlow]) -> PacketNetwork<'a> {
        for (index, flow) in (0..).zip(flows) {
            self.events.push(flow.start, Event::Traffic(index));
        }
        self.background = flows.to_vec();
        self
    }

    /// The utilisation of each link of the graph, by link id.
    pub fn link_use(&self) -> impl ExactSizeIterator<Item = LinkUse> + '_ {
        self.links.all[..self.links.count].iter().map(|link| link.usage)
    }

    /// Peak numbers of messages and packets.
    #[must_use]
    pub fn peak_in_flight(&self) -> InFlight {
        InFlight {
            posted: self.outbox.most() + self.injection.most(),
            messages: self.messages.most(),
            packets: self.in_flight.most(),
        }
    }

    /// Queues a packet that has crossed `crossed` links for its next link.
    #[inline]
    fn arrive(&mut self, id: u32, crossed: u16, round: u8, supply: &mut dyn Supply) {
        let Packet { message, destination, stage, bytes, .. } = self.in_flight[id];
        let [over, mut link] = stage.links();
        let input = Input { link: over, class: crossed };
        if link == NONE {
            if destination.0 >= TREE {
                return self.arrive_in_tree(id, over, crossed);
            }
            link = self.next_link(id, (self.messages[message].source, destination), input);
        }
        if self.injection.is_due(link, self.events.now()) {
            self.enter_before(link, (id, over, round), supply);
        }
        self.links[link].backlog += u64::from(bytes);
        self.put(link, id, input, false);
    }

    #[inline]
    fn put(&mut self, link: u32, id: u32, input: Input, first: bool) {
        match self.queues.put(&mut self.links[link].waiting, input, id, first) {
            Neighbour::Behind(other) => self.in_flight[other].next = id,
            Neighbour::Before(other) => self.in_flight[id].next = other,
            Neighbour::Alone => {}
        }
        self.active.insert(link);
        self.prefetch.note(link);
    }

    /// The next link of a packet at the end of its input link.
    #[inline]
    fn next_link(&mut self, id: u32, pair: (RankId, RankId), input: Input) -> u32 {
        let (source, destination) = pair;
        if destination.0 >= TREE {
            return self.first_in_tree(source, destination);
        }
        let (at, hops) = if input == Input::SOURCE {
            if let Some(port) = self.links.injection(source.0) {
                return port;
            }
            (source.0, 0)
        } else {
            let at = self.links.end(input.link);
            if at == destination.0
                && let Some(port) = self.links.ejection(at)
            {
                return port;
            }
            let ports = u16::from(self.links.injection(0).is_some());
            (at, usize::from(input.class - ports))
        };
        let place =
            HeadPosition { at: VertexId(at), hops, links: &self.links, now: self.events.now() };
        match self.routing {
            PacketRouting::Routed(routes) => along(routes, pair, &place),
            PacketRouting::PerPacket { .. } => {
                let serial = || self.messages[self.in_flight[id].message].serial;
                self.routing.next(&mut self.chosen[id as usize], &place, serial)
            }
        }
    }

    /// As [`PacketNetwork::next_link`], ahead of the arrival, if the route is fixed; this hides the
    /// latency of the table lookup.
    #[inline]
    fn precompute_next_link(&mut self, id: u32, packet: &Packet, input: Input) -> u32 {
        let PacketRouting::Routed(routes) = self.routing else { return NONE };
        if routes.share_bundles() || packet.destination.0 >= TREE {
            return NONE;
        }
        // Behind a port the source counts as well.
        let source = if input.class == 1 || routes.depend_on_source() {
            self.messages[packet.message].source
        } else {
            RankId(NONE)
        };
        self.next_link(id, (source, packet.destination), input)
    }

    /// Starts all packets that can start on the active links, lowest link first.
    fn settle(&mut self, supply: &mut dyn Supply) {
        while let Some(link) = self.due.pop() {
            self.enter_due(link, supply);
        }
        self.prefetch.fetch_first(&self.links, &self.queues, &self.in_flight);
        while let Some(link) = self.active.pop_lowest() {
            self.serve(link, supply);
        }
    }

    /// Starts a packet on a link if one can. If serialization takes no time, the link remains
    /// active; lower links that the packet activated are served first.
    fn serve(&mut self, link: u32, supply: &mut dyn Supply) {
        let now = self.events.now();
        // The first queue skipped because its packet has not arrived, and its arrival time.
        let mut passed = None;
        let mut earliest = Time::MAX;
        while let Some(queue) = self.links[link].waiting.in_turn() {
            let state = &mut self.links[link];
            if state.free > now {
                let free = state.free;
                return self.wake(link, free);
            }
            if passed == Some(queue) {
                return self.wake(link, earliest);
            }
            let (first, input) = self.queues.head(queue);
            let packet = self.in_flight[first];
            if input == Input::SOURCE && packet.stage.head() > now {
                passed = passed.or(Some(queue));
                earliest = earliest.min(packet.stage.head());
                self.queues.rotate(&mut state.waiting);
                continue;
            }
            let bytes = u64::from(packet.bytes);
            if state.ends(&packet) || self.buffers.fits(link, input.class, state.capacity, bytes) {
                self.start(link, (first, packet), input, supply);
                return self.serve_again(link, now);
            }
            self.queues.block(&mut state.waiting, self.buffers.blocked(link, input.class));
        }
    }

    /// Schedules the next service of a link that has just started a packet.
    #[inline]
    fn serve_again(&mut self, link: u32, now: Time) {
        let Link { free, ref waiting, .. } = self.links[link];
        if waiting.in_turn().is_none() {
            return;
        }
        if free > now { self.wake(link, free) } else { self.active.insert(link) }
    }

    fn wake(&mut self, link: u32, at: Time) {
        let state = &mut self.links[link];
        if at < state.wake {
            state.wake = at;
            self.events.push(at, Event::Wake(link));
        }
    }

    /// Starts the next packet in turn, from `input`, on a link.
    #[inline]
    fn start(
        &mut self,
        link: u32,
        (id, packet): (u32, Packet),
        input: Input,
        supply: &mut dyn Supply,
    ) {
        let now = self.events.now();
        let bytes = u64::from(packet.bytes);
        let next = self.behind(link, &packet, input, supply);
        let state = &mut self.links[link];
        self.queues.take(&mut state.waiting, next);
        let tail = (now + state.pass(bytes, self.full)).max(packet.tail);
        state.free = tail;
        state.backlog -= bytes;
        state.usage.packets += 1;
        state.usage.bytes += bytes;
        state.usage.busy += tail - now;
        let (head, tail) = (now + state.latency, tail + state.latency);
        if state.ends(&packet) {
            self.in_flight.remove(id);
            let there = self.takes.map(|takes| (now + takes.of(Bytes(bytes))).max(packet.tail));
            self.eject(packet.message, there.unwrap_or(tail));
        } else {
            self.buffers.reserve(link, input.class, bytes);
            self.unblock_first(link, input.class);
            let crossed = input.class + 1;
            let onto = self.precompute_next_link(id, &packet, Input { link, class: crossed });
            let stage = Stage::on_link(link, onto);
            self.in_flight[id] = Packet { tail, stage, next: NONE, ..packet };
            let round = self.stamp_round(id);
            self.events.push(head, Event::Arrive(id, crossed, round));
        }
        self.release_buffer(&packet, input);
    }

    /// Releases the buffer space of a packet that has started to leave.
    #[inline]
    fn release_buffer(&mut self, packet: &Packet, input: Input) {
        if input == Input::SOURCE {
            return self.follow_up(packet.message);
        }
        if let Some(copies) = packet.stage.copies()
            && !self.trees.as_mut().is_none_or(|trees| trees.start_copy(copies))
        {
            return;
        }
        let class = input.class - 1;
        self.buffers.release(input.link, class, u64::from(packet.bytes));
        self.unblock_first(input.link, class);
    }

    /// Unblocks the queue that has been blocked longest on a class, if its first packet fits.
    #[inline]
    fn unblock_first(&mut self, link: u32, class: u16) {
        let Some(queue) = self.buffers.blocked(link, class).first() else { return };
        let bytes = self.in_flight[self.queues.head(queue).0].bytes;
        let state = &mut self.links[link];
        if self.buffers.fits(link, class, state.capacity, u64::from(bytes)) {
            self.queues.unblock(&mut state.waiting, self.buffers.blocked(link, class));
            self.active.insert(link);
        }
    }

    /// Records a packet on its last link, which arrives completely at `tail`.
    #[inline]
    fn eject(&mut self, id: u32, tail: Time) {
        let message = &mut self.messages[id];
        message.missing -= 1;
        message.arrival = message.arrival.max(tail);
        if message.missing == 0 {
            self.events.push(message.arrival, Event::Deliver(id));
        }
    }

    /// Activates a link at its wake event.
    fn handle_wake(&mut self, link: u32) {
        if self.links[link].wake == self.events.now() {
            self.links[link].wake = Time::MAX;
        }
        self.active.insert(link);
        self.prefetch.note(link);
    }

    /// Applies an event before any link is served; returns the message that it delivers, unless
    /// background.
    #[inline]
    fn handle(&mut self, event: Event, supply: &mut dyn Supply) -> Option<Ticket> {
        match event {
            Event::Enter(message) => self.enter(message),
            Event::Due(link) => self.due.push(link),
            Event::Arrive(packet, crossed, round) => self.arrive(packet, crossed, round, supply),
            Event::Wake(link) => self.handle_wake(link),
            Event::Deliver(message) if self.messages[message].ticket == COMBINED => {
                self.deliver_combined(message);
            }
            Event::Deliver(message) => {
                let ticket = self.messages.remove(message).ticket;
                return (ticket != BACKGROUND).then_some(ticket);
            }
            Event::Traffic(flow) => self.send_traffic(flow),
        }
        None
    }
}

impl Link {
    /// Whether this is the last link of a packet.
    #[inline]
    fn ends(&self, packet: &Packet) -> bool {
        self.last_of == packet.destination.0
    }
}
