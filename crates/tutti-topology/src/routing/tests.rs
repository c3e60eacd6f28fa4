use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::{Builder, Link, LinkParameters, build};
use tutti_units::{Time, TimePerByte};

fn parameters(gigabytes_per_s: u64, latency_ns: u64) -> LinkParameters {
    let rate = TimePerByte::new(1000, gigabytes_per_s).unwrap();
    LinkParameters::new(rate, Time::from_ps(latency_ns * 1000))
}

/// A unidirectional ring, so that the graph is connected, and further links.
fn graphs() -> impl Strategy<Value = (u32, u32, Vec<Link>)> {
    let vertices = (1_u32..9, 0_u32..4);
    let link = (0_u32..12, 0_u32..12, 1_u64..4, 0_u64..4);
    (vertices, proptest::collection::vec(link, 0..40)).prop_map(|((npus, switches), extra)| {
        let all = npus + switches;
        let ring = (0..all).map(|at| (at, (at + 1) % all, 2, 1));
        let links = ring.chain(extra).map(|(from, to, rate, latency)| Link {
            from: VertexId(from % all),
            to: VertexId(to % all),
            parameters: parameters(rate, latency),
        });
        (npus, switches, links.filter(|link| link.from != link.to).collect())
    })
}

fn sealed(npus: u32, switches: u32, links: &[Link]) -> Arc<Topology> {
    let mut builder = Builder::new("random", npus);
    for switch in 0..switches {
        builder.switch(format!("switch{switch}"));
    }
    for link in links {
        builder.link(link.from, link.to, link.parameters);
    }
    Arc::new(builder.build().unwrap())
}

fn pairs(topology: &Topology) -> impl Iterator<Item = (RankId, RankId)> + use<> {
    let npus = topology.npus();
    (0..npus).flat_map(move |from| (0..npus).map(move |to| (RankId(from), RankId(to))))
}

/// The best path by exhaustive search: fewest hops, least latency, lowest link ids.
fn best_by_search(topology: &Topology, from: RankId, to: RankId) -> (usize, Time, Vec<LinkId>) {
    let mut best: Option<(usize, Time, Vec<LinkId>)> = None;
    let mut stack = vec![(VertexId(from.0), Time::ZERO, Vec::<LinkId>::new())];
    while let Some((at, latency, path)) = stack.pop() {
        let found = (path.len(), latency, path);
        if at == VertexId(to.0) {
            best = Some(best.map_or(found.clone(), |best| best.min(found)));
            continue;
        }
        // Walks longer than the best so far, or than any shortest path, are pruned.
        let most = best.as_ref().map_or(topology.vertex_count() - 1, |best| best.0);
        if found.0 < most {
            for link in topology.links_out(at) {
                let mut path = found.2.clone();
                path.push(link);
                stack.push((
                    topology.link_to(link),
                    latency + topology.parameters(link).latency,
                    path,
                ));
            }
        }
    }
    best.unwrap()
}

