use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::{Distances, Topology, VertexKind, build, parse};
use tutti_units::{Time, TimePerByte};

fn link(latency_ns: u64) -> LinkParameters {
    LinkParameters::new(TimePerByte::parse("5 GB/s").unwrap(), Time::from_ps(latency_ns * 1000))
}

/// Gives every link class a different latency, so that classes can be distinguished.
fn with_class_latencies(notation: &str) -> Topology {
    let classes = parse(notation).unwrap().link_classes().len();
    let links: Vec<LinkParameters> = (1..).take(classes).map(link).collect();
    build(notation, &links).unwrap_or_else(|error| panic!("{notation}: {error}"))
}

/// The number of links of a class that leave a vertex.
fn leaving(topology: &Topology, vertex: VertexId, class: u64) -> u64 {
    let links = topology.links_out(vertex);
    links.filter(|&l| topology.parameters(l).latency.ps() == class * 1000).count() as u64
}

/// Checks the structure: all counts follow from p, a, h, g and k.
fn check(notation: &str) {
    let topology = with_class_latencies(notation);
    let dragonfly = topology.family().and_then(Family::dragonfly).unwrap();
    let (groups, p) = (dragonfly.groups, u64::from(dragonfly.npus_per_switch));
    let (a, m) = (dragonfly.switches_per_group(), dragonfly.cables_between_groups());
    let global = dragonfly.local.sizes.len() as u64 + 2;
    let used = m * u64::from(groups - 1);
    assert!(used <= a * u64::from(dragonfly.global_ports));
    for vertex in topology.vertices() {
        if topology.kind(vertex) == VertexKind::Npu {
            assert_eq!(topology.links_out(vertex).len(), 1);
            assert_eq!(leaving(&topology, vertex, 1), 1);
            continue;
        }
        assert_eq!(leaving(&topology, vertex, 1), p);
        for (class, (&size, &cables)) in
            (2..).zip(dragonfly.local.sizes.iter().zip(&dragonfly.local.cables))
        {
            assert_eq!(leaving(&topology, vertex, class), u64::from((size - 1) * cables));
        }
        let ports = leaving(&topology, vertex, global);
        assert!(ports <= u64::from(dragonfly.global_ports), "{notation}");
        assert!(ports == used / a || ports == used.div_ceil(a), "{notation}: uneven");
    }
    let between = cables_between(&topology, dragonfly);
    for (a, b) in (0..groups).flat_map(|a| (0..groups).map(move |b| (a, b))) {
        let expected = if a == b { 0 } else { m };
        assert_eq!(between[a as usize][b as usize], expected, "{notation}: groups {a} and {b}");
    }
}

/// The number of links from each group to each other.
fn cables_between(topology: &Topology, dragonfly: &Dragonfly) -> Vec<Vec<u64>> {
    let groups = dragonfly.groups as usize;
    let mut between = vec![vec![0; groups]; groups];
    for link in topology.links() {
        let from = dragonfly.group_of(topology.link_from(link)) as usize;
        let to = dragonfly.group_of(topology.link_to(link)) as usize;
        between[from][to] += u64::from(from != to);
    }
    between
}

proptest! {
    #[test]
    fn degrees_and_cables_are_what_the_parameters_say(
        p in 1_u32..4,
        (columns, rows) in (1_u32..6, 0_u32..4),
        h in 0_u32..5,
        short in 0_u32..30,
        k in 1_u32..4,
        absolute in any::<bool>(),
    ) {
        let a = if rows == 0 { columns } else { columns * rows };
        let g = (a * h + 1).saturating_sub(short).max(1);
        prop_assume!(p * a * g >= 2 && p * a * g < 400);
        let size = if rows == 0 { format!("{columns}") } else { format!("{columns}x{rows}") };
        let cables = if rows == 0 { format!("{k}") } else { format!("1x{k}") };
        let arrangement = if absolute { ",absolute" } else { "" };
        check(&format!("dragonfly:p={p},a={size},h={h},g={g},k={cables}{arrangement}"));
    }
}

#[test]
fn the_example_of_kim_and_others_has_72_npus() {
    // Figure 5 of the paper: p = h = 2, a = 4, g = 9.
    let topology = with_class_latencies("dragonfly:p=2,a=4,h=2");
    let facts = topology.facts();
    assert_eq!(topology.name(), "dragonfly:p=2,a=4,h=2,g=9");
    assert_eq!((facts.npus, facts.switches, facts.radix, facts.diameter), (72, 36, 7, 5));
    // 72 terminals, 9 x 6 local cables, 36 cables between groups.
    assert_eq!(facts.links, 2 * (72 + 9 * 6 + 36));
}

