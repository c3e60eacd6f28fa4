//! The processor's side of a training run: which tasks are free, and what the NPU's time goes into.

use std::collections::BTreeSet;

use crate::workload::{Bubble, Lane, Program, TaskId, What};
use tutti_units::Time;

/// What the time of an NPU went into; the four sum to the time of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    /// It computed and had nothing to communicate.
    pub compute: Time,
    /// It computed and communicated.
    pub overlap: Time,
    /// It did not compute, and communicated: communication that computing does not hide.
    pub exposed: Time,
    /// It did neither.
    pub idle: Time,
}

impl Breakdown {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> Time {
        self.compute + self.overlap + self.exposed + self.idle
    }

    /// Time in which the processor was busy.
    #[must_use]
    pub fn computing(&self) -> Time {
        self.compute + self.overlap
    }

    /// Time in which anything was communicated.
    #[must_use]
    pub fn communicating(&self) -> Time {
        self.overlap + self.exposed
    }
}

/// Something a processor wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// A task of a lane has begun and ends then.
    Until(Time, TaskId),
    /// A collective is handed over.
    Issue(TaskId),
    /// Nothing is done until then.
    Rest(Time, TaskId),
}

/// A span of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSpan {
    /// Which task.
    pub task: TaskId,
    /// When it began: a collective, when it was handed over.
    pub start: Time,
    /// When it was done.
    pub end: Time,
}

/// A lane: what it does, and what is free to be done, lowest first.
#[derive(Clone, Debug, Default)]
struct LaneState {
    busy: Option<TaskId>,
    free: BTreeSet<TaskId>,
}

/// The processor of an NPU.
#[derive(Clone, Debug)]
pub(super) struct Processor {
    needs: Vec<u32>,
    lanes: [LaneState; 2],
    communicating: u32,
    since: Time,
    pub(super) breakdown: Breakdown,
    pub(super) left: usize,
    pub(super) spans: Vec<TaskSpan>,
    started: Vec<Time>,
    ended: Vec<Time>,
    /// Since when each iteration is done.
    pub(super) iterations: Vec<Time>,
}

impl Processor {
    pub(super) fn new(program: &Program) -> Processor {
        let tasks = program.tasks().len();
        Processor {
            needs: program.needs().to_vec(),
            lanes: [LaneState::default(), LaneState::default()],
            communicating: 0,
            since: Time::ZERO,
            breakdown: Breakdown::default(),
            left: tasks,
            spans: Vec::with_capacity(tasks),
            started: vec![Time::ZERO; tasks],
            ended: vec![Time::ZERO; tasks],
            iterations: vec![Time::ZERO; program.iterations() as usize],
        }
    }

    /// Everything that waits for nothing.
    pub(super) fn begin(&mut self, program: &Program, wishes: &mut Vec<Wish>) {
        let free: Vec<TaskId> =
            (0..).zip(&self.needs).filter(|(_, n)| **n == 0).map(|(i, _)| TaskId(i)).collect();
        for task in free {
            self.set_free(program, task, Time::ZERO, wishes);
        }
        self.fill(program, Time::ZERO, wishes);
    }

    /// A task is done: what waited for it alone is free.
    pub(super) fn end(
        &mut self,
        program: &Program,
        task: TaskId,
        now: Time,
        wishes: &mut Vec<Wish>,
    ) {
        self.account(now);
        match program.tasks()[task.index()].what {
            What::Compute { lane, .. } => self.lanes[lane as usize].busy = None,
            What::Collective(_) => self.communicating -= 1,
            What::Bubble(_) => {}
        }
        self.left -= 1;
        self.ended[task.index()] = now;
        self.spans.push(TaskSpan { task, start: self.started[task.index()], end: now });
        self.iterations[program.tasks()[task.index()].iteration as usize] = now;
        for &follower in program.followers(task) {
            self.needs[follower.index()] -= 1;
            if self.needs[follower.index()] == 0 {
                self.set_free(program, follower, now, wishes);
            }
        }
        self.fill(program, now, wishes);
    }

    /// Tasks that are neither done nor free, for a report of who waits.
    pub(super) fn stuck(&self) -> Vec<TaskId> {
        (0..).zip(&self.needs).filter(|(_, n)| **n > 0).map(|(i, _)| TaskId(i)).collect()
    }

    fn set_free(&mut self, program: &Program, task: TaskId, now: Time, wishes: &mut Vec<Wish>) {
        match program.tasks()[task.index()].what {
            What::Compute { lane, .. } => {
                self.lanes[lane as usize].free.insert(task);
            }
            What::Collective(_) => {
                self.account(now);
                self.started[task.index()] = now;
                self.communicating += 1;
                wishes.push(Wish::Issue(task));
            }
            What::Bubble(bubble) => {
                self.started[task.index()] = now;
                wishes.push(Wish::Rest(self.end_of(bubble).max(now), task));
            }
        }
    }

    fn end_of(&self, bubble: Bubble) -> Time {
        let once = self.ended[bubble.to.index()] - self.started[bubble.from.index()];
        self.ended[bubble.since.index()] + once.times(u64::from(bubble.times))
    }

    /// A lane that does nothing takes the first task that is free.
    fn fill(&mut self, program: &Program, now: Time, wishes: &mut Vec<Wish>) {
        for lane in [Lane::Main, Lane::Background] {
            let state = &mut self.lanes[lane as usize];
            if state.busy.is_some() {
                continue;
            }
            let Some(task) = state.free.pop_first() else { continue };
            state.busy = Some(task);
            self.started[task.index()] = now;
            if let What::Compute { time, .. } = program.tasks()[task.index()].what {
                wishes.push(Wish::Until(now + time, task));
            }
        }
    }

    /// Time up to now went into what the NPU did until now.
    fn account(&mut self, now: Time) {
        let span = now - self.since;
        self.since = now;
        let computing = self.lanes[Lane::Main as usize].busy.is_some();
        let part = match (computing, self.communicating > 0) {
            (true, false) => &mut self.breakdown.compute,
            (true, true) => &mut self.breakdown.overlap,
            (false, true) => &mut self.breakdown.exposed,
            (false, false) => &mut self.breakdown.idle,
        };
        *part += span;
    }
}
