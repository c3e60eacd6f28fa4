use proptest::prelude::*;

use super::*;
use crate::{Builder, LinkParameters, Routes, build};
use tutti_units::ids::RankId;
use tutti_units::{Time, TimePerByte};

fn cable() -> LinkParameters {
    LinkParameters::new(TimePerByte::parse("50 GB/s").unwrap(), Time::from_ps(1000))
}

fn family(notation: &str) -> Arc<Topology> {
    Arc::new(build(notation, &[cable()]).unwrap_or_else(|error| panic!("{notation}: {error}")))
}

/// The hops between all vertices (Floyd and Warshall).
fn by_search(topology: &Topology) -> Vec<Vec<u32>> {
    let count = topology.vertex_count();
    let mut hops = vec![vec![UNREACHABLE; count]; count];
    for (vertex, row) in hops.iter_mut().enumerate() {
        row[vertex] = 0;
    }
    for link in topology.links() {
        hops[topology.link_from(link).index()][topology.link_to(link).index()] = 1;
    }
    for between in 0..count {
        for from in 0..count {
            for to in 0..count {
                let over = hops[from][between].saturating_add(hops[between][to]);
                hops[from][to] = hops[from][to].min(over);
            }
        }
    }
    hops
}

fn check(topology: &Arc<Topology>) {
    let distances = Distances::fewest_hops(Arc::clone(topology));
    let expected = by_search(topology);
    for to in topology.vertices() {
        let towards = distances.to(to);
        for at in topology.vertices() {
            let hops = expected[at.index()][to.index()];
            assert_eq!(towards.hops(at), hops, "{} {at} to {to}", topology.name());
            assert_eq!(distances.hops(at, to), hops);
            let nearer: Vec<LinkId> = topology
                .links_out(at)
                .filter(|&link| {
                    let rest = expected[topology.link_to(link).index()][to.index()];
                    hops != UNREACHABLE && rest.saturating_add(1) == hops
                })
                .collect();
            assert_eq!(towards.links(at).collect::<Vec<_>>(), nearer, "{at} to {to}");
        }
    }
}

#[test]
fn hops_are_the_fewest_of_all() {
    for notation in [
        "fully_connected:2",
        "ring:7,unidirectional",
        "torus:4x3",
        "mesh:1x4",
        "switch:5",
        "edges:0-1,1-2,2-3,3>0",
        "hierarchical:switch:3/rail:ring:4",
        "hierarchical:ring:3/switch:2",
        "dragonfly:p=2,a=4,h=2",
        "dragonfly:p=1,a=3x2,h=2,g=5,k=1x2",
    ] {
        check(&family(notation));
    }
}

#[test]
fn long_paths_are_counted_too() {
    let distances = Distances::fewest_hops(family("ring:1200"));
    assert_eq!(distances.hops(VertexId(0), VertexId(600)), 600);
    assert_eq!(distances.hops(VertexId(0), VertexId(254)), 254);
    assert_eq!(distances.hops(VertexId(0), VertexId(255)), 255);
    assert_eq!(distances.to(VertexId(600)).links(VertexId(0)).count(), 2);
}

#[test]
fn unreachable_vertices_are_reported() {
    let mut builder = Builder::new("valve", 2);
    let switch = builder.switch("dead_end");
    builder.cable(VertexId(0), VertexId(1), cable());
    builder.link(VertexId(0), switch, cable());
    let topology = Arc::new(builder.build().unwrap());
    check(&topology);
    let distances = Distances::fewest_hops(topology);
    assert_eq!(distances.hops(switch, VertexId(1)), UNREACHABLE);
    assert_eq!(distances.to(VertexId(1)).links(switch).count(), 0);
}

/// The fewest hops over paths with at most one link between groups: a search over pairs of a vertex
/// and whether that link was used.
fn one_global_by_search(topology: &Topology, from: VertexId) -> Vec<u32> {
    let dragonfly = topology.family().and_then(Family::dragonfly).unwrap();
    let mut hops = vec![[UNREACHABLE; 2]; topology.vertex_count()];
    hops[from.index()][0] = 0;
    let mut queue = VecDeque::from([(from, 0)]);
    while let Some((at, used)) = queue.pop_front() {
        for next in topology.links_out(at).map(|link| topology.link_to(link)) {
            let crosses = dragonfly.group_of(at) != dragonfly.group_of(next);
            let then = used + usize::from(crosses);
            if then < 2 && hops[next.index()][then] == UNREACHABLE {
                hops[next.index()][then] = hops[at.index()][used] + 1;
                queue.push_back((next, then));
            }
        }
    }
    hops.iter().map(|&[without, with]| without.min(with)).collect()
}

