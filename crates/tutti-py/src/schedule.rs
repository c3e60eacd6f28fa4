//! Schedules: their shape, and their steps one at a time.

use std::sync::{Arc, mpsc};
use std::thread;

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use tutti_engine::dataflow::Dataflow;
use tutti_schedule::collective::Collective;
use tutti_schedule::{ChunkRange, Explicit, Message, Slot, Step, text};
use tutti_units::ids::RankId;

use crate::algorithm::collective_named;
use crate::errors::{OrRaise, refuse};
use crate::threads::POLL_INTERVAL;

/// The schedule of a collective algorithm for a number of ranks.
#[pyclass(frozen, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct Schedule {
    pub(crate) inner: Arc<dyn tutti_schedule::Schedule>,
    /// The notation from which the registry generated it; other schedules have no closed form.
    pub(crate) algorithm: Option<String>,
}

#[pymethods]
impl Schedule {
    /// The notation that regenerates it; None for manual schedules and for graphs outside the
    /// notation.
    #[getter]
    fn notation(&self) -> Option<&str> {
        self.algorithm.as_deref()
    }

    /// The requested algorithm, in its notation.
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

    /// The number of ranks.
    #[getter]
    fn ranks(&self) -> u32 {
        self.inner.shape().ranks
    }

    /// The number of chunks of the payload.
    #[getter]
    fn chunks(&self) -> u32 {
        self.inner.shape().chunks
    }

    /// The number of slots of a rank: the data slot, then scratch.
    #[getter]
    fn slots(&self) -> u32 {
        self.inner.shape().slots
    }

    /// The slot that holds the result.
    #[getter]
    fn result(&self) -> u32 {
        self.inner.shape().result.0
    }

    /// Whether chunks move to other positions, so that all must have equal sizes.
    #[getter]
    fn moves_chunks(&self) -> bool {
        self.inner.moves_chunks()
    }

    /// The relative sizes of the blocks of an all_to_all_v, a row per source.
    #[getter]
    fn blocks(&self) -> Option<Vec<Vec<u64>>> {
        let blocks = self.inner.blocks()?;
        let sizes: Vec<u64> = blocks.sizes().collect();
        Some(sizes.chunks(blocks.ranks() as usize).map(<[u64]>::to_vec).collect())
    }

    /// The number of steps of `rank`.
    fn steps(&self, rank: Number) -> PyResult<u32> {
        self.rank(rank.0).map(|rank| self.inner.steps(rank))
    }

    /// The ops of one step in program order.
    fn ops(&self, rank: Number, step: Number) -> PyResult<Vec<Op>> {
        let (rank, step) = (self.step(rank.0, step.0)?, step.0);
        let mut out = Step::default();
        self.inner.step(rank, step, &mut out);
        Ok(out.ops().map(Op::from).collect())
    }

    /// A short name for the step, for drawings and traces.
    fn step_name(&self, rank: Number, step: Number) -> PyResult<String> {
        self.step(rank.0, step.0).map(|rank| self.inner.step_name(rank, step.0))
    }

    /// Verifies the schedule; raises a `VerificationError` that describes the first problem.
    fn verify(&self, py: Python<'_>) -> PyResult<Verification> {
        let schedule = Arc::clone(&self.inner);
        interruptible(py, move || tutti_schedule::verify(&*schedule))?
            .or_raise()
            .map(Verification::from)
    }

    /// The number of phases, between which the network may be reconfigured.
    #[getter]
    fn phases(&self) -> u32 {
        self.inner.phases()
    }

    /// Returns one of its phases as a schedule.
    fn phase(&self, index: Number) -> PyResult<Schedule> {
        match tutti_schedule::OnlyPhase::new(Arc::clone(&self.inner), index.0) {
            Ok(part) => Ok(Schedule { inner: Arc::new(part), algorithm: None }),
            Err(error) => Err(refuse("ScheduleError", "no_such_phase", &error.to_string())),
        }
    }

    /// Returns the schedule repeated `count` times.
    fn repeated(&self, count: Number) -> PyResult<Schedule> {
        match tutti_schedule::Repeated::new(Arc::clone(&self.inner), count.0) {
            Ok(repeated) => Ok(Schedule { inner: Arc::new(repeated), algorithm: None }),
            Err(error) => Err(refuse("ScheduleError", "not_repeated", &error.to_string())),
        }
    }

