//! The packet network: against contention-free routes, hand-computed cases with contention, and conservation.
//! `packets_fast_slow.rs` compares it with its reference model.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tutti_engine::{Conditions, EngineError, Routed, Silent, TimelineProbe, Waiting};
use tutti_network::packet::{Choice, Ends, LinkUse, PacketNetwork, PacketRouting, Packets};
use tutti_network::{BackgroundFlow, Model};
use tutti_schedule::collective::Collective;
use tutti_schedule::{ChunkRange, Explicit, Schedule, Shape, Slot, Step};
use tutti_tests::packets::{
    algorithms, at_once, instant, link, packets, routes, simulation, through,
    times_are_those_of_routes,
};
use tutti_tests::{MODELS, Shaken, model};
use tutti_topology::{Distances, Routes};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time, TimePerByte};

/// When each message arrived, in the order of the arguments.
fn arrivals(routes: &Routes, packets: Packets, size: u64, messages: &[(u32, u32)]) -> Vec<u64> {
    arrivals_by(PacketRouting::Routed(routes), packets, size, messages)
}

fn arrivals_by(
    routing: PacketRouting,
    packets: Packets,
    size: u64,
    messages: &[(u32, u32)],
) -> Vec<u64> {
    let schedule = at_once(routing.topology().npus(), messages);
    let model = instant();
    let run = simulation(&schedule, size, &model, Conditions::default());
    let mut probe = TimelineProbe::default();
    let mut fabric = PacketNetwork::new(routing, packets, Ends::FREE);
    run.run_through(&mut fabric, &AtomicBool::new(false), &mut probe).unwrap();
    let records = probe.into_timeline().messages;
    let arrival = |&(source, destination): &(u32, u32)| {
        let of_pair = |m: &&_| {
            let m: &tutti_engine::MessageRecord = m;
            (m.source.0, m.destination.0) == (source, destination)
        };
        // The model's own picosecond is taken off.
        records.iter().find(of_pair).unwrap().arrival.ps() - 1
    };
    messages.iter().map(arrival).collect()
}

/// Where no two messages share a link, every time is that of the routes alone, to the picosecond.
#[test]
fn without_contention_every_time_is_that_of_the_routes() {
    times_are_those_of_routes(&Shaken { seed: 3 }, |run, routes, model| {
        let (routing, ends) = (PacketRouting::Routed(routes), Ends::of(model));
        through(run, &mut PacketNetwork::new(routing, packets(64, 64), ends))
    });
}

/// LogGP's receiving port is a port like others: at the end of a ring's step all is as on the routes.
#[test]
fn without_contention_a_ring_under_loggp_takes_what_it_takes_on_the_routes() {
    for notation in ["ring:8", "switch:8", "fully_connected:8"] {
        let routes = routes(notation, &[link(40, 250)]);
        let model = model(&MODELS[5]);
        let included = model.serialization();
        let distance = Routed { routes: &routes, included };
        let alone = Conditions { disturbance: None, distance: Some(&distance) };
        let schedule = tutti_schedule::algorithm::build("ring", Collective::AllReduce, 8).unwrap();
        let expected = simulation(&*schedule, 4000, &model, alone).run().unwrap();
        let run = simulation(&*schedule, 4000, &model, Conditions::default());
        let mut fabric =
            PacketNetwork::new(PacketRouting::Routed(&routes), packets(64, 64), Ends::of(&model));
        assert_eq!(through(&run, &mut fabric), expected, "{notation}");
    }
}

/// Messages that come interleaved pass a receiver's port once: the last is there when all bytes are.
#[test]
fn interleaved_messages_pass_the_receivers_port_once() {
    let routes = routes("switch:5", &[link(100, 50)]);
    let gather = tutti_schedule::algorithm::build("direct", Collective::AllToAll, 5).unwrap();
    let time = |text| Time::parse(text).unwrap();
    let per_byte = TimePerByte::new(100, 1).unwrap();
    let zero = Time::ZERO;
    let loggp =
        tutti_network::LogGP { L: time("1 us"), o: zero, g: zero, G: per_byte }.checked().unwrap();
    let model = Model::LogGP(loggp);
    let run = simulation(&*gather, 500_000, &model, Conditions::default());
    let mut fabric =
        PacketNetwork::new(PacketRouting::Routed(&routes), packets(1000, 8000), Ends::of(&model));
    let outcome = through(&run, &mut fabric);
    // Four messages of 100,000 bytes to every rank, over links and ports of one rate; L and two links.
    let last = outcome.finish.iter().map(|time| time.ps()).max().unwrap();
    assert_eq!(last, 4 * 100_000 * 100 + 1_000_000 + 2 * 50_000);
}