proptest! {
    #[test]
    fn shortest_paths_are_the_best_of_all(graph in graphs()) {
        let topology = sealed(graph.0, graph.1, &graph.2);
        let routes = Routes::shortest_path(Arc::clone(&topology));
        // Only close pairs are searched exhaustively, because the number of walks grows with their
        // length.
        for (from, to) in pairs(&topology).filter(|&(a, b)| routes.pair(a, b).hops <= 4) {
            let (hops, latency, path) = best_by_search(&topology, from, to);
            prop_assert_eq!(routes.path(from, to).unwrap(), path);
            prop_assert_eq!(routes.pair(from, to).hops as usize, hops);
            prop_assert_eq!(routes.pair(from, to).latency, latency);
        }
    }

    #[test]
    fn routes_connect_without_loops_and_add_up(graph in graphs()) {
        let topology = sealed(graph.0, graph.1, &graph.2);
        let routes = Routes::shortest_path(Arc::clone(&topology));
        for (from, to) in pairs(&topology) {
            let mut at = VertexId(from.0);
            let mut visited = vec![at];
            let (mut latency, mut slowest) = (Time::ZERO, TimePerByte::ZERO);
            for link in routes.path(from, to).unwrap() {
                let Link { from, to, parameters } = topology.link(link);
                prop_assert_eq!(from, at);
                prop_assert!(!visited.contains(&to));
                (at, latency) = (to, latency + parameters.latency);
                slowest = if parameters.rate.slower_than(slowest) { parameters.rate } else { slowest };
                visited.push(to);
            }
            prop_assert_eq!(at, VertexId(to.0));
            let hops = u32::try_from(visited.len() - 1).unwrap();
            prop_assert_eq!(routes.pair(from, to), Wire { latency, bottleneck: slowest, hops });
        }
    }

    #[test]
    fn the_order_of_declaration_changes_nothing(
        (graph, shuffled) in graphs().prop_flat_map(|graph| {
            let links = Just(graph.2.clone()).prop_shuffle();
            (Just(graph), links)
        })
    ) {
        let (a, b) = (sealed(graph.0, graph.1, &graph.2), sealed(graph.0, graph.1, &shuffled));
        prop_assert!(a == b);
        let (first, second) = (Routes::shortest_path(Arc::clone(&a)), Routes::shortest_path(b));
        for (from, to) in pairs(&a) {
            prop_assert_eq!(first.path(from, to).unwrap(), second.path(from, to).unwrap());
        }
    }

    #[test]
    fn routes_written_down_are_the_routes_taken(graph in graphs()) {
        let topology = sealed(graph.0, graph.1, &graph.2);
        let routes = Routes::shortest_path(Arc::clone(&topology));
        let path = |(from, to)| (from, to, routes.path(from, to).unwrap());
        let paths = Routes::paths(Arc::clone(&topology), pairs(&topology).map(path)).unwrap();
        let hops = pairs(&topology).flat_map(|(from, to)| {
            let links = routes.path(from, to).unwrap();
            links.into_iter().map(|link| Hop { at: topology.link_from(link), destination: to, link })
                .collect::<Vec<_>>()
        });
        let table = Routes::next_hops(Arc::clone(&topology), hops).unwrap();
        for (from, to) in pairs(&topology) {
            for other in [&paths, &table] {
                prop_assert_eq!(other.path(from, to).unwrap(), routes.path(from, to).unwrap());
                prop_assert_eq!(other.pair(from, to), routes.pair(from, to));
            }
        }
    }
}

fn ring() -> Arc<Topology> {
    Arc::new(build("ring:4", &[parameters(50, 300)]).unwrap())
}

fn link(topology: &Topology, from: u32, to: u32) -> LinkId {
    topology.links_between(VertexId(from), VertexId(to)).next().unwrap()
}

/// Every message goes to the next rank, whatever its destination.
fn upwards(topology: &Topology) -> Vec<Hop> {
    let entries = pairs(topology).filter(|(at, to)| at != to).map(|(at, destination)| Hop {
        at: VertexId(at.0),
        destination,
        link: link(topology, at.0, (at.0 + 1) % 4),
    });
    entries.collect()
}

#[test]
fn a_table_may_use_a_non_minimal_path() {
    let topology = ring();
    let routes = Routes::next_hops(Arc::clone(&topology), upwards(&topology)).unwrap();
    let wire = routes.pair(RankId(1), RankId(0));
    assert_eq!((wire.hops, wire.latency.ps()), (3, 900_000));
}

#[test]
fn faulty_tables_are_refused() {
    let topology = ring();
    let refused = |change: &dyn Fn(&mut Vec<Hop>)| {
        let mut hops = upwards(&topology);
        change(&mut hops);
        Routes::next_hops(Arc::clone(&topology), hops).unwrap_err()
    };
    let at = |hops: &[Hop], at: u32, to: u32| {
        hops.iter().position(|h| h.at == VertexId(at) && h.destination == RankId(to)).unwrap()
    };
    let missing = refused(&|hops| {
        hops.remove(at(hops, 2, 0));
    });
    assert_eq!(missing.to_string(), "npu2 has no route to rank 0, which messages from rank 1 need");
    let looping = refused(&|hops| {
        let place = at(hops, 2, 0);
        hops[place].link = link(&topology, 2, 1);
    });
    assert_eq!(
        looping.to_string(),
        "messages from rank 1 to rank 0 are routed in a loop: npu1 -> npu2 -> npu1"
    );
    let double = refused(&|hops| hops.push(Hop { link: link(&topology, 0, 3), ..hops[0] }));
    assert!(matches!(double, TopologyError::DoubleRoute { .. }));
    let foreign = refused(&|hops| hops[0].link = link(&topology, 2, 3));
    assert!(matches!(foreign, TopologyError::ForeignLink { .. }));
    let unknown = refused(&|hops| hops[0].link = LinkId(99));
    assert!(matches!(unknown, TopologyError::UnknownLink { links: 8, .. }));
    let unknown_rank = refused(&|hops| hops[0].destination = RankId(4));
    assert!(matches!(unknown_rank, TopologyError::UnknownRank { last: 3, .. }));
    let nowhere = refused(&|hops| hops[0].at = VertexId(77));
    assert!(matches!(nowhere, TopologyError::ForeignLink { .. }));
}

