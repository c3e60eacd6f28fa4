use super::*;
use proptest::prelude::*;
use tutti_topology::{Builder, LinkParameters, build};
use tutti_units::ids::{RankId, VertexId};
use tutti_units::{Bytes, Time};

/// Links of one byte per `ps` picoseconds.
fn every(ps: u64) -> LinkParameters {
    LinkParameters::new(TimePerByte::new(ps, 1).unwrap(), Time::ZERO)
}

fn limit(collective: Collective, notation: &str, ps: u64) -> TimePerByte {
    let topology = build(notation, &[every(ps)]).unwrap();
    by_links(collective, topology.npus(), &topology)
}

/// Derivations, for links of 1 ps per byte and S = 1:
/// - Ring of 8: two links enter the last rank, 7/8 / 2; all_reduce by single ranks: 2 x 7 / (8 x
///   2).
/// - Torus of 4 x 4: 15/16 / 4, and 2 x 15 / 64.
/// - Mesh of 4 x 4: 15/16 / 2 into a corner; 48 links, 2 x 15 / 48.
/// - Switch of 8: one link each, 7/8 and 2 x 7/8.
/// - Fully connected 8: 7/8 / 7, and 2 x 7 / 56.
#[test]
fn known_graphs_have_known_limits() {
    let fraction = |ps, bytes| TimePerByte::new(ps, bytes).unwrap();
    for (notation, gathering, reducing) in [
        ("ring:8", fraction(7, 16), fraction(14, 16)),
        ("torus:4x4", fraction(15, 64), fraction(30, 64)),
        ("mesh:4x4", fraction(15, 32), fraction(30, 48)),
        ("switch:8", fraction(7, 8), fraction(14, 8)),
        ("fully_connected:8", fraction(1, 8), fraction(14, 56)),
    ] {
        assert_eq!(limit(Collective::AllGather, notation, 1), gathering, "{notation}");
        assert_eq!(limit(Collective::ReduceScatter, notation, 1), gathering, "{notation}");
        assert_eq!(limit(Collective::AllReduce, notation, 1), reducing, "{notation}");
    }
    assert_eq!(limit(Collective::Barrier, "ring:8", 1), TimePerByte::ZERO);
    // Ring of 8: distances add up to 8 x (2 x (1 + 2 + 3) + 4) = 128 eighths over 16 links.
    assert_eq!(limit(Collective::AllToAll, "ring:8", 3), fraction(3, 1));
    // A root with two links; a corner with two.
    let root = RankId(5);
    assert_eq!(limit(Collective::Broadcast { root }, "ring:8", 1), fraction(1, 2));
    assert_eq!(limit(Collective::Reduce { root }, "mesh:4x4", 1), fraction(1, 2));
    assert_eq!(limit(Collective::Gather { root }, "torus:4x4", 1), fraction(15, 64));
    assert_eq!(limit(Collective::Scatter { root }, "switch:8", 1), fraction(7, 8));
}

/// Boxes of 4 behind a slow uplink: the links between boxes are the limit. Links of 1 ps per byte
/// inside, 10 outside. all_gather: 12 of 16 shards enter a box over one link; all_reduce: 4 boxes,
/// 2 x 3 S over 4 uplinks.
#[test]
fn slow_links_between_boxes_are_the_limit() {
    let topology = build("hierarchical:switch:4/switch:4", &[every(1), every(10)]).unwrap();
    let limit = |collective| by_links(collective, 16, &topology);
    let fraction = |ps, bytes| TimePerByte::new(ps, bytes).unwrap();
    assert_eq!(limit(Collective::AllGather), fraction(120, 16));
    assert_eq!(limit(Collective::AllReduce), fraction(60, 4));
    assert_eq!(limit(Collective::AllToAll), fraction(10 * 4 * 12, 16));
}

/// Rings of 16 behind one link each, as fast as the links of the rings: no rate separates the
/// rings. 16 rings: 2 x 15 S over 16 links. A ring of 5 of them: two links each, 2 x 4 S over 10.
#[test]
fn groups_are_found_where_all_links_are_alike() {
    let fraction = |ps, bytes| TimePerByte::new(ps, bytes).unwrap();
    for (notation, least) in [
        ("hierarchical:ring:16/switch:16", fraction(30, 16)),
        ("hierarchical:ring:16/ring:5", fraction(8, 10)),
    ] {
        assert_eq!(limit(Collective::AllReduce, notation, 1), least, "{notation}");
    }
}

