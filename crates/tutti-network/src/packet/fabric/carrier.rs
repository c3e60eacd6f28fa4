//! The network as a carrier of messages: how it is called, and the event loop.

use std::ops::ControlFlow;

use super::super::links::LinkUse;
use super::super::prefetch;
use super::super::routing::PacketRouting;
use super::{BACKGROUND, Event, PacketNetwork, source};
use crate::{Carried, Carrier, Combined, Cursor, Progress, Serialization, Stepped, Supply, Ticket};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

impl Carrier for PacketNetwork<'_> {
    const CONTENDED: bool = true;
    const IN_NETWORK: bool = true;

    fn carry(&mut self, ticket: Ticket, message: Carried) {
        self.post(ticket, message);
    }

    fn next_arrival(&mut self) -> Option<(Ticket, Time)> {
        self.next_arrival_of(&mut NoSupply)
    }

    fn prefers_offers(&self) -> Option<Serialization> {
        let offers = self.background.is_empty()
            && self.trees.is_none()
            && source::enter_in_order(&self.routing, &self.links);
        offers.then_some(self.included)
    }

    fn forks(&self) -> bool {
        self.packets.multicast.is_some() && matches!(self.routing, PacketRouting::Routed(_))
    }

    fn fork(&mut self, messages: &[(Ticket, Carried)]) {
        match messages {
            [] => {}
            &[(ticket, message)] => self.post(ticket, message),
            _ => self.post_multicast(messages),
        }
    }

    fn combines(&self) -> bool {
        self.packets.reduce.is_some() && matches!(self.routing, PacketRouting::Routed(_))
    }

    fn parts(&self, root: RankId, leaves: &[RankId], inwards: bool) -> Vec<Vec<usize>> {
        match (&self.trees, &self.routing) {
            (Some(trees), PacketRouting::Routed(routes)) => {
                trees.branching().parts(routes, (root, inwards), leaves)
            }
            _ => (0..leaves.len()).map(|index| vec![index]).collect(),
        }
    }

    fn expect(&mut self, combines: Vec<Combined>) {
        self.combines = combines.into_iter().map(|combined| (combined, None)).collect();
    }

    fn contribute(&mut self, combine: usize, ticket: Ticket, message: Carried) {
        self.post_contribution(combine, ticket, message);
    }

    fn has_unreachable_pairs(&self) -> bool {
        self.routing.disconnected()
    }

    fn reaches(&self, from: RankId, to: RankId) -> bool {
        self.routing.reach(from, to)
    }

    fn offer(&mut self, at: &Cursor, message: Carried) {
        self.record_offer(at, message);
    }

    fn next_arrival_of(&mut self, supply: &mut dyn Supply) -> Option<(Ticket, Time)> {
        self.arrival_until(Time::MAX, supply)
    }
}

impl Stepped for PacketNetwork<'_> {
    fn send(&mut self, ticket: Ticket, message: Carried) {
        self.post(ticket, message);
    }

    fn progress(&mut self, until: Time) -> Option<Progress> {
        let (ticket, time) = self.arrival_until(until, &mut NoSupply)?;
        Some(Progress::Arrived(ticket, time))
    }

    fn connects(&self, from: RankId, to: RankId) -> bool {
        self.reaches(from, to)
    }

    fn used_links(&self) -> Vec<LinkUse> {
        self.link_use().collect()
    }
}

impl PacketNetwork<'_> {
    /// Runs until the next arrival, but not beyond `until`.
    fn arrival_until(&mut self, until: Time, supply: &mut dyn Supply) -> Option<(Ticket, Time)> {
        loop {
            while let Some(event) = self.events.pop() {
                if let Some(ticket) = self.handle(event, supply) {
                    return Some((ticket, self.events.now()));
                }
            }
            self.settle(supply);
            let before = self.events.now();
            let next = self.events.earliest().filter(|&next| next <= until)?;
            self.events.advance_to(next);
            self.round = if self.events.now() == before { self.round + 1 } else { 0 };
            let arriving = self.events.present().filter_map(Event::arrives);
            prefetch::fetch(&self.in_flight, arriving);
        }
    }
}

/// A supply for networks to which nothing was offered.
struct NoSupply;

impl Supply for NoSupply {
    fn set_off(&mut self, _: RankId, _: RankId, _: Bytes) -> Ticket {
        BACKGROUND
    }

    fn replay(&mut self, _: &Cursor, _: &mut dyn FnMut(&Cursor, Carried) -> ControlFlow<()>) {}
}
