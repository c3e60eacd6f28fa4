//! Nodes: a queue for each class or for several, and injection of at most one flit per cycle.

use std::collections::BTreeMap;

use super::parts::{Flit, Output, Packet};
use super::{Rules, count};
use crate::packet::{Head, Source};
use crate::settings::VcRange;

/// The packet that is being injected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Injecting {
    pub(super) packet: u64,
    flits: u32,
    left: u32,
}

/// A node's packets of one class, or of several.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// When its next packet is created, if known.
    next: Option<u64>,
    pub(super) injecting: Option<Injecting>,
    /// The VC of the last packet that was started.
    last_vc: Option<u32>,
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    id: u32,
    pub(super) output: Output,
    pub(super) queues: Vec<Queue>,
    last_queue: usize,
}

impl Node {
    pub(super) fn new(id: u32, output: Output, queues: usize) -> Node {
        let queue = Queue { next: None, injecting: None, last_vc: None };
        Node { id, output, queues: vec![queue; queues], last_queue: 0 }
    }

    /// Polls when the next packet of a queue is created.
    pub(super) fn expect(&mut self, queue: usize, source: &mut impl Source) {
        self.queues[queue].next = source.next_at(self.id, in_byte(queue));
    }

    /// Takes due packets for empty queues.
    pub(super) fn load(
        &mut self,
        now: u64,
        serial: &mut u64,
        packets: &mut BTreeMap<u64, Packet>,
        source: &mut impl Source,
    ) {
        for (number, queue) in self.queues.iter_mut().enumerate() {
            if queue.injecting.is_some() || queue.next.is_none_or(|next| next > now) {
                continue;
            }
            queue.next = None;
            let order = source.take(self.id, in_byte(number), now);
            let head = Head {
                serial: *serial,
                source: self.id,
                destination: order.destination,
                intermediate: order.destination,
                hops: 0,
                class: order.class,
                phase: 0,
            };
            packets.insert(*serial, Packet { head, order, injected: 0, head_arrived: 0 });
            let (flits, left) = (order.flits, order.flits);
            queue.injecting = Some(Injecting { packet: *serial, flits, left });
            *serial += 1;
        }
    }

    /// The flit that is injected now, if any, and its queue.
    pub(super) fn inject(
        &mut self,
        rules: &Rules<'_>,
        packets: &mut BTreeMap<u64, Packet>,
    ) -> Option<(Flit, usize)> {
        if self.output.is_busy(rules.picoseconds) {
            return None;
        }
        let (number, vc) = self.choose(rules, packets)?;
        let queue = &mut self.queues[number];
        let injecting = queue.injecting.as_mut()?;
        let head = injecting.left == injecting.flits;
        injecting.left -= 1;
        let flit = Flit { packet: injecting.packet, head, tail: injecting.left == 0, vc };
        if head {
            self.output.take(vc);
            queue.last_vc = Some(vc);
            packets.get_mut(&flit.packet)?.injected = rules.now;
        }
        if flit.tail {
            queue.injecting = None;
        }
        self.last_queue = number;
        self.output.use_credit(&flit, rules.settings);
        Some((flit, number))
    }

    /// The queue that injects, and the VC: the ready packet with the highest priority, then the next
    /// in turn. With a held switch a packet goes on before others of its priority.
    fn choose(&self, rules: &Rules<'_>, packets: &BTreeMap<u64, Packet>) -> Option<(usize, u32)> {
        let mut order: Vec<usize> = (1..=self.queues.len())
            .map(|step| (self.last_queue + step) % self.queues.len())
            .collect();
        if rules.settings.hold_switch && self.is_inside_packet(self.last_queue) {
            order.rotate_right(1);
        }
        let mut best: Option<(usize, u32, i64)> = None;
        for queue in order {
            let Some(injecting) = self.queues[queue].injecting else { continue };
            let priority = packets[&injecting.packet].priority(rules.settings);
            if best.is_some_and(|(_, _, highest)| highest >= priority) {
                continue;
            }
            if let Some(vc) = self.vc_for(queue, rules, packets) {
                best = Some((queue, vc, priority));
            }
        }
        best.map(|(queue, vc, _)| (queue, vc))
    }

    fn is_inside_packet(&self, queue: usize) -> bool {
        self.queues[queue].injecting.is_some_and(|injecting| injecting.left < injecting.flits)
    }

    /// Where the next flit of a queue can go: the packet's VC, or for a head the next free VC in
    /// turn with enough buffer space. After a packet with other VCs only the first is tried.
    fn vc_for(
        &self,
        number: usize,
        rules: &Rules<'_>,
        packets: &BTreeMap<u64, Packet>,
    ) -> Option<u32> {
        let queue = &self.queues[number];
        let injecting = queue.injecting?;
        if self.is_inside_packet(number) {
            return queue.last_vc.filter(|&vc| self.output.vcs[vc as usize].credits > 0);
        }
        let head = &packets[&injecting.packet].head;
        let vcs = rules.settings.classes[usize::from(head.class)];
        let range = rules.routing.injects(head, vcs);
        let VcRange { first, last } = range;
        let needed = if rules.settings.cut_through { injecting.flits } else { 1 };
        let fits = |vc: &u32| {
            let vc = &self.output.vcs[*vc as usize];
            !vc.taken && vc.credits >= needed
        };
        match queue.last_vc.filter(|vc| (first..=last).contains(vc)) {
            None => Some(first).filter(fits),
            Some(vc) => (1..=range.count())
                .map(|step| first + (vc - first + step) % range.count())
                .find(fits),
        }
    }
}

/// Queues are counted in a byte.
fn in_byte(queue: usize) -> u8 {
    u8::try_from(count(queue)).expect("at most 256 classes, and a queue for each")
}
