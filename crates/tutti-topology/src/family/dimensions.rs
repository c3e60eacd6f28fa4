//! Dimensions: what dimension-order routing needs from a family.

use super::grid::Grid;
use tutti_units::ids::VertexId;

/// Vertices in rows along any number of dimensions: the NPUs of a mesh or torus, or routers with
/// NPUs attached.
pub trait Dimensions {
    /// The next vertex from `at` towards `destination`, lowest dimension first. `None` at the
    /// destination and for vertices outside the rows.
    fn next_in_order(&self, at: VertexId, destination: VertexId) -> Option<VertexId>;
}

impl Dimensions for Grid {
    fn next_in_order(&self, at: VertexId, destination: VertexId) -> Option<VertexId> {
        self.next_towards(at.0, destination.0).map(VertexId)
    }
}

/// Applies `next`, which uses router numbers, to vertices of routers, which follow the NPUs.
pub(super) fn among_routers(
    npus: u64,
    at: VertexId,
    destination: VertexId,
    next: impl Fn(u32, u32) -> Option<u32>,
) -> Option<VertexId> {
    let first = u32::try_from(npus).ok()?;
    let next = next(at.0.checked_sub(first)?, destination.0.checked_sub(first)?)?;
    Some(VertexId(first + next))
}
