//! Messages that a NIC has to inject, and messages in flight.

use std::collections::BTreeMap;

use super::super::{FlowId, NodeSet};
use tutti_network::Ticket;
use tutti_units::{Bytes, Time};

/// The destination of a message's packets.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// To one node.
    One(u32),
    /// To each of these.
    Many(NodeSet),
    /// To the destination of this reduction.
    Part(usize),
}

/// A message that is not fully injected.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) number: u64,
    pub(super) kind: Kind,
    pub(super) bytes: Bytes,
    /// When its first byte leaves.
    pub(super) head: Time,
    /// The cycle in which its next packet can be injected.
    pub(super) start: u64,
    /// Flits that have been handed over, and all flits.
    pub(super) cut: u64,
    pub(super) of: u64,
}

/// A message that has not fully arrived.
#[derive(Clone, Debug)]
pub(super) struct Under {
    pub(super) bytes: Bytes,
    /// Flits of its packets, but for the last.
    pub(super) packet: u32,
    /// The receivers that miss something, by node: packets, or flits of a combine with outstanding
    /// responses; and the arrival time of the last part received so far, no earlier than the
    /// endpoint model allows.
    pub(super) receivers: Vec<(u32, Ticket, u64, Time)>,
    /// Of a combine, the messages of its members.
    pub(super) members: Option<Vec<Ticket>>,
}

impl Under {
    /// Adds the contribution of one more member.
    pub(super) fn join(&mut self, ticket: Ticket, arrival: Time) {
        if let Some(members) = &mut self.members {
            members.push(ticket);
        }
        let there = &mut self.receivers[0].3;
        *there = arrival.max(*there);
    }

    /// A packet arrives at a node: the last of a flit's responses, if it carries responses. Returns
    /// whether all receivers are served, and the messages that are now complete.
    pub(super) fn takes(
        &mut self,
        node: u32,
        there: Time,
        last: bool,
    ) -> (bool, Vec<(Ticket, Time)>) {
        let Ok(place) = self.receivers.binary_search_by_key(&node, |&(node, ..)| node) else {
            return (self.receivers.is_empty(), Vec::new());
        };
        let (_, ticket, missing, time) = &mut self.receivers[place];
        *time = there.max(*time);
        *missing -= u64::from(last);
        if *missing > 0 {
            return (false, Vec::new());
        }
        let (ticket, time) = (*ticket, *time);
        self.receivers.remove(place);
        let done = match self.members.take() {
            Some(members) => members.into_iter().map(|ticket| (ticket, time)).collect(),
            None => vec![(ticket, time)],
        };
        (self.receivers.is_empty(), done)
    }
}

/// A combine. Each of its flits is a separate reduction.
#[derive(Clone, Debug)]
pub(super) struct Reduction {
    pub(super) destination: u32,
    pub(super) members: NodeSet,
    pub(super) bytes: Bytes,
    /// The tag of its flits, once a member contributes.
    pub(super) number: Option<u64>,
    /// Flits for which some members have responded, and the number of outstanding responses.
    open: BTreeMap<u64, (FlowId, u32)>,
}

impl Reduction {
    pub(super) fn new(destination: u32, members: NodeSet, bytes: Bytes) -> Reduction {
        Reduction { destination, members, bytes, number: None, open: BTreeMap::new() }
    }

    /// The reduction of a flit for the next responding member, if it has started.
    pub(super) fn started(&mut self, flit: u64) -> Option<FlowId> {
        let (flow, silent) = self.open.get_mut(&flit)?;
        let flow = *flow;
        *silent -= 1;
        if *silent == 0 {
            self.open.remove(&flit);
        }
        Some(flow)
    }

    /// Records a reduction that starts with the response of a member.
    pub(super) fn begin(&mut self, flit: u64, flow: FlowId) {
        let silent = self.members.len() - 1;
        if silent > 0 {
            self.open.insert(flit, (flow, silent));
        }
    }
}
