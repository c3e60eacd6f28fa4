//! Training: a program on every NPU, and its collectives behind an endpoint.
//!
//! The processor executes the tasks of its [`Program`]. It issues collectives to the
//! [`TrainingFabric`], which executes their schedules packet by packet on a [`StepNetwork`]. The breakdown of an NPU's time is
//! accumulated during the run, and its parts sum to the time of the run.

mod algorithms;
mod conserved;
mod entry;
mod event;
mod fabric;
mod group;
mod limit;
mod loads;
mod network;
mod npu;
mod packets;
mod processor;
mod record;
#[cfg(test)]
mod tests;
mod torus;
mod transfers;
mod windows;

pub use algorithms::{Algorithms, Chosen};
pub use entry::Order;
pub use fabric::{Population, TrainingFabric};
pub use limit::Limit;
pub use network::{Graph, Sharing, StepNetwork};
pub use npu::Stall;
pub use processor::{Breakdown, TaskSpan};
pub use record::{NpuRecord, TrainingOutcome};
pub use torus::{Ring, Torus, TorusError};
pub use windows::Windows;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::dataflow::DataflowError;
use crate::endpoint::EndpointError;
use crate::workload::{Program, Task, TaskId, Transfer, What};
use fabric::Running;
use processor::{Processor, Request};
use tutti_units::{Bytes, Time};

/// Why a training run fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "SimulationError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum TrainingRunError {
    /// A collective without a default schedule.
    #[error(
        "{collective} has no default schedule in a training step: expected a chosen algorithm, or \
         all_reduce, reduce_scatter, all_gather or all_to_all among at least 2 NPUs"
    )]
    NoPlan { collective: &'static str },
    /// A schedule for groups of another size.
    #[error("{name} has {ranks} ranks: expected {group}, the size of the group")]
    WrongGroup { name: String, ranks: u32, group: u32 },
    /// Dimensions that do not form the network.
    #[error("the dimensions {sizes:?} have {product} NPUs: expected {npus}, as in the network")]
    WrongSizes { sizes: Vec<u32>, product: u64, npus: u32 },
    /// A message between NPUs that are not neighbours on a torus of FIFO links.
    #[error(
        "NPU {from} sends to NPU {to}, which is not its neighbour: expected flows, or a schedule of \
         neighbours"
    )]
    NoLink { from: u32, to: u32 },
    /// A message without a path.
    #[error("NPU {from} sends to NPU {to}, but the topology has no path between them")]
    NoPath { from: u32, to: u32 },
    /// One NPU for all, although they differ.
    #[error("NPUs do not act alike: expected to simulate every NPU")]
    NotSymmetric,
    /// A number of packets beyond the supported range.
    #[error("a message of {bytes} in packets of {packet} has too many packets")]
    TooManyPackets { bytes: Bytes, packet: Bytes },
    /// A schedule without data flow.
    #[error(transparent)]
    Dataflow {
        #[from]
        source: DataflowError,
    },
    /// A number of chunks beyond the supported range.
    #[error("a collective of {bytes} in chunks of {chunk} has too many chunks")]
    TooManyChunks { bytes: Bytes, chunk: Bytes },
    /// Chunks or messages of no bytes.
    #[error("chunks and messages of 0 B carry no payload: expected at least 1 B")]
    EmptyChunk,
    /// An endpoint that does not support the run.
    #[error(transparent)]
    Endpoint {
        #[from]
        source: EndpointError,
    },
    /// A number of programs that differs from the number of simulated NPUs.
    #[error("{given} programs are given for {npus} simulated NPUs: expected one per NPU")]
    WrongPrograms { given: usize, npus: usize },
    /// NPUs that issue different collectives.
    #[error("collective {index} of NPU {npu} is {found}: expected {expected}, as on NPU 0")]
    OtherCollectives { npu: usize, index: usize, found: String, expected: String },
    /// Tasks that never become ready.
    #[error(
        "the run cannot finish: {count} tasks of NPU {npu} are blocked forever; the first is {task}"
    )]
    Stuck { npu: u32, task: TaskId, count: usize },
    /// The caller stopped the run.
    #[error("the simulation was stopped before it finished")]
    Stopped,
}

