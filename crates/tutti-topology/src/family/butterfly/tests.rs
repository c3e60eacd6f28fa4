use std::sync::Arc;

use super::*;
use crate::LinkParameters;
use crate::{Routes, Topology, build, parse};
use tutti_units::ids::RankId;
use tutti_units::{Time, TimePerByte};

fn uniform(notation: &str) -> Topology {
    let link = LinkParameters::new(TimePerByte::parse("25 GB/s").unwrap(), Time::from_ps(1000));
    build(notation, &[link]).unwrap_or_else(|error| panic!("{notation}: {error}"))
}

/// The number of paths from a vertex to an NPU within a number of links.
fn paths(topology: &Topology, at: VertexId, to: VertexId, links: u32) -> u64 {
    match links {
        0 => u64::from(at == to),
        _ => topology
            .links_out(at)
            .map(|link| paths(topology, topology.link_to(link), to, links - 1))
            .sum(),
    }
}

#[test]
fn each_pair_has_one_path_through_all_stages() {
    for (notation, stages) in [("butterfly:2:3", 3), ("butterfly:3:2", 2), ("butterfly:4:1", 1)] {
        let topology = Arc::new(uniform(notation));
        let npus = topology.npus();
        for (a, b) in (0..npus).flat_map(|a| (0..npus).map(move |b| (VertexId(a), VertexId(b)))) {
            assert_eq!(paths(&topology, a, b, stages + 1), 1, "{notation}: {a} to {b}");
        }
        let radix = topology.facts().radix;
        assert_eq!(radix, u64::from(notation.as_bytes()[10] - b'0'));
    }
}

#[test]
fn the_digits_of_the_destination_select_the_path() {
    let topology = Arc::new(uniform("butterfly:2:3"));
    let routes = Routes::shortest_path(Arc::clone(&topology));
    let visited = |a, b| -> Vec<String> {
        let path = routes.path(RankId(a), RankId(b)).unwrap();
        path.iter().map(|&link| topology.vertex_name(topology.link_to(link)).to_owned()).collect()
    };
    // From router 0 of stage 0 to NPU 110: the first digit selects router 10, the second router 11.
    let expected = ["stage0.router0", "stage1.router2", "stage2.router3", "npu6"];
    assert_eq!(visited(1, 6), expected);
    let expected = ["stage0.router3", "stage1.router1", "stage2.router0", "npu0"];
    assert_eq!(visited(7, 0), expected);
    // All NPUs are equally far: even the NPU on the same router is four links away.
    assert_eq!(visited(0, 1).len(), 4);
}

#[test]
fn stages_have_links_of_their_own() {
    let links: Vec<LinkParameters> = (0..3)
        .map(|stage| {
            LinkParameters::new(TimePerByte::new(1, 1).unwrap(), Time::from_ps(10_u64.pow(stage)))
        })
        .collect();
    let topology = build("butterfly:2:3", &links).unwrap();
    let wire = Routes::shortest_path(Arc::new(topology)).pair(RankId(0), RankId(5));
    assert_eq!((wire.hops, wire.latency.ps()), (4, 1 + 10 + 100 + 1));
    let classes = parse("butterfly:2:3").unwrap().link_classes();
    assert_eq!(classes, ["terminal", "stage 0 to 1", "stage 1 to 2"]);
}

#[test]
fn argument_errors() {
    for (argument, problem) in [
        ("8", "found `8`; expected the links in and out of a router, a colon and the stages"),
        ("1:4", "`1` is too small; expected an integer of at least 2"),
        ("2:0", "`0` is too small"),
        ("2:25", "25 stages are too many: at most 24"),
        ("2:3:4", "found `3:4`"),
    ] {
        let text = parse(&format!("butterfly:{argument}")).unwrap_err().to_string();
        assert!(text.contains(problem), "butterfly:{argument}: {text}");
    }
}
