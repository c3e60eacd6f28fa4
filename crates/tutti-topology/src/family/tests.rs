use super::*;
use crate::{Routes, VertexKind, diameter_by_search};
use tutti_units::ids::RankId;
use tutti_units::{Time, TimePerByte};

fn parameters(latency_ns: u64) -> LinkParameters {
    let rate = TimePerByte::parse("50 GB/s").unwrap();
    LinkParameters::new(rate, Time::from_ps(latency_ns * 1000))
}

fn uniform(notation: &str) -> Topology {
    build(notation, &[parameters(300)]).unwrap_or_else(|error| panic!("{notation}: {error}"))
}

fn hops(topology: Topology) -> impl Fn(u32, u32) -> u32 {
    let routes = Routes::shortest_path(Arc::new(topology));
    move |from, to| routes.pair(RankId(from), RankId(to)).hops
}

const SMALL: &[&str] = &[
    "fully_connected:2",
    "fully_connected:3",
    "fully_connected:7",
    "ring:2",
    "ring:3",
    "ring:8",
    "ring:9",
    "ring:2,unidirectional",
    "ring:7,unidirectional",
    "mesh:2",
    "mesh:5",
    "mesh:4x2",
    "mesh:4x3",
    "mesh:3x3",
    "mesh:2x3x2",
    "mesh:1x4",
    "torus:2",
    "torus:3",
    "torus:4x2",
    "torus:4x3",
    "torus:3x3",
    "torus:2x2x2",
    "torus:1x6",
    "switch:2",
    "switch:9",
    "hierarchical:switch:4/ring:4",
    "hierarchical:ring:4/switch:3",
    "hierarchical:ring:3/ring:4",
    "hierarchical:fully_connected:4/rail:switch:3",
    "hierarchical:switch:2/rail:ring:3/torus:2x2",
    "hierarchical:switch:2/rail:switch:3/switch:2",
    "hierarchical:mesh:2x2/rail:fully_connected:3/ring:2",
    "edges:0-1,1-2,2>3,3>0",
    "dragonfly:p=2,a=4,h=2,g=9",
    "dragonfly:p=2,a=2,h=1,g=3,absolute",
    "dragonfly:p=1,a=3x2,h=2,g=5,k=1x3",
    "dragonfly:p=1,a=4,h=1,g=4,k=2",
    "dragonfly:p=2,a=1,h=3,g=4",
    "dragonfly:p=3,a=4,h=0,g=1",
    "dragonfly:p=1,a=2x2,h=0,g=1",
    "dragonfly:p=1,a=2,h=4,g=9",
    "fat_tree:k=2,n=2",
    "fat_tree:k=2,n=3",
    "fat_tree:k=3,n=2",
    "fat_tree:radix=4,levels=2",
    "fat_tree:radix=4,levels=3",
    "fat_tree:radix=6,levels=1",
    "fat_tree:m=2x4,w=1x1",
    "fat_tree:m=4x2,w=1x2",
    "fat_tree:m=2x3,w=1x2",
    "fat_tree:m=3x3,w=1x1",
    "fat_tree:m=2x2x2,w=1x2x1",
    "fat_tree:m=2x2,w=2x1,p=1x2",
    "fat_tree:m=4x1x2,w=1x2x2",
    "fat_tree:m=3x1,w=1x2",
    "hyperx:s=4,t=1",
    "hyperx:s=1,t=5",
    "hyperx:s=3x3,t=1",
    "hyperx:s=3x2,t=2",
    "hyperx:s=4x2,t=1",
    "hyperx:s=2x2x2,t=1",
    "hyperx:s=2x2x2,t=1,k=2x2x2",
    "hyperx:s=2x2,t=3",
    "hyperx:s=3,t=3,k=2",
    "hyperx:s=3x2,t=1,k=1x2",
    "hyperx:s=1x4,t=2",
    "cmesh:4:1",
    "cmesh:4:2",
    "cmesh:2x2:1",
    "cmesh:2x2:3",
    "cmesh:4x2:1",
    "cmesh:1x4:2x3",
    "cmesh:1x1:5",
    "cmesh:3x3:1",
    "cmesh:2x2x2:1",
    "cmesh:4x2:1,express",
    "cmesh:2x2:2x2,express,distance",
    "cmesh:8x6:1,express",
    "cmesh:6x4:3x2,express",
    "flattened_butterfly:4",
    "flattened_butterfly:3x3",
    "flattened_butterfly:4x2x2,equal_pins",
    "flattened_butterfly:4x3,equal_pins,distance",
    "flattened_butterfly:4:1",
    "flattened_butterfly:1:5",
    "flattened_butterfly:3x2:2",
    "flattened_butterfly:3x3:1,equal_pins",
    "flattened_butterfly:2x2:3x1,equal_pins,distance",
    "flattened_butterfly:4x4:2x2,distance",
    "butterfly:2:1",
    "butterfly:5:1",
    "butterfly:2:2",
    "butterfly:2:3",
    "butterfly:3:2",
    "butterfly:2:5",
    "bypass:4x4:mesh",
    "bypass:3x3:mesh,0=2",
    "bypass:5x2,wires=2:mesh,0=>3@0,5=>0@1",
    "bypass:4x4,wires=2,muxes=axis,distance:0-1,4>0,0=>3@1",
    "bypass:2x2,muxes=sign:0-1,0-2,1>3,3=>1",
    "bypass:4x4:0>1,1=>3/north/north",
    "hierarchical:bypass:3x3:mesh/switch:2",
    "hierarchical:cmesh:2x2:2/rail:butterfly:2:2",
    "chiplet_mesh:chiplets=2x2,tiles=2x2",
    "chiplet_mesh:chiplets=2x1,tiles=1x3",
    "chiplet_mesh:chiplets=1x2,tiles=3x2,boundary=1",
    "chiplet_mesh:chiplets=3x2,tiles=2x4,boundary=2",
    "rail_optimized:npus=2,hosts=3",
    "rail_optimized:npus=2,hosts=1",
    "rail_optimized:npus=4,hosts=2,pods=2,spines=2,uplinks=2",
    "rail_optimized:npus=2,hosts=1,pods=3,spines=1",
    "hierarchical:fat_tree:k=2,n=2/rail:switch:2",
    "torus:2x2x2x2x2",
    "torus:4x2x2x2x2",
    "torus:3x3x2x2x2",
];

