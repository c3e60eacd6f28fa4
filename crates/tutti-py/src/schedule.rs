//! Schedules: their shape, and their steps one at a time.

use std::sync::{Arc, mpsc};
use std::thread;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use tutti_schedule::collective::Collective;
use tutti_schedule::{Explicit, Message, Step, text};
use tutti_units::ids::RankId;

use crate::algorithm::collective_named;
use crate::errors::{OrRaise, refuse};
use crate::threads::LOOK;

/// A collective algorithm laid out for a number of ranks.
#[pyclass(frozen, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct Schedule {
    pub(crate) inner: Arc<dyn tutti_schedule::Schedule>,
    /// The notation that the registry laid it out for; others have no closed form.
    pub(crate) algorithm: Option<String>,
}

#[pymethods]
impl Schedule {
    /// The notation that lays it out again; None for one by hand, or on a graph that is not in its name.
    #[getter]
    fn notation(&self) -> Option<&str> {
        self.algorithm.as_deref()
    }

    /// How it was asked for, in the algorithm notation.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.shape().name
    }

    /// The collective it performs.
    #[getter]
    fn collective(&self) -> &'static str {
        self.inner.shape().collective.name()
    }

    /// The root of a rooted collective.
    #[getter]
    fn root(&self) -> Option<u32> {
        self.inner.shape().collective.root().map(|root| root.0)
    }

    /// How many ranks take part.
    #[getter]
    fn ranks(&self) -> u32 {
        self.inner.shape().ranks
    }

    /// How many equal chunks the payload is divided into.
    #[getter]
    fn chunks(&self) -> u32 {
        self.inner.shape().chunks
    }

    /// How many slots a rank needs: the data slot, then scratch.
    #[getter]
    fn slots(&self) -> u32 {
        self.inner.shape().slots
    }

    /// The slot that holds the result.
    #[getter]
    fn result(&self) -> u32 {
        self.inner.shape().result.0
    }

    /// Whether chunks change places, so that all must be equal.
    #[getter]
    fn moves_chunks(&self) -> bool {
        self.inner.moves_chunks()
    }

    /// How many steps `rank` takes.
    fn steps(&self, rank: Number) -> PyResult<u32> {
        self.rank(rank.0).map(|rank| self.inner.steps(rank))
    }

    /// The ops of one step in program order.
    fn ops(&self, rank: Number, step: Number) -> PyResult<Vec<Op>> {
        let (rank, step) = (self.step(rank.0, step.0)?, step.0);
        let mut out = Step::default();
        self.inner.step(rank, step, &mut out);
        Ok(out.ops().map(Op).collect())
    }

    /// A short name for the step, for drawings and traces.
    fn step_name(&self, rank: Number, step: Number) -> PyResult<String> {
        self.step(rank.0, step.0).map(|rank| self.inner.step_name(rank, step.0))
    }

    /// Proves it right, or raises a `VerificationError` that says what is wrong.
    fn verify(&self, py: Python<'_>) -> PyResult<Verification> {
        let schedule = Arc::clone(&self.inner);
        heeding_signals(py, move || tutti_schedule::verify(&*schedule))?
            .or_raise()
            .map(Verification)
    }

    /// How many phases it has, between which the network may be set up anew.
    #[getter]
    fn phases(&self) -> u32 {
        self.inner.phases()
    }

    /// One of its phases by itself.
    fn phase(&self, index: Number) -> PyResult<Schedule> {
        match tutti_schedule::OnlyPhase::new(Arc::clone(&self.inner), index.0) {
            Ok(part) => Ok(Schedule { inner: Arc::new(part), algorithm: None }),
            Err(error) => Err(refuse("ScheduleError", "no_such_phase", &error.to_string())),
        }
    }

    /// The same `count` times in a row.
    fn repeated(&self, count: Number) -> PyResult<Schedule> {
        match tutti_schedule::Repeated::new(Arc::clone(&self.inner), count.0) {
            Ok(repeated) => Ok(Schedule { inner: Arc::new(repeated), algorithm: None }),
            Err(error) => Err(refuse("ScheduleError", "not_repeated", &error.to_string())),
        }
    }

    /// The text form, every op on its line.
    fn to_text(&self, py: Python<'_>) -> String {
        py.detach(|| text::to_string(&*self.inner))
    }

    /// Reads the text form.
    #[staticmethod]
    fn from_text(py: Python<'_>, text: &str) -> PyResult<Schedule> {
        py.detach(|| text::read(text)).or_raise().map(Schedule::from)
    }
}

/// Runs a long computation, and ends early when Ctrl-C is pressed: nobody then waits for its thread.
fn heeding_signals<T: Send + 'static>(
    py: Python<'_>,
    compute: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (done, result) = mpsc::channel();
    let worker = thread::spawn(move || drop(done.send(compute())));
    py.detach(move || {
        loop {
            match result.recv_timeout(LOOK) {
                Ok(value) => return Ok(value),
                Err(mpsc::RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals())?,
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let panic = worker.join().expect_err("it ended without an answer");
                    std::panic::resume_unwind(panic);
                }
            }
        }
    })
}

