//! Injection: how messages queue at their source and are cut into packets.
//!
//! A posted message is stored until it is injected. Of offered messages, [`InjectionQueues`] stores the first
//! few per link and requests the others again. The rules are the same for both: a message enters when its
//! first byte is at the port; messages that enter simultaneously do so in order of their causes. A message
//! that enters behind others of its queue has no effect, so an offered message needs an event only at the head
//! of an empty queue. That event may be scheduled long after the offer, behind others of the same time; hence
//! the stamps.

use std::ops::ControlFlow;

use super::super::NONE;
use super::super::injection::{InjectionQueues, Offered, Stamp};
use super::super::links::Links;
use super::super::outbox::Posted;
use super::super::pieces::{Message, Packet, Stage};
use super::super::routing::{HeadPosition, PacketRouting, Traveller};
use super::super::trees::TREE;
use super::super::waiting::Input;
use super::{BACKGROUND, Event, PacketNetwork};
use crate::{BackgroundFlow, Carried, Cursor, Supply, Ticket};
use tutti_units::ids::{RankId, VertexId};
use tutti_units::{Bytes, Time};

/// Returns the injection queues of the links or ports at which messages enter.
pub(super) fn injection(routing: &PacketRouting<'_>, links: &Links) -> InjectionQueues {
    let npus = routing.topology().npus();
    if let Some(first) = links.injection(0) {
        return InjectionQueues::new(first, (0..=npus).collect());
    }
    let out = |npu| routing.topology().links_out(VertexId(npu)).len();
    let ends = (0..npus).scan(0, |end, npu| {
        *end += u32::try_from(out(npu)).expect("links are counted in 32 bits");
        Some(*end)
    });
    InjectionQueues::new(0, std::iter::once(0).chain(ends).collect())
}

/// Whether all messages of a pair enter over the same link or port, whatever waits there.
pub(super) fn enter_in_order(routing: &PacketRouting<'_>, links: &Links) -> bool {
    let topology = routing.topology();
    let single_link = |npu| topology.links_out(VertexId(npu)).len() == 1;
    !routing.choose() || links.injection(0).is_some() || (0..topology.npus()).all(single_link)
}

/// Returns the link or port at which the messages of a pair enter.
fn entry_link(
    routing: &PacketRouting<'_>,
    links: &Links,
    (source, destination): (RankId, RankId),
) -> u32 {
    links.injection(source.0).unwrap_or_else(|| match routing {
        PacketRouting::Routed(routes) => {
            routes.next_link(source, destination, VertexId(source.0), 0).0
        }
        PacketRouting::PerPacket { distances, .. } => {
            let mut out = distances.topology().links_out(VertexId(source.0));
            out.next().expect("a topology is connected").0
        }
    })
}

