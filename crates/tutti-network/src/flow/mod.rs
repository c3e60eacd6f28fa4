//! The flow model: concurrent messages share links and ports by max-min fairness. It models congestion
//! without packets.
//!
//! **Sharing.** A message is a flow along its route. It starts when its first byte leaves the sender's port,
//! transmits at the rate of its allocation, and arrives after its last byte has crossed the links: after the
//! end of the transmission plus the latencies of the links. Rates are max-min fair: no flow can get more
//! without taking from a flow that has no more. They change only when a flow starts or ends.
//!
//! **Ports.** The sender's [`crate::Serialization`] and [`FlowLevel::injection`] limit the flows that leave an NPU
//! together; the receiver's serialization (in LogGP) or [`FlowLevel::ejection`] those that enter it. A crossbar
//! without internal contention is a switch of the topology; several rails are several links. [`FlowLevel::per_message`] limits each flow. If the first byte
//! of a message is free, its flow ends one byte time earlier, but takes the capacity of all its bytes.
//!
//! **Routing.** A flow takes the fixed route of its pair ([`FlowRouting::Routed`]), on which a bundle of
//! parallel links is one link of their combined rate. Or it splits evenly over the minimal links of every
//! vertex ([`FlowRouting::Spread`]), like packets sprayed over all minimal paths.
//!
//! **Multicasts and combines.** With [`FlowLevel::multicast`] or [`FlowLevel::reduce`] a multicast or combine is
//! one flow on the links of a tree, which it loads once. Its rate is that of its slowest link. The flow of a
//! combine starts when the first byte of its last contribution leaves its port. Trees need fixed routes. Where
//! a tree would branch at a switch that does not multicast or reduce, the operation has several parts, each a
//! flow ([`crate::Carrier::parts`]).
//!
//! **Batches** of equal messages that start together, such as those of a ring, are one flow as long as no other
//! flow uses their links.
//!
//! **Without contention** the time of a message is that of `tutti_engine::Routed`, to the picosecond: the
//! sender's model time, plus the latencies, plus the time of the slowest link in excess of the model's
//! serialization.
//!
//! **Rounding.** Rates and remaining bytes are 64-bit floating-point numbers. The end of a transmission is
//! rounded up to the next picosecond; a message that never shared its bottleneck ends at the exact integer
//! time. Equal inputs give equal bits: allocations depend neither on the order of flows nor on which part of
//! the network is solved again. [`oracle`] solves the complete network at every event, and yields the same
//! times.
//!
//! Source of the allocation: Bertsekas and Gallager, "Data networks", 2nd edition, 1992, section 6.5.2.

mod batch;
mod ends;
mod max_min;
mod network;
#[cfg(any(test, feature = "oracle"))]
pub mod oracle;
mod resource;
mod resources;
mod route;
#[cfg(test)]
mod tests;
mod transmission;
mod tree;
mod used;

pub use network::FlowNetwork;
pub use route::FlowRouting;

use crate::Switches;
use tutti_units::TimePerByte;
use tutti_units::parameter::ParameterError;

/// The share of a flow on a link that carries all its bytes, as an integer.
const ALL: u32 = 1 << 30;

tutti_units::parameters! {
    /// Concurrent messages share links and ports by max-min fairness.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct FlowLevel("flow" as "FlowParameters", "", ParameterError) {
        /// Rate of the injection port of each NPU; without it, only the model and the links limit injection.
        injection: Option<TimePerByte>,
        /// Rate of the ejection port of each NPU.
        ejection: Option<TimePerByte>,
        /// The highest rate of a message, such as that of the thread block which copies it.
        per_message: Option<TimePerByte>,
        /// Whether switches fork a multicast, so that each link of its tree carries one copy; or the names of
        /// the switches that do, with `*` for any characters.
        multicast: Switches = "false",
        /// Whether switches reduce the contributions to a combine, so that each link carries one result; or
        /// the names of the switches that do, with `*` for any characters.
        reduce: Switches = "false",
    }
}
