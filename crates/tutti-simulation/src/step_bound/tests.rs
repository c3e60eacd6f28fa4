//! Bounds of steps by hand: bytes across cuts, latencies, and the parts of small steps.

use std::sync::Arc;

use tutti_engine::LocalCosts;
use tutti_engine::training::{Ring, Torus, TrainingRunError};
use tutti_engine::workload::{Lane, Message, Pass, Program, Rings, Task, TaskId, Transfer, What};
use tutti_network::flow::FlowLevel;
use tutti_schedule::collective::Collective;
use tutti_topology::{Builder, LinkParameters, Routes, Topology};
use tutti_units::ids::VertexId;
use tutti_units::{Bytes, Time, TimePerByte};

use super::cuts::Cuts;
use super::needs::Needs;
use super::{BoundedNetwork, BoundedStep, Dimension, EndpointCosts, Moved, StepBound};
use crate::{Contention, Platform, Routing};

const MB: u64 = 1_000_000;

fn ns(time: u64) -> Time {
    Time::from_ps(time * 1000)
}

/// 25 GB/s, 40 ps per byte.
fn per_byte() -> TimePerByte {
    TimePerByte::parse("25 GB/s").unwrap()
}

fn dimensions(sizes: &[u32]) -> Vec<Dimension> {
    let one = |(at, &npus): (usize, &u32)| Dimension { name: format!("d{at}"), npus };
    sizes.iter().enumerate().map(one).collect()
}

fn torus(sizes: &[u32]) -> Torus {
    let ring = |&nodes: &u32| Ring { nodes, per_byte: per_byte(), latency: ns(100) };
    Torus::new(sizes.iter().map(ring).collect()).unwrap()
}

fn link() -> LinkParameters {
    LinkParameters { rate: per_byte(), latency: ns(100), length: None }
}

fn on(topology: Topology, flows: &[(&str, &str)]) -> Platform {
    let model = tutti_network::build("postal", &[("alpha", "1 us"), ("beta", "0 ns/B")]).unwrap();
    let contention = Contention::Flow(FlowLevel::from_texts(flows.iter().copied()).unwrap());
    let routing = Routing::fixed(Routes::shortest_path(Arc::new(topology)));
    Platform::new(model, LocalCosts::FREE, Some(routing), contention).unwrap()
}

fn platform(notation: &str) -> Platform {
    on(tutti_topology::build(notation, &[link()]).unwrap(), &[])
}

fn moved(collective: Collective, rings: Rings) -> Moved {
    Moved { name: collective.name(), rings, bytes: Bytes(MB), collective: Some(collective) }
}

/// The loads of 1 MB by cut, in ns.
fn loads(cuts: &Cuts<'_>, collective: Collective, rings: Rings) -> Vec<(String, u64)> {
    let rounded = |(name, ps): (String, f64)| (name, super::floor(ps / 1000.0 + 1e-6).ps());
    cuts.loads(&moved(collective, rings)).into_iter().map(rounded).collect()
}

fn named(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|&(name, time)| (name.to_owned(), time)).collect()
}

fn is_close(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-9 * expected.abs()
}

#[test]
fn needs_are_the_bytes_of_a_rank() {
    let of = |collective| Needs::of(Some(collective), 4, Bytes(400));
    let needs = |leaves, enters, sends, reads| Needs { leaves, enters, sends, reads };
    assert_eq!(of(Collective::AllReduce), needs(400.0, 400.0, 600.0, 300.0));
    assert_eq!(of(Collective::ReduceScatter), needs(300.0, 100.0, 300.0, 300.0));
    assert_eq!(of(Collective::AllGather), needs(100.0, 300.0, 300.0, 300.0));
    assert_eq!(of(Collective::AllToAll), needs(300.0, 300.0, 300.0, 300.0));
    assert_eq!(of(Collective::Barrier), Needs::default());
    assert_eq!(Needs::of(None, 4, Bytes(400)), Needs::default());
}