impl From<Explicit> for Schedule {
    fn from(explicit: Explicit) -> Schedule {
        Schedule { inner: Arc::new(explicit), algorithm: None }
    }
}

impl Schedule {
    fn rank(&self, rank: u32) -> PyResult<RankId> {
        let ranks = self.inner.shape().ranks;
        if rank < ranks {
            return Ok(RankId(rank));
        }
        let message = format!("there is no rank {rank}: the schedule has ranks 0 to {}", ranks - 1);
        Err(refuse("ScheduleError", "no_such_rank", &message))
    }

    fn step(&self, rank: u32, step: u32) -> PyResult<RankId> {
        let id = self.rank(rank)?;
        let steps = self.inner.steps(id);
        if step < steps {
            return Ok(id);
        }
        let message = format!("rank {rank} has no step {step}: it has {steps}, counted from 0");
        Err(refuse("ScheduleError", "no_such_step", &message))
    }
}

/// One op of a step; what does not apply to its kind is None.
#[pyclass(frozen, eq, module = "tutti._core")]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Op(tutti_schedule::Op);

#[pymethods]
impl Op {
    /// One of send, recv, multicast, contribute, combine, reduce, copy, compute, sleep.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0 {
            tutti_schedule::Op::Send(_) => "send",
            tutti_schedule::Op::Recv(_) => "recv",
            tutti_schedule::Op::Multicast { .. } => "multicast",
            tutti_schedule::Op::Contribute(_) => "contribute",
            tutti_schedule::Op::Combine { .. } => "combine",
            tutti_schedule::Op::Reduce { .. } => "reduce",
            tutti_schedule::Op::Copy { .. } => "copy",
            tutti_schedule::Op::Compute { .. } => "compute",
            tutti_schedule::Op::Sleep { .. } => "sleep",
        }
    }

    /// The other rank of a send, recv or contribute.
    #[getter]
    fn peer(&self) -> Option<u32> {
        self.message().map(|message| message.peer.0)
    }

    /// The other ranks of a message: one, or those of a multicast or combine.
    #[getter]
    fn peers(&self) -> Vec<u32> {
        match &self.0 {
            tutti_schedule::Op::Multicast { peers, .. } => {
                peers.iter().map(|peer| peer.0).collect()
            }
            tutti_schedule::Op::Combine { operands, .. } => {
                operands.iter().filter_map(|(_, from)| from.map(|from| from.0)).collect()
            }
            _ => self.peer().into_iter().collect(),
        }
    }

    /// The slot that is read (send, multicast, contribute, copy) or written (recv, combine, reduce).
    #[getter]
    fn slot(&self) -> Option<u32> {
        match self.0 {
            tutti_schedule::Op::Reduce { into, .. } | tutti_schedule::Op::Combine { into, .. } => {
                Some(into.0)
            }
            tutti_schedule::Op::Multicast { slot, .. } => Some(slot.0),
            tutti_schedule::Op::Copy { from, .. } => Some(from.0),
            _ => self.message().map(|message| message.slot.0),
        }
    }

    /// The chunks concerned, as start and end.
    #[getter]
    fn chunks(&self) -> Option<(u32, u32)> {
        match self.0 {
            tutti_schedule::Op::Reduce { chunks, .. }
            | tutti_schedule::Op::Copy { chunks, .. }
            | tutti_schedule::Op::Multicast { chunks, .. }
            | tutti_schedule::Op::Combine { chunks, .. } => Some(chunks),
            _ => self.message().map(|message| message.chunks),
        }
        .map(|chunks| (chunks.start, chunks.end))
    }

    /// The slots that a reduce or combine folds, in order.
    #[getter]
    fn operands(&self) -> Option<Vec<u32>> {
        match &self.0 {
            tutti_schedule::Op::Combine { operands, .. } => {
                Some(operands.iter().map(|(slot, _)| slot.0).collect())
            }
            tutti_schedule::Op::Reduce { operands, .. } => {
                Some(operands.iter().map(|slot| slot.0).collect())
            }
            _ => None,
        }
    }

    /// Of a combine, the rank that each operand is received from; None for what the rank holds already.
    #[getter]
    fn sources(&self) -> Option<Vec<Option<u32>>> {
        match &self.0 {
            tutti_schedule::Op::Combine { operands, .. } => {
                Some(operands.iter().map(|(_, from)| from.map(|from| from.0)).collect())
            }
            _ => None,
        }
    }

    /// The slot that a copy writes.
    #[getter]
    fn into(&self) -> Option<u32> {
        match self.0 {
            tutti_schedule::Op::Copy { into, .. } => Some(into.0),
            _ => None,
        }
    }

    /// The first chunk that a copy writes.
    #[getter]
    fn to(&self) -> Option<u32> {
        match self.0 {
            tutti_schedule::Op::Copy { to, .. } => Some(to),
            _ => None,
        }
    }

    /// The length of a compute or sleep.
    #[getter]
    fn duration_ps(&self) -> Option<u64> {
        match self.0 {
            tutti_schedule::Op::Compute { duration } | tutti_schedule::Op::Sleep { duration } => {
                Some(duration.ps())
            }
            _ => None,
        }
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}