    /// Returns the schedule with channels that progress concurrently: chunks are dealt to
    /// `channels` channels in runs of `run`.
    fn concurrent(&self, py: Python<'_>, channels: Number, run: Number) -> PyResult<Schedule> {
        let channels = tutti_schedule::Channels { count: channels.0, run: run.0 };
        let inner = Arc::clone(&self.inner);
        match py.detach(|| tutti_schedule::Concurrent::new(inner, channels)) {
            Ok(found) => Ok(Schedule { inner: Arc::new(found), algorithm: None }),
            Err(error) => Err(refuse("ScheduleError", "not_concurrent", &error.to_string())),
        }
    }

    /// Returns a broadcast or reduce along chains of ranks, each from its first sender to its last
    /// receiver, with `pieces` pieces of the share of a chain.
    #[staticmethod]
    fn chains(
        collective: &str,
        root: Number,
        chains: Vec<Vec<Number>>,
        pieces: Number,
    ) -> PyResult<Schedule> {
        let collective = collective_named(collective, root.0)?;
        let ranks = |chain: Vec<Number>| chain.into_iter().map(|rank| RankId(rank.0)).collect();
        let chains: Vec<Vec<RankId>> = chains.into_iter().map(ranks).collect();
        tutti_schedule::Chains::new(collective, &chains, pieces.0)
            .map(|found| Schedule { inner: Arc::new(found), algorithm: None })
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The text form, one op per line.
    fn to_text(&self, py: Python<'_>) -> String {
        py.detach(|| text::to_string(&*self.inner))
    }

    /// A text of its data flow: two schedules with equal texts take equal times in a training step.
    fn data_flow(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| Dataflow::of(&*self.inner)).or_raise().map(|flow| flow.canonical())
    }

    /// Reads the text form.
    #[staticmethod]
    fn from_text(py: Python<'_>, text: &str) -> PyResult<Schedule> {
        py.detach(|| text::read(text)).or_raise().map(Schedule::from)
    }
}

