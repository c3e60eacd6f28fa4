//! Nodes: queues of packets, and injection of a flit per cycle.

use super::bits::Members;
use super::state::{Flit, INJECTING, NONE, NetworkState};
use super::wheel::Calendar;
use super::{Network, Packet};
use crate::packet::{Head, Source};
use crate::settings::Settings;
use crate::{Priority, VcRange, Wiring};

/// A node's packets of one class, or of several.
#[derive(Clone, Copy, Debug)]
struct Queue {
    /// The packet being injected.
    packet: u32,
    /// Its flits, and the number of them that are still to be injected.
    flits: u32,
    left: u32,
    /// The VC of the packet; of the last one, between packets.
    vc: u32,
}

impl Queue {
    /// Whether a packet of it is partly injected.
    fn is_open(&self) -> bool {
        self.packet != NONE && self.left < self.flits
    }
}

/// All nodes.
pub(super) struct Nodes {
    queues: Vec<Queue>,
    /// The number of queues of a node.
    per_node: usize,
    /// Per node, the queue of the last injected flit.
    last_queue: Vec<usize>,
    /// Per node, how many of its queues have a packet.
    open: Vec<u32>,
    active: Members,
    /// Queues whose next packet is created in a later cycle, and by queue that cycle.
    due: Calendar,
    due_at: Vec<u64>,
    /// The first output port of nodes.
    first_port: usize,
    serial: u64,
    started: bool,
    /// Whether nodes inject before the cycle of the network starts, and the queues whose next
    /// packet is due in it.
    early: bool,
    pub(super) reloaded: Vec<u32>,
}

impl Nodes {
    pub(super) fn new<const W: usize>(
        wiring: &Wiring,
        settings: &Settings,
        layout: &NetworkState<W>,
    ) -> Nodes {
        let (nodes, per_node) = (wiring.nodes() as usize, settings.queues_per_node());
        let queue = Queue { packet: NONE, flits: 0, left: 0, vc: NONE };
        Nodes {
            queues: vec![queue; nodes * per_node],
            per_node,
            last_queue: vec![0; nodes],
            open: vec![0; nodes],
            active: Members::new(nodes),
            due: Calendar::new(),
            due_at: vec![0; nodes * per_node],
            first_port: layout.out_ports.len() - nodes,
            serial: 0,
            started: false,
            early: false,
            reloaded: Vec::new(),
        }
    }

    pub(super) fn set_early(&mut self, early: bool) {
        self.early = early;
    }

    /// The number of nodes.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.open.len()
    }

    /// Whether no packet is being injected.
    pub(super) fn are_idle(&self) -> bool {
        self.started && !self.active.any()
    }

    /// The next cycle in which a packet is due.
    pub(super) fn next_due(&self, now: u64) -> Option<u64> {
        self.due.next(now)
    }
}

impl<const W: usize> Network<W> {
    /// Nodes inject, a flit each.
    pub(super) fn inject<S: Source>(&mut self, source: &mut S) {
        let mut due = self.nodes.due.take(self.now);
        self.begin(source, &mut due);
        if self.clocks.is_some() {
            self.inject_before(source, &mut due);
        }
        // Packets are numbered in the order of nodes and queues.
        due.sort_unstable();
        for &queue in &due {
            self.load(queue, source);
        }
        self.nodes.due.restore(self.now, due);
        self.inject_active(source);
    }

    /// Nodes with packets inject.
    #[inline]
    pub(super) fn inject_active<S: Source>(&mut self, source: &mut S) {
        for index in 0..self.nodes.active.words() {
            let mut word = self.nodes.active.word(index);
            while word != 0 {
                let node = index * 64 + super::bits::low(word);
                word &= word - 1;
                self.inject_at(node, source);
            }
        }
    }

    /// Polls the source for new packets: of all queues in the first cycle, then of those it names.
    fn begin<S: Source>(&mut self, source: &mut S, due: &mut Vec<u32>) {
        if self.nodes.started {
            let mut refilled = std::mem::take(&mut self.scratch.refilled);
            source.refilled(&mut refilled);
            for (node, queue) in refilled.drain(..) {
                due.extend(self.expect(node as usize, usize::from(queue), self.now, source));
            }
            source.hastened(&mut refilled);
            for (node, queue) in refilled.drain(..) {
                let index = node as usize * self.nodes.per_node + usize::from(queue);
                self.nodes.due.remove(self.nodes.due_at[index], super::count(index));
                due.extend(self.expect(node as usize, usize::from(queue), self.now, source));
            }
            self.scratch.refilled = refilled;
            return;
        }
        self.nodes.started = true;
        // All queues are polled now.
        source.refilled(&mut self.scratch.refilled);
        self.scratch.refilled.clear();
        for node in 0..self.nodes.open.len() {
            for queue in 0..self.nodes.per_node {
                due.extend(self.expect(node, queue, self.now, source));
            }
        }
    }

    /// Schedules the next packet of a queue, no sooner than `from`. Returns the queue if that is
    /// now.
    fn expect<S: Source>(
        &mut self,
        node: usize,
        queue: usize,
        from: u64,
        source: &mut S,
    ) -> Option<u32> {
        let created = source.next_at(super::count(node), in_byte(queue))?;
        let index = super::count(node * self.nodes.per_node + queue);
        let due = created.max(from);
        if due <= self.now {
            return Some(index);
        }
        self.nodes.due_at[index as usize] = due;
        self.nodes.due.push(self.now, due, index);
        None
    }

