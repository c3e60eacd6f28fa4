//! Dimension order: one dimension after the other, which keeps a mesh free of deadlock.

use super::{NONE, Row};
use crate::ids::VertexId;
use crate::topology::{Family, Topology};

/// The next link towards `destination` from every NPU of a mesh or torus.
pub(super) fn row(topology: &Topology, destination: VertexId) -> Row {
    let grid = topology.family().and_then(Family::grid);
    let next = |at: VertexId| {
        let towards = VertexId(grid?.next_towards(at.0, destination.0)?);
        topology.links_between(at, towards).next().map(|link| link.0)
    };
    topology.vertices().map(|at| next(at).unwrap_or(NONE)).collect()
}