/// Two links of 25 GB/s leave each of four NPUs: 200 GB/s in total. 6 MB of an all_reduce and 3 MB of
/// the others cross them. The farthest NPU is two links away.
#[test]
fn a_ring_of_four_has_one_cut() {
    let (torus, dimensions) = (torus(&[4]), dimensions(&[4]));
    let cuts = Cuts::new(&dimensions, BoundedNetwork::Torus(&torus));
    for (collective, time) in [
        (Collective::AllReduce, 30_000),
        (Collective::ReduceScatter, 15_000),
        (Collective::AllGather, 15_000),
        (Collective::AllToAll, 15_000),
        (Collective::Barrier, 0),
    ] {
        assert_eq!(loads(&cuts, collective, Rings::ALL), named(&[("links of d0", time)]));
    }
    let group = cuts.group(Rings::ALL);
    assert!(is_close(cuts.exit(&group), 0.05) && is_close(cuts.entry(&group), 0.05));
    assert_eq!((cuts.nearest(&group), cuts.eccentricity(&group)), (ns(100), ns(200)));
}

/// The 16 NPUs have 32 links along each dimension: 800 GB/s. Among all, an all_reduce takes 6 MB
/// between the 4 blocks of a dimension and 30 MB between all NPUs. Four groups along one dimension
/// take 24 MB.
#[test]
fn a_torus_has_a_cut_for_each_set_of_dimensions() {
    let (rings, dimensions) = (torus(&[4, 4]), dimensions(&[4, 4]));
    let of_topology = platform("torus:4x4");
    for network in [BoundedNetwork::Torus(&rings), BoundedNetwork::Platform(&of_topology)] {
        let cuts = Cuts::new(&dimensions, network);
        let three = |one, two, both| {
            named(&[("links of d0", one), ("links of d1", two), ("links of d0 and d1", both)])
        };
        let all = loads(&cuts, Collective::AllReduce, Rings::ALL);
        assert_eq!(all[..3], three(7_500, 7_500, 18_750));
        assert_eq!(loads(&cuts, Collective::AllReduce, Rings(1)), three(30_000, 0, 15_000));
        // An all_to_all of four groups: 12 MB.
        assert_eq!(loads(&cuts, Collective::AllToAll, Rings(2)), three(0, 15_000, 7_500));
        assert!(is_close(cuts.exit(&[0, 1]), 0.1));
        assert_eq!(cuts.eccentricity(&[0, 1]), ns(400));
        assert_eq!(cuts.eccentricity(&[1]), ns(200));
    }
}

/// The worst cut of an all_reduce on a topology leaves a byte for each NPU out.
#[test]
fn the_worst_cut_is_for_groups_of_all_npus() {
    let (dimensions, platform) = (dimensions(&[2, 2]), platform("switch:4"));
    let cuts = Cuts::new(&dimensions, BoundedNetwork::Platform(&platform));
    let all = cuts.loads(&moved(Collective::AllReduce, Rings::ALL));
    let (name, time) = all.last().unwrap();
    assert_eq!(name, "links of the worst cut of all_reduce");
    // 2 x 3/4 of the bytes, on one link.
    assert!(is_close(*time, 1.5 * 40.0 * 999_996.0), "{time}");
    assert_eq!(cuts.loads(&moved(Collective::AllReduce, Rings(1))).len(), 3);
}

/// Four links of 25 GB/s enter the switch, which belongs to no block: 100 GB/s. All NPUs are two
/// links apart.
#[test]
fn a_switch_has_the_links_of_its_npus() {
    let (dimensions, platform) = (dimensions(&[2, 2]), platform("switch:4"));
    let cuts = Cuts::new(&dimensions, BoundedNetwork::Platform(&platform));
    let all = loads(&cuts, Collective::AllReduce, Rings::ALL);
    let expected =
        [("links of d0", 20_000), ("links of d1", 20_000), ("links of d0 and d1", 60_000)];
    assert_eq!(all[..3], named(&expected));
    assert!(is_close(cuts.exit(&[0]), 0.025) && is_close(cuts.entry(&[0]), 0.025));
    assert_eq!((cuts.nearest(&[0]), cuts.eccentricity(&[0])), (ns(100), ns(200)));
}

