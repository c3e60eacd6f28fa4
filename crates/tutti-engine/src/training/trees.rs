//! Multicasts and combines that the network performs for endpoints.
//!
//! An endpoint reads the data of a multicast once, for the first of its sends, and handles the result
//! of a combine once, as the last of its receives. The packets of a tree enter the network together,
//! when the endpoints have handled all of them.

use std::collections::BTreeMap;

use super::fabric::{Running, TrainingFabric};
use super::network::InFlight;
use crate::dataflow::Messages;

/// A packet of a tree: its root, chunk, whether it is a combine, its number, and the packet's number.
type Key = (u32, u32, bool, u32, u32);

/// Packets of trees that await others, and how many packets the tree has.
#[derive(Default)]
pub(super) struct Trees(BTreeMap<Key, (usize, Vec<InFlight>)>);

impl Trees {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What enters the network.
pub(super) enum Packets {
    /// A single packet.
    One(InFlight),
    /// The packets of a multicast or of a combine (`true`).
    Tree(Vec<InFlight>, bool),
}

impl TrainingFabric {
    /// Whether the network forks a send from an earlier one of the same multicast.
    pub(super) fn is_later_branch(&self, list: &Messages, send: u32) -> bool {
        let Some(nth) = list.sends[send as usize].multicast else { return false };
        let before = send.checked_sub(1).map(|before| list.sends[before as usize].multicast);
        before == Some(Some(nth)) && self.network.in_network().multicasts
    }

    /// Whether the network reduces a receive into a later one of the same combine.
    pub(super) fn is_earlier_member(&self, list: &Messages, recv: u32) -> bool {
        let Some(nth) = list.recvs[recv as usize].combine else { return false };
        let after = list.recvs.get(recv as usize + 1).map(|after| after.combine);
        after == Some(Some(nth)) && self.network.in_network().reduces
    }
}

impl Running<'_> {
    /// The packets that enter the network with this packet of a send; None while others of its tree
    /// are missing.
    pub(super) fn tree_of(&mut self, send: u32, packet: InFlight) -> Option<Packets> {
        let in_network = self.fabric.network.in_network();
        let (from, to) = (packet.source, packet.destination);
        let (chunk, piece) = (packet.onward.chunk, packet.onward.piece);
        let sends = &self.cuts.list(from, packet.at.chunk).sends;
        let recvs = &self.cuts.list(to, chunk).recvs;
        let combine = recvs[packet.onward.step as usize].combine;
        let multicast = sends[send as usize].multicast;
        let key = match (combine, multicast) {
            (Some(nth), _) if in_network.reduces => (to, chunk, true, nth, piece),
            (_, Some(nth)) if in_network.multicasts => (from, chunk, false, nth, piece),
            _ => return Some(Packets::One(packet)),
        };
        let (count, waiting) = self.trees.0.entry(key).or_insert_with(|| {
            let count = match key {
                (.., true, nth, _) => recvs.iter().filter(|one| one.combine == Some(nth)).count(),
                (.., nth, _) => sends.iter().filter(|one| one.multicast == Some(nth)).count(),
            };
            (count, Vec::with_capacity(count))
        });
        waiting.push(packet);
        if waiting.len() < *count {
            return None;
        }
        let (_, packets) = self.trees.0.remove(&key)?;
        Some(match packets[..] {
            [packet] => Packets::One(packet),
            _ => Packets::Tree(packets, key.2),
        })
    }
}
