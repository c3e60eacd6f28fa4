//! The first and last links of routes that are stored between anchors only.

use super::NONE;
use crate::Topology;
use crate::anchors::Anchors;
use tutti_units::ids::{LinkId, RankId, VertexId};

/// The links between an NPU and its anchor, in each direction: least latency, then lowest id.
pub(super) struct Ends {
    /// Empty if every NPU is an anchor.
    up: Box<[u32]>,
    down: Box<[u32]>,
}

impl Ends {
    pub(super) fn new(topology: &Topology, anchors: &Anchors) -> Ends {
        let npus = || (0..topology.npus()).map(VertexId);
        if npus().all(|npu| anchors.of(npu) == npu) {
            return Ends { up: Box::default(), down: Box::default() };
        }
        let best = |from: VertexId, to: VertexId| {
            let links = topology.links_between(from, to);
            let best = links.min_by_key(|&link| (topology.parameters(link).latency, link));
            best.map_or(NONE, |link| link.0)
        };
        Ends {
            up: npus().map(|npu| best(npu, anchors.of(npu))).collect(),
            down: npus().map(|npu| best(anchors.of(npu), npu)).collect(),
        }
    }

    /// Whether every NPU is an anchor.
    pub(super) fn are_none(&self) -> bool {
        self.up.is_empty()
    }

    /// The link from a rank's NPU to its anchor; `None` if the NPU is an anchor.
    #[inline]
    pub(super) fn up(&self, rank: RankId) -> Option<LinkId> {
        end(&self.up, rank)
    }

    /// The link from the anchor to a rank's NPU.
    #[inline]
    pub(super) fn down(&self, rank: RankId) -> Option<LinkId> {
        end(&self.down, rank)
    }
}

#[inline]
fn end(links: &[u32], rank: RankId) -> Option<LinkId> {
    links.get(rank.index()).filter(|&&link| link != NONE).map(|&link| LinkId(link))
}
