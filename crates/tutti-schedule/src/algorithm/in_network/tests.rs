use super::*;
use crate::algorithm::check;
use crate::{Mark, verify};

const NOTATIONS: [&str; 4] =
    ["in_network", "in_network:segments=3", "in_network:all,segments=2", "in_network:1+0"];

#[test]
fn it_does_what_it_claims_at_every_rank_count() {
    for ranks in 2..=64 {
        NOTATIONS.iter().for_each(|notation| check::claims(&ENTRY, notation, ranks));
    }
}

#[test]
fn reductions_are_the_sequential_sum_where_ranks_fold() {
    for notation in NOTATIONS {
        let found = check::performs(notation, Collective::AllReduce, 7);
        assert!(found.reproducibility.sequential && found.rendezvous_safe(), "{notation}");
    }
}

#[test]
fn the_critical_path_is_exact_in_lockstep() {
    for ranks in [2, 3, 5, 8, 16, 21] {
        for collective in Collective::ALL {
            if ENTRY.collectives.contains(&collective.name()) {
                let exact = check::critical_path_is_exact("in_network", collective, ranks);
                assert_eq!(exact, collective != Collective::ReduceScatter, "{collective}");
            }
        }
        for notation in ["in_network:0+1", "in_network:all", "in_network:segments=2"] {
            assert!(!check::critical_path_is_exact(notation, Collective::AllReduce, ranks));
        }
    }
}

/// R roots and C segments: R C combines and as many multicasts, and every rank sends each chunk
/// once.
#[test]
fn every_chunk_goes_up_and_comes_down_once() {
    let schedule = crate::algorithm::build("in_network:0+3,segments=5", Collective::AllReduce, 8);
    let schedule = schedule.unwrap();
    let proved = verify(&*schedule).unwrap();
    assert_eq!((proved.combines, proved.multicasts), (10, 10));
    assert_eq!((proved.messages, proved.reductions), (2 * 10 * 7, 10 * 7));
    let mut step = Step::new();
    for rank in (0..8).map(RankId) {
        let mut sent = vec![0; 10];
        for index in 0..schedule.steps(rank) {
            step.clear();
            schedule.step(rank, index, &mut step);
            for mark in step.marks() {
                let place = match *mark {
                    Mark::Multicast(run) => run.start,
                    Mark::Contribution(place) => place,
                    Mark::Combine(..) => continue,
                };
                sent[step.sends[place as usize].chunks.start as usize] += 1;
            }
        }
        assert_eq!(sent, [1; 10]);
    }
}

#[test]
fn errors_point_at_the_byte() {
    let cases = [
        ("8", 0, "root 8 is not one of the ranks 0 to 7"),
        ("0+1+0", 4, "root 0 appears twice"),
        ("0,1", 2, "a second list of roots"),
        ("segments=2,segments=3", 11, "`segments` appears twice"),
        ("0, segments=0", 3, "invalid number of segments `0`: expected 1 to 1048576"),
        ("corners", 0, "invalid root `corners`"),
        ("all,segments=1000000", 0, "8000000 segments in total"),
    ];
    for (argument, place, part) in cases {
        let notation = format!("in_network:{argument}");
        match crate::algorithm::build(&notation, Collective::AllReduce, 8).err() {
            Some(AlgorithmError::Argument { at, problem, .. }) => {
                assert!(at == place && problem.contains(part), "{argument}: {at}: {problem}");
            }
            other => panic!("{argument}: {other:?}"),
        }
    }
    let refused = |notation, collective| {
        crate::algorithm::build(notation, collective, 8).err().unwrap().to_string()
    };
    let broadcast = Collective::Broadcast { root: RankId(1) };
    assert!(refused("in_network:3", broadcast).contains("broadcast takes no roots"));
    assert!(
        refused("in_network:segments=2", Collective::Barrier).contains("a barrier has no payload")
    );
}
