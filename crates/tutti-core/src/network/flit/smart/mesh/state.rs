//! Packets under way, VCs and what they hold.

use super::super::message::{FlowId, NodeSet};
use super::super::settings::{Fault, Settings};
use super::geometry::{LOCAL, PORTS, port_of, router_of};

/// No packet.
pub(super) const NOBODY: u32 = u32::MAX;

/// What a packet is to routers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    One,
    Many,
    /// An answer that may be combined with others of its flow.
    Answer(FlowId),
    /// An answer that may not.
    Single(FlowId),
}

/// A packet under way.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) serial: u64,
    pub(super) created: u64,
    pub(super) tag: u64,
    pub(super) source: u32,
    /// Its node; of a multicast on private trees the corner's.
    pub(super) destination: u32,
    pub(super) kind: Kind,
    pub(super) class: u8,
    /// Of a multicast on private trees.
    pub(super) corner: u8,
    pub(super) flits: u32,
    /// Flits that NIC has injected.
    pub(super) injected: u32,
    pub(super) value: u64,
    /// Of a multicast: whom it has not reached.
    pub(super) members: NodeSet,
    /// VCs and NIC queues that hold it.
    pub(super) holders: u32,
}

/// A VC.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vc {
    /// Whose flits it holds, or has been given to.
    pub(super) packet: u32,
    /// How far on the way of a multicast its flit is: to the corner, before the turn, after it.
    pub(super) stage: u8,
    /// Outputs that its first flit still has to go to.
    pub(super) mask: u8,
    /// Flits of the packet that have been granted the way here, have come, and have left; those that passed
    /// are counted in all three.
    pub(super) due: u32,
    pub(super) come: u32,
    pub(super) left: u32,
    /// The cycle in which its first flit came.
    pub(super) since: u64,
    /// Of answers: how many it stands for, and their value.
    pub(super) count: u32,
    pub(super) value: u64,
}

const EMPTY: Vc = Vc {
    packet: NOBODY,
    stage: 0,
    mask: 0,
    due: 0,
    come: 0,
    left: 0,
    since: 0,
    count: 0,
    value: 0,
};

/// Where a VC is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// Router x ports + port.
    pub(super) input: u32,
    pub(super) vc: u8,
}

/// All VCs.
#[derive(Clone, Debug)]
pub(super) struct Vcs {
    /// VCs of a port.
    pub(super) per_port: u8,
    slots: Vec<Vc>,
    /// By input: a bit for each VC with a flit that can go.
    pub(super) ready: Vec<u64>,
    /// By input: a bit for each VC that nobody may be given.
    pub(super) taken: Vec<u64>,
    /// A bit for each router that may have a flit that can go.
    pub(super) busy: Vec<u64>,
    /// By class and stage: the VCs.
    pools: Vec<[u64; 3]>,
    /// By cycle modulo its length: VCs that are free after it.
    releases: Vec<Vec<Place>>,
    credit_delay: u64,
}

impl Vcs {
    pub(super) fn new(settings: &Settings) -> Vcs {
        let mut pools = Vec::new();
        let mut per_port = 0;
        for class in &settings.classes {
            let counts = settings.stages(class);
            let mut masks = [0; 3];
            for (mask, &count) in masks.iter_mut().zip(&counts) {
                *mask = (per_port..per_port + count).fold(0, |mask, vc| mask | 1 << vc);
                per_port += count;
            }
            if counts.len() == 1 || settings.fault == Some(Fault::SharedVcs) {
                masks = [masks[0]; 3];
            }
            pools.push(masks);
        }
        let inputs = settings.nodes() as usize * PORTS;
        Vcs {
            per_port: u8::try_from(per_port).expect("at most 64 VCs"),
            slots: vec![EMPTY; inputs * per_port as usize],
            ready: vec![0; inputs],
            taken: vec![0; inputs],
            busy: vec![0; (settings.nodes() as usize).div_ceil(64)],
            pools,
            releases: vec![Vec::new(); settings.credit_delay as usize + 1],
            credit_delay: u64::from(settings.credit_delay),
        }
    }

