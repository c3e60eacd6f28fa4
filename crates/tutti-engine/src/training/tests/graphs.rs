//! Schedules of any algorithm on flows and packets: conservation, bounds, and the torus of FIFO
//! links as the reference.

use std::sync::Arc;

use super::*;
use crate::training::{Chosen, Graph, Sharing};
use tutti_network::flow::FlowLevel;
use tutti_network::packet::Packets;
use tutti_schedule::algorithm::build;
use tutti_topology::{LinkParameters, Routes};

pub(super) fn routes(notation: &str, rate_of: &str, latency: u64) -> Arc<Routes> {
    let link = LinkParameters::new(rate(rate_of), Time::from_ps(latency));
    let topology = tutti_topology::build(notation, &[link]).unwrap();
    Arc::new(Routes::shortest_path(Arc::new(topology)))
}

pub(super) fn flows() -> Sharing {
    Sharing::Flows(FlowLevel::default())
}

/// `algorithm` on all NPUs of a graph.
pub(super) fn on_graph(
    routes: &Arc<Routes>,
    sharing: Sharing,
    (collective, algorithm): (Collective, &str),
    endpoint: Endpoint,
) -> TrainingFabric {
    let npus = routes.topology().npus();
    let chosen = Chosen {
        collective: collective.name(),
        rings: Rings(1),
        channels: vec![build(algorithm, collective, npus).unwrap()],
    };
    TrainingFabric {
        network: StepNetwork::Graph(Graph { routes: Arc::clone(routes), choosing: None, sharing }),
        sizes: vec![npus],
        algorithms: Algorithms { chosen: vec![chosen], ..Algorithms::default() },
        ..fabric(torus([2, 1, 1]), endpoint, Population::All)
    }
}

fn sent_by_all(outcome: &TrainingOutcome) -> u64 {
    outcome.npus.iter().map(sent).sum()
}

const ALGORITHMS: [&str; 5] =
    ["ring", "swing", "recursive_halving_doubling", "double_binary_tree", "direct:two_step"];

#[test]
fn every_network_carries_the_bytes_of_the_schedule() {
    let routes = routes("torus:4x4", "25 GB/s", 400_000);
    let shape = |name| build(name, Collective::AllReduce, 16).unwrap();
    for algorithm in ALGORITHMS {
        let schedule = shape(algorithm);
        let (mut chunks, mut step) = (0_u64, tutti_schedule::Step::new());
        for rank in (0..16).map(tutti_units::ids::RankId) {
            for at in 0..schedule.steps(rank) {
                step.clear();
                schedule.step(rank, at, &mut step);
                chunks += step.sends.iter().map(|send| u64::from(send.chunks.len())).sum::<u64>();
            }
        }
        let bytes = 16 << 10;
        let expected = chunks * bytes / u64::from(schedule.shape().chunks);
        for sharing in [flows(), Sharing::Packets(Packets::default())] {
            let of = (Collective::AllReduce, algorithm);
            let fabric = on_graph(&routes, sharing, of, baseline("450 GB/s", 80));
            let outcome = run(&fabric, &alone(Collective::AllReduce, bytes));
            assert_eq!(sent_by_all(&outcome), expected, "{algorithm}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A ring of flows is a ring of FIFO links, to the picosecond.
    #[test]
    fn flows_between_neighbours_are_fifo_links(
        nodes in 3_u32..9,
        which in 0_u8..4,
        collective in prop::sample::select(vec![
            Collective::AllReduce,
            Collective::ReduceScatter,
            Collective::AllGather,
        ]),
        bytes in 1_u64..300_000,
    ) {
        let ring = Ring { nodes, per_byte: rate("25 GB/s"), latency: Time::from_ps(401_606) };
        let torus = Torus::new(vec![ring]).unwrap();
        let endpoint = any_endpoint(&torus, which);
        let links = fabric(torus, endpoint, Population::All);
        let graph = routes(&format!("ring:{nodes}"), "25 GB/s", 401_606);
        let network = StepNetwork::Graph(Graph { routes: graph, choosing: None, sharing: flows() });
        let on_flows = TrainingFabric { network, ..links.clone() };
        let program = alone(collective, bytes);
        prop_assert_eq!(run(&links, &program).end, run(&on_flows, &program).end);
    }

    /// No run on any graph is below the limit.
    #[test]
    fn no_run_on_a_graph_is_below_the_limit(
        notation in prop::sample::select(vec!["torus:4x4", "fat_tree:k=4,n=2", "switch:16"]),
        algorithm in prop::sample::select(ALGORITHMS.to_vec()),
        which in 0_u8..2,
        bytes in 1_u64..100_000,
    ) {
        let of = (Collective::AllReduce, algorithm);
        let endpoint = if which == 0 { ideal() } else { baseline("128 GB/s", 2) };
        let fabric = on_graph(&routes(notation, "25 GB/s", 400_000), flows(), of, endpoint);
        let fabric = TrainingFabric { launch: Time::from_ps(6_600_000), ..fabric };
        let limit = fabric.limit(Transfer::new(Collective::AllReduce, Bytes(bytes))).unwrap();
        let end = run(&fabric, &alone(Collective::AllReduce, bytes)).end;
        prop_assert!(limit.time() <= end, "{} > {}", limit.time(), end);
    }
}

#[test]
fn a_launch_delays_a_collective() {
    let of = (Collective::AllReduce, "ring");
    let fabric = on_graph(&routes("switch:4", "25 GB/s", 400_000), flows(), of, ideal());
    let program = alone(Collective::AllReduce, 100_000);
    for detail in [Detail::Packets, Detail::Flows] {
        let without = TrainingFabric { detail, ..fabric.clone() };
        let launch = Time::from_ps(6_600_000);
        let with = TrainingFabric { launch, ..without.clone() };
        assert_eq!(run(&with, &program).end, launch + run(&without, &program).end);
    }
}

#[test]
fn invalid_groups_and_networks_are_refused() {
    let routes = routes("switch:6", "25 GB/s", 0);
    let all_reduce = (Collective::AllReduce, "ring");
    let fabric = on_graph(&routes, flows(), all_reduce, ideal());
    let program = alone(Collective::AllReduce, 600);
    let error = |fabric: TrainingFabric| {
        let programs = std::slice::from_ref(&program);
        let run =
            TrainingRun { programs, of: &[], unreserved: &[], fabric: &fabric, window: Time::ZERO };
        run.run().unwrap_err()
    };
    let one = TrainingFabric { population: Population::One, ..fabric.clone() };
    assert_eq!(error(one), TrainingRunError::NotSymmetric);
    let sizes = TrainingFabric { sizes: vec![4], ..fabric.clone() };
    assert_eq!(error(sizes), TrainingRunError::WrongSizes { sizes: vec![4], product: 4, npus: 6 });
    let mut other = fabric;
    other.algorithms.chosen[0].channels = vec![build("ring", Collective::AllReduce, 4).unwrap()];
    let name = "ring".to_owned();
    assert_eq!(error(other), TrainingRunError::WrongGroup { name, ranks: 4, group: 6 });
    let parted = self::routes("bypass:4x4:0=>3", "25 GB/s", 0);
    let parted = on_graph(&parted, flows(), all_reduce, ideal());
    assert!(matches!(error(parted), TrainingRunError::NoPath { .. }));
}