/// The inputs of a training run.
#[derive(Clone, Copy, Debug)]
pub struct TrainingRun<'a> {
    /// The program of every NPU.
    pub program: &'a Program,
    /// A program per NPU, if they differ: the same collectives in the same order, with other
    /// compute tasks. Empty if all NPUs run `program`.
    pub each: &'a [Program],
    /// The fabric of its collectives.
    pub fabric: &'a TrainingFabric,
    /// The length of the windows of utilisation; zero records none.
    pub window: Time,
}

impl TrainingRun<'_> {
    fn program_of(&self, npu: usize) -> &Program {
        self.each.get(npu).unwrap_or(self.program)
    }

    /// Runs to completion.
    ///
    /// # Errors
    /// When the torus does not support a collective, a chunk does not fit, or tasks are blocked
    /// forever.
    pub fn run(&self) -> Result<TrainingOutcome, TrainingRunError> {
        self.run_until(&AtomicBool::new(false))
    }

    /// Runs to completion, or until `stop` is set.
    ///
    /// # Errors
    /// As [`TrainingRun::run`], and when it was stopped.
    pub fn run_until(&self, stop: &AtomicBool) -> Result<TrainingOutcome, TrainingRunError> {
        let mut state = State::new(self)?;
        state.start();
        let mut steps = 0_u32;
        while state.step() {
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(4096) && stop.load(Ordering::Relaxed) {
                return Err(TrainingRunError::Stopped);
            }
        }
        state.finish()
    }
}

/// The collectives of a program: the task of each collective, and the collective of each task.
struct CollectiveTasks {
    tasks: Vec<TaskId>,
    transfers: Vec<usize>,
}

impl CollectiveTasks {
    fn new(program: &Program) -> CollectiveTasks {
        let mut tasks = Vec::new();
        let mut transfers = vec![usize::MAX; program.tasks().len()];
        for (id, task) in (0..).zip(program.tasks()) {
            if let What::Collective(_) = task.what {
                transfers[TaskId(id).index()] = tasks.len();
                tasks.push(TaskId(id));
            }
        }
        CollectiveTasks { tasks, transfers }
    }
}

fn collectives(program: &Program) -> Vec<Transfer> {
    let collective = |task: &Task| match task.what {
        What::Collective(transfer) => Some(transfer),
        _ => None,
    };
    program.tasks().iter().filter_map(collective).collect()
}

/// Checks that every NPU issues the same collectives in the same order: they are matched by number.
fn check_programs(
    each: &[Program],
    expected: &[Transfer],
    npus: usize,
) -> Result<(), TrainingRunError> {
    if !each.is_empty() && each.len() != npus {
        return Err(TrainingRunError::WrongPrograms { given: each.len(), npus });
    }
    let listed = |transfer: Option<&Transfer>| match transfer {
        Some(transfer) => format!("{} of {}", transfer.exchange.name(), transfer.bytes),
        None => "missing".to_owned(),
    };
    for (npu, program) in each.iter().enumerate() {
        let found = collectives(program);
        let most = found.len().max(expected.len());
        if let Some(index) = (0..most).find(|&index| found.get(index) != expected.get(index)) {
            let (found, expected) = (listed(found.get(index)), listed(expected.get(index)));
            return Err(TrainingRunError::OtherCollectives { npu, index, found, expected });
        }
    }
    Ok(())
}

/// The state of a run.
struct State<'a> {
    run: &'a TrainingRun<'a>,
    fabric: Running<'a>,
    processors: Vec<Processor>,
    /// The completion times of running tasks.
    ends: BinaryHeap<Reverse<(Time, u32, TaskId)>>,
    /// The collectives of each program.
    collective_tasks: Vec<CollectiveTasks>,
    computing: Windows,
    requests: Vec<Request>,
    done: Vec<(u32, usize)>,
    now: Time,
}

