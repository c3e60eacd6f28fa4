//! What a run leaves behind, as Python sees it: columns of little-endian bytes that become a frame
//! without a Python object per value.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tutti_simulation::{Cause, HopKind, NetworkUse};
use tutti_units::Time;

use crate::engine::Case;
use crate::errors::OrRaise;
use crate::measure::{column, counts_dict};

/// What a run left behind.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct Run(pub(crate) tutti_simulation::Run);

#[pymethods]
impl Run {
    /// From the first rank's entry to the last rank's end.
    #[getter]
    fn completion_ps(&self) -> u64 {
        self.0.outcome.completion_time().ps()
    }

    /// From the first rank's end to the last rank's.
    #[getter]
    fn finish_skew_ps(&self) -> u64 {
        self.0.outcome.finish_skew().ps()
    }

    /// Messages sent by ranks; a multicast counts as one.
    #[getter]
    fn messages(&self) -> u64 {
        self.0.outcome.messages
    }

    /// Bytes in these.
    #[getter]
    fn message_bytes(&self) -> u128 {
        self.0.outcome.bytes
    }

    /// Messages received by ranks: one at each receiver of a multicast, one per in-network
    /// reduction.
    #[getter]
    fn delivered(&self) -> u64 {
        self.0.outcome.delivered
    }

    /// Bytes in these.
    #[getter]
    fn delivered_bytes(&self) -> u128 {
        self.0.outcome.delivered_bytes
    }

    /// When each rank entered the collective, as little-endian 64-bit integers.
    #[getter]
    fn start_ps<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        times(py, self.0.outcome.start.iter())
    }

    /// When each rank had done its last op, as little-endian 64-bit integers.
    #[getter]
    fn finish_ps<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        times(py, self.0.outcome.finish.iter())
    }

    /// What each link did, by link index: messages, packets or flits, bytes with headers, busy_ps,
    /// as little-endian 64-bit integers. None without contention.
    fn link_use<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let (links, counted) = match &self.0.network {
            NetworkUse::Nothing | NetworkUse::Mesh { .. } => return Ok(None),
            NetworkUse::Flows(links) => (links, "messages"),
            NetworkUse::Packets(links) => (links, "packets"),
            NetworkUse::Flits { links, .. } => (links, "flits"),
        };
        let columns = PyDict::new(py);
        columns.set_item(counted, wide(py, links.iter().map(|link| link.packets)))?;
        columns.set_item("bytes", wide(py, links.iter().map(|link| link.bytes)))?;
        columns.set_item("busy_ps", times(py, links.iter().map(|link| &link.busy)))?;
        Ok(Some(columns))
    }

    /// Flits over each channel of the flit network, as little-endian 64-bit integers, and VCs that
    /// were given to packets. None for other networks.
    fn flit_use<'py>(&self, py: Python<'py>) -> Option<(Bound<'py, PyBytes>, u64)> {
        let NetworkUse::Flits { sent, vc_grants, .. } = &self.0.network else { return None };
        Some((wide(py, sent.iter().copied()), *vc_grants))
    }

    /// Counters of a SMART mesh by name, and the number of reductions started while its tables were
    /// full. None for other networks.
    fn mesh_use<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyDict>, u64)>> {
        let NetworkUse::Mesh { counts, beyond } = &self.0.network else { return Ok(None) };
        Ok(Some((counts_dict(py, counts)?, *beyond)))
    }

    /// The columns of the timeline: 32-bit rank, channel, step, activity, peer (all ones without a peer),
    /// 64-bit start_ps, end_ps, bytes. None for a run without a record.
    fn spans<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(timeline) = &self.0.timeline else { return Ok(None) };
        let spans = || timeline.spans.iter();
        let columns = PyDict::new(py);
        columns.set_item("rank", narrow(py, spans().map(|span| span.rank.0)))?;
        columns.set_item("channel", narrow(py, spans().map(|span| span.channel)))?;
        columns.set_item("step", narrow(py, spans().map(|span| span.step)))?;
        columns.set_item("activity", narrow(py, spans().map(|span| span.activity as u32)))?;
        let peer = |span: &tutti_engine::Span| span.peer.map_or(u32::MAX, |peer| peer.0);
        columns.set_item("peer", narrow(py, spans().map(peer)))?;
        columns.set_item("start_ps", times(py, spans().map(|span| &span.start)))?;
        columns.set_item("end_ps", times(py, spans().map(|span| &span.end)))?;
        columns.set_item("bytes", wide(py, spans().map(|span| span.bytes.0)))?;
        Ok(Some(columns))
    }

    /// The critical path, of a run with a record; `case` is that of the run.
    fn critical_path(&self, case: &Case) -> PyResult<CriticalPath> {
        let Some(timeline) = &self.0.timeline else {
            return Err(PyValueError::new_err("expected a run with a record"));
        };
        case.0
            .critical_path(timeline, self.0.outcome.completion_time())
            .map(CriticalPath)
            .or_raise()
    }

    /// The columns of the messages: 32-bit source, destination, channel, index, 64-bit bytes, sent_ps,
    /// arrival_ps, received_ps. None for a run without a record.
    fn sent<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(timeline) = &self.0.timeline else { return Ok(None) };
        let messages = || timeline.messages.iter();
        let columns = PyDict::new(py);
        columns.set_item("source", narrow(py, messages().map(|m| m.source.0)))?;
        columns.set_item("destination", narrow(py, messages().map(|m| m.destination.0)))?;
        columns.set_item("channel", narrow(py, messages().map(|m| m.channel)))?;
        columns.set_item("index", narrow(py, messages().map(|m| m.index)))?;
        columns.set_item("bytes", wide(py, messages().map(|m| m.bytes.0)))?;
        columns.set_item("sent_ps", times(py, messages().map(|m| &m.sent)))?;
        columns.set_item("arrival_ps", times(py, messages().map(|m| &m.arrival)))?;
        columns.set_item("received_ps", times(py, messages().map(|m| &m.received)))?;
        Ok(Some(columns))
    }
}

