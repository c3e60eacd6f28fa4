//! Verification, steps and lengths by hand, loads within blocks, and refusals.

use std::collections::BTreeMap;

use super::*;
use crate::algorithm::{build, check};
use crate::{OnlyPhase, Step};
use tutti_units::ids::RankId;

fn laid_out(argument: &str, ranks: u32) -> Arc<dyn Schedule> {
    let notation = format!("concentrated_multi_tree:{argument}");
    build(&notation, Collective::AllReduce, ranks).unwrap()
}

/// Returns all steps of a rank in a phase, with their names.
fn steps(schedule: &Arc<dyn Schedule>, phase: u32, rank: u32) -> Vec<(String, Step)> {
    let part = OnlyPhase::new(Arc::clone(schedule), phase).unwrap();
    let step = |index| {
        let mut step = Step::new();
        part.step(RankId(rank), index, &mut step);
        (part.step_name(RankId(rank), index), step)
    };
    (0..part.steps(RankId(rank))).map(step).collect()
}

#[test]
fn it_does_what_it_claims() {
    for (columns, rows) in [(4, 4), (4, 6), (6, 6), (8, 4), (8, 8), (10, 6), (12, 4), (16, 8)] {
        for accumulators in ["", ",accumulators=1", ",accumulators=2", ",accumulators=4"] {
            let notation = format!("concentrated_multi_tree:{columns}x{rows}{accumulators}");
            let proof = check::performs(&notation, Collective::AllReduce, columns * rows);
            assert!(proof.rendezvous_safe() && proof.reproducibility.same_on_all_ranks);
        }
    }
    for ranks in 2..=256 {
        check::claims(&ENTRY, ENTRY.name, ranks);
    }
}

/// Golden: steps of the reductions, within blocks and between them: 2 + 2 at 4x4, 2 + 8 at 8x8,
/// where MultiTree on the mesh of all ranks takes 8 and 32.
#[test]
fn steps_are_few() {
    for (argument, ranks, between) in [("4x4", 16, 2), ("8x8", 64, 8)] {
        for accumulators in [1, 2, 4] {
            let schedule = laid_out(&format!("{argument},accumulators={accumulators}"), ranks);
            assert_eq!(schedule.phases(), 3);
            let slots: std::collections::BTreeSet<String> = (0..ranks)
                .flat_map(|rank| steps(&schedule, 1, rank))
                .map(|(name, _)| name)
                .collect();
            assert_eq!(slots.len(), 2 * between, "{argument}, {accumulators}: {slots:?}");
            for phase in [0, 2] {
                assert!((0..ranks).all(|rank| steps(&schedule, phase, rank).len() == 2));
            }
        }
    }
}

/// The maximum number of chunks over one link of a block in a step, over the chunks of the payload.
/// With four accumulators a quarter and then an eighth in each direction; with two or one, a
/// quarter or a half of the chunks sent, twice.
#[test]
fn lengths_in_a_group() {
    for (accumulators, expected) in
        [(4, [(1, 4), (1, 8)]), (2, [(1, 4), (1, 4)]), (1, [(1, 2), (1, 2)])]
    {
        for (argument, ranks) in [("4x4", 16), ("8x8", 64)] {
            let schedule = laid_out(&format!("{argument},accumulators={accumulators}"), ranks);
            let chunks = schedule.shape().chunks;
            assert_eq!(chunks, accumulators * ranks / 4);
            for (phase, order) in [(0, [0, 1]), (2, [1, 0])] {
                for (at, index) in order.into_iter().enumerate() {
                    let all = (0..ranks)
                        .flat_map(|rank| steps(&schedule, phase, rank)[at].1.sends.clone());
                    let (share, of) = expected[index];
                    let longest = all.map(|send| send.chunks.len()).max();
                    assert_eq!(longest, Some(share * chunks / of), "{argument}, {accumulators}");
                }
            }
        }
    }
}

