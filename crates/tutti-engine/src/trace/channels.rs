//! The channels of a trace: source, destination and tag of messages.

use super::graph::{NONE, TraceGraph, number};
use super::kind;

/// A send, or a receive that accepts one channel.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    source: u32,
    tag: i64,
    operation: u32,
}

/// The channel of each send and of each receive that accepts one channel; [`NONE`] of others.
pub(super) struct Channels {
    pub(super) of: Vec<u32>,
    pub(super) count: usize,
}

impl Channels {
    /// Numbers the channels of a trace.
    pub(super) fn of(graph: &TraceGraph) -> Channels {
        let mut channels = Channels { of: vec![NONE; graph.operations()], count: 0 };
        each_channel(graph, |_, ends| {
            for end in ends {
                channels.of[end.operation as usize] = number(channels.count);
            }
            channels.count += 1;
        });
        channels
    }
}

/// Receives that state other sizes than the messages that they match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherSizes {
    /// The number of such receives.
    pub count: u64,
    /// The first such message, by rank and operation: (rank, operation, bytes).
    pub send: (u32, u32, i64),
    /// Its receive: (rank, operation, bytes).
    pub receive: (u32, u32, i64),
}

impl TraceGraph {
    /// Compares the sizes of messages and receives. Sends and receives of a channel match in order.
    /// Ranks that receive from any rank, or any tag, are not compared.
    #[must_use]
    pub fn other_sizes(&self) -> Option<OtherSizes> {
        let mut count = 0;
        let mut first = None;
        let mut open = vec![false; self.ranks()];
        for (rank, open) in open.iter_mut().enumerate() {
            *open = self.of_rank(rank).any(|operation| self.is_open(operation));
        }
        each_channel(self, |destination, ends| {
            if open[destination as usize] {
                return;
            }
            let of_kind = |kind| move |end: &&End| self.kind(end.operation) == kind;
            let sends = ends.iter().filter(of_kind(kind::SEND));
            for (send, receive) in sends.zip(ends.iter().filter(of_kind(kind::RECEIVE))) {
                let (send, receive) = (send.operation, receive.operation);
                if self.amount(send) != self.amount(receive) {
                    count += 1;
                    let earliest: &mut (u32, u32) = first.get_or_insert((send, receive));
                    *earliest = (*earliest).min((send, receive));
                }
            }
        });
        let of = |operation: u32| {
            let (rank, index) = self.place(operation);
            (rank.0, index, self.amount(operation).cast_signed())
        };
        first.map(|(send, receive)| OtherSizes { count, send: of(send), receive: of(receive) })
    }
}

/// Calls a function with the destination and the ends of each channel, in the order of the
/// operations.
fn each_channel(graph: &TraceGraph, mut each: impl FnMut(u32, &[End])) {
    let (first, ends) = by_destination(graph);
    let mut sorted: Vec<End> = Vec::new();
    for destination in 0..number(graph.ranks()) {
        let at = destination as usize;
        sorted.clear();
        sorted.extend(
            ends[first[at] as usize..first[at + 1] as usize]
                .iter()
                .map(|&(source, operation)| End { source, tag: graph.tag(operation), operation }),
        );
        sorted.sort_unstable();
        let same = |a: &End, b: &End| (a.source, a.tag) == (b.source, b.tag);
        for channel in sorted.chunk_by(same) {
            each(destination, channel);
        }
    }
}

/// The sources and operations of sends and of receives that accept one channel, by destination, and
/// the first of each destination.
fn by_destination(graph: &TraceGraph) -> (Vec<u32>, Vec<(u32, u32)>) {
    let ranks = graph.ranks();
    let mut first = vec![0_u32; ranks + 1];
    each_end(graph, |destination, _| first[destination as usize + 1] += 1);
    for at in 1..=ranks {
        first[at] += first[at - 1];
    }
    let mut next = first.clone();
    let mut ends = vec![(0, 0); first[ranks] as usize];
    each_end(graph, |destination, end| {
        let place = &mut next[destination as usize];
        ends[*place as usize] = end;
        *place += 1;
    });
    (first, ends)
}

/// Calls a function with the destination, the source and the operation of each send and of each
/// receive that accepts one channel. Peers that are not ranks have none.
fn each_end(graph: &TraceGraph, mut each: impl FnMut(u32, (u32, u32))) {
    let ranks = number(graph.ranks());
    for rank in 0..ranks {
        for operation in graph.of_rank(rank as usize) {
            let Some(peer) = u32::try_from(graph.peer(operation)).ok().filter(|&it| it < ranks)
            else {
                continue;
            };
            match graph.kind(operation) {
                kind::SEND => each(peer, (rank, operation)),
                kind::RECEIVE if !graph.is_open(operation) => each(rank, (peer, operation)),
                _ => {}
            }
        }
    }
}
