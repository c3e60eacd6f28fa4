//! In-network collectives on meshes of several designs, compared with schedules of unicasts on the same mesh.

use std::sync::atomic::AtomicBool;

use tutti_analysis::bound::{GraphBound, Ports, Query, in_network};
use tutti_engine::{
    Activity, Conditions, LocalCosts, Outcome, Probe, Silent, Simulation, Timeline, TimelineProbe,
};
use tutti_network::packet::Ends;
use tutti_network::{LogGP, Model, Serialization};
use tutti_noc::smart::{
    Counts, Cutting, FabricCarrier, FanIn, FanOut, Mesh, Priority, Settings, design,
};
use tutti_schedule::Layout;
use tutti_schedule::algorithm::build;
use tutti_schedule::collective::Collective;
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time, TimePerByte};

const FLIT: u64 = 16;

/// The settings of a design on a mesh of this many columns and rows, whose routers can add.
fn mesh(name: &str, side: u32) -> Settings {
    Settings { reducer: true, ..design(name).unwrap().settings(side, side) }
}

struct Ran {
    outcome: Outcome,
    counts: Counts,
    beyond: u64,
}

impl Ran {
    /// Cycles until the last rank completes its last op.
    fn cycles(&self) -> u64 {
        self.outcome.completion_time().ps() / 1000
    }
}

/// Runs a schedule over a mesh with cycles of a nanosecond and flits of 16 B; its ends cost a picosecond per byte, since
/// a model must cost something, and folding nothing.
fn run(notation: &str, collective: Collective, flits: u64, settings: &Settings) -> Ran {
    run_seen_by(&mut Silent, Time::ZERO, (notation, collective, flits), settings)
}

/// The same with a record, and ends that take 5 ns for a message sent, and for one taken.
fn recorded(
    notation: &str,
    collective: Collective,
    flits: u64,
    settings: &Settings,
) -> (Ran, Timeline) {
    let mut probe = TimelineProbe::default();
    let overhead = Time::from_ps(5000);
    let ran = run_seen_by(&mut probe, overhead, (notation, collective, flits), settings);
    (ran, probe.into_timeline())
}

fn run_seen_by<P: Probe>(
    probe: &mut P,
    overhead: Time,
    (notation, collective, flits): (&str, Collective, u64),
    settings: &Settings,
) -> Ran {
    let schedule = build(notation, collective, settings.nodes()).unwrap();
    let model =
        LogGP { L: Time::ZERO, o: overhead, g: Time::ZERO, G: TimePerByte::new(1, 1).unwrap() }
            .checked();
    let model = model.unwrap();
    let simulation = Simulation {
        schedule: &*schedule,
        layout: Layout::of_schedule(&*schedule, Bytes(flits * FLIT), 1).unwrap(),
        model: &model,
        costs: LocalCosts::FREE,
        conditions: Conditions::default(),
    };
    let cutting = Cutting { cycle: Time::from_ps(1000), payload: Bytes(FLIT), packet: 1, class: 0 };
    let fabric = Mesh::new(settings).unwrap();
    let ends = Ends::of(&Model::LogGP(model));
    let mut carrier = FabricCarrier::new(Box::new(fabric), settings, cutting, ends).unwrap();
    let stop = AtomicBool::new(false);
    let outcome = simulation.run_through(&mut carrier, &stop, probe);
    let outcome = outcome.unwrap_or_else(|error| panic!("{notation}: {error}"));
    Ran { outcome, counts: *carrier.counts(), beyond: carrier.beyond() }
}

const REDUCE: Collective = Collective::Reduce { root: RankId(0) };
const BROADCAST: Collective = Collective::Broadcast { root: RankId(0) };

/// Two dimensions of two cycles per direction, and a cycle between the arrival of the sum and its return.
#[test]
fn a_flit_across_a_dimension_in_a_cycle_takes_four_cycles_per_direction() {
    let settings = Settings { fan_in: FanIn::Complete, ..mesh("sfo_greedy", 8) };
    assert_eq!(run("in_network", REDUCE, 1, &settings).cycles(), 4);
    assert_eq!(run("in_network", BROADCAST, 1, &settings).cycles(), 4);
    assert_eq!(run("in_network", Collective::Barrier, 0, &settings).cycles(), 4 + 1 + 4);
    for root in [0, 7, 27, 63] {
        let notation = format!("in_network:{root}");
        let ran = run(&notation, Collective::AllReduce, 1, &settings);
        assert_eq!(ran.cycles(), 4 + 1 + 4, "{notation}");
        // A tree per direction: every other node has one link on it.
        let Counts { injected, ejected, link_hops, merged, .. } = ran.counts;
        assert_eq!((injected, ejected, link_hops, merged), (64, 64, 126, 62), "{notation}");
    }
}

