//! The settings of a mesh of routers with multi-hop links: its designs, buffers and delays.

use super::rule::Rule;
use crate::{FlitError, Watchdog};

/// The arbitration between two flits that request the same port (section II).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Priority {
    /// The nearer flit wins: buffered here, then at the next router, and so on.
    #[default]
    Local,
    /// The farther flit wins.
    Bypass,
    /// Responses win over other flits, the farther response over the nearer one; among other flits
    /// the nearer one wins. Requests for paths state whether they are of a response (`is_ACK`,
    /// section IV-A.1). Footnote 12 prefers [`Priority::Local`] for throughput, and section IV-B
    /// needs [`Priority::Bypass`] for responses.
    BypassResponses,
    /// The flit of the larger value wins, over [`Priority::VARIABLES`].
    Rule(Rule),
}

/// What arbitration knows of a flit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contender {
    pub(super) response: bool,
    pub(super) multicast: bool,
    pub(super) class: u8,
    /// Cycles since its packet was created.
    pub(super) age: u64,
}

impl Priority {
    /// The variables of [`Priority::Rule`]: hops from the router where the flit is buffered, 0 at
    /// that router; whether it is a response, or a multicast; its message class; and the cycles
    /// since its packet was created.
    pub const VARIABLES: [&str; 5] = ["distance", "response", "multicast", "class", "age"];

    /// The rank of a flit at a router `distance` hops from where it is buffered. The higher rank
    /// wins; of equal ranks, the nearer flit.
    #[inline]
    pub(super) fn rank(&self, flit: &Contender, distance: u32) -> i64 {
        let distance = i64::from(distance);
        match self {
            Priority::Local => -distance,
            Priority::Bypass => distance,
            // A path has fewer hops than that.
            Priority::BypassResponses if flit.response => 64 + distance,
            Priority::BypassResponses => -distance,
            Priority::Rule(rule) => rule.value(&[
                distance,
                i64::from(flit.response),
                i64::from(flit.multicast),
                i64::from(flit.class),
                clamped(flit.age),
            ]),
        }
    }
}

/// A number of cycles as a value of a rule.
#[inline]
pub(super) fn clamped(cycles: u64) -> i64 {
    i64::try_from(cycles).unwrap_or(i64::MAX)
}

/// Whom inputs nominate and outputs choose in the switch allocation of a router (SA-L).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Arbiter {
    /// The next in turn.
    #[default]
    RoundRobin,
    /// The flit whose packet was created first; of a response, whose reduction was. Of several, the
    /// next in turn.
    Oldest,
}

/// The tree of a broadcast.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tree {
    /// From their source along its row, and from there along every column: links are shared with
    /// the trees of other sources (shared virtual tree, section III-A).
    #[default]
    Shared,
    /// To the nearest corner, from there along an edge, and from that along every row or column:
    /// the four trees share only the links of the edges (private virtual tree, section
    /// III-A).
    Private,
}

/// How routers treat multicasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FanOut {
    /// They do not: the NIC sends a unicast to each destination, one per cycle.
    #[default]
    Unicasts,
    /// A copy is retained at every router passed, as far as the flit gets (section III-C). With one
    /// hop per cycle this is forking at every hop.
    Greedy(Tree),
    /// All of an edge, then all rows or columns, in cycles reserved for it (section III-B): one
    /// broadcast from each corner every `interval` cycles. The tree is the private one.
    Complete {
        /// Cycles from one broadcast slot to the next (BI).
        interval: u32,
    },
}

/// How routers treat the responses of a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FanIn {
    /// They do not: each response is a unicast.
    #[default]
    Unicasts,
    /// Responses of a flow that meet in a router are merged; unless the priority is
    /// [`Priority::Local`], a bypassing response takes along the responses buffered where it passes
    /// (section IV-B).
    Greedy,
    /// Routers know from how many directions responses come. They drop all but the last, so that
    /// one response arrives (section IV-A).
    Complete,
}

