//! Measurement: warm up, measure, drain.
//!
//! Packets that are created in the measured window count, whenever they arrive; load goes on until all of
//! them have. What is accepted is counted in the window. Means come with the half width of their 95 %
//! confidence interval, by the method of batch means: the window is cut into batches, whose means are
//! taken as independent (Law, "Simulation Modeling and Analysis", 5th edition, section 9.5).

mod generator;
mod run;
mod tally;

pub use run::{measure, measure_until, replay, replay_until};
pub use tally::half_width;

use super::traffic::{PacketSize, Pattern, Process};

/// Synthetic traffic of one message class.
#[derive(Clone, Debug)]
pub struct Load {
    /// Where packets go.
    pub pattern: Pattern,
    /// When they are created; in packets per node and cycle.
    pub process: Process,
    /// How long they are.
    pub size: PacketSize,
    /// How much they are preferred, with [`super::Priority::Ordered`].
    pub priority: i64,
}

/// How long to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeasurementPlan {
    /// Cycles before the window.
    pub warmup: u64,
    /// Cycles of the window.
    pub measure: u64,
    /// Batches that the window is cut into, 2 or more.
    pub batches: u32,
    /// Cycles after the window in which what was created in it must arrive.
    pub drain: u64,
    /// Cycles without any flit moving after which packets under way are called deadlocked.
    pub patience: u64,
    /// Every how many cycles of the window buffers are looked at; never if 0.
    pub sample: u64,
    /// Whether to keep, each time, how full the buffer of every VC was and what it had sent.
    pub keep_vcs: bool,
}

/// A mean with the half width of its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The half width; not a number with fewer than two batches that hold anything.
    pub half_width: f64,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Everything measured has arrived, and what was offered was accepted.
    Stable,
    /// More was offered than accepted: queues grew, and latencies are those of a run of this length.
    Saturated,
    /// Nothing moved any more.
    Deadlocked,
}

/// What was measured of a message class, or of all.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// Flits created in the window, per node and cycle.
    pub offered: f64,
    /// Flits that arrived in the window, per node and cycle.
    pub accepted: Estimate,
    /// The least and the most that a node accepted.
    pub accepted_extremes: (f64, f64),
    /// From creation to the last flit's arrival, in cycles.
    pub latency: Estimate,
    /// The least and the most.
    pub latency_extremes: (u64, u64),
    /// From the first flit's injection to the last one's arrival, in cycles.
    pub network_latency: Estimate,
    /// Routers passed through.
    pub hops: Estimate,
    /// Packets that these are the means of.
    pub packets: u64,
    /// How many packets took how long: 50, 90, 99 and 99.9 of 100 took no longer.
    pub quantiles: [u64; 4],
}

/// Where flits stood, as far as it was looked at.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Stalls {
    /// Input VCs that were looked at and held flits.
    pub busy: u64,
    /// Of these, heads that were being routed.
    pub routing: u64,
    /// Heads that waited for a VC.
    pub no_vc: u64,
    /// Flits that waited for a credit.
    pub no_credit: u64,
    /// Flits that were asking for the switch.
    pub switch: u64,
}

/// How each VC fared, each time buffers were looked at; empty unless asked for.
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
    /// How it ended.
    pub ending: Ending,
    /// Cycles it took, warm-up and drain included.
    pub cycles: u64,
    /// Cycles of the window.
    pub window: u64,
    /// All classes together.
    pub all: Measured,
    /// Each class.
    pub classes: Vec<Measured>,
    /// Flits sent over each channel in the window.
    pub sent: Vec<u64>,
    /// The same by channel, then VC; empty where it was not looked at.
    pub sent_by_vc: Vec<u64>,
    /// Output VCs given to packets by routers, for packets that arrived in the window.
    pub vc_grants: u64,
    /// Mean flits in the buffer of each input VC, by router, port and VC; empty if never looked at.
    pub occupancy: Vec<f64>,
    /// Flits in all buffers, each time it was looked at.
    pub buffered: Vec<u64>,
    /// The same by VC number: for each time, those in the buffers of VC 0, of VC 1, and so on.
    pub buffered_by_vc: Vec<u64>,
    /// With [`MeasurementPlan::keep_vcs`].
    pub series: Series,
    /// Why flits stood.
    pub stalls: Stalls,
}
