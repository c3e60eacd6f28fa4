use super::super::check::{critical_path_is_exact, folds_in_rank_order, performs};
use super::super::search::{self, Order};
use super::super::{build as lay_out, critical_path};
use super::*;
use crate::collective::Collective;

fn schedule(notation: &str, ranks: u32) -> Arc<dyn Schedule> {
    lay_out(&format!("recursive_multiplying:{notation}"), Collective::AllReduce, ranks).unwrap()
}

/// Returns the destinations and sources of each step of a rank.
fn peers(schedule: &dyn Schedule, rank: u32) -> Vec<(Vec<u32>, Vec<u32>)> {
    let step = |index| {
        let mut step = Step::new();
        schedule.step(RankId(rank), index, &mut step);
        let ranks = |messages: &[crate::Message]| {
            let mut ranks: Vec<u32> = messages.iter().map(|message| message.peer.0).collect();
            ranks.sort_unstable();
            ranks
        };
        (ranks(&step.sends), ranks(&step.recvs))
    };
    (0..schedule.steps(RankId(rank))).map(step).collect()
}

fn exchange(peers: &[u32]) -> (Vec<u32>, Vec<u32>) {
    (peers.to_vec(), peers.to_vec())
}

fn send(peers: &[u32]) -> (Vec<u32>, Vec<u32>) {
    (peers.to_vec(), Vec::new())
}

fn recv(peers: &[u32]) -> (Vec<u32>, Vec<u32>) {
    (Vec::new(), peers.to_vec())
}

/// Derivation: stage a3 groups 0 1 2 and 3 4 5; stage a2 pairs ranks three apart (Figs 5 and 17).
#[test]
fn six_ranks_three_by_two() {
    let schedule = schedule("a3,a2", 6);
    let expected: [[&[u32]; 2]; 6] = [
        [&[1, 2], &[3]],
        [&[0, 2], &[4]],
        [&[0, 1], &[5]],
        [&[4, 5], &[0]],
        [&[3, 5], &[1]],
        [&[3, 4], &[2]],
    ];
    for (rank, stages) in (0..).zip(expected) {
        assert_eq!(peers(&*schedule, rank), stages.map(exchange), "rank {rank}");
    }
    let mut step = Step::new();
    schedule.step(RankId(1), 0, &mut step);
    let order: Vec<u32> = step.sends.iter().map(|send| send.peer.0).collect();
    assert_eq!(order, [2, 0], "message i goes to digit + i");
    assert_eq!(schedule.step_name(RankId(1), 1), "a2");
}

/// Derivation: pairs 0 1, 2 3, 4 5 collapse to 1, 3, 5, which are w = 0, 1, 2; rank 6 is w = 3. The
/// exchanges pair w 0 1 and 2 3 (ranks 1 3, 5 6), then w 0 2 and 1 3 (ranks 1 5, 3 6). Figure 20.
#[test]
fn seven_ranks_split() {
    let schedule = schedule("c6m2,a2,a2,e6m2", 7);
    for (rank, collector) in [(0, 1), (2, 3), (4, 5)] {
        assert_eq!(peers(&*schedule, rank), [send(&[collector]), recv(&[collector])]);
    }
    for (rank, from, first, second) in [(1, 0, 3, 5), (3, 2, 1, 6), (5, 4, 6, 1)] {
        let expected = [recv(&[from]), exchange(&[first]), exchange(&[second]), send(&[from])];
        assert_eq!(peers(&*schedule, rank), expected, "rank {rank}");
    }
    assert_eq!(peers(&*schedule, 6), [exchange(&[5]), exchange(&[3])]);
    assert_eq!(schedule.step_name(RankId(6), 0), "a2");
    assert_eq!(schedule.step_name(RankId(0), 1), "e6m2");
    assert_eq!(schedule.step_name(RankId(1), 3), "e6m2");
}

/// Derivation: w = rank - 1 in two groups of three, ranks 1 2 3 and 4 5 6; rank 0 sends to group 0
/// mod 2. Then pairs w, w + 3: ranks 1 4, 2 5, 3 6; rank 0 receives from pair 0 mod 3. Figure 21.
#[test]
fn seven_ranks_one_merged() {
    let schedule = schedule("m1g2a3,n1g3a2", 7);
    assert_eq!(peers(&*schedule, 0), [send(&[1, 2, 3]), recv(&[1, 4])]);
    let first = |others: &[u32]| (others.to_vec(), [&[0], others].concat());
    assert_eq!(peers(&*schedule, 1), [first(&[2, 3]), (vec![0, 4], vec![4])]);
    assert_eq!(peers(&*schedule, 2), [first(&[1, 3]), exchange(&[5])]);
    assert_eq!(peers(&*schedule, 3), [first(&[1, 2]), exchange(&[6])]);
    assert_eq!(peers(&*schedule, 4), [exchange(&[5, 6]), (vec![0, 1], vec![1])]);
    assert_eq!(peers(&*schedule, 5), [exchange(&[4, 6]), exchange(&[2])]);
    assert_eq!(peers(&*schedule, 6), [exchange(&[4, 5]), exchange(&[3])]);
    assert_eq!(schedule.step_name(RankId(0), 1), "n1g3a2");
}

