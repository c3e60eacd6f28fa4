//! What was measured of a kernel on a chip with coherent caches; times in cycles.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tutti_coherence::{FlowCount, Mean, MissKind, Misses, SystemRun};

use crate::measure::counts_dict;

/// A mean.
#[pyclass(frozen, get_all, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct CoherenceMean {
    /// The number of values.
    count: u64,
    /// Their mean; 0 without values.
    mean: f64,
    /// The maximum.
    most: u64,
}

impl From<&Mean> for CoherenceMean {
    fn from(mean: &Mean) -> CoherenceMean {
        CoherenceMean { count: mean.count, mean: mean.mean(), most: mean.most }
    }
}

/// Misses of a kind.
#[pyclass(frozen, get_all, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct MissResult {
    /// `read`, `write` or `upgrade`.
    kind: &'static str,
    /// From the access to its completion.
    latency: CoherenceMean,
    /// Components of the latency by name, summed over misses.
    parts: Vec<(&'static str, u64)>,
    /// Misses served by another cache.
    from_caches: u64,
    /// Misses served by memory.
    from_memory: u64,
}

impl MissResult {
    fn new((kind, misses): (MissKind, &Misses)) -> MissResult {
        MissResult {
            kind: kind.name(),
            latency: (&misses.latency).into(),
            parts: misses.parts.named(),
            from_caches: misses.from_caches,
            from_memory: misses.from_memory,
        }
    }
}

/// Flows of a kind.
#[pyclass(frozen, get_all, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct FlowResult {
    /// Kind of the messages.
    kind: &'static str,
    /// Message class.
    message_class: u8,
    /// `unicast`, `broadcast` or `responses`.
    cast: &'static str,
    /// The number of flows.
    count: u64,
}

impl From<&FlowCount> for FlowResult {
    fn from(&FlowCount { kind, class, cast, count }: &FlowCount) -> FlowResult {
        FlowResult { kind, message_class: class, cast, count }
    }
}

/// What was measured of a kernel in its region of interest.
#[pyclass(frozen, get_all, module = "tutti._core")]
pub(crate) struct CoherenceResult {
    /// Length of the region.
    cycles: u64,
    /// Length of the run.
    total_cycles: u64,
    /// Cores with a thread.
    cores: u32,
    /// Instructions of all cores.
    instructions: u64,
    /// Memory accesses.
    accesses: u64,
    /// L1 misses.
    l1_misses: u64,
    /// Misses that go to the network, by kind.
    misses: Vec<MissResult>,
    /// Cycles in which cores spin on an unchanged copy, summed over cores.
    spun: u64,
    /// Latency of broadcasts.
    broadcasts: CoherenceMean,
    /// Latency of reductions, from the creation of the broadcast.
    reductions: CoherenceMean,
    /// Response packets that arrived.
    response_packets: u64,
    /// Mean reductions in flight.
    open_reductions: f64,
    /// Mean aggregation table entries in use, per router.
    table_occupancy: f64,
    /// Flows by kind.
    flows: Vec<FlowResult>,
    /// Reissued requests.
    reissues: u64,
    /// Persistent requests.
    persistent: u64,
    /// Lines read from memory.
    memory_reads: u64,
    /// Lines written to memory.
    memory_writes: u64,
    /// Mean stall of a core.
    stall: f64,
    /// Its part due to the network.
    network_stall: f64,
    /// Event counts of the fabric by name.
    counts: Py<PyDict>,
}

impl CoherenceResult {
    pub(crate) fn new(py: Python<'_>, run: &SystemRun, nodes: u32) -> PyResult<CoherenceResult> {
        Ok(CoherenceResult {
            cycles: run.cycles,
            total_cycles: run.total_cycles,
            cores: run.cores,
            instructions: run.instructions,
            accesses: run.accesses,
            l1_misses: run.l1_misses,
            misses: MissKind::ALL.into_iter().zip(&run.misses).map(MissResult::new).collect(),
            spun: run.spun,
            broadcasts: (&run.broadcasts).into(),
            reductions: (&run.reductions).into(),
            response_packets: run.response_packets,
            open_reductions: run.mean_open_reductions(),
            table_occupancy: run.table_occupancy(nodes),
            flows: run.flows.iter().map(FlowResult::from).collect(),
            reissues: run.reissues,
            persistent: run.persistent,
            memory_reads: run.memory_reads,
            memory_writes: run.memory_writes,
            stall: run.stall(),
            network_stall: run.network_stall(),
            counts: counts_dict(py, &run.counts)?.unbind(),
        })
    }
}
