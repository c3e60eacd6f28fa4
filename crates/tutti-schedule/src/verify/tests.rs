//! Incorrect schedules with their errors, and the fast verifier compared with the exact one.

use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::fingerprint::Fingerprints;
use super::folds::Folds;
use super::{Reproducibility, VerifyError, exact, fast, verify, verify_fast};
use crate::collective::{Collective, Contribution};
use crate::{At, Builder, ChunkRange, Explicit, Message, Op, Schedule, Slot, Step, Wait};
use tutti_units::Time;
use tutti_units::ids::RankId;

const SCRATCH: Slot = Slot(1);
const ONE: ChunkRange = ChunkRange::one(0);

fn builder(ranks: u32) -> Builder {
    Explicit::builder(Collective::AllReduce, ranks, 1)
}

fn send(builder: &mut Builder, rank: u32, peer: u32) {
    builder.send(RankId(rank), RankId(peer), Slot::DATA, ONE);
}

fn recv(builder: &mut Builder, rank: u32, peer: u32, slot: Slot) {
    builder.recv(RankId(rank), RankId(peer), slot, ONE);
}

fn fold(builder: &mut Builder, rank: u32, operands: &[Slot]) {
    builder.reduce(RankId(rank), Slot::DATA, operands, ONE);
}

fn at(rank: u32, step: u32) -> At {
    At { rank: RankId(rank), step }
}

/// Returns the error of an incorrect schedule; both verifiers have to agree.
fn fault(builder: &Builder) -> VerifyError {
    let schedule = builder.build().unwrap();
    verify_fast(&schedule).unwrap_err();
    verify(&schedule).unwrap_err()
}

/// Two ranks exchange and fold, each its value first.
fn pair() -> Builder {
    let mut builder = builder(2);
    for rank in 0..2 {
        send(&mut builder, rank, 1 - rank);
        recv(&mut builder, rank, 1 - rank, SCRATCH);
        fold(&mut builder, rank, &[Slot::DATA, SCRATCH]);
    }
    builder
}

#[test]
fn a_correct_schedule_is_measured() {
    let found = verify(&pair().build().unwrap()).unwrap();
    assert_eq!((found.steps, found.messages, found.reductions), (2, 2, 2));
    assert!(found.rendezvous_safe());
    assert_eq!((found.in_flight, found.waiting), (1, 1));
    // x0 + x1 and x1 + x0 have the same bits, but not the same order.
    let Reproducibility { same_on_all_ranks, same_order_on_all_ranks, sequential, rank_order } =
        found.reproducibility;
    assert_eq!((same_on_all_ranks, sequential, rank_order), (true, true, false));
    assert!(!same_order_on_all_ranks);
}

#[test]
fn a_dropped_message_is_waited_for() {
    let mut builder = builder(2);
    send(&mut builder, 0, 1);
    recv(&mut builder, 0, 1, SCRATCH);
    recv(&mut builder, 1, 0, SCRATCH);
    let wait = Wait { at: at(0, 0), from: RankId(1) };
    let error = fault(&builder);
    assert_eq!(error, VerifyError::NeverSent { wait, waits: vec![wait] });
    assert_eq!(
        error.to_string(),
        "rank 0, step 0 waits for a message from rank 1 that is never sent"
    );
}

/// Rank 0 has two bytes for rank 1, which has none for rank 0, and one for itself.
fn unequal(sent: ChunkRange, received: ChunkRange) -> Builder {
    let mut builder = Explicit::builder(Collective::AllToAllV, 2, 4);
    builder.result(SCRATCH).blocks(&[0, 2, 0, 1]);
    builder.send(RankId(0), RankId(1), Slot::DATA, sent);
    builder.recv(RankId(1), RankId(0), SCRATCH, received);
    builder
}

#[test]
fn blocks_keep_their_positions_and_empty_ones_need_not_arrive() {
    let (block, last) = (ChunkRange::one(1), ChunkRange::one(3));
    let mut complete = unequal(block, block);
    complete.copy(RankId(1), Slot::DATA, last, SCRATCH, 3);
    assert_eq!(verify(&complete.build().unwrap()).unwrap().messages, 1);
    let lacks = VerifyError::NotWritten { rank: RankId(1), chunk: 3 };
    assert_eq!(fault(&unequal(block, block)), lacks);
    let (from, to) = (at(0, 0), at(1, 0));
    let moved = VerifyError::BlockMoved { from, to, sent: block, expected: last };
    assert_eq!(fault(&unequal(block, last)), moved);
    let mut copied = unequal(block, block);
    copied.copy(RankId(1), Slot::DATA, last, SCRATCH, 2);
    assert!(matches!(fault(&copied), VerifyError::BlockMoved { .. }));
    let chunks = Explicit::builder(Collective::AllToAllV, 2, 3).build().unwrap_err();
    assert_eq!(
        chunks.to_string(),
        "invalid blocks: 3 chunks of an all_to_all_v: expected 4, one per block"
    );
    let equal = builder(2).blocks(&[1; 4]).build().unwrap_err();
    assert!(
        equal.to_string().ends_with("all_reduce has equal chunks: only all_to_all_v has blocks")
    );
}

