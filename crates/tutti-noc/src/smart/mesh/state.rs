//! Packets in flight.

use super::super::message::{FlowId, NodeSet};

/// No packet.
pub(super) const NO_PACKET: u32 = u32::MAX;

/// The kind of a packet, as routers treat it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    One,
    Many,
    /// A response that may be combined with others of its flow.
    Response(FlowId),
    /// A response that is not combined.
    Single(FlowId),
}

/// A packet in flight. Fields that every hop reads come first.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Packet {
    pub(super) kind: Kind,
    /// Its destination; for a multicast on private trees, the corner.
    pub(super) destination: u32,
    /// VCs and NIC queues that hold it.
    pub(super) holders: u32,
    /// For a multicast: the nodes that it has not reached.
    pub(super) members: NodeSet,
    pub(super) class: u8,
    /// For a multicast on private trees.
    pub(super) corner: u8,
    pub(super) flits: u16,
    /// Flits that the NIC has injected.
    pub(super) injected: u16,
    pub(super) source: u32,
    pub(super) serial: u64,
    pub(super) created: u64,
    pub(super) tag: u64,
    pub(super) value: u64,
}

#[inline]
pub(super) fn index(number: u64) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "the index of a vector")]
    let index = number as usize;
    index
}

/// Packets in flight, by slot; slots are reused.
#[derive(Clone, Debug, Default)]
pub(super) struct Packets {
    slots: Vec<Packet>,
    free: Vec<u32>,
    pub(super) alive: u64,
    sent: u64,
}

impl Packets {
    /// Adds a packet with one holder, its NIC's queue.
    pub(super) fn add(&mut self, mut packet: Packet) -> u32 {
        packet.serial = self.sent;
        self.sent += 1;
        self.alive += 1;
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = packet;
                slot
            }
            None => {
                self.slots.push(packet);
                u32::try_from(self.slots.len() - 1).expect("fewer packets than 2^32")
            }
        }
    }

    #[inline]
    pub(super) fn get(&self, packet: u32) -> &Packet {
        &self.slots[packet as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, packet: u32) -> &mut Packet {
        &mut self.slots[packet as usize]
    }

    /// The flow of a combinable response.
    #[inline]
    pub(super) fn flow(&self, packet: u32) -> Option<FlowId> {
        match self.get(packet).kind {
            Kind::Response(flow) => Some(flow),
            _ => None,
        }
    }

    /// The number of holders of all packets.
    #[cfg(debug_assertions)]
    pub(super) fn holders(&self) -> u64 {
        self.slots.iter().map(|packet| u64::from(packet.holders)).sum()
    }

    /// Removes a holder; a slot without holders is free.
    #[inline]
    pub(super) fn release_holder(&mut self, packet: u32) {
        let holders = &mut self.slots[packet as usize].holders;
        *holders -= 1;
        if *holders == 0 {
            let members = &self.slots[packet as usize].members;
            assert!(members.is_empty(), "a multicast has not reached {members:?}");
            self.alive -= 1;
            self.free.push(packet);
        }
    }
}