#[test]
fn faulty_paths_are_refused() {
    let topology = ring();
    let shortest = Routes::shortest_path(Arc::clone(&topology));
    let refused = |from: u32, to: u32, vertices: &[u32]| {
        let path = vertices.windows(2).map(|pair| link(&topology, pair[0], pair[1])).collect();
        let others = pairs(&topology).filter(|&pair| pair != (RankId(from), RankId(to)));
        let all = others.map(|(a, b)| (a, b, shortest.path(a, b).unwrap()));
        let one: (RankId, RankId, Vec<LinkId>) = (RankId(from), RankId(to), path);
        Routes::paths(Arc::clone(&topology), all.chain([one])).unwrap_err()
    };
    let short = refused(0, 2, &[0, 1]);
    assert_eq!(short.to_string(), "the path from rank 0 to rank 2 ends at npu1");
    assert!(matches!(refused(0, 1, &[0, 3, 0, 1]), TopologyError::RoutingLoop { .. }));
    assert!(matches!(refused(0, 2, &[1, 2]), TopologyError::ForeignLink { .. }));
    let none = Routes::paths(Arc::clone(&topology), []).unwrap_err();
    assert!(matches!(none, TopologyError::NoRoute { .. }));
    let twice = pairs(&topology).chain([(RankId(0), RankId(1))]);
    let twice = twice.map(|(a, b)| (a, b, shortest.path(a, b).unwrap()));
    let twice = Routes::paths(Arc::clone(&topology), twice).unwrap_err();
    assert!(matches!(twice, TopologyError::DoublePath { .. }));
}

#[test]
fn ranks_and_dimensions_that_are_not_there_are_refused() {
    let routes = Routes::shortest_path(ring());
    let error = routes.path(RankId(0), RankId(4)).unwrap_err();
    assert_eq!(error.to_string(), "rank 4 is not one of the topology's NPUs 0 to 3");
    assert!(routes.path(RankId(9), RankId(0)).is_err());
    assert!(matches!(Routes::dimension_order(ring()), Err(TopologyError::NoDimensions { .. })));
}

#[test]
fn the_slowest_link_decides_and_parallel_links_prefer_the_faster() {
    let mut builder = Builder::new("uneven", 2);
    let (a, b) = (VertexId(0), VertexId(1));
    let switch = builder.switch("leaf");
    builder.cable(a, switch, parameters(10, 100));
    builder.cable(switch, b, parameters(400, 5));
    builder.cable(switch, b, parameters(100, 5));
    let routes = Routes::shortest_path(Arc::new(builder.build().unwrap()));
    let wire = routes.pair(RankId(0), RankId(1));
    assert_eq!((wire.latency.ps(), wire.hops), (105_000, 2));
    assert_eq!(wire.bottleneck, TimePerByte::parse("10 GB/s").unwrap());
    let last = routes.path(RankId(0), RankId(1)).unwrap()[1];
    assert_eq!(routes.topology().parameters(last), parameters(400, 5));
}

#[test]
fn shortest_paths_of_a_torus_of_4096() {
    let topology = build("torus:16x16x16", &[parameters(50, 100)]).unwrap();
    assert_eq!(topology.link_count(), 6 * 4096);
    let routes = Routes::shortest_path(Arc::new(topology));
    for step in 0..12 {
        let (from, to) = (RankId(0), RankId((1 << step) % 4096));
        let around = |x: u32| x.min(16 - x);
        let hops = around(to.0 % 16) + around(to.0 / 16 % 16) + around(to.0 / 256);
        assert_eq!(routes.pair(from, to).hops, hops);
        assert_eq!(routes.path(from, to).unwrap().len(), hops as usize);
    }
}