/// Three links of 100, 400 and 200 ps/B: latencies add up, and the bytes take what the slowest takes.
#[test]
fn a_message_alone_takes_the_latencies_and_the_slowest_link() {
    let mut builder = tutti_topology::Builder::new("line", 2);
    let (a, b) = (builder.switch("a"), builder.switch("b"));
    builder.cable(tutti_units::ids::VertexId(0), a, link(100, 10));
    builder.cable(a, b, link(400, 20));
    builder.cable(b, tutti_units::ids::VertexId(1), link(200, 30));
    let routes = Routes::shortest_path(Arc::new(builder.build().unwrap()));
    for (size, packet) in [(1, 1), (1000, 1), (1000, 100), (1000, 333), (1000, 1000), (7, 4096)] {
        let times = arrivals(&routes, packets(packet, packet), size, &[(0, 1)]);
        assert_eq!(times, [60_000 + size * 400], "{size} B in packets of {packet} B");
    }
}

/// Two ranks send to a third: packets alternate on its link, so that both end within a packet of the
/// time that twice the bytes take.
#[test]
fn two_flows_on_one_link_share_it_evenly() {
    let routes = routes("switch:3", &[link(100, 50)]);
    let (size, packet) = (100_000, 1000);
    let times = arrivals(&routes, packets(packet, 8 * packet), size, &[(0, 2), (1, 2)]);
    let both = 100_000 + 2 * size * 100;
    assert_eq!(times.iter().max(), Some(&both));
    assert_eq!(times.iter().min(), Some(&(both - packet * 100)));
}

/// A flow that crosses one more hop than another gets no less of the link they share.
#[test]
fn a_flow_that_passes_through_shares_evenly_with_one_that_starts_here() {
    let routes = routes("ring:6", &[link(100, 50)]);
    let (size, packet) = (100_000, 1000);
    let times = arrivals(&routes, packets(packet, 8 * packet), size, &[(0, 2), (1, 2)]);
    let both = 2 * size * 100;
    assert!(times.iter().all(|&time| time > both - 4 * packet * 100), "{times:?} of {both}");
}

/// The messages of one rank follow one another over its only link: self-congestion, exactly.
#[test]
fn messages_of_one_rank_follow_one_another() {
    let routes = routes("switch:5", &[link(100, 50)]);
    let messages = [(0, 1), (0, 2), (0, 3), (0, 4)];
    let times = arrivals(&routes, packets(512, 4096), 10_000, &messages);
    assert_eq!(times, [1, 2, 3, 4].map(|k| 100_000 + k * 1_000_000));
}

/// A port serialises messages that would use several links in parallel.
#[test]
fn ports_limit_what_several_links_could_carry() {
    let routes = routes("fully_connected:3", &[link(100, 50)]);
    let rate = TimePerByte::new(100, 1).unwrap();
    let plain = packets(1000, 8000);
    let out = [(0, 1), (0, 2)];
    assert_eq!(arrivals(&routes, plain.clone(), 10_000, &out), [1_050_000, 1_050_000]);
    let injecting = plain.clone().with_injection(rate);
    assert_eq!(arrivals(&routes, injecting, 10_000, &out), [1_050_000, 2_050_000]);
    let ejecting = arrivals(&routes, plain.with_ejection(rate), 10_000, &[(0, 2), (1, 2)]);
    assert_eq!(ejecting.iter().max(), Some(&2_050_000));
}

/// Rank 0 sends to 3 through two switches and rank 1 to 2. With buffers of two packets the congestion at rank 3
/// spreads back and blocks the flow that shares only part of the path. With larger buffers it does not.
#[test]
fn a_jam_reaches_back_through_full_buffers() {
    let mut builder = tutti_topology::Builder::new("two switches", 5);
    let npu = tutti_units::ids::VertexId;
    let (near, far) = (builder.switch("near"), builder.switch("far"));
    for rank in [0, 1] {
        builder.cable(npu(rank), near, link(100, 0));
    }
    builder.cable(near, far, link(100, 0));
    builder.cable(far, npu(2), link(100, 0));
    builder.cable(far, npu(3), link(1000, 0));
    builder.cable(far, npu(4), link(100, 0));
    let routes = Routes::shortest_path(Arc::new(builder.build().unwrap()));
    let messages = [(0, 3), (1, 2)];
    let tight = arrivals(&routes, packets(1000, 2000), 100_000, &messages)[1];
    let roomy = arrivals(&routes, packets(1000, 1_000_000), 100_000, &messages)[1];
    assert!(roomy <= 2 * 100_000 * 100, "shares one link: {roomy}");
    assert!(tight > 2 * roomy, "held up by the jam: {tight} against {roomy}");
}

