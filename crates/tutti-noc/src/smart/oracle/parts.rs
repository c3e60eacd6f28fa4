//! The parts of a mesh: flits, and their buffers.

use std::collections::{BTreeSet, VecDeque};

use super::grid::Port;
use crate::smart::message::{FlowId, NodeSet};

/// The purpose of a flit.
#[derive(Clone, Debug)]
pub(super) enum Cargo {
    Unicast {
        to: u32,
    },
    Multicast {
        members: NodeSet,
    },
    Response {
        flow: FlowId,
        to: u32,
        /// The number of responses combined into it, including itself.
        count: u32,
        value: u64,
        rule: Rule,
    },
}

/// How routers treat a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    /// As a unicast.
    Unicast,
    /// They merge it with others that it meets.
    Merge,
    /// They use their tables.
    Table,
}

/// A flit, or a copy of one.
#[derive(Clone, Debug)]
pub(super) struct Flit {
    /// The serial number of its packet.
    pub(super) packet: u64,
    /// Its index in the packet.
    pub(super) index: u32,
    /// Whether it is the tail.
    pub(super) tail: bool,
    pub(super) source: u32,
    pub(super) class: u8,
    pub(super) created: u64,
    pub(super) tag: u64,
    pub(super) cargo: Cargo,
    /// Of a multicast on a private tree: 0 to the corner, 1 before the turn, 2 after it. Else 0.
    pub(super) stage: usize,
    /// The outputs of its router that it still requests.
    pub(super) mask: BTreeSet<Port>,
    /// The cycle in which it arrived at its router.
    pub(super) arrived: u64,
}

impl Flit {
    /// Whether its packet has other flits.
    pub(super) fn is_of_several(&self) -> bool {
        self.index > 0 || !self.tail
    }

    /// The flow of a combinable response.
    pub(super) fn combines(&self, expected: Rule) -> Option<FlowId> {
        match self.cargo {
            Cargo::Response { flow, rule, .. } if rule == expected => Some(flow),
            _ => None,
        }
    }
}

/// A virtual channel.
#[derive(Clone, Debug, Default)]
pub(super) struct Vc {
    /// Its pool: the VCs of one class and stage.
    pool: usize,
    pub(super) flits: VecDeque<Flit>,
    /// The packet that holds it: its flits are here, or will arrive.
    owner: Option<u64>,
    /// When the tail of the last packet left.
    left: Option<u64>,
}

/// An input port of a router.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) vcs: Vec<Vc>,
    /// Cycles until a vacated VC is free.
    delay: u64,
    /// The VC that is inspected first.
    pub(super) pointer: usize,
}

impl Input {
    /// With pools of so many VCs.
    pub(super) fn new(sizes: &[u32], delay: u64) -> Input {
        let vcs = sizes.iter().enumerate().flat_map(|(pool, &vcs)| {
            std::iter::repeat_n(Vc { pool, ..Vc::default() }, vcs as usize)
        });
        Input { vcs: vcs.collect(), delay, pointer: 0 }
    }

    /// The VC of a packet here.
    fn of(&self, packet: u64) -> Option<usize> {
        self.vcs.iter().position(|vc| vc.owner == Some(packet))
    }

    /// The VC of a pool that a new packet would be allocated.
    fn free(&self, pool: usize, now: u64) -> Option<usize> {
        let is_taken =
            |vc: &Vc| vc.owner.is_some() || vc.left.is_some_and(|left| now <= left + self.delay);
        self.vcs.iter().position(|vc| vc.pool == pool && !is_taken(vc))
    }

    /// Whether a pool can accept a flit.
    pub(super) fn takes(&self, pool: usize, packet: u64, now: u64) -> bool {
        self.has(packet) || self.free(pool, now).is_some()
    }

    /// Whether a packet holds a VC here.
    pub(super) fn has(&self, packet: u64) -> bool {
        self.of(packet).is_some()
    }

    /// Allocates a VC for an arriving flit, if its packet has none.
    pub(super) fn claim(&mut self, pool: usize, packet: u64, now: u64) {
        if !self.has(packet) {
            let free = self.free(pool, now);
            let free = free.unwrap_or_else(|| panic!("no free VC for packet {packet}"));
            self.vcs[free].owner = Some(packet);
        }
    }

    /// Buffers an arriving flit in its packet's VC.
    pub(super) fn put(&mut self, flit: Flit) {
        let vc = self.of(flit.packet).expect("an arriving flit has a VC");
        self.vcs[vc].flits.push_back(flit);
    }

    /// Releases the VC of a flit that arrived or bypassed and has left.
    pub(super) fn release(&mut self, packet: u64, now: u64) {
        let vc = self.of(packet).expect("an arriving flit has a VC");
        assert!(self.vcs[vc].flits.is_empty(), "the last flit of a packet passes no other of it");
        self.vcs[vc].owner = None;
        self.vcs[vc].left = Some(now);
    }

    /// Releases the VC of a flit that was discarded on arrival: the VC was never occupied.
    pub(super) fn discard(&mut self, packet: u64) {
        let vc = self.of(packet).expect("an arriving flit has a VC");
        assert!(self.vcs[vc].flits.is_empty(), "a discarded flit has no others in its VC");
        self.vcs[vc].owner = None;
    }

    /// Removes the first flit of a VC.
    pub(super) fn pop(&mut self, vc: usize, now: u64) -> Flit {
        let vc = &mut self.vcs[vc];
        let flit = vc.flits.pop_front().expect("there is a flit");
        assert_eq!(vc.owner, Some(flit.packet), "a VC holds flits of its packet");
        if flit.tail {
            vc.owner = None;
            vc.left = Some(now);
        }
        flit
    }
}

/// A flit that crosses links and will arrive at a router.
#[derive(Clone, Debug)]
pub(super) struct Landing {
    /// The cycle of its crossing.
    pub(super) at: u64,
    pub(super) router: u32,
    pub(super) input: Port,
    /// Whether it is off preset paths: then it is to go straight on, too.
    pub(super) stops: bool,
    /// The outputs by which it has gone on in its crossing.
    pub(super) gone: Vec<Port>,
    pub(super) flit: Flit,
}
