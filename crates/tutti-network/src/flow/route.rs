//! The links of a flow, each with the share of its bytes that cross it.

use std::collections::BTreeMap;

use super::ALL;
use crate::route_tree::Branching;
use tutti_topology::{Distances, Family, Routes, Topology, UNREACHABLE};
use tutti_units::ids::{LinkId, RankId, VertexId};
use tutti_units::{Bytes, Time, TimePerByte};

/// How flows are routed through a graph.
#[derive(Clone, Copy, Debug)]
pub enum FlowRouting<'a> {
    /// A fixed route per pair of ranks; a bundle of parallel links is one link.
    Routed(&'a Routes),
    /// Every vertex splits a flow evenly over its links on minimal paths.
    Spread(&'a Distances),
}

/// A link of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Crossing {
    pub(super) link: u32,
    /// The share of the flow's bytes, in units of 1 / [`ALL`].
    pub(super) share: u32,
}

impl Crossing {
    /// The bytes of a flow that cross the link, rounded up.
    #[inline]
    pub(super) fn bytes(self, of: Bytes) -> Bytes {
        if self.share == ALL {
            return of;
        }
        let bytes = (u128::from(of.0) * u128::from(self.share)).div_ceil(u128::from(ALL));
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

impl<'a> FlowRouting<'a> {
    /// The graph.
    #[must_use]
    pub fn topology(&self) -> &'a Topology {
        match *self {
            FlowRouting::Routed(routes) => routes.topology(),
            FlowRouting::Spread(distances) => distances.topology(),
        }
    }

    /// Whether every pair of ranks has one route, so that multicasts have a tree.
    pub(super) fn is_fixed(&self) -> bool {
        matches!(self, FlowRouting::Routed(_))
    }

    /// The parts of a multicast from a root, or of a combine to it (`inwards`).
    pub(super) fn parts(
        &self,
        branching: &Branching,
        (root, inwards): (RankId, bool),
        leaves: &[RankId],
    ) -> Vec<Vec<usize>> {
        match self {
            FlowRouting::Routed(routes) => branching.parts(routes, (root, inwards), leaves),
            FlowRouting::Spread(_) => (0..leaves.len()).map(|index| vec![index]).collect(),
        }
    }

    /// The rate of a link, or of the bundle that it represents.
    pub(super) fn rate(&self, link: LinkId) -> TimePerByte {
        match self {
            FlowRouting::Routed(routes) => routes.parameters(link).rate,
            FlowRouting::Spread(distances) => distances.topology().parameters(link).rate,
        }
    }

    /// The links that a link represents: its bundle, or itself.
    pub(super) fn bundle(&self, link: LinkId) -> std::ops::Range<u32> {
        match self {
            FlowRouting::Routed(routes) => {
                let mut links = routes.bundle(link).map(|link| link.0);
                let first = links.next().unwrap_or(link.0);
                first..links.last().unwrap_or(first) + 1
            }
            FlowRouting::Spread(_) => link.0..link.0 + 1,
        }
    }

    pub(super) fn has_unreachable_pairs(&self) -> bool {
        match self {
            FlowRouting::Routed(routes) => routes.has_unreachable_pairs(),
            FlowRouting::Spread(distances) => {
                distances.topology().family().is_some_and(Family::may_be_disconnected)
            }
        }
    }

    pub(super) fn reaches(&self, from: RankId, to: RankId) -> bool {
        match self {
            FlowRouting::Routed(routes) => routes.reach(from, to),
            FlowRouting::Spread(distances) => {
                distances.hops(VertexId(from.0), VertexId(to.0)) != UNREACHABLE
            }
        }
    }

    /// Appends the links of a flow; returns their latency, that of the longest path if there are several.
    pub(super) fn route(&self, from: RankId, to: RankId, into: &mut Vec<Crossing>) -> Time {
        match *self {
            FlowRouting::Routed(routes) => {
                let (mut at, mut hops) = (VertexId(from.0), 0);
                let mut latency = Time::ZERO;
                while at.0 != to.0 {
                    let link = routes.next_link(from, to, at, hops);
                    let first = self.first_of(link);
                    into.push(Crossing { link: first, share: ALL });
                    latency += routes.parameters(link).latency;
                    at = routes.topology().link_to(link);
                    hops += 1;
                }
                latency
            }
            FlowRouting::Spread(distances) => spread(distances, from, to, into),
        }
    }

    /// The link that represents the bundle of a link.
    #[inline]
    pub(super) fn first_of(&self, link: LinkId) -> u32 {
        match self {
            FlowRouting::Routed(routes) if routes.share_bundles() => self.bundle(link).start,
            _ => link.0,
        }
    }
}

/// The last routes of each source, as ranks mostly send to few others.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentRoutes(Vec<Recent>);

/// A route; empty initially.
#[derive(Clone, Debug, Default)]
struct Recent {
    destination: RankId,
    latency: Time,
    links: Vec<Crossing>,
}

impl RecentRoutes {
    /// Routes stored per source, by a hash of the distance: neighbours in both directions differ.
    const STORED: u32 = 8;

