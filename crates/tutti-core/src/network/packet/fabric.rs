//! The packets under way, and what happens to them from one event to the next.

use super::ahead::{self, Ahead};
use super::links::{Link, LinkUse, Links};
use super::outbox::{Outbox, Posted};
use super::pieces::{Message, Packet, Stage};
use super::queue::EventQueue;
use super::rooms::Rooms;
use super::slab::Slab;
use super::stirred::Stirred;
use super::waiting::{Input, Neighbour, Queues};
use super::ways::{Place, Traveller, Ways};
use super::{Ends, NONE, Packets};
use crate::ids::{RankId, VertexId};
use crate::network::{BackgroundFlow, Carried, Carrier, Ticket};
use crate::units::{Bytes, Time, TimePerByte};

#[derive(Clone, Copy)]
enum Event {
    /// The first byte of a message that was posted is at its source's port.
    Enter(u32),
    /// A packet's head is at the end of a link after which another one comes; and how many it has crossed.
    Arrive(u32, u16),
    /// Somebody who waits for a link may start.
    Wake(u32),
    /// All of a message is at its destination.
    Deliver(u32),
    /// A flow of others sends its next message.
    Traffic(u32),
}

impl Event {
    /// The packet that arrives.
    #[inline]
    fn arrives(self) -> Option<u32> {
        if let Event::Arrive(packet, _) = self { Some(packet) } else { None }
    }
}

/// The ticket of messages that nobody waits for.
const NOBODYS: Ticket = Ticket(u32::MAX);