    /// Takes the next packet of a queue.
    fn load<S: Source>(&mut self, index: u32, source: &mut S) {
        let node = index as usize / self.nodes.per_node;
        let queue = in_byte(index as usize % self.nodes.per_node);
        let order = source.take(super::count(node), queue, self.now);
        let head = Head {
            serial: self.nodes.serial,
            source: super::count(node),
            destination: order.destination,
            intermediate: order.destination,
            hops: 0,
            class: order.class,
            phase: 0,
        };
        self.nodes.serial += 1;
        let packet = self.admit(Packet { head, order, injected: 0, head_arrived: 0 });
        let queue = &mut self.nodes.queues[index as usize];
        (queue.packet, queue.flits, queue.left) = (packet, order.flits, order.flits);
        self.nodes.open[node] += 1;
        self.nodes.active.set(node);
    }

    #[inline]
    fn inject_at<S: Source>(&mut self, node: usize, source: &mut S) {
        let port = self.nodes.first_port + node;
        if self.slow && !self.may_inject(node, port) {
            return;
        }
        let Some((number, vc)) = self.choose(node, port) else { return };
        let index = node * self.nodes.per_node + number;
        let queue = &mut self.nodes.queues[index];
        let (head, tail) = (queue.left == queue.flits, queue.left == 1);
        queue.left -= 1;
        queue.vc = vc;
        let flit = Flit::new(queue.packet, head, tail);
        let packet = queue.packet;
        let out = &mut self.out_ports[port];
        if head {
            out.free &= !(1 << vc);
            self.out_vcs[port * self.vcs + vc as usize].owner = INJECTING;
            self.packets[packet as usize].injected = self.now;
        }
        let out_vc = &mut self.out_vcs[port * self.vcs + vc as usize];
        out_vc.credits -= 1;
        out_vc.sent = out_vc.sent.wrapping_add(1);
        out.sent += 1;
        let mut arrives = self.now + u64::from(out.after);
        if self.slow {
            let serial = &mut self.serial[port];
            match &mut self.clocks {
                Some(clocks) => arrives = clocks.send(port, serial),
                None => serial.occupy(self.now * self.cycle, self.cycle),
            }
        }
        self.events.arrivals.push(arrives, (flit, out_vc.to));
        if tail {
            out_vc.owner = NONE;
            out.free |= u64::from(!self.settings.wait_for_tail_credit) << vc;
        }
        self.nodes.last_queue[node] = number;
        if tail {
            self.finish(node, number, source);
        }
    }

    /// The tail of a packet has been injected.
    fn finish<S: Source>(&mut self, node: usize, queue: usize, source: &mut S) {
        self.nodes.queues[node * self.nodes.per_node + queue].packet = NONE;
        self.nodes.open[node] -= 1;
        if self.nodes.open[node] == 0 {
            self.nodes.active.clear(node);
        }
        let from = self.now + u64::from(!self.nodes.early);
        let due = self.expect(node, queue, from, source);
        self.nodes.reloaded.extend(due);
    }

    /// Whether the channel of a node, and its clock, permit a flit now.
    fn may_inject(&self, node: usize, port: usize) -> bool {
        self.clocks.as_ref().is_none_or(|clocks| clocks.may_inject(node)) && self.can_send(port)
    }

    /// The queue that injects next, and the VC.
    #[inline]
    fn choose(&self, node: usize, port: usize) -> Option<(usize, u32)> {
        let queues = self.nodes.per_node;
        let mut best: Option<(usize, u32, i64)> = None;
        let mut number = self.nodes.last_queue[node];
        if self.settings.hold_switch && self.nodes.queues[node * queues + number].is_open() {
            // A partly injected packet precedes others of its priority.
            number = (number + queues - 1) % queues;
        }
        for _ in 0..queues {
            number = if number + 1 == queues { 0 } else { number + 1 };
            let queue = &self.nodes.queues[node * queues + number];
            if queue.packet == NONE {
                continue;
            }
            let Some(vc) = self.vc_for(queue, port) else { continue };
            let priority = self.priority(queue.packet);
            if best.is_none_or(|(_, _, other)| priority > other) {
                best = Some((number, vc, priority));
            }
        }
        best.map(|(number, vc, _)| (number, vc))
    }

    /// The VC for the next flit of a queue.
    #[inline]
    fn vc_for(&self, queue: &Queue, port: usize) -> Option<u32> {
        let credits = |vc: u32| u32::from(self.out_vcs[port * self.vcs + vc as usize].credits);
        if queue.left < queue.flits {
            return (credits(queue.vc) > 0).then_some(queue.vc);
        }
        let head = &self.packets[queue.packet as usize].head;
        let vcs = self.settings.classes[usize::from(head.class)];
        let VcRange { first, last } = self.routing.injects(head, vcs);
        let needed = if self.settings.cut_through { queue.flits } else { 1 };
        let fits = |vc: &u32| self.out_ports[port].free >> vc & 1 != 0 && credits(*vc) >= needed;
        if queue.vc < first || queue.vc > last {
            return Some(first).filter(fits);
        }
        (queue.vc + 1..=last).chain(first..=queue.vc).find(fits)
    }

    /// The priority of a packet.
    #[inline]
    pub(super) fn priority(&self, packet: u32) -> i64 {
        let order = &self.packets[packet as usize].order;
        match self.settings.priority {
            Priority::None => 0,
            Priority::Ordered => order.priority,
            Priority::Age => i64::MAX - i64::try_from(order.created).unwrap_or(i64::MAX),
        }
    }
}

/// Queues are counted in a byte.
#[expect(clippy::cast_possible_truncation, reason = "at most 256 classes, and a queue for each")]
fn in_byte(queue: usize) -> u8 {
    queue as u8
}