    /// As [`FlowRouting::route`], for an empty `into`.
    pub(super) fn route(
        &mut self,
        routing: &FlowRouting<'_>,
        from: RankId,
        to: RankId,
        into: &mut Vec<Crossing>,
    ) -> Time {
        let hash = to.0.wrapping_sub(from.0).wrapping_mul(0x9e37_79b1) >> 29;
        let at = (from.0 * Self::STORED + hash) as usize;
        if at >= self.0.len() {
            self.0.resize(at + 1, Recent::default());
        }
        let recent = &mut self.0[at];
        if recent.links.is_empty() || recent.destination != to {
            recent.latency = routing.route(from, to, into);
            recent.destination = to;
            recent.links.clone_from(into);
        } else {
            into.extend_from_slice(&recent.links);
        }
        recent.latency
    }
}

/// The links on minimal paths, each with its share. Vertices are visited in descending distance, so that all
/// that enters a vertex is known when it is split.
fn spread(distances: &Distances, from: RankId, to: RankId, into: &mut Vec<Crossing>) -> Time {
    let topology = distances.topology();
    let towards = distances.to(VertexId(to.0));
    let mut reached = BTreeMap::from([(VertexId(from.0), (ALL, Time::ZERO))]);
    loop {
        if let Some(&(_, latency)) = reached.get(&VertexId(to.0)) {
            return latency;
        }
        let mut next: BTreeMap<VertexId, (u32, Time)> = BTreeMap::new();
        for (at, (share, latency)) in reached {
            let count = u32::try_from(towards.links(at).count()).unwrap_or(u32::MAX);
            for link in towards.links(at) {
                // Rounded up, so that no link carries less than its flows need.
                let part = share.div_ceil(count);
                into.push(Crossing { link: link.0, share: part });
                let here = next.entry(topology.link_to(link)).or_default();
                here.0 = (here.0 + part).min(ALL);
                here.1 = here.1.max(latency + topology.parameters(link).latency);
            }
        }
        reached = next;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use tutti_topology::{LinkParameters, build};

    #[test]
    fn a_spread_flow_splits_at_every_vertex() {
        let link = LinkParameters::new(TimePerByte::new(1, 1).unwrap(), Time::from_ps(10));
        let topology = Arc::new(build("mesh:3x3", &[link]).unwrap());
        let distances = Distances::fewest_hops(topology);
        let mut found = Vec::new();
        // From corner to corner: half of the flow on the first two and the last two links, a quarter on the
        // four before and the four after the middle.
        let latency = FlowRouting::Spread(&distances).route(RankId(0), RankId(8), &mut found);
        let mut shares: Vec<u32> = found.iter().map(|crossing| ALL / crossing.share).collect();
        shares.sort_unstable();
        assert_eq!(shares, [2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 4, 4]);
        assert_eq!(latency, Time::from_ps(40));
    }
}
