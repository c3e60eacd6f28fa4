//! Compute under a work-conserving memory arbiter.
//!
//! An endpoint reserves a part of the memory bandwidth. A static reservation takes it from compute
//! for the entire run. A work-conserving arbiter takes it only while the memory server of the
//! endpoint transfers data: at every other moment, compute has the complete bandwidth.
//!
//! A compute task thus has two times: `shared` with the reservation in use, and `alone` with the
//! complete bandwidth. In a picosecond it performs `1 / shared` of its work while the server is busy,
//! and `1 / alone` while it is idle; it ends in the first picosecond at which this sums to 1. The
//! model is fluid: a task spreads its memory accesses and its arithmetic evenly over its time.
//!
//! The server is FIFO, so the packets that it has accepted keep it busy without a gap. The end of a
//! task is computed as if no further packet arrived, which is never too late, and computed again at
//! that time. Tests compare every task with the busy intervals of the server.

use super::TrainingRunError;
use crate::workload::{Lane, Program, TaskId, What};
use tutti_units::Time;

/// The use of the memory server of an endpoint at some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MemoryUse {
    /// Busy time so far.
    pub(super) busy: Time,
    /// Further busy time for the packets that it has accepted.
    pub(super) ahead: Time,
}

/// The times of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// While the reservation is in use.
    pub(super) shared: Time,
    /// With the complete memory bandwidth; not longer.
    pub(super) alone: Time,
}

impl Pace {
    /// Work in units of `1 / (shared x alone)` of the task.
    fn done(self, idle: Time, busy: Time) -> u128 {
        product(idle, self.shared) + product(busy, self.alone)
    }

    /// The time that a task still takes after `idle` and `busy` time of the memory server, which stays
    /// busy for `ahead`.
    pub(super) fn left(self, (idle, busy): (Time, Time), ahead: Time) -> Time {
        let left = product(self.shared, self.alone).saturating_sub(self.done(idle, busy));
        let while_busy = product(ahead, self.alone);
        if left <= while_busy {
            return quotient(left, self.alone);
        }
        ahead + quotient(left - while_busy, self.shared)
    }
}

fn product(a: Time, b: Time) -> u128 {
    u128::from(a.ps()) * u128::from(b.ps())
}

fn quotient(work: u128, per_ps: Time) -> Time {
    let ps = work.div_ceil(u128::from(per_ps.ps()).max(1));
    Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
}

/// A task that runs.
#[derive(Clone, Copy, Debug, Default)]
struct Started {
    start: Time,
    /// The busy time of the memory server at its start.
    busy: Time,
}

/// The arbiters of all NPUs.
pub(super) struct Arbiter<'a> {
    /// The programs with the times of tasks that have the complete memory bandwidth.
    unreserved: &'a [Program],
    /// By NPU and lane: the running task.
    started: Vec<[Started; 2]>,
}

impl<'a> Arbiter<'a> {
    /// For programs and the same programs with the complete memory bandwidth; None without these.
    pub(super) fn new(
        programs: &[Program],
        unreserved: &'a [Program],
        npus: usize,
    ) -> Result<Option<Arbiter<'a>>, TrainingRunError> {
        if unreserved.is_empty() {
            return Ok(None);
        }
        if programs.len() != unreserved.len() {
            return Err(TrainingRunError::OtherUnreserved { program: 0, task: TaskId(0) });
        }
        for (program, (shared, alone)) in programs.iter().zip(unreserved).enumerate() {
            check(program, shared, alone)?;
        }
        Ok(Some(Arbiter { unreserved, started: vec![[Started::default(); 2]; npus] }))
    }

    fn pace(&self, program: usize, task: TaskId, what: What) -> Option<(Pace, Lane)> {
        let What::Compute { time: shared, lane } = what else { return None };
        let What::Compute { time: alone, .. } = self.unreserved[program].tasks()[task.index()].what
        else {
            return None;
        };
        (alone < shared).then_some((Pace { shared, alone }, lane))
    }

    /// A task starts on an NPU; returns the earliest time at which it ends.
    pub(super) fn start(
        &mut self,
        npu: usize,
        (program, task, what): (usize, TaskId, What),
        memory: MemoryUse,
        now: Time,
    ) -> Option<Time> {
        let (pace, lane) = self.pace(program, task, what)?;
        self.started[npu][lane as usize] = Started { start: now, busy: memory.busy };
        Some(now + pace.left((Time::ZERO, Time::ZERO), memory.ahead))
    }

    /// The time at which a task that should end now ends at the earliest; None if it has ended.
    pub(super) fn extended(
        &self,
        npu: usize,
        (program, task, what): (usize, TaskId, What),
        memory: MemoryUse,
        now: Time,
    ) -> Option<Time> {
        let (pace, lane) = self.pace(program, task, what)?;
        let started = self.started[npu][lane as usize];
        let busy = memory.busy - started.busy;
        let idle = now - started.start - busy;
        let left = pace.left((idle, busy), memory.ahead);
        (left > Time::ZERO).then_some(now + left)
    }
}

/// Checks that two programs differ in the times of compute tasks only, and which is longer.
fn check(program: usize, shared: &Program, alone: &Program) -> Result<(), TrainingRunError> {
    let differs = |(index, (shared, alone)): (u32, _)| {
        let fits = match (shared, alone) {
            (What::Compute { time, lane }, What::Compute { time: alone, lane: other }) => {
                lane == other && alone <= time
            }
            (shared, alone) => shared == alone,
        };
        (!fits).then_some(TaskId(index))
    };
    let whats = |of: &Program| of.tasks().iter().map(|task| task.what).collect::<Vec<What>>();
    let same = shared.needs() == alone.needs() && shared.tasks().len() == alone.tasks().len();
    let mut pairs = (0..).zip(whats(shared).into_iter().zip(whats(alone)));
    let wrong = if same { pairs.find_map(differs) } else { Some(TaskId(0)) };
    match wrong {
        Some(task) => Err(TrainingRunError::OtherUnreserved { program, task }),
        None => Ok(()),
    }
}
