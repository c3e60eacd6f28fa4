//! The shared part of the network, between the ports of two ranks.

use std::ops::ControlFlow;

use super::packet::LinkUse;
use super::{Port, Serialization};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

/// A message as its sender's model hands it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The sender.
    pub source: RankId,
    /// The receiver.
    pub destination: RankId,
    /// Its size.
    pub bytes: Bytes,
    /// When its last byte would be at the destination's port without the network in between: the
    /// model's arrival time plus noise.
    pub arrival: Time,
}

/// Identifies a message to the caller that handed it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u32);

/// A position among the sends of a step, with the state needed to replay the sends from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The sender.
    pub rank: RankId,
    /// Its step.
    pub step: u32,
    /// The index of the next send of the step.
    pub index: u32,
    /// When the rank is ready to send it.
    pub ready: Time,
    /// The state of the rank's port at that time.
    pub port: Port,
}

/// A source of messages that can be replayed, so that a network need not store them.
pub trait Supply {
    /// Injects an offered message now.
    fn set_off(&mut self, source: RankId, destination: RankId, bytes: Bytes) -> Ticket;

    /// Replays the messages offered in a step, from a cursor on, until `each` breaks.
    fn replay(&mut self, from: &Cursor, each: &mut dyn FnMut(&Cursor, Carried) -> ControlFlow<()>);
}

/// An announced in-network reduction of the same chunk from several ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Combined {
    /// The rank that receives the result.
    pub destination: RankId,
    /// The contributing ranks.
    pub members: Vec<RankId>,
    /// The size of each contribution and of the result.
    pub bytes: Bytes,
}

/// Carries messages with contention, in order of time.
///
/// The engine hands messages over as ranks send them, and requests the next arrival. Ranks react to
/// an arrival no earlier than it happens, so no message is handed over for the past.
pub trait Carrier {
    /// Whether messages contend. If not, no method is called and the engine runs in causal order.
    const CONTENDED: bool;

    /// Whether networks of this type may fork or combine messages inside the network.
    const IN_NETWORK: bool = false;

    /// Accepts a message.
    fn carry(&mut self, ticket: Ticket, message: Carried);

    /// Runs until the next message arrives completely; returns its ticket and arrival time. `None`
    /// when no message is in flight, or none will ever arrive.
    fn next_arrival(&mut self) -> Option<(Ticket, Time)>;

    /// The serialization of injected messages, if the network prefers offers to accepting messages.
    /// This requires that the messages of a rank enter in the order in which they are sent.
    fn prefers_offers(&self) -> Option<Serialization> {
        None
    }

    /// Offers a message, which the network need not store until it is injected. All messages of a
    /// step are offered sequentially, before anything else happens.
    fn offer(&mut self, _: &Cursor, _: Carried) {}

    /// As [`Carrier::next_arrival`]; offered messages that are not stored are requested again.
    fn next_arrival_of(&mut self, _: &mut dyn Supply) -> Option<(Ticket, Time)> {
        self.next_arrival()
    }

    /// Notes that a rank starts a step: its later sends follow its earlier ones.
    fn begin_step(&mut self, _rank: RankId) {}

    /// Whether it forks multicast messages; these are handed over by [`Carrier::fork`].
    fn forks(&self) -> bool {
        false
    }

    /// Accepts a part of a multicast, with one ticket per destination.
    fn fork(&mut self, messages: &[(Ticket, Carried)]) {
        for &(ticket, message) in messages {
            self.carry(ticket, message);
        }
    }

    /// The parts of a multicast from `root` to `leaves`, or of a combine from them (`inwards`), each as
    /// indices of leaves. The network performs each part as one message.
    fn parts(&self, _root: RankId, leaves: &[RankId], _inwards: bool) -> Vec<Vec<usize>> {
        vec![(0..leaves.len()).collect()]
    }

    /// Whether it reduces messages to one rank; these are handed over by [`Carrier::contribute`].
    fn combines(&self) -> bool {
        false
    }

    /// Announces all parts of in-network reductions, before any message is sent.
    fn expect(&mut self, _combines: Vec<Combined>) {}

    /// Accepts a contribution to a reduction, by its index among the announced ones.
    fn contribute(&mut self, _combine: usize, ticket: Ticket, message: Carried) {
        self.carry(ticket, message);
    }

    /// Whether some ranks may be unable to reach others.
    fn has_unreachable_pairs(&self) -> bool {
        false
    }

    /// Whether a path connects one rank to another; no message is handed over otherwise.
    fn reaches(&self, _from: RankId, _to: RankId) -> bool {
        true
    }

    /// The deadlock, if messages are in flight that will never arrive.
    fn deadlock(&self) -> Option<Deadlock> {
        None
    }
}

/// What happens to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Its last byte has left the sender. Networks with buffers at their senders do not report it.
    Left(Ticket, Time),
    /// It has arrived completely.
    Arrived(Ticket, Time),
}

/// A network that interleaves with other events, such as those of endpoints and processors.
pub trait Stepped {
    /// Accepts a message, as [`Carrier::carry`].
    fn send(&mut self, ticket: Ticket, message: Carried);

    /// Prepares messages between pairs of ranks that are sent together again and again; `None` if a batch of
    /// them has no advantage.
    fn pattern(&mut self, _pairs: &[(RankId, RankId)]) -> Option<u32> {
        None
    }

    /// Sends a message of `bytes` to each pair of a pattern at `start`, with a ticket each, which may be equal.
    /// The network reports when each has left, and no arrival. Returns false if it accepts none of them.
    fn send_batch(
        &mut self,
        _pattern: u32,
        _tickets: &mut dyn Iterator<Item = Ticket>,
        _bytes: Bytes,
        _start: Time,
    ) -> bool {
        false
    }

    /// The parts that one multicast from `root`, or one combine to it (`inwards`), has.
    fn tree_parts(&self, _root: RankId, leaves: &[RankId], _inwards: bool) -> Vec<Vec<usize>> {
        (0..leaves.len()).map(|index| vec![index]).collect()
    }

    /// Accepts the messages of such a part, which the network performs as one. The first of them is
    /// reported when the part has left.
    fn send_tree(&mut self, messages: &[(Ticket, Carried)], _inwards: bool) {
        for &(ticket, message) in messages {
            self.send(ticket, message);
        }
    }

    /// Whether a path connects one rank to another; no message is sent otherwise.
    fn connects(&self, _from: RankId, _to: RankId) -> bool {
        true
    }

    /// Runs until the next progress of a message, but not beyond `until`.
    fn progress(&mut self, until: Time) -> Option<Progress>;

    /// The utilisation of each link of the graph, by link id.
    fn used_links(&self) -> Vec<LinkUse>;
}

/// A deadlock of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// The time of the last movement.
    pub since: Time,
    /// Messages that have not arrived.
    pub messages: usize,
    /// The cyclic dependency in words: each entry waits for the next, the last for the first.
    pub deadlock_cycle: Vec<String>,
}

/// A network without contention: messages arrive at the model's arrival time.
pub struct Uncontended;

impl Carrier for Uncontended {
    const CONTENDED: bool = false;

    fn carry(&mut self, _: Ticket, _: Carried) {}

    fn next_arrival(&mut self) -> Option<(Ticket, Time)> {
        None
    }
}
