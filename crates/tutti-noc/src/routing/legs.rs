//! Legs: the two parts of routes over an intermediate node, network by network.

use std::fmt;

use super::{Compass, Draw, RoutingContext, dimension_order, draw, torus_order};
use crate::Wiring;
use crate::packet::Head;
use crate::settings::VcRange;

/// The phase of a packet on its second leg, to its destination.
pub(super) const SECOND: u8 = 2;

/// Two legs, to the intermediate node of a packet and from there to its destination, each on
/// separate VCs, so that packets form no cyclic dependency.
pub trait Legs: fmt::Debug + Send + Sync {
    /// A node's router, and the port that leads from there to the node.
    fn home(&self, node: u32) -> (u32, u32);

    /// Whether the first leg is over at a router.
    fn is_over(&self, router: u32, head: &Head) -> bool {
        self.home(head.intermediate).0 == router
    }

    /// The port and VCs of the next hop along a packet's leg; `None` at its destination.
    /// `starts_here`: whether a leg starts at this router.
    fn next(
        &self,
        place: &RoutingContext<'_>,
        head: &mut Head,
        starts_here: bool,
    ) -> Option<(u32, VcRange)>;

    /// An intermediate node, where the alternative is the shortest path.
    fn via(&self, place: &RoutingContext<'_>, head: &Head) -> u32;

    /// Hops from a router to a node's.
    fn straight(&self, from: u32, to: u32) -> u32;

    /// Hops from a router over both legs.
    fn detour(&self, from: u32, via: u32, to: u32) -> u32 {
        self.straight(from, via) + self.straight(self.home(via).0, to)
    }

    /// The number of VCs that each class needs.
    fn least_vcs(&self) -> u32;
}

/// The destination of a packet's current leg.
pub(super) fn target(head: &Head) -> u32 {
    if head.phase & SECOND == 0 { head.intermediate } else { head.destination }
}

/// Any node.
pub(super) fn any(place: &RoutingContext<'_>, head: &Head, nodes: u32) -> u32 {
    let node = draw(place, head, Draw::Intermediate, u64::from(nodes));
    u32::try_from(node).unwrap_or(0)
}

/// Per router, one of its nodes.
pub(super) fn router_nodes(wiring: &Wiring) -> Vec<u32> {
    let mut router_nodes = vec![u32::MAX; wiring.routers() as usize];
    for node in (0..wiring.nodes()).rev() {
        router_nodes[wiring.home(node).0 as usize] = node;
    }
    router_nodes
}

/// In dimension order in a mesh, on half of the VCs each; in a torus each half is halved again for
/// datelines.
#[derive(Clone, Debug)]
pub struct GridLegs {
    compass: Compass,
    nodes: u32,
}

impl GridLegs {
    /// On a mesh or torus of so many nodes.
    #[must_use]
    pub fn new(compass: Compass, nodes: u32) -> GridLegs {
        GridLegs { compass, nodes }
    }
}

impl Legs for GridLegs {
    fn home(&self, node: u32) -> (u32, u32) {
        self.compass.home(node)
    }

    fn next(
        &self,
        place: &RoutingContext<'_>,
        head: &mut Head,
        starts_here: bool,
    ) -> Option<(u32, VcRange)> {
        let to = self.home(target(head)).0;
        let second = head.phase & SECOND != 0;
        if self.compass.wraps() {
            let port = torus_order::next(&self.compass, place, head, to, starts_here, false)?;
            return Some((port, torus_order::half(head, place.vcs).half(second)));
        }
        let port = dimension_order::next(&self.compass, place.router, to, false)?;
        Some((port, place.vcs.half(second)))
    }

    fn via(&self, place: &RoutingContext<'_>, head: &Head) -> u32 {
        any(place, head, self.nodes)
    }

    fn straight(&self, from: u32, to: u32) -> u32 {
        let (here, there) = (self.compass.at(from), self.compass.at(self.home(to).0));
        let along = here.iter().zip(there).zip(self.compass.sizes());
        along
            .map(|((&a, &b), &size)| {
                let distance = a.abs_diff(b);
                if self.compass.wraps() { distance.min(size - distance) } else { distance }
            })
            .sum()
    }

    fn least_vcs(&self) -> u32 {
        if self.compass.wraps() { 4 } else { 2 }
    }
}
