//! Bundles: parallel links between the same two vertices, used as one link.

use std::ops::Range;

use crate::{LinkParameters, Topology};
use tutti_units::ids::LinkId;

/// The bundle of each link. Links of a bundle have consecutive ids.
pub(super) struct Bundles {
    first: Box<[u32]>,
    end: Box<[u32]>,
    /// The parameters of each bundle as one link: the sum of the rates and the longest latency.
    parameters: Box<[LinkParameters]>,
}

impl Bundles {
    pub(super) fn in_graph(topology: &Topology) -> Bundles {
        let (mut first, mut end, mut parameters) = (Vec::new(), Vec::new(), Vec::new());
        let ends = |link| (topology.link_from(link), topology.link_to(link));
        let links: Vec<LinkId> = topology.links().collect();
        for bundle in links.chunk_by(|&a, &b| ends(a) == ends(b)) {
            let together = bundle[1..].iter().fold(topology.parameters(bundle[0]), |one, &link| {
                let other = topology.parameters(link);
                LinkParameters {
                    rate: one.rate.in_parallel_with(other.rate),
                    latency: one.latency.max(other.latency),
                    length: one.length.max(other.length),
                }
            });
            first.extend(bundle.iter().map(|_| bundle[0].0));
            end.extend(bundle.iter().map(|_| bundle[bundle.len() - 1].0 + 1));
            parameters.extend(bundle.iter().map(|_| together));
        }
        Bundles { first: first.into(), end: end.into(), parameters: parameters.into() }
    }

    /// The link ids of a link's bundle.
    #[inline]
    pub(super) fn of(&self, link: LinkId) -> Range<u32> {
        self.first[link.index()]..self.end[link.index()]
    }

    #[inline]
    pub(super) fn parameters(&self, link: LinkId) -> LinkParameters {
        self.parameters[link.index()]
    }
}
