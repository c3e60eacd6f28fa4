//! Programs with known results, for every protocol and option.

use super::*;

#[test]
fn concurrent_additions_to_a_word_are_not_lost() {
    for settings in chips(2, 2).into_iter().flat_map(|chip| [chip.clone(), tiny(chip)]) {
        let adds = program(4, 1, |core| async move {
            for _ in 0..100 {
                core.fetch_add(0, 1).await;
            }
        });
        let run = run(&settings, adds).unwrap();
        assert_eq!(run.memory, [400], "{settings:?}");
        assert_eq!((run.instructions, run.accesses), (400, 400));
    }
}

#[test]
fn the_last_store_to_a_word_remains() {
    for settings in chips(2, 2) {
        let stores = program(4, 8, |core| async move {
            for _ in 0..50 {
                core.store(0, u64::from(core.id())).await;
                core.load(0).await;
            }
        });
        let run = run(&settings, stores).unwrap();
        assert!(run.memory[0] < 4);
    }
}

#[test]
fn false_sharing_preserves_the_stores_of_each_core() {
    for settings in chips(2, 2) {
        let counts = program(4, 8, |core| async move {
            let own = 8 * u64::from(core.id());
            for _ in 0..60 {
                let value = core.load(own).await;
                core.compute(3);
                core.store(own, value + 1).await;
            }
        });
        let run = run(&settings, counts).unwrap();
        assert_eq!(run.memory[..4], [60; 4]);
        let all = run.all_misses();
        assert!(all.from_caches > all.from_memory, "the line goes from cache to cache");
    }
}

#[test]
fn evicted_lines_return_with_their_values() {
    for settings in chips(2, 2).into_iter().map(tiny) {
        let walks = program(4, 8 * 64, |core| async move {
            let lines = 64;
            for round in 0..3 {
                for line in 0..lines {
                    let address = 64 * line + 8 * u64::from(core.id());
                    assert_eq!(core.load(address).await, round * (line + 1));
                    core.store(address, (round + 1) * (line + 1)).await;
                }
            }
        });
        let run = run(&settings, walks).unwrap();
        let expected = |word: usize| if word % 8 < 4 { 3 * (word as u64 / 8 + 1) } else { 0 };
        assert!((0..8 * 64).all(|word| run.memory[word] == expected(word)), "{settings:?}");
        assert!(run.memory_writes > 0, "lines are written back");
    }
}

#[test]
fn a_lock_provides_mutual_exclusion() {
    for settings in chips(2, 2).into_iter().flat_map(|chip| [chip.clone(), tiny(chip)]) {
        let (lock, inside, count) = (0, 64, 128);
        let locks = program(4, 24, move |core| async move {
            for _ in 0..40 {
                while core.swap(lock, 1).await == 1 {
                    core.spin_while(lock, 1).await;
                }
                assert_eq!(core.swap(inside, 1).await, 0, "mutual exclusion");
                let value = core.load(count).await;
                core.compute(7);
                core.store(count, value + 1).await;
                core.store(inside, 0).await;
                core.store(lock, 0).await;
            }
        });
        let run = run(&settings, locks).unwrap();
        assert_eq!(run.memory[16], 160, "{settings:?}");
    }
}

#[test]
fn a_barrier_waits_for_all_cores_and_only_the_region_counts() {
    for settings in chips(2, 2) {
        let barriers = program(4, 64, |core| async move {
            for round in 1..=20_u64 {
                core.compute(u64::from(core.id()) * 50);
                if core.fetch_add(0, 1).await + 1 == 4 * round {
                    core.store(64, round).await;
                } else {
                    core.spin_while(64, round - 1).await;
                }
                assert!(core.load(0).await >= 4 * round);
                if core.id() == 0 && round == 5 {
                    core.begin().await;
                }
                if core.id() == 0 && round == 15 {
                    core.end().await;
                }
            }
        });
        let run = run(&settings, barriers).unwrap();
        assert!(run.cycles > 0 && run.cycles < run.total_cycles * 3 / 4);
        assert_eq!(run.memory[0], 80);
        assert!(run.spun > 0 && run.instructions > 0);
    }
}

#[test]
fn messages_passed_through_memory_arrive_in_order() {
    for settings in chips(2, 2) {
        let passes = program(2, 32, |core| async move {
            for round in 1..=50 {
                if core.id() == 0 {
                    core.store(64, 7 * round).await;
                    core.store(0, round).await;
                    core.spin_while(128, round - 1).await;
                } else {
                    core.spin_while(0, round - 1).await;
                    assert_eq!(core.load(64).await, 7 * round);
                    core.store(128, round).await;
                }
            }
        });
        run(&settings, passes).unwrap();
    }
}

/// Returns a program in which each core draws accesses to a few words. The checker verifies that
/// each load returns the last store.
pub(super) fn stress(cores: u32, seed: u32, words: u32, steps: u32) -> Program {
    let mut stress = program(cores, words as usize, move |core| async move {
        let mut random = Lcg(u64::from(seed * 1000 + core.id()));
        let words = u64::from(words);
        let (mut sum, own) = (0, 8 * (words - 1));
        for _ in 0..steps {
            let address = 8 * random.below(words - 1);
            match random.below(6) {
                0 | 1 => _ = core.load(address).await,
                2 => core.store(address, random.below(1000)).await,
                3 => _ = core.swap(address, random.below(1000)).await,
                4 => _ = core.compare_swap(address, random.below(3), 1).await,
                _ => {
                    core.fetch_add(own, 1).await;
                    sum += 1;
                }
            }
            core.compute(random.below(20));
        }
        core.fetch_add(own, 1000 * (sum % 2)).await;
    });
    stress.memory.fill(1);
    stress
}

#[test]
fn random_accesses_with_tiny_caches_are_coherent() {
    for seed in 0..30 {
        for settings in chips(2, 2).into_iter().map(tiny) {
            let settings = SystemSettings { reissues: seed % 3, ..settings };
            let words = [5, 40, 300][seed as usize % 3];
            let result = run(&settings, stress(4, seed, words, 150));
            assert!(result.is_ok(), "seed {seed}: {result:?} {settings:?}");
        }
    }
}

#[test]
fn random_accesses_of_sixteen_cores_are_coherent() {
    for seed in 0..4 {
        for settings in chips(4, 4).into_iter().map(tiny) {
            let result = run_on(&settings, stress(16, seed, 30, 100), connected(4, 4, &settings));
            assert!(result.is_ok(), "seed {seed}: {result:?} {settings:?}");
        }
    }
}

#[test]
fn runs_are_deterministic() {
    for settings in chips(4, 4) {
        let once = || run_on(&settings, stress(16, 3, 60, 60), connected(4, 4, &settings));
        assert_eq!(once().unwrap(), once().unwrap());
    }
}