/// All to all round a ring with buffers of a single packet: the classic deadlock, which classes exclude.
#[test]
fn full_buffers_round_a_ring_do_not_lock() {
    let routes = routes("ring:9", &[link(100, 0)]);
    let messages: Vec<(u32, u32)> =
        (0..9).flat_map(|a| (0..9).filter(move |&b| b != a).map(move |b| (a, b))).collect();
    let times = arrivals(&routes, packets(100, 100), 1000, &messages);
    // Each direction of the ring carries 9 x (1 + 2 + 3 + 4) messages over 9 links.
    assert!(*times.iter().max().unwrap() >= 10 * 1000 * 100);
}

/// What each link carried is what the routes of all messages say, packet by packet and byte by byte; and
/// no link was busy for longer than its bytes take, nor than the run.
#[test]
fn every_link_carries_what_the_routes_say() {
    let header = 16;
    let packet = Packets::new(Bytes(256), Bytes(header), Bytes(2048)).unwrap();
    for (notation, links) in [("torus:4x3", 1), ("hierarchical:switch:4/ring:3", 2)] {
        let routes = routes(notation, &vec![link(130, 70); links]);
        for schedule in algorithms(12) {
            let model = instant();
            let run = simulation(&*schedule, 12_000, &model, Conditions::default());
            let routing = PacketRouting::Routed(&routes);
            let mut fabric = PacketNetwork::new(routing, packet.clone(), Ends::FREE);
            let mut probe = TimelineProbe::default();
            let stop = AtomicBool::new(false);
            let outcome = run.run_through(&mut fabric, &stop, &mut probe).unwrap();
            let mut expected = vec![LinkUse::default(); routes.topology().link_count()];
            for message in probe.into_timeline().messages {
                let cut = packet.of(message.bytes);
                for link in routes.path(message.source, message.destination).unwrap() {
                    expected[link.index()].packets += cut;
                    expected[link.index()].bytes += message.bytes.0 + cut * header;
                }
            }
            let name = &schedule.shape().name;
            for (found, expected_use) in fabric.link_use().zip(&mut expected) {
                assert!(
                    found.busy >= TimePerByte::new(130, 1).unwrap().of(Bytes(expected_use.bytes))
                );
                assert!(found.busy <= outcome.finish.iter().copied().max().unwrap());
                expected_use.busy = found.busy;
                assert_eq!(found, *expected_use, "{name} on {notation}");
            }
        }
    }
}

/// Two paths of two hops connect opposite corners of a square; packets use both.
#[test]
fn adaptive_packets_use_both_paths_of_a_square() {
    let routes = routes("mesh:2x2", &[link(100, 50)]);
    let distances = Distances::fewest_hops(Arc::clone(routes.topology()));
    let adaptive =
        PacketRouting::PerPacket { distances: &distances, choice: Choice::Adaptive, seed: 0 };
    let (size, packet) = (100_000, packets(1000, 8000));
    assert_eq!(arrivals(&routes, packet.clone(), size, &[(0, 3)]), [size * 100 + 100_000]);
    assert_eq!(arrivals_by(adaptive, packet, size, &[(0, 3)]), [size * 50 + 100_000]);
}