/// Fewer ranks than NPUs: the other NPUs act as switches.
#[test]
fn ranks_are_the_first_npus() {
    let topology = build("ring:8", &[every(1)]).unwrap();
    let fraction = |ps, bytes| TimePerByte::new(ps, bytes).unwrap();
    assert_eq!(by_links(Collective::AllGather, 2, &topology), fraction(1, 4));
    assert_eq!(by_links(Collective::AllReduce, 1, &topology), TimePerByte::ZERO);
}

#[test]
fn large_graphs_are_limited_by_single_ranks() {
    let topology = build("torus:4x4", &[every(1)]).unwrap();
    let out = Capacities::of(&topology, 16);
    let back = out.reversed();
    for collective in [Collective::AllGather, Collective::AllReduce, Collective::AllToAll] {
        assert!(
            roughly(collective, &out, &back, Reducers::Npus) <= by_links(collective, 16, &topology)
        );
        assert!(roughly(collective, &out, &back, Reducers::Npus) > TimePerByte::ZERO);
    }
}

/// Returns a connected graph: a cycle through all vertices, with links of that many ps per byte,
/// and further links; the vertices from `npus` on are switches.
fn random(
    npus: u32,
    vertices: u32,
    cycle: u64,
    links: &[(u32, u32, u64)],
) -> tutti_topology::Topology {
    let mut builder = Builder::new("random", npus);
    (npus..vertices).for_each(|index| _ = builder.switch(format!("switch{index}")));
    (0..vertices).for_each(|at| {
        builder.link(VertexId(at), VertexId((at + 1) % vertices), every(cycle));
    });
    for &(from, to, ps) in links.iter().filter(|(from, to, _)| from != to) {
        builder.link(VertexId(from % vertices), VertexId(to % vertices), every(ps));
    }
    builder.build().unwrap()
}

/// Returns the limit of a collective from every set of vertices.
fn by_all_sets(
    collective: Collective,
    topology: &tutti_topology::Topology,
    amount: impl Fn(u128, u32) -> Option<u128>,
) -> TimePerByte {
    let caps = Capacities::of(topology, topology.npus());
    let mut worst = TimePerByte::ZERO;
    for set in 0..1_u32 << caps.vertices {
        let inside = |vertex: u32| set >> vertex & 1 == 1;
        let ranks = (0..caps.ranks).filter(|&rank| inside(rank)).count() as u128;
        let exit = caps.exit(inside);
        let required = amount(ranks, set).filter(|_| 0 < ranks && ranks < u128::from(caps.ranks));
        if let Some(required) = required {
            assert!(exit > 0, "{collective} {topology:?}");
            worst = worst.max(caps.time(required, u128::from(caps.ranks), exit));
        }
    }
    worst
}

/// Returns, for each set of ranks, the minimum capacity that leaves a set of vertices with exactly
/// these ranks, by exhaustive search.
fn exits_of_all(caps: &Capacities) -> Vec<u128> {
    let mut least = vec![u128::MAX; 1 << caps.ranks];
    for set in 0..1_usize << caps.vertices {
        let exit = caps.exit(|vertex| set >> vertex & 1 == 1);
        let ranks = set & (least.len() - 1);
        least[ranks] = least[ranks].min(exit);
    }
    least
}

/// Returns the minimum (exits, groups less one), as a fraction, over all partitions of the ranks
/// from `next` on into groups, given the groups so far.
fn least_ratio(exits: &[u128], groups: &mut Vec<usize>, next: u32) -> Option<(u128, u128)> {
    if 1_usize << next == exits.len() {
        let all = groups.iter().map(|&group| exits[group]).sum();
        return (groups.len() > 1).then_some((all, groups.len() as u128 - 1));
    }
    let mut least: Option<(u128, u128)> = None;
    let mut try_one = |found: Option<(u128, u128)>| {
        let less = |a: (u128, u128), b: (u128, u128)| a.0 * b.1 < b.0 * a.1;
        if let Some(found) = found.filter(|&found| least.is_none_or(|least| less(found, least))) {
            least = Some(found);
        }
    };
    for at in 0..groups.len() {
        groups[at] |= 1 << next;
        try_one(least_ratio(exits, groups, next + 1));
        groups[at] &= !(1 << next);
    }
    groups.push(1 << next);
    try_one(least_ratio(exits, groups, next + 1));
    groups.pop();
    least
}

