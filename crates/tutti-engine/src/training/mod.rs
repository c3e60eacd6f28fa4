//! Training: a program on every NPU, and its collectives behind an endpoint.
//!
//! The processor executes the tasks of its [`Program`]. It issues collectives and messages to the
//! [`TrainingFabric`], which executes them packet by packet behind endpoints, or as flows without
//! endpoints. The breakdown of an NPU's time is accumulated during the run, and its parts sum to the
//! time of the run.

mod algorithms;
mod arbiter;
mod bulk;
mod bulk_plans;
mod communication;
mod conserved;
mod entry;
mod event;
mod fabric;
mod flows;
mod group;
mod limit;
mod loads;
mod network;
mod npu;
mod operations;
mod packets;
mod processor;
mod record;
mod rounds;
mod routes;
mod stuck;
#[cfg(test)]
mod tests;
mod torus;
mod transfers;
mod trees;
mod windows;

pub use algorithms::{Algorithms, Chosen};
pub use entry::Order;
pub use fabric::{Detail, Population, TrainingFabric};
pub use limit::Limit;
pub use network::{Graph, Isolated, Mesh, Sharing, StepNetwork};
pub use npu::Stall;
pub use processor::{Breakdown, TaskSpan};
pub use record::{NpuRecord, TrainingOutcome};
pub use torus::{Ring, Torus, TorusError};
pub use windows::Windows;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::dataflow::DataflowError;
use crate::endpoint::EndpointError;
use crate::workload::{Lane, Program, TaskId, What};
use arbiter::Arbiter;
use communication::Communication;
use operations::Operations;
use processor::{Processor, Request};
use stuck::Mismatch;
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
    /// A schedule with multicasts or combines in the network, behind endpoints.
    #[error(
        "schedule {name} has multicasts or combines, which the switches of the network perform, but \
         endpoints send single messages: expected `detail = \"flows\"`, another algorithm, or a network \
         without `multicast` and `reduce`"
    )]
    InNetwork { name: String },
    /// A schedule for groups of another size.
    #[error("{name} has {ranks} ranks: expected {group}, the size of the group")]
    WrongGroup { name: String, ranks: u32, group: u32 },
    /// Dimensions that do not form the network.
    #[error("the dimensions {sizes:?} have {product} NPUs: expected {npus}, as in the network")]
    WrongSizes { sizes: Vec<u32>, product: u64, npus: u32 },
    /// A message without a path.
    #[error("NPU {from} sends to NPU {to}, but the topology has no path between them")]
    NoPath { from: u32, to: u32 },
    /// Transfers as flows on a network that has none.
    #[error("steps in flows need a flow model: expected a platform with the flow model")]
    NoFlows,
    /// Windows without packets.
    #[error("utilisation over time is not recorded without packets: expected no windows")]
    NoWindows,
    /// A transfer without a time.
    #[error("a {name} of {bytes} has no time: expected the time of every transfer alone")]
    NoTime { name: &'static str, bytes: Bytes },
    /// One NPU for all, although they differ.
    #[error("NPUs do not act alike: expected to simulate every NPU")]
    NotSymmetric,
    /// A number of packets beyond the supported range.
    #[error("a message of {bytes} in packets of {packet} has too many packets")]
    TooManyPackets { bytes: Bytes, packet: Bytes },
    /// A schedule without data flow.
    #[error(transparent)]
    #[refusal(transparent)]
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
    #[refusal(transparent)]
    Endpoint {
        #[from]
        source: EndpointError,
    },
    /// NPUs without a program.
    #[error(
        "{programs} programs are assigned to {given} NPUs: expected one program, or one of them for \
         each of the {npus} simulated NPUs"
    )]
    WrongPrograms { programs: usize, given: usize, npus: usize },
    /// NPUs of a group that issue different collectives.
    #[error(
        "collective {index} of NPU {npu} in its group is {found}: expected {expected}, as on NPU {first}"
    )]
    OtherCollectives { npu: u32, index: usize, found: String, first: u32, expected: String },
    /// A message without a counterpart.
    #[error(
        "message {index} from NPU {from} to NPU {to}: the sender has {sent} and the receiver has \
         {received}; expected equal sizes"
    )]
    OtherMessages { from: u32, to: u32, index: usize, sent: String, received: String },
    /// A message of an NPU to itself.
    #[error("NPU {npu} sends to itself: expected another NPU")]
    SelfMessage { npu: u32 },
    /// Programs with the complete memory bandwidth that differ in more than shorter compute tasks.
    #[error(
        "{task} of program {program} with the complete memory bandwidth differs from {task} with the \
         reservation: expected the same task in at most the same time"
    )]
    OtherUnreserved { program: usize, task: TaskId },
    /// A work-conserving arbiter for an endpoint without a memory server.
    #[error(
        "endpoint {name} has no memory server, so compute shares no memory bandwidth with it: \
         expected a static reservation, or an endpoint with a memory server"
    )]
    NoMemoryServer { name: String },
    /// Tasks that never become ready.
    #[error(
        "the run cannot finish: {count} tasks of NPU {npu} are blocked forever; the first is {task}"
    )]
    Stuck { npu: u32, task: TaskId, count: usize },
    /// NPUs that wait for chunks that others have not started.
    #[error(
        "the run cannot finish: NPU {npu} has started chunks of collective {started}, NPU {other} of its \
         group chunks of collective {instead}, and each waits for the other. With the newest collective \
         first, NPUs that handle different amounts of data start chunks in different orders: expected \
         `order = \"fifo\"`, or a schedule in which all NPUs handle as much"
    )]
    OtherChunks { npu: u32, other: u32, started: usize, instead: usize },
    /// The caller stopped the run.
    #[error("the simulation was stopped before it finished")]
    Stopped,
    /// The run takes longer than the caller allows.
    #[error("the run would end too late")]
    TooLate,
}

