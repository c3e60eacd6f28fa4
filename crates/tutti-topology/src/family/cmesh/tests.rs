use std::sync::Arc;

use super::*;
use crate::{Routes, Topology, VertexKind, build, parse};
use tutti_units::ids::RankId;
use tutti_units::{Length, Time, TimePerByte};

fn parameters(latency_ps: u64) -> LinkParameters {
    let rate = TimePerByte::parse("25 GB/s").unwrap();
    let length = Some(Length::from_um(latency_ps));
    LinkParameters { length, ..LinkParameters::new(rate, Time::from_ps(latency_ps)) }
}

fn uniform(notation: &str) -> Topology {
    build(notation, &[parameters(1)]).unwrap_or_else(|error| panic!("{notation}: {error}"))
}

/// The latency of the only link between two vertices, by name.
fn latency(topology: &Topology, from: &str, to: &str) -> u64 {
    let named = |name| topology.vertices().find(|&v| topology.vertex_name(v) == name).unwrap();
    let between: Vec<_> = topology.links_between(named(from), named(to)).collect();
    assert_eq!(between.len(), 1, "{from} to {to}");
    let parameters = topology.parameters(between[0]);
    assert_eq!(parameters.length.unwrap().um(), parameters.latency.ps());
    parameters.latency.ps()
}

#[test]
fn routers_are_a_mesh_and_hold_their_npus() {
    let topology = uniform("cmesh:4x3x2:5");
    let mesh = uniform("mesh:4x3x2");
    assert_eq!(
        (topology.npus(), topology.facts().routers, topology.facts().switches),
        (120, 24, 0)
    );
    for (a, b) in (0..24).flat_map(|a| (0..24).map(move |b| (a, b))) {
        let cables = topology.links_between(VertexId(120 + a), VertexId(120 + b)).count();
        assert_eq!(cables, mesh.links_between(VertexId(a), VertexId(b)).count(), "{a} {b}");
    }
    for npu in 0..120 {
        let router = topology.links_out(VertexId(npu)).map(|link| topology.link_to(link));
        assert_eq!(router.collect::<Vec<_>>(), [VertexId(120 + npu / 5)]);
    }
    // 4 links along x and y in the interior, 1 along z, and 5 NPUs.
    assert_eq!(topology.facts().radix, 2 + 2 + 1 + 5);
}

#[test]
fn a_block_is_a_square_of_the_chip() {
    // The NPUs of a 4x2 grid of 2x2 blocks, 8 in a row:
    //  0  1 | 2  3 | ...        router 0 | router 1 | ...
    //  8  9 | 10 11
    // 16 17 ...                 router 4
    let topology = uniform("cmesh:4x2:2x2");
    let router = |npu: u32| {
        topology.links_out(VertexId(npu)).map(|link| topology.link_to(link).0 - 32).next().unwrap()
    };
    for (number, npus) in [(0, [0, 1, 8, 9]), (1, [2, 3, 10, 11]), (7, [22, 23, 30, 31])] {
        assert_eq!(npus.map(router), [number; 4]);
    }
    let family = topology.family().unwrap();
    for (number, npu) in (0..).zip(family.representatives().unwrap()) {
        assert_eq!(router(npu.0), number);
    }
}

#[test]
fn latency_follows_the_distance_if_requested() {
    let far = uniform("cmesh:4x4:2x3,express,distance");
    assert_eq!(latency(&far, "router0", "router1"), 2);
    assert_eq!(latency(&far, "router0", "router4"), 3);
    // Half of the columns with two NPUs each; half of the rows with three NPUs each.
    assert_eq!(latency(&far, "router0", "router2"), 4);
    assert_eq!(latency(&far, "router0", "router8"), 6);
    assert_eq!(latency(&far, "npu0", "router0"), 1);
    let alike = uniform("cmesh:4x4:2x3,express");
    assert_eq!(latency(&alike, "router0", "router8"), 1);
    let counted = uniform("cmesh:4x4:6,express,distance");
    assert_eq!(latency(&counted, "router0", "router1"), 1);
    assert_eq!(latency(&counted, "router0", "router8"), 2);
}

