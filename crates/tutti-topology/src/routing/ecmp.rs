//! Equal-cost multi-path: at every vertex one of all links on paths with the fewest hops.
//!
//! A hash of source, destination, vertex and seed selects the link, as switches hash the headers of
//! a flow: all messages between two ranks take the same path, and different pairs spread. The hash
//! is fixed, so a seed yields the same paths on every machine.

use std::sync::Arc;

use crate::{Distances, Topology};
use tutti_units::ids::{LinkId, RankId, VertexId};

pub(super) struct Ecmp {
    distances: Distances,
    pub(super) seed: u64,
}

impl Ecmp {
    pub(super) fn new(topology: Arc<Topology>, seed: u64) -> Ecmp {
        Ecmp { distances: Distances::fewest_hops(topology), seed }
    }

    /// The next link from a vertex for messages between two ranks; `None` at the destination.
    pub(super) fn next(&self, at: VertexId, from: RankId, to: RankId) -> Option<LinkId> {
        let towards = self.distances.to(VertexId(to.0));
        let choices = towards.links(at).count() as u64;
        let pair = u64::from(from.0) << 32 | u64::from(to.0);
        let hash = mixed(mixed(mixed(self.seed) ^ pair) ^ u64::from(at.0));
        // The upper bits scaled to the number of choices, which preserves uniformity.
        let choice = (u128::from(hash) * u128::from(choices)) >> 64;
        towards.links(at).nth(usize::try_from(choice).unwrap_or(usize::MAX))
    }
}

/// The step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
