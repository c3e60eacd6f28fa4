use super::*;
use crate::LinkParameters;
use crate::{Topology, VertexKind, build, parse};
use tutti_units::{Time, TimePerByte};

fn uniform(notation: &str) -> Topology {
    let link = LinkParameters::new(TimePerByte::parse("25 GB/s").unwrap(), Time::from_ps(1000));
    build(notation, &[link]).unwrap_or_else(|error| panic!("{notation}: {error}"))
}

#[test]
fn switches_are_joined_when_they_differ_in_one_dimension() {
    let topology = uniform("hyperx:s=4x3x2,t=2,k=1x2x3");
    assert_eq!((topology.npus(), topology.vertex_count()), (48, 72));
    let digits = |switch: u32| [switch % 4, switch / 4 % 3, switch / 12];
    for (a, b) in (0..24).flat_map(|a| (0..24).map(move |b| (a, b))) {
        let differing: Vec<usize> = (0..3).filter(|&d| digits(a)[d] != digits(b)[d]).collect();
        let expected = if let [dimension] = differing[..] { [1, 2, 3][dimension] } else { 0 };
        let cables = topology.links_between(VertexId(48 + a), VertexId(48 + b)).count();
        assert_eq!(cables, expected, "switches {a} and {b}");
    }
    for vertex in topology.vertices() {
        let expected = match topology.kind(vertex) {
            VertexKind::Npu => 1,
            // Two NPUs, 3 links along the first dimension, 2 x 2 along the second, 3 along the
            // third.
            _ => 2 + 3 + 4 + 3,
        };
        assert_eq!(topology.links_out(vertex).len(), expected);
    }
}

#[test]
fn published_networks_are_special_cases() {
    // Kim, Dally and Abts 2007: the 32-ary 2-flat has 1024 nodes on switches of radix 63.
    let flat = uniform("hyperx:s=32,t=32").facts();
    assert_eq!((flat.npus, flat.switches, flat.radix, flat.diameter), (1024, 32, 63, 3));
    // Full bisection as defined by Ahn et al.: K S / (2 T) is 1/2 of what all NPUs inject.
    let halved = uniform("hyperx:s=4x4,t=4").facts();
    assert_eq!(halved.bisection_links, Some(16));
    assert_eq!(uniform("hyperx:s=4x4,t=1").facts().bisection_links, Some(8));
}

#[test]
fn parameters_that_do_not_fit_say_why() {
    for (argument, problem) in [
        ("8x8", "found `8x8`; expected any of `s=...`, `t=...`, `k=...`, with commas between"),
        ("t=4", "`s` is missing"),
        ("s=8x8,t=0", "`0` is too small"),
        ("s=8x8,k=2", "1 counts of cables; expected 2, as for `s`"),
        ("s=1x1", "a single NPU has no neighbour"),
        ("s=4294967295x4294967295x4294967295", "too many NPUs"),
    ] {
        let text = match parse(&format!("hyperx:{argument}")) {
            Err(TopologyError::TooManyNpus { .. }) => "too many NPUs".to_owned(),
            other => other.unwrap_err().to_string(),
        };
        assert!(text.contains(problem), "hyperx:{argument}: {text}");
    }
}
