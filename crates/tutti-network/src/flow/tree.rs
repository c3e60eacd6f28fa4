//! Multicasts and combines: flows on the links of a tree.

use super::ALL;
use super::route::{Crossing, FlowRouting};
use crate::route_tree::{Hop, RouteTree};
use crate::{Carried, Combined, Ticket};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

/// A rank that receives a multicast, or contributes to a combine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub(super) rank: RankId,
    pub(super) ticket: Ticket,
    /// From the end of the transmission to the arrival.
    pub(super) latency: Time,
}

/// A multicast from a root to its leaves, or a combine from the leaves to the root.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) root: RankId,
    pub(super) leaves: Vec<Leaf>,
    /// Whether it is a combine.
    pub(super) inwards: bool,
}

impl Tree {
    /// The tree of a multicast, of messages with one source.
    pub(super) fn multicast(messages: &[(Ticket, Carried)]) -> Option<Tree> {
        let root = messages.first()?.1.source;
        let leaf = |&(ticket, message): &(Ticket, Carried)| Leaf {
            rank: message.destination,
            ticket,
            latency: Time::ZERO,
        };
        Some(Tree { root, leaves: messages.iter().map(leaf).collect(), inwards: false })
    }

    /// The tree of a combine, of messages with one destination.
    pub(super) fn combine(messages: &[(Ticket, Carried)]) -> Option<Tree> {
        let root = messages.first()?.1.destination;
        let leaf = |&(ticket, message): &(Ticket, Carried)| Leaf {
            rank: message.source,
            ticket,
            latency: Time::ZERO,
        };
        Some(Tree { root, leaves: messages.iter().map(leaf).collect(), inwards: true })
    }

    /// Appends the links of the tree, and sets the latencies of the leaves. The tree contains the route
    /// of the first leaf, and of each further leaf the part outside the tree. A multicast arrives at
    /// each leaf separately. A combine arrives once, with the latency of the farthest leaf.
    pub(super) fn route(&mut self, routing: &FlowRouting<'_>, into: &mut Vec<Crossing>) {
        let FlowRouting::Routed(routes) = *routing else { return };
        let mut tree = RouteTree::new(self.root, self.inwards);
        for leaf in &mut self.leaves {
            let hops = tree.graft(routes, leaf.rank, |_| true).unwrap_or_default();
            let link = |hop: &Hop| Crossing { link: routing.first_of(hop.link), share: ALL };
            into.extend(hops.iter().map(link));
            leaf.latency = tree.latency(leaf.rank);
        }
        if self.inwards {
            let farthest = self.leaves.iter().map(|leaf| leaf.latency).max().unwrap_or_default();
            self.leaves.iter_mut().for_each(|leaf| leaf.latency = farthest);
        }
    }

    /// The ranks that inject, and the ranks that eject.
    pub(super) fn ends(&self) -> (Vec<RankId>, Vec<RankId>) {
        let leaves = self.leaves.iter().map(|leaf| leaf.rank).collect();
        if self.inwards { (leaves, vec![self.root]) } else { (vec![self.root], leaves) }
    }
}

/// A combine before its last contribution.
#[derive(Clone, Debug)]
pub(super) struct Gathering {
    pub(super) bytes: Bytes,
    members: usize,
    tree: Tree,
    /// When the first byte of the last contribution so far leaves its port.
    start: Time,
}

impl Gathering {
    pub(super) fn of(combined: &Combined) -> Gathering {
        let tree = Tree { root: combined.destination, leaves: Vec::new(), inwards: true };
        let members = combined.members.len();
        Gathering { bytes: combined.bytes, members, tree, start: Time::ZERO }
    }

    /// Adds a contribution; after the last one, returns the tree and when its flow starts.
    pub(super) fn add(
        &mut self,
        rank: RankId,
        ticket: Ticket,
        start: Time,
    ) -> Option<(Tree, Time)> {
        self.tree.leaves.push(Leaf { rank, ticket, latency: Time::ZERO });
        self.start = self.start.max(start);
        (self.tree.leaves.len() == self.members).then(|| (self.tree.clone(), self.start))
    }
}