impl PacketNetwork<'_> {
    /// Stores a message, and schedules its injection.
    pub(super) fn post(&mut self, ticket: Ticket, message: Carried) {
        let Carried { source, destination, bytes, .. } = message;
        let (head, serial) = (self.head(&message, self.events.now()), self.next_serial());
        let traveller = Traveller::new(source, destination, 0);
        let id = self.outbox.post(Posted::new(ticket, traveller, bytes.0, head, serial));
        self.events.push(head, Event::Enter(id));
    }

    /// Records an offered message, which the supply replays on request.
    pub(super) fn record_offer(&mut self, at: &Cursor, message: Carried) {
        let link = entry_link(&self.routing, &self.links, (message.source, message.destination));
        let stamp = Stamp { time: self.events.now(), round: self.round };
        let (head, serial) = (self.head(&message, stamp.time), self.next_serial());
        let Carried { destination, bytes, .. } = message;
        let offered = Offered { destination, bytes: bytes.0, head, serial, stamp };
        self.injection.offer(link, at, offered);
        if !self.links[link].waiting.holds(Input::SOURCE) {
            self.expect(link);
        }
    }

    /// When the first byte of a message handed over at `at` is at its source's port.
    fn head(&self, message: &Carried, at: Time) -> Time {
        (message.arrival - self.included.of(message.bytes)).max(at)
    }

    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Schedules the injection of the first message of an otherwise empty queue.
    fn expect(&mut self, link: u32) {
        let Some(&Offered { head, .. }) = self.injection.front(link) else { return };
        if self.injection.expect(link, head) {
            self.events.push(head, Event::Due(link));
        }
    }

    /// Injects the first message of a queue if it is due.
    pub(super) fn enter_due(&mut self, link: u32, supply: &mut dyn Supply) {
        if !self.injection.is_due(link, self.events.now()) {
            return;
        }
        self.injection.enter(link);
        if !self.links[link].waiting.holds(Input::SOURCE)
            && let Some(packet) = self.cut_next(link, supply)
        {
            self.put(link, packet, Input::SOURCE, false);
        }
    }

    /// As [`PacketNetwork::enter_due`], if the message was offered before the arriving packet started.
    #[cold]
    pub(super) fn enter_before(
        &mut self,
        link: u32,
        packet: (u32, u32, u8),
        supply: &mut dyn Supply,
    ) {
        let (id, over, round) = packet;
        let round = if round == u8::MAX { self.late_rounds[id as usize] } else { u32::from(round) };
        let time = self.events.now() - self.links[over].latency;
        let offered_before = |first: &Offered| first.stamp <= Stamp { time, round };
        if self.injection.front(link).is_some_and(offered_before) {
            self.enter_due(link, supply);
        }
    }

    /// The round in which a packet starts; rounds beyond `u8` are stored in `late_rounds`.
    #[inline]
    pub(super) fn stamp_round(&mut self, id: u32) -> u8 {
        let round = u8::try_from(self.round).unwrap_or(u8::MAX);
        if round == u8::MAX {
            let places = self.late_rounds.len().max(id as usize + 1);
            self.late_rounds.resize(places, 0);
            self.late_rounds[id as usize] = self.round;
        }
        round
    }

    /// Creates the first packet of the first message of a queue, and refills the queue.
    fn cut_next(&mut self, link: u32, supply: &mut dyn Supply) -> Option<u32> {
        let source = RankId(self.links.start(link));
        let (offered, incomplete) = self.injection.pop(link)?;
        if incomplete {
            self.request_more(link, supply);
        }
        let Offered { destination, bytes, head, serial, .. } = offered;
        let ticket = supply.set_off(source, destination, Bytes(bytes));
        let traveller = Traveller::new(source, destination, 0);
        let first = bytes.min(self.packets.size.0) + self.packets.header.0;
        self.links[link].backlog += first;
        let message = self.create_message(Posted::new(ticket, traveller, bytes, head, serial));
        Some(self.cut(message, traveller))
    }

    /// Requests more messages of a queue.
    fn request_more(&mut self, link: u32, supply: &mut dyn Supply) {
        let included = self.included;
        let PacketNetwork { routing, links, injection, .. } = self;
        while injection.has_space(link)
            && let Some((from, started)) = injection.rest(link)
        {
            let mut left = None;
            supply.replay(&from, &mut |at, message| {
                let Carried { source, destination, bytes, arrival } = message;
                if entry_link(routing, links, (source, destination)) != link {
                    return ControlFlow::Continue(());
                }
                if !injection.has_space(link) {
                    left = Some(*at);
                    return ControlFlow::Break(());
                }
                let head = (arrival - included.of(bytes)).max(started.stamp.time);
                let serial = started.serial + u64::from(at.index - started.start.index);
                let stamp = started.stamp;
                injection.push(link, Offered { destination, bytes: bytes.0, head, serial, stamp });
                ControlFlow::Continue(())
            });
            injection.supplied(link, left);
        }
    }

    /// A posted message joins the queue of the first link or port of its route.
    pub(super) fn enter(&mut self, id: u32) {
        let now = self.events.now();
        let Posted { mut traveller, bytes, head, serial, .. } = self.outbox[id];
        if traveller.source == traveller.destination {
            let posted = self.outbox.take(id);
            let message = self.create_message(posted);
            return self
                .events
                .push(head + self.included.of(Bytes(bytes)), Event::Deliver(message));
        }
        let link = self.links.injection(traveller.source.0).unwrap_or_else(|| {
            if traveller.destination.0 >= TREE {
                return self.first_in_tree(traveller.source, traveller.destination);
            }
            let place =
                HeadPosition { at: VertexId(traveller.source.0), hops: 0, links: &self.links, now };
            self.routing.next(&mut traveller, &place, || serial)
        });
        self.outbox[id].traveller = traveller;
        let first = bytes.min(self.packets.size.0) + self.packets.header.0;
        self.links[link].backlog += first;
        if self.links[link].waiting.holds(Input::SOURCE) {
            self.outbox.enqueue(link, id);
        } else {
            let packet = self.cut_first(id);
            self.put(link, packet, Input::SOURCE, false);
        }
    }

    /// A background flow sends a message, and schedules the next.
    pub(super) fn send_traffic(&mut self, index: u32) {
        let now = self.events.now();
        let Some(flow) = self.background[index as usize].take() else { return };
        let BackgroundFlow { source, destination, bytes, period, count, .. } = flow;
        if count > 0 {
            self.events.push(now + period, Event::Traffic(index));
        }
        let serial = self.next_serial();
        let traveller = Traveller::new(source, destination, 0);
        let id = self.outbox.post(Posted::new(BACKGROUND, traveller, bytes.0, now, serial));
        self.enter(id);
    }

    /// Creates a message in flight.
    fn create_message(&mut self, posted: Posted) -> u32 {
        let Posted { ticket, traveller, bytes, head, serial, .. } = posted;
        let Traveller { source, destination, .. } = traveller;
        let (missing, arrival) = (self.packets.of(Bytes(bytes)), Time::ZERO);
        let message =
            Message { ticket, source, destination, bytes, head, serial, cut: 0, missing, arrival };
        self.messages.put(message)
    }

    /// Creates the first packet of a posted message, which is already routed.
    fn cut_first(&mut self, id: u32) -> u32 {
        let posted = self.outbox.take(id);
        let message = self.create_message(posted);
        self.cut(message, posted.traveller)
    }

    /// Creates the next packet of a message.
    #[inline]
    fn cut(&mut self, id: u32, traveller: Traveller) -> u32 {
        let Message { bytes, head, cut, .. } = self.messages[id];
        let size = (bytes - cut).min(self.packets.size.0);
        self.messages[id].cut = cut + size;
        let on_wire = size + self.packets.header.0;
        let packet = self.in_flight.put(Packet {
            message: id,
            destination: traveller.destination,
            bytes: u32::try_from(on_wire).expect("no packet is longer"),
            next: NONE,
            tail: head + self.included.first(Bytes(cut + size), Bytes(bytes)),
            stage: Stage::source(head + self.included.first(Bytes(cut), Bytes(bytes))),
        });
        if let PacketRouting::PerPacket { .. } = self.routing {
            let places = self.chosen.len().max(packet as usize + 1);
            self.chosen.resize(places, traveller);
            self.chosen[packet as usize] = traveller;
        }
        packet
    }

    /// Queues the next packet of a message, if there is one, before other messages.
    pub(super) fn follow_up(&mut self, id: u32) {
        let Message { source, destination, bytes, cut, .. } = self.messages[id];
        if cut < bytes {
            let nth = u32::try_from(cut / self.packets.size.0).unwrap_or(u32::MAX);
            let packet = self.cut(id, Traveller::new(source, destination, nth));
            let link = self.next_link(packet, (source, destination), Input::SOURCE);
            self.links[link].backlog += u64::from(self.in_flight[packet].bytes);
            self.put(link, packet, Input::SOURCE, true);
        }
    }

    /// The packet behind the first of a queue; it may belong to a message that has no packets yet.
    #[inline]
    pub(super) fn behind(
        &mut self,
        link: u32,
        packet: &Packet,
        input: Input,
        supply: &mut dyn Supply,
    ) -> u32 {
        if packet.next != NONE || input != Input::SOURCE {
            return packet.next;
        }
        if let Some(posted) = self.outbox.next(link) {
            return self.cut_first(posted);
        }
        match self.injection.front(link) {
            None => NONE,
            Some(first) if first.head <= self.events.now() => {
                self.cut_next(link, supply).unwrap_or(NONE)
            }
            Some(_) => {
                self.expect(link);
                NONE
            }
        }
    }
}