/// If each group of a dragonfly sends to the next, the only link between them is the bottleneck of all minimal
/// paths, and detours pay off. In an all-to-all they are slower, and UGAL takes few: over five orders of
/// the messages it takes at most 10 % longer than minimal routing.
#[test]
fn detours_pay_off_only_if_the_minimal_path_is_congested() {
    let topology = tutti_topology::build("dragonfly:p=2,a=4,h=2,g=9", &[link(100, 50)]).unwrap();
    let distances = Distances::one_global(Arc::new(topology)).unwrap();
    let neighbours: Vec<(u32, u32)> = (0..72).map(|rank| (rank, (rank + 8) % 72)).collect();
    // Each rank has a separate order; otherwise all would visit the groups together.
    let everywhere = |stride: u32| -> Vec<(u32, u32)> {
        let far = |rank: u32, nth| 1 + (nth * stride + rank * rank * 13) % 71;
        let of_rank = |rank| (0..71).map(move |nth| (rank, (rank + far(rank, nth)) % 72));
        (0..72).flat_map(of_rank).collect()
    };
    let last = |choice, messages: &[(u32, u32)]| {
        let routing = PacketRouting::PerPacket { distances: &distances, choice, seed: 5 };
        let times = arrivals_by(routing, packets(1000, 16_000), 40_000, messages);
        times.into_iter().max().unwrap()
    };
    let jammed = Choice::ALL.map(|choice| last(choice, &neighbours));
    assert!(jammed[0] > 2 * jammed[1] && jammed[0] > 2 * jammed[2], "{jammed:?}");
    let orders = [7, 11, 29, 31, 53].map(everywhere);
    let spread = Choice::ALL.map(|choice| orders.iter().map(|all| last(choice, all)).sum::<u64>());
    assert!(spread[1] > spread[0] && spread[1] > spread[2], "detours cost: {spread:?}");
    assert!(spread[2] <= spread[0] / 10 * 11, "UGAL takes few detours: {spread:?}");
}

/// Every routing delivers all packets on every family, and a second run is identical.
#[test]
fn every_routing_delivers_all_packets_reproducibly() {
    let families = [("torus:3x4", 1), ("hierarchical:ring:4/switch:3", 2), ("ring:12", 1)];
    for (notation, links) in families {
        let topology = tutti_topology::build(notation, &vec![link(130, 70); links]).unwrap();
        let distances = Distances::fewest_hops(Arc::new(topology));
        for choice in Choice::ALL {
            let routing = PacketRouting::PerPacket { distances: &distances, choice, seed: 11 };
            for schedule in algorithms(12) {
                let model = instant();
                let run = simulation(&*schedule, 6000, &model, Conditions::default());
                let mut fabrics =
                    [0, 1].map(|_| PacketNetwork::new(routing, packets(128, 128), Ends::FREE));
                let [first, second] = fabrics.each_mut().map(|fabric| through(&run, fabric));
                assert_eq!(first, second);
                assert!(fabrics[0].link_use().eq(fabrics[1].link_use()));
            }
        }
    }
}

/// Others send over the one link into rank 2, for as long as it takes: half of the link is left.
#[test]
fn traffic_of_others_takes_its_share_of_a_link() {
    let routes = routes("switch:3", &[link(100, 50)]);
    let schedule = at_once(3, &[(0, 2)]);
    let model = instant();
    let run = simulation(&schedule, 100_000, &model, Conditions::default());
    let flow = |count| BackgroundFlow {
        source: RankId(1),
        destination: RankId(2),
        bytes: Bytes(50_000),
        start: Time::ZERO,
        period: Time::from_ps(5_000_000),
        count,
    };
    let took = |count| {
        let fabric =
            PacketNetwork::new(PacketRouting::Routed(&routes), packets(1000, 8000), Ends::FREE);
        let outcome = through(&run, &mut fabric.with_background(&[flow(count)]));
        outcome.finish[2].ps() - 1
    };
    assert_eq!(took(0), 10_100_000);
    // 50,000 bytes of others, a picosecond ahead, alternate with ours, then we are alone.
    assert_eq!(took(1), 15_100_000 - 1);
    // A flow that never ends: ours is there when as much of theirs is, and the run is over.
    let endless = took(u64::MAX);
    assert!((20_000_000..=20_200_000).contains(&endless), "{endless}");
}

/// The packets in flight are bounded by buffers and posted messages, independent of message lengths.
#[test]
fn longer_messages_put_no_more_packets_in_flight() {
    let routes = routes("switch:8", &[link(100, 50)]);
    let schedule = tutti_schedule::algorithm::build("ring", Collective::AllReduce, 8).unwrap();
    let model = instant();
    let most = |size| {
        let run = simulation(&*schedule, size, &model, Conditions::default());
        let mut fabric =
            PacketNetwork::new(PacketRouting::Routed(&routes), packets(1000, 8000), Ends::FREE);
        through(&run, &mut fabric);
        fabric.peak_in_flight()
    };
    assert_eq!(most(8_000_000), most(800_000));
}

