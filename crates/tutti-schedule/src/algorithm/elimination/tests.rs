use super::super::build as lay_out;
use super::super::check::{critical_path_is_exact, folds_in_rank_order, performs};
use super::*;
use crate::collective::Collective;

const VARIANTS: [&str; 3] = ["elimination:3-2", "elimination:3-2_overlapping", "elimination:2-1"];

#[test]
fn every_variant_reduces_once_on_any_number_of_ranks() {
    for ranks in 2..=128 {
        performs("elimination", Collective::AllReduce, ranks);
        for name in VARIANTS {
            performs(name, Collective::AllReduce, ranks);
            performs(name, Collective::Barrier, ranks);
            folds_in_rank_order(name, Collective::AllReduce, ranks);
        }
    }
}

#[test]
fn closed_forms_are_exact_where_there_are_any() {
    for ranks in 2..=128_u32 {
        for name in VARIANTS {
            let exact = critical_path_is_exact(name, Collective::AllReduce, ranks);
            let surplus = ranks - (1 << ranks.ilog2());
            let returns = name == VARIANTS[2] && 2 * surplus > 1 << ranks.ilog2();
            assert_eq!(exact, surplus == 0 || returns, "{name} {ranks}");
        }
    }
}

/// Returns the peers of each step, sends then receives.
fn program(name: &str, ranks: u32, rank: u32) -> Vec<(Vec<u32>, Vec<u32>)> {
    let schedule = lay_out(name, Collective::AllReduce, ranks).unwrap();
    let peers = |messages: &[crate::Message]| messages.iter().map(|m| m.peer.0).collect();
    let step = |index| {
        let mut step = Step::new();
        schedule.step(RankId(rank), index, &mut step);
        (peers(&step.sends), peers(&step.recvs))
    };
    (0..schedule.steps(RankId(rank))).map(step).collect()
}

/// Figure 23: triples 0 1 2 and 3 4 5 eliminate 0 and 3; then 1 and 4, 2 and 5 exchange; 1 and 4
/// return.
#[test]
fn six_ranks_are_two_triples() {
    let swap = |peer| (vec![peer], vec![peer]);
    let expected = [
        vec![swap(1), (vec![2], vec![]), (vec![], vec![1])],
        vec![(vec![0], vec![0, 2]), swap(4), (vec![0], vec![])],
        vec![(vec![1], vec![0]), swap(5)],
        vec![swap(4), (vec![5], vec![]), (vec![], vec![4])],
        vec![(vec![3], vec![3, 5]), swap(1), (vec![3], vec![])],
        vec![(vec![4], vec![3]), swap(2)],
    ];
    for (rank, steps) in (0..).zip(expected) {
        assert_eq!(program("elimination", 6, rank), steps, "rank {rank}");
    }
    let schedule = lay_out("elimination", Collective::AllReduce, 6).unwrap();
    let names: Vec<String> = (0..3).map(|step| schedule.step_name(RankId(1), step)).collect();
    assert_eq!(names, ["3-2 elimination", "exchange 1", "return"]);
}

/// Derivation: f = 2, r = 3, so one triple 0 1 2 and one quadruple 3 4 5 6, whose 3 and 5 are
/// eliminated by 2-1 steps.
#[test]
fn seven_ranks_are_a_triple_and_a_quadruple() {
    let swap = |peer| (vec![peer], vec![peer]);
    assert_eq!(program("elimination", 7, 3), [(vec![4], vec![]), (vec![], vec![4])]);
    assert_eq!(
        program("elimination", 7, 4),
        [(vec![], vec![3]), swap(6), swap(1), (vec![3], vec![])]
    );
    assert_eq!(program("elimination", 7, 2), [(vec![1], vec![0]), swap(6)]);
}

/// Derivation: bits 0 and 1 of 7 are set. Level 0, nodes 0 to 6: 4 5 6 perform a 3-2 step that
/// eliminates 4. Level 1, nodes 01, 23, 56: member by member 0 2 5 and 1 3 6, which eliminates 0
/// and 1. 5, 2 and 3 return the result.
#[test]
fn seven_ranks_overlapping() {
    let swap = |peer| (vec![peer], vec![peer]);
    let name = "elimination:3-2_overlapping";
    assert_eq!(program(name, 7, 0), [swap(1), swap(2), (vec![5], vec![]), (vec![], vec![2])]);
    assert_eq!(program(name, 7, 3), [swap(2), (vec![1], vec![1, 6]), (vec![1], vec![])]);
    assert_eq!(program(name, 7, 4), [swap(5), (vec![6], vec![]), (vec![], vec![5])]);
    assert_eq!(program(name, 7, 5), [(vec![4], vec![4, 6]), (vec![2], vec![0]), (vec![4], vec![])]);
    assert_eq!(program(name, 7, 6), [(vec![5], vec![4]), (vec![3], vec![1])]);
}

#[test]
fn two_to_one_alone_is_recursive_doubling() {
    for ranks in [2, 6, 7, 13, 32] {
        for rank in 0..ranks {
            let doubling = program("recursive_doubling", ranks, rank);
            assert_eq!(program("elimination:2-1", ranks, rank), doubling);
        }
    }
}

#[test]
fn other_arguments_are_refused() {
    let error = lay_out("elimination:4-3", Collective::AllReduce, 6).map(|_| ()).unwrap_err();
    let expected = "`4-3` does not fit elimination: expected `3-2`, `3-2_overlapping` or `2-1`";
    assert_eq!(error.to_string(), expected);
}
