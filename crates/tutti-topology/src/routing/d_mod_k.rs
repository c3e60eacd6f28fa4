//! D-mod-K routing in a fat tree: the destination selects the up-links, so shift permutations do
//! not contend.

use crate::{Family, Topology};
use tutti_units::ids::{LinkId, RankId, VertexId};

/// The next link towards a rank from a vertex of a fat tree; `None` at the destination.
pub(super) fn next(topology: &Topology, at: VertexId, to: RankId) -> Option<LinkId> {
    if at == VertexId(to.0) {
        return None;
    }
    let tree = topology.family().and_then(Family::fat_tree)?;
    let (place, cable) = tree.d_mod_k(tree.place(at), u64::from(to.0));
    let next = tree.vertex(place);
    topology.links_between(at, next).nth(usize::try_from(cable).unwrap_or(usize::MAX))
}
