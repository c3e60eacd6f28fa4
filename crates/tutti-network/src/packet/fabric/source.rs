//! Messages at their source: how they come into line there, and are cut when it is their turn.
//!
//! A message is either posted, and kept until it sets off; or only offered, and then [`Lines`] know the first few
//! of each line and ask for the others again. The rules are the same: a message enters when its first byte is
//! at the port, in the order in which everything was brought about. What enters behind others of its
//! line changes nothing, so an offered message enters by an event of its own only where nobody is before it. That
//! event may be put in long after the message was offered, and so behind others of the same time; hence the stamps.

use std::ops::ControlFlow;

use super::super::NONE;
use super::super::lines::{Lines, Offered, Stamp};
use super::super::links::Links;
use super::super::outbox::Posted;
use super::super::pieces::{Message, Packet, Stage};
use super::super::waiting::Input;
use super::super::ways::{HeadPosition, Traveller, Ways};
use super::{Event, NOBODYS, PacketNetwork};
use crate::{BackgroundFlow, Carried, Cursor, Supply, Ticket};
use tutti_units::ids::{RankId, VertexId};
use tutti_units::{Bytes, Time};

/// Lines for the links, or ports, at which messages enter.
pub(super) fn lines(ways: &Ways<'_>, links: &Links) -> Lines {
    let npus = ways.topology().npus();
    if let Some(first) = links.injection(0) {
        return Lines::new(first, (0..=npus).collect());
    }
    let out = |npu| ways.topology().links_out(VertexId(npu)).len();
    let ends = (0..npus).scan(0, |end, npu| {
        *end += u32::try_from(out(npu)).expect("links are counted in 32 bits");
        Some(*end)
    });
    Lines::new(0, std::iter::once(0).chain(ends).collect())
}

/// Whether all messages of a pair enter over the same link or port, whatever waits there.
pub(super) fn enter_in_order(ways: &Ways<'_>, links: &Links) -> bool {
    let topology = ways.topology();
    let one_way = |npu| topology.links_out(VertexId(npu)).len() == 1;
    !ways.choose() || links.injection(0).is_some() || (0..topology.npus()).all(one_way)
}

/// Over which link or port they do.
fn way_in(ways: &Ways<'_>, links: &Links, (source, destination): (RankId, RankId)) -> u32 {
    links.injection(source.0).unwrap_or_else(|| match ways {
        Ways::Routed(routes) => routes.next_link(source, destination, VertexId(source.0), 0).0,
        Ways::Chosen { distances, .. } => {
            let mut out = distances.topology().links_out(VertexId(source.0));
            out.next().expect("a topology is connected").0
        }
    })
}

