//! Shortest paths with fixed tie-breaking: fewest hops, then least latency, then lowest link ids.

use std::collections::VecDeque;

use super::{NONE, Row};
use crate::anchors::Anchors;
use crate::{Family, Topology};
use tutti_units::Time;
use tutti_units::ids::VertexId;

/// The next link towards the anchor `destination` from every anchor that can reach it.
pub(super) fn row(topology: &Topology, anchors: &Anchors, destination: VertexId) -> Row {
    row_over(topology, anchors, destination, |_, _| true)
}

/// The next link in a dragonfly on paths with at most one global link.
pub(super) fn minimal_row(topology: &Topology, anchors: &Anchors, destination: VertexId) -> Row {
    let dragonfly = topology.family().and_then(Family::dragonfly);
    let group = |vertex| dragonfly.map_or(0, |dragonfly| dragonfly.group_of(vertex));
    let groups: Vec<u32> = topology.vertices().map(group).collect();
    let end = groups[destination.index()];
    row_over(topology, anchors, destination, |from, to| {
        let there = groups[to.index()];
        there == groups[from.index()] || there == end
    })
}

/// The next link over `allowed` links, which receives both vertices of a link.
///
/// A breadth-first search against the direction of the links visits vertices in order of hops, so
/// that every vertex chooses after all nearer ones. Every choice lowers the hops by one, so routes
/// cannot loop.
fn row_over(
    topology: &Topology,
    anchors: &Anchors,
    destination: VertexId,
    allowed: impl Fn(VertexId, VertexId) -> bool,
) -> Row {
    let places = anchors.all().len();
    let mut hops = vec![u32::MAX; places];
    let mut latency = vec![Time::MAX; places];
    let mut next = vec![NONE; places].into_boxed_slice();
    hops[anchors.place(destination)] = 0;
    latency[anchors.place(destination)] = Time::ZERO;
    let mut queue = VecDeque::from([destination]);
    while let Some(at) = queue.pop_front() {
        let here = anchors.place(at);
        // Vertices other than anchors have no index: their only neighbour is the one the path came
        // from.
        let nearer = topology.links_out(at).filter_map(|link| {
            let to = topology.link_to(link);
            let there = anchors.place(to);
            let comes_nearer = *hops.get(there)? < hops[here] && allowed(at, to);
            comes_nearer.then(|| (topology.parameters(link).latency + latency[there], link))
        });
        if let Some((least, link)) = nearer.min() {
            (latency[here], next[here]) = (least, link.0);
        }
        let further = hops[here] + 1;
        for &link in topology.links_in(at) {
            let from = topology.link_from(link);
            if let Some(slot) = hops.get_mut(anchors.place(from))
                && *slot == u32::MAX
                && allowed(from, at)
            {
                *slot = further;
                queue.push_back(from);
            }
        }
    }
    next
}
