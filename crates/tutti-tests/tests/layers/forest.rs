//! The fraction of the cut bound that forests reach with contention, in integer picoseconds.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tutti_engine::{Conditions, LocalCosts, Silent, Simulation};
use tutti_network::packet::{Ends, PacketNetwork, PacketRouting, Packets};
use tutti_network::{Model, PipeliningPostal};
use tutti_schedule::Layout;
use tutti_schedule::algorithm::{bound::by_links, build_on};
use tutti_schedule::collective::Collective;
use tutti_topology::{LinkParameters, Routes};
use tutti_units::{Bytes, Time, TimePerByte};

const ALL: [Collective; 3] =
    [Collective::AllGather, Collective::ReduceScatter, Collective::AllReduce];
/// Bytes of a packet.
const PACKET: u64 = 1 << 16;

/// Links of so many picoseconds per byte, a nanosecond long.
fn routes(notation: &str, rates: &[u64]) -> Routes {
    let link =
        |&ps: &u64| LinkParameters::new(TimePerByte::new(ps, 1).unwrap(), Time::from_ps(1000));
    let links: Vec<LinkParameters> = rates.iter().map(link).collect();
    Routes::shortest_path(Arc::new(tutti_topology::build(notation, &links).unwrap()))
}

/// When the last rank is done, where sending a message costs its sender `alpha`, and on how many bytes: what
/// `size` makes of the number of chunks.
fn took(
    notation: &str,
    collective: Collective,
    routes: &Routes,
    size: fn(u64) -> u64,
    alpha: Time,
) -> (u64, u64) {
    let schedule = build_on(notation, collective, routes.topology().npus(), routes);
    let schedule = schedule.unwrap().unwrap();
    let chunks = schedule.shape().chunks;
    let size = size(u64::from(chunks));
    let layout = Layout::new(Bytes(size), 1, chunks).unwrap();
    let model = PipeliningPostal { alpha_p: alpha, alpha_r: Time::ZERO, beta: TimePerByte::ZERO }
        .checked()
        .unwrap();
    let (model, conditions) = (Model::PipeliningPostal(model), Conditions::default());
    let run = Simulation {
        schedule: &*schedule,
        layout,
        model: &model,
        costs: LocalCosts::FREE,
        conditions,
    };
    let packets = Packets::new(Bytes(PACKET), Bytes(0), Bytes(8 * PACKET)).unwrap();
    let mut fabric = PacketNetwork::new(PacketRouting::Routed(routes), packets, Ends::FREE);
    let outcome = run.run_through(&mut fabric, &AtomicBool::new(false), &mut Silent).unwrap();
    (outcome.finish.into_iter().map(Time::ps).max().unwrap(), size)
}

/// Percent of the limit, with messages of eight packets and buffers for 8.
#[test]
fn large_payloads_come_close_to_the_limit_where_messages_meet() {
    for (notation, rates, percent) in [
        ("ring:8", &[20][..], 99),
        ("switch:8", &[20], 99),
        ("torus:4x4", &[20], 97),
        ("torus:2x3x4", &[20], 95),
        ("mesh:4x4", &[20], 97),
        ("hierarchical:switch:4/switch:4", &[20, 20], 99),
        ("fat_tree:k=2,n=4", &[20, 20, 20, 20], 99),
        ("dragonfly:p=2,a=4,h=2,g=3", &[20, 20, 20], 99),
        ("hyperx:s=3x3,t=2", &[20, 20, 20], 99),
    ] {
        let routes = routes(notation, rates);
        for collective in ALL {
            let (took, size) =
                took("forest", collective, &routes, |chunks| 8 * PACKET * chunks, Time::from_ps(1));
            let limit = by_links(collective, routes.topology().npus(), routes.topology());
            let limit = limit.of(Bytes(size)).ps();
            assert!(took >= limit, "{notation} {collective}: {took} ps, below the limit {limit}");
            let part = 100 * limit / took;
            assert!(part >= percent, "{notation} {collective}: {part} % of the limit");
        }
    }
}

/// Four kilobytes: what counts is how many messages follow one another.
#[test]
fn shallow_trees_are_faster_for_small_payloads_and_packed_ones_for_large() {
    let alpha = Time::from_ps(1_000_000);
    for notation in ["torus:4x4", "mesh:4x4", "ring:8", "torus:3x3x3"] {
        let routes = routes(notation, &[20]);
        for collective in ALL {
            let took = |name, size| took(name, collective, &routes, size, alpha).0;
            let [shallow, packed] =
                ["forest:depth=least", "forest"].map(|name| took(name, |_| 4096));
            assert!(shallow < packed, "{notation} {collective}: {shallow}, {packed} ps");
            let [shallow, packed] =
                ["forest:depth=least", "forest"].map(|name| took(name, |_| 1 << 28));
            assert!(packed < shallow, "{notation} {collective}: {packed}, {shallow} ps");
        }
    }
}
