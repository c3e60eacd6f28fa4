//! Flits: cycle-accurate routers with virtual channels, credits and allocators.
//!
//! **The route of a flit.** A [`Source`] hands packets to nodes. A node injects one flit per cycle,
//! on a VC of its router that no other packet holds. In each router the head of a packet is routed
//! ([`routing`]) and allocated a VC of the next router; then each flit is allocated the switch
//! ([`allocator`]). A flit leaves its buffer when it has won the switch and credits show space in
//! the buffer behind the output. [`Settings`] hold the delay of each stage and the allocators.
//! Nodes never refuse a flit.
//!
//! **Validation.** The routers are those of BookSim 2 (Jiang et al., "A detailed and flexible
//! cycle-accurate network-on-chip simulator", ISPASS 2013). Tests replay its recorded runs to the
//! cycle. [`oracle`] is a slow reference model of the same network, and [`Network`] the fast one;
//! tests compare them flit by flit.
//!
//! **Uses.** [`measure`] runs synthetic traffic ([`traffic`]) and measures latency and throughput.
//! [`FlitCarrier`] carries the messages of schedules. [`smart`] is a second engine, for meshes of
//! several hops per cycle. It shares the phases, statistics and traffic of a measurement, and the
//! endpoints of a carrier.
#![deny(unsafe_code)]

pub mod allocator;
mod carrier;
mod channel_load;
mod clocks;
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
mod watchdog;
mod wiring;

pub use carrier::{FlitCarrier, Packing};
pub use channel_load::{Flow, channel_loads};
pub use clocks::Clock;
pub use error::FlitError;
pub use network::{Network, Reason, Waiting};
pub use packet::{Delivery, Head, Order, Source};
pub use settings::{PortBuffers, Priority, Settings, Speculation, VcRange};
pub use watchdog::Watchdog;
pub use wiring::{Channel, ChannelParameters, End, Wiring};

/// The maximum of any delay, in cycles.
pub const LONGEST_DELAY: u32 = 1 << 16;
