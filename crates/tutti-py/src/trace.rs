//! Traces of applications: GOAL text, the lowering of schedules, and runs.
//!
//! The columns of a rank cross the border as little-endian bytes, which numpy reads and writes
//! without an object per value.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tutti_engine::LocalCosts;
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

/// Reads GOAL text: the columns of each rank, and how many operations name another network
/// interface than 0.
#[pyfunction]
pub(crate) fn read_goal<'py>(py: Python<'py>, text: &[u8]) -> PyResult<(Ranks<'py>, u64)> {
    let goal = py.detach(|| trace::goal::read(text)).or_raise()?;
    Ok((goal.ranks.iter().map(|of| columns(py, of)).collect(), goal.other_nics))
}

/// The columns of each rank of a schedule with a payload of `size` bytes. With a model, reductions
/// and copies take its time; otherwise none.
#[pyfunction]
#[pyo3(signature = (schedule, *, size, element, model=None))]
pub(crate) fn lower_schedule<'py>(
    py: Python<'py>,
    schedule: &Schedule,
    size: u64,
    element: u64,
    model: Option<&network::Model>,
) -> PyResult<Ranks<'py>> {
    let layout = Layout::of_schedule(&*schedule.inner, Bytes(size), element).or_raise()?;
    let costs = model.map_or(LocalCosts::FREE, |model| model.1);
    let ranks = py.detach(|| trace::lower(&*schedule.inner, &layout, &costs));
    Ok(ranks.iter().map(|of| columns(py, of)).collect())
}

/// Runs a trace. Returns the completion time and the busy time of each rank in ps, the number of
/// messages, and the bytes in them.
#[pyfunction]
#[pyo3(signature = (ranks, platform, *, seed=0))]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
pub(crate) fn simulate_trace(
    py: Python<'_>,
    ranks: Ranks<'_>,
    platform: &Platform,
    seed: u64,
) -> PyResult<(Vec<u64>, Vec<u64>, u64, u128)> {
    let read = |(a, b, c, d, e, f, g, h, i): &Columns<Bound<'_, PyBytes>>| {
        let columns = [a, b, c, d, e, f, g, h, i].map(|column| column.as_bytes());
        let [a, b, c, d, e, f, g, h, i] = columns;
        operations(&(a, b, c, d, e, f, g, h, i))
    };
    let ranks: Vec<Operations> = ranks.iter().map(read).collect();
    let outcome = watched(py, |stop| platform.0.run_trace(&ranks, seed, stop))?.or_raise()?;
    let ps = |times: Vec<tutti_units::Time>| times.iter().map(|time| time.ps()).collect();
    Ok((ps(outcome.finish), ps(outcome.busy), outcome.messages, outcome.bytes))
}