/// Two cycles a hop; the farthest node is 14 hops from a corner, and 8 from (3, 3).
#[test]
fn a_flit_with_one_hop_per_cycle_takes_two_for_each() {
    let settings = Settings { fan_in: FanIn::Complete, ..mesh("baseline_collective", 8) };
    for (root, hops) in [(0, 14), (27, 8)] {
        let ran = run(&format!("in_network:{root}"), Collective::AllReduce, 1, &settings);
        assert_eq!(ran.cycles(), 2 * hops + 1 + 2 * hops);
    }
}

/// Slots of broadcasts are cycles 0 and 1 of six. Answers wait for cycle 2 to cross, turn in 3, land in 4, and win
/// the NIC only in 7, for in 5 and 6 flits that win it would cross in a slot. The multicast is injected in 8,
/// goes along its edge in 12, turns in 13, and its copies win their NICs in 14.
#[test]
fn slots_of_broadcasts_are_waited_for() {
    let settings = mesh("sfo_complete", 8);
    assert_eq!(run("in_network", REDUCE, 1, &settings).cycles(), 7);
    assert_eq!(run("in_network", Collective::AllReduce, 1, &settings).cycles(), 14);
}

/// Every NIC injects its part of each flit, and receives the result: F flits take at least F cycles, independent
/// of where they are added and forked.
#[test]
fn no_all_reduce_is_faster_than_its_flits_pass_a_port() {
    let model = Model::LogGP(
        LogGP { L: Time::ZERO, o: Time::ZERO, g: Time::ZERO, G: TimePerByte::new(1, 1).unwrap() }
            .checked()
            .unwrap(),
    );
    let port = TimePerByte::new(1000, FLIT).unwrap();
    let ports = Ports { injection: port, ejection: Serialization::of_every_byte(port) };
    for name in ["baseline_collective", "sfo_greedy", "sfo_greedy_pvt", "sfo_complete"] {
        let settings = mesh(name, 4);
        let designs = [
            Settings { fan_in: FanIn::Complete, ..settings.clone() },
            Settings { fan_in: FanIn::Greedy, priority: Priority::Bypass, ..settings.clone() },
            Settings { fan_out: FanOut::Unicasts, fan_in: FanIn::Unicasts, ..settings },
        ];
        for settings in designs {
            for notation in ["in_network", "in_network:0+3+12+15,segments=4", "in_network:all"] {
                for flits in [16, 96] {
                    let ran = run(notation, Collective::AllReduce, flits, &settings);
                    assert!(ran.cycles() >= flits, "{name}, {notation}: {} cycles", ran.cycles());
                    let size = Bytes(flits * FLIT);
                    let collective = Collective::AllReduce;
                    let query = Query { collective, ranks: 16, size, element: 1, exchange: None };
                    let bound =
                        in_network(&query, &model, GraphBound::NONE.with_ports(ports)).at_least();
                    assert!(bound <= ran.outcome.completion_time() && bound.ps() >= flits * 1000);
                }
            }
        }
    }
}

/// With tables every flit of every shard is one tree per direction, for any number in flight up to the number of
/// entries.
#[test]
fn each_flit_is_one_tree_per_direction() {
    let settings = Settings { fan_in: FanIn::Complete, ..mesh("sfo_greedy", 8) };
    for notation in ["in_network", "in_network:0+7+56+63,segments=4", "in_network:all"] {
        let ran = run(notation, Collective::AllReduce, 128, &settings);
        let Counts { injected, ejected, link_hops, .. } = ran.counts;
        assert_eq!((injected, ejected, link_hops, ran.beyond), (128 * 64, 128 * 64, 128 * 126, 0));
    }
    let few = Settings { columns: 4, rows: 4, art_entries: 16, ..settings };
    let many = Settings { art_entries: 1024, ..few.clone() };
    let [few, many] = [few, many].map(|settings| {
        let ran = run("in_network", Collective::AllReduce, 256, &settings);
        assert_eq!(ran.counts.link_hops, 256 * 30);
        ran.cycles()
    });
    assert!(many <= few, "{many} cycles with all entries, {few} with 16");
}

