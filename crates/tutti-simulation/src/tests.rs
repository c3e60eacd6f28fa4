//! What platforms and cases accept, and that they agree with the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use tutti_engine::{LocalCosts, Ranks};
use tutti_network::flow::FlowLevel;
use tutti_network::packet::{Choice, Packets};
use tutti_network::{BackgroundFlow, LinkLoad, Model};
use tutti_noc::smart::{Cutting, Settings, design};
use tutti_schedule::collective::Collective;
use tutti_topology::{LinkParameters, Routes, Topology};
use tutti_units::ids::RankId;
use tutti_units::refusal::Refusal;
use tutti_units::{Bytes, Time, TimePerByte};

use crate::{Case, Contention, MeshFlits, Payload, Platform, Routing, SimulationError};

const PAYLOAD: Payload = Payload { size: Bytes(4096), element: 4 };

fn model() -> Model {
    let parameters = [("L", "1 us"), ("o", "200 ns"), ("g", "200 ns"), ("G", "100 GB/s")];
    tutti_network::build("loggp", &parameters).unwrap()
}

fn torus() -> Arc<Topology> {
    let rate = TimePerByte::parse("50 GB/s").unwrap();
    let link = LinkParameters { rate, latency: Time::from_ps(500_000), length: None };
    Arc::new(tutti_topology::build("torus:4x4", &[link]).unwrap())
}

fn fixed() -> Routing {
    Routing::fixed(Routes::shortest_path(torus()))
}

fn flows(parameters: &[(&str, &str)]) -> Contention {
    Contention::Flow(FlowLevel::from_texts(parameters.iter().copied()).unwrap())
}

fn packets() -> Contention {
    Contention::Packets(Packets::new(Bytes(1024), Bytes(0), Bytes(4096)).unwrap())
}

fn mesh() -> Contention {
    let design = design("sfo_greedy").unwrap();
    let settings = Settings { reducer: true, ..design.settings(4, 4) };
    let cutting = Cutting { cycle: Time::from_ps(1000), payload: Bytes(16), packet: 1, class: 0 };
    Contention::Mesh(Box::new(MeshFlits::new(design, settings, cutting).unwrap()))
}

fn platform(
    routing: Option<Routing>,
    contention: Contention,
) -> Result<Arc<Platform>, SimulationError> {
    Platform::new(model(), LocalCosts::FREE, routing, contention).map(Arc::new)
}

fn ring(ranks: u32, platform: &Arc<Platform>) -> Result<Case, SimulationError> {
    Case::of_algorithm("ring", Collective::AllReduce, ranks, Arc::clone(platform), PAYLOAD)
}

