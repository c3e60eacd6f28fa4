use std::sync::Arc;

use super::*;
use crate::{Routes, Topology, build, parse};
use tutti_units::ids::RankId;
use tutti_units::{Time, TimePerByte};

/// Scale-up at 100 ns, rails at 1 us, spines at the latency given.
fn cluster(argument: &str, spine_ns: u64) -> Topology {
    let link = |rate, ns: u64| {
        LinkParameters::new(TimePerByte::parse(rate).unwrap(), Time::from_ps(ns * 1000))
    };
    let links = [link("450 GB/s", 100), link("50 GB/s", 1000), link("50 GB/s", spine_ns)];
    build(&format!("rail_optimized:{argument}"), &links).unwrap()
}

#[test]
fn counts_are_what_the_parameters_say() {
    // A DGX SuperPOD's scalable unit: 32 hosts of 8; four of them, 32 leaves, 16 spines with two
    // cables each.
    let facts = cluster("npus=8,hosts=32,pods=4,spines=16,uplinks=2", 1000).facts();
    assert_eq!(facts.npus, 1024);
    assert_eq!(facts.switches, 128 + 32 + 16);
    assert_eq!(facts.links, 2 * (1024 + 1024 + 32 * 16 * 2));
    assert_eq!((facts.npu_degree, facts.radix, facts.diameter), ((2, 2), 64, 4));
}

#[test]
fn an_npu_is_on_the_leaf_of_its_index_and_the_switch_of_its_host() {
    let topology = cluster("npus=4,hosts=3,pods=2,spines=2", 1000);
    for npu in 0..24 {
        let next = topology.links_out(VertexId(npu)).map(|link| topology.link_to(link));
        let names: Vec<&str> = next.map(|vertex| topology.vertex_name(vertex)).collect();
        let (host, pod, index) = (npu / 4, npu / 12, npu % 4);
        assert_eq!(names, [format!("host{host}.switch"), format!("pod{pod}.leaf{index}")]);
    }
}

#[test]
fn messages_change_index_inside_a_host_or_over_a_spine() {
    let hops = |topology: Topology, pairs: &[(u32, u32)]| {
        let routes = Routes::shortest_path(Arc::new(topology));
        let wires = pairs.iter().map(|&(a, b)| routes.pair(RankId(a), RankId(b)));
        wires.map(|wire| (wire.hops, wire.latency.ps() / 1000)).collect::<Vec<_>>()
    };
    // Same host; same rail; other rail of the pod; same rail of another pod.
    let pairs = [(0, 1), (0, 4), (0, 5), (0, 12)];
    let near = hops(cluster("npus=4,hosts=3,pods=2,spines=2", 2000), &pairs);
    assert_eq!(near, [(2, 200), (2, 2000), (4, 2200), (4, 6000)]);
    // A spine that is nearer than the scale-up switch is used.
    let spine = hops(cluster("npus=4,hosts=3,pods=2,spines=2", 10), &pairs);
    assert_eq!(spine, [(2, 200), (2, 2000), (4, 2020), (4, 2020)]);
    let without = hops(cluster("npus=4,hosts=3", 10), &pairs[..3]);
    assert_eq!(without, [(2, 200), (2, 2000), (4, 2200)]);
}

#[test]
fn parameters_that_do_not_fit_say_why() {
    for (argument, problem) in [
        ("npus=8", "`hosts` is missing"),
        ("hosts=8", "`npus` is missing"),
        ("npus=1,hosts=8", "`1` is too small; expected an integer of at least 2"),
        ("npus=8,hosts=4,pods=2", "2 pods meet at spines only; expected at least spines=1"),
        ("npus=8,hosts=4,uplinks=2", "without spines there is nothing above a leaf"),
        ("gpus=8,hosts=4", "found `gpus=8`; expected any of `npus=...`"),
        ("npus=4294967295,hosts=4294967295,pods=4294967295,spines=1", "too many"),
    ] {
        let text = parse(&format!("rail_optimized:{argument}")).unwrap_err().to_string();
        assert!(text.contains(problem), "rail_optimized:{argument}: {text}");
    }
}