/// Two NPUs at each of two leaves, joined by a spine. A leaf belongs to the block of its NPUs: two
/// links of 25 GB/s leave the blocks of d1.
fn leaves() -> Topology {
    let mut builder = Builder::new("leaves", 4);
    let leaves = [builder.switch("one"), builder.switch("two")];
    let spine = builder.switch("spine");
    for npu in 0..4 {
        let leaf = leaves[npu / 2];
        let npu = VertexId(u32::try_from(npu).unwrap());
        builder.link(npu, leaf, link());
        builder.link(leaf, npu, link());
    }
    for leaf in leaves {
        builder.link(leaf, spine, link());
        builder.link(spine, leaf, link());
    }
    builder.build().unwrap()
}

#[test]
fn a_switch_joins_the_block_of_most_of_its_links() {
    let (dimensions, platform) = (dimensions(&[2, 2]), on(leaves(), &[]));
    let cuts = Cuts::new(&dimensions, BoundedNetwork::Platform(&platform));
    let all = loads(&cuts, Collective::AllReduce, Rings::ALL);
    assert_eq!(all[1], ("links of d1".to_owned(), 40_000));
    // Along d0, no leaf has more links to one block.
    assert_eq!(all[0], ("links of d0".to_owned(), 20_000));
}

/// Each of two blocks sends its 1 MB once; an all_gather sends 1 MB in all.
#[test]
fn switches_that_reduce_send_the_data_of_a_block_once() {
    let switches = [("multicast", "true"), ("reduce", "true")];
    let (dimensions, platform) = (dimensions(&[2, 2]), on(leaves(), &switches));
    let cuts = Cuts::new(&dimensions, BoundedNetwork::Platform(&platform));
    let at = |collective| loads(&cuts, collective, Rings::ALL)[1].1;
    assert_eq!(at(Collective::AllReduce), 40_000);
    assert_eq!(at(Collective::AllGather), 20_000);
    assert_eq!(at(Collective::ReduceScatter), 20_000);
    // Across four blocks: 4 MB instead of 6 MB.
    assert_eq!(loads(&cuts, Collective::AllReduce, Rings::ALL)[2].1, 40_000);
}

fn compute(time: Time) -> What {
    What::Compute { time, lane: Lane::Main }
}

fn all_reduce() -> What {
    What::Collective(Transfer::new(Collective::AllReduce, Bytes(MB)))
}

/// A program of tasks with their dependencies.
fn program(tasks: &[(What, &[u32])]) -> Program {
    let task = |&(what, after): &(What, &[u32])| {
        let task = Task { what, layer: 0, pass: Pass::Forward, iteration: 0 };
        (task, after.iter().map(|&task| TaskId(task)).collect())
    };
    Program::new(vec!["layer".to_owned()], tasks.iter().map(task).collect()).unwrap()
}

fn step<'a>(
    dimensions: &'a [Dimension],
    torus: &'a Torus,
    programs: &'a [Program],
    of: &'a [u32],
) -> BoundedStep<'a> {
    let network = BoundedNetwork::Torus(torus);
    let (endpoint, launch) = (EndpointCosts::Ideal, Time::ZERO);
    BoundedStep { dimensions, network, endpoint, launch, programs, of, is_alike: true }
}

fn parts(bound: &StepBound) -> Vec<(String, u64)> {
    bound.parts().iter().map(|(name, time)| (name.clone(), time.ps() / 1000)).collect()
}

