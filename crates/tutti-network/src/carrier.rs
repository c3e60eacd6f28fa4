//! What lies between the ports of two ranks: the side of the network that messages share.

use std::ops::ControlFlow;

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
    /// When it would be wholly at its destination's port if there were no way between the two: what
    /// the model says, and injected noise.
    pub arrival: Time,
}

/// Names a message to whoever handed it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u32);

/// A place among the sends of a step, and all that it takes to send what comes from there on once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The sender.
    pub rank: RankId,
    /// Its step.
    pub step: u32,
    /// Which of the step's sends comes next.
    pub index: u32,
    /// When the rank is ready for it.
    pub ready: Time,
    /// The rank's port then.
    pub port: Port,
}

/// Who hands messages over and can say again what they were, so that a network need not keep them.
pub trait Supply {
    /// A message that was offered sets off now.
    fn set_off(&mut self, source: RankId, destination: RankId, bytes: Bytes) -> Ticket;

    /// Says again what was offered in a step, from a place on and each with its own, until `each` breaks off.
    fn tell(&mut self, from: &Cursor, each: &mut dyn FnMut(&Cursor, Carried) -> ControlFlow<()>);
}

/// A combine that there will be: the same part of the payload from several ranks, folded as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Combined {
    /// Who gets it.
    pub destination: RankId,
    /// Who contributes.
    pub members: Vec<RankId>,
    /// The size of each contribution, and of what becomes of them.
    pub bytes: Bytes,
}

/// Carries messages that meet each other on the way, in order of time.
///
/// Whoever drives it hands messages over as ranks send them and asks for the next arrival; what a rank
/// does after an arrival happens no earlier, so nothing is ever handed over for the past.
pub trait Carrier {
    /// Whether messages can meet. Where they cannot, nothing here is called and the engine runs in
    /// causal order.
    const CONTENDED: bool;

    /// Whether there are networks of its kind that fork or combine messages on the way.
    const IN_NETWORK: bool = false;

    /// Takes a message.
    fn carry(&mut self, ticket: Ticket, message: Carried);

    /// Runs until the next message arrives: which, and when it is wholly there. `None` when nothing is
    /// under way, or nothing will ever arrive.
    fn next_arrival(&mut self) -> Option<(Ticket, Time)>;

    /// Whether it would rather be offered messages than take them, as long as those of a rank enter in the order
    /// in which they are sent; then, how long it takes their bytes to be handed over.
    fn prefers_offers(&self) -> Option<Serialization> {
        None
    }

    /// Hears of a message, which it may forget until it can set off. All of a step are offered one after the
    /// other, before anything else happens.
    fn offer(&mut self, _: &Cursor, _: Carried) {}

    /// As [`Carrier::next_arrival`]; what was offered and forgotten is asked for again.
    fn next_arrival_of(&mut self, _: &mut dyn Supply) -> Option<(Ticket, Time)> {
        self.next_arrival()
    }

    /// Hears that a rank begins a step: what it sends from now on comes after what it sent before.
    fn begin_step(&mut self, _rank: RankId) {}

    /// Whether it forks messages to several ranks; then these come by [`Carrier::fork`].
    fn forks(&self) -> bool {
        false
    }

    /// Takes a message to several ranks, for each its own ticket.
    fn fork(&mut self, messages: &[(Ticket, Carried)]) {
        for &(ticket, message) in messages {
            self.carry(ticket, message);
        }
    }

    /// Whether it combines messages to one rank, and folds them; then these come by [`Carrier::contribute`].
    fn combines(&self) -> bool {
        false
    }

    /// Hears of all combines that there will be, before anything is sent.
    fn expect(&mut self, _combines: Vec<Combined>) {}

    /// Takes a contribution to a combine, by its place among those that are expected.
    fn contribute(&mut self, _combine: usize, ticket: Ticket, message: Carried) {
        self.carry(ticket, message);
    }

    /// Whether some ranks are out of reach of others.
    fn lacks_ways(&self) -> bool {
        false
    }

    /// Whether there is a way from one rank to another; nothing is handed over where there is none.
    fn reaches(&self, _from: RankId, _to: RankId) -> bool {
        true
    }

    /// The deadlock of the network, if messages are in flight and none will arrive.
    fn deadlock(&self) -> Option<Deadlock> {
        None
    }
}

/// A deadlock of a network: messages are in flight, and nothing moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Since when.
    pub since: Time,
    /// Messages that have not arrived.
    pub messages: usize,
    /// The VCs of the deadlock cycle, each waiting for the next and the last for the first.
    pub deadlock_cycle: Vec<String>,
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
