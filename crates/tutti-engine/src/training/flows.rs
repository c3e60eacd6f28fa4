//! Flows of bulk transfers on a network.

use super::network::Graph;
use tutti_network::packet::LinkUse;
use tutti_network::{Carried, Progress, Stepped, Ticket};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

/// What happens to a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct News<T> {
    pub(super) of: T,
    /// Whether it has just been transmitted.
    pub(super) transmitted: bool,
    /// Whether it has arrived.
    pub(super) arrived: bool,
    pub(super) time: Time,
}

/// A flow in the network.
#[derive(Clone, Copy, Debug)]
struct Flow<T> {
    is_sent: bool,
    /// Messages of a batch that have not left; a batch does not report arrivals.
    batch: u32,
    of: T,
}

/// The flows in a network; each belongs to something of type `T`.
pub(super) struct Flows<'a, T> {
    graph: &'a Graph,
    network: Box<dyn Stepped + 'a>,
    all: Vec<Flow<T>>,
    unused: Vec<u32>,
}

impl<'a, T: Copy> Flows<'a, T> {
    pub(super) fn new(graph: &'a Graph) -> Flows<'a, T> {
        Flows { graph, network: graph.network(), all: Vec::new(), unused: Vec::new() }
    }

    /// The latency of the path from one NPU to another.
    pub(super) fn latency(&self, from: u32, to: u32) -> Time {
        self.graph.exit(from, to).latency
    }

    pub(super) fn used_links(&self) -> Vec<LinkUse> {
        self.network.used_links()
    }

    /// Prepares messages between pairs that are sent together.
    pub(super) fn pattern(&mut self, pairs: &[(RankId, RankId)]) -> Option<u32> {
        self.network.pattern(pairs)
    }

    /// Sends a message of `bytes` to each pair of a pattern, in parts of some messages each; returns whether
    /// the network accepts them.
    pub(super) fn send_batch(
        &mut self,
        pattern: u32,
        parts: &[(T, u32)],
        bytes: Bytes,
        now: Time,
    ) -> bool {
        let tickets: Vec<(u32, u32)> = parts
            .iter()
            .map(|&(of, batch)| (self.put(Flow { is_sent: false, batch, of }), batch))
            .collect();
        let mut each = tickets
            .iter()
            .flat_map(|&(ticket, count)| std::iter::repeat_n(Ticket(ticket), count as usize));
        let is_accepted = self.network.send_batch(pattern, &mut each, bytes, now);
        if !is_accepted {
            self.unused.extend(tickets.iter().rev().map(|&(ticket, _)| ticket));
        }
        is_accepted
    }

    fn put(&mut self, flow: Flow<T>) -> u32 {
        if let Some(ticket) = self.unused.pop() {
            self.all[ticket as usize] = flow;
            return ticket;
        }
        self.all.push(flow);
        u32::try_from(self.all.len() - 1).expect("fewer than 2^32 flows at once")
    }

    pub(super) fn send(&mut self, from: u32, to: u32, bytes: Bytes, now: Time, of: T) {
        let ticket = Ticket(self.put(Flow { is_sent: false, batch: 0, of }));
        self.network.send(ticket, carried((from, to), bytes, now));
    }

    /// Sends a multicast from a root, or a combine to it (`inwards`); returns in how many flows.
    pub(super) fn send_tree(
        &mut self,
        (root, inwards): (u32, bool),
        leaves: &[u32],
        bytes: Bytes,
        now: Time,
        of: T,
    ) -> u32 {
        let ranks: Vec<RankId> = leaves.iter().map(|&leaf| RankId(leaf)).collect();
        let parts = self.network.tree_parts(RankId(root), &ranks, inwards);
        for part in &parts {
            let mut messages = Vec::with_capacity(part.len());
            for &leaf in part {
                let pair = if inwards { (leaves[leaf], root) } else { (root, leaves[leaf]) };
                // The first message stands for the flow.
                let ticket = Ticket(self.put(Flow { is_sent: !messages.is_empty(), batch: 0, of }));
                messages.push((ticket, carried(pair, bytes, now)));
            }
            self.network.send_tree(&messages, inwards);
        }
        u32::try_from(parts.len()).unwrap_or(u32::MAX)
    }

    /// What happens to a flow until a time.
    pub(super) fn next(&mut self, until: Time) -> Option<News<T>> {
        match self.network.progress(until)? {
            Progress::Left(ticket, time) => {
                let flow = &mut self.all[ticket.0 as usize];
                flow.is_sent = true;
                if flow.batch > 0 {
                    flow.batch -= 1;
                    if flow.batch == 0 {
                        self.unused.push(ticket.0);
                    }
                }
                Some(News { of: flow.of, transmitted: true, arrived: false, time })
            }
            Progress::Arrived(ticket, time) => {
                let Flow { is_sent, of, .. } = self.all[ticket.0 as usize];
                self.unused.push(ticket.0);
                // The network does not report the transmission of a message that takes no time.
                Some(News { of, transmitted: !is_sent, arrived: true, time })
            }
        }
    }
}

/// A message at the port of its sender.
fn carried((from, to): (u32, u32), bytes: Bytes, now: Time) -> Carried {
    Carried { source: RankId(from), destination: RankId(to), bytes, arrival: now }
}