    #[inline]
    pub(super) fn at(&self, place: Place) -> &Vc {
        &self.slots[place.input as usize * usize::from(self.per_port) + usize::from(place.vc)]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, place: Place) -> &mut Vc {
        &mut self.slots[place.input as usize * usize::from(self.per_port) + usize::from(place.vc)]
    }

    /// Whether a pool has a VC to give at an input.
    #[inline]
    pub(super) fn has_room(&self, input: u32, (class, stage): (u8, u8)) -> bool {
        let pool = self.pools[usize::from(class)][usize::from(stage)];
        self.taken[input as usize] & pool != pool
    }

    /// The VC that a packet has in a pool.
    pub(super) fn of_packet(
        &self,
        input: u32,
        (class, stage): (u8, u8),
        packet: u32,
    ) -> Option<Place> {
        let mut bits =
            self.pools[usize::from(class)][usize::from(stage)] & self.taken[input as usize];
        while bits != 0 {
            let place = Place { input, vc: low_bit(bits) };
            if self.at(place).packet == packet {
                return Some(place);
            }
            bits &= bits - 1;
        }
        None
    }

    /// Gives a packet the lowest VC of a pool that is not taken.
    pub(super) fn give(&mut self, input: u32, (class, stage): (u8, u8), packet: u32) -> Place {
        let pool = self.pools[usize::from(class)][usize::from(stage)];
        let free = pool & !self.taken[input as usize];
        assert!(free != 0, "no VC is left at input {input} for class {class}, stage {stage}");
        let place = Place { input, vc: low_bit(free) };
        self.taken[input as usize] |= 1 << place.vc;
        *self.at_mut(place) = Vc { packet, stage, ..EMPTY };
        place
    }

    /// Marks that the first flit of a VC can go.
    #[inline]
    pub(super) fn set_ready(&mut self, place: Place) {
        self.ready[place.input as usize] |= 1 << place.vc;
        let router = router_of(place.input) as usize;
        self.busy[router / 64] |= 1 << (router % 64);
    }

    /// Marks that a VC holds no flit now.
    #[inline]
    pub(super) fn set_bare(&mut self, place: Place) {
        self.ready[place.input as usize] &= !(1 << place.vc);
    }

    /// A packet's last flit has left its VC, or passed it.
    pub(super) fn vacate(&mut self, place: Place, now: u64) {
        self.set_bare(place);
        self.at_mut(place).packet = NOBODY;
        let local = port_of(place.input) == LOCAL;
        let wait = if local { 0 } else { self.credit_delay };
        let length = self.releases.len() as u64;
        self.releases[index((now + wait) % length)].push(place);
    }

    /// What came for a VC was not kept: nothing ever was in it.
    pub(super) fn forgo(&mut self, place: Place, now: u64) {
        self.at_mut(place).packet = NOBODY;
        let length = self.releases.len() as u64;
        self.releases[index(now % length)].push(place);
    }

    /// Ends a cycle: VCs that were taken up to it are free.
    pub(super) fn release(&mut self, now: u64) {
        let length = self.releases.len() as u64;
        let due = &mut self.releases[index(now % length)];
        for place in due.drain(..) {
            self.taken[place.input as usize] &= !(1 << place.vc);
        }
    }

    /// How many cycles releases reach ahead.
    pub(super) fn horizon(&self) -> u64 {
        self.releases.len() as u64
    }
}

#[inline]
pub(super) fn low_bit(bits: u64) -> u8 {
    #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
    let bit = bits.trailing_zeros() as u8;
    bit
}

#[inline]
pub(super) fn index(number: u64) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "the index of a vector")]
    let index = number as usize;
    index
}

/// Packets under way, by slot; slots are used again.
#[derive(Clone, Debug, Default)]
pub(super) struct Packets {
    slots: Vec<Packet>,
    free: Vec<u32>,
    pub(super) alive: u64,
    sent: u64,
}

impl Packets {
    /// Takes a packet in, held once, by its NIC's queue.
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

    /// How often packets are held, in all.
    #[cfg(debug_assertions)]
    pub(super) fn holders(&self) -> u64 {
        self.slots.iter().map(|packet| u64::from(packet.holders)).sum()
    }

    /// One holder less; the slot is free when there is none.
    #[inline]
    pub(super) fn let_go(&mut self, packet: u32) {
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
