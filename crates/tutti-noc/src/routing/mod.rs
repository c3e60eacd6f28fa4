//! Routing functions: the output ports, and VCs of them, that a packet may take.
//!
//! A routing inspects one router alone, and draws at random only by the packet's serial number, so
//! that its result does not depend on the order of the routers. One file per routing.

mod chance;
mod compass;
mod cycle;
pub mod dependencies;
mod dependency_graph;
mod dimension_order;
mod fixed;
mod group_legs;
mod least_latency;
mod legs;
mod minimal_adaptive;
mod nearest_ancestor;
mod o1_turn;
mod registry;
mod row_legs;
mod source_routed;
mod torus_order;
mod two_phases;
mod up_down;

use std::fmt;

pub use chance::{Chance, Choices};
pub use compass::Compass;
pub(super) use cycle::find_cycle;
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
use chance::{Draw, coin_flip, draw};

/// A candidate: an output port and VCs of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The output port.
    pub port: u32,
    /// VCs of the input behind it.
    pub vcs: VcRange,
    /// Candidates of the highest priority are tried first.
    pub priority: i32,
}

/// The position of a head, and the state visible there.
pub struct RoutingContext<'a> {
    /// The router.
    pub router: u32,
    /// The input port of the head.
    pub input: u32,
    /// The VC of that input that it occupies.
    pub vc: u32,
    /// Whether that port is a node's.
    pub injected: bool,
    /// The VCs of its class.
    pub vcs: VcRange,
    /// The random choices.
    pub chance: Chance<'a>,
    /// Credits in use of an output port: flits in the buffers behind it, and flits and credits in
    /// flight.
    pub used: &'a dyn Fn(u32) -> u32,
}

/// The fields of a packet that its candidates depend on, in addition to its phase and its router.
/// They depend on its VC only by the candidate that the VC belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DependsOn {
    /// On its destination.
    Destination,
    /// On its intermediate node, as if that were the destination, until the routing notes `second`
    /// in its phase. It does so in a router that depends on that node alone, if not already at the
    /// destination. From there on, on its destination, as if it started there.
    Via {
        /// The value of the phase on the second leg.
        second: u8,
    },
    /// On its source too, and on its intermediate node.
    Pair,
}

/// A routing function.
pub trait Routing: fmt::Debug + Send + Sync {
    /// Its name in errors.
    fn name(&self) -> &'static str;

    /// The VCs that a packet may be injected into, of those of its class.
    fn injects(&self, _head: &Head, vcs: VcRange) -> VcRange {
        vcs
    }

    /// Pushes the candidates for the next hop of a packet; at least one. Called once in each
    /// router, when the head is first in its VC.
    fn route(&self, place: &RoutingContext<'_>, head: &mut Head, candidates: &mut Vec<Candidate>);

    /// The output port, for routings in which it depends on router and destination alone, and which
    /// leave all VCs of the class open. Called once for each pair, for networks of moderate size.
    fn fixed(&self, _router: u32, _destination: u32) -> Option<u32> {
        None
    }

    /// Whether routes depend on the state of the network: on credits in use, or on which of several
    /// output ports has a free VC.
    fn is_adaptive(&self) -> bool {
        false
    }

    /// The fields that the candidates of a packet depend on.
    fn depends_on(&self) -> DependsOn {
        DependsOn::Destination
    }

    /// The number of VCs that each class needs.
    fn least_vcs(&self) -> u32 {
        1
    }
}

#[cfg(test)]
mod tests;