#[test]
fn a_family_counts_what_it_builds_and_prints_what_it_was() {
    let examples = REGISTRY.iter().map(|entry| entry.example);
    for notation in SMALL.iter().copied().chain(examples) {
        let family = parse(notation).unwrap();
        let topology = uniform(notation);
        assert_eq!(family.notation(), notation);
        assert_eq!(topology.name(), notation);
        assert_eq!(family.size(), u64::from(topology.npus()), "{notation}");
        assert_eq!(family.link_count(), topology.link_count() as u64, "{notation}");
        let vertices = family.size() + family.added_vertices();
        assert_eq!(vertices, topology.vertex_count() as u64, "{notation}");
        assert!(topology.vertices().all(|vertex| {
            (topology.kind(vertex) == VertexKind::Npu) == (vertex.0 < topology.npus())
        }));
    }
}

#[test]
fn closed_forms_of_the_diameter_agree_with_the_search() {
    for notation in SMALL {
        let topology = uniform(notation);
        assert_eq!(topology.diameter(), diameter_by_search(&topology), "{notation}");
    }
}

/// The fewest links from one half of the NPUs to the other, over every bisection and every
/// assignment of switches.
fn bisection_by_search(topology: &Topology) -> u64 {
    let npus = (1_u32 << topology.npus()) - 1;
    let halves = (0..1_u32 << topology.vertex_count())
        .filter(|side| (side & npus).count_ones() == topology.npus() / 2);
    let inside = |side: u32, vertex: VertexId| side >> vertex.0 & 1 == 1;
    let cut = |side: u32| {
        let there = topology.links().filter(|&link| {
            inside(side, topology.link_from(link)) && !inside(side, topology.link_to(link))
        });
        let back = topology.links().filter(|&link| {
            !inside(side, topology.link_from(link)) && inside(side, topology.link_to(link))
        });
        there.count().min(back.count()) as u64
    };
    halves.map(cut).min().unwrap()
}

#[test]
fn closed_forms_of_the_bisection_agree_with_every_halving() {
    let more = ["mesh:4x3x1", "torus:4x2x2", "mesh:2x2x3", "mesh:6x2", "torus:6x2", "torus:8"];
    let mut known = 0;
    for notation in SMALL.iter().copied().chain(more) {
        let topology = uniform(notation);
        if topology.vertex_count() > 20 {
            continue;
        }
        if let Some(links) = topology.facts().bisection_links {
            assert_eq!(links, bisection_by_search(&topology), "{notation}");
            known += 1;
        }
    }
    assert!(known > 20, "only {known} families had a closed form");
}

