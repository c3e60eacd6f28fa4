//! The results of training runs.

use pyo3::prelude::*;
use tutti_engine::endpoint::ServerUse;
use tutti_engine::training::{Breakdown, NpuRecord, TrainingOutcome, Windows};

use crate::errors::refuse;

/// The result of a training run; times in picoseconds.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct TrainingRecord(pub(crate) TrainingOutcome);

/// (name, busy, waited, bytes, pieces).
type ServerRow = (String, u64, u64, u64, u64);

fn server_row(name: &str, used: &ServerUse) -> ServerRow {
    (name.to_owned(), used.busy.ps(), used.waited.ps(), used.bytes, used.pieces)
}

fn ps(windows: &Windows) -> Vec<u64> {
    windows.busy().iter().map(|time| time.ps()).collect()
}

#[pymethods]
impl TrainingRecord {
    /// The completion time.
    #[getter]
    fn end_ps(&self) -> u64 {
        self.0.end.ps()
    }

    /// The number of simulated NPUs.
    #[getter]
    fn npus(&self) -> usize {
        self.0.npus.len()
    }

    /// The breakdown of an NPU's time: compute, overlap, exposed, idle.
    #[pyo3(signature = (npu=0))]
    fn breakdown(&self, npu: usize) -> PyResult<(u64, u64, u64, u64)> {
        let Breakdown { compute, overlap, exposed, idle } = self.npu(npu)?.breakdown;
        Ok((compute.ps(), overlap.ps(), exposed.ps(), idle.ps()))
    }

    /// The completion time of each iteration of an NPU.
    #[pyo3(signature = (npu=0))]
    fn iterations(&self, npu: usize) -> PyResult<Vec<u64>> {
        Ok(self.npu(npu)?.iterations.iter().map(|time| time.ps()).collect())
    }

    /// (task, start, end) of each task of an NPU.
    #[pyo3(signature = (npu=0))]
    fn spans(&self, npu: usize) -> PyResult<Vec<(u32, u64, u64)>> {
        let spans = self.npu(npu)?.spans.iter();
        Ok(spans.map(|span| (span.task.0, span.start.ps(), span.end.ps())).collect())
    }

    /// The utilisation of the servers of an NPU's endpoint.
    #[pyo3(signature = (npu=0))]
    fn servers(&self, npu: usize) -> PyResult<Vec<ServerRow>> {
        Ok(self.npu(npu)?.servers.iter().map(|(name, used)| server_row(name, used)).collect())
    }

    /// The utilisation of the links of an NPU: (name, busy, waited, bytes, pieces).
    #[pyo3(signature = (npu=0))]
    fn links(&self, npu: usize) -> PyResult<Vec<ServerRow>> {
        let links = self.npu(npu)?.links.iter();
        Ok(links.map(|(name, used)| server_row(name, used)).collect())
    }

    /// The stalls of chunks and packets of an NPU, except for servers: (cause, picoseconds, count).
    #[pyo3(signature = (npu=0))]
    fn stalls(&self, npu: usize) -> PyResult<Vec<(&'static str, u64, u64)>> {
        let stalls = self.npu(npu)?.stalls.iter();
        Ok(stalls.map(|(cause, stall)| (*cause, stall.time.ps(), stall.count)).collect())
    }

    /// How long the endpoint of an NPU had at least one chunk.
    #[pyo3(signature = (npu=0))]
    fn active_ps(&self, npu: usize) -> PyResult<u64> {
        Ok(self.npu(npu)?.active.ps())
    }

    /// The utilisation of each link of the platform, by link id: (busy, bytes); empty on a torus of
    /// FIFO links.
    fn graph_links(&self) -> Vec<(u64, u64)> {
        self.0.graph_links.iter().map(|used| (used.busy.ps(), used.bytes)).collect()
    }

    /// Busy time of all simulated links, and of all simulated processors, window by window.
    fn over_time(&self) -> (Vec<u64>, Vec<u64>) {
        (ps(&self.0.links), ps(&self.0.computing))
    }

    /// The time within each window in which the simulated endpoints had a chunk.
    fn active_over_time(&self) -> Vec<u64> {
        ps(&self.0.active)
    }
}

impl TrainingRecord {
    fn npu(&self, npu: usize) -> PyResult<&NpuRecord> {
        self.0.npus.get(npu).ok_or_else(|| {
            let simulated = self.0.npus.len();
            let message =
                format!("NPU {npu} was not simulated: expected an NPU from 0 to {}", simulated - 1);
            refuse("WorkloadError", "no_such_npu", &message)
        })
    }
}
