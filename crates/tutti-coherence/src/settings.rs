//! Settings of a chip: caches, protocol and memory.

use super::error::CoherenceError;
use tutti_noc::smart::{Class, FanIn, Settings};

/// Size of a line in bytes.
pub(super) const LINE_BYTES: u32 = 64;

/// A cache coherence protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, tutti_units::Named)]
pub enum Protocol {
    /// The home of a line orders its requests and broadcasts them; it has no directory. All caches
    /// respond, the owner with data, and memory always sends its copy (AMD HyperTransport; gem5's
    /// MOESI_hammer).
    #[default]
    Ht,
    /// Token coherence (M. Martin et al., "Token Coherence", ISCA 2003). A line has a token per
    /// core and an owner token; one permits reading, all permit writing. The requester broadcasts,
    /// reissues the request after a timeout, and finally sends a persistent request.
    Tc,
}

/// The node that collects the responses to a broadcast, with [`Protocol::Ht`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Collector {
    /// The requester.
    #[default]
    Requester,
    /// The home, which then notifies the requester.
    Home,
}

/// How a reader detects other sharers, with [`Protocol::Ht`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SharedHint {
    /// Responses are combined by OR of two bits: "has a copy", and "is the owner and sends data".
    #[default]
    Or,
    /// Responses are only counted. A reader is then never granted a line exclusively, and the home
    /// stores a bit per line, whether a cache owns it, which its copy from memory carries.
    Never,
}

/// A deliberate protocol violation, for tests of the checker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defect {
    /// A sharer keeps its copy when another core writes.
    IgnoredInvalidation,
    /// HT: caches respond on arrival of a probe, before the snoop.
    EarlyResponse,
    /// HT: the home starts a request while another of the line is in progress.
    UnblockedHome,
    /// TC: each message of several tokens loses one.
    LostToken,
    /// TC: the owner token is sent, and also retained.
    CopiedOwner,
    /// TC: a writer does not wait for the last token.
    EarlyWrite,
}

/// Settings of a chip. Delays are in cycles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SystemSettings {
    /// The coherence protocol.
    pub protocol: Protocol,
    /// The nodes that have memory; line i has its home at the one of index i modulo their number.
    pub homes: Vec<u32>,
    /// L1 cache size in bytes.
    pub l1_bytes: u32,
    /// L1 associativity.
    pub l1_ways: u32,
    /// L1 hit latency, 1 or more.
    pub l1_cycles: u64,
    /// L2 cache size in bytes; the L2 stores the lines that the L1 evicts.
    pub l2_bytes: u32,
    /// L2 associativity.
    pub l2_ways: u32,
    /// L2 lookup latency, after an L1 miss.
    pub l2_cycles: u64,
    /// Latency from the arrival of another core's request to the response.
    pub snoop_cycles: u64,
    /// Latency from the response to the data message.
    pub data_cycles: u64,
    /// Latency at the home, from the start of a request to its broadcast or response.
    pub home_cycles: u64,
    /// DRAM read latency of a line.
    pub dram_cycles: u64,
    /// Cycles between the starts of accesses to a home's memory.
    pub dram_interval: u64,
    /// HT: the node that collects the responses.
    pub collector: Collector,
    /// HT: what responses report.
    pub shared_hint: SharedHint,
    /// TC: reissues of a transient request before a persistent request.
    pub reissues: u32,
    /// TC: minimum timeout of a request.
    pub shortest_timeout: u64,
    /// Flits of a message that carries a line; other messages have one.
    pub data_flits: u32,
    /// Cycles that a core computes on registers after each of its misses, in addition to the
    /// program's work.
    pub work_per_miss: u64,
    /// Whether the checker is enabled; in debug builds it always is.
    pub check: bool,
    /// Cycles without a completed access after which the run fails.
    pub patience: u64,
    /// Cycles after which the run fails.
    pub limit: u64,
    /// The protocol violation to inject, in tests.
    pub defect: Option<Defect>,
}

impl SystemSettings {
    /// Returns the defaults for columns x rows cores. Memory is at the four corners; it has a
    /// latency of 100 cycles and delivers a line every 4 cycles. L1 caches have 32 KiB (4-way, 1
    /// cycle), L2 caches 1 MiB (8-way, 8 cycles).
    #[must_use]
    pub fn new(columns: u32, rows: u32, protocol: Protocol) -> SystemSettings {
        let last = columns * rows - 1;
        let mut homes = vec![0, columns - 1, last + 1 - columns, last];
        homes.dedup();
        SystemSettings {
            protocol,
            homes,
            l1_bytes: 32 << 10,
            l1_ways: 4,
            l1_cycles: 1,
            l2_bytes: 1 << 20,
            l2_ways: 8,
            l2_cycles: 8,
            snoop_cycles: 4,
            data_cycles: 4,
            home_cycles: 2,
            dram_cycles: 100,
            dram_interval: 4,
            collector: Collector::Requester,
            shared_hint: SharedHint::Or,
            reissues: 1,
            shortest_timeout: 50,
            data_flits: 5,
            work_per_miss: 0,
            check: cfg!(debug_assertions),
            patience: 1_000_000,
            limit: 1_000_000_000,
            defect: None,
        }
    }

