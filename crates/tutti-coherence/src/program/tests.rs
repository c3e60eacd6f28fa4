//! Tests of threads, and of runs without timing.

use super::*;

fn program(cores: u32, words: usize, body: fn(u32) -> Vec<Access>) -> Program {
    let thread = |id| {
        Thread::new(id, cores, move |core| async move {
            for access in body(core.id()) {
                match access {
                    Access::Compute { cycles } => core.compute(cycles),
                    Access::Store { address, value } => core.store(address, value).await,
                    Access::SpinWhile { address, value } => {
                        _ = core.spin_while(address, value).await
                    }
                    Access::FetchAdd { address, value } => _ = core.fetch_add(address, value).await,
                    other => panic!("{other:?}"),
                }
            }
        })
    };
    let check = |_: &[u64]| Ok(());
    Program {
        threads: (0..cores).map(thread).collect(),
        memory: vec![0; words],
        check: Box::new(check),
    }
}

#[test]
fn a_thread_requests_pending_work_before_its_next_access_and_at_its_end() {
    let mut thread = Thread::new(3, 4, |core| async move {
        assert_eq!((core.id(), core.cores()), (3, 4));
        core.compute(2);
        core.compute(3);
        let word = core.load(8).await;
        assert_eq!(core.compare_swap(16, word, 5).await, 9);
        core.compute(1);
    });
    assert_eq!(thread.resume(77), Some(Access::Compute { cycles: 5 }));
    assert_eq!(thread.resume(77), Some(Access::Load { address: 8 }));
    let expected = Access::CompareSwap { address: 16, expected: 42, value: 5 };
    assert_eq!(thread.resume(42), Some(expected));
    assert_eq!(thread.resume(9), Some(Access::Compute { cycles: 1 }));
    assert_eq!(thread.resume(0), None);
    assert_eq!(thread.resume(0), None);
}

#[test]
fn shares_of_work_have_no_gaps() {
    for (length, cores) in [(0, 3), (7, 1), (7, 3), (64, 64), (5, 8)] {
        let mut next = 0;
        for id in 0..cores {
            let mut seen = 0..0;
            let mut thread = Thread::new(id, cores, |core| {
                seen = core.share(length);
                async {}
            });
            assert_eq!(thread.resume(0), None);
            assert_eq!(seen.start, next);
            assert!(seen.len() <= length.div_ceil(cores as usize));
            next = seen.end;
        }
        assert_eq!(next, length);
    }
}

#[test]
fn a_spin_ends_when_the_word_changes_and_deadlocks_otherwise() {
    let hand_over = |id| match id {
        0 => {
            vec![Access::SpinWhile { address: 0, value: 0 }, Access::Store { address: 8, value: 1 }]
        }
        _ => vec![Access::Compute { cycles: 9 }, Access::Store { address: 0, value: 7 }],
    };
    for seed in 0..20 {
        let tally = interleave(program(2, 2, hand_over), seed, 100).unwrap();
        assert_eq!(tally.memory, [7, 1]);
        assert_eq!((tally.instructions, tally.loads, tally.stores), (12, 1, 2));
    }
    let forever = |_| vec![Access::SpinWhile { address: 8, value: 0 }];
    let error = interleave(program(2, 2, forever), 1, 100).unwrap_err();
    assert!(matches!(error, InterleaveError::Deadlock { waiting: 2, address: 8, value: 0, .. }));
}

#[test]
fn invalid_addresses_and_endless_programs_are_rejected() {
    let outside = |_| vec![Access::Store { address: 16, value: 0 }];
    let error = interleave(program(1, 2, outside), 0, 9).unwrap_err();
    assert_eq!(error, InterleaveError::Address { thread: 0, address: 16, end: 16 });
    let between = |_| vec![Access::Store { address: 4, value: 0 }];
    let error = interleave(program(1, 2, between), 0, 9).unwrap_err();
    assert_eq!(error, InterleaveError::Address { thread: 0, address: 4, end: 16 });
    let long = |_| vec![Access::FetchAdd { address: 0, value: 1 }; 50];
    let error = interleave(program(1, 2, long), 0, 9).unwrap_err();
    assert_eq!(error, InterleaveError::Endless { accesses: 9 });
}

#[test]
fn the_check_detects_lost_updates_but_no_atomic_ones() {
    let counter = |atomic: bool| {
        let body = move |core: Core| async move {
            for _ in 0..4 {
                if atomic {
                    core.fetch_add(0, 1).await;
                } else {
                    let word = core.load(0).await;
                    core.store(0, word + 1).await;
                }
            }
        };
        let check = |memory: &[u64]| match memory[0] {
            12 => Ok(()),
            other => Err(format!("{other} of 12")),
        };
        let threads = (0..3).map(|id| Thread::new(id, 3, body)).collect();
        Program { threads, memory: vec![0], check: Box::new(check) }
    };
    let wrong =
        |atomic| (0..50).filter(|&seed| interleave(counter(atomic), seed, 99).is_err()).count();
    assert_eq!(wrong(true), 0);
    assert!(wrong(false) > 10);
}

mod traces {
    use super::super::trace::{PAGE_BYTES, Step, Trace};
    use super::super::{ProgramError, interleave};

    fn problem(cores: Vec<Vec<Step>>) -> String {
        match (Trace { cores }).program() {
            Err(ProgramError::Trace { problem }) => problem,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("the trace is a program"),
        }
    }

    #[test]
    fn a_trace_is_repeated_access_by_access() {
        // The second page that is touched comes second in memory.
        let far = 7 * PAGE_BYTES + 8;
        let one = vec![Step::Compute(5), Step::Update(far), Step::Barrier, Step::Load(16)];
        let other = vec![Step::Update(far), Step::Store(16), Step::Barrier];
        let program = Trace { cores: vec![one, other] }.program().unwrap();
        let tally = interleave(program, 1, 1_000).unwrap();
        assert_eq!(tally.memory[1], 2, "both added to the word");
        assert_eq!(tally.memory[512 + 2], 1, "core 1 stored its number");
    }

    #[test]
    fn traces_that_cannot_be_repeated_are_refused() {
        assert!(problem(vec![]).contains("no core"));
        assert!(problem(vec![vec![Step::Load(4)]]).contains("core 0 accesses 0x4"));
        let differing = vec![vec![Step::Barrier], vec![]];
        assert!(problem(differing).contains("core 1 has 0 barriers and core 0 has 1"));
    }
}
