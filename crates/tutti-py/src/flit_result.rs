//! What was measured on a flit network; times in cycles, lists as little-endian numbers.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tutti_noc::measure::{Estimate, Measured, Measurement, RoundTrips, Stalls};

use crate::measure::column;

/// A mean, and its 95 % CI half-width.
type Mean = (f64, f64);

/// What was measured of a traffic class, or of all.
#[pyclass(frozen, get_all, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct FlitClassResult {
    /// Flits created in the window, per node and cycle.
    offered: f64,
    /// Flits ejected in the window, per node and cycle.
    accepted: Mean,
    /// The lowest and the highest accepted throughput of a node.
    accepted_extremes: (f64, f64),
    /// From the creation of a packet to the arrival of its tail.
    latency: Mean,
    /// The lowest and the highest.
    latency_extremes: (u64, u64),
    /// From the injection of the head.
    network_latency: Mean,
    /// Routers on the route.
    hops: Mean,
    /// The number of packets measured.
    packets: u64,
    /// Percentiles of the latency.
    quantiles: [u64; 4],
}

impl From<&Measured> for FlitClassResult {
    fn from(measured: &Measured) -> FlitClassResult {
        let mean = |Estimate { mean, half_width }| (mean, half_width);
        FlitClassResult {
            offered: measured.offered,
            accepted: mean(measured.accepted),
            accepted_extremes: measured.accepted_extremes,
            latency: mean(measured.latency),
            latency_extremes: measured.latency_extremes,
            network_latency: mean(measured.network_latency),
            hops: mean(measured.hops),
            packets: measured.packets,
            quantiles: measured.quantiles,
        }
    }
}

/// Requests from creation to the arrival of their replies.
#[pyclass(frozen, get_all, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct FlitRoundTrips {
    /// The number of the class of the requests.
    request_class: usize,
    /// From the creation of a request to the arrival of its reply.
    latency: Mean,
    /// The lowest and the highest.
    extremes: (u64, u64),
    /// Percentiles of the latency.
    quantiles: [u64; 4],
    /// The number of requests measured.
    requests: u64,
}

impl From<&RoundTrips> for FlitRoundTrips {
    fn from(measured: &RoundTrips) -> FlitRoundTrips {
        let Estimate { mean, half_width } = measured.latency;
        FlitRoundTrips {
            request_class: measured.class,
            latency: (mean, half_width),
            extremes: measured.extremes,
            quantiles: measured.quantiles,
            requests: measured.requests,
        }
    }
}

/// Why the first flits of VCs were stalled, over all samples.
#[pyclass(frozen, get_all, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct FlitStalls {
    /// VCs with flits.
    busy: u64,
    /// Heads that were being routed.
    routing: u64,
    /// Heads that waited for a VC.
    no_vc: u64,
    /// Flits that waited for a credit.
    no_credit: u64,
    /// Flits that requested the switch.
    switch: u64,
}

/// What was measured on a flit network.
#[pyclass(frozen, get_all, module = "tutti._core")]
pub(crate) struct FlitResult {
    /// `stable`, `saturated`, `undecided` or `deadlocked`.
    ending: &'static str,
    /// Cycles of a window that decides, if it is undecided.
    long_enough: Option<u64>,
    /// Simulated cycles.
    cycles: u64,
    /// Cycles of the window.
    window: u64,
    /// All classes together.
    all: FlitClassResult,
    /// Each class.
    classes: Vec<FlitClassResult>,
    /// Requests with their replies, for each load that has some.
    round_trips: Vec<FlitRoundTrips>,
    /// The last cycle in which a packet arrived.
    last_arrival: u64,
    /// The number of allocated VCs.
    vc_grants: u64,
    /// Causes of stalls.
    stalls: FlitStalls,
    /// The VCs of a deadlock cycle.
    deadlock_cycle: Vec<String>,
    /// Flits over each channel.
    sent: Py<PyBytes>,
    /// Flits over each channel, by VC.
    sent_by_vc: Py<PyBytes>,
    /// The mean number of flits in each input VC.
    occupancy: Py<PyBytes>,
    /// Flits in all buffers, by sample.
    buffered: Py<PyBytes>,
    /// Flits in all buffers, by sample and VC.
    buffered_by_vc: Py<PyBytes>,
    /// Flits in each input VC, by sample.
    vc_occupancy: Py<PyBytes>,
    /// Flits over each channel, by sample and VC.
    vc_sent: Py<PyBytes>,
}

impl FlitResult {
    pub(crate) fn new(
        py: Python<'_>,
        measurement: &Measurement,
        deadlock_cycle: Vec<String>,
    ) -> FlitResult {
        let wide =
            |values: &[u64]| column(py, values.iter().map(|value| value.to_le_bytes())).unbind();
        let short =
            |values: &[u16]| column(py, values.iter().map(|value| value.to_le_bytes())).unbind();
        let means = measurement.occupancy.iter().map(|mean| mean.to_le_bytes());
        let &Stalls { busy, routing, no_vc, no_credit, switch } = &measurement.stalls;
        FlitResult {
            ending: measurement.ending.name(),
            long_enough: measurement.long_enough,
            cycles: measurement.cycles,
            window: measurement.window,
            all: (&measurement.all).into(),
            classes: measurement.classes.iter().map(FlitClassResult::from).collect(),
            round_trips: measurement.round_trips.iter().map(FlitRoundTrips::from).collect(),
            last_arrival: measurement.last_arrival,
            vc_grants: measurement.vc_grants,
            stalls: FlitStalls { busy, routing, no_vc, no_credit, switch },
            deadlock_cycle,
            sent: wide(&measurement.sent),
            sent_by_vc: wide(&measurement.sent_by_vc),
            occupancy: column(py, means).unbind(),
            buffered: wide(&measurement.buffered),
            buffered_by_vc: wide(&measurement.buffered_by_vc),
            vc_occupancy: short(&measurement.series.occupancy),
            vc_sent: short(&measurement.series.sent),
        }
    }
}
