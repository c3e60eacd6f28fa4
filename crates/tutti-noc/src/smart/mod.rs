//! Meshes whose flits make several hops in a cycle, and in which routers fork and combine:
//! SMART-FanOut and SMART-FanIn, and the meshes they are compared with.
//!
//! T. Krishna and L.-S. Peh, "Single-Cycle Collective Communication Over A Shared Network Fabric",
//! NOCS
//! 2014. The events of a cycle and the arbitration are defined in `docs/models/smart.md`.

mod carrier;
mod connected;
mod counts;
mod designs;
mod fabric;
mod flows;
pub mod measure;
mod mesh;
mod message;
#[cfg(any(test, feature = "oracle"))]
pub mod oracle;
mod record;
mod rule;
mod settings;

pub use carrier::{Cutting, FabricCarrier};
pub use connected::FullyConnected;
pub use counts::Counts;
pub use designs::{Design, DesignKind, design, designs};
pub use fabric::Fabric;
pub use mesh::Mesh;
pub use message::{Arrival, Cast, Combine, Flow, FlowId, Message, NodeSet, Responses};
pub use record::{Event, EventKind, Stop};
pub use rule::Rule;
pub use settings::{
    Arbiter, Class, FanIn, FanOut, Fault, Merge, Priority, REDUCER_HOPS, Settings, Tree,
};
