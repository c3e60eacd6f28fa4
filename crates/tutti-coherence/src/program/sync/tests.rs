//! Tests of mutual exclusion and barriers under many interleavings.

use super::super::{Program, Thread, interleave};
use super::*;
use crate::program::{Array, Core, Memory};

/// Number of cores, number of interleavings.
const CASES: &[(u32, u64)] = &[(1, 3), (2, 40), (5, 40), (16, 20), (64, 6)];

#[derive(Clone, Copy)]
enum Lock {
    None,
    Spin(Spinlock),
    Ticket(TicketLock),
}

/// Returns a program in which each core increments a word five times, by a load and a store.
fn counting(cores: u32, lock: impl FnOnce(&mut Memory) -> Lock) -> Program {
    let mut memory = Memory::new();
    let (lock, sum) = (lock(&mut memory), memory.word(0));
    let body = move |core: Core| async move {
        for _ in 0..5 {
            match lock {
                Lock::None => {}
                Lock::Spin(lock) => lock.lock(&core).await,
                Lock::Ticket(lock) => lock.lock(&core).await,
            }
            let before = core.load(sum).await;
            core.store(sum, before + 1).await;
            match lock {
                Lock::None => {}
                Lock::Spin(lock) => lock.unlock(&core).await,
                Lock::Ticket(lock) => lock.unlock(&core).await,
            }
        }
    };
    let check = move |memory: &[u64]| {
        let (got, expected) = (memory[usize::try_from(sum / 8).unwrap()], 5 * u64::from(cores));
        if got == expected { Ok(()) } else { Err(format!("{got} of {expected}")) }
    };
    let threads = (0..cores).map(|id| Thread::new(id, cores, body)).collect();
    Program { threads, memory: memory.into_words(), check: Box::new(check) }
}

fn failures(cores: u32, seeds: u64, program: impl Fn() -> Program) -> usize {
    let run = |seed| interleave(program(), seed, 10_000_000);
    (0..seeds).filter(|&seed| run(seed).is_err() && cores > 1).count()
}

#[test]
fn locks_provide_mutual_exclusion() {
    for &(cores, seeds) in CASES {
        let spin = || counting(cores, |memory| Lock::Spin(Spinlock::new(memory)));
        let ticket = || counting(cores, |memory| Lock::Ticket(TicketLock::new(memory)));
        for seed in 0..seeds {
            interleave(spin(), seed, 10_000_000).unwrap();
            interleave(ticket(), seed, 10_000_000).unwrap();
        }
    }
}

#[test]
fn without_a_lock_updates_are_lost() {
    assert!(failures(5, 40, || counting(5, |_| Lock::None)) > 20);
}

/// Returns a program in which each core writes the number of each of six rounds, and reads those of
/// all cores after the barrier.
fn rounds(cores: u32, barrier: impl Fn(&mut Memory) -> Option<Shared>) -> Program {
    let mut memory = Memory::new();
    let shared = barrier(&mut memory);
    let seen: Array = memory.zeros(cores as usize);
    let wrong = memory.word(0);
    let body = move |core: Core| async move {
        let barrier = shared.map(Shared::barrier);
        for round in 1..=6 {
            core.store(seen.at(core.id() as usize), round).await;
            if let Some(barrier) = &barrier {
                barrier.wait(&core).await;
            }
            for other in 0..core.cores() as usize {
                // The other can be one round ahead, but not behind, and not two ahead.
                let at = core.load(seen.at(other)).await;
                if at < round || at > round + 1 {
                    core.fetch_add(wrong, 1).await;
                }
            }
        }
    };
    let check = move |memory: &[u64]| match memory[usize::try_from(wrong / 8).unwrap()] {
        0 => Ok(()),
        wrong => Err(format!("{wrong} cores in a wrong round")),
    };
    let threads = (0..cores).map(|id| Thread::new(id, cores, body)).collect();
    Program { threads, memory: memory.into_words(), check: Box::new(check) }
}

#[derive(Clone, Copy)]
enum Shared {
    Central(CentralBarrier),
    Tree(TreeBarrier),
}

impl Shared {
    fn barrier(self) -> Barrier {
        match self {
            Shared::Central(barrier) => barrier.into(),
            Shared::Tree(barrier) => barrier.into(),
        }
    }
}

#[test]
fn no_core_passes_a_barrier_early() {
    for &(cores, seeds) in CASES {
        for seed in 0..seeds {
            let central =
                rounds(cores, |memory| Some(Shared::Central(CentralBarrier::new(memory))));
            interleave(central, seed, 1_000_000).unwrap();
            let tree = rounds(cores, |memory| Some(Shared::Tree(TreeBarrier::new(memory, cores))));
            interleave(tree, seed, 1_000_000).unwrap();
        }
    }
}

#[test]
fn without_a_barrier_cores_diverge() {
    assert!(failures(5, 40, || rounds(5, |_| None)) > 35);
}

#[test]
fn the_region_of_interest_counts_the_work_between_its_barriers() {
    let mut memory = Memory::new();
    let shared = TreeBarrier::new(&mut memory, 7);
    let body = move |core: Core| async move {
        let barrier = Barrier::from(shared);
        core.compute(1000);
        barrier.begin(&core).await;
        core.compute(100);
        barrier.end(&core).await;
        core.compute(1000);
    };
    for seed in 0..30 {
        let threads = (0..7).map(|id| Thread::new(id, 7, body)).collect();
        let memory = vec![0; 7 * 16];
        let program = Program { threads, memory, check: Box::new(|_| Ok(())) };
        let tally = interleave(program, seed, 10_000).unwrap();
        assert_eq!(tally.region_marks, [1, 1]);
        assert!((700..1000).contains(&tally.region), "{}", tally.region);
    }
}

#[test]
fn every_core_receives_the_maximum_of_every_round() {
    for &(cores, seeds) in CASES {
        for (seed, tree) in (0..seeds).flat_map(|seed| [(seed, false), (seed, true)]) {
            let mut memory = Memory::new();
            let shared = if tree {
                Shared::Tree(TreeBarrier::new(&mut memory, cores))
            } else {
                Shared::Central(CentralBarrier::new(&mut memory))
            };
            let wrong = memory.word(0);
            let body = move |core: Core| async move {
                let barrier = shared.barrier();
                for round in 0..5 {
                    // Decreases from round to round, so a stale maximum would be detected.
                    let number =
                        |id: u32| f64::from((id * 7 + 3 * round) % 64) / f64::from(1 + round);
                    let largest = barrier.largest(&core, number(core.id())).await;
                    let expected = (0..cores).map(number).fold(0.0, f64::max);
                    if largest.to_bits() != expected.to_bits() {
                        core.fetch_add(wrong, 1).await;
                    }
                    barrier.wait(&core).await;
                }
            };
            let threads = (0..cores).map(|id| Thread::new(id, cores, body)).collect();
            let check = move |memory: &[u64]| match memory[usize::try_from(wrong / 8).unwrap()] {
                0 => Ok(()),
                wrong => Err(format!("{wrong} wrong maxima")),
            };
            let program = Program { threads, memory: memory.into_words(), check: Box::new(check) };
            interleave(program, seed, 1_000_000).unwrap();
        }
    }
}
