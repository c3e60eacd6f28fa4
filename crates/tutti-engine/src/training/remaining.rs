//! The computation that NPUs still have to perform: a lower bound of the end of a run.

use super::TrainingRun;
use crate::workload::{Lane, Program, TaskId, What};
use tutti_units::Time;

/// The remaining computation of each NPU. An NPU executes the tasks of its main lane one after the
/// other, so that a run ends at the earliest when it has executed those that have not started.
pub(super) struct Remaining {
    /// By NPU: the least time of its tasks of the main lane that have not ended.
    left: Vec<Time>,
    /// The run ends at this time or later.
    pub(super) earliest_end: Time,
}

impl Remaining {
    pub(super) fn new(run: &TrainingRun<'_>, npus: usize) -> Remaining {
        let total = |program: &Program| {
            program.tasks().iter().map(|task| on_main_lane(task.what).unwrap_or_default()).sum()
        };
        let totals: Vec<Time> = least_programs(run).iter().map(total).collect();
        Remaining {
            left: (0..npus).map(|npu| totals[run.number_of(npu)]).collect(),
            earliest_end: Time::ZERO,
        }
    }

    /// A task of an NPU ends; the main lane is idle after one of its tasks.
    pub(super) fn end(&mut self, run: &TrainingRun<'_>, npu: usize, task: TaskId, now: Time) {
        let program = &least_programs(run)[run.number_of(npu)];
        if let Some(least) = on_main_lane(program.tasks()[task.index()].what) {
            self.left[npu] = self.left[npu] - least;
            self.earliest_end = self.earliest_end.max(now + self.left[npu]);
        }
    }
}

/// The programs with the least time of each task: with the complete memory bandwidth, if known.
fn least_programs<'a>(run: &TrainingRun<'a>) -> &'a [Program] {
    if run.unreserved.is_empty() { run.programs } else { run.unreserved }
}

/// The time of a task of the main lane; None for others.
fn on_main_lane(what: What) -> Option<Time> {
    match what {
        What::Compute { time, lane: Lane::Main } => Some(time),
        _ => None,
    }
}
