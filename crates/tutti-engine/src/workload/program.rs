//! Programs: the tasks of an NPU and their dependencies.

use super::{Message, Pass, Transfer};
use tutti_units::{Bytes, Time};

/// A task of a program, counted from zero in the order in which it was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

impl TaskId {
    /// Its index into a vector.
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

/// A part of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// The main part.
    Main,
    /// The part reserved for background work.
    Background,
}

/// The kind of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Computation; a lane runs its tasks sequentially.
    Compute {
        /// The duration.
        time: Time,
        /// The part of the processor.
        lane: Lane,
    },
    /// A collective, which the network executes without the processor.
    Collective(Transfer),
    /// A message to another NPU; complete when it has arrived.
    Send(Message),
    /// A message from another NPU; complete when it has arrived.
    Recv(Message),
}

impl What {
    /// The bytes of a collective or message.
    #[must_use]
    pub fn bytes(&self) -> Option<Bytes> {
        match self {
            What::Compute { .. } => None,
            What::Collective(transfer) => Some(transfer.bytes),
            What::Send(message) | What::Recv(message) => Some(message.bytes),
        }
    }
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its kind.
    pub what: What,
    /// The layer it belongs to, an index into the names of the program.
    pub layer: u32,
    /// The pass over that layer.
    pub pass: Pass,
    /// Which iteration, from zero.
    pub iteration: u32,
}

/// Why a program is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "WorkloadError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum ProgramError {
    /// No tasks.
    #[error("the program has no tasks: expected at least one")]
    Empty,
    /// A dependency on a task that does not exist.
    #[error("{task} depends on {missing}, but there are only {tasks} tasks")]
    NoSuchTask { task: TaskId, missing: TaskId, tasks: usize },
    /// Tasks with a cyclic dependency.
    #[error("tasks have a cyclic dependency: {}", cycle_text(.cycle))]
    CyclicDependency { cycle: Vec<TaskId> },
    /// A transfer of no bytes.
    #[error("{task} transfers 0 B: expected at least 1 B, or no transfer")]
    NoBytes { task: TaskId },
}

fn cycle_text(cycle: &[TaskId]) -> String {
    let shown: Vec<String> = cycle.iter().take(8).map(ToString::to_string).collect();
    let more = if cycle.len() > shown.len() { " -> ..." } else { "" };
    format!("{}{more}", shown.join(" -> "))
}

/// The program of an NPU: tasks, each ready when all its dependencies are complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    names: Vec<String>,
    tasks: Vec<Task>,
    /// The start of the followers of task i in `followers`.
    first: Vec<u32>,
    followers: Vec<TaskId>,
    needs: Vec<u32>,
    iterations: u32,
}

impl Program {
    /// Builds a program from tasks and their dependencies; `names` are those of the layers.
    ///
    /// # Errors
    /// When there are no tasks, a dependency does not exist, dependencies are cyclic, or a
    /// transfer has no bytes.
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

    /// The number of iterations.
    #[must_use]
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// The tasks that depend on `task`.
    #[must_use]
    pub fn followers(&self, task: TaskId) -> &[TaskId] {
        let range = self.first[task.index()] as usize..self.first[task.index() + 1] as usize;
        &self.followers[range]
    }

    /// The number of dependencies of each task.
    #[must_use]
    pub fn needs(&self) -> &[u32] {
        &self.needs
    }

    /// Checks that every task becomes ready; tasks that do not are on a cycle or depend on one.
    fn check_order(&self, waits: &[Vec<TaskId>]) -> Result<(), ProgramError> {
        let mut needs = self.needs.clone();
        let mut ready: Vec<TaskId> =
            (0..).zip(&needs).filter(|(_, n)| **n == 0).map(|(i, _)| TaskId(i)).collect();
        let mut done = 0;
        while let Some(task) = ready.pop() {
            done += 1;
            for &follower in self.followers(task) {
                needs[follower.index()] -= 1;
                if needs[follower.index()] == 0 {
                    ready.push(follower);
                }
            }
        }
        if done == self.tasks.len() { Ok(()) } else { Err(cycle(&needs, waits)) }
    }
}

/// Finds a cycle: a task that is never ready depends on another such task.
fn cycle(needs: &[u32], waits: &[Vec<TaskId>]) -> ProgramError {
    let mut position = vec![None; needs.len()];
    let mut path = Vec::new();
    let mut at = (0..).zip(needs).find(|(_, n)| **n > 0).map(|(i, _)| TaskId(i));
    while let Some(task) = at {
        let seen = position[task.index()].replace(path.len());
        path.push(task);
        if let Some(start) = seen {
            path.drain(..start);
            break;
        }
        at = waits[task.index()].iter().copied().find(|wait| needs[wait.index()] > 0);
    }
    ProgramError::CyclicDependency { cycle: path }
}

fn check_each(tasks: &[Task], waits: &[Vec<TaskId>]) -> Result<(), ProgramError> {
    for (id, (task, wait)) in (0..).zip(tasks.iter().zip(waits)) {
        let id = TaskId(id);
        if let Some(&missing) = wait.iter().find(|wait| wait.index() >= tasks.len()) {
            return Err(ProgramError::NoSuchTask { task: id, missing, tasks: tasks.len() });
        }
        if task.what.bytes() == Some(Bytes(0)) {
            return Err(ProgramError::NoBytes { task: id });
        }
    }
    Ok(())
}

/// The followers of each task: the start of each list, and all lists concatenated.
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
