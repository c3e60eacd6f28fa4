//! Measurement: warm up, measure, drain.
//!
//! Packets created in the measurement window count, whenever they arrive; the load continues until
//! all of them have. The accepted load is counted in the window. Means come with their 95 % CI
//! half-width, by the method of batch means: the window is cut into batches, whose means are taken
//! as independent (Law, "Simulation Modeling and Analysis", 5th edition, section 9.5).
//!
//! `phases`, `statistics` and `window` serve every engine, [`crate::smart`] too.

mod dependent;
mod generator;
pub(crate) mod phases;
mod requests;
mod run;
pub(crate) mod statistics;
mod tally;
pub(crate) mod window;

pub use phases::{Ending, Phases};
pub use requests::{Reply, Requests, RoundTrips};
pub use run::measure;
pub use statistics::{Estimate, half_width};

use super::FlitError;
use super::traffic::{PacketSize, Pattern, Process, Trace};

/// Rejects a pattern over another number of nodes.
///
/// # Errors
/// When the numbers differ.
pub(crate) fn check_pattern(pattern: &Pattern, nodes: u32) -> Result<(), FlitError> {
    if pattern.nodes() == nodes {
        return Ok(());
    }
    let problem = format!("{} nodes, not {nodes}", pattern.nodes());
    Err(FlitError::Clash { what: "a pattern for another network", problem })
}

/// Traffic to measure.
#[derive(Clone, Copy, Debug)]
pub enum Traffic<'a> {
    /// A load for each class of the settings.
    Synthetic(&'a [Load]),
    /// Loads whose packets have replies, or are limited in number. Replies have the class after that of
    /// their requests. If all are limited and there is no warm-up, the window ends with the last
    /// arrival.
    Requests(&'a [Requests]),
    /// The packets of a trace; those created in the window are measured. If it contains all cycles
    /// of the trace, it lasts until the last arrival at least.
    Recorded(&'a Trace),
}

/// Synthetic traffic of one message class.
#[derive(Clone, Debug)]
pub struct Load {
    /// The destinations of packets.
    pub pattern: Pattern,
    /// Their creation times; in packets per node and cycle.
    pub process: Process,
    /// Their sizes.
    pub size: PacketSize,
    /// Their priority, with [`super::Priority::Ordered`].
    pub priority: i64,
}

/// The length of a run, and its samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeasurementPlan {
    /// Cycles of each phase.
    pub phases: Phases,
    /// Batches that the window is cut into, 2 or more.
    pub batches: u32,
    /// Cycles without any flit moving after which packets in flight are deadlocked.
    pub patience: u64,
    /// Cycles of the window between samples of the buffers; 0 takes none.
    pub sample: u64,
    /// Whether each sample stores the occupancy of every VC and the flits it has sent.
    pub keep_vcs: bool,
}

/// The measurements of a message class, or of all.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// Flits created in the window, per node and cycle.
    pub offered: f64,
    /// Flits that arrived in the window, per node and cycle.
    pub accepted: Estimate,
    /// The minimum and maximum that a node accepted.
    pub accepted_extremes: (f64, f64),
    /// From creation to the last flit's arrival, in cycles.
    pub latency: Estimate,
    /// The minimum and maximum.
    pub latency_extremes: (u64, u64),
    /// From the first flit's injection to the last one's arrival, in cycles.
    pub network_latency: Estimate,
    /// Hops.
    pub hops: Estimate,
    /// The number of these packets.
    pub packets: u64,
    /// Latencies that 50, 90, 99 and 99.9 % of the packets do not exceed.
    pub quantiles: [u64; 4],
}

/// Reasons of stalls, summed over samples.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Stalls {
    /// Input VCs that held flits.
    pub busy: u64,
    /// Of these, heads that were being routed.
    pub routing: u64,
    /// Heads that waited for a VC.
    pub no_vc: u64,
    /// Flits that waited for a credit.
    pub no_credit: u64,
    /// Flits that requested the switch.
    pub switch: u64,
}

/// The state of each VC at each sample; empty unless [`MeasurementPlan::keep_vcs`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Series {
    /// Flits in the buffer of each input VC at that time: by time, router, port, VC.
    pub occupancy: Vec<u16>,
    /// Flits that each VC of each channel has sent since the time before: by time, channel, VC.
    pub sent: Vec<u16>,
}

/// The result of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Measurement {
    /// How the run ended.
    pub ending: Ending,
    /// For [`Ending::Undecided`], cycles of a window that decides.
    pub long_enough: Option<u64>,
    /// Cycles of the run, including warm-up and drain.
    pub cycles: u64,
    /// Cycles of the window.
    pub window: u64,
    /// All classes together.
    pub all: Measured,
    /// Each class.
    pub classes: Vec<Measured>,
    /// Requests with their replies, for each load that has some.
    pub round_trips: Vec<RoundTrips>,
    /// The last cycle in which a packet arrived.
    pub last_arrival: u64,
    /// Flits sent over each channel in the window.
    pub sent: Vec<u64>,
    /// The same by channel, then VC; empty without samples.
    pub sent_by_vc: Vec<u64>,
    /// Output VCs given to packets by routers, for packets that arrived in the window.
    pub vc_grants: u64,
    /// Mean flits in the buffer of each input VC, by router, port and VC; empty without samples.
    pub occupancy: Vec<f64>,
    /// Flits in all buffers, by sample.
    pub buffered: Vec<u64>,
    /// The same by VC number: for each sample, those in the buffers of VC 0, of VC 1, and so on.
    pub buffered_by_vc: Vec<u64>,
    /// With [`MeasurementPlan::keep_vcs`].
    pub series: Series,
    /// Reasons of stalls.
    pub stalls: Stalls,
}
