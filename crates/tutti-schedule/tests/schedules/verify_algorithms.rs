//! Every algorithm of the registry is verified for every supported collective and rank count,
//! refuses the others with a typed error, and produces the bits of its reproducibility class.

use std::sync::Arc;

use super::execute::execute;
use tutti_schedule::algorithm::{AlgorithmError, Entry, REGISTRY, Request, build};
use tutti_schedule::collective::{Collective, Postcondition};
use tutti_schedule::{ChunkRange, Explicit, Schedule, Slot, Verification, verify, verify_exactly};
use tutti_units::ids::RankId;

/// Arguments of some algorithms; algorithms that do not support them have to refuse them.
const ARGUMENTS: &[&str] = &[
    "1",
    "2",
    "3",
    "4",
    "5",
    "8",
    "16",
    "0",
    "x",
    "a2",
    "a4",
    "a8,a4",
    "a4,a2",
    "a3,a2",
    "a2,a2,a2",
    "c6m2,a2,a2,e6m2",
    "m1g2a3,n1g3a2",
    "m3g2a2,n3g2a2",
    "ring,ring",
    "4x4",
    "2x4",
    "latency_optimal",
    "4x2:latency_optimal",
    "bidirectional",
    "blockwise",
    "2x2x2:bidirectional",
    "4x4:all_dimensions",
    "4x8:bidirectional:all_dimensions",
    "ring:4",
    "ring",
    "fold",
    "2-1",
    "3-2",
    "binary_blocks",
    "dissemination",
    "recursive_doubling",
    "nccl",
    "0+1,segments=3",
    "all,segments=2",
    "nccl,3",
    "4x4,bidirectional",
    "4x2,bidirectional",
    "4x4,accumulators=1",
    "8x4,accumulators=2",
    "nccl,phased,2",
    "2x2",
    "8x4:2x2,4x2",
    "4x4:2x2,2x2,bidirectional",
    "block_by_block",
    "two_blocks",
    "send",
    "scatter_all_gather",
    "reduce_scatter_gather",
    "segments=2",
    "segments=3",
    "latency_optimal,segments=2",
    "2-1,segments=3",
    "in_order",
    "in_order,segments=2",
    "segments=2,fanout=3",
];

fn collectives(ranks: u32) -> impl Iterator<Item = Collective> {
    Collective::ALL.into_iter().flat_map(move |collective| {
        let mut roots = vec![0, ranks - 1, ranks / 2];
        roots.dedup();
        roots.truncate(if collective.root().is_some() { 3 } else { 1 });
        roots.into_iter().map(move |root| collective.with_root(RankId(root)))
    })
}

fn proved(schedule: &Arc<dyn Schedule>, ranks: u32) {
    let shape = schedule.shape();
    let what = format!("{} {} on {ranks} ranks", shape.name, shape.collective);
    assert_eq!(shape.ranks, ranks, "{what}");
    verify(schedule.as_ref()).unwrap_or_else(|error| panic!("{what}: {error}"));
}

fn claims(entry: &Entry, collective: Collective, ranks: u32) -> bool {
    entry.collectives.contains(&collective.name())
        && (entry.claims)(&Request { collective, ranks, argument: None })
}

#[test]
fn claims_are_verified_and_other_requests_refused() {
    for entry in REGISTRY {
        let mut proofs = 0;
        for ranks in 2..=128 {
            for collective in collectives(ranks) {
                let what = format!("{} {collective} on {ranks} ranks", entry.name);
                match (claims(entry, collective, ranks), build(entry.name, collective, ranks)) {
                    (true, Ok(schedule)) => {
                        proved(&schedule, ranks);
                        proofs += 1;
                    }
                    (true, Err(error)) => panic!("{what} is claimed, but: {error}"),
                    (false, Ok(_)) => panic!("{what} is not claimed, but laid out"),
                    (false, Err(_)) => {}
                }
            }
        }
        assert!(proofs > 0, "{} was never proved", entry.name);
    }
}

