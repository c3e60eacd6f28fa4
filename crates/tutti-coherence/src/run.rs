//! Results of a run.

use tutti_noc::smart::Counts;

/// A kind of miss.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, tutti_units::Named)]
pub enum MissKind {
    /// A read of a line that is not cached.
    Read,
    /// A write to a line that is not cached.
    Write,
    /// A write to a cached line without write permission.
    Upgrade,
}

/// Count, sum and maximum of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mean {
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: u64,
    /// Maximum of the values.
    pub most: u64,
}

impl Mean {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += value;
        self.most = self.most.max(value);
    }

    /// Returns the mean; 0 without values.
    #[must_use]
    pub fn mean(&self) -> f64 {
        ratio(self.sum, self.count)
    }
}

/// Returns the quotient; 0 if the divisor is 0.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub(super) fn ratio(dividend: u64, divisor: u64) -> f64 {
    if divisor == 0 { 0.0 } else { dividend as f64 / divisor as f64 }
}

/// Declares the components of miss latency: the struct, its names and its sums.
macro_rules! parts {
    ($($(#[$note:meta])* $part:ident,)*) => {
        /// Components of miss latency in cycles; they are consecutive and add up to the latency.
        /// With HT, in the order of the fields. With TC, `probe` is the latency of the request to
        /// the node whose tokens arrive last, `snoop` or `memory` the processing time there, and
        /// `data` the latency of the tokens; `request` and `responses` are 0.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct Parts {
            $($(#[$note])* pub $part: u64,)*
        }

        impl Parts {
            /// Returns name and cycles of each component.
            #[must_use]
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($part), self.$part)),*]
            }

            /// Returns the sum of the components.
            #[must_use]
            pub fn total(&self) -> u64 {
                [$(self.$part),*].iter().sum()
            }

            pub(super) fn add(&mut self, other: &Parts) {
                $(self.$part += other.$part;)*
            }
        }
    };
}

parts! {
    /// Lookup in the core's caches.
    lookup,
    /// The request to the home.
    request,
    /// HT: earlier requests of the line, and the latency at the home. TC: requests that timed out.
    wait,
    /// The broadcast, up to its last arrival.
    probe,
    /// The snoop of other caches.
    snoop,
    /// The responses, up to the last arrival.
    responses,
    /// Further wait for data from another cache.
    data,
    /// Further wait for data from memory.
    memory,
}

impl Parts {
    /// Returns the cycles in the network: requests, broadcasts, responses, and data of other
    /// caches.
    #[must_use]
    pub fn network(&self) -> u64 {
        self.request + self.probe + self.responses + self.data
    }
}

/// Misses of a kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Misses {
    /// Latency in cycles, from the access to its completion.
    pub latency: Mean,
    /// Components of the latency, summed over misses.
    pub parts: Parts,
    /// Number of misses served by another cache.
    pub from_caches: u64,
    /// Number of misses served by memory.
    pub from_memory: u64,
}

/// Number of flows of a kind: unicasts, broadcasts or reductions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowCount {
    /// Kind of the messages.
    pub kind: &'static str,
    /// Message class.
    pub class: u8,
    /// `unicast`, `broadcast` or `responses`.
    pub cast: &'static str,
    /// Number of flows.
    pub count: u64,
}

/// Results of a run in its region of interest, or of the complete run if the program defines no
/// region. Times are in cycles.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SystemRun {
    /// Length of the region of interest.
    pub cycles: u64,
    /// Length of the run.
    pub total_cycles: u64,
    /// Number of cores with a thread.
    pub cores: u32,
    /// Instructions of all cores; an access, a cycle of work and a spin are one instruction each.
    pub instructions: u64,
    /// Memory accesses, including each read of a spin.
    pub accesses: u64,
    /// L1 misses, including writes without write permission.
    pub l1_misses: u64,
    /// Misses that go to the network, by [`MissKind::ALL`].
    pub misses: [Misses; 3],
    /// Cycles in which cores spin on an unchanged copy, summed over cores.
    pub spun: u64,
    /// Latency of broadcasts, from creation to the last arrival (1-to-M).
    pub broadcasts: Mean,
    /// From the creation of the broadcast to the arrival of the last response (M-to-1).
    pub reductions: Mean,
    /// Response packets that arrived.
    pub response_packets: u64,
    /// Reductions in flight, summed over cycles.
    pub open_reductions: u64,
    /// Flows by kind, without those within a node.
    pub flows: Vec<FlowCount>,
    /// TC: reissued requests.
    pub reissues: u64,
    /// TC: persistent requests.
    pub persistent: u64,
    /// Lines read from memory.
    pub memory_reads: u64,
    /// Lines written to memory.
    pub memory_writes: u64,
    /// Event counts of the fabric.
    pub counts: Counts,
    /// Whether the checker was enabled.
    pub checked: bool,
    /// The final memory.
    pub memory: Vec<u64>,
}

impl SystemRun {
    /// Returns the misses of all kinds.
    #[must_use]
    pub fn all_misses(&self) -> Misses {
        let mut all = Misses::default();
        for misses in &self.misses {
            all.latency.count += misses.latency.count;
            all.latency.sum += misses.latency.sum;
            all.latency.most = all.latency.most.max(misses.latency.most);
            all.parts.add(&misses.parts);
            all.from_caches += misses.from_caches;
            all.from_memory += misses.from_memory;
        }
        all
    }

    /// Returns the fraction f of core time stalled on the network: requests, broadcasts, responses,
    /// and data from other caches.
    #[must_use]
    pub fn network_stall(&self) -> f64 {
        ratio(self.all_misses().parts.network(), self.cycles * u64::from(self.cores))
    }

    /// Returns the fraction of core time stalled on misses.
    #[must_use]
    pub fn stall(&self) -> f64 {
        ratio(self.all_misses().latency.sum, self.cycles * u64::from(self.cores))
    }

    /// Returns the mean number of reductions in flight.
    #[must_use]
    pub fn mean_open_reductions(&self) -> f64 {
        ratio(self.open_reductions, self.cycles)
    }

    /// Returns the mean number of aggregation table entries in use per router.
    #[must_use]
    pub fn table_occupancy(&self, nodes: u32) -> f64 {
        ratio(self.counts.table_entries, self.counts.cycles * u64::from(nodes))
    }
}
