//! The results of training runs.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tutti_engine::endpoint;
use tutti_engine::training::{self, Limit, NpuRecord, TrainingOutcome, Windows};

use crate::errors::refuse;

/// The result of a training run; times in picoseconds.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct TrainingRecord(pub(crate) TrainingOutcome);

/// How an NPU spends its time; the parts add up to the completion time.
#[pyclass(frozen, get_all, eq, hash, module = "tutti._core")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Breakdown {
    /// Computation without communication.
    compute_ps: u64,
    /// Computation and communication.
    overlap_ps: u64,
    /// Communication without computation.
    exposed_ps: u64,
    /// Neither.
    idle_ps: u64,
}

/// When a task starts and ends.
#[pyclass(frozen, get_all, eq, hash, module = "tutti._core")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct TaskSpan {
    /// The number of the task in its program.
    task: u32,
    /// Its start.
    start_ps: u64,
    /// Its end.
    end_ps: u64,
}

/// The use of a server of an endpoint, or of a link of an NPU.
#[pyclass(frozen, get_all, eq, hash, module = "tutti._core")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct ServerUse {
    /// Its name.
    name: String,
    /// Its busy time.
    busy_ps: u64,
    /// The total waiting time of packets.
    waited_ps: u64,
    /// Bytes that it served.
    bytes: u64,
    /// Packets that it served.
    pieces: u64,
}

impl ServerUse {
    fn of((name, used): &(impl ToString, endpoint::ServerUse)) -> ServerUse {
        ServerUse {
            name: name.to_string(),
            busy_ps: used.busy.ps(),
            waited_ps: used.waited.ps(),
            bytes: used.bytes,
            pieces: used.pieces,
        }
    }
}

/// The waits of chunks and packets for a resource of an endpoint.
#[pyclass(frozen, get_all, eq, hash, module = "tutti._core")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Stall {
    /// The resource.
    cause: &'static str,
    /// The total waiting time.
    waited_ps: u64,
    /// The number of waits.
    count: u64,
}

/// The use of a link of a topology.
#[pyclass(frozen, get_all, eq, hash, module = "tutti._core")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct GraphLinkUse {
    /// Its busy time.
    busy_ps: u64,
    /// Bytes that crossed it.
    bytes: u64,
}

/// Busy times within each window, summed over the simulated NPUs.
#[pyclass(frozen, get_all, eq, hash, module = "tutti._core")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct BusyWindows {
    /// Of links.
    links_ps: Vec<u64>,
    /// Of processors.
    computing_ps: Vec<u64>,
    /// Times in which an endpoint has a chunk.
    communicating_ps: Vec<u64>,
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

    /// The breakdown of an NPU's time.
    #[pyo3(signature = (npu=0))]
    fn breakdown(&self, npu: usize) -> PyResult<Breakdown> {
        let parts = self.npu(npu)?.breakdown;
        Ok(Breakdown {
            compute_ps: parts.compute.ps(),
            overlap_ps: parts.overlap.ps(),
            exposed_ps: parts.exposed.ps(),
            idle_ps: parts.idle.ps(),
        })
    }

    /// The completion time of each iteration of an NPU.
    #[pyo3(signature = (npu=0))]
    fn iterations(&self, npu: usize) -> PyResult<Vec<u64>> {
        Ok(self.npu(npu)?.iterations.iter().map(|time| time.ps()).collect())
    }

    /// The tasks of an NPU.
    #[pyo3(signature = (npu=0))]
    fn spans(&self, npu: usize) -> PyResult<Vec<TaskSpan>> {
        let task_span = |span: &training::TaskSpan| TaskSpan {
            task: span.task.0,
            start_ps: span.start.ps(),
            end_ps: span.end.ps(),
        };
        Ok(self.npu(npu)?.spans.iter().map(task_span).collect())
    }

    /// For each NPU, the first one whose tasks start and end at the same times.
    fn first_alike(&self) -> Vec<usize> {
        let npus = &self.0.npus;
        let mut distinct = Vec::new();
        let mut first_alike = |npu: usize| {
            let is_alike = |&one: &usize| npus[one].spans == npus[npu].spans;
            distinct.iter().copied().find(is_alike).unwrap_or_else(|| {
                distinct.push(npu);
                npu
            })
        };
        (0..npus.len()).map(&mut first_alike).collect()
    }

    /// The use of the servers of an NPU's endpoint.
    #[pyo3(signature = (npu=0))]
    fn servers(&self, npu: usize) -> PyResult<Vec<ServerUse>> {
        Ok(self.npu(npu)?.servers.iter().map(ServerUse::of).collect())
    }

    /// The use of the links of an NPU.
    #[pyo3(signature = (npu=0))]
    fn links(&self, npu: usize) -> PyResult<Vec<ServerUse>> {
        Ok(self.npu(npu)?.links.iter().map(ServerUse::of).collect())
    }

    /// The stalls of chunks and packets of an NPU, except for servers.
    #[pyo3(signature = (npu=0))]
    fn stalls(&self, npu: usize) -> PyResult<Vec<Stall>> {
        let stall = |(cause, stall): &(&'static str, training::Stall)| Stall {
            cause,
            waited_ps: stall.time.ps(),
            count: stall.count,
        };
        Ok(self.npu(npu)?.stalls.iter().map(stall).collect())
    }

    /// How long the endpoint of an NPU had at least one chunk.
    #[pyo3(signature = (npu=0))]
    fn active_ps(&self, npu: usize) -> PyResult<u64> {
        Ok(self.npu(npu)?.active.ps())
    }

    /// The use of each link of the platform, by link id; empty on a torus of FIFO links.
    fn graph_links(&self) -> Vec<GraphLinkUse> {
        let links = self.0.graph_links.iter();
        links.map(|used| GraphLinkUse { busy_ps: used.busy.ps(), bytes: used.bytes }).collect()
    }

    /// The busy times within each window.
    fn over_time(&self) -> BusyWindows {
        BusyWindows {
            links_ps: ps(&self.0.links),
            computing_ps: ps(&self.0.computing),
            communicating_ps: ps(&self.0.active),
        }
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

/// The lower bound of the time of a collective alone.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct CollectiveLimit(pub(crate) Limit);

#[pymethods]
impl CollectiveLimit {
    /// The bound.
    #[getter]
    fn time_ps(&self) -> u64 {
        self.0.time().ps()
    }

    /// The latency of its shortest chunk.
    #[getter]
    fn latency_ps(&self) -> u64 {
        self.0.latency.ps()
    }

    /// The busy time of each server, by name.
    #[getter]
    fn servers_ps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let servers = PyDict::new(py);
        for (name, time) in &self.0.servers {
            servers.set_item(&**name, time.ps())?;
        }
        Ok(servers)
    }

    /// The busy time of each link.
    #[getter]
    fn links_ps(&self) -> Vec<u64> {
        self.0.links.iter().map(|time| time.ps()).collect()
    }
}
