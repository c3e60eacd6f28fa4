//! Up*/down* routing tables, which are deadlock-free on any graph.

use tutti_topology::search::steps;
use tutti_topology::{Hop, Topology};
use tutti_units::ids::{LinkId, RankId, VertexId};

/// The next link from every vertex towards every node: up to a vertex that leads down to the node,
/// and down from there. Source: up*/down* of Autonet (Schroeder et al., "Autonet: a high-speed,
/// self-configuring local area network using point-to-point links", IEEE JSAC 9(8), 1991).
///
/// A breadth-first search from a root orders the vertices by level, then number. A link to an earlier
/// vertex leads up, all others down; there are more links than those of the spanning tree. No path
/// turns from down to up, so that no cycle of channels waits for each other. A vertex from which
/// links down lead to the node takes the fewest of them, whichever link a packet came from: tables
/// need no phase. Among equal links, destinations take turns. Pairs that no path joins have none.
pub(super) fn next_links(graph: &Topology) -> Vec<Hop> {
    let places = places(graph);
    let is_up =
        |link: LinkId| places[graph.link_to(link).index()] < places[graph.link_from(link).index()];
    let mut ascending: Vec<VertexId> = graph.vertices().collect();
    ascending.sort_unstable_by_key(|vertex| places[vertex.index()]);
    let mut hops = Vec::new();
    for destination in (0..graph.npus()).map(RankId) {
        let down = hops_down(graph, destination, is_up);
        let mut left = down.clone();
        for &at in &ascending {
            let goes_up = down[at.index()] == FAR;
            let cost = |&link: &LinkId| left[graph.link_to(link).index()];
            let mut equal: Vec<LinkId> =
                graph.links_out(at).filter(|&link| is_up(link) == goes_up).collect();
            let least = equal.iter().map(cost).min().unwrap_or(FAR);
            if at.0 == destination.0 || least == FAR {
                continue;
            }
            equal.retain(|link| cost(link) == least);
            left[at.index()] = least + 1;
            let link = equal[destination.index() % equal.len()];
            hops.push(Hop { at, destination, link });
        }
    }
    hops
}

/// No path.
const FAR: u32 = u32::MAX;

/// The level of each vertex, and its number: a link leads up to a lower place. The root is the vertex
/// with the fewest hops to all others, the first of several.
fn places(graph: &Topology) -> Vec<(u32, u32)> {
    let levels = |root: u32| {
        steps(graph.vertex_count(), root, |at, visit| {
            graph.links_out(VertexId(at)).for_each(|link| visit(graph.link_to(link).0));
        })
    };
    let total = |root: &u32| levels(*root).into_iter().map(u64::from).sum::<u64>();
    let root = graph.vertices().map(|vertex| vertex.0).min_by_key(total).unwrap_or(0);
    levels(root).into_iter().zip(0..).collect()
}

/// The fewest hops from each vertex to a node over links that lead down.
fn hops_down(graph: &Topology, destination: RankId, is_up: impl Fn(LinkId) -> bool) -> Vec<u32> {
    steps(graph.vertex_count(), destination.0, |at, visit| {
        let links = graph.links_in(VertexId(at)).iter().filter(|&&link| !is_up(link));
        links.for_each(|&link| visit(graph.link_from(link).0));
    })
}