#[test]
fn global_links_follow_the_arrangement() {
    let leads = |notation: &str, from: u32| {
        let topology = with_class_latencies(notation);
        let dragonfly = topology.family().and_then(Family::dragonfly).unwrap();
        let switches = (0..4).map(|number| dragonfly.switch(0, number));
        let ends = switches.flat_map(|switch| topology.links_out(switch)).filter_map(|link| {
            let to = topology.link_to(link);
            (dragonfly.group_of(to) != from).then(|| dragonfly.group_of(to))
        });
        ends.collect::<Vec<u32>>()
    };
    // Links are numbered by destination, so the two of a switch ascend.
    assert_eq!(leads("dragonfly:p=1,a=4,h=2", 0), [7, 8, 5, 6, 3, 4, 1, 2]);
    assert_eq!(leads("dragonfly:p=1,a=4,h=2,absolute", 0), [1, 2, 3, 4, 5, 6, 7, 8]);
    // Three groups: 4 cables between each pair, assigned round-robin.
    assert_eq!(leads("dragonfly:p=1,a=4,h=2,g=3", 0), [1, 2, 1, 2, 1, 2, 1, 2]);
}

#[test]
fn a_cray_xc_group_is_a_grid() {
    let topology = with_class_latencies("dragonfly:p=4,a=16x6,h=10,g=3,k=1x3");
    let dragonfly = topology.family().and_then(Family::dragonfly).unwrap();
    assert_eq!((topology.npus(), dragonfly.cables_between_groups()), (3 * 96 * 4, 480));
    // 15 green, 5 x 3 black, 10 blue and 4 NPUs.
    let switch = dragonfly.switch(1, 16 * 2 + 5);
    assert_eq!(topology.vertex_name(switch), "group1.row2.switch5");
    let counts: Vec<u64> = (1..5).map(|class| leaving(&topology, switch, class)).collect();
    assert_eq!(counts, [4, 15, 15, 10]);
    let distances = Distances::fewest_hops(Arc::new(topology.clone()));
    assert_eq!(distances.hops(dragonfly.switch(1, 0), switch), 2);
    assert_eq!(topology.family().unwrap().link_classes(), ["terminal", "row", "column", "global"]);
}

#[test]
fn parameters_that_do_not_fit_say_why() {
    let refused = |argument: &str| parse(&format!("dragonfly:{argument}")).unwrap_err().to_string();
    for (argument, problem) in [
        (
            "p=2,a=4,h=2,g=10",
            "10 groups need 9 global ports each to be joined directly, but a=4 switches with h=2 \
             have 8; expected at most g=9",
        ),
        ("p=1,a=16x6,h=0,g=2", "but a=16x6 switches with h=0 have 0; expected at most g=1"),
        ("p=2,a=4", "`h` is missing"),
        ("a=4,h=2", "`p` is missing"),
        ("p=2,h=2", "`a` is missing"),
        ("p=2,a=2x2x2,h=1", "a group has one or two dimensions"),
        ("p=2,a=4,h=2,k=1x3", "2 counts of cables; expected 1, as for `a`"),
        ("p=2,a=16x6,h=2,k=3", "1 counts of cables; expected 2, as for `a`"),
        ("p=0,a=4,h=2", "`0` is too small; expected an integer of at least 1"),
        ("p=2,a=4,h=2,g=0", "`0` is too small"),
        ("p=2,a=four,h=2", "found `four`; expected an integer of at least 1"),
        ("p=2,a=4294967296,h=2", "`4294967296` is too large; expected at most 4294967295"),
        ("p=2,a=4x,h=2", "a number is missing"),
        ("p=2,a=4,h=2,p=1", "`p` is given twice"),
        ("p=2,a=4,h=2,rows=4", "found `rows=4`; expected any of `p=...`, `a=...`"),
        ("p=2,a=4,h=2,relative", "found `relative`; expected any of"),
        ("p=2,a=4,h=2,", "found nothing; expected any of"),
        ("", "found nothing; expected any of"),
        ("p=1,a=1,h=0", "a single NPU has no neighbour"),
    ] {
        let text = refused(argument);
        assert!(text.contains(problem), "dragonfly:{argument}: {text}");
    }
    let error = parse("dragonfly:p=4294967295,a=65536x65536,h=4294967295").unwrap_err();
    assert!(error.to_string().contains("too many"), "{error}");
}
