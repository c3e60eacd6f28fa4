use super::*;
use crate::algorithm::{build as lay_out, check};

const KINDS: [Collective; 3] =
    [Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather];

fn notation(radix: u32) -> String {
    format!("recursive_exchange:{radix}")
}

#[test]
fn it_does_what_it_claims_for_every_radix() {
    for (ranks, radix) in (2..=64).flat_map(|ranks| (2..=8).map(move |radix| (ranks, radix))) {
        check::claims(&ENTRY, &notation(radix), ranks);
    }
    for ranks in [65, 100, 243, 256] {
        check::claims(&ENTRY, ENTRY.name, ranks);
        check::claims(&ENTRY, &notation(100), ranks);
    }
}

#[test]
fn the_critical_path_is_exact_for_powers_of_the_radix() {
    for (radix, ranks) in
        (2..=8_u32).flat_map(|radix| (2..=64_u32).map(move |ranks| (radix, ranks)))
    {
        let is_power = ranks <= radix || radix.pow(ranks.ilog(radix)) == ranks;
        for kind in KINDS {
            let exact = check::critical_path_is_exact(&notation(radix), kind, ranks);
            assert_eq!(exact, is_power, "{radix}, {ranks} ranks");
            assert!(!is_power || check::is_symmetric(&notation(radix), kind, ranks));
        }
    }
}

/// In pairs it is recursive halving and doubling as in MPICH, on every rank count.
#[test]
fn pairs_are_recursive_halving_and_doubling() {
    for (kind, ranks) in KINDS.into_iter().flat_map(|kind| (2..=70).map(move |n| (kind, n))) {
        let halving = lay_out("recursive_halving_doubling", kind, ranks).unwrap();
        check::same_steps(&*lay_out(&notation(2), kind, ranks).unwrap(), &*halving);
    }
}

#[test]
fn one_group_exchanges_directly() {
    for ranks in 2..=9 {
        let direct = lay_out("direct", Collective::ReduceScatter, ranks).unwrap();
        let grouped = lay_out(&notation(9), Collective::ReduceScatter, ranks).unwrap();
        assert_eq!((grouped.steps(RankId(0)), direct.steps(RankId(0))), (1, 1));
    }
}

/// The reduction of an all_reduce is in rank order on every rank count.
#[test]
fn all_reduce_folds_in_rank_order() {
    for (radix, ranks) in [(3, 9), (3, 17), (4, 16), (4, 23), (5, 64), (8, 60)] {
        check::folds_in_rank_order(&notation(radix), Collective::AllReduce, ranks);
    }
}

/// 14 ranks in base 4: P = 4, and 10 ranks are extra. Sets: {0..3} {4..7} {8..11} and {12, 13}.
#[test]
fn extra_ranks_send_first_and_receive_last() {
    let schedule = lay_out(&notation(4), Collective::AllGather, 14).unwrap();
    let step = |rank, index| {
        let mut out = Step::new();
        schedule.step(RankId(rank), index, &mut out);
        out
    };
    let peers = |sends: &[crate::Message]| {
        sends.iter().map(|sent| (sent.peer.0, sent.chunks)).collect::<Vec<_>>()
    };
    assert_eq!(peers(&step(12, 0).sends), [(13, ChunkRange::one(12))]);
    assert_eq!(peers(&step(4, 0).sends), [(7, ChunkRange::one(4))]);
    let block = ChunkRange::new(4, 8);
    assert_eq!(peers(&step(7, 1).sends), [(11, block), (13, block), (3, block)]);
    let all = ChunkRange::new(0, 14);
    assert_eq!(peers(&step(7, 2).sends), [(4, all), (5, all), (6, all)]);
    assert_eq!(schedule.step_name(RankId(7), 1), "all_gather, distance 1");
    assert_eq!(schedule.step_name(RankId(12), 1), "post-processing");
}

#[test]
fn other_arguments_are_refused() {
    let refused = |text: &str| {
        let notation = format!("recursive_exchange:{text}");
        lay_out(&notation, Collective::AllGather, 8).err().unwrap().to_string()
    };
    assert_eq!(refused("1"), "`1` does not fit recursive_exchange: a group has at least 2 ranks");
    assert_eq!(
        refused("x"),
        "`x` does not fit recursive_exchange: expected the ranks of a group, an integer of at least 2, such as \
         `recursive_exchange:4`"
    );
}
