//! What is generated has the law it should; what is measured of a fabric that is simple is what it
//! must be.

use std::sync::atomic::AtomicBool;

use super::traffic::{Generator, Order};
use super::{
    Ending, Kind, Load, Measurement, Members, Phases, Sources, check, ideal, measure, watch,
};
use crate::FlitError;
use crate::smart::connected::FullyConnected;
use crate::smart::designs::design;
use crate::smart::message::NodeSet;
use crate::smart::record::EventKind;
use crate::smart::settings::Settings;
use crate::traffic::{PacketSize, Pattern, Process};

const PLAN: Phases = Phases { warmup: 200, measure: 4_000, drain: 4_000 };

fn load(kind: Kind, rate: f64) -> Load {
    Load { kind, process: Process::bernoulli(rate).unwrap(), class: 0, outstanding: None }
}

fn uniform(nodes: u32) -> Kind {
    let pattern = Pattern::parse("uniform", nodes, None).unwrap();
    Kind::Unicast { pattern, size: PacketSize::fixed(1).unwrap() }
}

fn measured(loads: &[Load], narrow: bool, seed: u64) -> Measurement {
    let settings = Settings::new(8, 8);
    let mut fabric = FullyConnected::new(&settings, narrow).unwrap();
    measure(&settings, &mut fabric, loads, &PLAN, seed, &AtomicBool::new(false)).unwrap()
}

/// The messages of so many cycles.
fn generated(load: &Load, cycles: u64, seed: u64) -> Vec<(u64, Order)> {
    let mut generator = Generator::new(load, 8, 8, seed);
    let mut orders = Vec::new();
    for cycle in 0..cycles {
        generator.take(cycle, |order| orders.push((cycle, order)));
    }
    orders
}

fn sets(to: Members, count: usize) -> Vec<(u32, NodeSet)> {
    let kind = Kind::Multicast { from: Sources::All, to };
    let orders = generated(&load(kind, 1.0), u64::try_from(count.div_ceil(64)).unwrap(), 7);
    let set = |(_, order)| match order {
        Order::Multicast { source, members } => (source, members),
        _ => panic!("not a multicast"),
    };
    orders.into_iter().map(set).take(count).collect()
}

#[test]
fn random_sets_have_uniform_size_and_members() {
    let sets = sets(Members::AnyNumber, 12_800);
    let mut sizes = [0_u32; 64];
    let mut members = [0_u32; 64];
    for (source, set) in &sets {
        assert!(!set.contains(*source) && !set.is_empty());
        sizes[set.len() as usize] += 1;
        set.iter().for_each(|node| members[node as usize] += 1);
    }
    // Of 12800 sets 203.2 +- 14.1 have each size; bound at five sigma. A node is in half of them.
    assert!(sizes[1..].iter().all(|&count| count.abs_diff(203) < 71), "{sizes:?}");
    assert!(members.iter().all(|&count| count.abs_diff(6_400) < 400), "{members:?}");
}

#[test]
fn half_sets_contain_each_node_with_probability_one_half() {
    let sets = sets(Members::Half, 6_400);
    let all: u32 = sets.iter().map(|(_, set)| set.len()).sum();
    // 6400 x 63 tosses: 201600 +- 317.5; bound at five sigma.
    assert!(all.abs_diff(201_600) < 1_588, "{all}");
    assert!(sets.iter().all(|(source, set)| !set.contains(*source)));
    // On a mesh of 2 x 2 one in eight would be empty.
    let kind = Kind::Multicast { from: Sources::All, to: Members::Half };
    let mut generator = Generator::new(&load(kind, 1.0), 2, 2, 1);
    for cycle in 0..200 {
        generator.take(cycle, |order| match order {
            Order::Multicast { members, .. } => assert!(!members.is_empty()),
            _ => panic!("not a multicast"),
        });
    }
}