/// Ranks are at different segments simultaneously, with more flits at each than there are entries. If flits of later
/// segments started before those of earlier ones, they would block each other until some bypass the tables.
#[test]
fn segments_do_not_wait_for_each_other() {
    let settings = Settings { fan_in: FanIn::Complete, ..mesh("baseline_collective", 8) };
    let ran = run("in_network:0+7+56+63,segments=8", Collective::AllReduce, 4096, &settings);
    assert_eq!((ran.counts.link_hops, ran.beyond), (4096 * 126, 0));
    assert!(ran.cycles() < 2 * 4096, "{}", ran.cycles());
}

/// The same messages on the same mesh: a ring's go to the next rank, whatever routers could do.
#[test]
fn schedules_of_ordinary_messages_are_unicasts() {
    let settings = mesh("sfo_greedy", 8);
    for (notation, messages) in [
        ("ring", 2 * 63 * 64),
        ("recursive_doubling", 6 * 64),
        ("multi_tree:mesh:8x8", 2 * 63 * 64),
    ] {
        let ran = run(notation, Collective::AllReduce, 1, &settings);
        assert_eq!((ran.counts.injected, ran.counts.ejected), (messages, messages), "{notation}");
        assert_eq!(ran.counts.merged, 0);
        let again = run(notation, Collective::AllReduce, 1, &settings);
        assert_eq!(ran.outcome, again.outcome);
    }
}

/// Where routers neither fork nor combine, a root sends and takes a flit for each rank.
#[test]
fn without_collectives_in_routers_the_root_does_it_all() {
    let ran = run("in_network", Collective::AllReduce, 1, &mesh("smart_1d", 8));
    assert_eq!((ran.counts.injected, ran.counts.merged), (126, 0));
    assert!(ran.cycles() >= 63 + 63, "{}", ran.cycles());
}

/// All other collectives of the algorithm, with routers that do both.
#[test]
fn shards_go_up_or_come_down() {
    let settings = Settings { fan_in: FanIn::Complete, ..mesh("sfo_greedy_pvt", 4) };
    for (collective, most) in [(Collective::ReduceScatter, 16), (Collective::AllGather, 240)] {
        let ran = run("in_network", collective, 256, &settings);
        assert_eq!(ran.counts.injected, 256 * if most == 16 { 15 } else { 1 });
        assert!(ran.cycles() >= 240, "{collective}: {}", ran.cycles());
    }
}

/// A multicast is one send of its rank and one message of the network, however many take it, and a combine one message
/// to who takes it.
#[test]
fn messages_are_counted_on_either_side_of_the_network() {
    let both = Settings { fan_in: FanIn::Complete, ..mesh("sfo_greedy", 4) };
    let forks = Settings { fan_in: FanIn::Unicasts, ..both.clone() };
    let neither = Settings { fan_out: FanOut::Unicasts, ..forks.clone() };
    // 15 contribute, and the root multicasts; the root takes one or 15, and 15 take what it sends.
    for (settings, sent, taken) in [(&both, 16, 16), (&forks, 16, 30), (&neither, 30, 30)] {
        let (ran, timeline) = recorded("in_network", Collective::AllReduce, 4, settings);
        let Outcome { messages, bytes, delivered, delivered_bytes, .. } = ran.outcome;
        assert_eq!((messages, delivered), (sent, taken));
        assert_eq!((bytes, delivered_bytes), (u128::from(sent) * 64, u128::from(taken) * 64));
        let spans = |which| timeline.spans.iter().filter(|s| s.activity == which).count() as u64;
        assert_eq!((spans(Activity::Send), spans(Activity::Recv)), (sent, taken));
        // Who got what from whom is on record all the same.
        assert_eq!(timeline.messages.len(), 30);
    }
}

/// Multicasts too take a rank's time once: its spans neither overlap nor leave gaps.
#[test]
fn what_ranks_do_adds_up_to_their_time() {
    let settings = Settings { fan_in: FanIn::Complete, ..mesh("sfo_greedy", 4) };
    for notation in ["in_network", "in_network:0+3+12+15,segments=4", "in_network:all"] {
        let (ran, timeline) = recorded(notation, Collective::AllReduce, 64, &settings);
        for rank in 0..16 {
            let mut clock = ran.outcome.start[rank];
            for span in timeline.spans.iter().filter(|span| span.rank.index() == rank) {
                assert_eq!(span.start, clock, "{notation}: {span:?}");
                clock = span.end;
            }
            assert_eq!(clock, ran.outcome.finish[rank], "{notation}: rank {rank}");
        }
    }
}
