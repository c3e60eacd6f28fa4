use std::sync::Arc;

use super::*;
use crate::{Routes, Topology, build, parse};
use tutti_units::ids::RankId;
use tutti_units::{Length, Time};

fn parameters(latency_ps: u64) -> LinkParameters {
    let rate = TimePerByte::parse("30 GB/s").unwrap();
    LinkParameters::new(rate, Time::from_ps(latency_ps))
}

fn uniform(notation: &str) -> Topology {
    build(notation, &[parameters(1)]).unwrap_or_else(|error| panic!("{notation}: {error}"))
}

#[test]
fn it_is_a_hyperx_of_routers() {
    for (notation, hyperx) in [
        ("flattened_butterfly:4x3x2:2", "hyperx:s=4x3x2,t=2"),
        ("flattened_butterfly:8:4", "hyperx:s=8,t=4"),
        ("flattened_butterfly:3x3:1", "hyperx:s=3x3,t=1"),
    ] {
        let (ours, theirs) = (uniform(notation), uniform(hyperx));
        let ends = |topology: &Topology| -> Vec<_> {
            topology.links().map(|id| (topology.link_from(id), topology.link_to(id))).collect()
        };
        assert_eq!(ends(&ours), ends(&theirs), "{notation}");
        assert_eq!(ours.facts().routers, theirs.facts().switches);
        assert_eq!(ours.facts().bisection_links, theirs.facts().bisection_links);
    }
}

#[test]
fn the_network_of_the_paper() {
    // Kim, Balfour and Dally 2007: 64 nodes on 16 routers of radix 10, four of them for nodes.
    let facts = uniform("flattened_butterfly:4x4:4").facts();
    assert_eq!((facts.npus, facts.routers, facts.radix, facts.diameter), (64, 16, 10, 4));
}

#[test]
fn without_terminals_the_routers_are_the_npus() {
    let facts = uniform("flattened_butterfly:4x4").facts();
    assert_eq!((facts.npus, facts.routers, facts.npu_degree, facts.diameter), (16, 0, (6, 6), 2));
    // Every row of four is cut into two and two, with four links each.
    assert_eq!((facts.links, facts.bisection_links), (16 * 6, Some(4 * 4)));
    // The pin bandwidth of a mesh: 68 GB/s x 4 / (2 (k - 1)), 45.3 GB/s on 4x4 and 19.4 on 8x8.
    let link = LinkParameters::new(TimePerByte::parse("68 GB/s").unwrap(), Time::from_ps(12_000));
    for (notation, others) in
        [("flattened_butterfly:4x4,equal_pins", 3), ("flattened_butterfly:8x8,equal_pins", 7)]
    {
        let topology = build(notation, &[link]).unwrap();
        let expected = TimePerByte::new(others * 1000, 2 * 68).unwrap();
        assert!(topology.links().all(|link| topology.parameters(link).rate == expected));
    }
    let far = build("flattened_butterfly:4x4,distance", &[link]).unwrap();
    let shortest = Routes::shortest_path(Arc::new(far));
    assert_eq!(shortest.pair(RankId(0), RankId(3)).latency.ps(), 36_000);
    let classes = parse("flattened_butterfly:4x4").unwrap().link_classes();
    assert_eq!(classes, ["dimension 0", "dimension 1"]);
}

#[test]
fn the_length_of_a_link_follows_its_distance() {
    let link = LinkParameters { length: Some(Length::from_um(250)), ..parameters(100) };
    let topology = build("flattened_butterfly:4x4:2x3,distance", &[link]).unwrap();
    let columns = |router: u32| (router % 4, router / 4);
    for link in topology.links() {
        let (from, to) = (topology.link_from(link).0, topology.link_to(link).0);
        if from.min(to) < 96 {
            continue;
        }
        let ((x, y), (to_x, to_y)) = (columns(from - 96), columns(to - 96));
        let positions = u64::from(2 * x.abs_diff(to_x) + 3 * y.abs_diff(to_y));
        assert_eq!(topology.parameters(link).latency.ps(), 100 * positions);
        assert_eq!(topology.parameters(link).length, Some(Length::from_um(250 * positions)));
    }
}

