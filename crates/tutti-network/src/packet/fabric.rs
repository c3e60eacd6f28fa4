//! The packets under way, and what happens to them from one event to the next.

mod source;

use std::ops::ControlFlow;

use super::ahead::{self, Ahead};
use super::lines::Lines;
use super::links::{Link, LinkUse, Links};
use super::outbox::Outbox;
use super::pieces::{Message, Packet, Stage};
use super::queue::EventQueue;
use super::rooms::Rooms;
use super::slab::Slab;
use super::stirred::Stirred;
use super::waiting::{Input, Neighbour, Queues};
use super::ways::{HeadPosition, Traveller, Ways, along};
use super::{Ends, NONE, Packets};
use crate::{BackgroundFlow, Carried, Carrier, Cursor, Serialization, Supply, Ticket};
use tutti_units::ids::{RankId, VertexId};
use tutti_units::{Bytes, Time};

#[derive(Clone, Copy)]
enum Event {
    /// The first byte of a message that was posted is at its source's port.
    Enter(u32),
    /// The first byte of the first message in line for a link is at its source's port.
    Due(u32),
    /// A packet's head is at the end of a link after which another one comes; how many it has crossed, and in
    /// which round of its time it set off.
    Arrive(u32, u16, u8),
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
        if let Event::Arrive(packet, ..) = self { Some(packet) } else { None }
    }
}

/// The ticket of messages that nobody waits for.
const NOBODYS: Ticket = Ticket(u32::MAX);

/// The most that there ever was at once of what a run has to remember.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnderWay {
    /// Messages that waited at their sources, or were still to come there, as far as there was a note of
    /// each; and one for each step that messages without such a note belonged to.
    pub posted: usize,
    /// Messages of which packets were on their way.
    pub messages: usize,
    /// Packets that had not begun to cross their last link.
    pub packets: usize,
}

/// Packets on the links of a graph: the state of a run.
pub struct PacketNetwork<'a> {
    ways: Ways<'a>,
    packets: Packets,
    /// What the sender's model charges for bytes: its port hands them over no faster.
    included: Serialization,
    /// What the receiver's model charges for them, where its port stands before the receiver.
    takes: Option<Serialization>,
    events: EventQueue<Event>,
    links: Links,
    rooms: Rooms,
    queues: Queues,
    outbox: Outbox,
    lines: Lines,
    /// Links whose first message in line enters before any link is served.
    due: Vec<u32>,
    /// Messages sent so far.
    serial: u64,
    /// How often links were served at the present time.
    round: u32,
    /// By packet, the rounds that do not fit into its event.
    late_rounds: Vec<u32>,
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