/// A message that waits behind others has no packets: of eight posted at once, the packets in flight are those on
/// the two links, in the buffer between them, and the next one.
#[test]
fn messages_that_wait_at_their_source_are_not_cut() {
    let routes = routes("switch:9", &[link(100, 0)]);
    let messages: Vec<(u32, u32)> = (1..9).map(|to| (0, to)).collect();
    let schedule = at_once(9, &messages);
    let model = instant();
    let run = simulation(&schedule, 1000, &model, Conditions::default());
    let mut fabric =
        PacketNetwork::new(PacketRouting::Routed(&routes), packets(1000, 1000), Ends::FREE);
    through(&run, &mut fabric);
    let most = fabric.peak_in_flight();
    assert_eq!(most.posted, 8);
    assert!(most.packets <= 4 && most.messages <= 4, "{most:?}");
}

/// Every rank sends `each` messages to others at once, and receives as many; generated lazily.
struct Burst {
    shape: Shape,
    each: u32,
}

impl Burst {
    fn new(ranks: u32, each: u32) -> Burst {
        let (name, collective) = ("burst".to_owned(), Collective::Barrier);
        let shape = Shape { name, collective, ranks, chunks: 1, slots: 2, result: Slot::DATA };
        Burst { shape, each }
    }
}

impl Schedule for Burst {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _: RankId) -> u32 {
        1
    }

    fn step(&self, rank: RankId, _: u32, out: &mut Step) {
        let (ranks, all) = (self.shape.ranks, ChunkRange::new(0, 1));
        for nth in 0..self.each {
            let far = 1 + nth % (ranks - 1);
            out.send(RankId((rank.0 + far) % ranks), Slot::DATA, all);
            out.recv(RankId((rank.0 + ranks - far) % ranks), Slot(1), all);
        }
    }
}

/// Only a few waiting messages per injection queue are stored: for 96,000 messages no more than for 9,600. An
/// observed run stores all of them, with the same result.
#[test]
fn messages_that_wait_at_their_source_need_no_entry_each() {
    let routes = routes("torus:4x4", &[link(100, 50)]);
    let distances = Distances::fewest_hops(Arc::clone(routes.topology()));
    let adaptive =
        PacketRouting::PerPacket { distances: &distances, choice: Choice::Ugal, seed: 3 };
    let plain = packets(1000, 8000);
    let injecting = plain.clone().with_injection(TimePerByte::new(30, 1).unwrap());
    let model = instant();
    for (routing, packets) in [(PacketRouting::Routed(&routes), plain), (adaptive, injecting)] {
        let most = |each| {
            let schedule = Burst::new(16, each);
            let run = simulation(&schedule, 1000, &model, Conditions::default());
            let [mut offered, mut given] =
                [0, 1].map(|_| PacketNetwork::new(routing, packets.clone(), Ends::FREE));
            let outcome = through(&run, &mut offered);
            let mut probe = TimelineProbe::default();
            let watched = run.run_through(&mut given, &AtomicBool::new(false), &mut probe).unwrap();
            assert_eq!(outcome, watched);
            assert!(offered.link_use().eq(given.link_use()));
            assert_eq!(given.peak_in_flight().posted, 16 * each as usize);
            offered.peak_in_flight().posted
        };
        let [few, many] = [600, 6000].map(most);
        assert_eq!(few, many);
        let lines = if let PacketRouting::Routed(_) = routing { 64 } else { 16 };
        assert!(many <= lines * 32 + 16, "{many}");
    }
}

/// A receiver that waits forever for one of three messages names its sender, observed or not.
#[test]
fn a_blocked_rank_names_the_rank_it_waits_for() {
    let routes = routes("switch:4", &[link(100, 50)]);
    let mut builder = Explicit::builder(Collective::Barrier, 4, 1);
    let all = ChunkRange::new(0, 1);
    for source in 0..2 {
        builder.send(RankId(source), RankId(3), Slot::DATA, all);
    }
    for source in 0..3 {
        builder.recv(RankId(3), RankId(source), Slot(source + 1), all);
    }
    let (schedule, model) = (builder.build().unwrap(), instant());
    let run = simulation(&schedule, 1000, &model, Conditions::default());
    let plain = packets(1000, 8000);
    let fabric = || PacketNetwork::new(PacketRouting::Routed(&routes), plain.clone(), Ends::FREE);
    let stop = AtomicBool::new(false);
    let unwatched = run.run_through(&mut fabric(), &stop, &mut Silent).unwrap_err();
    let mut probe = TimelineProbe::default();
    let watched = run.run_through(&mut fabric(), &stop, &mut probe).unwrap_err();
    let waiting = vec![Waiting { rank: RankId(3), step: 0, on: vec![RankId(2)] }];
    assert_eq!(unwatched, EngineError::Deadlock { waiting, stuck: 1, ranks: 4 });
    assert_eq!(watched, unwatched);
}