/// A part of a critical path: an activity of `rank`, or a message from `source` to it.
#[pyclass(frozen, get_all, module = "tutti._core")]
pub(crate) struct Hop {
    rank: u32,
    kind: &'static str,
    start_ps: u64,
    end_ps: u64,
    source: Option<u32>,
    bytes: Option<u64>,
}

/// The critical path of a run.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct CriticalPath(tutti_simulation::CriticalPath);

#[pymethods]
impl CriticalPath {
    /// The parts, in order of time.
    #[getter]
    fn hops(&self) -> Vec<Hop> {
        let hop = |hop: &tutti_simulation::Hop| Hop {
            rank: hop.rank.0,
            kind: hop.kind.name(),
            start_ps: hop.start.ps(),
            end_ps: hop.end.ps(),
            source: hop.source.map(|source| source.0),
            bytes: (hop.kind != HopKind::Idle).then_some(hop.bytes.0),
        };
        self.0.hops.iter().map(hop).collect()
    }

    /// The time of each cause in ps; the sum is the completion time.
    #[getter]
    fn shares_ps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let shares = PyDict::new(py);
        for (cause, share) in Cause::ALL.iter().zip(self.0.shares) {
            shares.set_item(cause.name(), share.ps())?;
        }
        Ok(shares)
    }
}

fn narrow<'py>(py: Python<'py>, values: impl Iterator<Item = u32>) -> Bound<'py, PyBytes> {
    column(py, values.map(u32::to_le_bytes))
}

fn wide<'py>(py: Python<'py>, values: impl Iterator<Item = u64>) -> Bound<'py, PyBytes> {
    column(py, values.map(u64::to_le_bytes))
}

fn times<'py, 'a>(py: Python<'py>, values: impl Iterator<Item = &'a Time>) -> Bound<'py, PyBytes> {
    wide(py, values.map(|time| time.ps()))
}

/// The names of the activities of a timeline, at the numbers that [`Run::spans`] gives them.
#[pyfunction]
pub(crate) fn activities() -> Vec<&'static str> {
    tutti_engine::Activity::ALL.map(tutti_engine::Activity::name).to_vec()
}
