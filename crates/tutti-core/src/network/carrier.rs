//! What lies between the ports of two ranks: the side of the network that messages share.

use crate::ids::RankId;
use crate::units::{Bytes, Time};

/// A message as its sender's model hands it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The sender.
    pub source: RankId,
    /// The receiver.
    pub destination: RankId,
    /// Its size.
    pub bytes: Bytes,
    /// When it would be wholly at its destination's port if there were no way between the two: what
    /// the model says, and injected noise.
    pub arrival: Time,
}

/// Names a message to whoever handed it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u32);

/// Carries messages that meet each other on the way, in order of time.
///
/// Whoever drives it hands messages over as ranks send them and asks for the next arrival; what a rank
/// does after an arrival happens no earlier, so nothing is ever handed over for the past.
pub trait Carrier {
    /// Whether messages can meet. Where they cannot, nothing here is called and the engine runs in
    /// causal order.
    const CONTENDED: bool;

    /// Takes a message.
    fn carry(&mut self, ticket: Ticket, message: Carried);

    /// Runs until the next message arrives: which, and when it is wholly there. `None` when nothing is
    /// under way, or nothing will ever arrive.
    fn next_arrival(&mut self) -> Option<(Ticket, Time)>;

    /// Why nothing arrives any more although messages are under way, if that is so.
    fn standstill(&self) -> Option<Standstill> {
        None
    }
}

/// A network in which nothing moves any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standstill {
    /// Since when.
    pub since: Time,
    /// Messages that have not arrived.
    pub messages: usize,
    /// What waits for what, each for the next and the last for the first, in words.
    pub circle: Vec<String>,
}

/// No message meets another: the model's arrival time is the arrival time.
pub struct Uncontended;

impl Carrier for Uncontended {
    const CONTENDED: bool = false;

    fn carry(&mut self, _: Ticket, _: Carried) {}

    fn next_arrival(&mut self) -> Option<(Ticket, Time)> {
        None
    }
}
