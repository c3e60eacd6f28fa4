//! Messages of schedules over a flit network.
//!
//! A message is cut into packets, these into flits; a flit of each packet, its head, may be there for the
//! route alone. A node injects its messages one after the other, in the order in which they were sent, from
//! the cycle on in which the model says that their first byte leaves. A message has arrived when the last
//! flit of it has, and never before the model says.

use std::collections::{BTreeMap, VecDeque};

use super::packet::{Delivery, Order, Source};
use super::{FlitError, Network, Wiring};
use crate::network::packet::Ends;
use crate::network::{Carried, Carrier, Ticket};
use crate::units::{Bytes, Time, TimePerByte};

/// How messages are cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packing {
    flit: Bytes,
    packet: u32,
    header: u32,
}

impl Packing {
    /// Flits of so many bytes of a message each; packets of at most `packet` flits, of which `header` carry
    /// nothing of the message.
    ///
    /// # Errors
    /// When flits carry nothing, or packets have no flit for the message.
    pub fn new(flit: Bytes, packet: u32, header: u32) -> Result<Packing, FlitError> {
        if flit == Bytes(0) {
            let expected = "at least 1 B".to_owned();
            return Err(FlitError::OutOfRange { what: "flit", value: 0, expected });
        }
        if packet <= header {
            let (value, expected) =
                (u64::from(packet), format!("more than the header of {header}"));
            return Err(FlitError::OutOfRange { what: "flits of a packet", value, expected });
        }
        Ok(Packing { flit, packet, header })
    }

    /// The most flits of a packet.
    #[must_use]
    pub fn packet(&self) -> u32 {
        self.packet
    }

    /// Flits that so many bytes fill; at least one.
    fn flits(&self, bytes: Bytes) -> u64 {
        bytes.0.div_ceil(self.flit.0).max(1)
    }
}

/// After so many cycles without a flit that moves, packets under way are deadlocked.
const PATIENCE: u64 = 10_000;

/// Carries messages as packets of flits.
pub struct FlitCarrier {
    network: Network,
    messages: Messages,
}

/// A message that is not wholly there.
#[derive(Clone, Copy)]
struct Message {
    ticket: Ticket,
    destination: u32,
    /// The cycle in which its first flit can be injected.
    start: u64,
    /// When the model says that it is there.
    arrival: Time,
    /// Flits that are still to be put into packets.
    uncut: u64,
    /// Packets that have not arrived, as far as there are any, and whether there will be more.
    missing: u64,
}

/// The messages of all nodes.
struct Messages {
    packing: Packing,
    cycle: u64,
    included: TimePerByte,
    /// By number, which is the tag of its packets.
    all: BTreeMap<u64, Message>,
    /// Per node, the messages that it has still to inject.
    queues: Vec<VecDeque<u64>>,
    /// Nodes that have been asked in vain.
    asked: Vec<bool>,
    stirred: Vec<(u32, u8)>,
    next: u64,
    /// Those that are there, not yet told: in order of time.
    done: VecDeque<(Ticket, Time)>,
}

impl FlitCarrier {
    /// An empty network with nodes for ranks.
    #[must_use]
    pub fn new(network: Network, wiring: &Wiring, packing: Packing, ends: Ends) -> FlitCarrier {
        let nodes = wiring.nodes() as usize;
        let messages = Messages {
            packing,
            cycle: wiring.cycle().ps(),
            included: ends.hands_over,
            all: BTreeMap::new(),
            queues: vec![VecDeque::new(); nodes],
            asked: vec![true; nodes],
            stirred: Vec::new(),
            next: 0,
            done: VecDeque::new(),
        };
        FlitCarrier { network, messages }
    }

    /// The network, for what its channels did.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }
}

impl Carrier for FlitCarrier {
    const CONTENDED: bool = true;

    fn carry(&mut self, ticket: Ticket, message: Carried) {
        let Messages { cycle, included, .. } = self.messages;
        // The model's arrival counts the time at the port; the first byte leaves that much before.
        let head = message.arrival - included.of(message.bytes).min(message.arrival);
        if message.source == message.destination {
            let place = self.messages.done.partition_point(|&(_, time)| time <= message.arrival);
            self.messages.done.insert(place, (ticket, message.arrival));
            return;
        }
        let start = head.ps().div_ceil(cycle).max(self.network.now());
        self.messages.put(
            message.source.0,
            Message {
                ticket,
                destination: message.destination.0,
                start,
                arrival: message.arrival,
                uncut: self.messages.packing.flits(message.bytes),
                missing: 0,
            },
        );
    }

    fn next_arrival(&mut self) -> Option<(Ticket, Time)> {
        // What has been told of lies in the past: a message is there only when no other, still under
        // way, can be there before it.
        let (mut moves, mut since) = (self.network.moves(), self.network.now());
        while !self.messages.all.is_empty() {
            let now = Time::from_ps(self.network.now().saturating_mul(self.messages.cycle));
            if self.messages.done.front().is_some_and(|&(_, time)| time <= now) {
                break;
            }
            self.network.step(&mut self.messages);
            self.network.rest();
            if self.network.now() - since >= PATIENCE {
                let stands = self.network.moves() == moves && self.network.under_way() > 0;
                if stands {
                    return None;
                }
                (moves, since) = (self.network.moves(), self.network.now());
            }
        }
        self.messages.done.pop_front()
    }
}

impl Messages {
    fn put(&mut self, node: u32, message: Message) {
        self.all.insert(self.next, message);
        self.queues[node as usize].push_back(self.next);
        if std::mem::take(&mut self.asked[node as usize]) {
            self.stirred.push((node, 0));
        }
        self.next += 1;
    }
}

impl Source for Messages {
    fn next_at(&mut self, node: u32, _: u8) -> Option<u64> {
        let first = self.queues[node as usize].front();
        self.asked[node as usize] = first.is_none();
        first.map(|number| self.all[number].start)
    }

    fn take(&mut self, node: u32, class: u8) -> Order {
        let queue = &mut self.queues[node as usize];
        let number = *queue.front().expect("next_at told of a message");
        let message = self.all.get_mut(&number).expect("a message in a queue has not arrived");
        let room = u64::from(self.packing.packet - self.packing.header);
        let carried = message.uncut.min(room);
        message.uncut -= carried;
        message.missing += 1;
        if message.uncut == 0 {
            queue.pop_front();
        }
        let flits = u32::try_from(carried).unwrap_or(u32::MAX) + self.packing.header;
        let (created, destination) = (message.start, message.destination);
        Order { created, destination, flits, class, priority: 0, tag: number }
    }

    fn delivered(&mut self, delivery: &Delivery) {
        let Some(message) = self.all.get_mut(&delivery.tag) else { return };
        message.missing -= 1;
        if message.missing > 0 || message.uncut > 0 {
            return;
        }
        let there = Time::from_ps(delivery.arrived.saturating_mul(self.cycle)).max(message.arrival);
        let place = self.done.partition_point(|&(_, time)| time <= there);
        self.done.insert(place, (message.ticket, there));
        self.all.remove(&delivery.tag);
    }

    fn stirred(&mut self, queues: &mut Vec<(u32, u8)>) {
        queues.append(&mut self.stirred);
    }
}
