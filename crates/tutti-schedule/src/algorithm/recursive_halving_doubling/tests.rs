use super::*;
use crate::algorithm::check;

const ALL_REDUCE: [&str; 5] = [
    "recursive_halving_doubling",
    "recursive_halving_doubling:fold",
    "recursive_halving_doubling:2-1",
    "recursive_halving_doubling:3-2",
    "recursive_halving_doubling:binary_blocks",
];

#[test]
fn it_does_what_it_claims_at_every_rank_count() {
    for ranks in 2..=128 {
        check::claims(&ENTRY, ENTRY.name, ranks);
        for notation in ALL_REDUCE {
            let proof = check::performs(notation, Collective::AllReduce, ranks);
            assert!(proof.rendezvous_safe() && proof.reproducibility.same_on_all_ranks);
        }
    }
}

#[test]
fn all_reduce_folds_in_rank_order() {
    for (ranks, notation) in (2..=70).flat_map(|ranks| ALL_REDUCE.map(|name| (ranks, name))) {
        check::folds_in_rank_order(notation, Collective::AllReduce, ranks);
    }
}

#[test]
fn the_critical_path_is_exact_where_ranks_are_folded_in() {
    for ranks in 2..=70_u32 {
        for notation in &ALL_REDUCE[..3] {
            assert!(check::critical_path_is_exact(notation, Collective::AllReduce, ranks));
        }
        for notation in &ALL_REDUCE[3..] {
            let exact = check::critical_path_is_exact(notation, Collective::AllReduce, ranks);
            assert_eq!(exact, ranks.is_power_of_two(), "{notation}, {ranks} ranks");
        }
        for collective in [Collective::ReduceScatter, Collective::AllGather] {
            let exact = check::critical_path_is_exact(ENTRY.name, collective, ranks);
            assert_eq!(exact, ranks.is_power_of_two(), "{collective}, {ranks} ranks");
        }
    }
}

/// Every chunk takes N - 1 folds, in any order.
#[test]
fn every_fold_is_necessary() {
    for (ranks, notation) in (2..=64).flat_map(|ranks| ALL_REDUCE.map(|name| (ranks, name))) {
        let proof = check::performs(notation, Collective::AllReduce, ranks);
        let power = 1_u64 << ranks.ilog2();
        assert_eq!(proof.reductions, u64::from(ranks - 1) * power, "{notation}, {ranks} ranks");
    }
}

#[test]
fn segments_are_verified_and_need_one_buffer() {
    let cases = [("", Collective::AllReduce), ("2-1,", Collective::AllReduce)];
    for (method, collective) in cases.into_iter().chain([("", Collective::ReduceScatter)]) {
        for (ranks, segments) in [2, 3, 6, 8, 13, 16, 32].into_iter().flat_map(|n| [(n, 2), (n, 5)])
        {
            let notation = format!("{}:{method}segments={segments}", ENTRY.name);
            let proof = check::performs(&notation, collective, ranks);
            assert_eq!(proof.buffering, 1, "{notation}, {ranks} ranks");
            assert!(!check::critical_path_is_exact(&notation, collective, ranks));
        }
        let one = format!("{}:{method}segments=1", ENTRY.name);
        assert!(check::performs(&one, collective, 8).rendezvous_safe());
    }
}

/// On a power of two there are no surplus ranks: all variants are the same program.
#[test]
fn powers_of_two_have_one_form() {
    for ranks in [2, 4, 8, 32] {
        let laid_out =
            |notation| crate::algorithm::build(notation, Collective::AllReduce, ranks).unwrap();
        let plain = laid_out(ENTRY.name);
        for other in ALL_REDUCE.map(laid_out) {
            for rank in (0..ranks).map(RankId) {
                assert_eq!(plain.steps(rank), other.steps(rank));
                for index in 0..plain.steps(rank) {
                    let (mut one, mut two) = (Step::new(), Step::new());
                    plain.step(rank, index, &mut one);
                    other.step(rank, index, &mut two);
                    assert_eq!(one, two, "{}, {rank}, step {index}", other.shape().name);
                }
            }
        }
    }
}

#[test]
fn other_arguments_are_refused() {
    let problem = |argument: &str, collective| {
        let notation = format!("{}:{argument}", ENTRY.name);
        crate::algorithm::build(&notation, collective, 6).err().unwrap().to_string()
    };
    assert_eq!(
        problem("3-1", Collective::AllReduce),
        "`3-1` does not fit recursive_halving_doubling: expected `fold`, `2-1`, `3-2` or `binary_blocks`"
    );
    for (argument, part) in [
        ("3-2,segments=2", "segments need exchanges that reduce"),
        ("fold,pieces=2", "unknown option `pieces=2`: expected `segments=K`"),
        ("segments=x", "invalid number of segments `x`: expected 1 to 1048576"),
    ] {
        assert!(problem(argument, Collective::AllReduce).contains(part), "{argument}");
    }
    assert_eq!(
        problem("3-2", Collective::ReduceScatter),
        "`3-2` does not fit recursive_halving_doubling: reduce_scatter supports only `fold`"
    );
}