/// 1 us of computation, then an all_reduce that is on links for 30 us. 1 MB enters an NPU through two
/// links in 20 us, 100 ns after it was sent.
#[test]
fn a_step_is_bounded_by_its_path_and_its_links() {
    let (torus, dimensions) = (torus(&[4]), dimensions(&[4]));
    let programs = [program(&[(compute(ns(1000)), &[]), (all_reduce(), &[0])])];
    let step = step(&dimensions, &torus, &programs, &[]);
    let bound = step.bound().unwrap();
    assert_eq!(parts(&bound), named(&[("critical path", 21_100), ("links of d0", 31_000)]));
    assert_eq!((bound.by(), bound.at_least()), ("links of d0", ns(31_000)));

    let launched = BoundedStep { launch: ns(500), ..step }.bound().unwrap();
    assert_eq!(parts(&launched), named(&[("critical path", 21_600), ("links of d0", 31_500)]));
    // Without equal computation, only that is on the path.
    let differ = BoundedStep { is_alike: false, ..step }.bound().unwrap();
    assert_eq!(parts(&differ), named(&[("critical path", 1000), ("links of d0", 30_000)]));
}

/// Each of four NPUs sends 1.5 MB of an all_reduce, reads 0.75 MB, and 1 MB leaves and enters it.
#[test]
fn a_step_is_bounded_by_its_endpoint() {
    let (torus, dimensions) = (torus(&[4]), dimensions(&[4]));
    let programs = [program(&[(all_reduce(), &[])])];
    let step = step(&dimensions, &torus, &programs, &[]);
    let at = |text| TimePerByte::parse(text).unwrap();
    let (memory, per_sm, bus) = (at("10 GB/s"), at("1 GB/s"), at("50 GB/s"));
    let baseline = EndpointCosts::Baseline { memory, per_sm, sms: 3, bus };
    let bound = BoundedStep { endpoint: baseline, ..step }.bound().unwrap();
    let expected = [
        ("critical path", 20_100),
        ("links of d0", 30_000),
        ("bus out", 30_000),
        ("memory reads", 75_000),
        ("SMs", 250_000),
        ("bus in", 30_000),
    ];
    assert_eq!(parts(&bound), named(&expected));

    let bound =
        BoundedStep { endpoint: EndpointCosts::Ace { memory, bus }, ..step }.bound().unwrap();
    let expected = [
        ("critical path", 100_000),
        ("links of d0", 30_000),
        ("bus out", 20_000),
        ("memory reads", 100_000),
        ("bus in", 20_000),
        ("memory writes", 100_000),
    ];
    assert_eq!(parts(&bound), named(&expected));
    assert_eq!(bound.by(), "critical path");
}

/// Two stages along the outer ring: the second computes after the message of the first, which takes
/// 100 ns and 1 MB on all four links of an NPU.
#[test]
fn stages_wait_for_messages() {
    let (torus, dimensions) = (torus(&[4, 2]), dimensions(&[4, 2]));
    let message = |ahead| Message { rings: Rings(2), ahead, bytes: Bytes(MB), tag: 0 };
    let programs = [
        program(&[(compute(ns(1000)), &[]), (What::Send(message(1)), &[0])]),
        program(&[(What::Recv(message(1)), &[]), (compute(ns(1000)), &[0])]),
    ];
    let step = step(&dimensions, &torus, &programs, &[0, 0, 0, 0, 1, 1, 1, 1]);
    let bound = step.bound().unwrap();
    assert_eq!(bound.parts()[0], ("critical path".to_owned(), ns(12_100)));
    // Messages need no launch.
    assert_eq!(BoundedStep { launch: ns(1_000_000), ..step }.bound().unwrap(), bound);
}

#[test]
fn steps_that_do_not_fit_are_refused() {
    let (torus, dimensions) = (torus(&[4]), dimensions(&[2, 2]));
    let programs = [program(&[(all_reduce(), &[])])];
    let other = step(&dimensions, &torus, &programs, &[]).bound();
    assert!(matches!(other, Err(TrainingRunError::WrongSizes { npus: 4, .. })));
    let dimensions = self::dimensions(&[4]);
    let few = step(&dimensions, &torus, &programs, &[0, 0]).bound();
    assert!(matches!(few, Err(TrainingRunError::WrongPrograms { given: 2, npus: 4, .. })));
}