/// Which responses of a flow a landing one is merged into, with [`FanIn::Greedy`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Merge {
    /// One that is buffered, or lands in the same cycle (footnote 13): a router buffers at most one
    /// response of a flow.
    #[default]
    Landing,
    /// One that was in its VC in this cycle's switch allocation (section IV-B: buffered responses
    /// poll while they arbitrate for the switch). Responses that land in the same cycle stay separate.
    Buffered,
}

/// The VCs of a message class at each input port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Class {
    /// How many; with [`Tree::Private`] of each of the three stages of a broadcast (to the corner,
    /// before the turn, after it), or divided among them with [`Settings::split_vcs`].
    pub vcs: u32,
    /// Flits that each holds; a packet of the class has no more.
    pub depth: u32,
    /// Whether multicasts travel in it.
    pub multicasts: bool,
}

/// A rule that is broken on purpose, so that tests see that the checks see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The three stages of a broadcast share their VCs.
    SharedVcs,
    /// Routers expect a response from the local NIC only.
    WrongDirections,
    /// What a bypassing response takes along is lost.
    LostMerge,
}

/// All settings of a mesh. Delays are in cycles. Sections refer to Krishna and Peh, "Single-Cycle
/// Collective Communication Over A Shared Network Fabric", NOCS 2014, unless stated otherwise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Routers in a row, 2 to 64; x grows to the east.
    pub columns: u32,
    /// Routers in a column, 2 to 64; y grows to the north. Node x + columns y is at (x, y).
    pub rows: u32,
    /// Hops that a flit can make in a cycle (HPC_max), 1 or more; 1 is the mesh of one-cycle
    /// routers.
    pub hops_per_cycle: u32,
    /// Whether unicasts also pass the router where they turn (SMART_2D); otherwise their paths end
    /// there (SMART_1D).
    pub bypass_turns: bool,
    /// Whether multicasts also fork, and responses are combined, on paths that turn; otherwise their
    /// paths lie along one dimension. Needs [`Settings::bypass_turns`].
    pub collective_turns: bool,
    /// Arbitration between local and bypassing flits.
    pub priority: Priority,
    /// Arbitration within a router.
    pub arbiter: Arbiter,
    /// Whether packets go along y before x; broadcast trees of [`Tree::Shared`] too.
    pub yx: bool,
    /// Multicasts.
    pub fan_out: FanOut,
    /// Reductions.
    pub fan_in: FanIn,
    /// Responses that meet.
    pub merge: Merge,
    /// With [`FanIn::Greedy`]: a buffered response requests no output while this is not 0, over
    /// [`Settings::HOLD_VARIABLES`], so that others of its flow can be merged into it.
    pub hold: Option<Rule>,
    /// The message classes (virtual networks).
    pub classes: Vec<Class>,
    /// Whether the VCs of a class are divided among the three stages of a broadcast; otherwise each
    /// stage has this number.
    pub split_vcs: bool,
    /// Cycles from when a VC is vacated to when the upstream routers see it as free, in addition
    /// to the next one. 2 covers the switch traversal and the credit on the wire.
    pub credit_delay: u32,
    /// Cycles that setting up a path takes in addition to that of switch allocation: 0 as the
    /// paper's latencies have it, 1 as published implementations.
    pub sag_extra_cycle: u32,
    /// Cycles from winning the ejection port to arrival.
    pub eject_cost: u32,
    /// Entries of the aggregation reduction tables (ART) of [`FanIn::Complete`], i.e. reductions
    /// that can be in flight at once: with it one at least for each root of a tree, 4 on private
    /// trees, else each node.
    pub art_entries: u32,
    /// Whether what passes can be combined with an operand (OR, MIN, MAX, sums other than counts);
    /// then [`Settings::hops_per_cycle`] is at most [`REDUCER_HOPS`].
    pub reducer: bool,
    /// Cycles without any move after which packets in flight are called deadlocked.
    pub patience: u64,
    /// What is broken on purpose, in tests.
    pub fault: Option<Fault>,
}