#[test]
fn every_argument_is_verified_or_refused() {
    for entry in REGISTRY {
        for (argument, ranks) in ARGUMENTS.iter().flat_map(|a| [2, 6, 7, 8, 16, 32].map(|n| (a, n)))
        {
            for collective in collectives(ranks) {
                let notation = format!("{}:{argument}", entry.name);
                if let Ok(schedule) = build(&notation, collective, ranks) {
                    assert!(!entry.argument.is_empty(), "{notation} takes no argument");
                    proved(&schedule, ranks);
                }
            }
        }
    }
}

#[test]
fn the_exact_verifier_finds_the_same() {
    for entry in REGISTRY {
        for ranks in (2..=13).chain([16, 17, 24]) {
            for collective in collectives(ranks) {
                let Ok(schedule) = build(entry.name, collective, ranks) else { continue };
                let fast = verify(schedule.as_ref()).unwrap();
                let exact = verify_exactly(schedule.as_ref()).unwrap();
                let Verification { in_flight, waiting, .. } = fast;
                let exact = Verification { in_flight, waiting, ..exact };
                assert_eq!(fast, exact, "{} {collective} on {ranks} ranks", entry.name);
            }
        }
    }
}

/// Copies to another position need equal chunks, which a schedule reports without executing its
/// steps.
#[test]
fn schedules_that_move_chunks_report_it() {
    for entry in REGISTRY {
        for ranks in (2..=13).chain([16, 24]) {
            for collective in collectives(ranks) {
                let Ok(schedule) = build(entry.name, collective, ranks) else { continue };
                let written = Explicit::of(schedule.as_ref()).moves_chunks();
                let what = format!("{} {collective} on {ranks} ranks", entry.name);
                assert!(schedule.moves_chunks() || !written, "{what}");
            }
        }
    }
}

#[test]
fn too_few_ranks_and_foreign_roots_are_refused() {
    for entry in REGISTRY {
        for collective in Collective::ALL {
            for ranks in [0, 1] {
                let error = build(entry.name, collective, ranks).err();
                let few = matches!(error, Some(AlgorithmError::TooFewRanks { .. }));
                let wrong = matches!(error, Some(AlgorithmError::WrongCollective { .. }));
                assert!(few || wrong, "{} {collective} on {ranks}: {error:?}", entry.name);
            }
            let outside = collective.with_root(RankId(4));
            if outside.root().is_some() {
                assert!(build(entry.name, outside, 4).is_err(), "{} {collective}", entry.name);
            }
        }
    }
}

/// Numbers that differ by up to 2^60 in size and cancel, so that the order of additions is visible.
fn wild(seed: u64, rank: u64, element: u64) -> f32 {
    let mut x = seed ^ rank.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ element.rotate_left(40);
    for _ in 0..3 {
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x ^= x >> 27;
    }
    let bits = u32::try_from(x >> 32).unwrap();
    // An exponent from -30 to 29; arbitrary sign and mantissa.
    let exponent = 97 + (bits >> 23 & 0xFF) % 60;
    f32::from_bits(bits & 0x807F_FFFF | exponent << 23)
}

/// Executes a schedule with an operation. Returns whether all ranks have the same bits, and whether
/// those are the bits of the fold from left to right.
fn executed(schedule: &dyn Schedule, seed: u64, operator: fn(f32, f32) -> f32) -> (bool, bool) {
    let (shape, per_chunk) = (schedule.shape(), 3_usize);
    let elements = shape.chunks as usize * per_chunk;
    let input = |rank| (0_u64..).take(elements).map(|element| wild(seed, rank, element)).collect();
    let inputs: Vec<Vec<f32>> = (0..u64::from(shape.ranks)).map(input).collect();
    let results = execute(schedule, &inputs, operator);
    let (mut same, mut sequential) = (true, true);
    for chunk in 0..shape.chunks {
        let reduced = |rank: &u32| {
            let after = shape.collective.after(RankId(*rank), chunk, shape.ranks, shape.chunks);
            matches!(after, Postcondition::SumOfAll { .. })
        };
        let ranks: Vec<u32> = (0..shape.ranks).filter(reduced).collect();
        for element in (0..per_chunk).map(|within| chunk as usize * per_chunk + within) {
            let folded = inputs.iter().map(|input| input[element]).reduce(operator);
            let bits = |rank: u32| results[rank as usize][element].to_bits();
            same &= ranks.iter().all(|&rank| bits(rank) == bits(ranks[0]));
            sequential &= ranks.iter().all(|&rank| Some(bits(rank)) == folded.map(f32::to_bits));
        }
    }
    (same, sequential)
}

