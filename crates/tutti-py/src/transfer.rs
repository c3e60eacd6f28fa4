//! Collectives and messages of a training step, and the tasks of traces.

use pyo3::prelude::*;
use tutti_engine::workload::{self, Content, Lane, Rings, What};
use tutti_units::{Bytes, Time};

use crate::algorithm::collective_named;
use crate::errors::refuse;
use crate::schedule::Number;

/// A collective of a pass; compared by name, dimensions, size and level.
#[pyclass(frozen, get_all, eq, ord, hash, from_py_object, module = "tutti._core")]
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Transfer {
    /// Its name.
    pub(crate) collective: String,
    /// The dimensions of its groups, a bit each.
    pub(crate) mask: u8,
    /// Its size.
    pub(crate) size: u64,
    /// Collectives of a higher level have priority.
    pub(crate) level: u8,
}

#[pymethods]
impl Transfer {
    #[new]
    #[pyo3(signature = (collective, mask, size, *, level=0))]
    fn new(collective: String, mask: u8, size: u64, level: u8) -> Transfer {
        Transfer { collective, mask, size, level }
    }

    fn __repr__(&self) -> String {
        let Transfer { collective, mask, size, level } = self;
        format!("<Transfer {collective} of {size} B, mask {mask:#b}, level {level}>")
    }
}

impl Transfer {
    pub(crate) fn core(&self) -> PyResult<workload::Transfer> {
        Ok(workload::Transfer {
            collective: collective_named(&self.collective, 0)?,
            rings: Rings(self.mask),
            bytes: Bytes(self.size),
            level: self.level,
            content: Content::default(),
        })
    }
}

/// The transfers of the engine.
pub(crate) fn transfers(given: &[Transfer]) -> PyResult<Vec<workload::Transfer>> {
    given.iter().map(Transfer::core).collect()
}

/// A message of a trace, at its sender or its receiver.
#[pyclass(frozen, get_all, eq, hash, from_py_object, module = "tutti._core")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Message {
    /// `send` or `recv`.
    side: String,
    /// The dimensions of its ranks, a bit each.
    mask: u8,
    /// How many ranks the peer is ahead.
    ahead: u32,
    /// Its size.
    size: u64,
    /// Its tag.
    tag: u32,
}

#[pymethods]
impl Message {
    #[new]
    #[pyo3(signature = (side, mask, *, ahead, size, tag))]
    fn new(side: String, mask: u8, ahead: Number, size: u64, tag: u32) -> Message {
        Message { side, mask, ahead: ahead.0, size, tag }
    }
}

impl Message {
    fn what(&self) -> PyResult<What> {
        let &Message { mask, ahead, size, tag, .. } = self;
        let message = workload::Message { rings: Rings(mask), ahead, bytes: Bytes(size), tag };
        match self.side.as_str() {
            "send" => Ok(What::Send(message)),
            "recv" => Ok(What::Recv(message)),
            other => {
                let message = format!("unknown message `{other}`: expected `send` or `recv`");
                Err(refuse("WorkloadError", "unknown_message", &message))
            }
        }
    }
}

/// What a task of a trace exchanges.
#[derive(Clone, PartialEq, Eq, FromPyObject, IntoPyObject)]
pub(crate) enum Exchange {
    Collective(Transfer),
    Message(Message),
}

/// A task of a trace: it computes, or exchanges.
#[pyclass(frozen, get_all, eq, module = "tutti._core")]
#[derive(PartialEq, Eq)]
pub(crate) struct TraceTask {
    /// Its name.
    pub(crate) name: String,
    /// The time of its computation.
    time_ps: u64,
    /// Whether it computes in the background.
    background: bool,
    /// Its collective or message.
    exchange: Option<Exchange>,
    /// The numbers of the tasks that it waits for.
    pub(crate) after: Vec<u32>,
}

#[pymethods]
impl TraceTask {
    #[new]
    #[pyo3(signature = (name, *, after, time_ps=0, background=false, exchange=None))]
    fn new(
        name: String,
        after: Vec<u32>,
        time_ps: u64,
        background: bool,
        exchange: Option<Exchange>,
    ) -> TraceTask {
        TraceTask { name, time_ps, background, exchange, after }
    }
}

impl TraceTask {
    pub(crate) fn what(&self) -> PyResult<What> {
        match &self.exchange {
            Some(Exchange::Collective(transfer)) => transfer.core().map(What::Collective),
            Some(Exchange::Message(message)) => message.what(),
            None => {
                let lane = if self.background { Lane::Background } else { Lane::Main };
                Ok(What::Compute { time: Time::from_ps(self.time_ps), lane })
            }
        }
    }
}
