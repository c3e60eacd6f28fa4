//! Matches messages with receives.
//!
//! The k-th send of a channel (source, destination, tag) matches the k-th receive that is posted on
//! it. A receive that accepts several channels takes the first message to arrive that no other
//! receive has matched.

use super::channels::Channels;
use super::graph::{NONE, TraceGraph};
use super::{ANY, kind};
use tutti_units::Time;

/// The oldest and the latest unmatched operation of a channel: sends or receives, never both.
#[derive(Clone, Copy)]
struct Channel {
    head: u32,
    tail: u32,
}

/// The receives of a rank that accept several channels.
#[derive(Default)]
struct Open {
    posted: Vec<u32>,
    /// Messages in the order in which they arrived unmatched; some have been matched since.
    arrived: Vec<u32>,
}

/// The bit of a link to a partner.
const PAIRED: u32 = 1 << 31;

/// The state of all messages. A message has the number of its send.
pub(super) struct Matching {
    heads: Vec<Channel>,
    /// The channel of each operation; empty if no receive accepts several channels, since then no
    /// operation needs it after its start.
    channels: Vec<u32>,
    /// The partner, with [`PAIRED`], or the next unmatched operation of the same channel. Before the
    /// operation starts, its channel if `channels` is empty.
    links: Vec<u32>,
    /// Before an operation starts, when its dependencies are satisfied. After a send, when its
    /// message has arrived; `Time::MAX` in flight.
    pub(super) times: Vec<Time>,
    /// By rank; empty if no receive accepts several channels.
    open: Vec<Open>,
}

impl Matching {
    pub(super) fn new(graph: &TraceGraph) -> Matching {
        let operations = graph.operations();
        let mut all = 0..u32::try_from(operations).unwrap_or(NONE);
        let any = all.any(|at| graph.is_open(at));
        let Channels { of, count } = Channels::of(graph);
        let (channels, links) = if any { (of, vec![NONE; operations]) } else { (Vec::new(), of) };
        Matching {
            heads: vec![Channel { head: NONE, tail: NONE }; count],
            channels,
            links,
            times: vec![Time::ZERO; operations],
            open: (0..if any { graph.ranks() } else { 0 }).map(|_| Open::default()).collect(),
        }
    }

    /// The channel of an operation; unless receives accept several, of one that has not started.
    fn channel(&self, operation: u32) -> u32 {
        let of = if self.channels.is_empty() { &self.links } else { &self.channels };
        of[operation as usize]
    }

    /// The message that a receive has matched, and its arrival.
    pub(super) fn arrival(&self, receive: u32) -> (u32, Time) {
        let message = self.links[receive as usize] & !PAIRED;
        (message, self.times[message as usize])
    }

    /// Whether an operation is a message or a receive without a partner.
    pub(super) fn is_unmatched(&self, operation: u32) -> bool {
        let link = self.links[operation as usize];
        link == NONE || link & PAIRED == 0
    }

    /// Notes a send.
    pub(super) fn sent(&mut self, send: u32, graph: &TraceGraph) {
        self.times[send as usize] = Time::MAX;
        let channel = self.channel(send);
        match self.oldest(channel, kind::RECEIVE, graph) {
            Some(receive) => self.pair(send, receive),
            None => self.append(channel, send),
        }
    }

    /// Posts a receive of a rank; returns whether its message has arrived.
    pub(super) fn post(&mut self, receive: u32, rank: u32, graph: &TraceGraph) -> bool {
        let channel = self.channel(receive);
        if channel == NONE {
            return self.post_open(receive, rank, graph);
        }
        let Some(message) = self.oldest(channel, kind::SEND, graph) else {
            self.append(channel, receive);
            return false;
        };
        self.pair(message, receive);
        self.times[message as usize] != Time::MAX
    }

    fn post_open(&mut self, receive: u32, rank: u32, graph: &TraceGraph) -> bool {
        let mut open = std::mem::take(&mut self.open[rank as usize]);
        open.arrived.retain(|&message| self.is_unmatched(message));
        let fits = |&message: &u32| accepts(receive, message, graph);
        let message = open.arrived.iter().copied().find(fits);
        if message.is_none() {
            open.posted.push(receive);
        }
        self.open[rank as usize] = open;
        let Some(message) = message else { return false };
        // Messages of a channel do not overtake each other.
        let oldest = self.remove_head(self.channel(message));
        self.pair(oldest, receive);
        self.times[oldest as usize] != Time::MAX
    }

    /// Notes an arrival at a rank; returns the receive that has the message now, if any.
    pub(super) fn arrived(
        &mut self,
        message: u32,
        (rank, now): (u32, Time),
        graph: &TraceGraph,
    ) -> Option<u32> {
        self.times[message as usize] = now;
        let link = self.links[message as usize];
        if link != NONE && link & PAIRED != 0 {
            return Some(link & !PAIRED);
        }
        let open = self.open.get_mut(rank as usize)?;
        let fits = |&receive: &u32| accepts(receive, message, graph);
        let Some(at) = open.posted.iter().position(fits) else {
            open.arrived.push(message);
            return None;
        };
        let receive = open.posted.remove(at);
        let oldest = self.remove_head(self.channel(message));
        self.pair(oldest, receive);
        if oldest != message {
            self.open[rank as usize].arrived.push(message);
        }
        (self.times[oldest as usize] != Time::MAX).then_some(receive)
    }

    /// Removes the oldest operation of a channel if it has this kind.
    fn oldest(&mut self, channel: u32, kind: u8, graph: &TraceGraph) -> Option<u32> {
        let head = self.heads[channel as usize].head;
        let found = head != NONE && graph.kind(head) == kind;
        found.then(|| self.remove_head(channel))
    }

    fn pair(&mut self, send: u32, receive: u32) {
        self.links[send as usize] = receive | PAIRED;
        self.links[receive as usize] = send | PAIRED;
    }

    fn append(&mut self, channel: u32, operation: u32) {
        self.links[operation as usize] = NONE;
        let Channel { head, tail } = &mut self.heads[channel as usize];
        if *head == NONE {
            *head = operation;
        } else {
            self.links[*tail as usize] = operation;
        }
        *tail = operation;
    }

    fn remove_head(&mut self, channel: u32) -> u32 {
        let head = self.heads[channel as usize].head;
        self.heads[channel as usize].head = self.links[head as usize];
        head
    }
}

/// Whether an open receive accepts a message.
fn accepts(receive: u32, message: u32, graph: &TraceGraph) -> bool {
    let (peer, tag) = (graph.peer(receive), graph.tag(receive));
    let from = peer == ANY || peer.unsigned_abs() == graph.rank(message);
    from && (tag == i64::from(ANY) || tag == graph.tag(message))
}
