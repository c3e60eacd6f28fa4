//! Shortest paths, decided in full: fewest hops, then least latency, then lowest link ids.

use std::collections::VecDeque;

use super::{NONE, Row};
use crate::ids::{RankId, VertexId};
use crate::topology::{Family, Topology};
use crate::units::Time;

/// The next link towards `destination` from everywhere that can reach it.
pub(super) fn row(topology: &Topology, destination: RankId) -> Row {
    row_over(topology, destination, |_, _| true)
}

/// In a dragonfly, the next link on paths with at most one global link.
pub(super) fn minimal_row(topology: &Topology, destination: RankId) -> Row {
    let dragonfly = topology.family().and_then(Family::dragonfly);
    let group = |vertex| dragonfly.map_or(0, |dragonfly| dragonfly.group_of(vertex));
    let groups: Vec<u32> = topology.vertices().map(group).collect();
    let end = groups[destination.index()];
    row_over(topology, destination, |from, to| {
        let there = groups[to.index()];
        there == groups[from.index()] || there == end
    })
}

/// The same over the links that are `allowed`, by where they start and end.
///
/// A breadth-first search against the direction of the links visits the vertices by their hops, so
/// that when a vertex chooses, everything nearer has chosen. Every choice lowers the hops by one, so
/// no route can loop.
fn row_over(
    topology: &Topology,
    destination: RankId,
    allowed: impl Fn(VertexId, VertexId) -> bool,
) -> Row {
    let mut hops = vec![u32::MAX; topology.vertex_count()];
    let mut latency = vec![Time::MAX; topology.vertex_count()];
    let mut next = vec![NONE; topology.vertex_count()].into_boxed_slice();
    let destination = VertexId(destination.0);
    hops[destination.index()] = 0;
    latency[destination.index()] = Time::ZERO;
    let mut queue = VecDeque::from([destination]);
    while let Some(at) = queue.pop_front() {
        if at != destination {
            let nearer = topology
                .links_out(at)
                .filter(|&link| {
                    let to = topology.link_to(link);
                    hops[to.index()] < hops[at.index()] && allowed(at, to)
                })
                .map(|link| {
                    let rest = latency[topology.link_to(link).index()];
                    (topology.parameters(link).latency + rest, link)
                });
            if let Some((least, link)) = nearer.min() {
                latency[at.index()] = least;
                next[at.index()] = link.0;
            }
        }
        for &link in topology.links_in(at) {
            let from = topology.link_from(link);
            if hops[from.index()] == u32::MAX && allowed(from, at) {
                hops[from.index()] = hops[at.index()] + 1;
                queue.push_back(from);
            }
        }
    }
    next
}