/// Golden: the accumulators of blocks of 4x4; between blocks only they communicate, with mirror
/// images.
#[test]
fn accumulators_are_mirror_images() {
    for (accumulators, expected) in
        [(1, vec![5, 6, 9, 10]), (2, vec![1, 2, 4, 7, 8, 11, 13, 14]), (4, (0..16).collect())]
    {
        let schedule = laid_out(&format!("4x4,accumulators={accumulators}"), 16);
        let busy: Vec<u32> =
            (0..16).filter(|&rank| !steps(&schedule, 1, rank).is_empty()).collect();
        assert_eq!(busy, expected);
        for rank in 0..16 {
            for send in steps(&schedule, 1, rank).iter().flat_map(|(_, step)| &step.sends) {
                let (x, y) = (rank % 4, rank / 4);
                let images = [y * 4 + 3 - x, (3 - y) * 4 + x];
                assert!(images.contains(&send.peer.0), "{rank} sends to {}", send.peer);
                assert_eq!(send.chunks.len(), 1);
            }
        }
    }
}

/// In a phase within blocks all ranks in the same seat send the same amount. If all ranks
/// accumulate, all ranks do, and between blocks the ranks of each block.
#[test]
fn symmetric_ranks_have_symmetric_loads() {
    for (argument, columns, ranks) in [("4x4", 4, 16), ("8x8", 8, 64), ("8x4", 8, 32)] {
        for accumulators in [1, 2, 4] {
            let schedule = laid_out(&format!("{argument},accumulators={accumulators}"), ranks);
            let groups = Groups::new(Grid { columns, rows: ranks / columns }, accumulators);
            for phase in 0..3 {
                let mut loads: BTreeMap<(u32, bool), Vec<u32>> = BTreeMap::new();
                for group in 0..ranks / 4 {
                    for seat in [[0, 0], [1, 0], [0, 1], [1, 1]] {
                        let all = steps(&schedule, phase, groups.member(group, seat));
                        let sent = all.iter().flat_map(|(_, step)| &step.sends);
                        let sent = sent.map(|send| send.chunks.len()).sum();
                        let accumulates = groups.accumulators().contains(&seat);
                        let alike = if phase == 1 { group } else { u32::from(seat == [1, 1]) };
                        loads.entry((alike, accumulates)).or_default().push(sent);
                    }
                }
                for (key, loads) in loads.into_iter().filter(|_| accumulators != 1 || phase == 1) {
                    assert!(
                        loads.windows(2).all(|pair| pair[0] == pair[1]),
                        "{argument} {key:?} {loads:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn invalid_arguments_are_refused() {
    for (argument, ranks, at, expected) in [
        ("4x5", 20, 0, "4x5 does not divide into 2x2 blocks: expected even sides of at least 4"),
        ("2x8", 16, 0, "2x8 does not divide into 2x2 blocks"),
        ("4x4", 8, 0, "4x4 is 16 ranks: expected sizes whose product is 8"),
        ("4", 4, 0, "invalid grid `4`: expected columns and rows, such as `8x4`"),
        ("4x4,accumulators=3", 16, 4, "unknown option `accumulators=3`: expected accumulators=K"),
        ("4x4,both", 16, 4, "unknown option `both`"),
        ("64x64", 4096, 0, "64x64 is too large: expected at most 1024 ranks"),
    ] {
        let notation = format!("concentrated_multi_tree:{argument}");
        match build(&notation, Collective::AllReduce, ranks).err() {
            Some(AlgorithmError::Argument { at: found, problem, .. }) => {
                assert!(
                    found == at && problem.contains(expected),
                    "{argument}: {found}: {problem}"
                );
            }
            other => panic!("{argument}: {other:?}"),
        }
    }
    for ranks in [4, 8, 25, 4096] {
        let error = build(ENTRY.name, Collective::AllReduce, ranks).err().unwrap().to_string();
        assert!(error.contains("it needs the square of an even number from 4 to 32"), "{error}");
    }
}