/// The inputs of a training run.
#[derive(Clone, Copy, Debug)]
pub struct TrainingRun<'a> {
    /// The programs.
    pub programs: &'a [Program],
    /// Which of them each NPU runs; empty if all run the first. NPUs of a group issue the same
    /// collectives in the same order.
    pub of: &'a [u32],
    /// The programs with the time of each compute task if it has the complete memory bandwidth, for a
    /// work-conserving memory arbiter. Empty: the reservation of the endpoint is static.
    pub unreserved: &'a [Program],
    /// The fabric of its collectives.
    pub fabric: &'a TrainingFabric,
    /// The length of the windows of utilisation; zero records none.
    pub window: Time,
}

/// Runs of more NPUs record the tasks of the first NPU of each program only.
const RECORDED: usize = 1024;

impl TrainingRun<'_> {
    /// Whether an NPU is the first of its program.
    fn is_first(&self, npu: usize) -> bool {
        self.of.iter().position(|&program| self.number_of(npu) == program as usize) == Some(npu)
            || (self.of.is_empty() && npu == 0)
    }

    /// The number of the program of an NPU.
    fn number_of(&self, npu: usize) -> usize {
        self.of.get(npu).map_or(0, |&program| program as usize)
    }

    fn program_of(&self, npu: usize) -> &Program {
        &self.programs[self.number_of(npu)]
    }

    fn check_programs(&self) -> Result<(), TrainingRunError> {
        let npus = self.fabric.simulated();
        let (programs, given) = (self.programs.len(), self.of.len());
        let known = self.of.iter().all(|&program| (program as usize) < programs);
        let fits = if given == 0 { programs == 1 } else { given == npus && known };
        if fits { Ok(()) } else { Err(TrainingRunError::WrongPrograms { programs, given, npus }) }
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
        self.run_before(Time::MAX, stop)
    }

    /// As [`TrainingRun::run_until`], but ends as soon as the run certainly takes longer than
    /// `latest`: at that time, or when an NPU has more computation left.
    ///
    /// # Errors
    /// As [`TrainingRun::run_until`], and when the run takes longer than `latest`.
    pub fn run_before(
        &self,
        latest: Time,
        stop: &AtomicBool,
    ) -> Result<TrainingOutcome, TrainingRunError> {
        let mut state = State::new(self)?;
        state.start();
        while state.step() {
            if stop.load(Ordering::Relaxed) {
                return Err(TrainingRunError::Stopped);
            }
            if state.now.max(state.earliest_end) > latest {
                return Err(TrainingRunError::TooLate);
            }
        }
        state.finish()
    }
}

