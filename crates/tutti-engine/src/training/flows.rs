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

    pub(super) fn send(&mut self, from: u32, to: u32, bytes: Bytes, now: Time, of: T) {
        let flow = Flow { is_sent: false, of };
        let ticket = match self.unused.pop() {
            Some(ticket) => {
                self.all[ticket as usize] = flow;
                ticket
            }
            None => {
                self.all.push(flow);
                u32::try_from(self.all.len() - 1).expect("fewer than 2^32 flows at once")
            }
        };
        let (source, destination) = (RankId(from), RankId(to));
        self.network.send(Ticket(ticket), Carried { source, destination, bytes, arrival: now });
    }

    /// What happens to a flow until a time.
    pub(super) fn next(&mut self, until: Time) -> Option<News<T>> {
        match self.network.progress(until)? {
            Progress::Left(ticket, time) => {
                let flow = &mut self.all[ticket.0 as usize];
                flow.is_sent = true;
                Some(News { of: flow.of, transmitted: true, arrived: false, time })
            }
            Progress::Arrived(ticket, time) => {
                let Flow { is_sent, of } = self.all[ticket.0 as usize];
                self.unused.push(ticket.0);
                // The network does not report the transmission of a message that takes no time.
                Some(News { of, transmitted: !is_sent, arrived: true, time })
            }
        }
    }
}