/// The most that there ever was at once of what a run has to remember.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnderWay {
    /// Messages that waited at their sources, or were still to come there.
    pub posted: usize,
    /// Messages of which packets were on their way.
    pub messages: usize,
    /// Packets that had not begun to cross their last link.
    pub packets: usize,
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
    /// By the same places, what packets have chosen; nobody, where they do not choose.
    chosen: Vec<Traveller>,
    /// Links to serve when all events of the present time have happened.
    stirred: Stirred,
    ahead: Ahead,
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
            chosen: Vec::new(),
            background: Vec::new(),
            ahead: Ahead::new(),
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
            self.put(link, packet, Input::SOURCE, false);
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
        let on_wire = size + self.packets.header.0;
        let packet = self.under_way.put(Packet {
            message: id,
            destination: way.destination,
            bytes: u32::try_from(on_wire).expect("no packet is longer"),
            next: NONE,
            tail: head + self.included.of(Bytes(cut + size)),
            stage: Stage::source(head + self.included.of(Bytes(cut))),
        });
        if let Ways::Chosen { .. } = self.ways {
            let places = self.chosen.len().max(packet as usize + 1);
            self.chosen.resize(places, way);
            self.chosen[packet as usize] = way;
        }
        packet
    }

    /// After the first packet of a message its next one, if there is one, comes before other messages.
    fn follow_up(&mut self, id: u32) {
        let Message { source, destination, bytes, cut, .. } = self.messages[id];
        if cut < bytes {
            let nth = u32::try_from(cut / self.packets.size.0).unwrap_or(u32::MAX);
            let packet = self.cut(id, Traveller::new(source, destination, nth));
            let link = self.next_link(packet, (source, destination), Input::SOURCE);
            self.links[link].backlog += u64::from(self.under_way[packet].bytes);
            self.put(link, packet, Input::SOURCE, true);
        }
    }

    /// A packet that has crossed so many links waits for its next.
    #[inline]
    fn arrive(&mut self, id: u32, crossed: u16) {
        let Packet { message, destination, stage, bytes, .. } = self.under_way[id];
        let [over, mut link] = stage.links();
        let input = Input { link: over, class: crossed };
        if link == NONE {
            link = self.next_link(id, (self.messages[message].source, destination), input);
        }
        self.links[link].backlog += u64::from(bytes);
        self.put(link, id, input, false);
    }

    #[inline]
    fn put(&mut self, link: u32, id: u32, input: Input, first: bool) {
        match self.queues.put(&mut self.links[link].waiting, input, id, first) {
            Neighbour::Behind(other) => self.under_way[other].next = id,
            Neighbour::Before(other) => self.under_way[id].next = other,
            Neighbour::Nobody => {}
        }
        self.stirred.put(link);
        self.ahead.note(link);
    }

    /// Over which link a packet from one rank to another goes on from the end of the one that it came over.
    #[inline]
    fn next_link(&mut self, id: u32, pair: (RankId, RankId), input: Input) -> u32 {
        let (source, destination) = pair;
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
        let place = Place { at: VertexId(at), hops, links: &self.links, now: self.events.now() };
        match self.ways {
            Ways::Routed(routes) => routes.next_link(source, destination, place.at, hops).0,
            Ways::Chosen { .. } => {
                let serial = || self.messages[self.under_way[id].message].serial;
                self.ways.next(&mut self.chosen[id as usize], &place, serial)
            }
        }
    }

    /// The same while it is still on its way there, where it has no choice: nobody has to wait then for what
    /// is looked up.
    #[inline]
    fn foresee(&mut self, id: u32, packet: &Packet, input: Input) -> u32 {
        let Ways::Routed(routes) = self.ways else { return NONE };
        // Behind a port the source counts as well.
        let source = if input.class == 1 || routes.tell_sources_apart() {
            self.messages[packet.message].source
        } else {
            RankId(NONE)
        };
        self.next_link(id, (source, packet.destination), input)
    }

    /// Starts whatever can start on the links that something happened to, always on the lowest first.
    fn settle(&mut self) {
        self.ahead.fetch_first(&self.links, &self.queues, &self.under_way);
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
            let state = &mut self.links[link];
            if state.free > now {
                let free = state.free;
                return self.wake(link, free);
            }
            if passed == Some(queue) {
                return self.wake(link, earliest);
            }
            let (first, input) = self.queues.head(queue);
            let packet = self.under_way[first];
            if input == Input::SOURCE && packet.stage.head() > now {
                passed = passed.or(Some(queue));
                earliest = earliest.min(packet.stage.head());
                self.queues.rotate(&mut state.waiting);
                continue;
            }
            let bytes = u64::from(packet.bytes);
            if state.ends(&packet) || self.rooms.has(link, input.class, state.capacity, bytes) {
                self.start(link, (first, packet), input, now);
                return self.serve_again(link, now);
            }
            self.queues.stand_aside(&mut state.waiting, self.rooms.aside(link, input.class));
        }
    }

    /// Sees to it that a link that has just started a packet serves who else waits for it.
    #[inline]
    fn serve_again(&mut self, link: u32, now: Time) {
        let Link { free, ref waiting, .. } = self.links[link];
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

    /// The first packet in turn, which came from `input`, starts to cross a link.
    #[inline]
    fn start(&mut self, link: u32, (id, packet): (u32, Packet), input: Input, now: Time) {
        let bytes = u64::from(packet.bytes);
        let next = self.behind(link, &packet, input);
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
            self.under_way.remove(id);
            self.land(packet.message, tail);
        } else {
            self.rooms.take(link, input.class, bytes);
            self.call_back(link, input.class);
            let crossed = input.class + 1;
            let onto = self.foresee(id, &packet, Input { link, class: crossed });
            let stage = Stage::way(link, onto);
            self.under_way[id] = Packet { tail, stage, next: NONE, ..packet };
            self.events.push(head, Event::Arrive(id, crossed));
        }
        self.make_way(&packet, input);
    }

    /// The packet behind the first of a queue, which may be that of a message still to be cut.
    #[inline]
    fn behind(&mut self, link: u32, packet: &Packet, input: Input) -> u32 {
        if packet.next != NONE || input != Input::SOURCE {
            return packet.next;
        }
        self.outbox.next(link).map_or(NONE, |posted| self.cut_first(posted))
    }

    /// A packet has begun to leave the place where it waited.
    #[inline]
    fn make_way(&mut self, packet: &Packet, input: Input) {
        if input == Input::SOURCE {
            return self.follow_up(packet.message);
        }
        let class = input.class - 1;
        self.rooms.give(input.link, class, u64::from(packet.bytes));
        self.call_back(input.link, class);
    }

    /// If there is room for the packet that has stood aside longest, it is in turn again.
    #[inline]
    fn call_back(&mut self, link: u32, class: u16) {
        let Some(queue) = self.rooms.aside(link, class).first() else { return };
        let bytes = self.under_way[self.queues.head(queue).0].bytes;
        let state = &mut self.links[link];
        if self.rooms.has(link, class, state.capacity, u64::from(bytes)) {
            self.queues.come_back(&mut state.waiting, self.rooms.aside(link, class));
            self.stirred.put(link);
        }
    }

    /// A packet crosses its last link, and will wholly be there at `tail`.
    #[inline]
    fn land(&mut self, id: u32, tail: Time) {
        let message = &mut self.messages[id];
        message.missing -= 1;
        message.arrival = message.arrival.max(tail);
        if message.missing == 0 {
            self.events.push(message.arrival, Event::Deliver(id));
        }
    }

    /// Somebody wanted this link to be served now.
    fn look(&mut self, link: u32) {
        if self.links[link].wake == self.events.now() {
            self.links[link].wake = Time::MAX;
        }
        self.stirred.put(link);
        self.ahead.note(link);
    }

    /// What an event changes before any link is served; the message that it delivers, if somebody waits for it.
    #[inline]
    fn handle(&mut self, event: Event) -> Option<Ticket> {
        match event {
            Event::Enter(message) => self.enter(message),
            Event::Arrive(packet, crossed) => self.arrive(packet, crossed),
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
        self.last_of == packet.destination.0
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
            let arriving = self.events.present().filter_map(Event::arrives);
            ahead::fetch(&self.under_way, arriving);
        }
    }
}
