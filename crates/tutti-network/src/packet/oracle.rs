//! The reference model: the same rules without optimisation. Each queue is a separate list, and events are in a
//! map by time. After the last event of a time, links are checked from the first on for a packet that can
//! start, and from the first again after each start, until none can.
//!
//! It is slow and short, and shares only the parameters with the fast network. Both yield the same times.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Ends, Packets};
use crate::{Carried, Carrier, Serialization, Ticket};
use tutti_topology::Routes;
use tutti_units::ids::{LinkId, RankId};
use tutti_units::{Bytes, Time, TimePerByte};

enum Event {
    Enter(Message),
    Arrive(Packet),
    /// A link may be free, or a packet may have arrived.
    Wake,
    Deliver(Ticket),
}

#[derive(Clone, Copy)]
struct Message {
    ticket: Ticket,
    source: RankId,
    destination: RankId,
    bytes: u64,
    head: Time,
}

struct Packet {
    message: Message,
    /// Bytes of the message before the packet, and in it.
    before: u64,
    payload: u64,
    head: Time,
    tail: Time,
    /// Links still to cross, as indices of `ReferencePackets::links` (of a bundle, the first); and links crossed.
    ahead: VecDeque<usize>,
    behind: Vec<usize>,
}

/// The input of a packet: the link it arrived on, and the number of links crossed.
type Input = (Option<usize>, usize);

struct Queue {
    input: Input,
    packets: VecDeque<Packet>,
}

struct Link {
    rate: TimePerByte,
    latency: Time,
    free: Time,
    capacity: u64,
    used: BTreeMap<usize, u64>,
    turn: VecDeque<Queue>,
    blocked: BTreeMap<usize, VecDeque<Queue>>,
}

/// Packets on the links of a graph.
pub struct ReferencePackets<'a> {
    routes: &'a Routes,
    packets: Packets,
    included: Serialization,
    /// The receiver's serialization, if its port is the last link.
    takes: Option<Serialization>,
    now: Time,
    sequence: u64,
    events: BTreeMap<(Time, u64), Event>,
    /// Times of scheduled wake events.
    wakes: BTreeSet<Time>,
    /// Links of the graph, injection ports, ejection ports.
    links: Vec<Link>,
    /// Per message: packets that have not started to cross their last link, and the latest arrival.
    missing: BTreeMap<Ticket, (u64, Time)>,
}

