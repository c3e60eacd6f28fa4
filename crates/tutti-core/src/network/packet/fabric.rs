//! The packets under way, and what happens to them from one event to the next.

use super::links::{Link, LinkUse, Links};
use super::outbox::{Outbox, Posted};
use super::queue::EventQueue;
use super::rooms::Rooms;
use super::slab::Slab;
use super::stirred::Stirred;
use super::waiting::{Input, Neighbour, Queues};
use super::ways::{Place, Traveller, Ways};
use super::{Ends, NONE, Packets, SOURCE};
use crate::ids::{RankId, VertexId};
use crate::network::{BackgroundFlow, Carried, Carrier, Ticket};
use crate::units::{Bytes, Time, TimePerByte};

#[derive(Clone, Copy)]
enum Event {
    /// The first byte of a message that was posted is at its source's port.
    Enter(u32),
    /// A packet's head is at the end of the link it crosses.
    Arrive(u32),
    /// Somebody who waits for a link may start.
    Wake(u32),
    /// All of a message is at its destination.
    Deliver(u32),
    /// A flow of others sends its next message.
    Traffic(u32),
}

/// The ticket of messages that nobody waits for.
const NOBODYS: Ticket = Ticket(u32::MAX);

/// A message under way: its first packet has been cut.
#[derive(Clone, Copy)]
struct Message {
    ticket: Ticket,
    source: RankId,
    destination: RankId,
    bytes: u64,
    /// When its first byte is at its source's port.
    head: Time,
    /// How many messages were sent before it.
    serial: u64,
    /// Bytes that packets were made of.
    cut: u64,
    /// Packets that have not arrived.
    missing: u64,
    /// When the last of those that have was wholly there.
    arrival: Time,
}

/// A packet, from when it could start to when it has arrived; one line of the cache, since it is looked at
/// long after it was put where it waits.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Packet {
    message: u32,
    way: Traveller,
    /// On the wire, header included.
    bytes: u64,
    /// When its head is where it waits.
    head: Time,
    /// When its tail is.
    tail: Time,
    /// In the buffer at the end of which link it is, or on which it travels.
    link: u32,
    /// The vertex at the end of that link.
    at: u32,
    /// Links it has crossed.
    crossed: u16,
    /// Whether it has arrived there.
    ends: bool,
    /// The packet behind it in its queue.
    next: u32,
}

/// The most that there ever was at once of what a run has to remember.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnderWay {
    /// Messages that waited at their sources, or were still to come there.
    pub posted: usize,
    /// Messages of which packets were on their way.
    pub messages: usize,
    /// Packets.
    pub packets: usize,
}

impl Packet {
    #[inline]
    fn input(&self) -> Input {
        Input { link: self.link, class: self.crossed }
    }
}

/// Packets on the links of a graph: the state of a run.
pub struct Fabric<'a> {
    ways: Ways<'a>,
    packets: Packets,
    /// What the sender's model charges per byte: its port hands bytes over no faster.
    included: TimePerByte,
    events: EventQueue<Event>,
    links: Links,
    rooms: Rooms,
    queues: Queues,
    outbox: Outbox,
    messages: Slab<Message>,
    under_way: Slab<Packet>,
    /// Links to serve when all events of the present time have happened.
    stirred: Stirred,
    /// Traffic of others: each flow, and how many messages it still has to send.
    background: Vec<BackgroundFlow>,
    /// Bytes of a full packet on the wire.
    full: u64,
}

impl<'a> Fabric<'a> {
    /// An empty network.
    #[must_use]
    pub fn new(ways: Ways<'a>, packets: Packets, ends: Ends) -> Fabric<'a> {
        let ejection = packets.ejection.or(ends.takes);
        let packets = Packets { ejection, ..packets };
        let links = Links::new(ways.topology(), &packets);
        Fabric {
            ways,
            packets,
            included: ends.hands_over,
            events: EventQueue::new(),
            outbox: Outbox::new(links.all.len()),
            rooms: Rooms::new(links.all.len()),
            stirred: Stirred::none_of(links.all.len()),
            links,
            queues: Queues::new(),
            messages: Slab::new(),
            under_way: Slab::new(),
            background: Vec::new(),
            full: (packets.size + packets.header).0,
        }
    }

    /// The same network with messages of others on it.
    #[must_use]
    pub fn with_background(mut self, flows: &[BackgroundFlow]) -> Fabric<'a> {
        for (index, flow) in (0..).zip(flows) {
            self.events.push(flow.start, Event::Traffic(index));
        }
        self.background = flows.to_vec();
        self
    }