/// The class matches the bits: its properties hold for all seeds, and denied properties fail for
/// one.
fn class_matches_execution(schedule: &dyn Schedule) {
    let shape = schedule.shape();
    let class = verify(schedule).unwrap().reproducibility;
    let sums: Vec<_> = (0..20).map(|seed| executed(schedule, seed, |a, b| a + b)).collect();
    let what = format!("{} {} on {} ranks: {class:?}", shape.name, shape.collective, shape.ranks);
    assert_eq!(class.same_on_all_ranks, sums.iter().all(|(same, _)| *same), "{what}");
    assert_eq!(class.sequential, sums.iter().all(|(_, sequential)| *sequential), "{what}");
    // A non-commutative operation exposes the order of operands.
    let ordered = (0..20).all(|seed| executed(schedule, seed, |a, b| a - b / 3.0).0);
    assert_eq!(class.same_order_on_all_ranks, ordered, "{what}");
}

#[test]
fn the_reproducibility_class_matches_floating_point() {
    for entry in REGISTRY {
        for ranks in [2, 3, 4, 5, 6, 7, 8, 12, 16, 17] {
            for collective in collectives(ranks).filter(|collective| collective.reduces()) {
                let notations =
                    ARGUMENTS.iter().map(|argument| format!("{}:{argument}", entry.name));
                for notation in notations.chain([entry.name.to_owned()]) {
                    if let Ok(schedule) = build(&notation, collective, ranks) {
                        class_matches_execution(schedule.as_ref());
                    }
                }
            }
        }
    }
}

#[test]
fn denied_classes_fail_in_floating_point() {
    for (ranks, own_first, expected) in
        [(3, true, (false, false)), (3, false, (true, true)), (2, true, (true, true))]
    {
        let all = ChunkRange::one(0);
        let mut builder = Explicit::builder(Collective::AllReduce, ranks, 1);
        for rank in (0..ranks).map(RankId) {
            let others = || (0..ranks).map(RankId).filter(|&peer| peer != rank);
            others().for_each(|peer| _ = builder.send(rank, peer, Slot::DATA, all));
            others().for_each(|peer| _ = builder.recv(rank, peer, Slot(1 + peer.0), all));
            builder.copy(rank, Slot::DATA, all, Slot(1 + rank.0), 0);
            let start = if own_first { rank.0 } else { 0 };
            let operands: Vec<_> = (0..ranks).map(|i| Slot(1 + (start + i) % ranks)).collect();
            builder.reduce(rank, Slot::DATA, &operands, all);
        }
        let schedule = builder.build().unwrap();
        let class = verify(&schedule).unwrap().reproducibility;
        assert_eq!((class.same_on_all_ranks, class.sequential), expected);
        class_matches_execution(&schedule);
    }
}

#[test]
fn collectives_without_reduction_deliver_every_value() {
    for entry in REGISTRY {
        for ranks in [2, 3, 5, 8, 13] {
            for collective in collectives(ranks).filter(|collective| !collective.reduces()) {
                let Ok(schedule) = build(entry.name, collective, ranks) else { continue };
                let chunks = schedule.shape().chunks;
                let value = |rank: u32, chunk: u32| u64::from(rank) << 32 | u64::from(chunk);
                let input = |rank| (0..chunks).map(|chunk| value(rank, chunk)).collect();
                let inputs: Vec<Vec<u64>> = (0..ranks).map(input).collect();
                let results = execute(schedule.as_ref(), &inputs, |a, b| a.max(b));
                for (rank, chunk) in (0..ranks).flat_map(|r| (0..chunks).map(move |c| (r, c))) {
                    if let Postcondition::One(one) =
                        collective.after(RankId(rank), chunk, ranks, chunks)
                    {
                        let found = results[rank as usize][chunk as usize];
                        assert_eq!(found, value(one.origin.0, one.chunk), "{}", entry.name);
                    }
                }
            }
        }
    }
}