/// The most hops per cycle with a reducer in the path, at 1 GHz, 1 mm tiles and 45 nm (section
/// IV-A.8).
pub const REDUCER_HOPS: u32 = 9;

impl Settings {
    /// The variables of [`Settings::hold`]: cycles since the response was injected or landed; the
    /// responses combined in it; the responses of its flow that have yet to reach this router; and
    /// the cycles since its reduction started.
    pub const HOLD_VARIABLES: [&str; 4] = ["stay", "count", "missing", "age"];

    /// A mesh of routers that take a cycle and links that take one, without collectives: one class
    /// of four VCs of one flit.
    #[must_use]
    pub fn new(columns: u32, rows: u32) -> Settings {
        Settings {
            columns,
            rows,
            hops_per_cycle: 1,
            bypass_turns: false,
            collective_turns: false,
            priority: Priority::Local,
            arbiter: Arbiter::RoundRobin,
            yx: false,
            fan_out: FanOut::Unicasts,
            fan_in: FanIn::Unicasts,
            merge: Merge::Landing,
            hold: None,
            classes: vec![Class { vcs: 4, depth: 1, multicasts: true }],
            split_vcs: false,
            credit_delay: 2,
            sag_extra_cycle: 0,
            eject_cost: 0,
            art_entries: 64,
            reducer: false,
            patience: Watchdog::PATIENCE,
            fault: None,
        }
    }

