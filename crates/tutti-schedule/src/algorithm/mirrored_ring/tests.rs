//! Steps, rings and directions by hand, verification, closed forms, and the links that a level
//! needs.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::algorithm::{build, check};

const KINDS: [Collective; 3] =
    [Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather];

fn laid_out(argument: &str, collective: Collective, ranks: u32) -> Arc<dyn Schedule> {
    build(&format!("mirrored_ring:{argument}"), collective, ranks).unwrap()
}

/// Returns the pairs of ranks that exchange messages in the steps of a phase.
fn pairs(schedule: &dyn Schedule, phase: u32) -> BTreeSet<(u32, u32)> {
    let mut pairs = BTreeSet::new();
    for rank in (0..schedule.shape().ranks).map(RankId) {
        for index in (0..schedule.steps(rank)).filter(|&step| schedule.phase(rank, step) == phase) {
            let mut step = Step::new();
            schedule.step(rank, index, &mut step);
            pairs.extend(step.sends.iter().map(|send| (rank.0, send.peer.0)));
        }
    }
    pairs
}

#[test]
fn it_does_what_it_claims_in_lockstep() {
    for (grid, ranks) in [
        ("2x2", 4),
        ("4x4", 16),
        ("8x8", 64),
        ("8x8:4x2,2x4", 64),
        ("4x4:4x4", 16),
        ("8x8:4x4,2x2", 64),
        ("4x2:4x2", 8),
        ("6x4:3x2,2x2", 24),
        ("9x4:3x2,3x2", 36),
        ("6x6:2x3,3x2", 36),
        ("12x4:3x2,4x2", 48),
        ("8x12:2x3,2x2,2x2", 96),
        ("18x8:3x2,3x2,2x2", 144),
    ] {
        for (kind, words) in
            KINDS.into_iter().flat_map(|kind| ["", ",bidirectional"].map(|w| (kind, w)))
        {
            let notation = format!("mirrored_ring:{grid}{words}");
            let proof = check::performs(&notation, kind, ranks);
            assert!(proof.rendezvous_safe() && proof.reproducibility.same_on_all_ranks);
            assert!(check::critical_path_is_exact(&notation, kind, ranks));
        }
    }
    for ranks in 2..=256 {
        check::claims(&ENTRY, ENTRY.name, ranks);
        check::claims(&ENTRY, "mirrored_ring:bidirectional", ranks);
    }
}

/// Golden: L (N^(1/L) - 1) steps of a reduce_scatter; 15 and 6 on 16 ranks, 63, 14 and 9 on 64.
#[test]
fn steps_of_a_reduce_scatter() {
    for (argument, ranks, expected) in [
        ("4x4:4x4", 16, 15),
        ("4x4", 16, 6),
        ("8x8:8x8", 64, 63),
        ("8x8:4x2,2x4", 64, 14),
        ("8x8", 64, 9),
        ("8x8:4x4,2x2", 64, 18),
    ] {
        for words in ["", ",bidirectional"] {
            let schedule = laid_out(&format!("{argument}{words}"), Collective::AllReduce, ranks);
            assert_eq!(schedule.steps(RankId(ranks / 3)), 2 * expected, "{argument}{words}");
        }
    }
}

/// One block of all ranks is the ring along its cycle, except for the numbers of the chunks.
#[test]
fn a_single_block_is_the_ring() {
    let one = laid_out("4x4:4x4", Collective::AllReduce, 16);
    let ring = build("ring:4x4", Collective::AllReduce, 16).unwrap();
    assert_eq!((one.phases(), pairs(&*one, 0)), (1, pairs(&*ring, 0)));
    check::same_steps(&*one, &*ring);
}

/// Golden, from the published walk-through at 4x4: in the upper right block the chunk that ends at
/// 2 visits 3, 7, 6, 2; in the upper left block the chunk that ends at 1 visits 5, 4, 0, 1. The
/// rings across are {1, 2, 14, 13} and its equivalents.
#[test]
fn four_by_four_is_the_published_example() {
    let schedule = laid_out("4x4", Collective::ReduceScatter, 16);
    let (next, across) = (pairs(&*schedule, 0), pairs(&*schedule, 1));
    for path in [[3, 7, 6, 2], [5, 4, 0, 1]] {
        for pair in path.windows(2) {
            assert!(next.contains(&(pair[0], pair[1])), "{pair:?}");
        }
        // The source of a chunk's first message, and its destination three steps later.
        let mut step = Step::new();
        schedule.step(RankId(path[0]), 1, &mut step);
        let mut last = Step::new();
        schedule.step(RankId(path[3]), 3, &mut last);
        assert_eq!(step.sends[0].chunks, last.recvs[0].chunks);
        assert_eq!(step.sends[0].chunks.len(), 4);
    }
    let rings = |pairs: &BTreeSet<(u32, u32)>| -> BTreeSet<Vec<u32>> {
        let next: BTreeMap<u32, u32> = pairs.iter().copied().collect();
        let from = |rank: u32| {
            let ring: Vec<u32> =
                std::iter::successors(Some(rank), |at| Some(next[at])).take(4).collect();
            assert_eq!(next[&ring[3]], rank);
            ring
        };
        next.keys()
            .map(|&rank| from(rank))
            .filter(|ring| ring.iter().min() == ring.first())
            .collect()
    };
    let golden = |rings: [[u32; 4]; 4]| rings.map(|ring| ring.to_vec()).into_iter().collect();
    // Clockwise in the blocks; across, clockwise if the row and column of the member in the first
    // block have an even sum, otherwise counterclockwise.
    assert_eq!(
        rings(&next),
        golden([[0, 1, 5, 4], [2, 3, 7, 6], [8, 9, 13, 12], [10, 11, 15, 14]])
    );
    assert_eq!(
        rings(&across),
        golden([[0, 3, 15, 12], [1, 13, 14, 2], [4, 8, 11, 7], [5, 6, 10, 9]])
    );
}

