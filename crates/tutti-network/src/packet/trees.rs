//! Multicasts and combines in flight: where their packets are copied, and where they wait for each other.
//!
//! Instead of a rank, the destination of a packet in a tree is the number of the tree ([`TREE`]). A switch
//! copies a packet of a multicast to each next link of the tree. The copies share the buffer space of the
//! packet until the last of them has started. A switch that reduces stores packets of contributions in
//! separate memory until the last one arrives, which then continues with the result. The memory is not
//! limited, so that reductions that meet in several switches cannot deadlock. On its last link, a packet
//! belongs to an ordinary message.

use std::collections::BTreeMap;

use crate::Ticket;
use crate::route_tree::{Branching, RouteTree};
use crate::slab::Slab;
use tutti_topology::Routes;
use tutti_units::Time;
use tutti_units::ids::{RankId, VertexId};

/// Destinations from this number on are trees.
pub(super) const TREE: u32 = 1 << 31;

/// A link of a tree; its last message, if it ends at a leaf or at the root of a combine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Branch {
    pub(super) link: u32,
    pub(super) last: Option<(RankId, u32)>,
}

/// A multicast: by vertex, the next links.
#[derive(Clone, Debug)]
pub(super) struct Multicast {
    pub(super) next: BTreeMap<u32, Vec<Branch>>,
    /// Copies of packets that have not reached the last link of a leaf.
    pub(super) left: u64,
}

/// A combine: by vertex, the next link and how many links lead to it.
#[derive(Clone, Debug)]
pub(super) struct Combine {
    next: BTreeMap<u32, (Branch, u32)>,
    /// The message of the result, and the tickets of the contributions.
    pub(super) result: u32,
    pub(super) tickets: Vec<Ticket>,
    /// Packets that arrived so far, by vertex and the vertex before.
    arrived: BTreeMap<(u32, u32), u64>,
    /// The packets with a number that have arrived at a vertex, and when their tails have.
    waiting: BTreeMap<(u32, u64), (u32, Time)>,
}

/// A tree in flight.
#[derive(Clone, Debug)]
pub(super) enum Tree {
    Multicast(Multicast),
    Combine(Combine),
}

/// All trees in flight.
pub(super) struct Trees {
    branching: Branching,
    all: BTreeMap<u32, Tree>,
    next: u32,
    /// The number of copies that have not started, by set of copies.
    copies: Slab<u32>,
}

impl Trees {
    pub(super) fn new(branching: Branching) -> Trees {
        Trees { branching, all: BTreeMap::new(), next: 0, copies: Slab::new() }
    }

    pub(super) fn branching(&self) -> &Branching {
        &self.branching
    }

    /// Adds a tree; returns its destination.
    pub(super) fn add(&mut self, tree: Tree) -> RankId {
        let number = TREE | self.next;
        self.next = (self.next + 1) % (TREE - 1);
        self.all.insert(number, tree);
        RankId(number)
    }

    pub(super) fn get(&mut self, destination: RankId) -> Option<&mut Tree> {
        self.all.get_mut(&destination.0)
    }

    pub(super) fn remove(&mut self, destination: RankId) -> Option<Tree> {
        self.all.remove(&destination.0)
    }

    /// The first link of a tree from a rank.
    pub(super) fn first(&self, destination: RankId, from: RankId) -> Option<u32> {
        match self.all.get(&destination.0)? {
            Tree::Multicast(tree) => Some(tree.next.get(&from.0)?.first()?.link),
            Tree::Combine(tree) => Some(tree.next.get(&from.0)?.0.link),
        }
    }

    /// Notes that a packet has several copies.
    pub(super) fn share(&mut self, copies: usize) -> u32 {
        self.copies.put(u32::try_from(copies).unwrap_or(u32::MAX))
    }

    /// A copy has started; returns whether it was the last.
    pub(super) fn start_copy(&mut self, copies: u32) -> bool {
        self.copies[copies] -= 1;
        let is_last = self.copies[copies] == 0;
        if is_last {
            self.copies.remove(copies);
        }
        is_last
    }
}

impl Multicast {
    /// A multicast to ranks, each with its message.
    pub(super) fn new(
        routes: &Routes,
        root: RankId,
        leaves: &[(RankId, u32)],
        packets: u64,
    ) -> Self {
        let mut next: BTreeMap<u32, Vec<Branch>> = BTreeMap::new();
        let mut tree = RouteTree::new(root, false);
        for &(leaf, message) in leaves {
            for hop in tree.graft(routes, leaf, |_| true).unwrap_or_default() {
                let last = (hop.far == VertexId(leaf.0)).then_some((leaf, message));
                next.entry(hop.near.0).or_default().push(Branch { link: hop.link.0, last });
            }
        }
        let left = packets * leaves.len() as u64;
        Multicast { next, left }
    }
}

impl Combine {
    /// A combine of members at a root, with the message of the result.
    pub(super) fn new(routes: &Routes, root: RankId, members: &[RankId], result: u32) -> Combine {
        let mut next: BTreeMap<u32, (Branch, u32)> = BTreeMap::new();
        let mut tree = RouteTree::new(root, true);
        for &member in members {
            for hop in tree.graft(routes, member, |_| true).unwrap_or_default() {
                let last = (hop.near == VertexId(root.0)).then_some((root, result));
                next.insert(hop.far.0, (Branch { link: hop.link.0, last }, 0));
                if let Some((_, before)) = next.get_mut(&hop.near.0) {
                    *before += 1;
                }
            }
        }
        let (arrived, waiting) = (BTreeMap::new(), BTreeMap::new());
        Combine { next, result, tickets: Vec::new(), arrived, waiting }
    }

    /// A packet arrives from one vertex at another. If it is the last one of its number, returns the next link
    /// and when the tails of all of them have arrived.
    pub(super) fn arrive(&mut self, from: u32, at: u32, tail: Time) -> Option<(Branch, Time)> {
        let &(branch, before) = self.next.get(&at)?;
        if before < 2 {
            return Some((branch, tail));
        }
        let number = self.arrived.entry((at, from)).or_default();
        let key = (at, *number);
        *number += 1;
        let (count, latest) = self.waiting.entry(key).or_default();
        (*count, *latest) = (*count + 1, tail.max(*latest));
        let (count, latest) = (*count, *latest);
        if count < before {
            return None;
        }
        self.waiting.remove(&key);
        Some((branch, latest))
    }
}
