//! Building schedules op by op.

use super::*;

const A: RankId = RankId(0);
const B: RankId = RankId(1);
const SCRATCH: Slot = Slot(1);
const ALL: ChunkRange = ChunkRange::new(0, 2);

#[test]
fn ops_gather_into_steps_in_program_order() {
    let mut builder = Explicit::builder(Collective::AllReduce, 2, 2);
    builder.send(A, B, Slot::DATA, ALL).recv(A, B, SCRATCH, ALL);
    builder.reduce(A, Slot::DATA, &[Slot::DATA, SCRATCH], ALL);
    // A send after a receive: a new step; a receive into a chunk being sent: another.
    builder.send(A, B, Slot::DATA, ALL).recv(A, B, Slot::DATA, ChunkRange::one(1));
    builder.end_step(A).compute(A, Time::from_ps(5));
    let schedule = builder.build().unwrap();
    let ops = |step| {
        let mut out = Step::new();
        schedule.step(A, step, &mut out);
        (out.sends.len(), out.recvs.len(), out.locals.len())
    };
    assert_eq!(schedule.steps(A), 4);
    assert_eq!([ops(0), ops(1), ops(2), ops(3)], [(1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1)]);
    assert_eq!((schedule.steps(B), schedule.shape().slots), (0, 2));
    assert_eq!(Explicit::of(&schedule), schedule);
}

#[test]
fn the_first_mistake_is_reported() {
    let mut builder = Explicit::builder(Collective::AllReduce, 2, 2);
    builder.send(RankId(7), B, Slot::DATA, ALL).recv(A, B, Slot(u32::MAX), ALL);
    let error = builder.build().unwrap_err();
    assert_eq!(error.to_string(), "rank 7 cannot send: the ranks are 0 to 1");
    let none = Explicit::builder(Collective::AllReduce, 0, 1).build();
    assert_eq!(none.unwrap_err(), ExplicitError::NoRanks);
    let root = Collective::Broadcast { root: RankId(2) };
    let wrong = Explicit::builder(root, 2, 1).build();
    assert_eq!(wrong.unwrap_err(), ExplicitError::WrongRoot { root: 2, last: 1 });
}