impl PacketNetwork<'_> {
    /// Takes note of a message, and of when it will enter.
    pub(super) fn post(&mut self, ticket: Ticket, message: Carried) {
        let Carried { source, destination, bytes, .. } = message;
        let (head, serial) = (self.head(&message, self.events.now()), self.next_serial());
        let way = Traveller::new(source, destination, 0);
        let id = self.outbox.post(Posted::new(ticket, way, bytes.0, head, serial));
        self.events.push(head, Event::Enter(id));
    }

    /// Hears of a message that will be told again.
    pub(super) fn hear_of(&mut self, at: &Cursor, message: Carried) {
        let link = way_in(&self.ways, &self.links, (message.source, message.destination));
        let stamp = Stamp { time: self.events.now(), round: self.round };
        let (head, serial) = (self.head(&message, stamp.time), self.next_serial());
        let Carried { destination, bytes, .. } = message;
        let offered = Offered { destination, bytes: bytes.0, head, serial, stamp };
        self.lines.offer(link, at, offered);
        if !self.links[link].waiting.holds(Input::SOURCE) {
            self.expect(link);
        }
    }

    /// When the first byte of a message, handed over at some time, is at its source's port.
    fn head(&self, message: &Carried, at: Time) -> Time {
        (message.arrival - self.included.of(message.bytes)).max(at)
    }

    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// The first message in line, where nobody is before it, will enter when it can.
    fn expect(&mut self, link: u32) {
        let Some(&Offered { head, .. }) = self.lines.front(link) else { return };
        if self.lines.expect(link, head) {
            self.events.push(head, Event::Due(link));
        }
    }

    /// The first message in line enters if it has not yet.
    pub(super) fn enter_due(&mut self, link: u32, supply: &mut dyn Supply) {
        if !self.lines.is_due(link, self.events.now()) {
            return;
        }
        self.lines.enter(link);
        if !self.links[link].waiting.holds(Input::SOURCE)
            && let Some(packet) = self.cut_next(link, supply)
        {
            self.put(link, packet, Input::SOURCE, false);
        }
    }

    /// The same where it does so before a packet that set off towards the link some time ago.
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
        if self.lines.front(link).is_some_and(offered_before) {
            self.enter_due(link, supply);
        }
    }

    /// The round of the present time, to go with a packet that sets off: those beyond count lie elsewhere.
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

    /// Cuts the first message in line, which has a line behind it again then.
    fn cut_next(&mut self, link: u32, supply: &mut dyn Supply) -> Option<u32> {
        let source = RankId(self.links.start(link));
        let (offered, asks) = self.lines.pop(link)?;
        if asks {
            self.ask(link, supply);
        }
        let Offered { destination, bytes, head, serial, .. } = offered;
        let ticket = supply.set_off(source, destination, Bytes(bytes));
        let way = Traveller::new(source, destination, 0);
        let first = bytes.min(self.packets.size.0) + self.packets.header.0;
        self.links[link].backlog += first;
        let message = self.begin(Posted::new(ticket, way, bytes, head, serial));
        Some(self.cut(message, way))
    }

    /// Asks for more messages of a line.
    fn ask(&mut self, link: u32, supply: &mut dyn Supply) {
        let included = self.included;
        let PacketNetwork { ways, links, lines, .. } = self;
        while lines.has_room(link)
            && let Some((from, begun)) = lines.rest(link)
        {
            let mut left = None;
            supply.tell(&from, &mut |at, message| {
                let Carried { source, destination, bytes, arrival } = message;
                if way_in(ways, links, (source, destination)) != link {
                    return ControlFlow::Continue(());
                }
                if !lines.has_room(link) {
                    left = Some(*at);
                    return ControlFlow::Break(());
                }
                let head = (arrival - included.of(bytes)).max(begun.stamp.time);
                let serial = begun.serial + u64::from(at.index - begun.start.index);
                let stamp = begun.stamp;
                lines.push(link, Offered { destination, bytes: bytes.0, head, serial, stamp });
                ControlFlow::Continue(())
            });
            lines.told(link, left);
        }
    }

    /// A message that was posted lines up for the link, or port, that its first packet has to take.
    pub(super) fn enter(&mut self, id: u32) {
        let now = self.events.now();
        let Posted { mut way, bytes, head, serial, .. } = self.outbox[id];
        if way.source == way.destination {
            let posted = self.outbox.take(id);
            let message = self.begin(posted);
            return self
                .events
                .push(head + self.included.of(Bytes(bytes)), Event::Deliver(message));
        }
        let link = self.links.injection(way.source.0).unwrap_or_else(|| {
            let place =
                HeadPosition { at: VertexId(way.source.0), hops: 0, links: &self.links, now };
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
    pub(super) fn send_traffic(&mut self, index: u32) {
        let now = self.events.now();
        let flow = &mut self.background[index as usize];
        let Some(left) = flow.count.checked_sub(1) else { return };
        flow.count = left;
        let BackgroundFlow { source, destination, bytes, period, .. } = *flow;
        if left > 0 {
            self.events.push(now + period, Event::Traffic(index));
        }
        let serial = self.next_serial();
        let way = Traveller::new(source, destination, 0);
        let id = self.outbox.post(Posted::new(NOBODYS, way, bytes.0, now, serial));
        self.enter(id);
    }

    /// A message is under way.
    fn begin(&mut self, posted: Posted) -> u32 {
        let Posted { ticket, way, bytes, head, serial, .. } = posted;
        let Traveller { source, destination, .. } = way;
        let (missing, arrival) = (self.packets.of(Bytes(bytes)), Time::ZERO);
        let message =
            Message { ticket, source, destination, bytes, head, serial, cut: 0, missing, arrival };
        self.messages.put(message)
    }

    /// Makes the first packet of a message that was posted, which knows its way already.
    fn cut_first(&mut self, id: u32) -> u32 {
        let posted = self.outbox.take(id);
        let message = self.begin(posted);
        self.cut(message, posted.way)
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
    pub(super) fn follow_up(&mut self, id: u32) {
        let Message { source, destination, bytes, cut, .. } = self.messages[id];
        if cut < bytes {
            let nth = u32::try_from(cut / self.packets.size.0).unwrap_or(u32::MAX);
            let packet = self.cut(id, Traveller::new(source, destination, nth));
            let link = self.next_link(packet, (source, destination), Input::SOURCE);
            self.links[link].backlog += u64::from(self.under_way[packet].bytes);
            self.put(link, packet, Input::SOURCE, true);
        }
    }

    /// The packet behind the first of a queue, which may be that of a message still to be cut.
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
        match self.lines.front(link) {
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
