//! Scheduling anomalies: runs that become faster when a component becomes slower. Pinned where they are
//! genuine (`docs/models/README.md`, "Scheduling anomalies"), and excluded where nothing queues.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use tutti_engine::{Conditions, LocalCosts, MessageRecord, Simulation, TimelineProbe};
use tutti_network::packet::{Ends, PacketNetwork, PacketRouting};
use tutti_network::{Carrier, LogGP, Model, PipeliningPostal, Postal, Uncontended};
use tutti_noc::{ChannelParameters, FlitCarrier, Network, Packing, Settings, Wiring, routing};
use tutti_schedule::algorithm::build;
use tutti_schedule::collective::Collective;
use tutti_schedule::{ChunkRange, Explicit, Layout, Schedule, Slot};
use tutti_tests::packets::{link, packets, routes};
use tutti_topology::LinkParameters;
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time, TimePerByte};

fn ps(ps: u64) -> Time {
    Time::from_ps(ps)
}

fn postal(alpha: u64) -> Model {
    Model::Postal(Postal { alpha: ps(alpha), beta: TimePerByte::ZERO }.checked().unwrap())
}

/// When all was done, and every message.
fn run<C: Carrier>(
    schedule: &dyn Schedule,
    size: u64,
    model: &Model,
    carrier: &mut C,
) -> (u64, Vec<MessageRecord>) {
    let layout = Layout::new(Bytes(size), 1, schedule.shape().chunks).unwrap();
    let (costs, conditions) = (LocalCosts::FREE, Conditions::default());
    let run = Simulation { schedule, layout, model, costs, conditions };
    let mut probe = TimelineProbe::default();
    let outcome = run.run_through(carrier, &AtomicBool::new(false), &mut probe).unwrap();
    (outcome.completion_time().ps(), probe.into_timeline().messages)
}

fn arrival(messages: &[MessageRecord], source: u32, destination: u32) -> u64 {
    let of_pair = |m: &&MessageRecord| (m.source.0, m.destination.0) == (source, destination);
    messages.iter().find(of_pair).unwrap().arrival.ps()
}

/// Ranks 0 and 1 send to rank 2, which passes on to rank 3 what rank 1 sent. Rank 0 sends to rank 3 before, and
/// rank 1 computes for `busy`, so that a larger alpha holds up rank 0 twice and rank 1 once.
fn relay(busy: u64) -> Explicit {
    let mut builder = Explicit::builder(Collective::Barrier, 4, 1);
    let all = ChunkRange::new(0, 1);
    let [zero, one, two, three] = [0, 1, 2, 3].map(RankId);
    builder.send(zero, three, Slot::DATA, all);
    builder.send(zero, two, Slot::DATA, all);
    builder.compute(one, ps(busy));
    builder.end_step(one);
    builder.send(one, two, Slot::DATA, all);
    builder.recv(two, one, Slot(1), all);
    builder.end_step(two);
    builder.send(two, three, Slot::DATA, all);
    builder.recv(two, zero, Slot(2), all);
    builder.recv(three, zero, Slot(1), all);
    builder.end_step(three);
    builder.recv(three, two, Slot(2), all);
    builder.build().unwrap()
}

/// Links of 100 ps/B and 50 ns from each rank to a switch and back; a message takes 100 ns on each.
///
/// alpha = 300 ns: rank 0's message enters at 600 and has the link to rank 2 from 650 to 750; rank 1's is at the switch
/// at 660, has the link from 750 to 850 and is there at 900. It enters again at 1200, and is with rank 3 200 later.
/// alpha = 315 ns: rank 1's enters at 625, 5 before rank 0's, and is there at 825; it enters again at 1140.
#[test]
fn packets_that_come_later_to_a_link_let_those_pass_that_more_depends_on() {
    let routes = routes("switch:4", &[link(100, 50)]);
    let schedule = relay(310_000);
    let [(before, first), (after, second)] = [300_000, 315_000].map(|alpha| {
        let model = postal(alpha);
        let mut fabric = PacketNetwork::new(
            PacketRouting::Routed(&routes),
            packets(1000, 8000),
            Ends::of(&model),
        );
        run(&schedule, 1000, &model, &mut fabric)
    });
    assert_eq!((arrival(&first, 0, 2), arrival(&first, 1, 2)), (800_000, 900_000));
    assert_eq!((arrival(&second, 0, 2), arrival(&second, 1, 2)), (925_000, 825_000));
    assert_eq!((before, after), (1_400_000, 1_340_000));
}

fn over_flits(
    schedule: &dyn Schedule,
    notation: &str,
    size: u64,
    model: &Model,
) -> (u64, Vec<MessageRecord>) {
    over_flits_of(schedule, (notation, 1000), size, model)
}

