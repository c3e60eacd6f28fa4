//! Matches messages with receives.
//!
//! The k-th send of a channel (source, destination, tag) matches the k-th receive that is posted on
//! it. A receive that accepts several channels takes the first message to arrive that no other
//! receive has matched.

use super::graph::{Graph, NONE, Work};
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

/// The state of all messages. A message has the number of its send.
pub(super) struct Matching {
    channels: Vec<Channel>,
    /// The next unmatched operation of the same channel.
    next: Vec<u32>,
    /// The receive of a send, and the send of a receive.
    partner: Vec<u32>,
    /// When a message has arrived; `Time::MAX` in flight.
    arrival: Vec<Time>,
    /// By rank; empty if no receive accepts several channels.
    open: Vec<Open>,
}

impl Matching {
    pub(super) fn new(graph: &Graph) -> Matching {
        let operations = graph.works.len();
        let any = graph.works.iter().any(Work::is_open);
        let ranks = if any { graph.first.len() - 1 } else { 0 };
        Matching {
            channels: vec![Channel { head: NONE, tail: NONE }; graph.channels],
            next: vec![NONE; operations],
            partner: vec![NONE; operations],
            arrival: vec![Time::MAX; operations],
            open: (0..ranks).map(|_| Open::default()).collect(),
        }
    }

    /// The arrival of the message that a receive has matched.
    pub(super) fn arrival(&self, receive: u32) -> (u32, Time) {
        let message = self.partner[receive as usize];
        (message, self.arrival[message as usize])
    }

    /// Whether an operation is a message or a receive without a partner.
    pub(super) fn is_unmatched(&self, operation: u32) -> bool {
        self.partner[operation as usize] == NONE
    }

    /// Notes a send.
    pub(super) fn sent(&mut self, send: u32, work: &Work, graph: &Graph) {
        match self.oldest(work.channel, kind::RECEIVE, graph) {
            Some(receive) => self.pair(send, receive),
            None => self.append(work.channel, send),
        }
    }

    /// Posts a receive; returns whether its message has arrived.
    pub(super) fn post(&mut self, receive: u32, work: &Work, graph: &Graph) -> bool {
        if work.is_open() {
            return self.post_open(receive, work, graph);
        }
        let Some(message) = self.oldest(work.channel, kind::SEND, graph) else {
            self.append(work.channel, receive);
            return false;
        };
        self.pair(message, receive);
        self.arrival[message as usize] != Time::MAX
    }

    fn post_open(&mut self, receive: u32, work: &Work, graph: &Graph) -> bool {
        let open = &mut self.open[work.rank as usize];
        let partner = &self.partner;
        open.arrived.retain(|&message| partner[message as usize] == NONE);
        let fits = |&message: &u32| accepts(work, &graph.works[message as usize]);
        let Some(message) = open.arrived.iter().copied().find(fits) else {
            open.posted.push(receive);
            return false;
        };
        // Messages of a channel do not overtake each other.
        let channel = graph.works[message as usize].channel;
        let oldest = self.remove_head(channel);
        self.pair(oldest, receive);
        self.arrival[oldest as usize] != Time::MAX
    }

    /// Notes an arrival; returns the receive that has the message now, if any.
    pub(super) fn arrived(&mut self, message: u32, now: Time, graph: &Graph) -> Option<u32> {
        self.arrival[message as usize] = now;
        let receive = self.partner[message as usize];
        if receive != NONE {
            return Some(receive);
        }
        let work = &graph.works[message as usize];
        let open = self.open.get_mut(usize::try_from(work.peer).ok()?)?;
        let fits = |&receive: &u32| accepts(&graph.works[receive as usize], work);
        let Some(at) = open.posted.iter().position(fits) else {
            open.arrived.push(message);
            return None;
        };
        let receive = open.posted.remove(at);
        let oldest = self.remove_head(work.channel);
        self.pair(oldest, receive);
        if oldest != message {
            self.open[work.peer.unsigned_abs() as usize].arrived.push(message);
        }
        (self.arrival[oldest as usize] != Time::MAX).then_some(receive)
    }

    /// Removes the oldest operation of a channel if it has this kind.
    fn oldest(&mut self, channel: u32, kind: u8, graph: &Graph) -> Option<u32> {
        let head = self.channels[channel as usize].head;
        let found = head != NONE && graph.works[head as usize].kind == kind;
        found.then(|| self.remove_head(channel))
    }

    fn pair(&mut self, send: u32, receive: u32) {
        self.partner[send as usize] = receive;
        self.partner[receive as usize] = send;
    }

    fn append(&mut self, channel: u32, operation: u32) {
        let Channel { head, tail } = &mut self.channels[channel as usize];
        if *head == NONE {
            *head = operation;
        } else {
            self.next[*tail as usize] = operation;
        }
        *tail = operation;
    }

    fn remove_head(&mut self, channel: u32) -> u32 {
        let head = self.channels[channel as usize].head;
        self.channels[channel as usize].head = self.next[head as usize];
        head
    }
}

/// Whether an open receive accepts a message.
fn accepts(receive: &Work, message: &Work) -> bool {
    let from = receive.peer == ANY || receive.peer.unsigned_abs() == message.rank;
    from && (receive.tag == i64::from(ANY) || receive.tag == message.tag)
}
