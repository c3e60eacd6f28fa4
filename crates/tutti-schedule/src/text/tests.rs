//! The text form parses back, and errors name their line.

use proptest::prelude::*;

use super::{TextError, read, to_string};
use crate::collective::Collective;
use crate::{ChunkRange, Explicit, Message, Op, Schedule, Slot, Step};
use tutti_units::Time;
use tutti_units::ids::RankId;

const PAIR: &str = "tutti schedule 1\nname pair\ncollective all_reduce\nranks 2\nchunks 4\n\
    slots 2\nresult data\n\nrank 0\nstep exchange\n  send data[0..4] to 1\n  recv s1[0..4] from 1\n  \
    reduce data[0..4] = data + s1\nstep\n  copy s1[0..2] to data[2]\n  compute 1.5 us\n  sleep 3 ns\n\
    \nrank 1\nstep\n  send data[0..4] to 0\n  recv s1[0..4] from 0\n";

#[test]
fn the_form_is_stable() {
    let schedule = read(PAIR).unwrap();
    assert_eq!(to_string(&schedule), PAIR);
    assert_eq!(schedule.steps(RankId(0)), 2);
    assert_eq!(schedule.step_name(RankId(0), 0), "exchange");
}

#[test]
fn errors_name_their_line() {
    for (from, to, error) in [
        ("tutti schedule 1", "hello", "line 1: `hello` cannot be read: expected the first line"),
        ("ranks 2", "ranks 0", "line 4: a schedule has at least one rank"),
        ("ranks 2", "ranks 4000000000", "line 4: 4000000000 ranks are too many"),
        ("chunks 4", "chunks 0", "line 5: a payload has at least one chunk"),
        ("result data", "result s4294967295", "line 7: invalid slot s4294967295"),
        ("all_reduce", "reduce\nroot 2", "line 4: root 2 is not one of the ranks 0 to 1"),
        ("ranks 2", "ranks two", "line 4: `ranks two` cannot be read: expected an integer"),
        ("ranks 2\n", "", "line 6: the header lacks the line `ranks`"),
        ("slots 2", "chunks 2", "line 6: the header line `chunks` appears twice"),
        ("all_reduce", "all_reduse", "line 3: `collective all_reduse` cannot be read"),
        ("all_reduce", "reduce", "line 7: the header lacks the line `root`"),
        ("rank 1", "rank 0", "line 19: rank 0 comes after rank 0"),
        ("rank 1", "rank 2", "line 19: rank 2 cannot take part: the ranks are 0 to 1"),
        ("to 1", "at 1", "line 11: `send data[0..4] at 1` cannot be read: expected `send slot"),
        ("s1[0..4] from 1", "t[0] from 1", "line 12: `recv t[0] from 1` cannot be read"),
        ("1.5 us", "1.5", "line 16: `1.5` has no unit"),
        ("step exchange\n", "", "line 10: `send data[0..4] to 1` is outside a step"),
        ("data[2]", "data[2..3x]", "line 15: `copy s1[0..2] to data[2..3x]` cannot be read"),
        ("reduce data[0..4]", "reduce data[4..0]", "line 14: "),
    ] {
        let broken = PAIR.replacen(from, to, 1);
        let found = read(&broken).unwrap_err().to_string();
        assert!(found.starts_with(error), "`{found}` should be `{error}...`");
    }
    let late = PAIR.replacen(
        "  send data[0..4] to 1\n  recv s1[0..4] from 1\n",
        "  recv s1[0..4] from 1\n  send data[0..4] to 1\n",
        1,
    );
    assert!(matches!(read(&late), Err(TextError::OpOrder { line: 12, .. })));
}

const ROOT: &str = "tutti schedule 1\nname root\ncollective all_reduce\nranks 3\nchunks 1\nslots 3\n\
    result data\n\nrank 0\nstep\n  combine data[0] = data + s1 from 1 + s2 from 2\n  sleep 3 ns\nstep\n  \
    multicast data[0] to 1 2\n\nrank 1\nstep\n  contribute data[0] to 0\nstep\n  recv data[0] from 0\n\
    \nrank 2\nstep\n  contribute data[0] to 0\nstep\n  recv data[0] from 0\n";