/// Runs a long computation; on Ctrl-C it returns early and abandons the thread.
fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    compute: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (done, result) = mpsc::channel();
    let worker = thread::spawn(move || drop(done.send(compute())));
    py.detach(move || {
        loop {
            match result.recv_timeout(POLL_INTERVAL) {
                Ok(value) => return Ok(value),
                Err(mpsc::RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals())?,
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let panic = worker.join().expect_err("it ended without a result");
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
        let message = format!("invalid rank {rank}: expected 0 to {}", ranks - 1);
        Err(refuse("ScheduleError", "no_such_rank", &message))
    }

    fn step(&self, rank: u32, step: u32) -> PyResult<RankId> {
        let id = self.rank(rank)?;
        let steps = self.inner.steps(id);
        if step < steps {
            return Ok(id);
        }
        let message =
            format!("invalid step {step} of rank {rank}: it has {steps} steps, counted from 0");
        Err(refuse("ScheduleError", "no_such_step", &message))
    }
}

/// One op of a step; attributes that do not apply to its kind have no value.
#[pyclass(frozen, eq, module = "tutti._core")]
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Op {
    /// One of send, recv, multicast, contribute, combine, reduce, copy, compute, sleep.
    #[pyo3(get)]
    kind: &'static str,
    /// The other rank of a send, recv or contribute.
    #[pyo3(get)]
    peer: Option<u32>,
    /// The other ranks of a message: one, or those of a multicast or combine.
    #[pyo3(get)]
    peers: Vec<u32>,
    /// The slot that is read (send, multicast, contribute, copy) or written (recv, combine,
    /// reduce).
    #[pyo3(get)]
    slot: Option<u32>,
    /// The chunks concerned, as start and end.
    #[pyo3(get)]
    chunks: Option<(u32, u32)>,
    /// The operand slots of a reduce or combine, in order.
    #[pyo3(get)]
    operands: Option<Vec<u32>>,
    /// Of a combine, the source rank of each operand; None for local operands.
    #[pyo3(get)]
    sources: Option<Vec<Option<u32>>>,
    /// The slot that a copy writes.
    #[pyo3(get)]
    into: Option<u32>,
    /// The first chunk that a copy writes.
    #[pyo3(get)]
    to: Option<u32>,
    /// The length of a compute or sleep.
    #[pyo3(get)]
    duration_ps: Option<u64>,
    text: String,
}

#[pymethods]
impl Op {
    fn __repr__(&self) -> &str {
        &self.text
    }
}

impl From<tutti_schedule::Op> for Op {
    fn from(op: tutti_schedule::Op) -> Op {
        use tutti_schedule::Op as Of;
        let plain = Op { kind: op.kind(), text: op.to_string(), ..Op::default() };
        let at = |slot: Slot, chunks: ChunkRange| {
            let (slot, chunks) = (Some(slot.0), Some((chunks.start, chunks.end)));
            Op { slot, chunks, ..plain.clone() }
        };
        let message = |Message { peer, slot, chunks }| Op {
            peer: Some(peer.0),
            peers: vec![peer.0],
            ..at(slot, chunks)
        };
        match op {
            Of::Send(one) | Of::Recv(one) | Of::Contribute(one) => message(one),
            Of::Multicast { peers, slot, chunks } => {
                let peers = peers.iter().map(|peer| peer.0).collect();
                Op { peers, ..at(slot, chunks) }
            }
            Of::Combine { into, operands, chunks } => {
                let from = |(_, from): &(Slot, Option<RankId>)| from.map(|from| from.0);
                let sources: Vec<_> = operands.iter().map(from).collect();
                let peers = sources.iter().copied().flatten().collect();
                let operands = Some(operands.iter().map(|(slot, _)| slot.0).collect());
                Op { peers, operands, sources: Some(sources), ..at(into, chunks) }
            }
            Of::Reduce { into, operands, chunks } => {
                let operands = Some(operands.iter().map(|slot| slot.0).collect());
                Op { operands, ..at(into, chunks) }
            }
            Of::Copy { from, into, chunks, to } => {
                Op { into: Some(into.0), to: Some(to), ..at(from, chunks) }
            }
            Of::Compute { duration } | Of::Sleep { duration } => {
                Op { duration_ps: Some(duration.ps()), ..plain }
            }
        }
    }
}

/// The verified properties of a schedule.
#[pyclass(frozen, get_all, eq, module = "tutti._core")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verification {
    /// Total number of steps.
    steps: u64,
    /// Total number of messages.
    messages: u64,
    /// Messages to several ranks that a network may fork.
    multicasts: u64,
    /// Reductions that may be executed in the network.
    combines: u64,
    /// Total number of chunk reductions.
    reductions: u64,
    /// Messages per pair of ranks that must be buffered to avoid deadlock.
    buffering: u32,
    /// Whether it runs without any buffers.
    rendezvous_safe: bool,
    /// Whether every rank gets the same bits.
    same_on_all_ranks: bool,
    /// Whether every rank gets the same bits, also for noncommutative operations.
    same_order_on_all_ranks: bool,
    /// Whether every result has the bits of the sequential sum in the order of the ranks.
    sequential: bool,
    /// Whether contributions are combined in rank order, with any association.
    rank_order: bool,
    /// The reproducibility class: the guarantee on the bits of the result.
    reproducibility: &'static str,
}

impl From<tutti_schedule::Verification> for Verification {
    fn from(core: tutti_schedule::Verification) -> Verification {
        let class = core.reproducibility;
        Verification {
            steps: core.steps,
            messages: core.messages,
            multicasts: core.multicasts,
            combines: core.combines,
            reductions: core.reductions,
            buffering: core.buffering,
            rendezvous_safe: core.rendezvous_safe(),
            same_on_all_ranks: class.same_on_all_ranks,
            same_order_on_all_ranks: class.same_order_on_all_ranks,
            sequential: class.sequential,
            rank_order: class.rank_order,
            reproducibility: match (class.sequential, class.same_on_all_ranks) {
                (true, _) => "as the sequential sum",
                (false, true) => "same on all ranks",
                (false, false) => "same from run to run",
            },
        }
    }
}

#[pymethods]
impl Verification {
    fn __str__(&self) -> String {
        let bits = match self.reproducibility {
            "as the sequential sum" => "the bits of the sequential sum",
            "same on all ranks" => "same bits on all ranks",
            _ => "same bits from run to run",
        };
        let safe = match self.buffering {
            0 => "no buffers needed".to_owned(),
            many => format!("{many} messages buffered per pair of ranks"),
        };
        let folded = if self.combines > 0 { ", unless the network combines" } else { "" };
        format!("verified: each contribution exactly once; {bits}{folded}; {safe}")
    }

    fn __repr__(&self) -> String {
        let Verification { messages, reductions, .. } = self;
        let text = self.__str__();
        format!("<Verification: {text}; {messages} messages, {reductions} reductions>")
    }
}

/// A count or an index from the user; values out of range raise a `ScheduleError`.
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
