//! The processor in a training run: the ready tasks, and the breakdown of the NPU's time.

use std::collections::BTreeSet;

use crate::workload::{Bubble, Lane, Program, TaskId, What};
use tutti_units::Time;

/// The breakdown of an NPU's time; the four parts sum to the time of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    /// Computation without communication.
    pub compute: Time,
    /// Computation overlapped with communication.
    pub overlap: Time,
    /// Exposed communication.
    pub exposed: Time,
    /// Neither.
    pub idle: Time,
}

impl Breakdown {
    /// The sum.
    #[must_use]
    pub fn total(&self) -> Time {
        self.compute + self.overlap + self.exposed + self.idle
    }

    /// Busy time of the processor.
    #[must_use]
    pub fn computing(&self) -> Time {
        self.compute + self.overlap
    }

    /// Time with communication.
    #[must_use]
    pub fn communicating(&self) -> Time {
        self.overlap + self.exposed
    }
}

/// A request of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// A task of a lane has started and ends at this time.
    Run(Time, TaskId),
    /// Issues a collective.
    Issue(TaskId),
    /// Idles until this time.
    Idle(Time, TaskId),
}

/// A span of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSpan {
    /// The task.
    pub task: TaskId,
    /// When it started; for a collective, when it was issued.
    pub start: Time,
    /// When it completed.
    pub end: Time,
}

/// A lane: its running task and its ready tasks, lowest first.
#[derive(Clone, Debug, Default)]
struct LaneState {
    busy: Option<TaskId>,
    ready: BTreeSet<TaskId>,
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
    /// The completion time of each iteration.
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

    /// Starts the tasks without dependencies.
    pub(super) fn start(&mut self, program: &Program, requests: &mut Vec<Request>) {
        let ready: Vec<TaskId> =
            (0..).zip(&self.needs).filter(|(_, n)| **n == 0).map(|(i, _)| TaskId(i)).collect();
        for task in ready {
            self.make_ready(program, task, Time::ZERO, requests);
        }
        self.fill(program, Time::ZERO, requests);
    }

    /// Completes a task; tasks without further dependencies become ready.
    pub(super) fn end(
        &mut self,
        program: &Program,
        task: TaskId,
        now: Time,
        requests: &mut Vec<Request>,
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
                self.make_ready(program, follower, now, requests);
            }
        }
        self.fill(program, now, requests);
    }

    /// The blocked tasks, for error reports.
    pub(super) fn stuck(&self) -> Vec<TaskId> {
        (0..).zip(&self.needs).filter(|(_, n)| **n > 0).map(|(i, _)| TaskId(i)).collect()
    }

    fn make_ready(
        &mut self,
        program: &Program,
        task: TaskId,
        now: Time,
        requests: &mut Vec<Request>,
    ) {
        match program.tasks()[task.index()].what {
            What::Compute { lane, .. } => {
                self.lanes[lane as usize].ready.insert(task);
            }
            What::Collective(_) => {
                self.account(now);
                self.started[task.index()] = now;
                self.communicating += 1;
                requests.push(Request::Issue(task));
            }
            What::Bubble(bubble) => {
                self.started[task.index()] = now;
                requests.push(Request::Idle(self.end_of(bubble).max(now), task));
            }
        }
    }

    fn end_of(&self, bubble: Bubble) -> Time {
        let once = self.ended[bubble.to.index()] - self.started[bubble.from.index()];
        self.ended[bubble.since.index()] + once.times(u64::from(bubble.times))
    }

    /// An idle lane starts its first ready task.
    fn fill(&mut self, program: &Program, now: Time, requests: &mut Vec<Request>) {
        for lane in [Lane::Main, Lane::Background] {
            let state = &mut self.lanes[lane as usize];
            if state.busy.is_some() {
                continue;
            }
            let Some(task) = state.ready.pop_first() else { continue };
            state.busy = Some(task);
            self.started[task.index()] = now;
            if let What::Compute { time, .. } = program.tasks()[task.index()].what {
                requests.push(Request::Run(now + time, task));
            }
        }
    }

    /// Accounts the time up to now.
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