#[test]
fn in_network_operations_are_one_op() {
    let schedule = read(ROOT).unwrap();
    assert_eq!(to_string(&schedule), ROOT);
    let mut step = Step::new();
    schedule.step(RankId(0), 0, &mut step);
    assert_eq!((step.recvs.len(), step.locals.len(), step.marks().len()), (2, 2, 1));
    for (from, to, error) in [
        ("combine data[0] = data + s1 from 1 + s2 from 2", "combine data[0] = data", "line 11: "),
        (
            " from 2",
            " from two",
            "line 11: `combine data[0] = data + s1 from 1 + s2 from two` cannot",
        ),
        (
            "to 1 2",
            "to",
            "line 14: `multicast data[0] to` cannot be read: expected `multicast slot",
        ),
        (
            "sleep 3 ns",
            "sleep 3 ns\n  combine data[0] = s1 from 1",
            "line 13: `combine data[0] = s1",
        ),
    ] {
        let found = read(&ROOT.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(found.starts_with(error), "`{found}` should be `{error}...`");
    }
}

fn any_range() -> impl Strategy<Value = ChunkRange> {
    (0..40_u32, 0..5_u32).prop_map(|(start, len)| ChunkRange::new(start, start + len))
}

fn any_op() -> impl Strategy<Value = Op> {
    let slot = || (0..4_u32).prop_map(Slot);
    let message = || {
        (0..9_u32, slot(), any_range()).prop_map(|(peer, slot, chunks)| Message {
            peer: RankId(peer),
            slot,
            chunks,
        })
    };
    let duration = || any::<u64>().prop_map(Time::from_ps);
    prop_oneof![
        message().prop_map(Op::Send),
        message().prop_map(Op::Recv),
        message().prop_map(Op::Contribute),
        (proptest::collection::vec((0..9_u32).prop_map(RankId), 1..4), slot(), any_range())
            .prop_map(|(peers, slot, chunks)| Op::Multicast { peers, slot, chunks }),
        (slot(), proptest::collection::vec((slot(), 0..9_u32), 1..5), any_range()).prop_map(
            |(into, operands, chunks)| {
                let from = |peer| (peer < 6).then_some(RankId(peer));
                let operands = operands.into_iter().map(|(slot, peer)| (slot, from(peer)));
                Op::Combine { into, operands: operands.collect(), chunks }
            }
        ),
        (slot(), proptest::collection::vec(slot(), 0..4), any_range())
            .prop_map(|(into, operands, chunks)| Op::Reduce { into, operands, chunks }),
        (slot(), slot(), any_range(), 0..50_u32).prop_map(|(from, into, chunks, to)| Op::Copy {
            from,
            into,
            chunks,
            to
        }),
        duration().prop_map(|duration| Op::Compute { duration }),
        duration().prop_map(|duration| Op::Sleep { duration }),
    ]
}

fn any_schedule() -> impl Strategy<Value = Explicit> {
    let ops = proptest::collection::vec((0..6_u32, any_op(), any::<bool>()), 0..40);
    (0..Collective::ALL.len(), 0..6_u32, 0..5_u32, ops, "[a-z:,# 0-9]{0,12}").prop_map(
        |(kind, root, result, ops, name)| {
            let collective = Collective::ALL[kind].with_root(RankId(root));
            let has_blocks = collective == Collective::AllToAllV;
            let mut builder = Explicit::builder(collective, 6, if has_blocks { 36 } else { 7 });
            if has_blocks {
                builder.blocks(
                    &(0..36).map(|chunk| u64::from(root) * chunk % 7 + 1).collect::<Vec<_>>(),
                );
            }
            builder.result(Slot(result)).name(&format!("x{}", name.trim_end()));
            for (rank, op, end) in &ops {
                builder.op(RankId(*rank), op);
                if *end {
                    builder.start_step(RankId(*rank), name.trim());
                }
            }
            builder.build().unwrap()
        },
    )
}

proptest! {
    #[test]
    fn written_schedules_round_trip(schedule in any_schedule()) {
        let text = to_string(&schedule);
        let read = read(&text).unwrap();
        prop_assert_eq!(&read, &schedule);
        prop_assert_eq!(to_string(&read), text);
    }

    #[test]
    fn no_text_makes_the_reader_panic(at in 0..PAIR.len(), to in "[ -~\n]{0,6}", cut in 0..9_usize) {
        let end = (at + cut).min(PAIR.len());
        let text = format!("{}{to}{}", &PAIR[..at], &PAIR[end..]);
        if let Ok(schedule) = read(&text) {
            prop_assert_eq!(&read(&to_string(&schedule)).unwrap(), &schedule);
        }
    }
}
