//! Minimum and maximum distances of ranks in latency, independent of the routing.

use tutti_schedule::Blocks;
use tutti_topology::Topology;
use tutti_topology::search::least_costs;
use tutti_units::Time;
use tutti_units::ids::{RankId, VertexId};

/// Above this many link visits, only the paths from one rank are computed.
const MOST_WORK: u64 = 60_000_000;

/// The minimum and the maximum latency between two of the first `ranks` NPUs; for a rooted collective, the
/// maximum from or to the root. In a large graph the minimum is that of an NPU's links, and the maximum is that
/// from rank 0.
pub(super) fn extremes(
    topology: &Topology,
    ranks: u32,
    root: Option<VertexId>,
    inwards: bool,
) -> (Time, Time) {
    let all = (0..ranks).map(VertexId);
    let walks = |count: u32| u64::from(count) * topology.link_count() as u64 <= MOST_WORK;
    let few = !walks(ranks);
    let mut nearest = Time::MAX;
    let mut farthest = Time::ZERO;
    for source in all.clone() {
        if few {
            let links = topology.links_out(source);
            let least = links.map(|link| topology.parameters(link).latency).min();
            nearest = nearest.min(least.unwrap_or(Time::ZERO));
            if source.0 > 0 {
                continue;
            }
        }
        let latencies = from(topology, source, false);
        let others = || all.clone().filter(|&rank| rank != source);
        let least = others().map(|rank| latencies[rank.index()]).min();
        nearest = nearest.min(least.unwrap_or(Time::ZERO));
        if root.is_none() {
            let most = others().map(|rank| latencies[rank.index()]).max();
            farthest = farthest.max(most.unwrap_or(Time::ZERO));
        }
    }
    if let Some(root) = root {
        let latencies = from(topology, root, inwards);
        farthest = all.map(|rank| latencies[rank.index()]).max().unwrap_or(Time::ZERO);
    }
    (nearest, farthest)
}

/// The maximum latency of a shortest path from a rank to one for which it has a block; zero in a large
/// graph.
pub(super) fn farthest(topology: &Topology, blocks: &Blocks) -> Time {
    let ranks = blocks.ranks().min(topology.npus());
    if u64::from(ranks) * topology.link_count() as u64 > MOST_WORK {
        return Time::ZERO;
    }
    let is_sent = |from, to| from != to && !blocks.is_empty(blocks.chunk(RankId(from), RankId(to)));
    let sources = (0..ranks).flat_map(|source| {
        let latencies = self::from(topology, VertexId(source), false);
        (0..ranks)
            .zip(latencies)
            .filter_map(move |(to, latency)| is_sent(source, to).then_some(latency))
    });
    sources.max().unwrap_or(Time::ZERO)
}

/// The minimum latency from a vertex to every other, or to it from every other.
fn from(topology: &Topology, source: VertexId, inwards: bool) -> Vec<Time> {
    least_costs(topology.vertex_count(), source.0, Time::MAX, |at, visit| {
        let mut look = |link, next: VertexId| visit(next.0, topology.parameters(link).latency);
        if inwards {
            let links = topology.links_in(VertexId(at)).iter();
            links.for_each(|&link| look(link, topology.link_from(link)));
        } else {
            let links = topology.links_out(VertexId(at));
            links.for_each(|link| look(link, topology.link_to(link)));
        }
    })
}
