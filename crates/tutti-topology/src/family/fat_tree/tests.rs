use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::LinkParameters;
use crate::{Routes, Topology, build, parse};
use tutti_units::ids::RankId;
use tutti_units::{Time, TimePerByte};

fn tree_of(notation: &str) -> Topology {
    let levels = parse(notation).unwrap_or_else(|e| panic!("{notation}: {e}")).link_classes().len();
    let link = |level: u64| {
        LinkParameters::new(TimePerByte::parse("25 GB/s").unwrap(), Time::from_ps(level))
    };
    let links: Vec<LinkParameters> = (1..).take(levels).map(link).collect();
    build(notation, &links).unwrap()
}

/// The level of a link, and whether it leads up.
fn level(topology: &Topology, link: tutti_units::ids::LinkId) -> (u64, bool) {
    let up = topology.link_to(link) > topology.link_from(link);
    (topology.parameters(link).latency.ps(), up)
}

/// Checks that all degrees follow from m, w and p.
fn check(notation: &str) {
    let topology = tree_of(notation);
    let tree = topology.family().and_then(Family::fat_tree).unwrap();
    for vertex in topology.vertices() {
        let place = tree.place(vertex);
        assert_eq!(tree.vertex(place), vertex);
        let links = |at: usize, upwards: bool| {
            let out = topology.links_out(vertex);
            let expected = (at as u64, upwards);
            out.filter(|&link| level(&topology, link) == expected).count() as u64
        };
        let here = place.level;
        let up = if here < tree.levels() { tree.up_links(here) } else { 0 };
        let down = match here.checked_sub(1) {
            Some(below) => u64::from(tree.down[below]) * u64::from(tree.cables[below]),
            None => 0,
        };
        assert_eq!(links(here + 1, true), up, "{notation} {vertex}");
        assert_eq!(links(here, false), down, "{notation} {vertex}");
        assert_eq!(topology.links_out(vertex).len() as u64, up + down);
    }
}

fn generalised() -> impl Strategy<Value = String> {
    proptest::collection::vec((1_u32..5, 1_u32..4, 1_u32..3), 1..4).prop_filter_map(
        "between 2 and 64 NPUs",
        |levels| {
            let npus: u32 = levels.iter().map(|level| level.0).product();
            let part = |pick: fn(&(u32, u32, u32)) -> u32| {
                levels.iter().map(|level| pick(level).to_string()).collect::<Vec<_>>().join("x")
            };
            let (m, w, p) = (part(|l| l.0), part(|l| l.1), part(|l| l.2));
            (2..=64).contains(&npus).then(|| format!("fat_tree:m={m},w={w},p={p}"))
        },
    )
}

proptest! {
    #[test]
    fn degrees_are_what_the_parameters_say(notation in generalised()) {
        check(&notation);
    }

    #[test]
    fn d_mod_k_is_as_short_as_the_shortest_path_and_turns_once(notation in generalised()) {
        let topology = Arc::new(tree_of(&notation));
        let routes = Routes::d_mod_k(Arc::clone(&topology)).unwrap();
        let shortest = Routes::shortest_path(Arc::clone(&topology));
        let npus = topology.npus();
        for (from, to) in (0..npus).flat_map(|a| (0..npus).map(move |b| (RankId(a), RankId(b)))) {
            let path = routes.path(from, to).unwrap();
            prop_assert_eq!(routes.pair(from, to).hops, shortest.pair(from, to).hops);
            prop_assert_eq!(routes.pair(from, to).hops as usize, path.len());
            let half = path.len() / 2;
            for (index, &link) in path.iter().enumerate() {
                let expected = if index < half { index + 1 } else { path.len() - index };
                prop_assert_eq!(level(&topology, link), (expected as u64, index < half));
            }
        }
    }
}

/// The number of paths over each link.
fn loads(
    topology: &Topology,
    routes: &Routes,
    pairs: impl Iterator<Item = (u32, u32)>,
) -> Vec<u64> {
    let mut loads = vec![0; topology.link_count()];
    for (from, to) in pairs {
        for link in routes.path(RankId(from), RankId(to)).unwrap() {
            loads[link.index()] += 1;
        }
    }
    loads
}

