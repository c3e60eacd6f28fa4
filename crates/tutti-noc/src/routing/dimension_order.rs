//! Dimension order: one dimension after the other.

use super::{Candidate, Compass, Routing, RoutingContext};
use crate::packet::Head;

/// Along the first dimension that is not yet right, in a mesh: X, then Y. Or in the reverse order.
#[derive(Clone, Debug)]
pub struct DimensionOrder {
    compass: Compass,
    descending: bool,
}

impl DimensionOrder {
    /// On a mesh; from the last dimension to the first if `descending`.
    #[must_use]
    pub fn new(compass: Compass, descending: bool) -> DimensionOrder {
        DimensionOrder { compass, descending }
    }
}

/// The next port from `router` to where `to` is, by dimension order in a mesh; `None` when there.
#[inline]
pub(super) fn next(compass: &Compass, router: u32, to: u32, descending: bool) -> Option<u32> {
    let (here, there) = (compass.at(router), compass.at(to));
    let differs = |&dimension: &usize| here[dimension] != there[dimension];
    let mut dimensions = 0..here.len();
    let dimension =
        if descending { dimensions.rev().find(differs) } else { dimensions.find(differs) }?;
    Some(compass.port(router, dimension, here[dimension] > there[dimension]))
}

impl DimensionOrder {
    fn port(&self, router: u32, destination: u32) -> u32 {
        let (home, ejects) = self.compass.home(destination);
        next(&self.compass, router, home, self.descending).unwrap_or(ejects)
    }
}

impl Routing for DimensionOrder {
    fn name(&self) -> &'static str {
        "dimension_order"
    }

    fn route(&self, place: &RoutingContext<'_>, head: &mut Head, candidates: &mut Vec<Candidate>) {
        let port = self.port(place.router, head.destination);
        candidates.push(Candidate { port, vcs: place.vcs, priority: 0 });
    }

    fn fixed(&self, router: u32, destination: u32) -> Option<u32> {
        Some(self.port(router, destination))
    }
}
