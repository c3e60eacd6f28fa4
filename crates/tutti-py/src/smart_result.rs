//! What was measured on a mesh whose flits make several hops in a cycle; times in cycles.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tutti_noc::smart::measure::{Measured, Measurement};

use crate::measure::counts_dict;

/// What was measured of a load.
#[pyclass(frozen, get_all, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct SmartLoadResult {
    /// Messages created in the window that ended.
    messages: u64,
    /// Messages created in the window, per cycle.
    offered: f64,
    /// Messages that ended in it, per cycle.
    accepted: f64,
    /// Mean parts of a message.
    parts: f64,
    /// Mean latency of messages.
    latency: f64,
    /// The lowest and the highest.
    latency_extremes: (u64, u64),
    /// Percentiles of the latency.
    quantiles: [u64; 4],
    /// Mean latency from creation to each delivery.
    part_latency: f64,
    /// Mean packets that arrived for a message.
    arrivals: f64,
    /// Mean number of messages in flight.
    active: f64,
}

impl From<&Measured> for SmartLoadResult {
    fn from(measured: &Measured) -> SmartLoadResult {
        SmartLoadResult {
            messages: measured.messages,
            offered: measured.offered,
            accepted: measured.accepted,
            parts: measured.parts,
            latency: measured.latency,
            latency_extremes: measured.latency_extremes,
            quantiles: measured.quantiles,
            part_latency: measured.part_latency,
            arrivals: measured.arrivals,
            active: measured.active,
        }
    }
}

/// What was measured on a mesh.
#[pyclass(frozen, get_all, module = "tutti._core")]
pub(crate) struct SmartResult {
    /// `stable`, `saturated`, `undecided` or `deadlocked`.
    ending: &'static str,
    /// Cycles of a window that decides, if it is undecided.
    long_enough: Option<u64>,
    /// Simulated cycles.
    cycles: u64,
    /// Each load.
    loads: Vec<SmartLoadResult>,
    /// Event counts by name.
    counts: Py<PyDict>,
    /// Aggregation table entries in use, per router.
    table_entries: f64,
    /// Combinable responses in buffers, per router.
    buffered_flows: f64,
    /// Mean cycles that a response is buffered in a router.
    stay: f64,
}

impl SmartResult {
    pub(crate) fn new(py: Python<'_>, measurement: &Measurement) -> PyResult<SmartResult> {
        Ok(SmartResult {
            ending: measurement.ending.name(),
            long_enough: measurement.long_enough,
            cycles: measurement.cycles,
            loads: measurement.loads.iter().map(SmartLoadResult::from).collect(),
            counts: counts_dict(py, &measurement.counts)?.unbind(),
            table_entries: measurement.table_entries(),
            buffered_flows: measurement.buffered_flows(),
            stay: measurement.stay(),
        })
    }
}
