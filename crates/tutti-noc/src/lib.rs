//! Flits: cycle-accurate routers with virtual channels, credits and allocators.
//!
//! **The way of a flit.** A [`Source`] gives packets to nodes; a node injects a flit in a cycle, on a VC of
//! its router that no other packet has. In each router the head of a packet is routed ([`routing`]), is
//! given a VC of the next router, and then each flit its turn in the switch ([`allocator`]); it leaves its
//! buffer when it has won the switch and the buffer behind the output has room, of which credits tell.
//! [`Settings`] say how long each stage takes, and what the allocators are. A node takes what arrives at
//! once.
//!
//! **Against what.** The routers are those of BookSim 2 (Jiang et al., "A detailed and flexible
//! cycle-accurate network-on-chip simulator", ISPASS 2013), and recorded runs of it are repeated to the
//! cycle. [`oracle`] is the same network the obvious way, and [`Network`] the fast one; tests hold them
//! together flit by flit.
//!
//! **What it is used for.** [`measure`] runs synthetic traffic ([`traffic`]) and measures latency and
//! throughput; [`FlitCarrier`] carries the messages of schedules.
#![deny(unsafe_code)]

pub mod allocator;
mod carrier;
pub mod credits;
pub mod deadlock;
mod endpoints;
mod error;
mod fast;
pub mod measure;
mod network;
#[cfg(any(test, feature = "oracle"))]
pub mod oracle;
mod packet;
pub mod routing;
mod settings;
pub mod smart;
pub mod traffic;
mod wiring;

pub use carrier::{FlitCarrier, Packing};
pub use error::FlitError;
pub use network::{Network, Reason, Waiting};
pub use packet::{Delivery, Head, Order, Source};
pub use settings::{Priority, Settings, Speculation, VcRange};
pub use wiring::{Channel, ChannelParameters, End, Wiring};

/// The most cycles that any one delay takes.
pub const LONGEST_DELAY: u32 = 1 << 16;
