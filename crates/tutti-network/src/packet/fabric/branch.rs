//! Packets of multicasts and combines at switches.

use super::super::NONE;
use super::super::pieces::{Message, Packet, Stage};
use super::super::routing::{HeadPosition, PacketRouting, along_link};
use super::super::trees::{Branch, Combine, Multicast, Tree};
use super::super::waiting::Input;
use super::{BACKGROUND, COMBINED, Event, PacketNetwork};
use crate::{Carried, Combined, Ticket};
use tutti_units::Time;
use tutti_units::ids::{LinkId, RankId, VertexId};

impl PacketNetwork<'_> {
    /// Stores a multicast, and schedules its injection.
    pub(super) fn post_multicast(&mut self, messages: &[(Ticket, Carried)]) {
        let PacketRouting::Routed(routes) = self.routing else { return };
        let &(_, first @ Carried { source, bytes, .. }) = &messages[0];
        let leaf = |&(ticket, message): &(Ticket, Carried)| {
            (message.destination, self.leaf(ticket, message))
        };
        let leaves: Vec<(RankId, Message)> = messages.iter().map(leaf).collect();
        let leaves: Vec<(RankId, u32)> =
            leaves.into_iter().map(|(rank, message)| (rank, self.messages.put(message))).collect();
        let tree = Multicast::new(routes, source, &leaves, self.packets.of(bytes));
        self.post_in_tree(Tree::Multicast(tree), first);
    }

    fn post_in_tree(&mut self, tree: Tree, message: Carried) {
        let Some(trees) = &mut self.trees else { return };
        let destination = trees.add(tree);
        self.post(BACKGROUND, Carried { destination, ..message });
    }

    /// A message that packets join on their last link.
    fn leaf(&self, ticket: Ticket, message: Carried) -> Message {
        let Carried { source, destination, bytes, arrival } = message;
        Message {
            ticket,
            source,
            destination,
            bytes: bytes.0,
            head: arrival,
            serial: 0,
            cut: bytes.0,
            missing: self.packets.of(bytes),
            arrival: Time::ZERO,
        }
    }

    /// Stores a contribution to a combine, and schedules its injection.
    pub(super) fn post_contribution(&mut self, combine: usize, ticket: Ticket, message: Carried) {
        let PacketRouting::Routed(routes) = self.routing else { return };
        let (combined, known) = &self.combines[combine];
        let Combined { destination: root, members, .. } = combined;
        if members.len() == 1 {
            return self.post(ticket, message);
        }
        let destination = match *known {
            Some(tree) => tree,
            None => {
                let result = self.leaf(COMBINED, Carried { destination: *root, ..message });
                let result = self.messages.put(result);
                let tree = Combine::new(routes, *root, members, result);
                let Some(trees) = &mut self.trees else { return };
                let destination = trees.add(Tree::Combine(tree));
                self.results.insert(result, destination);
                self.combines[combine].1 = Some(destination);
                destination
            }
        };
        if let Some(Tree::Combine(tree)) = self.trees.as_mut().and_then(|all| all.get(destination))
        {
            tree.tickets.push(ticket);
        }
        self.post(BACKGROUND, Carried { destination, ..message });
    }

    /// The first link of a tree from a source, or its injection port.
    #[cold]
    pub(super) fn first_in_tree(&self, source: RankId, destination: RankId) -> u32 {
        if let Some(port) = self.links.injection(source.0) {
            return port;
        }
        let first = self.trees.as_ref().and_then(|trees| trees.first(destination, source));
        self.with_least_wait(first.expect("the source is in the tree"), source.0)
    }

    /// The link with the shortest queueing delay among those parallel to a link, if routes share them.
    fn with_least_wait(&self, link: u32, at: u32) -> u32 {
        let PacketRouting::Routed(routes) = self.routing else { return link };
        let now = self.events.now();
        let place = HeadPosition { at: VertexId(at), hops: 0, links: &self.links, now };
        along_link(routes, LinkId(link), &place)
    }

    /// A packet of a tree is at the end of a link.
    #[cold]
    pub(super) fn arrive_in_tree(&mut self, id: u32, over: u32, crossed: u16) {
        let input = Input { link: over, class: crossed };
        let destination = self.in_flight[id].destination;
        match self.trees.as_mut().and_then(|trees| trees.get(destination)) {
            Some(Tree::Multicast(_)) => self.copy(id, input),
            Some(Tree::Combine(_)) => self.reduce(id, input),
            None => {}
        }
    }

    /// Copies a packet to each next link of its multicast.
    fn copy(&mut self, id: u32, input: Input) {
        let packet = self.in_flight[id];
        let Some(trees) = &mut self.trees else { return };
        let Some(Tree::Multicast(tree)) = trees.get(packet.destination) else { return };
        let branches = tree.next[&self.links.end(input.link)].clone();
        let last = branches.iter().filter(|branch| branch.last.is_some()).count();
        tree.left -= last as u64;
        if tree.left == 0 {
            trees.remove(packet.destination);
            self.messages.remove(packet.message);
        }
        let stage = match branches.len() {
            1 => Stage::on_link(input.link, NONE),
            copies => Stage::shared(trees.share(copies)),
        };
        for (nth, branch) in branches.into_iter().enumerate() {
            let copy = onto(Packet { stage, next: NONE, ..packet }, branch);
            let copy = if nth == 0 {
                self.in_flight[id] = copy;
                id
            } else {
                self.in_flight.put(copy)
            };
            self.put_onto(branch, copy, input);
        }
    }

    /// Reduces a packet with those of other contributions, or makes it wait for them.
    fn reduce(&mut self, id: u32, input: Input) {
        let packet = self.in_flight[id];
        let (from, at) = (self.links.start(input.link), self.links.end(input.link));
        let tree = self.trees.as_mut().and_then(|trees| trees.get(packet.destination));
        let Some(Tree::Combine(tree)) = tree else { return };
        let result = tree.result;
        let ready = tree.arrive(from, at, packet.tail);
        if packet.message != result {
            self.messages[packet.message].missing -= 1;
            if self.messages[packet.message].missing == 0 {
                self.messages.remove(packet.message);
            }
        }
        let Some((branch, tail)) = ready else {
            self.in_flight.remove(id);
            return self.release_buffer(&packet, input);
        };
        let stage = Stage::on_link(input.link, NONE);
        let reduced = Packet { message: result, tail, stage, next: NONE, ..packet };
        self.in_flight[id] = onto(reduced, branch);
        self.put_onto(branch, id, input);
    }

    fn put_onto(&mut self, branch: Branch, id: u32, input: Input) {
        let link = self.with_least_wait(branch.link, self.links.end(input.link));
        self.links[link].backlog += u64::from(self.in_flight[id].bytes);
        self.put(link, id, input, false);
    }

    /// The result of a combine has arrived: so have the contributions.
    #[cold]
    pub(super) fn deliver_combined(&mut self, result: u32) {
        let message = self.messages.remove(result);
        let Some(destination) = self.results.remove(&result) else { return };
        let tree = self.trees.as_mut().and_then(|trees| trees.remove(destination));
        let Some(Tree::Combine(tree)) = tree else { return };
        for ticket in tree.tickets {
            let contribution = self.messages.put(Message { ticket, ..message });
            self.events.push(self.events.now(), Event::Deliver(contribution));
        }
    }
}

/// A packet on a link of a tree.
fn onto(packet: Packet, branch: Branch) -> Packet {
    match branch.last {
        Some((destination, message)) => Packet { destination, message, ..packet },
        None => packet,
    }
}