/// The program of an NPU, and one of its tasks.
fn named(run: &TrainingRun, npu: u32, task: TaskId) -> (usize, TaskId, What) {
    let program = run.number_of(npu as usize);
    (program, task, run.programs[program].tasks()[task.index()].what)
}

/// The state of a run.
struct State<'a> {
    run: &'a TrainingRun<'a>,
    operations: Arc<Operations>,
    fabric: Communication<'a>,
    processors: Vec<Processor>,
    arbiter: Option<Arbiter<'a>>,
    /// The completion times of running tasks: by time, then NPU and task, as one number.
    ends: BinaryHeap<Reverse<(Time, u64)>>,
    /// When issued collectives start, by NPU and operation.
    launches: VecDeque<(Time, u32, usize)>,
    /// Messages that one side has issued, by receiver and operation: whether it is the sender.
    half_issued: BTreeMap<(u32, usize), bool>,
    computing: Windows,
    requests: Vec<Request>,
    done: Vec<(u32, usize)>,
    now: Time,
    /// A lower bound of the end: when an NPU has executed its remaining tasks sequentially.
    earliest_end: Time,
}

impl<'a> State<'a> {
    fn new(run: &'a TrainingRun<'a>) -> Result<State<'a>, TrainingRunError> {
        let fabric = run.fabric;
        fabric.check_sizes()?;
        run.check_programs()?;
        let operations = Operations::new(run.programs, run.of, &fabric.sizes, fabric.population)?;
        let operations = Arc::new(operations);
        let npus = fabric.simulated();
        let arbiter = Arbiter::new(run.programs, run.unreserved, npus)?;
        if arbiter.is_some() && fabric.endpoint.memory.is_none() {
            let name = fabric.endpoint.name.to_string();
            return Err(TrainingRunError::NoMemoryServer { name });
        }
        let fabric = Communication::new(fabric, &operations, run.window)?;
        let records = |npu: usize| npus <= RECORDED || run.is_first(npu);
        let processor = |npu| Processor::new(run.program_of(npu), records(npu));
        Ok(State {
            run,
            operations,
            fabric,
            processors: (0..npus).map(processor).collect(),
            arbiter,
            ends: BinaryHeap::new(),
            launches: VecDeque::new(),
            half_issued: BTreeMap::new(),
            computing: Windows::new(run.window),
            requests: Vec::new(),
            done: Vec::new(),
            now: Time::ZERO,
            earliest_end: Time::ZERO,
        })
    }

    fn start(&mut self) {
        for npu in 0..self.processors.len() {
            self.processors[npu].start(self.run.program_of(npu), &mut self.requests);
            self.grant(npu);
        }
    }

    /// Executes the next event of a processor, a launch or the fabric, in this order; returns
    /// whether there was one.
    fn step(&mut self) -> bool {
        let end = self.ends.peek().map(|Reverse((time, _))| *time);
        let launch = self.launches.front().map(|&(time, ..)| time);
        let own = end.into_iter().chain(launch).min();
        let event = self.fabric.next(own);
        match (own, event) {
            (None, None) => return false,
            (Some(own), event) if event.is_none_or(|event| own <= event) => {
                if end == Some(own)
                    && let Some(Reverse((time, at))) = self.ends.pop()
                {
                    let half = |part| u32::try_from(part).expect("half of the bits");
                    self.end_or_extend(
                        half(at >> 32),
                        TaskId(half(at & u64::from(u32::MAX))),
                        time,
                    );
                } else if let Some((time, npu, operation)) = self.launches.pop_front() {
                    self.now = time;
                    self.fabric.issue(npu, operation, time);
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

    /// Completes the tasks of complete operations.
    fn collect(&mut self) {
        loop {
            let mut done = std::mem::take(&mut self.done);
            self.fabric.take_done(&mut done);
            let any = !done.is_empty();
            for (npu, operation) in done.drain(..) {
                let task = self.operations.task(self.run.number_of(npu as usize), operation);
                self.end(npu, task, self.now);
            }
            self.done = done;
            if !any {
                return;
            }
        }
    }

    /// A compute task ends, unless the endpoint has used its memory bandwidth in the meantime.
    fn end_or_extend(&mut self, npu: u32, task: TaskId, now: Time) {
        let later = self.arbiter.as_ref().and_then(|arbiter| {
            let named = named(self.run, npu, task);
            arbiter.extended(npu as usize, named, self.fabric.memory_use(npu, now), now)
        });
        let Some(later) = later else { return self.end(npu, task, now) };
        self.now = now;
        self.run_task(npu, task, later);
    }

    /// A compute task runs until `end`, or longer.
    fn run_task(&mut self, npu: u32, task: TaskId, end: Time) {
        self.computing.add(self.now, end);
        self.ends.push(Reverse((end, u64::from(npu) << 32 | u64::from(task.0))));
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
                    self.note_rest(npu, task);
                    let memory = self.fabric.memory_use(id, self.now);
                    let earliest = self.arbiter.as_mut().and_then(|arbiter| {
                        arbiter.start(npu, named(self.run, id, task), memory, self.now)
                    });
                    self.run_task(id, task, earliest.unwrap_or(end));
                }
                Request::Issue(task) => {
                    let operation = self.operations.of(self.run.number_of(npu), task);
                    self.note_message(id, operation);
                    let launch = self.run.fabric.launch;
                    if launch > Time::ZERO && self.operations.is_collective(operation) {
                        self.launches.push_back((self.now + launch, id, operation));
                    } else {
                        self.fabric.issue(id, operation, self.now);
                    }
                }
            }
        }
        self.requests = requests;
    }

    /// An NPU that starts a task of the main lane executes the remaining ones from now on. With an
    /// arbiter, these may take less time than in its program.
    fn note_rest(&mut self, npu: usize, task: TaskId) {
        let what = self.run.program_of(npu).tasks()[task.index()].what;
        let is_main = matches!(what, What::Compute { lane: Lane::Main, .. });
        if is_main && self.arbiter.is_none() {
            self.earliest_end = self.earliest_end.max(self.now + self.processors[npu].rest);
        }
    }

    /// A receive counts as communication once both sides have issued the message.
    fn note_message(&mut self, npu: u32, operation: usize) {
        let (receiver, at, sends) = match self.operations.receiver(npu, operation) {
            Some(receiver) => (receiver, operation + 1, true),
            None if self.operations.receives(operation) => (npu, operation, false),
            None => return,
        };
        if self.half_issued.insert((receiver, at), sends) == Some(!sends) {
            self.half_issued.remove(&(receiver, at));
            let task = self.operations.task(self.run.number_of(receiver as usize), at);
            self.processors[receiver as usize].receive(task, self.now);
        }
    }

    fn finish(mut self) -> Result<TrainingOutcome, TrainingRunError> {
        for (npu, processor) in (0..).zip(&self.processors) {
            if processor.left > 0 {
                let stuck = processor.stuck();
                let task = stuck.first().copied().unwrap_or(TaskId(0));
                let unknown = TrainingRunError::Stuck { npu, task, count: processor.left };
                return Err(self.fabric.mismatch().map_or(unknown, |found| {
                    let Mismatch { npu, other, started, instead } = found;
                    TrainingRunError::OtherChunks { npu, other, started, instead }
                }));
            }
        }
        for processor in &mut self.processors {
            processor.account(self.now);
        }
        debug_assert!(self.earliest_end <= self.now, "the bound of the end is too late");
        debug_assert!(self.fabric.is_at_rest(), "resources have not been released");
        Ok(record::outcome(self.run, self.fabric, self.processors, self.computing, self.now))
    }
}
