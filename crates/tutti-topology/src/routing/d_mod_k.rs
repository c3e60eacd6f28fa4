//! D-mod-K: through a fat tree by the destination's number, so that shifts do not meet.

use crate::{Family, Topology};
use tutti_units::ids::{LinkId, RankId, VertexId};

/// The link that messages to a rank take at a vertex of a fat tree; none at the end.
pub(super) fn next(topology: &Topology, at: VertexId, to: RankId) -> Option<LinkId> {
    if at == VertexId(to.0) {
        return None;
    }
    let tree = topology.family().and_then(Family::fat_tree)?;
    let (place, cable) = tree.d_mod_k(tree.place(at), u64::from(to.0));
    let next = tree.vertex(place);
    topology.links_between(at, next).nth(usize::try_from(cable).unwrap_or(usize::MAX))
}
