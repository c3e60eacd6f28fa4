//! The first and the last link of routes whose middle is kept for anchors only.

use super::NONE;
use crate::Topology;
use crate::anchors::Anchors;
use tutti_units::ids::{LinkId, RankId, VertexId};

/// Between an NPU and its anchor: the link with the least latency, then the lowest id, each way.
pub(super) struct Ends {
    /// Empty where every NPU is its own anchor.
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

    /// Whether every NPU is its own anchor.
    pub(super) fn are_none(&self) -> bool {
        self.up.is_empty()
    }

    /// The link from a rank's NPU to its anchor; none where it is its own.
    #[inline]
    pub(super) fn up(&self, rank: RankId) -> Option<LinkId> {
        end(&self.up, rank)
    }

    /// The link from its anchor to a rank's NPU.
    #[inline]
    pub(super) fn down(&self, rank: RankId) -> Option<LinkId> {
        end(&self.down, rank)
    }
}

#[inline]
fn end(links: &[u32], rank: RankId) -> Option<LinkId> {
    links.get(rank.index()).filter(|&&link| link != NONE).map(|&link| LinkId(link))
}
