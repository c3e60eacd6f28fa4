//! The same rules the obvious way: every queue a list of its own, every event in a map by time, and after
//! the last event of a time every link is asked whether a packet can start, from the first link on and
//! from the first again after each start, until none can.
//!
//! Slow and short, and with nothing shared with the fast network but the parameters. The two agree on every
//! time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Ends, Packets};
use crate::{Carried, Carrier, Serialization, Ticket};
use tutti_topology::Routes;
use tutti_units::ids::{LinkId, RankId};
use tutti_units::{Bytes, Time, TimePerByte};

enum Event {
    Enter(Message),
    Arrive(Packet),
    /// A link may be free, or a packet that was still to come may be there.
    Look,
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
    /// Bytes of the message before it, and in it.
    before: u64,
    payload: u64,
    head: Time,
    tail: Time,
    /// What is still before it, as indices of `Obvious::links`, of links side by side the first; and what lies
    /// behind it.
    ahead: VecDeque<usize>,
    behind: Vec<usize>,
}

/// Where a packet comes from: the link it came over, and how many links it has crossed.
type Input = (Option<usize>, usize);

struct Queue {
    input: Input,
    packets: VecDeque<Packet>,
}

struct Link {
    rate: TimePerByte,
    latency: Time,
    free: Time,
    room: u64,
    used: BTreeMap<usize, u64>,
    turn: VecDeque<Queue>,
    aside: BTreeMap<usize, VecDeque<Queue>>,
}

/// Packets on the links of a graph.
pub struct Obvious<'a> {
    routes: &'a Routes,
    packets: Packets,
    included: Serialization,
    /// What the receiver's model charges for bytes, where its port is the last link.
    takes: Option<Serialization>,
    now: Time,
    sequence: u64,
    events: BTreeMap<(Time, u64), Event>,
    /// When somebody will look whether a packet can start.
    looks: BTreeSet<Time>,
    /// Links of the graph, injection ports, ejection ports.
    links: Vec<Link>,
    /// Per message: packets that have not begun to cross their last link, and when the last one is there.
    missing: BTreeMap<Ticket, (u64, Time)>,
}

impl<'a> Obvious<'a> {
    /// As [`super::PacketNetwork::new`].
    #[must_use]
    pub fn new(routes: &'a Routes, packets: Packets, ends: Ends) -> Obvious<'a> {
        let takes = ends.takes.filter(|_| packets.ejection.is_none());
        let ejection = takes.map_or(packets.ejection, |takes| Some(takes.per_byte()));
        let packets = Packets { ejection, ..packets };
        let link = |rate: TimePerByte, latency| Link {
            rate,
            latency,
            free: Time::ZERO,
            room: rate.bytes_in(latency).0.saturating_add(packets.buffer.0),
            used: BTreeMap::new(),
            turn: VecDeque::new(),
            aside: BTreeMap::new(),
        };
        let topology = routes.topology();
        let wires = topology.links().map(|id| topology.parameters(id));
        let mut links: Vec<Link> = wires.map(|wire| link(wire.rate, wire.latency)).collect();
        for port in [packets.injection, packets.ejection] {
            let rate = port.unwrap_or(TimePerByte::ZERO);
            links.extend((0..topology.npus()).map(|_| link(rate, Time::ZERO)));
        }
        let (events, looks, missing) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        let (now, sequence) = (Time::ZERO, 0);
        Obvious {
            routes,
            packets,
            included: ends.hands_over,
            takes,
            now,
            sequence,
            events,
            looks,
            links,
            missing,
        }
    }

    fn at(&mut self, time: Time, event: Event) {
        self.sequence += 1;
        self.events.insert((time.max(self.now), self.sequence), event);
    }

    fn look_at(&mut self, time: Time) {
        if self.looks.insert(time) {
            self.at(time, Event::Look);
        }
    }

    /// Ports and links from a source to a destination.
    fn way(&self, message: &Message) -> VecDeque<usize> {
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
        let head = message.head + self.included.of(Bytes(before));
        let tail = message.head + self.included.of(Bytes(before + payload));
        let (ahead, behind) = (self.way(&message), Vec::new());
        self.look_at(head);
        Packet { message, before, payload, head, tail, ahead, behind }
    }

    /// Of the links side by side with one, where packets share them: that with the shortest wait, then the
    /// first.
    fn choose(&self, link: usize) -> usize {
        let topology = self.routes.topology();
        let Some(id) = topology.links().nth(link) else { return link };
        let wait = |link: &usize| {
            let Link { free, rate, turn, aside, .. } = &self.links[*link];
            let queues = turn.iter().chain(aside.values().flatten());
            let packets = queues.flat_map(|queue| &queue.packets);
            let bytes: u64 = packets.map(|packet| self.on_wire(packet)).sum();
            (*free - self.now) + rate.of(Bytes(bytes))
        };
        let beside = self.routes.bundle(id).map(LinkId::index);
        beside.min_by_key(wait).unwrap_or(link)
    }

    /// Puts a packet into the queue of its input, last or first.
    fn queue(&mut self, mut packet: Packet, first: bool) {
        let input: Input = (packet.behind.last().copied(), packet.behind.len());
        packet.ahead[0] = self.choose(packet.ahead[0]);
        let link = &mut self.links[packet.ahead[0]];
        let aside = link.aside.values_mut().flatten();
        let queue = link.turn.iter_mut().chain(aside).find(|queue| queue.input == input);
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
        packet.ahead.len() == 1 || link.room - used >= self.on_wire(packet)
    }

    /// Lets the queue that has stood aside longest in a class come back, if its packet fits.
    fn call_back(&mut self, link: usize, class: usize) {
        let Some(first) = self.links[link].aside.get(&class).and_then(|line| line.front()) else {
            return;
        };
        if self.fits(link, &first.packets[0]) {
            let link = &mut self.links[link];
            link.turn.extend(link.aside.get_mut(&class).and_then(VecDeque::pop_front));
        }
    }

    /// Starts a packet on a link if one can; whether one did.
    fn try_start(&mut self, link: usize) -> bool {
        let now = self.now;
        for _ in 0..self.links[link].turn.len() {
            if self.links[link].free > now {
                self.look_at(self.links[link].free);
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
                self.links[link].aside.entry(class).or_default().push_back(queue);
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
            self.call_back(id, class);
        }
        let tail = (self.now + rate.of(Bytes(bytes))).max(packet.tail);
        self.links[id].free = tail;
        if let Some(&behind) = packet.behind.last() {
            *self.links[behind].used.get_mut(&(class - 1)).expect("it was there") -= bytes;
            self.call_back(behind, class - 1);
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
            self.land(&packet);
        } else {
            self.at(packet.head, Event::Arrive(packet));
        }
    }

    /// Takes note of when a packet on its last link will wholly be there.
    fn land(&mut self, packet: &Packet) {
        let ticket = packet.message.ticket;
        let (missing, last) = self.missing.get_mut(&ticket).expect("its message is under way");
        *missing -= 1;
        *last = packet.tail.max(*last);
        if *missing == 0 {
            let last = *last;
            self.at(last, Event::Deliver(ticket));
        }
    }

    /// The next event of the present time, if one is left.
    fn take_event(&mut self) -> Option<Event> {
        let entry = self.events.first_entry()?;
        (entry.key().0 == self.now).then(|| entry.remove())
    }

    /// What an event changes before any link is asked; the message that it delivers.
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
            Event::Look => _ = self.looks.remove(&self.now),
            Event::Deliver(ticket) => return Some(ticket),
        }
        None
    }
}

impl Carrier for Obvious<'_> {
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