#[test]
fn a_message_without_a_receive_is_left_over() {
    let mut builder = pair();
    send(&mut builder, 1, 0);
    let error = fault(&builder);
    assert!(matches!(error, VerifyError::NeverReceived { from, count: 1, .. } if from == at(1, 1)));
    assert_eq!(
        error.to_string(),
        "rank 1, step 1 sends chunks 0 of data to rank 0, which never receives them"
    );
}

#[test]
fn a_doubled_contribution_is_traced_to_its_fold() {
    let mut builder = pair();
    for rank in 0..2 {
        send(&mut builder, rank, 1 - rank);
        recv(&mut builder, rank, 1 - rank, SCRATCH);
        fold(&mut builder, rank, &[Slot::DATA, SCRATCH]);
    }
    assert_eq!(
        fault(&builder).to_string(),
        "rank 0: chunk 0 of the result contains rank 0's chunk 0 more than once: the reduce of chunk 0 at \
         rank 0, step 1 reads it from data and from s1 (received from rank 1)"
    );
}

#[test]
fn a_missing_contribution_is_named() {
    let mut builder = builder(3);
    for rank in 0..2 {
        send(&mut builder, rank, 1 - rank);
        recv(&mut builder, rank, 1 - rank, SCRATCH);
        fold(&mut builder, rank, &[Slot::DATA, SCRATCH]);
    }
    let contribution = Contribution { origin: RankId(2), chunk: 0 };
    let expected = VerifyError::Missing { rank: RankId(0), chunk: 0, contribution, count: 1 };
    assert_eq!(fault(&builder), expected);
    // Fingerprints alone identify it too.
    assert_eq!(verify_fast(&builder.build().unwrap()).unwrap_err(), expected);
}

#[test]
fn a_long_cycle_is_abbreviated() {
    let ranks = 20_000;
    let mut builder = Explicit::builder(Collective::Barrier, ranks, 1);
    for rank in 0..ranks {
        let before = RankId((rank + ranks - 1) % ranks);
        builder.recv(RankId(rank), before, Slot(1), ChunkRange::one(0));
    }
    let error = verify_fast(&builder.build().unwrap()).unwrap_err();
    let VerifyError::Deadlock { cycle, .. } = &error else { panic!("a deadlock: {error}") };
    assert_eq!(cycle.len(), ranks as usize);
    let text = error.to_string();
    assert!(text.contains(", and 19990 more"), "{text}");
    assert!(text.len() < 1_000, "{} bytes", text.len());
}

/// Each message needs one buffer more than the previous one, as no rank ever receives one.
#[test]
fn increasing_buffering_is_found_in_linear_time() {
    let [a, b] = [RankId(0), RankId(1)];
    let mut builder = Explicit::builder(Collective::Broadcast { root: a }, 2, 1);
    for _ in 0..20_000 {
        builder.send(a, b, Slot::DATA, ChunkRange::one(0)).end_step(a);
    }
    let error = verify_fast(&builder.build().unwrap()).unwrap_err();
    assert!(matches!(error, VerifyError::NeverReceived { count: 20_000, .. }), "{error}");
}

#[test]
fn waiting_in_a_cycle_is_a_deadlock() {
    let mut builder = builder(3);
    for rank in 0..3 {
        recv(&mut builder, rank, (rank + 2) % 3, SCRATCH);
        send(&mut builder, rank, (rank + 1) % 3);
    }
    let VerifyError::Deadlock { cycle, waits } = fault(&builder) else { panic!("a deadlock") };
    let cycle: Vec<_> = cycle.iter().map(|wait| (wait.at, wait.from.0)).collect();
    assert_eq!(cycle, [(at(0, 0), 2), (at(2, 0), 1), (at(1, 0), 0)]);
    assert_eq!(waits.len(), 3);
}