    /// What each link of the graph did, by link id.
    pub fn link_use(&self) -> impl ExactSizeIterator<Item = LinkUse> + '_ {
        self.links.all[..self.links.count].iter().map(|link| link.usage)
    }

    /// The most that was under way at once.
    #[must_use]
    pub fn most_under_way(&self) -> UnderWay {
        UnderWay {
            posted: self.outbox.most(),
            messages: self.messages.most(),
            packets: self.under_way.most(),
        }
    }

    /// A message lines up for the link, or port, that its first packet has to take.
    fn enter(&mut self, id: u32) {
        let now = self.events.now();
        let Posted { mut way, bytes, head, serial, .. } = self.outbox[id];
        if way.source == way.destination {
            let message = self.begin(id);
            return self
                .events
                .push(head + self.included.of(Bytes(bytes)), Event::Deliver(message));
        }
        let link = self.links.injection(way.source.0).unwrap_or_else(|| {
            let place = Place { at: VertexId(way.source.0), hops: 0, links: &self.links, now };
            self.ways.next(&mut way, &place, || serial)
        });
        self.outbox[id].way = way;
        let first = bytes.min(self.packets.size.0) + self.packets.header.0;
        self.links[link].backlog += first;
        if self.links[link].waiting.holds(Input::SOURCE) {
            self.outbox.line_up(link, id);
        } else {
            let packet = self.cut_first(id);
            self.put(link, packet, false);
        }
    }

    /// A flow of others sends a message, and will send the next.
    fn send_traffic(&mut self, index: u32) {
        let now = self.events.now();
        let flow = &mut self.background[index as usize];
        let Some(left) = flow.count.checked_sub(1) else { return };
        flow.count = left;
        let BackgroundFlow { source, destination, bytes, period, .. } = *flow;
        if left > 0 {
            self.events.push(now + period, Event::Traffic(index));
        }
        let id = self.outbox.post(NOBODYS, Traveller::new(source, destination, 0), bytes.0, now);
        self.enter(id);
    }

    /// A message that was posted is under way.
    fn begin(&mut self, posted: u32) -> u32 {
        let Posted { ticket, way, bytes, head, serial, .. } = self.outbox.take(posted);
        let Traveller { source, destination, .. } = way;
        let (missing, arrival) = (self.packets.of(Bytes(bytes)), Time::ZERO);
        let message =
            Message { ticket, source, destination, bytes, head, serial, cut: 0, missing, arrival };
        self.messages.put(message)
    }

    /// Makes the first packet of a message, which knows its way already.
    fn cut_first(&mut self, posted: u32) -> u32 {
        let way = self.outbox[posted].way;
        let message = self.begin(posted);
        self.cut(message, way)
    }

    /// Makes the next packet of a message.
    #[inline]
    fn cut(&mut self, id: u32, way: Traveller) -> u32 {
        let Message { bytes, head, cut, .. } = self.messages[id];
        let size = (bytes - cut).min(self.packets.size.0);
        self.messages[id].cut = cut + size;
        self.under_way.put(Packet {
            message: id,
            way,
            bytes: size + self.packets.header.0,
            head: head + self.included.of(Bytes(cut)),
            tail: head + self.included.of(Bytes(cut + size)),
            link: SOURCE,
            at: NONE,
            crossed: 0,
            ends: false,
            next: NONE,
        })
    }

    /// After the first packet of a message its next one, if there is one, comes before other messages.
    fn follow_up(&mut self, id: u32) {
        let Message { source, destination, bytes, cut, .. } = self.messages[id];
        if cut < bytes {
            let nth = u32::try_from(cut / self.packets.size.0).unwrap_or(u32::MAX);
            let packet = self.cut(id, Traveller::new(source, destination, nth));
            self.wait_for_link(packet, true);
        }
    }

    /// Puts a packet where it waits for its next link; `first` before others of its input.
    fn wait_for_link(&mut self, id: u32, first: bool) {
        let link = self.next_link(id);
        self.links[link].backlog += self.under_way[id].bytes;
        self.put(link, id, first);
    }

    #[inline]
    fn put(&mut self, link: u32, id: u32, first: bool) {
        let input = self.under_way[id].input();
        match self.queues.put(&mut self.links[link].waiting, input, id, first) {
            Neighbour::Behind(other) => self.under_way[other].next = id,
            Neighbour::Before(other) => self.under_way[id].next = other,
            Neighbour::Nobody => {}
        }
        self.stirred.put(link);
    }

    /// Over which link a packet goes on from where it is.
    #[inline]
    fn next_link(&mut self, id: u32) -> u32 {
        let now = self.events.now();
        let packet = &mut self.under_way[id];
        let serial = || self.messages[packet.message].serial;
        let place = if packet.link == SOURCE {
            if let Some(port) = self.links.injection(packet.way.source.0) {
                return port;
            }
            Place { at: VertexId(packet.way.source.0), hops: 0, links: &self.links, now }
        } else {
            if packet.at == packet.way.destination.0
                && let Some(port) = self.links.ejection(packet.at)
            {
                return port;
            }
            let ports = u16::from(self.links.injection(0).is_some());
            let hops = usize::from(packet.crossed.saturating_sub(ports));
            Place { at: VertexId(packet.at), hops, links: &self.links, now }
        };
        self.ways.next(&mut packet.way, &place, serial)
    }

    /// Starts whatever can start on the links that something happened to, always on the lowest first.
    fn settle(&mut self) {
        while let Some(link) = self.stirred.take_lowest() {
            self.serve(link);
        }
    }

    /// Starts a packet on a link if one can. If another one still can, since packets pass in no time, its turn
    /// comes after links before this one that the first has stirred.
    fn serve(&mut self, link: u32) {
        let now = self.events.now();
        // The first queue that was passed over because its packet is still to come, and when it does.
        let mut passed = None;
        let mut earliest = Time::MAX;
        while let Some(queue) = self.links[link].waiting.in_turn() {
            let free = self.links[link].free;
            if free > now {
                return self.wake(link, free);
            }
            if passed == Some(queue) {
                return self.wake(link, earliest);
            }
            let state = &mut self.links[link];
            let packet = &self.under_way[self.queues.head(queue)];
            if packet.head > now {
                passed = passed.or(Some(queue));
                earliest = earliest.min(packet.head);
                self.queues.rotate(&mut state.waiting);
            } else if state.ends(packet)
                || self.rooms.has(link, packet.crossed, state.capacity, packet.bytes)
            {
                self.start(link, now);
                return self.serve_again(link, now);
            } else {
                let aside = self.rooms.aside(link, packet.crossed);
                self.queues.stand_aside(&mut state.waiting, aside);
            }
        }
    }

    /// Sees to it that a link that has just started a packet serves who else waits for it.
    #[inline]
    fn serve_again(&mut self, link: u32, now: Time) {
        let Link { free, waiting, .. } = &self.links[link];
        let free = *free;
        if waiting.in_turn().is_none() {
            return;
        }
        if free > now { self.wake(link, free) } else { self.stirred.put(link) }
    }

    fn wake(&mut self, link: u32, at: Time) {
        let state = &mut self.links[link];
        if at < state.wake {
            state.wake = at;
            self.events.push(at, Event::Wake(link));
        }
    }

    /// The first packet in turn starts to cross a link.
    fn start(&mut self, link: u32, now: Time) {
        let state = &mut self.links[link];
        let id = self.queues.head(state.waiting.in_turn().expect("a packet waits for the link"));
        let packet = self.under_way[id];
        let next = self.behind(link, &packet);
        let state = &mut self.links[link];
        self.queues.take(&mut state.waiting, next);
        let ends = state.ends(&packet);
        if !ends {
            self.rooms.take(link, packet.crossed, packet.bytes);
            self.call_back(link, packet.crossed);
        }
        let state = &mut self.links[link];
        let tail = (now + state.pass(packet.bytes, self.full)).max(packet.tail);
        state.free = tail;
        state.backlog -= packet.bytes;
        state.usage.packets += 1;
        state.usage.bytes += packet.bytes;
        state.usage.busy += tail - now;
        let there = now + state.latency;
        self.under_way[id] = Packet {
            link,
            at: state.to,
            crossed: packet.crossed + 1,
            ends,
            head: there,
            tail: tail + state.latency,
            next: NONE,
            ..packet
        };
        self.events.push(there, Event::Arrive(id));
        self.make_way(&packet);
    }

    /// The packet behind the first of a queue, which may be that of a message still to be cut.
    #[inline]
    fn behind(&mut self, link: u32, packet: &Packet) -> u32 {
        if packet.next != NONE || packet.link != SOURCE {
            return packet.next;
        }
        self.outbox.next(link).map_or(NONE, |posted| self.cut_first(posted))
    }

    /// A packet has begun to leave the place where it waited.
    fn make_way(&mut self, packet: &Packet) {
        if packet.link == SOURCE {
            return self.follow_up(packet.message);
        }
        let class = packet.crossed - 1;
        self.rooms.give(packet.link, class, packet.bytes);
        self.call_back(packet.link, class);
    }

    /// If there is room for the packet that has stood aside longest, it is in turn again.
    #[inline]
    fn call_back(&mut self, link: u32, class: u16) {
        let Some(queue) = self.rooms.aside(link, class).first() else { return };
        let bytes = self.under_way[self.queues.head(queue)].bytes;
        let state = &mut self.links[link];
        if self.rooms.has(link, class, state.capacity, bytes) {
            self.queues.come_back(&mut state.waiting, self.rooms.aside(link, class));
            self.stirred.put(link);
        }
    }

    fn arrive(&mut self, id: u32) {
        let packet = self.under_way[id];
        if !packet.ends {
            return self.wait_for_link(id, false);
        }
        self.under_way.remove(id);
        let message = &mut self.messages[packet.message];
        message.missing -= 1;
        message.arrival = message.arrival.max(packet.tail);
        if message.missing == 0 {
            self.events.push(message.arrival, Event::Deliver(packet.message));
        }
    }

    /// Somebody wanted this link to be served now.
    fn look(&mut self, link: u32) {
        if self.links[link].wake == self.events.now() {
            self.links[link].wake = Time::MAX;
        }
        self.stirred.put(link);
    }

    /// What an event changes before any link is served; the message that it delivers, if somebody waits for it.
    #[inline]
    fn handle(&mut self, event: Event) -> Option<Ticket> {
        match event {
            Event::Enter(message) => self.enter(message),
            Event::Arrive(packet) => self.arrive(packet),
            Event::Wake(link) => self.look(link),
            Event::Deliver(message) => {
                let ticket = self.messages.remove(message).ticket;
                return (ticket != NOBODYS).then_some(ticket);
            }
            Event::Traffic(flow) => self.send_traffic(flow),
        }
        None
    }
}

impl Link {
    /// Whether a packet that crosses this link has arrived then.
    #[inline]
    fn ends(&self, packet: &Packet) -> bool {
        self.last && self.to == packet.way.destination.0
    }
}

impl Carrier for Fabric<'_> {
    const CONTENDED: bool = true;

    fn carry(&mut self, ticket: Ticket, message: Carried) {
        let Carried { source, destination, bytes, arrival } = message;
        let head = (arrival - self.included.of(bytes)).max(self.events.now());
        let id = self.outbox.post(ticket, Traveller::new(source, destination, 0), bytes.0, head);
        self.events.push(head, Event::Enter(id));
    }

    fn next_arrival(&mut self) -> Option<(Ticket, Time)> {
        loop {
            while let Some(event) = self.events.pop() {
                if let Some(ticket) = self.handle(event) {
                    return Some((ticket, self.events.now()));
                }
            }
            self.settle();
            self.events.advance()?;
        }
    }
}