proptest! {
    /// Up to 7 ranks, which have 877 partitions, and 2 switches.
    #[test]
    fn the_worst_division_is_found(
        npus in 2_u32..8,
        switches in 0_u32..3,
        links in prop::collection::vec((0_u32..9, 0_u32..9, 1_u64..9), 0..24),
        thin in 1_u64..40,
    ) {
        let vertices = npus + switches;
        let links = links.into_iter().map(|(a, b, ps)| (a % vertices, b % vertices, ps));
        let topology = random(npus, vertices, thin, &links.collect::<Vec<_>>());
        let out = Capacities::of(&topology, npus);
        for caps in [out.reversed(), out] {
            let found = division::worst(&caps);
            let ratio = (division::exits(&found), found.len() as u128 - 1);
            let least = least_ratio(&exits_of_all(&caps), &mut Vec::new(), 0).unwrap();
            prop_assert_eq!(ratio.0 * least.1, least.0 * ratio.1, "{:?}, not {:?}", found, least);
            let ranks: u128 = found.iter().map(|group| group.ranks.len() as u128).sum();
            prop_assert_eq!(ranks, u128::from(npus));
            let limit = by_links(Collective::AllReduce, npus, &topology);
            prop_assert!(limit >= caps.time(2 * least.1, 1, least.0));
        }
    }

    #[test]
    fn the_worst_set_is_found(
        npus in 2_u32..6,
        switches in 0_u32..3,
        links in prop::collection::vec((0_u32..8, 0_u32..8, 1_u64..9), 0..14),
    ) {
        let vertices = npus + switches;
        let links = links.into_iter().map(|(a, b, ps)| (a % vertices, b % vertices, ps));
        let topology = random(npus, vertices, 7, &links.collect::<Vec<_>>());
        let n = u128::from(npus);
        let root = npus - 1;
        let has_root = |set: u32| set >> root & 1 == 1;
        let by_sets = |collective, amount: &dyn Fn(u128, u32) -> Option<u128>| {
            by_all_sets(collective, &topology, amount)
        };
        let root = RankId(root);
        for (collective, expected) in [
            (Collective::AllGather, by_sets(Collective::AllGather, &|x, _| Some(x))),
            (Collective::ReduceScatter, by_sets(Collective::ReduceScatter, &|x, _| Some(n - x))),
            (Collective::Gather { root }, by_sets(Collective::Gather { root },
                &|x, set| (!has_root(set)).then_some(x))),
            (Collective::Scatter { root }, by_sets(Collective::Scatter { root },
                &|x, set| has_root(set).then_some(n - x))),
            (Collective::Broadcast { root }, by_sets(Collective::Broadcast { root },
                &|_, set| has_root(set).then_some(n))),
            (Collective::Reduce { root }, by_sets(Collective::Reduce { root },
                &|_, set| (!has_root(set)).then_some(n))),
        ] {
            prop_assert_eq!(by_links(collective, npus, &topology), expected, "{}", collective);
        }
        // Every set is a limit of all_reduce; groups may give a better one, but at most twice the
        // best set's.
        let sets = by_sets(Collective::AllReduce, &|_, _| Some(n));
        let found = by_links(Collective::AllReduce, npus, &topology);
        prop_assert!(found >= sets, "{} {}", found, sets);
        let ps = |limit: TimePerByte| limit.of(Bytes(1 << 40)).ps();
        prop_assert!(ps(found) <= 2 * ps(sets) + 1);
        // For all_to_all only single ranks and a few other sets are checked.
        let alone = by_sets(Collective::AllToAll,
            &|x, _| (x == 1 || x == n - 1).then_some(x * (n - x)));
        prop_assert!(by_links(Collective::AllToAll, npus, &topology) >= alone);
    }
}
