use super::*;
use crate::algorithm::{build as lay_out, check};
use crate::{ChunkRange, Step};
use tutti_units::ids::RankId;

const NOTATIONS: [&str; 7] = [
    "bine",
    "bine:latency_optimal",
    "bine:block_by_block",
    "bine:two_blocks",
    "bine:send",
    "bine:scatter_all_gather",
    "bine:reduce_scatter_gather",
];

fn collectives(ranks: u32) -> impl Iterator<Item = Collective> {
    let rooted = move |collective: Collective| {
        let roots = if collective.root().is_some() { 0..ranks.min(9) } else { 0..1 };
        roots.map(move |root| collective.with_root(RankId(root)))
    };
    Collective::ALL.into_iter().flat_map(rooted)
}

#[test]
fn it_does_what_it_claims_at_every_rank_count() {
    for ranks in 2..=128 {
        for notation in NOTATIONS {
            check::claims(&ENTRY, notation, ranks);
        }
    }
}

#[test]
fn no_form_needs_buffers() {
    for (notation, ranks) in NOTATIONS.iter().flat_map(|name| [2, 8, 32].map(|ranks| (name, ranks)))
    {
        for collective in collectives(ranks).filter(|&kind| lay_out(notation, kind, ranks).is_ok())
        {
            let proof = check::performs(notation, collective, ranks);
            assert!(proof.rendezvous_safe(), "{notation}, {collective}, {ranks} ranks");
        }
    }
}

#[test]
fn segments_are_verified_and_need_one_buffer() {
    for (notation, collective) in [
        ("bine", Collective::AllReduce),
        ("bine:latency_optimal", Collective::AllReduce),
        ("bine", Collective::ReduceScatter),
        ("bine:send", Collective::ReduceScatter),
        ("bine:reduce_scatter_gather", Collective::Reduce { root: RankId(1) }),
    ] {
        for (ranks, segments) in
            [2, 4, 8, 32].into_iter().flat_map(|n| [1, 2, 3, 8].map(|k| (n, k)))
        {
            let joint = if notation.contains(':') { ',' } else { ':' };
            let divided = format!("{notation}{joint}segments={segments}");
            let proof = check::performs(&divided, collective, ranks);
            assert_eq!(proof.buffering, u32::from(segments > 1), "{divided} on {ranks} ranks");
            let complete = check::performs(notation, collective, ranks);
            assert_eq!(proof.reproducibility, complete.reproducibility, "{divided}");
        }
    }
}

#[test]
fn the_critical_path_is_exact() {
    for ranks in [2, 4, 8, 16, 32, 64] {
        for notation in NOTATIONS {
            for collective in collectives(ranks) {
                if lay_out(notation, collective, ranks).is_err() {
                    continue;
                }
                let elsewhere = collective.root().is_some_and(|root| root != RankId(0));
                let split = elsewhere && collective.has_shards() || notation == "bine:two_blocks";
                let exact = check::critical_path_is_exact(notation, collective, ranks);
                assert_eq!(exact, !split, "{notation}, {collective}, {ranks} ranks");
            }
        }
    }
    for ranks in (6..=72).step_by(2) {
        for kind in [Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather] {
            assert!(check::critical_path_is_exact("bine:block_by_block", kind, ranks));
        }
    }
}

/// On a ring both papers of the authors have the same butterfly.
#[test]
fn the_butterfly_is_that_of_swing() {
    for collective in [Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather] {
        let [one, other] = ["bine", "swing"].map(|name| lay_out(name, collective, 32).unwrap());
        check::same_steps(&*one, &*other);
    }
}

/// Children of rank 0 of 16, from the highest level: 0000 in base -2 becomes 1111, 111, 11 and 1.
#[test]
fn children_invert_the_lowest_digits() {
    let broadcast = Collective::Broadcast { root: RankId(0) };
    let tree = lay_out("bine", broadcast, 16).unwrap();
    let children = |rank| {
        let mut out = Step::new();
        (0..tree.steps(RankId(rank))).for_each(|step| tree.step(RankId(rank), step, &mut out));
        out.sends.iter().map(|send| send.peer.0).collect::<Vec<_>>()
    };
    assert_eq!(children(0), [11, 3, 15, 1]);
    // 3 is 111: its children are 100 and 110, which are 4 and 2.
    assert_eq!(children(3), [4, 2]);
    assert_eq!(children(11), [8, 12, 10]);
}

#[test]
fn two_blocks_are_sent_only_where_a_range_wraps() {
    let gather = lay_out("bine:two_blocks", Collective::AllGather, 16).unwrap();
    let sent = |rank: u32| {
        let mut out = Step::new();
        let steps = (0..4).map(|step| {
            out.clear();
            gather.step(RankId(rank), step, &mut out);
            out.sends.iter().map(|send| send.chunks).collect::<Vec<_>>()
        });
        steps.collect::<Vec<_>>()
    };
    let run = ChunkRange::new;
    assert_eq!(
        sent(0),
        [
            vec![run(0, 1)],
            vec![run(0, 2)],
            vec![run(14, 16), run(0, 2)],
            vec![run(14, 16), run(0, 6)]
        ]
    );
    assert_eq!(sent(6)[3], [run(4, 12)]);
}

#[test]
fn an_all_gather_after_a_scatter_skips_known_blocks() {
    let broadcast = Collective::Broadcast { root: RankId(0) };
    for ranks in [2, 4, 8, 64] {
        let schedule = lay_out("bine:scatter_all_gather", broadcast, ranks).unwrap();
        let (mut out, mut received) = (Step::new(), 0);
        for rank in (0..ranks).map(RankId) {
            for step in 0..schedule.steps(rank) {
                out.clear();
                schedule.step(rank, step, &mut out);
                received += out.recvs.iter().map(|recv| recv.chunks.len()).sum::<u32>();
            }
        }
        assert_eq!(received, ranks * (ranks - 1), "every rank receives each block once");
    }
}

#[test]
fn invalid_requests_are_refused() {
    let problem =
        |notation: &str, kind, ranks| lay_out(notation, kind, ranks).err().unwrap().to_string();
    let cases = [
        ("bine", 6, "bine does not work on 6 ranks: it needs a power of two"),
        ("bine:block_by_block", 7, "it needs an even number"),
        ("bine:send", 8, "all_reduce does not support `send`: expected reduce_scatter, all_gather"),
        (
            "bine:x",
            8,
            "unknown form `x` of all_reduce: expected `latency_optimal`, `block_by_block`, `two_blocks`",
        ),
        ("bine:segments=0", 8, "invalid number of segments `0`: expected 1 to 1048576"),
        ("bine:segments=2,segments=2", 8, "`segments=2` is a second form or number of segments"),
        ("bine:two_blocks,segments=2", 8, "segments need exchanges that reduce"),
        ("bine:segments=1000000", 512, "1000000 segments are too many: expected at most 524288"),
    ];
    for (notation, ranks, part) in cases {
        let text = problem(notation, Collective::AllReduce, ranks);
        assert!(text.contains(part), "{notation}: {text}");
    }
    let text = problem("bine:segments=2", Collective::AllGather, 8);
    assert!(text.contains("not this all_gather"), "{text}");
}