#[test]
fn ecmp_takes_shortest_paths_and_spreads_pairs_by_its_seed() {
    let topology = Arc::new(build("fat_tree:m=8x8,w=1x4", &[parameters(25, 100)]).unwrap());
    let shortest = Routes::shortest_path(Arc::clone(&topology));
    let all = |seed: u64| {
        let routes = Routes::ecmp(Arc::clone(&topology), seed);
        let path = |(a, b)| {
            assert_eq!(routes.pair(a, b), shortest.pair(a, b), "rank {a} to {b}");
            routes.path(a, b).unwrap()
        };
        pairs(&topology).map(path).collect::<Vec<_>>()
    };
    assert_eq!(all(7), all(7));
    assert_ne!(all(7), all(8));
    let mut loads = vec![0_u32; topology.link_count()];
    for link in all(0).into_iter().flatten() {
        loads[link.index()] += 1;
    }
    // Each of the 4 up-links of a leaf carries 112 of the 8 x 56 pairs on average, with a standard
    // deviation of 9.
    let leaf_to_top = |link: &LinkId| {
        let (from, to) = (topology.link_from(*link).0, topology.link_to(*link).0);
        (64..72).contains(&from) && to >= 72
    };
    let used: Vec<u32> = topology.links().filter(leaf_to_top).map(|l| loads[l.index()]).collect();
    assert_eq!(used.len(), 32);
    assert!(used.iter().all(|load| (66..158).contains(load)), "{used:?}");
}

#[test]
fn d_mod_k_needs_a_fat_tree() {
    let error = Routes::d_mod_k(ring()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ring:4 is not a fat tree: D-mod-K needs levels of switches, as `fat_tree:...` builds"
    );
}

#[test]
fn a_table_may_loop_where_no_message_passes() {
    let mut builder = Builder::new("aside", 2);
    let (a, b) = (builder.switch("a"), builder.switch("b"));
    builder.cable(VertexId(0), VertexId(1), parameters(1, 1));
    builder.cable(VertexId(0), a, parameters(1, 1));
    builder.cable(a, b, parameters(1, 1));
    let topology = Arc::new(builder.build().unwrap());
    let to = |at, next, destination| {
        let link = topology.links_between(at, next).next().unwrap();
        Hop { at, destination: RankId(destination), link }
    };
    let (zero, one) = (VertexId(0), VertexId(1));
    let hops = [to(zero, one, 1), to(one, zero, 0), to(a, b, 0), to(b, a, 0)];
    let routes = Routes::next_hops(Arc::clone(&topology), hops).unwrap();
    assert_eq!(routes.pair(RankId(1), RankId(0)).hops, 1);
}

#[test]
fn next_links_follow_the_path() {
    let link = [parameters(50, 300)];
    let built = |notation: &str| Arc::new(build(notation, &link).unwrap());
    let tree = || built("fat_tree:m=4x2x2,w=1x2x2,p=1x1x2");
    let rules = [
        Routes::shortest_path(built("hierarchical:switch:3/rail:ring:4")),
        Routes::shortest_path(tree()),
        Routes::shortest_path(built("fully_connected:2")),
        Routes::dimension_order(built("mesh:1x4")).unwrap(),
        Routes::minimal(built("dragonfly:p=2,a=4,h=2")).unwrap(),
        Routes::d_mod_k(tree()).unwrap(),
        Routes::ecmp(tree(), 5),
        Routes::next_hops(ring(), upwards(&ring())).unwrap(),
    ];
    for routes in rules {
        let topology = Arc::clone(routes.topology());
        for (from, to) in pairs(&topology).filter(|(from, to)| from != to) {
            let mut at = VertexId(from.0);
            let mut links = Vec::new();
            while at != VertexId(to.0) {
                links.push(routes.next_link(from, to, at, links.len()));
                at = topology.link_to(links[links.len() - 1]);
            }
            assert_eq!(links, routes.path(from, to).unwrap(), "{routes:?}");
            let wire = links.iter().fold(Wire::NOWHERE, |w, &l| w.and(topology.parameters(l)));
            assert_eq!(routes.pair(from, to), wire, "{routes:?}");
        }
    }
}
