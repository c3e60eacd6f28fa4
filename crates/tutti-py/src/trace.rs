//! Traces of applications: GOAL files, the lowering of schedules, and runs.
//!
//! The columns of a rank cross the border as little-endian bytes, which numpy reads and writes
//! without an object per value.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tutti_engine::LocalCosts;
use tutti_engine::trace::goal::{self, ReadError};
use tutti_engine::trace::{self, Operations};
use tutti_schedule::Layout;
use tutti_units::Bytes;

use crate::errors::OrRaise;
use crate::network;
use crate::platform::Platform;
use crate::schedule::Schedule;
use crate::threads::watched;

/// The columns of a rank: kinds, sizes, durations, peers, tags, streams, first dependencies,
/// dependencies, and whether these are satisfied on start.
type Columns<T> = (T, T, T, T, T, T, T, T, T);

/// The columns of all ranks, for Python.
type Ranks<'py> = Vec<Columns<Bound<'py, PyBytes>>>;

macro_rules! integers {
    ($from:ident, $to:ident, $type:ty) => {
        fn $from(bytes: &[u8]) -> Vec<$type> {
            let read = |chunk: &[u8]| <$type>::from_le_bytes(chunk.try_into().unwrap_or_default());
            bytes.chunks_exact(size_of::<$type>()).map(read).collect()
        }

        fn $to<'py>(py: Python<'py>, values: &[$type]) -> Bound<'py, PyBytes> {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            PyBytes::new(py, &bytes)
        }
    };
}

integers!(i64_of, bytes_of_i64, i64);
integers!(i32_of, bytes_of_i32, i32);

fn operations(
    (kinds, sizes, durations, peers, tags, streams, first, on, on_start): &Columns<&[u8]>,
) -> Operations {
    Operations {
        kinds: kinds.to_vec(),
        sizes: i64_of(sizes),
        durations: i64_of(durations),
        peers: i32_of(peers),
        tags: i64_of(tags),
        streams: i32_of(streams),
        first_dependency: i64_of(first),
        dependencies: i64_of(on),
        on_start: on_start.iter().map(|&byte| byte != 0).collect(),
    }
}

fn columns<'py>(py: Python<'py>, of: &Operations) -> Columns<Bound<'py, PyBytes>> {
    let on_start: Vec<u8> = of.on_start.iter().map(|&on_start| on_start.into()).collect();
    (
        PyBytes::new(py, &of.kinds),
        bytes_of_i64(py, &of.sizes),
        bytes_of_i64(py, &of.durations),
        bytes_of_i32(py, &of.peers),
        bytes_of_i64(py, &of.tags),
        bytes_of_i32(py, &of.streams),
        bytes_of_i64(py, &of.first_dependency),
        bytes_of_i64(py, &of.dependencies),
        PyBytes::new(py, &on_start),
    )
}

/// The operations of all ranks, for Python.
#[pyclass(frozen, module = "tutti._core", name = "TraceGraph")]
pub(crate) struct TraceGraph(trace::TraceGraph);

#[pymethods]
impl TraceGraph {
    /// Checks the columns of all ranks.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
    fn of_columns(py: Python<'_>, ranks: Ranks<'_>) -> PyResult<TraceGraph> {
        let ranks = read(&ranks);
        py.detach(|| trace::TraceGraph::of_columns(&ranks)).or_raise().map(TraceGraph)
    }

    /// The messages of all ranks, without a check of their values.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
    fn of_messages(py: Python<'_>, ranks: Ranks<'_>) -> PyResult<TraceGraph> {
        let ranks = read(&ranks);
        py.detach(|| trace::TraceGraph::of_messages(&ranks)).or_raise().map(TraceGraph)
    }

    #[getter]
    fn ranks(&self) -> usize {
        self.0.ranks()
    }

    #[getter]
    fn operations(&self) -> usize {
        self.0.operations()
    }

