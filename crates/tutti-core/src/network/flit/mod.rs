//! Flits: cycle-accurate routers with virtual channels, credits and allocators.

pub mod allocator;
mod carrier;
mod error;
mod fast;
pub mod measure;
mod network;
pub mod oracle;
mod packet;
pub mod routing;
mod settings;
pub mod traffic;
mod wiring;

pub use carrier::{FlitCarrier, Packing};
pub use error::FlitError;
pub use network::Network;
pub use packet::{Delivery, Head, Order, Source};
pub use settings::{Priority, Settings, Speculation, VcRange};
pub use wiring::{Channel, ChannelParameters, End, Wiring};

/// The most cycles that any one delay takes.
pub const LONGEST_DELAY: u32 = 1 << 16;