#[test]
fn an_npu_at_the_rim_of_its_block_is_further_from_the_router() {
    // In a block of 4 by 4 the router is between the middle four, which are one position away.
    let topology = uniform("flattened_butterfly:2x2:4x4,distance");
    let latency = |npu: u32| {
        topology.links_out(VertexId(npu)).map(|link| topology.parameters(link).latency.ps()).next()
    };
    let rows: Vec<Vec<u64>> =
        (0..4).map(|y| (0..4).map(|x| latency(8 * y + x).unwrap()).collect()).collect();
    assert_eq!(rows, [[3, 2, 2, 3], [2, 1, 1, 2], [2, 1, 1, 2], [3, 2, 2, 3]]);
    // In a block of 5 by 1 the router is on the third.
    let topology = uniform("flattened_butterfly:2x1:5x1,distance");
    let row: Vec<u64> = (0..5)
        .map(|npu| {
            let link = topology.links_out(VertexId(npu)).next().unwrap();
            topology.parameters(link).latency.ps()
        })
        .collect();
    assert_eq!(row, [2, 1, 1, 1, 2]);
}

#[test]
fn with_equal_pins_a_row_has_the_bandwidth_of_two_links() {
    let links = [parameters(1), parameters(2), parameters(3), parameters(4)];
    let topology = build("flattened_butterfly:6x2x3:2,equal_pins", &links).unwrap();
    let given = parameters(1).rate;
    for link in topology.links() {
        let there = topology.parameters(link);
        // In a row of six, five links share the 60 GB/s of two links. In rows of two or three
        // nothing is shared.
        let expected = if there.latency.ps() == 2 { "12 GB/s" } else { "30 GB/s" };
        assert_eq!(there.rate, TimePerByte::parse(expected).unwrap());
    }
    assert_eq!(slower(given, 7, 2), TimePerByte::new(3500, 30).unwrap());
    assert_eq!(slower(TimePerByte::ZERO, 7, 2), TimePerByte::ZERO);
}

#[test]
fn a_rate_beyond_64_bits_is_as_near_as_it_can_be() {
    let odd = TimePerByte::new(u64::MAX, u64::MAX - 1).unwrap();
    let (ps, bytes) = slower(odd, 7, 2).fraction();
    let (ps, bytes) = (u128::from(ps), u128::from(bytes));
    // 7/2, to within 2^-60.
    assert!((2 * ps).abs_diff(7 * bytes) < (7 * bytes) >> 60, "{ps}/{bytes}");
}

#[test]
fn dimension_order_is_as_short_as_the_shortest_path() {
    for notation in
        ["flattened_butterfly:4x3x2:2", "hyperx:s=3x4,t=2,k=2x1", "flattened_butterfly:4x3x2"]
    {
        let topology = Arc::new(uniform(notation));
        let shortest = Routes::shortest_path(Arc::clone(&topology));
        let ordered = Routes::dimension_order(Arc::clone(&topology)).unwrap();
        let npus = topology.npus();
        for (a, b) in (0..npus).flat_map(|a| (0..npus).map(move |b| (RankId(a), RankId(b)))) {
            assert_eq!(ordered.pair(a, b).hops, shortest.pair(a, b).hops, "{notation}: {a} {b}");
            let routers = ordered.path(a, b).unwrap();
            let strides: Vec<u32> = routers
                .iter()
                .map(|&link| (topology.link_from(link).0, topology.link_to(link).0))
                .filter(|&(from, to)| {
                    from.min(to) >= npus || topology.vertex_count() == npus as usize
                })
                .map(|(from, to)| from.abs_diff(to))
                .collect();
            assert!(strides.is_sorted(), "{notation}: {a} {b} {strides:?}");
        }
    }
}

#[test]
fn argument_errors() {
    for (argument, problem) in [
        ("s=4x4", "found `s=4x4`; expected the routers along each dimension"),
        ("4x4:2x2,express", "found `express`; expected any of `equal_pins`, `distance`"),
        ("4xx4:2", "a number is missing"),
    ] {
        let text = parse(&format!("flattened_butterfly:{argument}")).unwrap_err().to_string();
        assert!(text.contains(problem), "flattened_butterfly:{argument}: {text}");
    }
}