#[test]
fn a_platform_rejects_contention_without_its_topology() {
    let refused = |routing, contention| platform(routing, contention).unwrap_err();
    let per_packet = |choice| Some(Routing::per_packet(&torus(), choice).unwrap());
    let cases = [
        (refused(None, flows(&[])), "flows but no topology"),
        (refused(None, packets()), "packets but no topology"),
        (refused(Some(fixed()), mesh()), "both a mesh and another network"),
        (refused(per_packet(Choice::Valiant), flows(&[])), "`valiant` depends on queues"),
        (refused(per_packet(Choice::Adaptive), Contention::Free), "is per packet"),
        (
            refused(per_packet(Choice::Adaptive), flows(&[("multicast", "true")])),
            "several routes per pair of ranks",
        ),
        (refused(Some(fixed()), flows(&[("reduce", "spine")])), "has no switch `spine`"),
    ];
    for (error, part) in cases {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn a_case_rejects_ranks_and_traffic_that_its_platform_lacks() {
    let free = platform(None, Contention::Free).unwrap();
    let on_mesh = platform(None, mesh()).unwrap();
    let contended = platform(Some(fixed()), flows(&[])).unwrap();
    let too_many = ring(17, &on_mesh).err().unwrap();
    assert_eq!(too_many, SimulationError::TooFewNodes { ranks: 17, nodes: 16 });
    assert!(matches!(ring(17, &contended), Err(SimulationError::Topology(_))));

    let load = Arc::new(LinkLoad::new(fixed().routes(), &[0.5], Bytes(1024)).unwrap());
    let refused = ring(4, &free).unwrap().with_load(load).err().unwrap();
    assert_eq!(refused, SimulationError::LoadWithoutTopology);

    let flow = BackgroundFlow {
        source: RankId(0),
        destination: RankId(20),
        bytes: Bytes(1),
        start: Time::ZERO,
        period: Time::ZERO,
        count: 1,
    };
    let refused = ring(4, &free).unwrap().with_flows(vec![flow]).err().unwrap();
    assert_eq!(refused, SimulationError::NothingSharesFlows);
    let beyond = ring(4, &contended).unwrap().with_flows(vec![flow]).err().unwrap();
    assert_eq!(beyond.kind(), ("TopologyError", "unknown_rank"));

    let slow = Ranks { speeds: vec![1.0, 0.0], ..Ranks::default() };
    let refused = ring(4, &free).unwrap().with_conditions(slow).err().unwrap();
    assert_eq!(refused, SimulationError::Speed { rank: 1, speed: 0.0 });
}

#[test]
fn a_transparent_error_has_class_kind_and_fields_of_its_source() {
    let free = platform(None, Contention::Free).unwrap();
    let error = Case::of_algorithm("rings", Collective::AllReduce, 4, free, PAYLOAD).err().unwrap();
    let SimulationError::Algorithm(source) = &error else { panic!("{error}") };
    assert_eq!(error.kind(), source.kind());
    assert_eq!(error.fields(), source.fields());
    assert!(!SimulationError::KINDS.iter().any(|(_, kind)| *kind == "algorithm"));
}

#[test]
fn every_contention_has_a_time_above_the_bound_and_a_record_with_the_same_time() {
    let platforms = [
        platform(None, Contention::Free),
        platform(Some(fixed()), Contention::Free),
        platform(Some(fixed()), flows(&[])),
        platform(Some(fixed()), packets()),
        platform(None, mesh()),
    ];
    for platform in platforms.map(Result::unwrap) {
        let case = ring(8, &platform).unwrap();
        let time = case.run().unwrap().completion_time();
        assert!(case.bound().at_least() <= time, "{platform:?}");
        let recorded = case.run_recorded().unwrap();
        assert_eq!(recorded.completion_time(), time, "{platform:?}");
        assert!(recorded.timeline.is_some());
    }
}

#[test]
fn only_a_quiet_flat_case_of_the_registry_has_a_closed_form() {
    let free = platform(None, Contention::Free).unwrap();
    let case = ring(8, &free).unwrap();
    let time = case.run().unwrap().completion_time();
    assert_eq!(case.closed_form().unwrap(), Some(time));

    let unnamed = Case::new(Arc::clone(&case.schedule), free, PAYLOAD).unwrap();
    let late = Ranks { arrivals: [Time::from_ps(1)].into(), ..Ranks::default() };
    let routed = platform(Some(fixed()), Contention::Free).unwrap();
    let others = [unnamed, case.with_conditions(late).unwrap(), ring(8, &routed).unwrap()];
    assert!(others.iter().all(|case| case.closed_form().unwrap().is_none()));
}

#[test]
fn a_run_ends_early_only_if_it_exceeds_the_latest_time() {
    let stop = AtomicBool::new(false);
    for (routing, contention) in
        [(None, Contention::Free), (Some(fixed()), packets()), (Some(fixed()), flows(&[]))]
    {
        let case = ring(16, &platform(routing, contention).unwrap()).unwrap();
        let time = case.run().unwrap().completion_time();
        let before = |latest: u64| case.run_before(&AtomicU64::new(latest), &stop).unwrap();
        assert_eq!(before(time.ps()).map(|run| run.completion_time()), Some(time));
        assert!(before(time.ps() - 1).is_none());
    }
}

/// Platforms whose messages share links, on a model.
fn shared(model: Model, topology: &str, ports: &[(&str, &str)]) -> Vec<Arc<Platform>> {
    let rate = TimePerByte::parse("10 GB/s").unwrap();
    let link = LinkParameters { rate, latency: Time::from_ps(700_000), length: None };
    let graph = Arc::new(tutti_topology::build(topology, &[link]).unwrap());
    let routing = || Some(Routing::fixed(Routes::shortest_path(Arc::clone(&graph))));
    let costs = LocalCosts { launch: Time::from_ps(5_300_000), ..LocalCosts::FREE };
    let on = |contention| Platform::new(model, costs, routing(), contention).map(Arc::new).unwrap();
    vec![on(flows(ports)), on(packets())]
}

#[test]
fn no_run_is_shorter_than_the_bound_of_its_schedule() {
    let models = [
        ("postal", vec![("alpha", "1.31 us"), ("beta", "0.37 ns/B")]),
        ("pipelining_postal", vec![("alpha_p", "400 ns"), ("alpha_r", "100 ns")]),
        ("logp", vec![("L", "2.5 us"), ("o", "1.5 us"), ("g", "1.9 us")]),
        ("logfp", vec![("L", "2.5 us"), ("o", "0.3 us"), ("g", "1.7 us"), ("f", "3")]),
        ("loggp", vec![("L", "2.5 us"), ("o", "0.7 us"), ("g", "1.1 us"), ("G", "6 ns/B")]),
    ];
    let mut reached = 0;
    for (name, parameters) in models {
        let model = tutti_network::build(name, &parameters).unwrap();
        for topology in ["torus:4x4", "fat_tree:m=4x3,w=1x2", "hierarchical:switch:4/ring:4"] {
            for platform in shared(model, topology, &[("injection", "8 GB/s")]) {
                reached += tutti_schedule::algorithm::REGISTRY
                    .iter()
                    .map(|entry| bounded(entry.name, &platform))
                    .sum::<u32>();
            }
        }
    }
    assert!(reached > 100, "only {reached} runs take the time of the bound");
}

/// Checks an algorithm on 5 and 12 ranks; returns how many runs take the time of their bound.
fn bounded(algorithm: &str, platform: &Arc<Platform>) -> u32 {
    let mut reached = 0;
    for collective in [Collective::AllReduce, Collective::AllGather, Collective::AllToAll] {
        for (ranks, size) in [(5, 40), (12, 48_000)] {
            let payload = Payload { size: Bytes(size), element: 4 };
            let platform = Arc::clone(platform);
            let case = Case::of_algorithm(algorithm, collective, ranks, platform, payload);
            let Ok(case) = case else { continue };
            let bound = case.schedule_bound(Time::MAX, &AtomicBool::new(false)).unwrap().unwrap();
            let took = case.run().unwrap().completion_time();
            let early = case.schedule_bound(Time::from_ps(1), &AtomicBool::new(false));
            assert!(
                early.unwrap().unwrap() > Time::from_ps(1) && bound <= took,
                "{algorithm} on {ranks}, {size} B: {took} is below {bound}"
            );
            reached += u32::from(bound == took);
        }
    }
    reached
}
