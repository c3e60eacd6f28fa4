//! The processor in a training run: the ready tasks, and the breakdown of the NPU's time.

use std::collections::BTreeSet;

use crate::workload::{Lane, Program, Task, TaskId, What};
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
    /// Issues a collective or a message.
    Issue(TaskId),
}

/// A span of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSpan {
    /// The task.
    pub task: TaskId,
    /// When it started; for a collective, when it was issued, for a receive, when both sides were.
    pub start: Time,
    /// When it completed.
    pub end: Time,
}

/// The time of a task on the main lane.
fn main_time(task: &Task) -> Time {
    match task.what {
        What::Compute { time, lane: Lane::Main } => time,
        _ => Time::ZERO,
    }
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
    /// The time of the tasks of the main lane that have not ended.
    pub(super) rest: Time,
    pub(super) spans: Vec<TaskSpan>,
    /// When each task started; empty if spans are not recorded.
    started: Vec<Time>,
    /// The completion time of each iteration.
    pub(super) iterations: Vec<Time>,
}

impl Processor {
    pub(super) fn new(program: &Program, records: bool) -> Processor {
        let tasks = program.tasks().len();
        Processor {
            needs: program.needs().to_vec(),
            lanes: [LaneState::default(), LaneState::default()],
            communicating: 0,
            since: Time::ZERO,
            breakdown: Breakdown::default(),
            left: tasks,
            rest: program.tasks().iter().map(main_time).sum(),
            spans: Vec::with_capacity(if records { tasks } else { 0 }),
            started: vec![Time::ZERO; if records { tasks } else { 0 }],
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
            What::Collective(_) | What::Send(_) | What::Recv(_) => self.communicating -= 1,
        }
        self.left -= 1;
        self.rest = self.rest - main_time(&program.tasks()[task.index()]);
        if let Some(&start) = self.started.get(task.index()) {
            self.spans.push(TaskSpan { task, start, end: now });
        }
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
            What::Collective(_) | What::Send(_) => {
                self.communicate(now);
                self.note_start(task, now);
                requests.push(Request::Issue(task));
            }
            What::Recv(_) => requests.push(Request::Issue(task)),
        }
    }

    fn note_start(&mut self, task: TaskId, now: Time) {
        if let Some(started) = self.started.get_mut(task.index()) {
            *started = now;
        }
    }

    /// A message is sent that this processor awaits.
    pub(super) fn receive(&mut self, task: TaskId, now: Time) {
        self.communicate(now);
        self.note_start(task, now);
    }

    fn communicate(&mut self, now: Time) {
        self.account(now);
        self.communicating += 1;
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
            self.note_start(task, now);
            if let What::Compute { time, .. } = program.tasks()[task.index()].what {
                requests.push(Request::Run(now + time, task));
            }
        }
    }

    /// Accounts the time up to now.
    pub(super) fn account(&mut self, now: Time) {
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