#[test]
fn only_corners_send() {
    let kind = Kind::Broadcast { from: Sources::Corners };
    let orders = generated(&load(kind, 0.5), 1_000, 3);
    let mut by_node = [0_u32; 64];
    for (_, order) in &orders {
        let Order::Multicast { source, members } = order else { panic!("not a multicast") };
        assert_eq!(members, &NodeSet::all_but(64, *source));
        by_node[*source as usize] += 1;
    }
    // 1000 tosses each: 500 +- 15.8; bound at five sigma.
    assert!([0, 7, 56, 63].iter().all(|&node| by_node[node].abs_diff(500) < 79), "{by_node:?}");
    assert_eq!(by_node.iter().filter(|&&count| count > 0).count(), 4);
}

#[test]
fn several_reductions_start_in_a_cycle() {
    let kind = Kind::Reduction { streams: 2 };
    let orders = generated(&load(kind, 0.6), 10_000, 5);
    // 20000 tosses of 0.6: 12000 +- 69.3; bound at five sigma.
    assert!(orders.len().abs_diff(12_000) < 347, "{}", orders.len());
    let both = orders.windows(2).filter(|pair| pair[0].0 == pair[1].0).count();
    assert!(both.abs_diff(3_600) < 241, "36 % of cycles have two: {both}");
    let mut roots = [0_u32; 64];
    for (_, order) in &orders {
        let Order::Reduction { destination } = order else { panic!("not a reduction") };
        roots[*destination as usize] += 1;
    }
    assert!(roots.iter().all(|&count| count.abs_diff(188) < 70), "{roots:?}");
}

#[test]
fn a_fully_connected_mesh_takes_a_cycle_per_message() {
    let loads = [
        load(Kind::Broadcast { from: Sources::All }, 0.01),
        load(Kind::Multicast { from: Sources::Corners, to: Members::AnyNumber }, 0.01),
        load(Kind::Reduction { streams: 1 }, 0.3),
        load(uniform(64), 0.2),
    ];
    let found = measured(&loads, false, 1);
    assert_eq!(found.ending, Ending::Stable);
    for one in &found.loads {
        assert_eq!(one.latency_extremes, (1, 1));
        assert!((one.latency - 1.0).abs() < 1e-12 && (one.part_latency - 1.0).abs() < 1e-12);
        assert_eq!(one.quantiles, [1; 4]);
        assert!((one.accepted / one.offered - 1.0).abs() < 0.01);
    }
    let [broadcast, multicast, reduction, unicast] = &found.loads[..] else { unreachable!() };
    assert!((broadcast.parts - 63.0).abs() < 1e-12 && (reduction.parts - 63.0).abs() < 1e-12);
    assert!((reduction.arrivals - 63.0).abs() < 1e-12, "responses are not combined");
    // 4000 cycles of 64 x 0.01: 2560 +- 50; of 0.3: 1200 +- 29; bounds at five sigma.
    assert!((broadcast.offered - 0.64).abs() < 0.063);
    assert!((reduction.offered - 0.3).abs() < 0.036);
    assert!((unicast.offered - 12.8).abs() < 0.26);
    // 160 sets of any size: 32 +- 1.44.
    assert!((multicast.parts - 32.0).abs() < 7.2, "{}", multicast.parts);
    // What takes a cycle is in flight for that one and the one it was sent in.
    assert!((broadcast.active / broadcast.offered - 1.0).abs() < 1e-2, "{}", broadcast.active);
}

#[test]
fn an_ejection_port_saturates_at_one_packet_per_cycle() {
    let broadcasts = |rate| [load(Kind::Broadcast { from: Sources::All }, rate)];
    // A node gets 63 x rate packets per cycle.
    let below = measured(&broadcasts(0.9 / 63.0), true, 1);
    let above = measured(&broadcasts(1.2 / 63.0), true, 1);
    assert_eq!((below.ending, above.ending), (Ending::Stable, Ending::Saturated));
    assert!(below.loads[0].latency > 1.0);
    let share = above.loads[0].accepted / above.loads[0].offered;
    assert!((share - 1.0 / 1.2).abs() < 0.03, "{share}");
    // 63 responses at one port take 63 cycles.
    let reduction = measured(&[load(Kind::Reduction { streams: 1 }, 0.002)], true, 1);
    assert_eq!(reduction.loads[0].latency_extremes.0, 63);
}

#[test]
fn a_seed_determines_the_run() {
    let loads = [load(Kind::Multicast { from: Sources::All, to: Members::Half }, 0.01)];
    assert_eq!(measured(&loads, true, 4), measured(&loads, true, 4));
    assert_ne!(measured(&loads, true, 4), measured(&loads, true, 5));
}