#[test]
fn a_cycle_is_found_among_ranks_that_wait_for_it() {
    let mut builder = builder(4);
    for (rank, peer) in [(0, 1), (1, 2), (2, 3), (3, 2)] {
        recv(&mut builder, rank, peer, SCRATCH);
    }
    let VerifyError::Deadlock { cycle, .. } = fault(&builder) else { panic!("a deadlock") };
    assert_eq!(cycle.iter().map(|wait| wait.at.rank.0).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn swapped_messages_leave_the_wrong_chunks() {
    let root = Collective::Broadcast { root: RankId(0) };
    let mut builder = Explicit::builder(root, 2, 2);
    for (sent, received) in [(0, 1), (1, 0)] {
        builder.send(RankId(0), RankId(1), Slot::DATA, ChunkRange::one(sent));
        builder.recv(RankId(1), RankId(0), Slot::DATA, ChunkRange::one(received));
    }
    assert_eq!(
        fault(&builder).to_string(),
        "rank 1: chunk 0 of the result holds rank 0's chunk 1: expected rank 0's chunk 0"
    );
}

#[test]
fn steps_are_refused_one_by_one() {
    let two = ChunkRange::new(0, 2);
    let message = |peer, slot, chunks| Message { peer: RankId(peer), slot, chunks };
    let refused = |sends: &[Message], recvs: &[Message]| {
        let mut builder = Explicit::builder(Collective::AllReduce, 2, 2);
        builder.slots(2);
        let mut step = Step::new();
        (step.sends, step.recvs) = (sends.to_vec(), recvs.to_vec());
        step.reduce(Slot::DATA, [Slot::DATA], two);
        builder.step(RankId(0), "", step);
        fault(&builder).to_string()
    };
    for (sends, recvs, error) in [
        (
            vec![message(2, Slot::DATA, two)],
            vec![],
            "send names rank 2 as its peer, but the ranks are 0",
        ),
        (vec![message(0, Slot::DATA, two)], vec![], "send names the rank itself"),
        (
            vec![],
            vec![message(1, SCRATCH, ChunkRange::new(1, 3))],
            "recv accesses chunks 1..3, but the",
        ),
        (
            vec![message(1, Slot::DATA, two)],
            vec![message(1, Slot::DATA, ChunkRange::one(1))],
            "recv of data[1] from rank 1 writes what the send of data[0..2] to rank 1",
        ),
        (
            vec![],
            vec![message(1, SCRATCH, two), message(1, SCRATCH, ChunkRange::one(0))],
            "recv of s1[0..2] from rank 1 and recv of s1[0] from rank 1 in the same step write",
        ),
    ] {
        let found = refused(&sends, &recvs);
        assert!(found.starts_with(&format!("rank 0, step 0: {error}")), "{found}");
    }
}

#[test]
fn local_ops_are_refused_one_by_one() {
    let refused = |op: Op| {
        let mut builder = Explicit::builder(Collective::AllReduce, 2, 2);
        builder.op(RankId(0), &op);
        fault(&builder).to_string()
    };
    let (chunks, into) = (ChunkRange::one(1), Slot::DATA);
    let none = refused(Op::Reduce { into, operands: vec![], chunks });
    assert_eq!(none, "rank 0, step 0: reduce into data has no operands");
    let empty = refused(Op::Reduce { into, operands: vec![into, SCRATCH], chunks });
    assert_eq!(empty, "rank 0, step 0: reduce reads s1[1], which has not been written");
    let outside = refused(Op::Copy { from: into, into, chunks, to: 2 });
    assert_eq!(
        outside,
        "rank 0, step 0: copy accesses chunks 2..3, but the payload has chunks 0..2"
    );
}

#[test]
fn a_message_of_another_length_is_refused() {
    let mut builder = Explicit::builder(Collective::Broadcast { root: RankId(0) }, 2, 2);
    builder.send(RankId(0), RankId(1), Slot::DATA, ChunkRange::new(0, 2));
    builder.recv(RankId(1), RankId(0), Slot::DATA, ONE);
    assert_eq!(
        fault(&builder).to_string(),
        "rank 0, step 0 sends chunks 0..2 (length 2) to rank 1, step 0, but the matching recv takes chunks \
         0 (length 1)"
    );
}

#[test]
fn the_least_buffering_is_found() {
    // Every rank sends `count` messages to the next rank before it receives those from the previous
    // one.
    for count in 1..5 {
        let mut builder = builder(3);
        for rank in 0..3 {
            for _ in 0..count {
                send(&mut builder, rank, (rank + 1) % 3);
                builder.end_step(RankId(rank));
            }
            for _ in 0..count {
                recv(&mut builder, rank, (rank + 2) % 3, SCRATCH);
                builder.end_step(RankId(rank));
            }
            builder.send(RankId(rank), RankId((rank + 1) % 3), SCRATCH, ONE);
            recv(&mut builder, rank, (rank + 2) % 3, Slot(2));
            fold(&mut builder, rank, &[Slot::DATA, SCRATCH, Slot(2)]);
        }
        let schedule = builder.build().unwrap();
        let found = verify(&schedule).unwrap();
        assert_eq!((found.buffering, exact::verify(&schedule).unwrap().buffering), (count, count));
        assert!(!found.reproducibility.same_on_all_ranks);
    }
}

#[test]
fn a_payload_too_large_to_hold_is_refused() {
    let schedule = Explicit::builder(Collective::AllReduce, 2, u32::MAX).build().unwrap();
    assert!(matches!(verify(&schedule), Err(VerifyError::TooLarge { .. })));
    let mut builder = pair();
    builder.slots(u32::MAX);
    verify(&builder.build().unwrap()).unwrap();
}

/// One round: the distance of messages, their first chunk, the order of the fold, and whether sends
/// and receives are in two steps.
type Round = (u32, u32, u32, bool);

/// Returns the ops of `rank` in a round.
fn round_ops(collective: Collective, ranks: u32, rank: u32, round: Round) -> Vec<Option<Op>> {
    let (shift, start, order, split) = round;
    let (slot, into) = (Slot(1 + order % 2), Slot::DATA);
    let chunks = ChunkRange::new(start % ranks, ranks);
    let message = |slot, peer| Message { peer: RankId(peer % ranks), slot, chunks };
    let operands = if order < 3 { vec![into, slot] } else { vec![slot, into] };
    let local = match collective {
        Collective::AllGather => Op::Copy { from: slot, into, chunks, to: chunks.start },
        _ => Op::Reduce { into, operands, chunks },
    };
    vec![
        Some(Op::Send(message(into, rank + shift))),
        split.then_some(Op::Sleep { duration: Time::ZERO }),
        Some(Op::Recv(message(slot, rank + ranks - shift))),
        Some(local),
    ]
}

/// A random schedule that is correct or nearly so: rounds in which the ranks exchange some chunks
/// and fold or copy them, with a few ops dropped, doubled or changed.
fn almost_right() -> impl Strategy<Value = Explicit> {
    let rounds = proptest::collection::vec((0..3_u32, 0..3_u32, 0..5_u32, any::<bool>()), 1..5);
    let bends = proptest::collection::vec((0..60_usize, 0..4_u8), 0..3);
    let collective = prop_oneof![
        3 => Just(Collective::AllReduce),
        1 => Just(Collective::Barrier),
        1 => Just(Collective::AllGather),
        1 => Just(Collective::Reduce { root: RankId(1) }),
    ];
    (collective, 2..5_u32, rounds, bends).prop_map(|(collective, ranks, rounds, bends)| {
        let mut ops = Vec::new();
        for (index, mut round) in (0..).zip(rounds) {
            round.0 = 1 + (round.0 + u32::from(index == 0)) % (ranks - 1).max(1);
            for rank in 0..ranks {
                let of_rank = round_ops(collective, ranks, rank, round);
                ops.extend(of_rank.into_iter().map(|op| (rank, op)));
            }
        }
        for (place, kind) in bends {
            let place = place % ops.len();
            match kind {
                0 => ops[place].1 = None,
                1 => ops.insert(place, ops[place].clone()),
                2 => ops[place].0 = (ops[place].0 + 1) % ranks,
                _ => ops.swap(place, 0),
            }
        }
        let mut builder = Explicit::builder(collective, ranks, ranks);
        builder.slots(3);
        for (rank, op) in &ops {
            op.iter().for_each(|op| _ = builder.op(RankId(*rank), op));
        }
        builder.build().unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_fast_verifier_agrees_with_the_exact_one(schedule in almost_right()) {
        let found = verify_fast(&schedule);
        if schedule.shape().collective != Collective::Barrier {
            let ranks = schedule.shape().ranks;
            let narrow = Fingerprints::of(Folds::with_window(ranks, 1), ranks, ranks);
            prop_assert_eq!(&fast::verify(&schedule, narrow), &found);
        }
        match (found, exact::verify(&schedule)) {
            (Ok(fast), Ok(exact)) => {
                let exact = super::Verification {
                    in_flight: fast.in_flight,
                    waiting: fast.waiting,
                    ..exact
                };
                prop_assert_eq!(fast, exact);
            }
            (Err(_), Err(_)) => {}
            (fast, exact) => prop_assert!(false, "fast: {fast:?}\nexact: {exact:?}"),
        }
    }
}

#[test]
fn the_random_schedules_cover_many_errors() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..2_000 {
        let schedule = almost_right().new_tree(&mut runner).unwrap().current();
        let name = match verify(&schedule) {
            Ok(found) if found.rendezvous_safe() => "right".to_owned(),
            Ok(_) => "right with buffers".to_owned(),
            Err(error) => format!("{error:?}").split([' ', '{']).next().unwrap_or("").to_owned(),
        };
        *seen.entry(name).or_insert(0) += 1;
    }
    for kind in ["right", "right with buffers", "Doubled", "Missing", "NeverReceived", "NeverSent"]
    {
        assert!(seen.get(kind).is_some_and(|&count| count >= 10), "{kind}: {seen:?}");
    }
}
