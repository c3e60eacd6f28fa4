//! Schedules over dedicated links between all nodes, with hand-computed times.

use std::sync::atomic::AtomicBool;
use tutti_engine::{Conditions, LocalCosts, Outcome, Silent, Simulation};
use tutti_network::packet::Ends;
use tutti_network::{LogGP, Model};
use tutti_noc::smart::{Cutting, FabricCarrier, FanIn, FanOut, FullyConnected, Settings, Tree};
use tutti_schedule::algorithm::build;
use tutti_schedule::collective::Collective;
use tutti_schedule::{ChunkRange, Explicit, Layout, Schedule, Slot};
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time, TimePerByte};

const CYCLE: Time = Time::from_ps(1000);
const CUTTING: Cutting = Cutting { cycle: CYCLE, payload: Bytes(16), packet: 1, class: 0 };

/// 4 x 4 nodes that fork and combine, as far as the settings go.
fn settings() -> Settings {
    Settings {
        fan_out: FanOut::Greedy(Tree::Shared),
        fan_in: FanIn::Complete,
        reducer: true,
        ..Settings::new(4, 4)
    }
}

/// Ends that take a picosecond per byte: some time a model has to take, and a flit's is well below a cycle.
fn ends() -> LogGP {
    LogGP { L: Time::ZERO, o: Time::ZERO, g: Time::ZERO, G: TimePerByte::new(1, 1).unwrap() }
        .checked()
        .unwrap()
}

struct Ran {
    outcome: Outcome,
    injected: u64,
    beyond: u64,
}

fn run(notation: &str, collective: Collective, size: u64, settings: &Settings) -> Ran {
    let schedule = build(notation, collective, settings.nodes()).unwrap();
    run_schedule(&*schedule, size, settings)
}

fn run_schedule(schedule: &dyn Schedule, size: u64, settings: &Settings) -> Ran {
    let model = ends();
    let simulation = Simulation {
        schedule,
        layout: Layout::of_schedule(schedule, Bytes(size), 1).unwrap(),
        model: &model,
        costs: LocalCosts { gamma: TimePerByte::new(1000, 1).unwrap(), ..LocalCosts::FREE },
        conditions: Conditions::default(),
    };
    let fabric = Box::new(FullyConnected::new(settings, true).unwrap());
    let mut carrier =
        FabricCarrier::new(fabric, settings, CUTTING, Ends::of(&Model::LogGP(model))).unwrap();
    let stop = AtomicBool::new(false);
    let outcome = simulation.run_through(&mut carrier, &stop, &mut Silent).unwrap();
    Ran { outcome, injected: carrier.counts().injected, beyond: carrier.beyond() }
}

fn cycles(ran: &Ran) -> u64 {
    ran.outcome.completion_time().ps() / 1000
}

#[test]
fn a_flit_is_there_a_cycle_later_and_forked_once() {
    let ran = run("in_network", Collective::Broadcast { root: RankId(3) }, 16, &settings());
    assert_eq!((cycles(&ran), ran.injected), (1, 1));
    assert_eq!((ran.outcome.messages, ran.outcome.delivered), (1, 15));
}

/// 15 answers come one per cycle, since nothing is combined here but at the NIC; folding costs nothing there.
#[test]
fn a_combine_is_there_with_its_last_answer() {
    let ran = run("in_network", Collective::Reduce { root: RankId(3) }, 16, &settings());
    assert_eq!((cycles(&ran), ran.injected), (15, 15));
    let apart = Settings { fan_in: FanIn::Unicasts, ..settings() };
    let ran = run("in_network", Collective::Reduce { root: RankId(3) }, 16, &apart);
    // The ranks fold: 15 times 16 B at a nanosecond each.
    assert_eq!((cycles(&ran), ran.injected), (15 + 15 * 16, 15));
}

/// A flit of a multicast to each flit's cycle; unicasts take a cycle for each receiver.
#[test]
fn where_nothing_forks_each_receiver_has_a_flit_of_its_own() {
    let root = Collective::Broadcast { root: RankId(0) };
    let ran = run("in_network", root, 160, &settings());
    assert_eq!((cycles(&ran), ran.injected), (10, 10));
    let apart = Settings { fan_out: FanOut::Unicasts, ..settings() };
    let ran = run("in_network", root, 160, &apart);
    assert_eq!((cycles(&ran), ran.injected), (150, 150));
}

