//! Dimensions: what dimension-order routing has to know of a family.

use super::grid::Grid;
use tutti_units::ids::VertexId;

/// Vertices in rows along any number of dimensions: the NPUs of a mesh or torus, or routers with their
/// NPUs beside them.
pub trait Dimensions {
    /// The vertex after `at` on the way to `destination`, lowest dimension first; none at the
    /// destination, and none where one of the two does not stand in rows.
    fn next_in_order(&self, at: VertexId, destination: VertexId) -> Option<VertexId>;
}

impl Dimensions for Grid {
    fn next_in_order(&self, at: VertexId, destination: VertexId) -> Option<VertexId> {
        self.next_towards(at.0, destination.0).map(VertexId)
    }
}

/// The same for routers, which follow the NPUs: `next` works with the routers' own numbers.
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