    /// How many nodes.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.columns * self.rows
    }

    /// Which tree multicasts go along, if routers know of them.
    #[must_use]
    pub fn tree(&self) -> Option<Tree> {
        match self.fan_out {
            FanOut::Unicasts => None,
            FanOut::Greedy(tree) => Some(tree),
            FanOut::Complete { .. } => Some(Tree::Private),
        }
    }

    /// VCs of a class for each stage of what travels in it; one stage but for multicasts on private
    /// trees.
    #[must_use]
    pub fn stages(&self, class: &Class) -> Vec<u32> {
        if !class.multicasts || self.tree() != Some(Tree::Private) {
            return vec![class.vcs];
        }
        if self.split_vcs {
            return (0..3).map(|stage| (class.vcs + 2 - stage) / 3).collect();
        }
        vec![class.vcs; 3]
    }

    /// Cycles of each interval in which paths are preset, with [`FanOut::Complete`]: 2, and 2 more
    /// for each further reach of [`Settings::hops_per_cycle`] that an edge needs.
    #[must_use]
    pub fn preset_cycles(&self) -> u32 {
        let edge = self.columns.max(self.rows) - 1;
        2 * edge.div_ceil(self.hops_per_cycle)
    }

    /// Looks for what cannot be.
    ///
    /// # Errors
    /// The first setting that is out of its range, or clashes with another.
    pub fn check(&self) -> Result<(), FlitError> {
        let most = super::super::LONGEST_DELAY;
        in_range("columns", self.columns, 2, 64)?;
        in_range("rows", self.rows, 2, 64)?;
        in_range("hpc_max", self.hops_per_cycle, 1, 64)?;
        in_range("credit_delay", self.credit_delay, 0, most)?;
        in_range("sag_extra_cycle", self.sag_extra_cycle, 0, 1)?;
        in_range("eject_cost", self.eject_cost, 0, most)?;
        Watchdog::check(self.patience)?;
        if self.bypass_turns && self.hops_per_cycle == 1 {
            let problem = "with one hop per cycle, a flit passes no router; expected `hpc_max` of 2 \
                           or more, or `bypass_turns = false`";
            return Err(FlitError::Clash { what: "bypass_turns", problem: problem.to_owned() });
        }
        self.check_classes()?;
        self.check_collective_turns()?;
        self.check_fan_out()?;
        self.check_fan_in()
    }

    fn check_collective_turns(&self) -> Result<(), FlitError> {
        let problem = match self.fan_out {
            _ if !self.collective_turns => return Ok(()),
            _ if !self.bypass_turns => {
                "paths end at turns; expected `bypass_turns = true`, or `collective_turns = false`"
            }
            FanOut::Complete { .. } => {
                "`complete` multicasts use preset paths along one dimension; expected `fan_out` of \
                 `greedy:svt` or `greedy:pvt`, or `collective_turns = false`"
            }
            FanOut::Unicasts if self.fan_in == FanIn::Unicasts => {
                "routers neither fork multicasts nor combine responses; expected another `fan_out` \
                 or `fan_in` than `unicasts`, or `collective_turns = false`"
            }
            _ => return Ok(()),
        };
        Err(FlitError::Clash { what: "collective_turns", problem: problem.to_owned() })
    }

    fn check_classes(&self) -> Result<(), FlitError> {
        in_range("classes", u32::try_from(self.classes.len()).unwrap_or(u32::MAX), 1, 16)?;
        let mut all = 0;
        for class in &self.classes {
            in_range("vcs", class.vcs, 1, 64)?;
            in_range("depth", class.depth, 1, 1 << 10)?;
            let stages = self.stages(class);
            if stages.contains(&0) {
                let problem = format!(
                    "{} VCs for the three stages of a broadcast; expected 3 or more, or `split_vcs = false`",
                    class.vcs
                );
                return Err(FlitError::Clash { what: "vcs", problem });
            }
            all += stages.iter().sum::<u32>();
        }
        if all > 64 {
            let shares = !self.split_vcs && self.tree() == Some(Tree::Private);
            let instead = if shares { ", or `split_vcs = true`" } else { "" };
            let problem = format!(
                "{all} VCs at each port, of all classes and stages; expected 64 or fewer{instead}"
            );
            return Err(FlitError::Clash { what: "vcs", problem });
        }
        Ok(())
    }

    fn check_fan_out(&self) -> Result<(), FlitError> {
        let FanOut::Complete { interval } = self.fan_out else { return Ok(()) };
        let (preset, most) = (self.preset_cycles(), super::super::LONGEST_DELAY);
        if (preset + 1..=most).contains(&interval) {
            return Ok(());
        }
        let problem = format!(
            "`complete:{interval}` is a broadcast every {interval} cycles, and its paths take {preset}; expected \
             `complete:{}` to `complete:{most}`",
            preset + 1
        );
        Err(FlitError::Clash { what: "fan_out", problem })
    }

    fn check_fan_in(&self) -> Result<(), FlitError> {
        if self.hold.is_some() && self.fan_in != FanIn::Greedy {
            let problem = "routers hold responses only if they merge those that they buffer; \
                           expected `fan_in = \"greedy\"`";
            return Err(FlitError::Clash { what: "hold", problem: problem.to_owned() });
        }
        if self.reducer && self.hops_per_cycle > REDUCER_HOPS {
            let problem = format!(
                "{} hops per cycle past routers with a reducer; expected {REDUCER_HOPS} or fewer",
                self.hops_per_cycle
            );
            return Err(FlitError::Clash { what: "hpc_max", problem });
        }
        let most = 1 << 16;
        if self.fan_in != FanIn::Complete {
            return in_range("art_entries", self.art_entries, 1, most);
        }
        let (least, roots) = match self.tree() {
            Some(Tree::Private) => (4, "corner, where private trees start"),
            _ => (self.nodes(), "node, as each may be a root"),
        };
        if (least..=most).contains(&self.art_entries) {
            return Ok(());
        }
        let expected = format!(
            "{least} to {most}: an entry of the aggregation reduction tables (ART) for each {roots}"
        );
        Err(FlitError::OutOfRange {
            what: "art_entries",
            value: u64::from(self.art_entries),
            expected,
        })
    }
}

fn in_range(what: &'static str, value: u32, least: u32, most: u32) -> Result<(), FlitError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let expected = format!("{least} to {most}");
    Err(FlitError::OutOfRange { what, value: u64::from(value), expected })
}
