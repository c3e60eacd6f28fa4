//! Schedules: their shape, and their steps one at a time.

use std::sync::Arc;

use pyo3::prelude::*;
use tutti_core::collective::Collective;
use tutti_core::ids::RankId;
use tutti_core::schedule::{self, ChunkRange, Message, Step};

use crate::algorithm::collective_named;
use crate::errors::refuse;

/// A collective algorithm laid out for a number of ranks.
#[pyclass(frozen, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct Schedule {
    pub(crate) inner: Arc<dyn schedule::Schedule>,
}

#[pymethods]
impl Schedule {
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

    /// How many steps `rank` takes.
    fn steps(&self, rank: u32) -> PyResult<u32> {
        self.rank(rank).map(|rank| self.inner.steps(rank))
    }

    /// The ops of one step in program order.
    fn ops(&self, rank: u32, step: u32) -> PyResult<Vec<Op>> {
        let rank = self.step(rank, step)?;
        let mut out = Step::default();
        self.inner.step(rank, step, &mut out);
        Ok(out.ops().map(Op::from).collect())
    }

    /// A short name for the step, for drawings and traces.
    fn step_name(&self, rank: u32, step: u32) -> PyResult<String> {
        self.step(rank, step).map(|rank| self.inner.step_name(rank, step))
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
#[pyclass(frozen, eq, get_all, module = "tutti._core")]
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Op {
    /// One of send, recv, reduce, copy, compute, sleep.
    kind: &'static str,
    /// The other rank of a send or recv.
    peer: Option<u32>,
    /// The slot that is read (send, copy) or written (recv, reduce).
    slot: Option<u32>,
    /// The chunks concerned, as start and end.
    chunks: Option<(u32, u32)>,
    /// The slots that a reduce folds, in order.
    operands: Option<Vec<u32>>,
    /// The slot that a copy writes.
    into: Option<u32>,
    /// The first chunk that a copy writes.
    to: Option<u32>,
    /// The length of a compute or sleep.
    duration_ps: Option<u64>,
}

#[pymethods]
impl Op {
    fn __repr__(&self) -> String {
        let chunks = self.chunks.map(|(start, end)| ChunkRange::new(start, end).to_string());
        let chunks = chunks.unwrap_or_default();
        let number = |value: Option<u32>| value.unwrap_or_default();
        let (slot, peer) = (number(self.slot), number(self.peer));
        match self.kind {
            "send" => format!("send {chunks} of slot {slot} to rank {peer}"),
            "recv" => format!("recv {chunks} into slot {slot} from rank {peer}"),
            "reduce" => {
                let operands = self.operands.iter().flatten().map(u32::to_string);
                let operands = operands.collect::<Vec<_>>().join(" + ");
                format!("reduce {chunks} into slot {slot} = {operands}")
            }
            "copy" => {
                let (into, to) = (number(self.into), number(self.to));
                format!("copy {chunks} of slot {slot} to {to} of slot {into}")
            }
            kind => {
                let duration = crate::units::format_time(self.duration_ps.unwrap_or_default());
                format!("{kind} {duration}")
            }
        }
    }
}

impl From<schedule::Op> for Op {
    fn from(op: schedule::Op) -> Op {
        let pair = |chunks: ChunkRange| Some((chunks.start, chunks.end));
        let message = |kind, message: Message| Op {
            kind,
            peer: Some(message.peer.0),
            slot: Some(message.slot.0),
            chunks: pair(message.chunks),
            ..Op::default()
        };
        match op {
            schedule::Op::Send(sent) => message("send", sent),
            schedule::Op::Recv(received) => message("recv", received),
            schedule::Op::Reduce { into, operands, chunks } => Op {
                kind: "reduce",
                slot: Some(into.0),
                chunks: pair(chunks),
                operands: Some(operands.iter().map(|slot| slot.0).collect()),
                ..Op::default()
            },
            schedule::Op::Copy { from, into, chunks, to } => Op {
                kind: "copy",
                slot: Some(from.0),
                chunks: pair(chunks),
                into: Some(into.0),
                to: Some(to),
                ..Op::default()
            },
            schedule::Op::Compute { duration } => {
                Op { kind: "compute", duration_ps: Some(duration.ps()), ..Op::default() }
            }
            schedule::Op::Sleep { duration } => {
                Op { kind: "sleep", duration_ps: Some(duration.ps()), ..Op::default() }
            }
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