#[test]
fn every_minimal_path_of_a_dragonfly_has_at_most_one_global_link() {
    let mut shortened = 0;
    for notation in [
        "dragonfly:p=1,a=4,h=2",
        "dragonfly:p=1,a=4,h=2,absolute",
        "dragonfly:p=2,a=2,h=4",
        "dragonfly:p=1,a=1,h=5",
        "dragonfly:p=1,a=3x2,h=2,g=7",
        "dragonfly:p=1,a=3x2,h=3,g=3,absolute",
        "dragonfly:p=2,a=4,h=0,g=1",
    ] {
        let topology = family(notation);
        let dragonfly = topology.family().and_then(Family::dragonfly).unwrap();
        let minimal = Distances::one_global(Arc::clone(&topology)).unwrap();
        let fewest = Distances::fewest_hops(Arc::clone(&topology));
        let routes = Routes::minimal(Arc::clone(&topology)).unwrap();
        for from in topology.vertices() {
            let expected = one_global_by_search(&topology, from);
            for to in topology.vertices() {
                let towards = minimal.to(to);
                assert_eq!(towards.hops(from), expected[to.index()], "{notation} {from} {to}");
                shortened += u32::from(fewest.hops(from, to) < towards.hops(from));
                let group = dragonfly.group_of(from);
                most_global(
                    &topology,
                    &towards,
                    from,
                    to,
                    u32::from(group != dragonfly.group_of(to)),
                );
                if from.0.max(to.0) < topology.npus() {
                    let (from, to) = (RankId(from.0), RankId(to.0));
                    let wire = routes.pair(from, to);
                    assert_eq!(wire.hops, expected[to.index()], "{notation} {from} {to}");
                }
            }
        }
    }
    assert!(shortened > 0, "no dragonfly had a shorter path over two global links");
}

/// Walks every minimal path and counts its links between groups.
fn most_global(
    topology: &Topology,
    towards: &Towards<'_>,
    at: VertexId,
    to: VertexId,
    expected: u32,
) {
    let dragonfly = topology.family().and_then(Family::dragonfly).unwrap();
    let links: Vec<LinkId> = towards.links(at).collect();
    assert_eq!(links.is_empty(), at == to, "a minimal path ends early");
    for next in links.into_iter().map(|link| topology.link_to(link)) {
        assert_eq!(towards.hops(next) + 1, towards.hops(at));
        let crossed = u32::from(dragonfly.group_of(next) != dragonfly.group_of(at));
        let left = expected.checked_sub(crossed).expect("a second link between groups");
        most_global(topology, towards, next, to, left);
    }
    assert!(at != to || expected == 0);
}

#[test]
fn only_a_dragonfly_has_global_links() {
    let error = Distances::one_global(family("torus:4x4")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "torus:4x4 is not a dragonfly: minimal routing needs groups and global links; elsewhere the \
         shortest path is minimal"
    );
    assert!(Routes::minimal(family("ring:4")).is_err());
}

proptest! {
    #[test]
    fn hops_are_the_fewest_of_all_in_any_graph(
        npus in 1_u32..7,
        switches in 0_u32..5,
        extra in proptest::collection::vec((0_u32..12, 0_u32..12, any::<bool>()), 0..16),
    ) {
        let all = npus + switches;
        let mut builder = Builder::new("random", npus);
        for switch in 0..switches {
            builder.switch(format!("switch{switch}"));
        }
        // A tree, so that the graph is connected, and further links.
        for vertex in 1..all {
            builder.cable(VertexId(vertex), VertexId(vertex * 7 % vertex.max(2) / 2), cable());
        }
        for (a, b, both) in extra {
            let (a, b) = (VertexId(a % all), VertexId(b % all));
            if a != b && both {
                builder.cable(a, b, cable());
            } else if a != b {
                builder.link(a, b, cable());
            }
        }
        check(&Arc::new(builder.build().unwrap()));
    }
}