    /// Returns the message classes that the fabric requires. HT: requests; messages of the home
    /// (broadcast); responses and data; unblocks and write-backs. TC: transient requests
    /// (broadcast); persistent requests (broadcast); tokens and data. Each class has four VCs per
    /// port; those of data hold a complete message.
    #[must_use]
    pub fn classes(&self) -> Vec<Class> {
        let one = |multicasts| Class { vcs: 4, depth: 1, multicasts };
        let data = Class { vcs: 4, depth: self.data_flits, multicasts: false };
        match self.protocol {
            Protocol::Ht => vec![one(false), one(true), data, data],
            Protocol::Tc => vec![one(true), one(true), data],
        }
    }

    /// Returns a mesh with the message classes of this chip, and with a reducer in its routers if
    /// they combine responses with bits.
    #[must_use]
    pub fn fit(&self, mesh: Settings) -> Settings {
        let combines = mesh.fan_in != FanIn::Unicasts;
        let hints = self.protocol == Protocol::Ht && self.shared_hint == SharedHint::Or;
        Settings { classes: self.classes(), reducer: mesh.reducer || combines && hints, ..mesh }
    }

    /// Returns the home node of a line.
    pub(super) fn home(&self, line: u32) -> u32 {
        let (line, homes) = (line as usize, self.homes.len());
        // Most chips have a power of two homes, and a division would dominate the cost.
        let home = if homes.is_power_of_two() { line & (homes - 1) } else { line % homes };
        self.homes[home]
    }

    /// Validates the settings for a fabric of `nodes` nodes.
    ///
    /// # Errors
    /// The first setting that is out of its range.
    pub fn check(&self, nodes: u32) -> Result<(), CoherenceError> {
        let bad = |what: &'static str, value: u64, expected: &str| {
            Err(CoherenceError::OutOfRange { what, value, expected: expected.to_owned() })
        };
        if let Some(&home) = self.homes.iter().find(|&&home| home >= nodes) {
            return bad("homes", u64::from(home), &format!("nodes, 0 to {}", nodes - 1));
        }
        let repeated = (1..self.homes.len()).find(|&at| self.homes[..at].contains(&self.homes[at]));
        if let Some(at) = repeated {
            return bad("homes", u64::from(self.homes[at]), "each node once");
        }
        if self.homes.is_empty() {
            return bad("homes", 0, "at least one node");
        }
        check_cache("l1_bytes", self.l1_bytes, "l1_ways", self.l1_ways)?;
        check_cache("l2_bytes", self.l2_bytes, "l2_ways", self.l2_ways)?;
        self.check_cycles()
    }

    fn check_cycles(&self) -> Result<(), CoherenceError> {
        for (what, value, least, most) in [
            ("l1_cycles", self.l1_cycles, 1, MOST_CYCLES),
            ("l2_cycles", self.l2_cycles, 0, MOST_CYCLES),
            ("snoop_cycles", self.snoop_cycles, 0, MOST_CYCLES),
            ("data_cycles", self.data_cycles, 0, MOST_CYCLES),
            ("home_cycles", self.home_cycles, 0, MOST_CYCLES),
            ("dram_cycles", self.dram_cycles, 0, MOST_CYCLES),
            ("dram_interval", self.dram_interval, 1, MOST_CYCLES),
            ("shortest_timeout", self.shortest_timeout, 1, MOST_CYCLES),
            ("data_flits", u64::from(self.data_flits), 1, 1 << 10),
            ("work_per_miss", self.work_per_miss, 0, MOST_CYCLES),
            ("patience", self.patience, 1, u64::MAX),
        ] {
            if !(least..=most).contains(&value) {
                let expected = match most {
                    u64::MAX => format!("{least} or more"),
                    most => format!("{least} to {most}"),
                };
                return Err(CoherenceError::OutOfRange { what, value, expected });
            }
        }
        Ok(())
    }
}

/// The maximum delay.
const MOST_CYCLES: u64 = 1 << 20;

fn check_cache(
    bytes: &'static str,
    size: u32,
    associativity: &'static str,
    lines: u32,
) -> Result<(), CoherenceError> {
    if lines == 0 || lines > 64 {
        let expected = "1 to 64".to_owned();
        return Err(CoherenceError::OutOfRange {
            what: associativity,
            value: u64::from(lines),
            expected,
        });
    }
    let set = LINE_BYTES * lines;
    if size == 0 || !size.is_multiple_of(set) {
        let expected = format!("a multiple of {set}: sets of {lines} lines of {LINE_BYTES} bytes");
        return Err(CoherenceError::OutOfRange { what: bytes, value: u64::from(size), expected });
    }
    Ok(())
}