impl<'a> ReferencePackets<'a> {
    /// As [`super::PacketNetwork::new`].
    #[must_use]
    pub fn new(routes: &'a Routes, packets: Packets, ends: Ends) -> ReferencePackets<'a> {
        let takes = ends.takes.filter(|_| packets.ejection.is_none());
        let ejection = takes.map_or(packets.ejection, |takes| Some(takes.per_byte()));
        let packets = Packets { ejection, ..packets };
        let link = |rate: TimePerByte, latency| Link {
            rate,
            latency,
            free: Time::ZERO,
            capacity: rate.bytes_in(latency).0.saturating_add(packets.buffer.0),
            used: BTreeMap::new(),
            turn: VecDeque::new(),
            blocked: BTreeMap::new(),
        };
        let topology = routes.topology();
        let wires = topology.links().map(|id| topology.parameters(id));
        let mut links: Vec<Link> = wires.map(|wire| link(wire.rate, wire.latency)).collect();
        for port in [packets.injection, packets.ejection] {
            let rate = port.unwrap_or(TimePerByte::ZERO);
            links.extend((0..topology.npus()).map(|_| link(rate, Time::ZERO)));
        }
        let (events, wakes, missing) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        let (now, sequence) = (Time::ZERO, 0);
        ReferencePackets {
            routes,
            packets,
            included: ends.hands_over,
            takes,
            now,
            sequence,
            events,
            wakes,
            links,
            missing,
        }
    }

    fn at(&mut self, time: Time, event: Event) {
        self.sequence += 1;
        self.events.insert((time.max(self.now), self.sequence), event);
    }

    fn wake_at(&mut self, time: Time) {
        if self.wakes.insert(time) {
            self.at(time, Event::Wake);
        }
    }

    /// Ports and links from a source to a destination.
    fn path(&self, message: &Message) -> VecDeque<usize> {
        let topology = self.routes.topology();
        let npus = topology.npus() as usize;
        let port = |of: RankId, which: usize| topology.link_count() + which * npus + of.index();
        let path = self.routes.path(message.source, message.destination).expect("ranks exist");
        let injection = self.packets.injection.map(|_| port(message.source, 0));
        let ejection = self.packets.ejection.map(|_| port(message.destination, 1));
        let links = path.into_iter().map(LinkId::index);
        injection.into_iter().chain(links).chain(ejection).collect()
    }

    fn cut(&mut self, message: Message, before: u64) -> Packet {
        let payload = (message.bytes - before).min(self.packets.size.0);
        let at_port =
            |first| message.head + self.included.first(Bytes(first), Bytes(message.bytes));
        let (head, tail) = (at_port(before), at_port(before + payload));
        let (ahead, behind) = (self.path(&message), Vec::new());
        self.wake_at(head);
        Packet { message, before, payload, head, tail, ahead, behind }
    }

    /// Of the links of a bundle, if packets share it: the one with the shortest queueing delay, at ties the
    /// first.
    fn choose(&self, link: usize) -> usize {
        let topology = self.routes.topology();
        let Some(id) = topology.links().nth(link) else { return link };
        let wait = |link: &usize| {
            let Link { free, rate, turn, blocked, .. } = &self.links[*link];
            let queues = turn.iter().chain(blocked.values().flatten());
            let packets = queues.flat_map(|queue| &queue.packets);
            let bytes: u64 = packets.map(|packet| self.on_wire(packet)).sum();
            (*free - self.now) + rate.of(Bytes(bytes))
        };
        let bundle = self.routes.bundle(id).map(LinkId::index);
        bundle.min_by_key(wait).unwrap_or(link)
    }

    /// Puts a packet at the tail, or with `first` at the head, of the queue of its input.
    fn queue(&mut self, mut packet: Packet, first: bool) {
        let input: Input = (packet.behind.last().copied(), packet.behind.len());
        packet.ahead[0] = self.choose(packet.ahead[0]);
        let link = &mut self.links[packet.ahead[0]];
        let blocked = link.blocked.values_mut().flatten();
        let queue = link.turn.iter_mut().chain(blocked).find(|queue| queue.input == input);
        match queue {
            Some(queue) if first => queue.packets.push_front(packet),
            Some(queue) => queue.packets.push_back(packet),
            None => link.turn.push_back(Queue { input, packets: VecDeque::from([packet]) }),
        }
    }

    fn on_wire(&self, packet: &Packet) -> u64 {
        packet.payload + self.packets.header.0
    }

    fn fits(&self, link: usize, packet: &Packet) -> bool {
        let link = &self.links[link];
        let used = link.used.get(&packet.behind.len()).copied().unwrap_or(0);
        packet.ahead.len() == 1 || link.capacity - used >= self.on_wire(packet)
    }

    /// Unblocks the queue that has been blocked longest on a class, if its packet fits.
    fn unblock_first(&mut self, link: usize, class: usize) {
        let Some(first) = self.links[link].blocked.get(&class).and_then(|line| line.front()) else {
            return;
        };
        if self.fits(link, &first.packets[0]) {
            let link = &mut self.links[link];
            link.turn.extend(link.blocked.get_mut(&class).and_then(VecDeque::pop_front));
        }
    }

    /// Starts a packet on a link if one can; returns whether one started.
    fn try_start(&mut self, link: usize) -> bool {
        let now = self.now;
        for _ in 0..self.links[link].turn.len() {
            if self.links[link].free > now {
                self.wake_at(self.links[link].free);
                return false;
            }
            let mut queue = self.links[link].turn.pop_front().expect("as many as there were");
            let (there, class) = (queue.packets[0].head <= now, queue.input.1);
            if there && self.fits(link, &queue.packets[0]) {
                let packet = queue.packets.pop_front().expect("a queue that waits");
                if !queue.packets.is_empty() {
                    self.links[link].turn.push_back(queue);
                }
                self.start(link, packet);
                return true;
            } else if there {
                self.links[link].blocked.entry(class).or_default().push_back(queue);
            } else {
                self.links[link].turn.push_back(queue);
            }
        }
        false
    }

    fn start(&mut self, id: usize, mut packet: Packet) {
        let bytes = self.on_wire(&packet);
        let class = packet.behind.len();
        let (latency, rate) = (self.links[id].latency, self.links[id].rate);
        if packet.ahead.len() > 1 {
            *self.links[id].used.entry(class).or_default() += bytes;
            self.unblock_first(id, class);
        }
        let tail = (self.now + rate.of(Bytes(bytes))).max(packet.tail);
        self.links[id].free = tail;
        if let Some(&behind) = packet.behind.last() {
            *self.links[behind].used.get_mut(&(class - 1)).expect("it was there") -= bytes;
            self.unblock_first(behind, class - 1);
        } else {
            let cut = packet.before + packet.payload;
            if cut < packet.message.bytes {
                let next = self.cut(packet.message, cut);
                self.queue(next, true);
            }
        }
        packet.behind.extend(packet.ahead.pop_front());
        packet.head = self.now + latency;
        let came = std::mem::replace(&mut packet.tail, tail + latency);
        if packet.ahead.is_empty() {
            if let Some(takes) = self.takes {
                packet.tail = came.max(self.now + takes.of(Bytes(bytes)));
            }
            self.eject(&packet);
        } else {
            self.at(packet.head, Event::Arrive(packet));
        }
    }

    /// Records when a packet on its last link arrives completely.
    fn eject(&mut self, packet: &Packet) {
        let ticket = packet.message.ticket;
        let (missing, last) = self.missing.get_mut(&ticket).expect("its message is in flight");
        *missing -= 1;
        *last = packet.tail.max(*last);
        if *missing == 0 {
            let last = *last;
            self.at(last, Event::Deliver(ticket));
        }
    }

    /// Removes the next event of the current time, if one is left.
    fn take_event(&mut self) -> Option<Event> {
        let entry = self.events.first_entry()?;
        (entry.key().0 == self.now).then(|| entry.remove())
    }

    /// Applies an event before any link is served; returns the message that it delivers.
    fn handle(&mut self, event: Event) -> Option<Ticket> {
        match event {
            Event::Enter(message) if message.source == message.destination => {
                let there = message.head + self.included.of(Bytes(message.bytes));
                self.at(there, Event::Deliver(message.ticket));
            }
            Event::Enter(message) => {
                let packet = self.cut(message, 0);
                self.queue(packet, false);
            }
            Event::Arrive(packet) => self.queue(packet, false),
            Event::Wake => _ = self.wakes.remove(&self.now),
            Event::Deliver(ticket) => return Some(ticket),
        }
        None
    }
}

impl Carrier for ReferencePackets<'_> {
    const CONTENDED: bool = true;

    fn carry(&mut self, ticket: Ticket, message: Carried) {
        let Carried { source, destination, bytes, arrival } = message;
        let head = (arrival - self.included.of(bytes)).max(self.now);
        self.missing.insert(ticket, (self.packets.of(bytes), Time::ZERO));
        let message = Message { ticket, source, destination, bytes: bytes.0, head };
        self.at(head, Event::Enter(message));
    }

    fn next_arrival(&mut self) -> Option<(Ticket, Time)> {
        loop {
            while let Some(event) = self.take_event() {
                if let Some(ticket) = self.handle(event) {
                    return Some((ticket, self.now));
                }
            }
            while (0..self.links.len()).any(|link| self.try_start(link)) {}
            self.now = self.events.keys().next()?.0;
        }
    }
}
