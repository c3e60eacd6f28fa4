use super::*;
use crate::algorithm::bound::most_loaded;
use crate::algorithm::on_graph::Move;
use crate::algorithm::{build as build_any, check};
use tutti_topology::LinkParameters;
use tutti_units::{Time, TimePerByte};

const ALL: [Collective; 3] =
    [Collective::AllGather, Collective::ReduceScatter, Collective::AllReduce];

fn on(notation: &str, rates: &[u64]) -> Routes {
    let link = |&ps: &u64| LinkParameters::new(TimePerByte::new(ps, 1).unwrap(), Time::ZERO);
    let links: Vec<LinkParameters> = rates.iter().map(link).collect();
    Routes::shortest_path(Arc::new(tutti_topology::build(notation, &links).unwrap()))
}

/// Returns the limit over the time of the most loaded link, and over that of the timetable.
fn reached(collective: Collective, routes: &Routes, pieces: Option<u32>) -> (f64, f64) {
    let ranks = routes.topology().npus();
    let request = Request { collective, ranks, argument: None };
    let limit = by_links(collective, ranks, routes.topology()).ps_per_byte();
    let (takes, timetable) = best(&request, routes, pieces, None);
    let schedule = timetable.lay_out("forest", collective).unwrap();
    let loaded = most_loaded(&schedule, routes).unwrap().ps_per_byte();
    (limit / loaded, limit / takes)
}

#[test]
fn it_comes_close_to_the_limit() {
    for (notation, rates) in [
        ("ring:8", &[1][..]),
        ("torus:4x4", &[1]),
        ("mesh:4x4", &[1]),
        ("torus:2x2x2", &[1]),
        ("switch:8", &[1]),
        ("fully_connected:8", &[1]),
        ("hierarchical:switch:4/switch:4", &[1, 9]),
        ("hierarchical:switch:4/ring:4", &[1, 4]),
        ("dragonfly:p=2,a=4,h=2,g=3", &[1]),
        ("hierarchical:fully_connected:4/rail:switch:4", &[1, 3]),
    ] {
        let routes = on(notation, rates);
        for collective in ALL {
            let (reached, slots) = reached(collective, &routes, None);
            assert!(reached > 0.98, "{notation} {collective}: {reached}");
            assert!(slots > 0.95, "{notation} {collective}: {slots}");
        }
    }
}

#[test]
fn it_does_what_it_claims_on_every_kind_of_graph() {
    for (topology, ranks) in [
        ("ring:7", 7),
        ("mesh:3x4", 12),
        ("pieces=3,torus:3x3", 9),
        ("pieces=2,lag=0,mesh:3x3", 9),
        ("pieces=4, lag=5,hierarchical:switch:3/ring:3", 9),
        ("depth=least,torus:3x4", 12),
        ("depth=least,hierarchical:switch:4/ring:3", 12),
        ("switch:6", 6),
        ("hierarchical:switch:4/ring:3", 12),
        ("hierarchical:ring:3/rail:switch:4", 12),
    ] {
        for collective in ALL {
            check::performs(&format!("forest:{topology}"), collective, ranks);
        }
    }
}

