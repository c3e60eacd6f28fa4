//! Phases of schedules: each alone, and all of them together.

use std::sync::Arc;

use tutti_schedule::algorithm::build;
use tutti_schedule::collective::Collective;
use tutti_schedule::{
    Explicit, OnlyPhase, Phase, Schedule, Sequence, Step, VerifyError, text, verify, verify_exactly,
};
use tutti_units::ids::RankId;

/// A reduce_scatter and an all_gather of a ring in sequence.
fn halves() -> Arc<dyn Schedule> {
    let half =
        |collective| Phase { name: String::new(), schedule: build("ring", collective, 5).unwrap() };
    let halves = vec![half(Collective::ReduceScatter), half(Collective::AllGather)];
    Arc::new(Sequence::new("halves".to_owned(), Collective::AllReduce, halves).unwrap())
}

#[test]
fn the_phases_together_are_the_schedule() {
    let schedule = halves();
    assert!(verify(&*schedule).is_ok());
    assert_eq!(schedule.phases(), 2);
    let phase = |phase| OnlyPhase::new(Arc::clone(&schedule), phase).unwrap();
    let mut together = Explicit::builder(Collective::AllReduce, 5, 5);
    together.name("halves");
    for rank in (0..5).map(RankId) {
        for part in [phase(0), phase(1)] {
            assert_eq!(part.steps(rank), 4);
            for index in 0..part.steps(rank) {
                let mut step = Step::new();
                part.step(rank, index, &mut step);
                together.step(rank, &part.step_name(rank, index), step);
            }
        }
    }
    let text = |schedule: &dyn Schedule| text::to_string(schedule);
    assert_eq!(text(&together.build().unwrap()), text(&*schedule));
    assert_eq!(phase(1).shape().name, "halves phase 1");
}

#[test]
fn a_part_is_not_proved_alone_and_the_only_phase_is_no_part() {
    for phase in 0..2 {
        let part = OnlyPhase::new(halves(), phase).unwrap();
        for refused in [verify(&part), verify_exactly(&part)] {
            let error = refused.unwrap_err();
            assert!(matches!(&error, VerifyError::Part { .. }), "{error}");
            assert!(error.to_string().contains("verify the complete schedule"), "{error}");
        }
    }
    let schedule = build("ring", Collective::AllReduce, 5).unwrap();
    let only = OnlyPhase::new(schedule, 0).unwrap();
    assert_eq!(only.shape().name, "ring");
    assert!(verify(&only).is_ok());
    let error = OnlyPhase::new(halves(), 2).err().unwrap().to_string();
    assert_eq!(error, "halves has no phase 2: its phases are 0 to 1");
}