#[test]
fn hops_follow_the_closed_forms() {
    let around = |size: u32, a: u32, b: u32| a.abs_diff(b).min(size - a.abs_diff(b));
    let ring = hops(uniform("ring:9"));
    let unidirectional = hops(uniform("ring:9,unidirectional"));
    let mesh = hops(uniform("mesh:4x3x2"));
    let torus = hops(uniform("torus:5x4x3"));
    let switch = hops(uniform("switch:5"));
    let full = hops(uniform("fully_connected:5"));
    let at = |sizes: [u32; 3], rank: u32| {
        [rank % sizes[0], rank / sizes[0] % sizes[1], rank / sizes[0] / sizes[1]]
    };
    for (a, b) in (0..60).flat_map(|a| (0..60).map(move |b| (a, b))) {
        let sizes = [5, 4, 3];
        let (x, y) = (at(sizes, a), at(sizes, b));
        assert_eq!(torus(a, b), (0..3).map(|d| around(sizes[d], x[d], y[d])).sum::<u32>());
        if a.max(b) < 24 {
            let (x, y) = (at([4, 3, 2], a), at([4, 3, 2], b));
            assert_eq!(mesh(a, b), (0..3).map(|d| x[d].abs_diff(y[d])).sum::<u32>());
        }
        if a.max(b) < 9 {
            assert_eq!(ring(a, b), around(9, a, b));
            assert_eq!(unidirectional(a, b), (b + 9 - a) % 9);
        }
        if a.max(b) < 5 {
            assert_eq!(switch(a, b), if a == b { 0 } else { 2 });
            assert_eq!(full(a, b), u32::from(a != b));
        }
    }
}

#[test]
fn dimension_order_is_as_short_as_the_shortest_path_and_turns_once_per_dimension() {
    for notation in ["mesh:4x3x2", "torus:5x4x3", "torus:2x4", "mesh:7", "torus:1x6"] {
        let topology = Arc::new(uniform(notation));
        let shortest = Routes::shortest_path(Arc::clone(&topology));
        let ordered = Routes::dimension_order(Arc::clone(&topology)).unwrap();
        for (a, b) in (0..topology.npus()).flat_map(|a| (0..topology.npus()).map(move |b| (a, b))) {
            let (a, b) = (RankId(a), RankId(b));
            assert_eq!(ordered.pair(a, b).hops, shortest.pair(a, b).hops, "{notation} {a} {b}");
            let strides =
                ordered.path(a, b).unwrap().into_iter().map(|link| {
                    dimension(topology.family().unwrap().grid().unwrap(), &topology, link)
                });
            assert!(strides.is_sorted(), "{notation} {a} {b}");
        }
    }
}

/// The dimension of a link.
fn dimension(grid: &Grid, topology: &Topology, link: tutti_units::ids::LinkId) -> usize {
    let (from, to) = (topology.link_from(link).0, topology.link_to(link).0);
    let mut stride = 1;
    grid.sizes()
        .iter()
        .position(|&size| {
            let differs = from / stride % size != to / stride % size;
            stride *= size;
            differs
        })
        .unwrap()
}

#[test]
fn an_even_ring_breaks_its_tie_upwards() {
    let topology = Arc::new(uniform("torus:4"));
    let routes = Routes::dimension_order(Arc::clone(&topology)).unwrap();
    let path = routes.path(RankId(3), RankId(1)).unwrap();
    let visited: Vec<u32> = path.iter().map(|&link| topology.link_to(link).0).collect();
    assert_eq!(visited, [0, 1]);
}

#[test]
fn a_torus_of_five_dimensions_has_a_class_for_each() {
    let links: Vec<LinkParameters> = (0..5).map(|d| parameters(10_u64.pow(d))).collect();
    let topology = build("torus:4x4x4x8x2", &links).unwrap();
    let facts = topology.facts();
    // The midplane and node board of Blue Gene/Q: ten links per node, because two of size 2 are one
    // cable.
    assert_eq!((facts.npus, facts.npu_degree, facts.diameter), (1024, (9, 9), 2 + 2 + 2 + 4 + 1));
    assert_eq!(facts.bisection_links, Some(2 * 1024 / 8));
    let routes = Routes::dimension_order(Arc::new(topology)).unwrap();
    // One hop along each dimension: 1 + 10 + 100 + 1000 + 10000 ns.
    let far = 1 + 4 * (1 + 4 * (1 + 4 * (1 + 8)));
    assert_eq!(routes.pair(RankId(0), RankId(far)).latency.ps(), 11_111_000);
}

#[test]
fn each_dimension_and_level_has_its_own_links() {
    // Along x at 100 ns, along y at 1 us: from (0, 0) to (2, 1) is 2 x 100 + 1000.
    let mesh = build("mesh:3x2", &[parameters(100), parameters(1000)]).unwrap();
    let wire = Routes::shortest_path(Arc::new(mesh)).pair(RankId(0), RankId(5));
    assert_eq!((wire.latency.ps(), wire.hops), (1_200_000, 3));
    // Up 100, two switches further on the ring 2 x 700, down 100.
    let tree = build("hierarchical:switch:4/ring:4", &[parameters(100), parameters(700)]).unwrap();
    let wire = Routes::shortest_path(Arc::new(tree)).pair(RankId(0), RankId(8));
    assert_eq!((wire.latency.ps(), wire.hops), (1_600_000, 4));
}