/// A cycle from when a combine is there to when the root can multicast.
#[test]
fn what_arrives_can_be_answered_in_the_next_cycle() {
    let ran = run("in_network", Collective::AllReduce, 16, &settings());
    assert_eq!((cycles(&ran), ran.injected), (15 + 1 + 1, 16));
    let barrier = run("in_network", Collective::Barrier, 0, &settings());
    assert_eq!((cycles(&barrier), barrier.injected), (17, 16));
}

/// With one entry reductions are sequential; none is started beyond the table, as all members are ready.
#[test]
fn reductions_in_flight_are_limited_by_the_entries() {
    let few = Settings { art_entries: 16, ..settings() };
    for settings in [few, settings()] {
        let ran = run("in_network:all,segments=4", Collective::AllReduce, 64 * 64, &settings);
        // Every rank receives all 256 flits, and 15 responses per flit of its shard.
        assert_eq!(ran.injected, 256 * 15 + 256);
        assert_eq!(ran.beyond, 0);
        let least = 256 - 16 + 16 * 15;
        assert!(cycles(&ran) >= least, "{} < {least}", cycles(&ran));
    }
}

/// Two ranks that each wait for what the other's reduction is before: entries alone would be a deadlock.
#[test]
fn entries_that_wait_for_each_other_are_no_deadlock() {
    let settings = Settings { art_entries: 16, ..settings() };
    let mut builder = Explicit::builder(Collective::Barrier, 16, 1);
    builder.slots(3);
    let (all, data) = (ChunkRange::new(0, 1), Slot::DATA);
    for rank in (2..16).map(RankId) {
        // Everyone but rank 0 contributes to rank 1 first; rank 0 only once rank 1 has combined the others.
        builder.contribute(rank, RankId(1), data, all);
    }
    let operands: Vec<_> = (2..16).map(|rank| (Slot(rank), Some(RankId(rank)))).collect();
    builder.combine(RankId(1), data, &operands, all);
    builder.multicast(RankId(1), &[RankId(0)], data, all);
    builder.recv(RankId(0), RankId(1), data, all);
    builder.end_step(RankId(0)).multicast(RankId(0), &operands_of(2..16), data, all);
    for rank in (2..16).map(RankId) {
        builder.recv(rank, RankId(0), data, all);
    }
    let schedule = builder.build().unwrap();
    let ran = run_schedule(&schedule, 0, &settings);
    assert_eq!(cycles(&ran), 14 + 1 + 1 + 1 + 1);
}

fn operands_of(ranks: std::ops::Range<u32>) -> Vec<RankId> {
    ranks.map(RankId).collect()
}

#[test]
fn what_does_not_fit_a_mesh_is_refused() {
    let refused = |cutting: Cutting, settings: &Settings| {
        cutting.check(settings).err().map_or_else(String::new, |error| error.to_string())
    };
    let no_reducer = Settings { reducer: false, ..settings() };
    assert!(refused(CUTTING, &no_reducer).contains("expected `reducer = true`"));
    assert!(refused(CUTTING, &Settings { reducer: false, ..Settings::new(4, 4) }).is_empty());
    let cases = [
        (Cutting { cycle: Time::ZERO, ..CUTTING }, "cycle"),
        (Cutting { payload: Bytes(0), ..CUTTING }, "flit"),
        (Cutting { packet: 2, ..CUTTING }, "flits of a packet"),
        (Cutting { class: 1, ..CUTTING }, "class"),
    ];
    for (cutting, part) in cases {
        let error = refused(cutting, &settings());
        assert!(error.contains(part), "{error}");
    }
}

/// Any other schedule runs over it too.
#[test]
fn ordinary_schedules_are_unicasts() {
    // 15 steps per phase, of a sixteenth of 32 flits, and a cycle between steps.
    let ran = run("ring", Collective::AllReduce, 512, &settings());
    assert_eq!(ran.injected, 30 * 16 * 2);
    let folding = 15 * 32;
    assert_eq!(cycles(&ran), 30 * 2 + 29 + folding);
}
