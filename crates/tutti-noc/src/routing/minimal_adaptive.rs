//! Minimal adaptive routing with escape VCs.

use super::{Candidate, Compass, Routing, RoutingContext, dimension_order, torus_order};
use crate::packet::Head;
use crate::settings::VcRange;

/// Along any productive dimension. The lowest VCs of a class are the escape: dimension
/// order, one VC in a mesh, two (datelines) in a torus. A packet takes it when no other VC is free,
/// and stays in it (Duato, "A new theory of deadlock-free adaptive routing in wormhole networks",
/// 1993).
///
/// `first_dimension` offers only the first productive dimension, as `min_adapt_mesh` of BookSim 2
/// does: its `OutputSet` is ordered by priority, and retains only the first port of each priority.
#[derive(Clone, Debug)]
pub struct MinimalAdaptive {
    compass: Compass,
    first_dimension: bool,
    /// On the VC after the escape VCs alone.
    one_vc: bool,
}

impl MinimalAdaptive {
    /// On a mesh or torus.
    #[must_use]
    pub fn new(compass: Compass) -> MinimalAdaptive {
        MinimalAdaptive { compass, first_dimension: false, one_vc: false }
    }

    /// On a mesh or torus, along the first productive dimension.
    #[must_use]
    pub fn first_dimension(compass: Compass) -> MinimalAdaptive {
        MinimalAdaptive { compass, first_dimension: true, one_vc: false }
    }

    /// On a mesh or torus, along the first productive dimension, on one adaptive VC; other VCs are
    /// for injection and ejection only. BookSim 2 does so in a torus (`min_adapt_torus`).
    #[must_use]
    pub fn one_vc(compass: Compass) -> MinimalAdaptive {
        MinimalAdaptive { compass, first_dimension: true, one_vc: true }
    }

    /// The number of escape VCs.
    fn escapes(&self) -> u32 {
        if self.compass.wraps() { 2 } else { 1 }
    }

    /// The dimension-order route, on the escape; `None` at the destination.
    fn escape(
        &self,
        place: &RoutingContext<'_>,
        head: &mut Head,
        to: u32,
        in_escape: bool,
    ) -> Option<Candidate> {
        let first = place.vcs.first;
        if !self.compass.wraps() {
            let port = dimension_order::next(&self.compass, place.router, to, false)?;
            return Some(Candidate { port, vcs: VcRange { first, last: first }, priority: 0 });
        }
        // A packet outside the escape VCs could enter them here, as if it started here.
        let port = torus_order::next(&self.compass, place, head, to, !in_escape, false)?;
        let vcs = torus_order::half(head, VcRange { first, last: first + 1 });
        Some(Candidate { port, vcs, priority: 0 })
    }
}

impl Routing for MinimalAdaptive {
    fn name(&self) -> &'static str {
        "minimal_adaptive"
    }

    fn route(&self, place: &RoutingContext<'_>, head: &mut Head, candidates: &mut Vec<Candidate>) {
        let (home, ejects) = self.compass.home(head.destination);
        let in_escape = !place.injected && place.vc < place.vcs.first + self.escapes();
        let Some(escape) = self.escape(place, head, home, in_escape) else {
            candidates.push(Candidate { port: ejects, vcs: place.vcs, priority: 0 });
            return;
        };
        candidates.push(escape);
        if in_escape {
            return;
        }
        let first = place.vcs.first + self.escapes();
        let vcs = VcRange { first, last: if self.one_vc { first } else { place.vcs.last } };
        let (here, there) = (self.compass.at(place.router), self.compass.at(home));
        for (dimension, (&a, &b)) in here.iter().zip(there).enumerate() {
            if a == b {
                continue;
            }
            let size = self.compass.sizes()[dimension];
            let down =
                if self.compass.wraps() { 2 * ((b + size - a) % size) >= size } else { a > b };
            candidates.push(Candidate {
                port: self.compass.port(place.router, dimension, down),
                vcs,
                priority: 1,
            });
            if self.first_dimension {
                break;
            }
        }
    }

    fn is_adaptive(&self) -> bool {
        true
    }

    fn least_vcs(&self) -> u32 {
        self.escapes() + 1
    }
}
