//! What a chip with coherent caches is like: its caches, protocol and memory.

use super::error::CoherenceError;
use tutti_noc::smart::{Class, FanIn, Settings};

/// Bytes of a line.
pub(super) const LINE_BYTES: u32 = 64;

/// How caches are kept coherent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, tutti_units::Named)]
pub enum Protocol {
    /// A home for each line orders requests and broadcasts them; it keeps no directory. All caches answer, the
    /// owner with data, and memory sends its copy in any case (AMD HyperTransport; gem5's MOESI_hammer).
    #[default]
    Ht,
    /// Token coherence: a line has a token for each core and one more; to read takes one, to write all. Whoever
    /// misses broadcasts, asks again when nothing has come, and in the end sends a persistent request
    /// (M. Martin et al., "Token Coherence", ISCA 2003).
    Tc,
}

/// Who gets the answers to a broadcast, with [`Protocol::Ht`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Collector {
    /// The core whose request it was.
    #[default]
    Requester,
    /// The home, which then tells the requester.
    Home,
}

/// How whoever reads learns that others have copies, with [`Protocol::Ht`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SharedHint {
    /// Answers are combined by OR: of "I have a copy" and "I am the owner and send data".
    #[default]
    Or,
    /// Answers are only counted. Then nobody is granted a line exclusively that only reads it, and the home
    /// keeps a bit for each line, whether a cache owns it, which its copy from memory carries.
    Never,
}

/// A rule that is broken on purpose, so that tests see that the checker sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defect {
    /// A sharer keeps its copy when another core writes.
    IgnoredInvalidation,
    /// HT: caches answer as soon as they are asked, and look only later.
    EarlyAnswer,
    /// HT: the home begins a request while another of the line is under way.
    UnblockedHome,
    /// TC: of all tokens that are to be sent one is lost.
    LostToken,
    /// TC: the owner token is sent, and kept.
    CopiedOwner,
    /// TC: a writer does not wait for the last token.
    EarlyWrite,
}

/// All settings of a chip. Delays are in cycles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SystemSettings {
    /// How caches are kept coherent.
    pub protocol: Protocol,
    /// The nodes that have memory; line i is at home at the one numbered i modulo their number.
    pub homes: Vec<u32>,
    /// Bytes of a core's first cache.
    pub l1_bytes: u32,
    /// Lines of its sets.
    pub l1_ways: u32,
    /// A hit in it, 1 or more; the core waits.
    pub l1_cycles: u64,
    /// Bytes of a core's second cache, which holds what fell out of the first.
    pub l2_bytes: u32,
    /// Lines of its sets.
    pub l2_ways: u32,
    /// A look into it, after the first has missed.
    pub l2_cycles: u64,
    /// From when a request of another core arrives to the answer.
    pub snoop_cycles: u64,
    /// From the answer to the data, if there is any to send.
    pub data_cycles: u64,
    /// From when a home turns to a request to the broadcast, or to the answer from what it has.
    pub home_cycles: u64,
    /// Reading a line from memory.
    pub dram_cycles: u64,
    /// Cycles from the beginning of a read or write at a home's memory to that of the next.
    pub dram_interval: u64,
    /// HT: who gets the answers.
    pub collector: Collector,
    /// HT: what answers tell.
    pub shared_hint: SharedHint,
    /// TC: how often a core asks again before it sends a persistent request.
    pub reissues: u32,
    /// TC: the shortest time after which it does.
    pub shortest_timeout: u64,
    /// Flits of a message that carries a line; others have one.
    pub data_flits: u32,
    /// Whether the checker looks on; in debug builds it always does.
    pub check: bool,
    /// Cycles in which no core gets anything done after which the run is given up.
    pub patience: u64,
    /// Cycles after which the run is given up.
    pub limit: u64,
    /// What is broken on purpose, in tests.
    pub defect: Option<Defect>,
}

impl SystemSettings {
    /// A chip of columns x rows cores, with memory at the four corners: first caches of 32 kB (4 ways, 1 cycle),
    /// second ones of 1 MB (8 ways, 8 cycles), memory that takes 100 cycles and gives a line every 4.
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
            check: cfg!(debug_assertions),
            patience: 1_000_000,
            limit: 1_000_000_000,
            defect: None,
        }
    }

    /// The message classes that the fabric has to have. HT: requests, what the home sends on (broadcast),
    /// answers and data, unblocks and what is written back. TC: requests (broadcast), persistent ones (broadcast), tokens
    /// and data. Each has four VCs at a port, those of data hold a message each.
    #[must_use]
    pub fn classes(&self) -> Vec<Class> {
        let one = |multicasts| Class { vcs: 4, depth: 1, multicasts };
        let data = Class { vcs: 4, depth: self.data_flits, multicasts: false };
        match self.protocol {
            Protocol::Ht => vec![one(false), one(true), data, data],
            Protocol::Tc => vec![one(true), one(true), data],
        }
    }

    /// A mesh with what this chip needs: its classes, and a reducer in its routers where answers are combined on
    /// their way and tell more than how many they are.
    #[must_use]
    pub fn fit(&self, mesh: Settings) -> Settings {
        let combines = mesh.fan_in != FanIn::Unicasts;
        let hints = self.protocol == Protocol::Ht && self.shared_hint == SharedHint::Or;
        Settings { classes: self.classes(), reducer: mesh.reducer || combines && hints, ..mesh }
    }

    /// The node that a line is at home at.
    pub(super) fn home(&self, line: u32) -> u32 {
        let (line, homes) = (line as usize, self.homes.len());
        // Few chips have another number, and a division takes as long as all the rest.
        let home = if homes.is_power_of_two() { line & (homes - 1) } else { line % homes };
        self.homes[home]
    }

    /// Looks for what cannot be, with a fabric of so many nodes.
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
        cache("l1_bytes", self.l1_bytes, "l1_ways", self.l1_ways)?;
        cache("l2_bytes", self.l2_bytes, "l2_ways", self.l2_ways)?;
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

/// The longest delay.
const MOST_CYCLES: u64 = 1 << 20;

fn cache(
    bytes: &'static str,
    size: u32,
    ways: &'static str,
    lines: u32,
) -> Result<(), CoherenceError> {
    if lines == 0 || lines > 64 {
        let expected = "1 to 64".to_owned();
        return Err(CoherenceError::OutOfRange { what: ways, value: u64::from(lines), expected });
    }
    let set = LINE_BYTES * lines;
    if size == 0 || !size.is_multiple_of(set) {
        let expected = format!("a multiple of {set}: sets of {lines} lines of {LINE_BYTES} bytes");
        return Err(CoherenceError::OutOfRange { what: bytes, value: u64::from(size), expected });
    }
    Ok(())
}