/// Derivation: w = rank - 3 in groups 3 4 and 5 6; remainder ranks 0 and 2 send to group 0, rank 1
/// to group 1. Then pairs w, w + 2: ranks 3 5 and 4 6; 0 and 2 receive from pair 0, 1 from pair 1.
/// Figure 22.
#[test]
fn seven_ranks_three_merged() {
    let schedule = schedule("m3g2a2,n3g2a2", 7);
    assert_eq!(peers(&*schedule, 0), [send(&[3, 4]), recv(&[3, 5])]);
    assert_eq!(peers(&*schedule, 1), [send(&[5, 6]), recv(&[4, 6])]);
    assert_eq!(peers(&*schedule, 2), [send(&[3, 4]), recv(&[3, 5])]);
    assert_eq!(peers(&*schedule, 3), [(vec![4], vec![0, 2, 4]), (vec![0, 2, 5], vec![5])]);
    assert_eq!(peers(&*schedule, 4), [(vec![3], vec![0, 2, 3]), (vec![1, 6], vec![6])]);
    assert_eq!(peers(&*schedule, 5), [(vec![6], vec![1, 6]), (vec![0, 2, 3], vec![3])]);
    assert_eq!(peers(&*schedule, 6), [(vec![5], vec![1, 5]), (vec![1, 4], vec![4])]);
}

#[test]
fn every_schedule_of_few_ranks_reduces_once_and_has_the_closed_form_it_claims() {
    let mut exact = 0;
    for ranks in 2..=32 {
        for notation in search::all(ranks, Order::Ordered) {
            let name = format!("recursive_multiplying:{notation}");
            performs(&name, Collective::AllReduce, ranks);
            exact += u32::from(critical_path_is_exact(&name, Collective::AllReduce, ranks));
        }
    }
    assert!(exact > 0);
}

/// With more remainder ranks a group folds every G-th of them, which are not consecutive.
#[test]
fn factored_and_split_schedules_and_merges_of_one_fold_in_rank_order() {
    let one_remainder = |notation: &Notation| {
        matches!(notation.stages()[0], notation::Stage::Merge { remainder: 1, .. })
    };
    for ranks in 2..=24 {
        let notations = search::factored(ranks, Order::Ordered)
            .chain(search::split(ranks, Order::Ordered))
            .chain(search::merged(ranks, Order::Ordered).take_while(one_remainder));
        for notation in notations {
            let name = format!("recursive_multiplying:{notation}");
            folds_in_rank_order(&name, Collective::AllReduce, ranks);
        }
    }
}

#[test]
fn alone_it_performs_all_reduce_and_barrier_on_any_number_of_ranks() {
    for ranks in 2..=128 {
        for collective in [Collective::AllReduce, Collective::Barrier] {
            performs("recursive_multiplying", collective, ranks);
            performs("recursive_multiplying:ratio=1", collective, ranks);
        }
    }
}

/// Table 2 of the paper, in the pipelining postal model: alpha_p 1340 ns and alpha_r 340 ns.
#[test]
fn closed_forms_of_the_paper() {
    let time = |text: &str| -> u32 {
        let notation = Notation::parse(text).unwrap();
        stage_bound(&notation).iter().map(|stage| 1340 + 340 * stage.messages).sum()
    };
    assert_eq!(time("a4"), 2360);
    assert_eq!(time("a6"), 3040);
    assert_eq!(time("c4m2,a2,a2,e4m2"), 6720);
    assert_eq!(time("a8,a3,a4"), 8100);
    assert_eq!(time("a8,a4,a4"), 8440);
}

#[test]
fn closed_forms_exist_where_delays_come_back_and_only_there() {
    for (notation, ranks, exact) in [
        ("a3,a2", 6, true),
        ("c4m2,a2,a2,e4m2", 6, false),
        ("c6m2,a2,a2,e6m2", 7, true),
        ("c4m4,e4m4", 4, true),
        ("c8m2,a4,e8m2", 8, true),
        ("m1g2a3,n1g3a2", 7, false),
        ("m6g2a3,n6g3a2", 12, false),
    ] {
        let name = format!("recursive_multiplying:{notation}");
        let found = critical_path(&name, Collective::AllReduce, ranks).unwrap();
        assert_eq!(found.is_some(), exact, "{notation}");
    }
}

#[test]
fn arguments_that_do_not_fit_point_at_the_character() {
    let error = |argument: &str, ranks| {
        let name = format!("recursive_multiplying:{argument}");
        match lay_out(&name, Collective::AllReduce, ranks).map(|_| ()).unwrap_err() {
            AlgorithmError::Argument { at, problem, .. } => (at, problem),
            other => panic!("{other}"),
        }
    };
    assert_eq!(error("a3,a3", 6).0, 4);
    assert_eq!(error("a3,b2", 6).0, 3);
    assert_eq!(error("ratio=0.5", 6).0, 6);
    assert!(error("c7m2,a2,e7m2", 8).1.ends_with("; use 6 or 8"));
}

#[test]
fn a_million_ranks_are_laid_out_lazily() {
    let name = "recursive_multiplying";
    for ranks in [1 << 20, (1 << 20) - 3] {
        let schedule = lay_out(name, Collective::AllReduce, ranks).unwrap();
        let mut step = Step::new();
        let mut messages = (0_u64, 0_u64);
        for rank in (0..ranks).map(RankId) {
            for index in 0..schedule.steps(rank) {
                step.clear();
                schedule.step(rank, index, &mut step);
                messages.0 += step.sends.len() as u64;
                messages.1 += step.recvs.len() as u64;
            }
        }
        assert!(messages.0 > u64::from(ranks));
        assert_eq!(messages.0, messages.1);
    }
}
