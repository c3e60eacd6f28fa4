//! Network models: how long a message takes. They know messages, not collectives.
//!
//! The contention-free models (one file each) compute from the time at which a rank is ready to send when
//! it is free again and when the message arrives. They implement [`MessageModel`]. The engine is generic over
//! it, so that a model costs no virtual call.
//!
//! Networks with contention connect the models of two ranks: a [`Carrier`] accepts a message when the sender's
//! model injects it, and yields its arrival time. There are [`flow`], [`packet`] and the routers of `tutti-noc`.
#![deny(unsafe_code)]

mod background;
mod carrier;
pub mod flow;
mod in_network;
mod model;
mod noise;
pub mod packet;
mod queue;
mod route_tree;
mod serialization;
mod slab;
#[cfg(test)]
mod tests;

pub use background::{BackgroundFlow, LinkLoad};
pub use carrier::{
    Carried, Carrier, Combined, Cursor, Deadlock, Progress, Stepped, Supply, Ticket, Uncontended,
};
pub use in_network::{Switches, classes_of_switches};
pub use model::*;
pub use noise::{Detours, Distribution, Noise, NoiseError, Part};
pub use queue::EventQueue;
pub use serialization::Serialization;

use tutti_units::{Bytes, Time};

/// The state of a rank's network port between messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// The port can inject the next message from this time on.
    pub send_free: Time,
    /// The port can receive the next message from this time on.
    pub recv_free: Time,
    /// Messages sent in the current burst (since the rank last waited).
    pub burst: u32,
    /// Messages received in the current burst.
    pub taken: u32,
}

impl Port {
    /// Starts a new burst at the start of a step; the port remains busy.
    #[inline]
    pub fn start_burst(&mut self) {
        self.burst = 0;
        self.taken = 0;
    }
}

/// The times of a message that is handed to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The sender is free from this time on.
    pub free: Time,
    /// The last byte is at the destination's port at this time.
    pub arrival: Time,
}

/// A contention-free model of a message between two ranks.
pub trait MessageModel: Send + Sync {
    /// Sends `bytes` from a rank that is ready at `now`.
    fn send(&self, port: &mut Port, now: Time, bytes: Bytes) -> Sent;

    /// Receives a message of `bytes` that arrives at `arrival`, on a rank that is ready at `now`; returns the
    /// completion time.
    fn receive(&self, port: &mut Port, now: Time, arrival: Time, bytes: Bytes) -> Time;

    /// When a rank that has other work starts its next send at the earliest: a send before waits for
    /// the port. [`Time::ZERO`] if a send never waits, or its wait occupies the rank.
    fn next_send(&self, _port: &Port) -> Time {
        Time::ZERO
    }

    /// Whether the first bytes of a rank's messages leave in the order in which they are sent, given that the
    /// last byte leaves at `arrival` and `bytes` is the serialization. `false` if unknown.
    fn keeps_order(&self, _bytes: Serialization) -> bool {
        false
    }
}
