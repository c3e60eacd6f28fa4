//! What a run over packets keeps in memory, counted by the allocator; alone in its process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use peak_alloc::PeakAlloc;
use tutti_engine::{Conditions, LocalCosts, Silent, Simulation};
use tutti_network::PipeliningPostal;
use tutti_network::packet::{Ends, PacketNetwork, PacketRouting, Packets};
use tutti_schedule::Layout;
use tutti_schedule::collective::Collective;
use tutti_topology::{LinkParameters, Routes};
use tutti_units::{Bytes, Time, TimePerByte};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Messages of a direct all_to_all, and the most bytes that its run took at once, by link and NPU.
fn measure(notation: &str) -> (u64, usize) {
    let link = LinkParameters::new(TimePerByte::new(100, 1).unwrap(), Time::from_ps(50_000));
    let topology = Arc::new(tutti_topology::build(notation, &[link]).unwrap());
    let things = topology.link_count() + topology.npus() as usize;
    let routes = Routes::shortest_path(topology);
    let ranks = routes.topology().npus();
    let schedule = tutti_schedule::algorithm::build("direct", Collective::AllToAll, ranks).unwrap();
    let layout = Layout::new(Bytes(u64::from(ranks) * 1000), 1, ranks).unwrap();
    let packets = Packets::new(Bytes(1000), Bytes(0), Bytes(4000)).unwrap();
    let nearly = PipeliningPostal {
        alpha_p: Time::from_ps(1),
        alpha_r: Time::ZERO,
        beta: TimePerByte::ZERO,
    }
    .checked()
    .unwrap();
    let (model, costs, conditions) = (&nearly, LocalCosts::FREE, Conditions::default());
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let mut fabric = PacketNetwork::new(PacketRouting::Routed(&routes), packets, Ends::FREE);
    let outcome = Simulation { schedule: &*schedule, layout, model, costs, conditions }
        .run_through(&mut fabric, &AtomicBool::new(false), &mut Silent)
        .unwrap();
    (outcome.messages, (ALLOCATED.peak_usage() - before) / things)
}

/// Three times the links and NPUs, and nine times the messages: less than twice the memory for each link and NPU.
/// It is 2,911 and 5,246 bytes: longer paths require more buffer classes. With an entry per message it would be
/// 5,522 and 24,507, with only a letter of 16 bytes per message at its receiver 3,458 and 8,473.
#[test]
fn memory_grows_with_links_and_ranks_not_with_messages() {
    let (few, small) = measure("torus:16x8");
    let (many, large) = measure("torus:24x16");
    assert!(many > 9 * few);
    assert!(large < 2 * small, "{small} bytes for each at {few} messages, {large} at {many}");
}
