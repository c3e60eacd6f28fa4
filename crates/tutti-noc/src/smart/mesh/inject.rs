//! NICs: queues of packets, and a flit per cycle into the router.

use super::super::message::{Cast, Message, NodeSet};
use super::super::record::EventKind;
use super::super::settings::Tree;
use super::Mesh;
use super::geometry::{Geometry, LOCAL, input_of, router_of};
use super::state::{Kind, Packet};
use super::tables::Fate;
use super::vcs::{ON_TREE, RESPONSE, RouteState, SEVERAL, TO_TREE, VcId, low_bit, pool_of};

impl Mesh {
    /// Puts a packet into its NIC's queue.
    pub(super) fn enqueue(&mut self, message: &Message) {
        let node = message.source;
        let mut packet = Packet {
            kind: Kind::One,
            destination: node,
            holders: 1,
            members: NodeSet::new(),
            class: message.class,
            corner: 0,
            flits: u16::try_from(message.flits).expect("no more flits than a VC holds"),
            injected: 0,
            source: node,
            serial: 0,
            created: message.created,
            tag: message.tag,
            value: 0,
        };
        match &message.cast {
            &Cast::One(to) => packet.destination = to,
            Cast::Many(members) => {
                packet.kind = Kind::Many;
                packet.members = members.clone();
                packet.corner = self.geometry.corner_of(node);
                if self.geometry.tree == Some(Tree::Private) {
                    packet.destination = self.geometry.corner_node(packet.corner);
                }
            }
            &Cast::Response(id, value) => {
                let combines = self.tables.combines(id);
                let flow = self.flows.get(id);
                packet.kind = if combines { Kind::Response(id) } else { Kind::Single(id) };
                (packet.destination, packet.created) = (flow.destination, flow.created);
                (packet.tag, packet.value) = (flow.tag, value);
            }
        }
        let class = usize::from(packet.class);
        let slot = self.packets.add(packet);
        self.push(node, class, slot);
    }

    /// Puts a packet into a queue of a NIC.
    #[inline]
    fn push(&mut self, node: u32, class: usize, slot: u32) {
        self.queues[node as usize * self.settings.classes.len() + class].push_back(slot);
        self.classes_queued[node as usize] |= 1 << class;
        self.queued[node as usize / 64] |= 1 << (node % 64);
        self.waiting += 1;
    }

    /// Lets every NIC inject a flit.
    pub(super) fn inject(&mut self) {
        if self.waiting == 0 {
            return;
        }
        for word in 0..self.queued.len() {
            let mut bits = self.queued[word];
            while bits != 0 {
                let node = 64 * word + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if !self.inject_at(node) {
                    self.queued[word] &= !(1 << (node % 64));
                }
            }
        }
        self.tables.settle();
    }

    /// Injects a flit at a node, if possible; returns whether a packet was queued there.
    fn inject_at(&mut self, node: usize) -> bool {
        let classes = self.settings.classes.len();
        let (queued, later) = (self.classes_queued[node], u16::MAX << self.turns[node]);
        let router = u32::try_from(node).expect("nodes are counted in 32 bits");
        for mut bits in [queued & later, queued & !later] {
            while bits != 0 {
                let class = low_bit(u64::from(bits));
                bits &= bits - 1;
                let queue = &self.queues[node * classes + usize::from(class)];
                let packet = *queue.front().expect("what is queued");
                if self.inject_flit(router, packet) {
                    let last = usize::from(class) + 1 == classes;
                    self.turns[node] = if last { 0 } else { class + 1 };
                    return true;
                }
            }
        }
        queued != 0
    }

    /// Injects the next flit of the packet at the front of its queue, if possible.
    fn inject_flit(&mut self, router: u32, slot: u32) -> bool {
        let input = input_of(router, LOCAL);
        let packet = self.packets.get(slot);
        let (kind, class, number) = (packet.kind, packet.class, packet.injected);
        let pool = pool_of(class, 0);
        let own = if number > 0 { self.vcs.of_packet(input, pool, slot) } else { None };
        if own.is_none() && self.is_blocked(input, pool, kind) {
            return false;
        }
        self.counts.injected += 1;
        self.watchdog.moved(self.now);
        self.note(router, slot, EventKind::Injected);
        let (mut count, mut value) = (1, self.packets.get(slot).value);
        self.counts.table_reads += u64::from(matches!(kind, Kind::Response(_)));
        let fate = match kind {
            Kind::Response(flow) => self.tables.arrives(flow, router, count, value),
            _ => Fate::Continues(count, value),
        };
        match fate {
            Fate::Continues(all, combined) => (count, value) = (all, combined),
            other => {
                self.combine(router, slot, other, count, value);
                self.dequeue(router, slot);
                return true;
            }
        }
        let place = own.unwrap_or_else(|| self.give(input, pool, slot));
        let mask = self.first_mask(router, slot);
        let vc = self.vcs.at_mut(place);
        (vc.due, vc.mask) = (vc.due + 1, mask);
        self.fill(place, count, value);
        let packet = self.packets.get_mut(slot);
        packet.injected += 1;
        if packet.injected == packet.flits {
            self.dequeue(router, slot);
        }
        true
    }

