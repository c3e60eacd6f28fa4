//! Exact zero-load latencies, by component.

use super::super::{MissKind, Misses};
use super::*;

/// Returns the misses of a kind, and checks that there is one.
fn only(run: &SystemRun, kind: MissKind) -> Misses {
    let misses = run.misses[kind as usize];
    assert_eq!(misses.latency.count, 1, "{run:?}");
    assert_eq!(misses.parts.total(), misses.latency.sum);
    misses
}

#[test]
fn hits_take_the_latency_of_the_cache() {
    for settings in chips(2, 2) {
        let hits = program(1, 8, |core| async move {
            core.load(0).await;
            core.begin().await;
            for word in 0..8 {
                core.load(8 * word).await;
            }
            core.compute(10);
            core.load(0).await;
            core.end().await;
        });
        let run = run(&settings, hits).unwrap();
        assert_eq!((run.cycles, run.instructions, run.l1_misses), (19, 19, 0));
    }
}

#[test]
fn an_l2_hit_takes_both_lookups() {
    let mut settings = SystemSettings::new(2, 2, Protocol::Ht);
    (settings.l1_bytes, settings.l1_ways) = (64, 1);
    let hits = program(1, 16, |core| async move {
        core.load(0).await;
        core.load(64).await;
        core.begin().await;
        core.load(0).await;
        core.end().await;
    });
    let run = run(&settings, hits).unwrap();
    assert_eq!((run.cycles, run.l1_misses, run.all_misses().latency.count), (9, 1, 0));
}

#[test]
fn a_read_from_memory_is_lookup_request_home_memory_and_five_flits() {
    let settings = SystemSettings::new(2, 2, Protocol::Ht);
    // The home of line 1 is node 1.
    let reads = program(1, 16, |core| async move { _ = core.load(64).await });
    let run = run(&settings, reads).unwrap();
    let parts = only(&run, MissKind::Read).parts;
    assert_eq!((parts.lookup, parts.request, parts.wait), (9, 1, 2));
    assert_eq!((parts.probe, parts.snoop, parts.responses, parts.data), (1, 4, 1, 0));
    // Memory takes 100 cycles from the broadcast on, its copy 5; 6 had passed by then.
    assert_eq!(parts.memory, 105 - 6);
    assert_eq!((run.memory_reads, run.response_packets), (1, 3));
}

#[test]
fn an_upgrade_waits_for_responses_but_not_for_memory() {
    let settings = SystemSettings::new(2, 2, Protocol::Ht);
    let upgrades = program(2, 32, |core| async move {
        if core.id() == 1 {
            core.load(64).await;
            core.store(128, 1).await;
        } else {
            core.spin_while(128, 0).await;
            core.load(64).await;
            core.begin().await;
            core.store(64, 1).await;
            core.end().await;
        }
    });
    let run = run(&settings, upgrades).unwrap();
    let misses = only(&run, MissKind::Upgrade);
    // 1 lookup, 1 request, 2 home, 1 broadcast, 4 snoop, 1 responses.
    assert_eq!(misses.latency.sum, 1 + 1 + 2 + 1 + 4 + 1);
    assert_eq!((misses.from_caches, misses.from_memory), (0, 0));
}

#[test]
fn the_writers_cache_serves_a_read() {
    for (protocol, expected) in [
        // After lookup 9 + request 1 + home 2: broadcast 1, snoop 4, then data 4 + 5 flits.
        (Protocol::Ht, 9 + 1 + 2 + 1 + 4 + 4 + 5),
        (Protocol::Tc, 9 + 1 + 4 + 4 + 5),
    ] {
        let settings = SystemSettings::new(2, 2, protocol);
        let reads = program(2, 32, |core| async move {
            if core.id() == 1 {
                core.store(192, 5).await;
                core.compute(1000);
                core.store(128, 1).await;
            } else {
                core.spin_while(128, 0).await;
                core.compute(1000);
                core.begin().await;
                assert_eq!(core.load(192).await, 5);
                core.end().await;
            }
        });
        let run = run(&settings, reads).unwrap();
        let misses = only(&run, MissKind::Read);
        assert_eq!((misses.latency.sum, misses.from_caches), (expected, 1), "{misses:?}");
    }
}

#[test]
fn memory_bandwidth_is_one_line_per_interval() {
    for interval in [4, 50] {
        let mut settings = SystemSettings::new(2, 2, Protocol::Ht);
        (settings.homes, settings.dram_interval) = (vec![0], interval);
        let reads = program(4, 256, |core| async move {
            for line in 0..8 {
                core.load(64 * (8 * u64::from(core.id()) + line)).await;
            }
        });
        let run = run(&settings, reads).unwrap();
        assert_eq!(run.memory_reads, 32);
        let least = 31 * interval + settings.dram_cycles;
        assert!(run.total_cycles >= least);
        assert!(interval == 4 || run.total_cycles < least + 100, "{}", run.total_cycles);
    }
}

#[test]
fn a_miss_has_the_flows_of_the_protocol() {
    let settings = SystemSettings::new(4, 4, Protocol::Ht);
    let reads = program(16, 16 * 8 * 16, |core| async move {
        for line in 0..16 {
            core.load(64 * (16 * u64::from(core.id()) + line)).await;
        }
    });
    let ht = run_on(&settings, reads, connected(4, 4, &settings)).unwrap();
    // Each miss has a broadcast, a reduction, and up to three messages to other nodes.
    let flows = |cast: &str| -> u64 {
        ht.flows.iter().filter(|flow| cast.is_empty() || flow.cast == cast).map(|f| f.count).sum()
    };
    let (broadcasts, all) = (flows("broadcast"), flows(""));
    assert!(all < 5 * broadcasts && 10 * broadcasts < 3 * all, "{:?}", ht.flows);
    assert_eq!(broadcasts, flows("responses"));
    assert_eq!(ht.broadcasts.count, 256);
    assert_eq!((ht.broadcasts.most, ht.reductions.count), (1, 256));
    assert_eq!(ht.response_packets, 15 * ht.reductions.count);
}