#[test]
fn ideals_match_the_closed_forms() {
    let of = |kind| ideal(&load(kind, 0.1), 8, 8).unwrap();
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
    let unicast = of(uniform(64));
    close(unicast.throughput, 32.0);
    close(unicast.hops, 5.25);
    let broadcast = of(Kind::Broadcast { from: Sources::All });
    close(broadcast.throughput, 64.0 / 63.0);
    close(broadcast.hops, 11.0);
    let corners = of(Kind::Broadcast { from: Sources::Corners });
    close(corners.throughput, 1.0);
    close(corners.hops, 14.0);
    let multicast = |to| of(Kind::Multicast { from: Sources::All, to });
    close(multicast(Members::AnyNumber).throughput, 2.0);
    close(multicast(Members::Half).throughput, 64.0 / 31.5);
    close(of(Kind::Reduction { streams: 1 }).throughput, 64.0 / 63.0);
    let transpose = Pattern::parse("transpose", 64, Some(&[8, 8])).unwrap();
    let size = PacketSize::fixed(1).unwrap();
    assert!(ideal(&load(Kind::Unicast { pattern: transpose, size }, 0.1), 8, 8).is_none());
}

#[test]
fn invalid_traffic_is_rejected_before_a_run() {
    let settings = Settings::new(4, 4);
    let refuses = |load: Load, plan: Phases| check(&settings, &[load], &plan).unwrap_err();
    let long = PacketSize::fixed(5).unwrap();
    let pattern = |nodes| Pattern::parse("uniform", nodes, None).unwrap();
    let unicast = |nodes, size| load(Kind::Unicast { pattern: pattern(nodes), size }, 0.1);
    let one = || PacketSize::fixed(1).unwrap();
    assert!(matches!(refuses(unicast(16, long), PLAN), FlitError::BufferSmallerThanPacket { .. }));
    assert!(matches!(refuses(unicast(64, one()), PLAN), FlitError::Clash { .. }));
    let other = Load { class: 1, ..unicast(16, one()) };
    assert!(matches!(refuses(other, PLAN), FlitError::BadPacket { class: 1, .. }));
    let capped = Load { outstanding: Some(4), ..unicast(16, one()) };
    assert!(matches!(refuses(capped, PLAN), FlitError::Clash { what: "outstanding", .. }));
    let none = Load { outstanding: Some(0), ..load(Kind::Reduction { streams: 1 }, 0.1) };
    assert!(matches!(refuses(none, PLAN), FlitError::OutOfRange { what: "outstanding", .. }));
    let none = Phases { measure: 0, ..PLAN };
    assert!(matches!(refuses(unicast(16, one()), none), FlitError::OutOfRange { .. }));
    assert!(check(&settings, &[], &PLAN).is_err());
    assert!(check(&settings, &[unicast(16, one())], &PLAN).is_ok());
}

/// Contention-free latencies of section V, and the next to empty mesh that has them.
#[test]
fn latency_at_low_load_is_the_zero_load_latency() {
    let of = |name: &str, kind: Kind| {
        let design = design(name).unwrap();
        let settings = design.settings(8, 8);
        let mut fabric = design.build(&settings).unwrap();
        let plan = Phases { warmup: 0, measure: 200_000, drain: 1_000 };
        let stop = AtomicBool::new(false);
        let found = measure(&settings, &mut *fabric, &[load(kind, 0.000_02)], &plan, 1, &stop);
        found.unwrap().loads[0].latency
    };
    let corners = || Kind::Broadcast { from: Sources::Corners };
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 0.3, "{found}");
    close(of("baseline_collective", corners()), 28.0);
    close(of("sfo_greedy", corners()), 4.0);
    close(of("sfo_greedy_pvt", corners()), 4.0);
    let all = || Kind::Broadcast { from: Sources::All };
    close(of("baseline_collective", all()), 22.0);
    close(of("sfo_greedy", all()), 4.0);
    close(of("sfo_greedy_pvt", all()), 7.0);
}