fn over_flits_of(
    schedule: &dyn Schedule,
    (notation, flit_ps): (&str, u64),
    size: u64,
    model: &Model,
) -> (u64, Vec<MessageRecord>) {
    let (cycle, flit) = (ps(1000), 10);
    let rate = TimePerByte::new(flit_ps, flit).unwrap();
    let link = LinkParameters::new(rate, ps(50_000));
    let topology = Arc::new(tutti_topology::build(notation, &[link]).unwrap());
    let port = ChannelParameters { latency: 1, credit_latency: 1, flit_time: cycle, length: None };
    let wiring = Arc::new(Wiring::of(topology, cycle, Bytes(flit), port).unwrap());
    let routing = routing::parse("shortest_path", &wiring).unwrap();
    let settings = Settings::new(1, 128);
    let network = Network::new(&wiring, &settings, routing).unwrap();
    let packing = Packing::new(Bytes(flit), 100, 0).unwrap();
    let mut carrier = FlitCarrier::new(network, wiring, &settings, packing, Ends::of(model));
    run(schedule, size, model, &mut carrier)
}

/// The same in flits: with one VC, the packet that arrives first at the link occupies it. A message alone takes 203
/// cycles: 100 flits over two links of 50 cycles and a router of 3. With alpha = 300 ns, rank 0's message arrives at
/// 803, rank 1's 101 cycles later, and the one to rank 3 at 904 + 300 + 203. With alpha = 315 ns, rank 1's message
/// arrives at 625 + 203 = 828, and the one to rank 3 at 828 + 315 + 203.
#[test]
fn flits_that_come_later_to_a_link_let_those_pass_that_more_depends_on() {
    let schedule = relay(310_000);
    let [(before, first), (after, second)] =
        [300_000, 315_000].map(|alpha| over_flits(&schedule, "switch:4", 1000, &postal(alpha)));
    assert!(arrival(&first, 0, 2) < arrival(&first, 1, 2));
    assert!(arrival(&second, 0, 2) > arrival(&second, 1, 2));
    assert_eq!((before, after), (1_407_000, 1_346_000));
}

/// Rank 1 sends a long message to rank 0, and rank 2 a short one after it has computed for `busy`.
fn long_and_short(busy: u64) -> Explicit {
    let mut builder = Explicit::builder(Collective::Barrier, 3, 1001);
    let [zero, one, two] = [0, 1, 2].map(RankId);
    builder.send(one, zero, Slot::DATA, ChunkRange::new(0, 1001));
    builder.compute(two, ps(busy));
    builder.end_step(two);
    builder.send(two, zero, Slot::DATA, ChunkRange::new(0, 1));
    builder.recv(zero, one, Slot(1), ChunkRange::new(0, 1001));
    builder.recv(zero, two, Slot(2), ChunkRange::new(0, 1));
    builder.build().unwrap()
}

/// `LogGP`, L = 1000, o = 100, G = 1 ns/B, in ns: the long message arrives at 100 + 1000 + 1000 = 2100.
///
/// A short message that arrives at 2099 is received first. The long one is received g + l = 1000 later, from 3099 to
/// 3199. A short message that arrives at 2101 is received after the long one, from 2200 to 2300.
#[test]
fn loggp_receives_in_order_of_last_bytes() {
    let gap_per_byte = TimePerByte::new(1000, 1).unwrap();
    let loggp = LogGP { L: ps(1_000_000), o: ps(100_000), g: Time::ZERO, G: gap_per_byte }
        .checked()
        .unwrap();
    let took = |busy| run(&long_and_short(busy), 1001, &Model::LogGP(loggp), &mut Uncontended).0;
    assert_eq!((took(999_000), took(1_001_000)), (3_199_000, 2_300_000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Round a ring, neighbour to neighbour, no two messages meet on a link: over packets and over flits, no schedule
    /// is faster for more latency, overhead, or time per byte, or for slower links.
    #[test]
    fn what_shares_nothing_is_never_faster_for_more(
        numbers in (1_u64..50_000, 1_u64..50_000, 1_u64..300),
        (size, flit_ps) in (1_u64..3000, 1000_u64..4000),
        which in 0_usize..5,
        more in 1_u64..40_000,
        collective in prop::sample::select(vec![
            Collective::AllReduce,
            Collective::ReduceScatter,
            Collective::AllGather,
        ]),
    ) {
        let schedule = build("ring", collective, 4).unwrap();
        let all = |(alpha_p, alpha_r, rate): (u64, u64, u64), size, flit_ps: u64| {
            let beta = TimePerByte::new(rate, 1).unwrap();
            let model = PipeliningPostal { alpha_p: ps(alpha_p), alpha_r: ps(alpha_r), beta }.checked().unwrap();
            let model = Model::PipeliningPostal(model);
            let routes = routes("ring:4", &[link(flit_ps / 10, 50)]);
            let mut fabric = PacketNetwork::new(PacketRouting::Routed(&routes), packets(256, 2048), Ends::of(&model));
            let over_packets = run(&*schedule, 4 * size, &model, &mut fabric).0;
            [over_packets, over_flits_of(&*schedule, ("ring:4", flit_ps), 4 * size, &model).0]
        };
        let (mut larger, mut longer, mut slower) = (numbers, size, flit_ps);
        match which {
            0 => larger.0 += more,
            1 => larger.1 += more,
            2 => larger.2 += more / 100,
            3 => longer += more / 10,
            _ => slower += more,
        }
        let (before, after) = (all(numbers, size, flit_ps), all(larger, longer, slower));
        prop_assert!(before[0] <= after[0], "packets: {} > {}", before[0], after[0]);
        prop_assert!(before[1] <= after[1], "flits: {} > {}", before[1], after[1]);
    }
}
