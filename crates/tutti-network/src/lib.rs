//! Network models: how long a message takes. They know messages, not collectives.
//!
//! The contention-free models of this module (one file each) answer at once: given when a rank is ready
//! to send, when is it free again and when does the message arrive. They share one trait,
//! [`MessageModel`], which the engine is generic over, so that a model costs no virtual call.
//!
//! Networks in which messages meet stand between the models of two ranks: a [`Carrier`] takes a message
//! when its sender's model lets it go, and says when it arrives: [`packet`], and the routers of `tutti-noc`.
#![deny(unsafe_code)]

mod background;
mod carrier;
mod model;
mod noise;
pub mod packet;
mod serialization;
#[cfg(test)]
mod tests;

pub use background::{BackgroundFlow, LinkLoad};
pub use carrier::{Carried, Carrier, Combined, Cursor, Deadlock, Supply, Ticket, Uncontended};
pub use model::*;
pub use noise::{Detours, Distribution, Noise, NoiseError, Part};
pub use serialization::Serialization;

use tutti_units::{Bytes, Time};

/// When a rank's network port is next free; the models keep their memory between messages here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// The port can inject the next message from this time on.
    pub send_free: Time,
    /// The port can take the next message from this time on.
    pub recv_free: Time,
    /// Messages sent since the rank last waited: a burst, for models in which part of it is free.
    pub burst: u32,
    /// Messages taken since then: the receiving side of a burst.
    pub taken: u32,
}

impl Port {
    /// A rank starts a step: its bursts start anew, what the port is still busy with stays.
    #[inline]
    pub fn begin_step(&mut self) {
        self.burst = 0;
        self.taken = 0;
    }
}

/// What becomes of a message that is handed to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The sending rank can go on from this time.
    pub free: Time,
    /// The message is wholly at its destination's port at this time.
    pub arrival: Time,
}

/// A contention-free model of a message between two ranks.
pub trait MessageModel: Send + Sync {
    /// A rank that is ready at `now` sends `bytes`.
    fn send(&self, port: &mut Port, now: Time, bytes: Bytes) -> Sent;

    /// A rank that is ready at `now` takes a message of `bytes` that arrives at `arrival`; the time at
    /// which the rank holds it.
    fn receive(&self, port: &mut Port, now: Time, arrival: Time, bytes: Bytes) -> Time;

    /// Whether the first byte of no message leaves a rank before that of one sent earlier, when the last is
    /// there at the arrival and the bytes take that long. `false` where that is not known.
    fn keeps_order(&self, _bytes: Serialization) -> bool {
        false
    }
}
