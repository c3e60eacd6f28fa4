//! What a run was like.

use tutti_noc::smart::Counts;

/// What a core missed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, tutti_units::Named)]
pub enum MissKind {
    /// A line to read.
    Read,
    /// A line to write.
    Write,
    /// The right to write a line that it had.
    Upgrade,
}

/// A mean, and what it was made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mean {
    /// Of how many.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The largest.
    pub most: u64,
}

impl Mean {
    /// One more.
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += value;
        self.most = self.most.max(value);
    }

    /// The mean; 0 of none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        ratio(self.sum, self.count)
    }
}

/// One number over another; 0 over 0.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub(super) fn ratio(one: u64, other: u64) -> f64 {
    if other == 0 { 0.0 } else { one as f64 / other as f64 }
}

/// Lists the parts of a miss once; the struct, its names and its sums follow.
macro_rules! parts {
    ($($(#[$note:meta])* $part:ident,)*) => {
        /// What cycles of misses were spent on, one after the other; together they are the whole latency. With HT, in
        /// the order of the fields. With TC, `probe` is the way of the request to the one whose tokens came last, `snoop` or
        /// `memory` what that one took, `data` the way of the tokens, and there is no `request` and no `answers`.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct Parts {
            $($(#[$note])* pub $part: u64,)*
        }

        impl Parts {
            /// The parts with their names.
            #[must_use]
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($part), self.$part)),*]
            }

            /// The sum of all parts.
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
    /// The look into the core's own caches.
    lookup,
    /// The request's way to the home.
    request,
    /// HT: waiting at the home for earlier requests of the line, and the home's own cycles. TC: requests
    /// that nobody answered in time.
    wait,
    /// The broadcast, up to the last cache.
    probe,
    /// The look into other caches.
    snoop,
    /// The answers' way, up to the last one.
    answers,
    /// After that, waiting for data from another cache.
    data,
    /// After that, waiting for data from memory.
    memory,
}

impl Parts {
    /// What was spent in the network: the way of requests, broadcasts, answers, and of data of other caches.
    #[must_use]
    pub fn network(&self) -> u64 {
        self.request + self.probe + self.answers + self.data
    }
}

/// Misses of a kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Misses {
    /// Their latency, in cycles from the access to its end.
    pub latency: Mean,
    /// What it was spent on, summed.
    pub parts: Parts,
    /// How many got their data from another cache.
    pub from_caches: u64,
    /// How many got them from memory.
    pub from_memory: u64,
}

/// How many flows of a kind there were: messages to one node, broadcasts, reductions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowCount {
    /// Of its messages.
    pub kind: &'static str,
    /// Its message class.
    pub class: u8,
    /// `unicast`, `broadcast`, or `answers`.
    pub cast: &'static str,
    /// How many.
    pub count: u64,
}

/// What a run was like, between the beginning of the region of interest and its end (or the whole run, if the
/// program names none). Times are in cycles.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SystemRun {
    /// The region's length.
    pub cycles: u64,
    /// The whole run's.
    pub total_cycles: u64,
    /// How many cores had a thread.
    pub cores: u32,
    /// Of all cores: an access is one, a cycle of work is one; a spin is one, however long.
    pub instructions: u64,
    /// Accesses; a spin is as many as it needs to look.
    pub accesses: u64,
    /// Those not found in the first cache, or not to be written there.
    pub l1_misses: u64,
    /// Those that went to the network, by [`MissKind::ALL`].
    pub misses: [Misses; 3],
    /// Cycles that cores spun on a copy that did not change.
    pub spun: u64,
    /// From a broadcast's creation to its last arrival (1-to-M).
    pub broadcasts: Mean,
    /// From the creation of the broadcast to the arrival of the last response (M-to-1).
    pub reductions: Mean,
    /// Packets of answers that arrived.
    pub answer_packets: u64,
    /// Reductions under way, summed over cycles.
    pub open_reductions: u64,
    /// Flows by kind; those within a node are not among them.
    pub flows: Vec<FlowCount>,
    /// TC: requests sent again.
    pub reissues: u64,
    /// TC: persistent requests.
    pub persistent: u64,
    /// Lines read from memory.
    pub memory_reads: u64,
    /// Lines written to memory.
    pub memory_writes: u64,
    /// What happened in the fabric.
    pub counts: Counts,
    /// Whether the checker looked on.
    pub checked: bool,
    /// The memory in the end.
    pub memory: Vec<u64>,
}

impl SystemRun {
    /// All kinds of misses as one.
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

    /// Which share of the cores' time they waited for the network (f): requests, broadcasts, answers, and data
    /// from other caches.
    #[must_use]
    pub fn network_stall(&self) -> f64 {
        ratio(self.all_misses().parts.network(), self.cycles * u64::from(self.cores))
    }

    /// Which share of the cores' time they waited for misses.
    #[must_use]
    pub fn stall(&self) -> f64 {
        ratio(self.all_misses().latency.sum, self.cycles * u64::from(self.cores))
    }

    /// Reductions under way, on average.
    #[must_use]
    pub fn mean_open_reductions(&self) -> f64 {
        ratio(self.open_reductions, self.cycles)
    }

    /// Entries in use in a router's table of reductions, on average.
    #[must_use]
    pub fn table_occupancy(&self, nodes: u32) -> f64 {
        ratio(self.counts.table_entries, self.counts.cycles * u64::from(nodes))
    }
}
