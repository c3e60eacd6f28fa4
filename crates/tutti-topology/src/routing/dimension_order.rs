//! Dimension-order routing: dimensions are traversed sequentially, which avoids deadlock in a mesh.

use super::{NONE, Row};
use crate::anchors::Anchors;
use crate::{Family, Topology};
use tutti_units::ids::VertexId;

/// The next link towards the anchor `destination` from every anchor: the NPUs of a mesh or torus,
/// or the routers that NPUs attach to.
pub(super) fn row(topology: &Topology, anchors: &Anchors, destination: VertexId) -> Row {
    let dimensions = topology.family().and_then(Family::dimensions);
    let next = |&at: &VertexId| {
        let towards = dimensions?.next_in_order(at, destination)?;
        topology.links_between(at, towards).next().map(|link| link.0)
    };
    anchors.all().iter().map(|at| next(at).unwrap_or(NONE)).collect()
}
