//! Which output ports, and which VCs of them, a packet may take.
//!
//! A routing looks at one router alone, and draws at random only by the packet's serial number, so that
//! what it answers does not depend on the order in which routers are asked. One file per routing.

mod compass;
pub mod dependencies;
mod dimension_order;
mod fixed;
mod group_legs;
mod legs;
mod minimal_adaptive;
mod nearest_ancestor;
mod o1_turn;
mod registry;
mod row_legs;
mod source_routed;
mod torus_order;
mod two_phases;

use std::fmt;

pub use compass::Compass;
pub use dimension_order::DimensionOrder;
pub use fixed::Fixed;
pub use group_legs::{GroupLegs, Minimal};
pub use legs::{GridLegs, Legs};
pub use minimal_adaptive::MinimalAdaptive;
pub use nearest_ancestor::NearestAncestor;
pub use o1_turn::O1Turn;
pub use registry::{Entry, REGISTRY, check_vcs, parse};
pub use row_legs::RowLegs;
pub use source_routed::{Flow, SourceRouted};
pub use torus_order::TorusOrder;
pub use two_phases::{Through, TwoPhases};

use super::packet::Head;
use super::settings::VcRange;
use crate::network::noise::{random_bits, scale, split_words};

/// An output port and VCs of it, for a packet to take one of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// The output port.
    pub port: u32,
    /// VCs of the input behind it.
    pub vcs: VcRange,
    /// Of several ways those with the highest are tried first.
    pub priority: i32,
}

/// Where a head is, and what is seen from there.
pub struct Place<'a> {
    /// The router.
    pub router: u32,
    /// The input port it came in by.
    pub input: u32,
    /// The VC of that input that it is in.
    pub vc: u32,
    /// Whether that port is a node's.
    pub injected: bool,
    /// The VCs of its class.
    pub vcs: VcRange,
    /// For random choices.
    pub seed: u64,
    /// Credits in use of an output port: flits in the buffers behind it, or on the way there or back.
    pub used: &'a dyn Fn(u32) -> u32,
}

/// A routing function.
pub trait Routing: fmt::Debug + Send + Sync {
    /// What errors call it.
    fn name(&self) -> &'static str;

    /// The VCs that a packet may be injected into, of those of its class.
    fn injects(&self, _head: &Head, vcs: VcRange) -> VcRange {
        vcs
    }

    /// Pushes the ways that a packet may go on; at least one. Called once in each router, when the head
    /// is first in its VC.
    fn route(&self, place: &Place<'_>, head: &mut Head, ways: &mut Vec<Way>);

    /// The output port, for routings in which that depends on router and destination alone, and which
    /// leave all VCs of the class open. They are asked once for each pair, where that is not too often.
    fn fixed(&self, _router: u32, _destination: u32) -> Option<u32> {
        None
    }

    /// How many VCs of each class it needs.
    fn least_vcs(&self) -> u32 {
        1
    }
}

/// What a random choice is for; choices of one packet in one router are apart.
#[derive(Clone, Copy)]
enum Draw {
    Direction,
    Partition,
    Order,
    Intermediate,
    Port,
    OtherPort,
    Flow,
}

/// A number below `bound`, for a packet in a router.
fn draw(place: &Place<'_>, head: &Head, what: Draw, bound: u64) -> u64 {
    let [low, high] = split_words(head.serial);
    let bits = random_bits(place.seed, [low, high, place.router, what as u32 | 0x0F17_0000]);
    scale(bits, u128::from(bound))
}

/// A coin tossed for a packet in a router.
fn toss(place: &Place<'_>, head: &Head, what: Draw) -> bool {
    draw(place, head, what, 2) == 1
}

#[cfg(test)]
mod tests;