    /// The columns of a rank.
    fn columns<'py>(&self, py: Python<'py>, rank: usize) -> Columns<Bound<'py, PyBytes>> {
        columns(py, &self.0.columns(rank))
    }

    /// The number of receives that state other sizes than their messages, and the first such message
    /// and its receive: (rank, operation, bytes).
    #[expect(clippy::type_complexity, reason = "a message and its receive")]
    fn other_sizes(&self, py: Python<'_>) -> Option<(u64, (u32, u32, i64), (u32, u32, i64))> {
        let found = py.detach(|| self.0.other_sizes())?;
        Some((found.count, found.send, found.receive))
    }

    /// What GOAL does not represent: the first rank with too many streams, and their number; the
    /// first rank, operation and tag that is out of range; the number of durations that are rounded;
    /// the number of empty messages.
    #[expect(clippy::type_complexity, reason = "two places and two counts")]
    fn goal_losses(
        &self,
        py: Python<'_>,
    ) -> (Option<(u32, u32)>, Option<(u32, u32, i64)>, u64, u64) {
        let losses = py.detach(|| goal::Writer(&self.0).losses());
        (losses.streams, losses.tag, losses.rounded, losses.empty)
    }

    /// Writes GOAL, as text or in binary form.
    #[pyo3(signature = (path, *, binary))]
    fn write_goal(&self, py: Python<'_>, path: PathBuf, binary: bool) -> PyResult<()> {
        py.detach(|| {
            let file = BufWriter::with_capacity(BUFFER, File::create(path)?);
            let writer = goal::Writer(&self.0);
            if binary { writer.binary(file) } else { writer.text(file) }
        })?;
        Ok(())
    }
}

/// Bytes of the buffer of a file.
const BUFFER: usize = 1 << 18;

fn read(ranks: &Ranks<'_>) -> Vec<Operations> {
    let read = |(a, b, c, d, e, f, g, h, i): &Columns<Bound<'_, PyBytes>>| {
        let columns = [a, b, c, d, e, f, g, h, i].map(|column| column.as_bytes());
        let [a, b, c, d, e, f, g, h, i] = columns;
        operations(&(a, b, c, d, e, f, g, h, i))
    };
    ranks.iter().map(read).collect()
}

/// Reads GOAL, as text or in binary form: the trace, and how many operations name another network
/// interface than 0.
#[pyfunction]
#[pyo3(signature = (path, *, binary))]
pub(crate) fn read_goal(
    py: Python<'_>,
    path: PathBuf,
    binary: bool,
) -> PyResult<(TraceGraph, u64)> {
    let found = py.detach(|| {
        let file = File::open(path)?;
        if binary {
            let length = file.metadata()?.len();
            goal::read_binary(BufReader::with_capacity(BUFFER, file), length)
        } else {
            goal::read(file)
        }
    });
    match found {
        Ok(goal) => Ok((TraceGraph(goal.graph), goal.other_nics)),
        Err(ReadError::File(error)) => Err(error.into()),
        Err(ReadError::Trace(error)) => Err(error).or_raise(),
    }
}

/// The trace of a schedule with a payload of `size` bytes. With a model, reductions and copies take
/// its time; otherwise none.
#[pyfunction]
#[pyo3(signature = (schedule, *, size, element, model=None))]
pub(crate) fn lower_schedule(
    py: Python<'_>,
    schedule: &Schedule,
    size: u64,
    element: u64,
    model: Option<&network::Model>,
) -> PyResult<TraceGraph> {
    let layout = Layout::of_schedule(&*schedule.inner, Bytes(size), element).or_raise()?;
    let costs = model.map_or(LocalCosts::FREE, |model| model.1);
    py.detach(|| trace::lower(&*schedule.inner, &layout, &costs)).or_raise().map(TraceGraph)
}

/// Runs a trace. Returns the completion time and the busy time of each rank in ps, the number of
/// messages, and the bytes in them.
#[pyfunction]
#[pyo3(signature = (trace, platform, *, seed=0))]
pub(crate) fn simulate_trace(
    py: Python<'_>,
    trace: &TraceGraph,
    platform: &Platform,
    seed: u64,
) -> PyResult<(Vec<u64>, Vec<u64>, u64, u128)> {
    let outcome = watched(py, |stop| platform.0.run_trace(&trace.0, seed, stop))?.or_raise()?;
    let ps = |times: Vec<tutti_units::Time>| times.iter().map(|time| time.ps()).collect();
    Ok((ps(outcome.finish), ps(outcome.busy), outcome.messages, outcome.bytes))
}