#[test]
fn recordings_contain_every_packet() {
    for name in ["baseline", "sfo_greedy", "sfo_complete"] {
        let settings = design(name).unwrap().settings(4, 4);
        let loads = [
            load(Kind::Broadcast { from: Sources::All }, 0.01),
            load(Kind::Reduction { streams: 1 }, 0.05),
        ];
        let found = watch(&settings, &loads, 100, 3).unwrap();
        let injected = |serial: usize| {
            found.events.iter().find(|event| {
                usize::try_from(event.packet) == Ok(serial) && event.kind == EventKind::Injected
            })
        };
        assert!(found.sent.len() > 50, "{}", found.sent.len());
        let seen: Vec<_> = (0..found.sent.len()).filter_map(injected).collect();
        // The others wait in their NICs when the watching ends.
        assert!(seen.len() * 4 > found.sent.len() * 3, "{} of {}", seen.len(), found.sent.len());
        for event in seen {
            let packet = &found.sent[usize::try_from(event.packet).unwrap()];
            assert_eq!(event.router, packet.source, "packets are counted as they are sent");
            assert!(event.cycle >= packet.cycle);
        }
    }
}

#[test]
fn no_more_reductions_are_in_flight_than_the_limit() {
    let settings = design("baseline_collective").unwrap().settings(8, 8);
    let of = |outstanding| {
        let mut fabric = design("baseline_collective").unwrap().build(&settings).unwrap();
        let load = Load { outstanding, ..load(Kind::Reduction { streams: 1 }, 0.9) };
        let plan = Phases { warmup: 500, measure: 2_000, drain: 0 };
        let stop = AtomicBool::new(false);
        measure(&settings, &mut *fabric, &[load], &plan, 1, &stop).unwrap().loads[0].clone()
    };
    let (free, four, one) = (of(None), of(Some(4)), of(Some(1)));
    assert!(free.active > 100.0, "{}", free.active);
    assert!(four.active <= 4.0 && four.active > 3.5, "{}", four.active);
    assert!(one.active <= 1.0 && one.active > 0.9, "{}", one.active);
    // A single reduction takes about 22 cycles, and the next starts in the cycle after it.
    assert!((0.03..0.06).contains(&one.accepted), "{}", one.accepted);
}

#[test]
fn short_windows_never_call_a_low_load_saturated() {
    let greedy = design("sfo_greedy").unwrap();
    let settings = greedy.settings(4, 4);
    let of = |kind: &Kind, rate: f64, cycles: u64, seed: u64| {
        let mut fabric = greedy.build(&settings).unwrap();
        let plan = Phases { warmup: 300, measure: cycles, drain: 2_000 };
        let loads = [load(kind.clone(), rate)];
        measure(&settings, &mut *fabric, &loads, &plan, seed, &AtomicBool::new(false)).unwrap()
    };
    let all = Kind::Broadcast { from: Sources::All };
    let kinds =
        [(all.clone(), 1.0 / 15.0), (Kind::Reduction { streams: 1 }, 1.0), (uniform(16), 0.9)];
    for (kind, ideal) in kinds {
        for share in [0.02, 0.06, 0.3] {
            for cycles in [1, 3, 10, 30, 100, 300, 1_000] {
                for seed in 1..6 {
                    let found = of(&kind, share * ideal, cycles, seed);
                    let decided = found.ending == Ending::Stable;
                    assert!(decided || found.ending == Ending::Undecided, "{:?}", found.ending);
                    // One message in flight of one or two decides nothing.
                    let few = found.loads[0].messages < 4 || cycles <= 30;
                    assert!(decided || few, "{kind:?} {share} {cycles} {seed}");
                    assert_eq!(decided, found.long_enough.is_none());
                }
            }
        }
    }
    // An overload of a third: never stable, and saturated in a window as long as stated.
    for (cycles, seed) in [(5, 1), (20, 2), (60, 3), (300, 4), (2_000, 5)] {
        let found = of(&all, 1.33 / 15.0, cycles, seed);
        assert_ne!(found.ending, Ending::Stable, "{cycles}");
        let long = found.long_enough.unwrap_or(cycles);
        assert_eq!(of(&all, 1.33 / 15.0, long, seed).ending, Ending::Saturated, "{cycles} {long}");
    }
}