#[test]
fn express_links_join_the_halves_of_the_rim() {
    let links: Vec<LinkParameters> = (1..5).map(parameters).collect();
    let topology = build("cmesh:4x4:4,express", &links).unwrap();
    let mut express: Vec<(u32, u32)> = topology
        .links()
        .filter(|&link| topology.parameters(link).latency == Time::from_ps(4))
        .map(|link| (topology.link_from(link).0 - 64, topology.link_to(link).0 - 64))
        .filter(|(a, b)| a < b)
        .collect();
    express.sort_unstable();
    // Bottom and top row, then left and right column.
    let mut expected = vec![(0, 2), (1, 3), (12, 14), (13, 15), (0, 8), (4, 12), (3, 11), (7, 15)];
    expected.sort_unstable();
    assert_eq!(express, expected);
    assert!(topology.vertices().all(|vertex| match topology.kind(vertex) {
        VertexKind::Router => topology.links_out(vertex).len() == 8,
        _ => topology.links_out(vertex).len() == 1,
    }));
}

#[test]
fn dimension_order_finishes_x_before_y_and_is_shortest_within_the_rows() {
    for notation in ["cmesh:4x3:2", "cmesh:4x4:2x2,express", "cmesh:6x8:1,express", "cmesh:3x2x3:2"]
    {
        let topology = Arc::new(uniform(notation));
        let sizes: Vec<u32> = notation["cmesh:".len()..]
            .split(':')
            .next()
            .unwrap()
            .split('x')
            .map(|size| size.parse().unwrap())
            .collect();
        let npus = topology.npus();
        let routes = Routes::dimension_order(Arc::clone(&topology)).unwrap();
        let shortest = Routes::shortest_path(Arc::clone(&topology));
        for (a, b) in (0..npus).flat_map(|a| (0..npus).map(move |b| (RankId(a), RankId(b)))) {
            let path = routes.path(a, b).unwrap();
            let wire = routes.pair(a, b);
            assert_eq!(wire.hops as usize, path.len());
            let least = shortest.pair(a, b).hops;
            if notation.contains("express") {
                assert!(wire.hops >= least, "{notation}: {a} to {b}");
            } else {
                assert_eq!(wire.hops, least, "{notation}: {a} to {b}");
            }
            let between =
                path.iter().map(|&link| (topology.link_from(link), topology.link_to(link)));
            let turns: Vec<usize> = between
                .filter(|(from, to)| from.0.min(to.0) >= npus)
                .map(|(from, to)| dimension(&sizes, from.0 - npus, to.0 - npus))
                .collect();
            assert!(turns.is_sorted(), "{notation}: {a} to {b} turns {turns:?}");
        }
    }
}

/// The only dimension in which two routers differ.
fn dimension(sizes: &[u32], a: u32, b: u32) -> usize {
    let mut stride = 1;
    let differ: Vec<bool> = sizes
        .iter()
        .map(|&size| {
            let differs = a / stride % size != b / stride % size;
            stride *= size;
            differs
        })
        .collect();
    assert_eq!(differ.iter().filter(|&&differs| differs).count(), 1);
    differ.iter().position(|&differs| differs).unwrap()
}

#[test]
fn on_the_rim_the_express_link_is_taken_for_half_of_a_row_and_more() {
    let routes = Routes::dimension_order(Arc::new(uniform("cmesh:8x8:1,express"))).unwrap();
    let topology = routes.topology();
    let visited = |a, b| {
        let path = routes.path(RankId(a), RankId(b)).unwrap();
        let routers = path.iter().map(|&link| topology.link_to(link).0);
        routers.take(path.len() - 1).map(|vertex| vertex - 64).collect::<Vec<_>>()
    };
    assert_eq!(visited(0, 4), [0, 4]);
    // The path over router 4 and back is shorter but overshoots the destination.
    assert_eq!(visited(0, 3), [0, 1, 2, 3]);
    assert_eq!(visited(1, 7), [1, 5, 6, 7]);
    // Along x in the interior, without express links, then along y on the edge.
    assert_eq!(visited(13, 40), [13, 12, 11, 10, 9, 8, 40]);
}

#[test]
fn argument_errors() {
    for (argument, problem) in [
        ("4x4", "found `4x4`; expected the routers along each dimension, a colon and the NPUs"),
        ("4x4:", "a number is missing; expected an integer of at least 1"),
        ("4x4:2x2x2", "a block of 3 dimensions around routers in 2"),
        ("4x4:0", "`0` is too small"),
        ("1x1:1", "a single NPU has no neighbour"),
        ("4x4:2x2,fast", "found `fast`; expected any of `express`, `distance`"),
        ("4x4:2x2,distance,distance", "`distance` is given twice"),
        ("4x3:4,express", "express links join the halves of an edge"),
        ("8:4,express", "expected two dimensions of even sizes"),
    ] {
        let text = parse(&format!("cmesh:{argument}")).unwrap_err().to_string();
        assert!(text.contains(problem), "cmesh:{argument}: {text}");
    }
}