impl<'a> State<'a> {
    fn new(run: &'a TrainingRun<'a>) -> Result<State<'a>, TrainingRunError> {
        let collectives = collectives(run.program);
        let fabric = Running::new(run.fabric, &collectives, run.window)?;
        let npus = fabric.npus().len();
        check_programs(run.each, &collectives, npus)?;
        let processors = (0..npus).map(|npu| Processor::new(run.program_of(npu))).collect();
        let collective_tasks = if run.each.is_empty() {
            vec![CollectiveTasks::new(run.program)]
        } else {
            run.each.iter().map(CollectiveTasks::new).collect()
        };
        Ok(State {
            run,
            fabric,
            processors,
            ends: BinaryHeap::new(),
            collective_tasks,
            computing: Windows::new(run.window),
            requests: Vec::new(),
            done: Vec::new(),
            now: Time::ZERO,
        })
    }

    fn collective_tasks(&self, npu: usize) -> &CollectiveTasks {
        self.collective_tasks.get(npu).unwrap_or(&self.collective_tasks[0])
    }

    fn start(&mut self) {
        for npu in 0..self.processors.len() {
            self.processors[npu].start(self.run.program_of(npu), &mut self.requests);
            self.grant(npu);
        }
    }

    /// Executes the next event of a processor or the fabric, processors first; returns whether
    /// there was one.
    fn step(&mut self) -> bool {
        let end = self.ends.peek().map(|Reverse((time, ..))| *time);
        let event = self.fabric.next(end);
        match (end, event) {
            (None, None) => return false,
            (Some(end), event) if event.is_none_or(|event| end <= event) => {
                if let Some(Reverse((time, npu, task))) = self.ends.pop() {
                    self.end(npu, task, time);
                }
            }
            (_, event) => {
                self.now = event.unwrap_or(self.now);
                self.fabric.step();
            }
        }
        self.collect();
        true
    }

    /// Completes the tasks of complete collectives.
    fn collect(&mut self) {
        loop {
            let mut done = std::mem::take(&mut self.done);
            self.fabric.take_done(&mut done);
            let any = !done.is_empty();
            for (npu, transfer) in done.drain(..) {
                let task = self.collective_tasks(npu as usize).tasks[transfer];
                self.end(npu, task, self.now);
            }
            self.done = done;
            if !any {
                return;
            }
        }
    }

    fn end(&mut self, npu: u32, task: TaskId, now: Time) {
        self.now = now;
        let program = self.run.program_of(npu as usize);
        self.processors[npu as usize].end(program, task, now, &mut self.requests);
        self.grant(npu as usize);
    }

    /// Executes the requests of a processor.
    fn grant(&mut self, npu: usize) {
        let id = u32::try_from(npu).expect("there are fewer than 2^32 NPUs");
        let mut requests = std::mem::take(&mut self.requests);
        for request in requests.drain(..) {
            match request {
                Request::Run(end, task) => {
                    self.computing.add(self.now, end);
                    self.ends.push(Reverse((end, id, task)));
                }
                Request::Idle(end, task) => self.ends.push(Reverse((end, id, task))),
                Request::Issue(task) => {
                    let transfer = self.collective_tasks(npu).transfers[task.index()];
                    self.fabric.issue(id, transfer, self.now);
                }
            }
        }
        self.requests = requests;
    }

    fn finish(self) -> Result<TrainingOutcome, TrainingRunError> {
        for (npu, processor) in (0..).zip(&self.processors) {
            if processor.left > 0 {
                let stuck = processor.stuck();
                let task = stuck.first().copied().unwrap_or(TaskId(0));
                return Err(TrainingRunError::Stuck { npu, task, count: processor.left });
            }
        }
        debug_assert!(self.fabric.is_at_rest(), "resources have not been released");
        Ok(record::outcome(self.run, self.fabric, self.processors, self.computing, self.now))
    }
}