impl Op {
    fn message(&self) -> Option<&Message> {
        match &self.0 {
            tutti_schedule::Op::Send(message)
            | tutti_schedule::Op::Recv(message)
            | tutti_schedule::Op::Contribute(message) => Some(message),
            _ => None,
        }
    }
}

/// What holds of a schedule that is right.
#[pyclass(frozen, eq, module = "tutti._core")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verification(tutti_schedule::Verification);

#[pymethods]
impl Verification {
    /// Steps of all ranks together.
    #[getter]
    fn steps(&self) -> u64 {
        self.0.steps
    }

    /// Messages of all ranks together.
    #[getter]
    fn messages(&self) -> u64 {
        self.0.messages
    }

    /// Messages to several ranks that a network may fork.
    #[getter]
    fn multicasts(&self) -> u64 {
        self.0.multicasts
    }

    /// Folds that a network may do on the way.
    #[getter]
    fn combines(&self) -> u64 {
        self.0.combines
    }

    /// Additions of a chunk to a chunk, of all ranks together.
    #[getter]
    fn reductions(&self) -> u64 {
        self.0.reductions
    }

    /// How many messages from one rank to another must be buffered for it not to deadlock.
    #[getter]
    fn buffering(&self) -> u32 {
        self.0.buffering
    }

    /// Whether it runs without any buffers.
    #[getter]
    fn rendezvous_safe(&self) -> bool {
        self.0.rendezvous_safe()
    }

    /// Whether every rank gets the same bits.
    #[getter]
    fn same_on_all_ranks(&self) -> bool {
        self.0.reproducibility.same_on_all_ranks
    }

    /// Whether every rank gets the same bits, of operations too whose operands must not be exchanged.
    #[getter]
    fn same_order_on_all_ranks(&self) -> bool {
        self.0.reproducibility.same_order_on_all_ranks
    }

    /// Whether every result has the bits of the sequential sum in the order of the ranks.
    #[getter]
    fn sequential(&self) -> bool {
        self.0.reproducibility.sequential
    }

    /// Whether contributions are combined in the order of the ranks, in whatever brackets.
    #[getter]
    fn rank_order(&self) -> bool {
        self.0.reproducibility.rank_order
    }

    /// The reproducibility class: what is guaranteed of the bits of the result.
    #[getter]
    fn reproducibility(&self) -> &'static str {
        let kept = self.0.reproducibility;
        if kept.sequential {
            "as the sequential sum"
        } else if kept.same_on_all_ranks {
            "same on all ranks"
        } else {
            "same from run to run"
        }
    }

    fn __str__(&self) -> String {
        let bits = match self.reproducibility() {
            "as the sequential sum" => "the bits of the sequential sum",
            "same on all ranks" => "same bits on all ranks",
            _ => "same bits from run to run",
        };
        let safe = match self.buffering() {
            0 => "no buffers needed".to_owned(),
            many => format!("{many} messages buffered per pair of ranks"),
        };
        let folded = if self.combines() > 0 { ", unless the network combines" } else { "" };
        format!("proved: right contributions, each once; {bits}{folded}; {safe}")
    }

    fn __repr__(&self) -> String {
        let (messages, reductions) = (self.messages(), self.reductions());
        let proved = self.__str__();
        format!("<Verification: {proved}; {messages} messages, {reductions} reductions>")
    }
}

/// A count or an index as people give it: one that cannot be is a mistake of theirs like any other.
#[derive(Clone, Copy)]
pub(crate) struct Number(pub(crate) u32);

impl<'py> FromPyObject<'_, 'py> for Number {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Number> {
        match given.extract::<u32>() {
            Err(error) if error.is_instance_of::<PyOverflowError>(given.py()) => {
                let message =
                    format!("{} is out of range: expected 0 to {}", given.str()?, u32::MAX);
                Err(refuse("ScheduleError", "out_of_range", &message))
            }
            number => number.map(Number),
        }
    }
}

/// The names of the collectives.
#[pyfunction]
pub(crate) fn collectives() -> Vec<&'static str> {
    Collective::ALL.map(Collective::name).to_vec()
}

/// busbw = algbw x this factor (nccl-tests).
#[pyfunction]
pub(crate) fn busbw_factor(collective: &str, ranks: u32) -> PyResult<f64> {
    collective_named(collective, 0).map(|collective| collective.busbw_factor(ranks))
}
