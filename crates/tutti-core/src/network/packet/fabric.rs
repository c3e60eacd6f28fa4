//! The packets under way, and what happens to them from one event to the next.

use super::links::{Link, LinkUse, Links};
use super::queue::EventQueue;
use super::slab::Slab;
use super::waiting::{Input, Neighbour, Queues, SOURCE};
use super::ways::{Place, Traveller, Ways};
use super::{Ends, NONE, Packets};
use crate::ids::{RankId, VertexId};
use crate::network::{BackgroundFlow, Carried, Carrier, Ticket};
use crate::units::{Bytes, Time, TimePerByte};

#[derive(Clone, Copy)]
enum Event {
    /// A message's first byte is at its source's port.
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

/// A message under way.
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
    /// Bytes that packets were made of, and packets that are still to be made.
    cut: u64,
    uncut: u64,
    /// Packets that have not arrived.
    missing: u64,
    /// When the last of those that have was wholly there.
    arrival: Time,
}

/// A packet, from when it could start to when it has arrived.
#[derive(Clone, Copy)]
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
    /// Links it has crossed.
    crossed: u16,
    /// The packet behind it in its queue.
    next: u32,
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
    queues: Queues,
    messages: Slab<Message>,
    under_way: Slab<Packet>,
    /// Links to look at, now.
    stirred: Vec<u32>,
    /// Messages handed over so far.
    sent: u64,
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
        Fabric {
            ways,
            packets,
            included: ends.hands_over,
            events: EventQueue::new(),
            links: Links::new(ways.topology(), &packets),
            queues: Queues::new(),
            messages: Slab::new(),
            under_way: Slab::new(),
            stirred: Vec::new(),
            sent: 0,
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

    /// The most messages and packets that were under way at once.
    #[must_use]
    pub fn most_under_way(&self) -> (usize, usize) {
        (self.messages.most(), self.under_way.most())
    }

    fn enter(&mut self, id: u32) {
        let message = self.messages[id];
        if message.source == message.destination {
            let there = message.head + self.included.of(Bytes(message.bytes));
            self.events.push(there, Event::Deliver(id));
        } else if let Some(packet) = self.cut(id) {
            self.wait_for_link(packet, false);
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
        let id = self.put(NOBODYS, (source, destination), bytes, now);
        self.enter(id);
    }

    /// Takes note of a message whose first byte is at its source's port at `head`.
    fn put(
        &mut self,
        ticket: Ticket,
        (source, destination): (RankId, RankId),
        bytes: Bytes,
        head: Time,
    ) -> u32 {
        self.sent += 1;
        self.messages.put(Message {
            ticket,
            serial: self.sent,
            source,
            destination,
            bytes: bytes.0,
            head,
            cut: 0,
            uncut: self.packets.of(bytes),
            missing: self.packets.of(bytes),
            arrival: Time::ZERO,
        })
    }

    /// Makes the next packet of a message, if there is one.
    fn cut(&mut self, id: u32) -> Option<u32> {
        let Message { source, destination, bytes, head, cut, uncut, .. } = self.messages[id];
        let left = uncut.checked_sub(1)?;
        let size = (bytes - cut).min(self.packets.size.0);
        self.messages[id].cut = cut + size;
        self.messages[id].uncut = left;
        let nth = u32::try_from(cut / self.packets.size.0).unwrap_or(u32::MAX);
        Some(self.under_way.put(Packet {
            message: id,
            way: Traveller { source, destination, via: NONE, chosen: false, nth },
            bytes: size + self.packets.header.0,
            head: head + self.included.of(Bytes(cut)),
            tail: head + self.included.of(Bytes(cut + size)),
            link: SOURCE,
            crossed: 0,
            next: NONE,
        }))
    }

    /// Puts a packet where it waits for its next link; `first` before others of its input.
    fn wait_for_link(&mut self, id: u32, first: bool) {
        let link = self.next_link(id);
        let packet = self.under_way[id];
        let state = &mut self.links[link];
        state.backlog += packet.bytes;
        match self.queues.put(&mut state.waiting, packet.input(), id, first) {
            Neighbour::Behind(other) => self.under_way[other].next = id,
            Neighbour::Before(other) => self.under_way[id].next = other,
            Neighbour::Nobody => {}
        }
        self.stirred.push(link);
    }

    /// Over which link a packet goes on from where it is.
    fn next_link(&mut self, id: u32) -> u32 {
        let packet = &mut self.under_way[id];
        let starts = packet.link == SOURCE;
        if starts && let Some(port) = self.links.injection(packet.way.source.0) {
            return port;
        }
        let at = if starts { packet.way.source.0 } else { self.links[packet.link].to };
        if at == packet.way.destination.0
            && let Some(port) = self.links.ejection(at)
        {
            return port;
        }
        let ports = u16::from(self.links.injection(0).is_some());
        let hops = usize::from(packet.crossed.saturating_sub(ports));
        let place = Place { at: VertexId(at), hops, links: &self.links, now: self.events.now() };
        self.ways.next(&mut packet.way, &place, || self.messages[packet.message].serial)
    }

    /// Starts whatever can start on the links that something happened to.
    fn settle(&mut self) {
        while let Some(link) = self.stirred.pop() {
            self.serve(link);
        }
    }

    /// Starts what can start on a link: at most one packet, unless packets pass in no time.
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
            } else if state.ends(packet) || state.has_room(packet.crossed, packet.bytes) {
                self.start(link, now);
                passed = None;
                earliest = Time::MAX;
            } else {
                self.queues.stand_aside(&mut state.waiting);
            }
        }
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
        self.queues.take(&mut state.waiting, packet.next);
        let ends = state.ends(&packet);
        if !ends {
            state.take_room(packet.crossed, packet.bytes);
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
            crossed: packet.crossed + 1,
            head: there,
            tail: tail + state.latency,
            next: NONE,
            ..packet
        };
        self.events.push(there, Event::Arrive(id));
        self.make_way(&packet);
    }

    /// A packet has begun to leave the place where it waited.
    fn make_way(&mut self, packet: &Packet) {
        if packet.link == SOURCE {
            if let Some(next) = self.cut(packet.message) {
                self.wait_for_link(next, true);
            }
            return;
        }
        let class = packet.crossed - 1;
        self.links[packet.link].give_room(class, packet.bytes);
        self.call_back(packet.link, class);
    }

    /// If there is room for the packet that has stood aside longest, it is in turn again.
    #[inline]
    fn call_back(&mut self, link: u32, class: u16) {
        let state = &mut self.links[link];
        let Some(queue) = self.queues.aside(&state.waiting, class) else { return };
        if state.has_room(class, self.under_way[self.queues.head(queue)].bytes) {
            self.queues.come_back(&mut state.waiting, class);
            self.stirred.push(link);
        }
    }

    fn arrive(&mut self, id: u32) {
        let packet = self.under_way[id];
        if !self.links[packet.link].ends(&packet) {
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

    fn look(&mut self, link: u32) {
        if self.links[link].wake == self.events.now() {
            self.links[link].wake = Time::MAX;
        }
        self.stirred.push(link);
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
        let id = self.put(ticket, (source, destination), bytes, head);
        self.events.push(head, Event::Enter(id));
    }

    fn next_arrival(&mut self) -> Option<(Ticket, Time)> {
        while let Some(event) = self.events.pop() {
            match event {
                Event::Enter(message) => self.enter(message),
                Event::Arrive(packet) => self.arrive(packet),
                Event::Wake(link) => self.look(link),
                Event::Deliver(message) => {
                    let ticket = self.messages.remove(message).ticket;
                    if ticket != NOBODYS {
                        return Some((ticket, self.events.now()));
                    }
                }
                Event::Traffic(flow) => self.send_traffic(flow),
            }
            self.settle();
        }
        None
    }
}
