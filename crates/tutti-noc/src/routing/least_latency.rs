//! Routing tables of the least latency.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tutti_topology::{Hop, Topology};
use tutti_units::ids::{LinkId, RankId, VertexId};

/// The next link from every vertex towards every node that it can reach, on a path with the least
/// latency.
///
/// A search from each vertex breaks ties as BookSim 2 does (`AnyNet::route`): vertices are visited
/// by distance, then number, and the first path with the least latency counts. Each vertex of a
/// path searches for itself, so that equal paths may be mixed. No route loops, since the remaining
/// latency decreases: a link takes a picosecond at least.
pub(super) fn next_links(graph: &Topology) -> Vec<Hop> {
    let mut hops = Vec::new();
    for at in graph.vertices() {
        let first = first_links(graph, at);
        let hop =
            |destination: RankId| Some(Hop { at, destination, link: first[destination.index()]? });
        hops.extend((0..graph.npus()).map(RankId).filter_map(hop));
    }
    hops
}

/// The first link of the path from `start` to each other vertex (Dijkstra 1959).
fn first_links(graph: &Topology, start: VertexId) -> Vec<Option<LinkId>> {
    let mut distance = vec![u64::MAX; graph.vertex_count()];
    let mut first = vec![None; graph.vertex_count()];
    let mut queue = BinaryHeap::from([Reverse((0, start))]);
    distance[start.index()] = 0;
    while let Some(Reverse((here, at))) = queue.pop() {
        if here > distance[at.index()] {
            continue;
        }
        for link in graph.links_out(at) {
            let to = graph.link_to(link);
            let there = here.saturating_add(graph.parameters(link).latency.ps().max(1));
            if there < distance[to.index()] {
                distance[to.index()] = there;
                first[to.index()] = if at == start { Some(link) } else { first[at.index()] };
                queue.push(Reverse((there, to)));
            }
        }
    }
    first
}