#[test]
fn a_group_without_a_switch_gets_a_gateway_and_a_rail_needs_none() {
    // 4 rings of 8 links, 4 gateways of 4 cables, a switch with 4 cables.
    let gateways = uniform("hierarchical:ring:4/switch:4");
    assert_eq!(gateways.facts().switches, 5);
    assert_eq!(gateways.link_count(), 4 * 8 + 4 * 4 * 2 + 4 * 2);
    assert_eq!(gateways.vertex_name(VertexId(16)), "level1.0.group0.gateway");
    // NPU, gateway, switch, gateway, NPU.
    assert_eq!(hops(gateways)(0, 15), 4);
    // 4 switches of 4 and 4 rails of 4: same index 2 hops, otherwise through an NPU of the group.
    let rails = uniform("hierarchical:switch:4/rail:switch:4");
    assert_eq!(rails.facts().switches, 8);
    assert_eq!(rails.facts().npu_degree, (2, 2));
    let hops = hops(rails);
    assert_eq!((hops(0, 1), hops(0, 4), hops(0, 5)), (2, 2, 4));
}

#[test]
fn link_parameters_must_match_the_classes() {
    let error = build("torus:4x4", &[parameters(1); 3]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "torus:4x4 was given 3 sets of link parameters: expected 1 for all its links, or 2, one each \
         for dimension 0, dimension 1"
    );
    assert!(matches!(build("ring:4", &[]), Err(TopologyError::WrongLinks { given: 0, .. })));
    let classes = parse("hierarchical:torus:2x2/rail:switch:4").unwrap().link_classes();
    assert_eq!(
        classes,
        [
            "level 0 (torus:2x2) dimension 0",
            "level 0 (torus:2x2) dimension 1",
            "level 1 (switch:4)"
        ]
    );
}

#[test]
fn a_wrong_argument_is_pointed_at() {
    for (notation, place) in [
        ("ring:", 0),
        ("ring:1", 0),
        ("ring:8,left", 2),
        ("ring:-3", 0),
        ("ring:+3", 0),
        ("ring:99999999999", 0),
        ("mesh:4x", 2),
        ("mesh:1x1", 0),
        ("torus:4x0", 2),
        ("torus:4xfour", 2),
        ("switch:eight", 0),
        ("fully_connected:0", 0),
        ("edges:0-1,2", 4),
        ("edges:0-1,2-x", 6),
        ("cmesh:4x4:2x2x2", 4),
        ("cmesh:4x4:2x0", 6),
        ("cmesh:4x5:2,distance,express", 15),
        ("flattened_butterfly:4x4x", 4),
        ("flattened_butterfly:1x1", 0),
        ("cmesh:4x4", 0),
        ("butterfly:2:99", 2),
        ("bypass:4x4", 0),
        ("bypass:4x4:", 4),
        ("bypass:4xfive:mesh", 0),
        ("bypass:4x4,wide:mesh", 4),
        ("bypass:4x4,muxes=all:mesh", 4),
        ("bypass:4x4:mesh,0=>3,1=>2", 14),
        ("dragonfly:p=2,a=4,h=2,g=10", 14),
        ("dragonfly:p=2,a=4,q=2", 8),
        ("hierarchical:", 0),
        ("hierarchical:rail:ring:4/ring:4", 0),
        ("hierarchical:ring:4/torus:4xq", 15),
        ("hierarchical:ring:4/circle:4", 7),
        ("hierarchical:ring:4/hierarchical:ring:4", 7),
    ] {
        match parse(notation) {
            Err(TopologyError::Argument { at, .. }) => assert_eq!(at, place, "{notation}"),
            other => panic!("{notation}: {other:?}"),
        }
    }
    assert!(matches!(parse("circle:4"), Err(TopologyError::UnknownFamily { .. })));
}

#[test]
fn what_is_too_large_is_refused_before_it_is_built() {
    for notation in [
        "torus:4294967295x4294967295x4294967295",
        "fully_connected:4294967295",
        "fully_connected:100000",
        "ring:16777217",
        "hierarchical:switch:65536/switch:65536",
        "hierarchical:ring:4000000000/ring:4000000000/rail:fully_connected:4000000000",
        "edges:0-4294967295",
        "dragonfly:p=1000,a=100,h=1000",
        "dragonfly:p=1,a=2,h=1,g=2,k=4294967295",
        "fat_tree:k=4096,n=3",
        "hyperx:s=65536,t=1",
        "cmesh:4294967295x4294967295:4294967295",
        "cmesh:4294967294x4294967294:4294967294x4294967294,express",
        "cmesh:20000000:1",
        "flattened_butterfly:65536:1",
        "butterfly:4294967295:24",
        "butterfly:2:24",
        "rail_optimized:npus=8,hosts=3000000",
    ] {
        let error = build(notation, &[parameters(1)]).unwrap_err();
        assert!(error.to_string().contains("too many"), "{notation}: {error}");
    }
}