/// In either order, no link has two messages at once, and no message is sent before its data
/// arrives.
#[test]
fn messages_wait_for_their_data_and_for_links() {
    for (notation, rates) in [("torus:3x4", &[1][..]), ("hierarchical:switch:3/ring:3", &[1, 4])] {
        let routes = on(notation, rates);
        let ranks = routes.topology().npus();
        let graph = LinkGraph::of(&routes, ranks, false);
        for order in [Order::Turns, Order::Staggered] {
            let problem = PackingProblem {
                graph: &graph,
                pieces: 3,
                limit: 1.0,
                both_directions: true,
                rising: false,
            };
            let trees = in_shards(pack(&problem).unwrap().trees);
            let timing = Timing { pieces: 3, both_directions: true, lag: 1, order };
            let (_, timetable) = timed(&trees, &graph, timing);
            assert_eq!(timetable.moves.len(), (2 * 3 * ranks * (ranks - 1)) as usize);
            let mut links: Vec<Vec<(u64, u64)>> = vec![Vec::new(); graph.rates.len()];
            for one in &timetable.moves {
                let before = |other: &&Move| {
                    other.chunk == one.chunk && other.to == one.from && other.folds >= one.folds
                };
                let arrived = timetable.moves.iter().filter(before).map(|other| other.there);
                assert!(
                    arrived.max().is_none_or(|there| there <= one.sent),
                    "{notation} {order:?} {one:?}"
                );
                let edge = graph.edges()[graph.index(one.from, one.to).unwrap()];
                // With a lag of 1 a message is forwarded after twice its duration; over several
                // links, some take less.
                let takes =
                    if graph.links(edge).len() == 1 { (one.there - one.sent) / 2 } else { 1 };
                let over = graph.links(edge).iter();
                over.for_each(|&link| links[link as usize].push((one.sent, one.sent + takes)));
            }
            for mut busy in links {
                busy.sort_unstable();
                assert!(busy.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{notation} {order:?}");
            }
        }
    }
}

/// Cycles, shallow trees and trees without lag need no buffers; with a lag, that many messages of a
/// pair wait.
#[test]
fn the_lag_bounds_the_messages_that_wait_at_a_receiver() {
    for (topology, ranks, most) in [
        ("ring:8", 8, 0),
        ("hierarchical:switch:4/switch:4", 16, 0),
        ("depth=least,mesh:3x4", 12, 0),
        ("pieces=16,lag=0,torus:4x4", 16, 0),
        ("pieces=16,lag=0,hierarchical:switch:4/ring:3", 12, 0),
        ("pieces=4,lag=0,hierarchical:ring:3/rail:switch:4", 12, 0),
        ("pieces=16,torus:4x4", 16, 1),
        ("pieces=16,hierarchical:switch:4/ring:3", 12, 2),
    ] {
        for collective in ALL {
            let proof = check::performs(&format!("forest:{topology}"), collective, ranks);
            assert!(proof.buffering <= most, "{topology} {collective}: {}", proof.buffering);
        }
    }
}

/// The number of slots is the largest distance between ranks, twice for all_reduce.
#[test]
fn shallow_trees_take_as_many_steps_as_the_diameter() {
    for (topology, ranks, wide) in
        [("torus:4x4", 16, 4), ("mesh:4x3", 12, 5), ("ring:9", 9, 4), ("switch:8", 8, 1)]
    {
        for (collective, times) in ALL.into_iter().zip([1, 1, 2]) {
            let notation = format!("forest:depth=least,{topology}");
            let schedule = build_any(&notation, collective, ranks).unwrap();
            let steps = (0..ranks).map(|rank| schedule.steps(tutti_units::ids::RankId(rank)));
            assert_eq!(steps.max(), Some(times * wide), "{notation} {collective}");
        }
    }
}

/// Neighbours in rank order load every link once: N - 1 steps of one chunk each.
#[test]
fn one_cycle_meets_the_limit_of_single_links() {
    for notation in
        ["hierarchical:switch:4/switch:4", "dragonfly:p=2,a=2,h=1,g=3", "fat_tree:k=2,n=3"]
    {
        let routes = on(notation, &[1]);
        let ranks = routes.topology().npus();
        for (collective, phases) in ALL.into_iter().zip([1, 1, 2]) {
            let request = Request { collective, ranks, argument: None };
            let (_, timetable) = best(&request, &routes, None, None);
            assert_eq!(timetable.moves.len(), (phases * ranks * (ranks - 1)) as usize);
            let schedule = timetable.lay_out("forest", collective).unwrap();
            let least =
                TimePerByte::new(u64::from(phases * (ranks - 1)), u64::from(ranks)).unwrap();
            assert_eq!(most_loaded(&schedule, &routes).unwrap(), least, "{notation}");
        }
    }
}

#[test]
fn without_a_graph_all_messages_are_sent_at_once() {
    for ranks in [2, 3, 8, 13] {
        for collective in ALL {
            assert!(check::critical_path_is_exact("forest", collective, ranks));
        }
    }
}

#[test]
fn unknown_options_are_refused() {
    for argument in [
        "pieces=0,ring:4",
        "pieces=x",
        "parts=2,ring:4",
        "pieces=1025,ring:4",
        "lag=65,ring:4",
        "depth=most,ring:4",
        "lag=1,depth=least,ring:4",
        "depth=least,pieces=2,ring:4",
    ] {
        let notation = format!("forest:{argument}");
        let error = build_any(&notation, Collective::AllReduce, 4).err().unwrap().to_string();
        assert!(error.contains("expected pieces=K"), "{error}");
    }
}
