//! Measurement of meshes under synthetic traffic: broadcasts, multicasts, reductions, unicasts, and
//! mixtures of them.
//!
//! The phases and statistics are those of [`crate::measure`]. Messages created in the window count,
//! whenever they end; a mesh that accepts less than 97 % of the offered load, by more than chance
//! explains, is not drained. The
//! latency of a broadcast or multicast runs from its creation to the last of its deliveries, that
//! of a reduction from its start until the responses of all have arrived; waiting at the source is
//! part of both. Runs with several seeds are independent; their means give confidence intervals.

mod ideal;
mod run;
mod tally;
#[cfg(test)]
mod tests;
mod traffic;
mod watch;

pub use crate::measure::{Ending, Phases};
pub use ideal::{Ideal, ideal};
pub use run::{check, measure};
pub use watch::{Sent, Watched, watch};

use super::counts::Counts;
use crate::measure::statistics::real;
use crate::traffic::{PacketSize, Pattern, Process};

/// The kind of messages.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Packets to one node.
    Unicast {
        /// Their destinations.
        pattern: Pattern,
        /// Their sizes.
        size: PacketSize,
    },
    /// A flit to every other node.
    Broadcast {
        /// The sources.
        from: Sources,
    },
    /// A flit to some other nodes, drawn for each.
    Multicast {
        /// The sources.
        from: Sources,
        /// The destinations.
        to: Members,
    },
    /// A flit from every other node to a destination that is drawn for each, all at once; entries
    /// of tables are there as if a broadcast had made them.
    Reduction {
        /// Independent processes that start them; each starts one per cycle at most.
        streams: u32,
    },
}

/// The sources of broadcasts or multicasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sources {
    /// Every node.
    All,
    /// The four corners.
    Corners,
}

/// The destinations of a multicast; never its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members {
    /// As many as each number from one to all others is as likely, and then any of them.
    AnyNumber,
    /// Each node with probability one half; an empty set is drawn again.
    Half,
}

/// Traffic of one kind, in one message class.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The kind.
    pub kind: Kind,
    /// When messages are created, by each source: a node, or a process that starts reductions.
    pub process: Process,
    /// The message class.
    pub class: u8,
    /// Of reductions, the most in flight at once; further ones wait at their source until another
    /// is over, as if each needed an entry of a table. None for no limit.
    pub outstanding: Option<u32>,
}

/// The result of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Measurement {
    /// How it ended.
    pub ending: Ending,
    /// For [`Ending::Undecided`], cycles of a window that decides.
    pub long_enough: Option<u64>,
    /// Cycles it took, warm-up and drain included.
    pub cycles: u64,
    /// Each load.
    pub loads: Vec<Measured>,
    /// The event counters of the window.
    pub counts: Counts,
    /// The number of routers.
    pub routers: u32,
}

/// The measurements of a load; times in cycles.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// Messages that were created in the window and have ended.
    pub messages: u64,
    /// Messages created in the window, per cycle, by all sources together.
    pub offered: f64,
    /// Messages that ended in it, per cycle, counted by their parts: deliveries, or responses.
    pub accepted: f64,
    /// Parts of a message, on average: destinations of a multicast, responses of a reduction,
    /// flits.
    pub parts: f64,
    /// From creation to the end; not a number if none ended.
    pub latency: f64,
    /// The minimum and maximum.
    pub latency_extremes: (u64, u64),
    /// The latencies that 50, 90, 99 and 99.9 % do not exceed.
    pub quantiles: [u64; 4],
    /// From creation to each delivery, on average.
    pub part_latency: f64,
    /// Packets that arrived for a message, on average: of a reduction, how many of its responses
    /// were not combined with others.
    pub arrivals: f64,
    /// Messages that were sent and had not ended, on average over the window.
    pub active: f64,
}

impl Measurement {
    /// Entries of tables of reductions in use, per router.
    #[must_use]
    pub fn table_entries(&self) -> f64 {
        self.per_router(self.counts.table_entries)
    }

    /// Combinable responses in buffers, per router: distinct flows, unless
    /// [`Merge::Buffered`](super::Merge::Buffered) lets several of a flow stay.
    #[must_use]
    pub fn buffered_flows(&self) -> f64 {
        self.per_router(self.counts.buffered_flows)
    }

    /// Mean cycles that a response stays buffered in a router: one if it leaves with the first
    /// arbitration. By Little's law, counting merged responses as one.
    #[must_use]
    pub fn stay(&self) -> f64 {
        real(self.counts.buffered_flows) / real(self.counts.responses_buffered)
    }

    fn per_router(&self, sum: u64) -> f64 {
        real(sum) / (real(self.counts.cycles) * f64::from(self.routers))
    }
}