#[test]
fn d_mod_k_spreads_all_to_all_evenly_over_the_links_of_a_level() {
    for notation in [
        "fat_tree:k=2,n=3",
        "fat_tree:k=4,n=2",
        "fat_tree:radix=4,levels=3",
        "fat_tree:m=4x4,w=1x2",
        "fat_tree:m=4x4,w=1x2,p=1x2",
        "fat_tree:m=4x2x4,w=1x2x1",
    ] {
        let topology = Arc::new(tree_of(notation));
        let routes = Routes::d_mod_k(Arc::clone(&topology)).unwrap();
        let npus = topology.npus();
        let all = (0..npus).flat_map(|a| (0..npus).map(move |b| (a, b)));
        let loads = loads(&topology, &routes, all);
        let tree = topology.family().and_then(Family::fat_tree).unwrap();
        for link in topology.links() {
            // Pairs whose paths split below this level cross it once up and once down.
            let (height, _) = level(&topology, link);
            let below = usize::try_from(height - 1).unwrap();
            let leaving = u64::from(npus) * (u64::from(npus) - tree.npus_below(below));
            let expected = leaving / tree.cables_above(below);
            assert_eq!(loads[link.index()], expected, "{notation} level {height}");
        }
    }
}

#[test]
fn d_mod_k_sends_shifts_without_two_messages_on_a_link() {
    // Zahavi 2010: on trees with as many up-links as down-links, shift permutations are
    // contention-free.
    for notation in ["fat_tree:k=4,n=2", "fat_tree:k=2,n=4", "fat_tree:radix=4,levels=3"] {
        let topology = Arc::new(tree_of(notation));
        let routes = Routes::d_mod_k(Arc::clone(&topology)).unwrap();
        let npus = topology.npus();
        for shift in 1..npus {
            let pairs = (0..npus).map(|rank| (rank, (rank + shift) % npus));
            let most = loads(&topology, &routes, pairs).into_iter().max();
            assert_eq!(most, Some(1), "{notation} shift {shift}");
        }
        let shortest = Routes::shortest_path(Arc::clone(&topology));
        let pairs = (0..npus).map(|rank| (rank, (rank + npus / 2) % npus));
        assert!(loads(&topology, &shortest, pairs).into_iter().max() > Some(1), "{notation}");
    }
}

#[test]
fn the_spellings_name_the_trees_they_stand_for() {
    let same = |a: &str, b: &str| assert!(tree_of(a) == tree_of(b), "{a} is not {b}");
    same("fat_tree:k=3,n=2", "fat_tree:m=3x3,w=1x3");
    same("fat_tree:radix=4,levels=3", "fat_tree:m=2x2x4,w=1x2x2,p=1x1x1");
    same("fat_tree:radix=6,levels=1", "fat_tree:m=6,w=1");
    // Al-Fares et al.: k-port switches, k^3/4 hosts, 5 k^2/4 switches.
    let facts = tree_of("fat_tree:radix=8,levels=3").facts();
    assert_eq!((facts.npus, facts.switches, facts.radix, facts.diameter), (128, 80, 8, 6));
    assert_eq!(facts.bisection_links, Some(64));
    // k-ary n-tree: k^n hosts, n k^(n - 1) switches.
    let facts = tree_of("fat_tree:k=4,n=3").facts();
    assert_eq!((facts.npus, facts.switches, facts.radix, facts.diameter), (64, 48, 8, 6));
    // Tapered 2 to 1.
    assert_eq!(tree_of("fat_tree:m=16x16,w=1x8").facts().bisection_links, Some(64));
}

#[test]
fn parameters_that_do_not_fit_say_why() {
    for (argument, problem) in [
        ("k=4", "`n` is missing"),
        ("n=4", "`k` is missing"),
        ("k=1,n=4", "`1` is too small; expected an integer of at least 2"),
        ("k=2,n=25", "25 levels are too many: at most 24"),
        ("k=4,n=2,m=4x4,w=1x4", "`k` does not go with m, w, p"),
        ("radix=8,levels=2,n=2", "`n` does not go with radix, levels"),
        ("radix=7,levels=2", "7 ports cannot be split evenly; expected an even number"),
        ("levels=2", "`radix` is missing"),
        ("m=4x4", "`w` is missing"),
        ("m=4x4,w=1", "1 levels; expected 2, as for `m`"),
        ("m=4x4,w=1x2,p=2", "1 counts of cables; expected 2, as for `m`"),
        ("m=4x0,w=1x2", "`0` is too small"),
        ("m=1x1,w=1x2", "a single NPU has no neighbour"),
        ("", "found nothing; expected any of `k=...`"),
    ] {
        let text = parse(&format!("fat_tree:{argument}")).unwrap_err().to_string();
        assert!(text.contains(problem), "fat_tree:{argument}: {text}");
    }
    for large in ["k=1000000,n=9", "radix=4000000000,levels=20", "m=2,w=4294967295,p=4294967295"] {
        let text = parse(&format!("fat_tree:{large}")).unwrap_err().to_string();
        assert!(text.contains("too many"), "{large}: {text}");
    }
}