impl<'a> PacketNetwork<'a> {
    /// An empty network.
    #[must_use]
    pub fn new(ways: Ways<'a>, packets: Packets, ends: Ends) -> PacketNetwork<'a> {
        let takes = if packets.ejection.is_none() { ends.takes } else { None };
        let ejection = packets.ejection.or(takes.map(Serialization::per_byte));
        let packets = Packets { ejection, ..packets };
        let links = Links::new(ways.topology(), &packets);
        PacketNetwork {
            ways,
            packets,
            included: ends.hands_over,
            takes,
            events: EventQueue::new(),
            outbox: Outbox::new(links.all.len()),
            lines: source::lines(&ways, &links),
            due: Vec::new(),
            serial: 0,
            round: 0,
            late_rounds: Vec::new(),
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
    pub fn with_background(mut self, flows: &[BackgroundFlow]) -> PacketNetwork<'a> {
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
            posted: self.outbox.most() + self.lines.most(),
            messages: self.messages.most(),
            packets: self.under_way.most(),
        }
    }

    /// A packet that has crossed so many links waits for its next.
    #[inline]
    fn arrive(&mut self, id: u32, crossed: u16, round: u8, supply: &mut dyn Supply) {
        let Packet { message, destination, stage, bytes, .. } = self.under_way[id];
        let [over, mut link] = stage.links();
        let input = Input { link: over, class: crossed };
        if link == NONE {
            link = self.next_link(id, (self.messages[message].source, destination), input);
        }
        if self.lines.is_due(link, self.events.now()) {
            self.enter_before(link, (id, over, round), supply);
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
        let place =
            HeadPosition { at: VertexId(at), hops, links: &self.links, now: self.events.now() };
        match self.ways {
            Ways::Routed(routes) => along(routes, pair, &place),
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
        if routes.share_bundles() {
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

    /// Starts whatever can start on the links that something happened to, always on the lowest first.
    fn settle(&mut self, supply: &mut dyn Supply) {
        while let Some(link) = self.due.pop() {
            self.enter_due(link, supply);
        }
        self.ahead.fetch_first(&self.links, &self.queues, &self.under_way);
        while let Some(link) = self.stirred.take_lowest() {
            self.serve(link, supply);
        }
    }

    /// Starts a packet on a link if one can. If another one still can, since packets pass in no time, its turn
    /// comes after links before this one that the first has stirred.
    fn serve(&mut self, link: u32, supply: &mut dyn Supply) {
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
                self.start(link, (first, packet), input, supply);
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
            self.under_way.remove(id);
            let there = self.takes.map(|takes| (now + takes.of(Bytes(bytes))).max(packet.tail));
            self.land(packet.message, there.unwrap_or(tail));
        } else {
            self.rooms.take(link, input.class, bytes);
            self.call_back(link, input.class);
            let crossed = input.class + 1;
            let onto = self.foresee(id, &packet, Input { link, class: crossed });
            let stage = Stage::way(link, onto);
            self.under_way[id] = Packet { tail, stage, next: NONE, ..packet };
            let round = self.stamp_round(id);
            self.events.push(head, Event::Arrive(id, crossed, round));
        }
        self.make_way(&packet, input);
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
    fn handle(&mut self, event: Event, supply: &mut dyn Supply) -> Option<Ticket> {
        match event {
            Event::Enter(message) => self.enter(message),
            Event::Due(link) => self.due.push(link),
            Event::Arrive(packet, crossed, round) => self.arrive(packet, crossed, round, supply),
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

impl Carrier for PacketNetwork<'_> {
    const CONTENDED: bool = true;

    fn carry(&mut self, ticket: Ticket, message: Carried) {
        self.post(ticket, message);
    }

    fn next_arrival(&mut self) -> Option<(Ticket, Time)> {
        self.next_arrival_of(&mut NoSupply)
    }

    fn prefers_offers(&self) -> Option<Serialization> {
        let offers = self.background.is_empty() && source::enter_in_order(&self.ways, &self.links);
        offers.then_some(self.included)
    }

    fn lacks_ways(&self) -> bool {
        self.ways.lack_ways()
    }

    fn reaches(&self, from: RankId, to: RankId) -> bool {
        self.ways.reach(from, to)
    }

    fn offer(&mut self, at: &Cursor, message: Carried) {
        self.hear_of(at, message);
    }

    fn next_arrival_of(&mut self, supply: &mut dyn Supply) -> Option<(Ticket, Time)> {
        loop {
            while let Some(event) = self.events.pop() {
                if let Some(ticket) = self.handle(event, supply) {
                    return Some((ticket, self.events.now()));
                }
            }
            self.settle(supply);
            let before = self.events.now();
            self.events.advance()?;
            self.round = if self.events.now() == before { self.round + 1 } else { 0 };
            let arriving = self.events.present().filter_map(Event::arrives);
            ahead::fetch(&self.under_way, arriving);
        }
    }
}

/// Where nothing was offered.
struct NoSupply;

impl Supply for NoSupply {
    fn set_off(&mut self, _: RankId, _: RankId, _: Bytes) -> Ticket {
        NOBODYS
    }

    fn tell(&mut self, _: &Cursor, _: &mut dyn FnMut(&Cursor, Carried) -> ControlFlow<()>) {}
}