/// Returns the number of edges over each gap of each line, in each direction.
fn over_gaps(pairs: &BTreeSet<(u32, u32)>, side: u32) -> BTreeMap<(bool, u32, u32, bool), u32> {
    let mut over = BTreeMap::new();
    for &(from, to) in pairs {
        let ((x, y), (to_x, to_y)) = ((from % side, from / side), (to % side, to / side));
        assert!(x == to_x || y == to_y, "{from} and {to} share no line");
        let (row, line, start, end) =
            if y == to_y { (true, y, x, to_x) } else { (false, x, y, to_y) };
        for gap in start.min(end)..start.max(end) {
            *over.entry((row, line, gap, start < end)).or_default() += 1;
        }
    }
    over
}

/// A mesh link and one parallel wire carry every level alone: at most two edges over a gap.
#[test]
fn each_level_fits_a_mesh_with_one_wire_parallel_to_each_link() {
    for (argument, side, most) in [("4x4", 4, vec![1, 1, 1]), ("8x8", 8, vec![1, 1, 2, 1, 1])] {
        let schedule = laid_out(argument, Collective::AllReduce, side * side);
        let loads = (0..schedule.phases()).map(|phase| over_gaps(&pairs(&*schedule, phase), side));
        let found: Vec<u32> = loads.map(|load| load.into_values().max().unwrap()).collect();
        assert_eq!(found, most, "{argument}");
    }
}

/// Golden: at 4x4 both levels in both directions need all 48 mesh links and all 48 segments of one
/// wire, and all four ports of each rank.
#[test]
fn both_directions_use_every_link_of_four_by_four() {
    let schedule = laid_out("4x4,bidirectional", Collective::AllReduce, 16);
    assert_eq!(schedule.phases(), 3);
    let levels = [0, 1].map(|phase| pairs(&*schedule, phase));
    assert_eq!(pairs(&*schedule, 2), levels[0]);
    let mut over = over_gaps(&levels[0], 4);
    for (gap, count) in over_gaps(&levels[1], 4) {
        *over.entry(gap).or_default() += count;
    }
    assert_eq!(over.len(), 48);
    assert!(over.values().all(|&count| count == 2));
    for rank in 0..16 {
        let ends = |of: fn(&(u32, u32)) -> u32| {
            levels.iter().flatten().filter(|pair| of(pair) == rank).count()
        };
        assert_eq!((ends(|pair| pair.0), ends(|pair| pair.1)), (4, 4));
    }
}

/// In every step mirror images send the same number of chunks, as do all ranks; each message has
/// the remaining share over its ring's size: G/4, G/16, G/64.
#[test]
fn all_ranks_send_the_same_amount_and_messages_shrink() {
    let schedule = laid_out("8x8", Collective::AllReduce, 64);
    let lengths = |rank| -> Vec<u32> {
        let sent = |index| {
            let mut step = Step::new();
            schedule.step(RankId(rank), index, &mut step);
            step.sends[0].chunks.len()
        };
        (0..schedule.steps(RankId(rank))).map(sent).collect()
    };
    let expected = [16, 16, 16, 4, 4, 4, 1, 1, 1, 1, 1, 1, 4, 4, 4, 16, 16, 16];
    assert!((0..64).all(|rank| lengths(rank) == expected));
}

#[test]
fn invalid_arguments_are_refused() {
    for (argument, ranks, at, expected) in [
        ("4x4", 8, 0, "4x4 is 16 ranks: expected sizes whose product is 8"),
        ("4x2", 8, 0, "4x2 is not a square with a side that is a power of two: expected blocks"),
        ("6x6", 36, 0, "6x6 is not a square with a side that is a power of two"),
        ("9x4:3x3,3x2", 36, 4, "the product of the blocks is 9x6: expected 9x4"),
        ("9x9:3x3,3x3", 81, 0, "a block of 3x3 has no Hamiltonian cycle"),
        ("8x8:2x2,2y2", 64, 8, "invalid grid `2y2`"),
        ("8x8:2x2,4x1", 64, 10, "a grid has at least 2 ranks"),
        ("8x8:2x2,4x4,both", 64, 12, "invalid grid `both`"),
        ("", 16, 0, "expected a grid such as `8x8`, or `bidirectional`"),
    ] {
        let error = build(&format!("mirrored_ring:{argument}"), Collective::AllReduce, ranks).err();
        match error {
            Some(AlgorithmError::Argument { at: found, problem, .. }) => {
                assert!(
                    found == at && problem.contains(expected),
                    "{argument}: {found}: {problem}"
                );
            }
            other => panic!("{argument}: {other:?}"),
        }
    }
    for notation in ["mirrored_ring", "mirrored_ring:bidirectional"] {
        let error = build(notation, Collective::AllReduce, 32).err().unwrap().to_string();
        assert!(error.contains("it needs a power of four, or a grid with blocks"), "{error}");
    }
}
