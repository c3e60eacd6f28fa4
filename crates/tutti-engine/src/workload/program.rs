//! Tasks of an NPU and what each waits for.

use super::{Pass, Transfer};
use tutti_units::{Bytes, Time};

/// A task of a program, counted from zero in the order in which it was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

impl TaskId {
    /// As an index into a vector.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for TaskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "task {}", self.0)
    }
}

/// Which part of the processor computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// All of it that is not set aside.
    Main,
    /// What is set aside for work beside the training loop.
    Background,
}

/// What a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The processor works; a lane does one task after the other.
    Compute {
        /// For how long.
        time: Time,
        /// Which part of it.
        lane: Lane,
    },
    /// Something is handed to the network, which goes on without the processor.
    Collective(Transfer),
    /// Nothing to do, while other stages of a pipeline do what this NPU has done or will do.
    Bubble(Bubble),
}

/// A wait that is as long as something else was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bubble {
    /// From the beginning of this task ...
    pub from: TaskId,
    /// ... to the end of this one: both before it.
    pub to: TaskId,
    /// So many times ...
    pub times: u32,
    /// ... from the end of this task on, which is before it as well.
    pub since: TaskId,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// What it is.
    pub what: What,
    /// The layer it belongs to, an index into the names of the program.
    pub layer: u32,
    /// The pass over that layer.
    pub pass: Pass,
    /// Which iteration, from zero.
    pub iteration: u32,
}

/// Why tasks make no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "WorkloadError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum ProgramError {
    /// Nothing to do.
    #[error("the program has no tasks: expected at least one")]
    Empty,
    /// A task that waits for one that is not there.
    #[error("{task} waits for {missing}, but there are only {tasks} tasks")]
    NoSuchTask { task: TaskId, missing: TaskId, tasks: usize },
    /// Tasks that wait for each other.
    #[error("tasks wait for each other in a circle: {}", circle_text(.circle))]
    Circle { circle: Vec<TaskId> },
    /// A collective that moves nothing.
    #[error("{task} is a collective of 0 B: expected at least 1 B, or no collective")]
    NoBytes { task: TaskId },
}

fn circle_text(circle: &[TaskId]) -> String {
    let shown: Vec<String> = circle.iter().take(8).map(ToString::to_string).collect();
    let more = if circle.len() > shown.len() { " -> ..." } else { "" };
    format!("{}{more}", shown.join(" -> "))
}

/// What one NPU does: tasks, each begun when all that it waits for is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    names: Vec<String>,
    tasks: Vec<Task>,
    /// Where the tasks that wait for task i begin in `followers`.
    first: Vec<u32>,
    followers: Vec<TaskId>,
    needs: Vec<u32>,
    iterations: u32,
}

impl Program {
    /// From tasks and what each of them waits for; `names` are those of the layers.
    ///
    /// # Errors
    /// When there are no tasks, one waits for a task that is not there or, in the end, for itself, or a
    /// collective moves nothing.
    pub fn new(
        names: Vec<String>,
        tasks: Vec<(Task, Vec<TaskId>)>,
    ) -> Result<Program, ProgramError> {
        if tasks.is_empty() {
            return Err(ProgramError::Empty);
        }
        let iterations = tasks.iter().map(|(task, _)| task.iteration + 1).max().unwrap_or(0);
        let (tasks, waits): (Vec<Task>, Vec<Vec<TaskId>>) = tasks.into_iter().unzip();
        check_each(&tasks, &waits)?;
        let (first, followers) = followers(&waits);
        let needs = waits.iter().map(|wait| count(wait.len())).collect();
        let program = Program { names, tasks, first, followers, needs, iterations };
        program.check_order(&waits)?;
        Ok(program)
    }

    /// Its tasks.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The names of its layers.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How many iterations it spans.
    #[must_use]
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// The tasks that wait for `task`.
    #[must_use]
    pub fn followers(&self, task: TaskId) -> &[TaskId] {
        let range = self.first[task.index()] as usize..self.first[task.index() + 1] as usize;
        &self.followers[range]
    }

    /// For how many tasks each task waits.
    #[must_use]
    pub fn needs(&self) -> &[u32] {
        &self.needs
    }

    /// Every task must become free once those before it are done; who does not is part of a circle or
    /// behind one.
    fn check_order(&self, waits: &[Vec<TaskId>]) -> Result<(), ProgramError> {
        let mut needs = self.needs.clone();
        let mut free: Vec<TaskId> =
            (0..).zip(&needs).filter(|(_, n)| **n == 0).map(|(i, _)| TaskId(i)).collect();
        let mut done = 0;
        while let Some(task) = free.pop() {
            done += 1;
            for &follower in self.followers(task) {
                needs[follower.index()] -= 1;
                if needs[follower.index()] == 0 {
                    free.push(follower);
                }
            }
        }
        if done == self.tasks.len() { Ok(()) } else { Err(circle(&needs, waits)) }
    }
}

/// Tasks that are never free wait for one that is not either: following them ends in a circle.
fn circle(needs: &[u32], waits: &[Vec<TaskId>]) -> ProgramError {
    let mut position = vec![None; needs.len()];
    let mut way = Vec::new();
    let mut at = (0..).zip(needs).find(|(_, n)| **n > 0).map(|(i, _)| TaskId(i));
    while let Some(task) = at {
        let seen = position[task.index()].replace(way.len());
        way.push(task);
        if let Some(begin) = seen {
            way.drain(..begin);
            break;
        }
        at = waits[task.index()].iter().copied().find(|wait| needs[wait.index()] > 0);
    }
    ProgramError::Circle { circle: way }
}

fn check_each(tasks: &[Task], waits: &[Vec<TaskId>]) -> Result<(), ProgramError> {
    for (id, (task, wait)) in (0..).zip(tasks.iter().zip(waits)) {
        let id = TaskId(id);
        let named: &[TaskId] = match &task.what {
            What::Bubble(bubble) => &[bubble.from, bubble.to, bubble.since],
            _ => &[],
        };
        if let Some(&missing) = wait.iter().chain(named).find(|wait| wait.index() >= tasks.len()) {
            return Err(ProgramError::NoSuchTask { task: id, missing, tasks: tasks.len() });
        }
        if matches!(task.what, What::Collective(Transfer { bytes: Bytes(0), .. })) {
            return Err(ProgramError::NoBytes { task: id });
        }
    }
    Ok(())
}

/// Who waits for each task: where its followers begin, and all followers in a row.
fn followers(waits: &[Vec<TaskId>]) -> (Vec<u32>, Vec<TaskId>) {
    let mut pairs: Vec<(TaskId, TaskId)> = (0..)
        .zip(waits)
        .flat_map(|(id, wait)| wait.iter().map(move |&before| (before, TaskId(id))))
        .collect();
    pairs.sort_unstable();
    let first = (0..=waits.len())
        .map(|task| count(pairs.partition_point(|(before, _)| before.index() < task)))
        .collect();
    (first, pairs.into_iter().map(|(_, after)| after).collect())
}

fn count(n: usize) -> u32 {
    u32::try_from(n).expect("a program has fewer than 2^32 tasks")
}