    /// Whether a flit that needs a VC of a pool must wait for one.
    #[inline]
    fn is_blocked(&self, input: u32, pool: u8, kind: Kind) -> bool {
        if self.vcs.has_free_vc(input, pool) {
            return false;
        }
        match kind {
            Kind::Response(flow) => self.tables.needs_buffer(flow, router_of(input)),
            _ => true,
        }
    }

    fn dequeue(&mut self, router: u32, slot: u32) {
        let class = usize::from(self.packets.get(slot).class);
        let queue = &mut self.queues[router as usize * self.settings.classes.len() + class];
        queue.pop_front();
        if queue.is_empty() {
            self.classes_queued[router as usize] &= !(1 << class);
        }
        self.waiting -= 1;
        self.packets.release_holder(slot);
    }

    /// The outputs of a packet at its source, and of a multicast at any router before its corner.
    pub(super) fn first_mask(&self, router: u32, slot: u32) -> u8 {
        let packet = self.packets.get(slot);
        if packet.kind == Kind::Many {
            if self.geometry.tree == Some(Tree::Shared) {
                return self.geometry.shared_root(router);
            }
            if packet.destination == router {
                let (straight, turn) = Geometry::straight_and_turn(packet.corner);
                let nic = u8::from(packet.members.contains(router)) << LOCAL;
                return 1 << straight | 1 << turn | nic;
            }
        }
        1 << self.geometry.towards(router, packet.destination).0
    }

    /// Allocates a VC to a packet.
    #[inline]
    pub(super) fn give(&mut self, input: u32, pool: u8, slot: u32) -> VcId {
        let route = self.route(router_of(input), pool, slot);
        self.packets.get_mut(slot).holders += 1;
        self.vcs.give(input, pool, slot, route)
    }

    /// The state of a packet in a VC of a pool that a router needs.
    fn route(&self, router: u32, pool: u8, slot: u32) -> RouteState {
        let packet = self.packets.get(slot);
        let alone = pool_of(packet.class, 0);
        let (straight, pools) = (0, [alone; 2]);
        match packet.kind {
            Kind::Response(_) | Kind::Single(_) => RouteState { flags: RESPONSE, straight, pools },
            Kind::One => {
                RouteState { flags: if packet.flits > 1 { SEVERAL } else { 0 }, straight, pools }
            }
            Kind::Many if self.geometry.tree == Some(Tree::Shared) => {
                RouteState { flags: ON_TREE, straight, pools }
            }
            Kind::Many if pool == alone && router != packet.destination => {
                RouteState { flags: TO_TREE, straight, pools }
            }
            Kind::Many => {
                let (straight, _) = Geometry::straight_and_turn(packet.corner);
                let turned = pool == alone + 2;
                let straight = if turned { 0 } else { 1 << straight };
                RouteState { flags: ON_TREE, straight, pools: [alone + 1, alone + 2] }
            }
        }
    }

    /// Writes a flit into a VC.
    pub(super) fn fill(&mut self, place: VcId, count: u32, value: u64) {
        self.counts.buffer_writes += 1;
        self.vcs.arrives(place, self.now);
        let vc = self.vcs.at(place);
        if !vc.is(RESPONSE) {
            return;
        }
        let slot = vc.packet;
        self.vcs.set_sum(place, (count, value));
        if let Kind::Response(flow) = self.packets.get(slot).kind {
            self.tables.is_at(flow, router_of(place.input), place);
            self.counts.responses_buffered += 1;
            self.may_hold(place, slot, flow);
        }
    }

    /// A response that is not buffered is merged into another.
    pub(super) fn combine(&mut self, router: u32, slot: u32, fate: Fate, count: u32, value: u64) {
        self.counts.merged += 1;
        let Fate::MergedInto(place) = fate else {
            self.note(router, slot, EventKind::Dropped);
            return;
        };
        self.note(router, slot, EventKind::Merged);
        let Kind::Response(flow) = self.packets.get(slot).kind else { return };
        let both = self.tables.joined(flow, self.vcs.sum(place), (count, value));
        self.vcs.set_sum(place, both);
    }
}
