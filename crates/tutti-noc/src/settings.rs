//! What the routers are like: virtual channels, buffers, pipeline, allocators.

use super::LONGEST_DELAY;
use super::allocator::{AllocatorKind, ArbiterKind};
use super::{Channel, Clock, End, FlitError};
use tutti_units::Time;
use tutti_units::parameter::{Kind, ParameterValue};

/// The most flits of a buffer.
const MOST_FLITS: u32 = 1 << 15;

/// The least flits per cycle of a port.
const LEAST_RATE: f64 = 1e-6;

/// The VCs `first..=last` of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VcRange {
    /// The lowest.
    pub first: u32,
    /// The highest.
    pub last: u32,
}

impl VcRange {
    /// The number of VCs.
    #[must_use]
    pub fn count(self) -> u32 {
        self.last + 1 - self.first
    }

    /// The lower or the upper half; of an odd number the lower half has one more.
    #[inline]
    #[must_use]
    pub fn half(self, upper: bool) -> VcRange {
        let middle = self.last - self.count() / 2;
        if upper {
            VcRange { first: middle + 1, last: self.last }
        } else {
            VcRange { first: self.first, last: middle }
        }
    }

    /// One of `parts` parts; the first parts are one larger if the VCs do not divide evenly. Empty
    /// parts are not requested.
    #[inline]
    #[must_use]
    pub fn part(self, index: u32, parts: u32) -> VcRange {
        let start = |index: u32| (self.count() * index).div_ceil(parts);
        VcRange { first: self.first + start(index), last: self.first + start(index + 1) - 1 }
    }

    /// A bit for each.
    #[inline]
    #[must_use]
    pub fn mask(self) -> u64 {
        (u64::MAX >> (63 - self.last)) & (u64::MAX << self.first)
    }
}

/// The buffers of each input port of a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortBuffers {
    /// A bit for each virtual channel that is there.
    pub vcs: u64,
    /// Flits that the buffer of each holds.
    pub buffer: u32,
}

impl PortBuffers {
    /// With so many VCs, from 0 on.
    #[must_use]
    pub fn of(vcs: u32, buffer: u32) -> PortBuffers {
        PortBuffers { vcs: first_vcs(vcs), buffer }
    }

    /// The VCs of a class that are there.
    #[must_use]
    pub fn count(&self, class: VcRange) -> u32 {
        (self.vcs & class.mask()).count_ones()
    }
}

/// A bit for each of the first VCs.
fn first_vcs(vcs: u32) -> u64 {
    1_u64.checked_shl(vcs).map_or(u64::MAX, |bit| bit - 1)
}

tutti_units::parameters! {
    /// Heads request a VC and the switch in the same cycle.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Speculation("speculation" as "Speculation", "BookSim 2: Jiang et al. 2013", FlitError) {
        /// Request the switch only where a VC is free.
        check_vc: bool = "true",
        /// Request the switch only where a free VC has a credit.
        check_credit: bool = "false",
        /// A separate allocator for speculative requests; without one they share the switch
        /// allocator at lower priority.
        allocator: Option<AllocatorKind>,
        /// Speculative requests lose an output that others request, even if those are not granted.
        yield_to_requests: bool = "false",
    }
}

/// Which packets allocators prefer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, tutti_units::Named)]
pub enum Priority {
    /// All are alike.
    #[default]
    None,
    /// By [`super::Order::priority`].
    Ordered,
    /// Packets created earlier first.
    Age,
}

impl ParameterValue for Priority {
    type Error = FlitError;
    const KIND: Kind = Kind::Choice(&Priority::NAMES);

    fn read(text: &str) -> Result<Priority, FlitError> {
        let unknown = || FlitError::UnknownPriority { name: text.to_owned() };
        Priority::from_name(text).ok_or_else(unknown)
    }
}

tutti_units::parameters! {
    /// Routers of a network; all are identical. Delays are in cycles, buffers in flits.
    ///
    /// A flit that is at an input at cycle t is in its buffer then. A head that is first in its VC
    /// requests a VC of the next router at t + `routing_delay`, and has it `vc_delay` - 1 cycles
    /// later. It requests the switch in the next cycle (in the same cycle with `speculation`), and
    /// leaves its buffer `switch_delay` - 1 cycles after that request. It is on the channel
    /// `traversal_delay` cycles later, and at the next input one cycle and the channel's latency
    /// after that.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Settings("router" as "RouterParameters", "BookSim 2: Jiang et al. 2013", FlitError) {
        /// Virtual channels of each port.
        vcs: u32 = "4" [1..=64],
        /// Flits that the buffer of each VC holds.
        buffer: u32 = "8" [1..=MOST_FLITS],
        /// Cycles for routing; none with look-ahead.
        routing_delay: u32 = "0" [0..=LONGEST_DELAY],
        /// Cycles for VC allocation.
        vc_delay: u32 = "1" [1..=LONGEST_DELAY],
        /// Cycles for switch allocation.
        switch_delay: u32 = "1" [1..=LONGEST_DELAY],
        /// Cycles in the switch; none when a flit crosses switch and link in one cycle.
        traversal_delay: u32 = "1" [0..=LONGEST_DELAY],
        /// Cycles until a router uses a credit that has arrived.
        credit_delay: u32 = "1" [0..=LONGEST_DELAY],
        /// Cycles between an NPU and a dedicated router, in each direction.
        port_latency: u32 = "1" [1..=1 << 16],
        /// Flits per cycle that an NPU sends to a dedicated router. With more than 1 here or in
        /// `ejection` it has as many ports there, for different messages where there are several;
        /// schedules only.
        injection: f64 = "1.0" [LEAST_RATE..=64.0],
        /// Flits per cycle that an NPU takes from a dedicated router; more than 1 as for
        /// `injection`.
        ejection: f64 = "1.0" [LEAST_RATE..=64.0],
        /// The VC allocator.
        vc_allocator: AllocatorKind = "separable_input_first",
        /// The switch allocator.
        switch_allocator: AllocatorKind = "separable_input_first",
        /// The arbiters in both allocators: `round_robin`, `matrix`, `tree_round_robin:GROUPS` or
        /// `tree_matrix:GROUPS`.
        arbiter: ArbiterKind = "round_robin",
        /// Iterations of iterative allocators.
        iterations: u32 = "1" [1..=64],
        /// Switch inputs per input port: the port's VCs are distributed among them.
        input_speedup: u32 = "1" [1..=64],
        /// Switch outputs per output port: input ports are distributed among them.
        output_speedup: u32 = "1" [1..=64],
        /// Allocation rounds per cycle. Fractions add up over cycles: with 1.7, a cycle has one or
        /// two rounds.
        internal_speedup: f64 = "1.0" [1.0..=64.0],
        /// The most flits that wait behind a switch output; unlimited if absent.
        output_buffer: Option<u32> [1..=MOST_FLITS],
        /// Allocate a VC to the next packet only when the last one has left the buffer behind it.
        wait_for_tail_credit: bool = "false",
        /// Do not allocate a VC that has no credits.
        busy_when_full: bool = "false",
        /// Allocate empty VCs first.
        prioritize_empty: bool = "false",
        /// A packet holds its path through the switch until its tail has passed.
        hold_switch: bool = "false",
        /// Virtual cut-through: a packet advances only into a buffer that has space for all of it.
        cut_through: bool = "false",
        /// Packet priority: `none` treats all packets alike, `ordered` uses the priority of the
        /// traffic class, `age` prefers older packets.
        priority: Priority = "none",
    }
    with {
        /// The VCs of each message class; ranges may overlap.
        classes: Vec<VcRange> = vec![VcRange { first: 0, last: 3 }],
        /// The injection queue of each class in every node; classes may share one. Empty if each
        /// class has its own.
        queues: Vec<u8> = Vec::new(),
        /// Speculative switch requests, if heads make them; delays must be one cycle.
        speculation: Option<Speculation> = None,
        /// Seed of all random choices of routers.
        seed: u64 = 0,
        /// The buffers of each router, where they differ; none if all have `vcs` and `buffer`, the
        /// most that a router has.
        buffers: Vec<PortBuffers> = Vec::new(),
        /// The clock of each router, where they differ; none if all have that of the network.
        clocks: Vec<Clock> = Vec::new(),
    }
}

impl Settings {
    /// Routers with look-ahead routing, separable input-first allocators, round-robin arbiters and
    /// a cycle for each of VC allocation, switch allocation and traversal.
    #[must_use]
    pub fn new(vcs: u32, buffer: u32) -> Settings {
        let classes = vec![VcRange { first: 0, last: vcs.saturating_sub(1) }];
        Settings { vcs, buffer, classes, ..Settings::default() }
    }

    /// Ports between an NPU and its dedicated router, and the time of a flit into one and out of
    /// one.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "both rates are between 1e-6 and 64 flits per cycle, and a cycle is below 2^53 ps"
    )]
    pub fn ports(&self, cycle: Time) -> (u32, Time, Time) {
        let ports = self.injection.max(self.ejection).ceil();
        let time =
            |rate: f64| Time::from_ps((cycle.ps() as f64 * ports / rate).round_ties_even() as u64);
        (ports as u32, time(self.injection), time(self.ejection))
    }

    /// The injection queues of a node.
    #[must_use]
    pub fn queues_per_node(&self) -> usize {
        let last = self.queues.iter().max();
        last.map_or(self.classes.len(), |&last| usize::from(last) + 1)
    }

    /// The buffers behind a channel; nodes have as many as the largest routers.
    #[must_use]
    pub fn buffers_behind(&self, channel: &Channel) -> PortBuffers {
        let all = PortBuffers::of(self.vcs, self.buffer);
        match channel.to {
            End::Router { router, .. } => self.buffers.get(router as usize).copied().unwrap_or(all),
            End::Node(_) => all,
        }
    }

    /// The flits that the buffer of every VC holds.
    #[must_use]
    pub fn least_buffer(&self) -> u32 {
        self.buffers.iter().map(|router| router.buffer).min().unwrap_or(self.buffer)
    }

    /// Checks the buffers of single routers, for a network of so many and a routing that needs so
    /// many VCs per class.
    pub(super) fn check_buffers(&self, routers: u32, least_vcs: u32) -> Result<(), FlitError> {
        if self.buffers.is_empty() {
            return Ok(());
        }
        let number = self.buffers.len() as u64;
        if number != u64::from(routers) {
            let expected = format!("{routers}, one for each router");
            return Err(FlitError::OutOfRange { what: "buffers", value: number, expected });
        }
        let counts = self.buffers.iter().map(|router| router.vcs.count_ones());
        let fewest = counts.min().unwrap_or(self.vcs);
        if least_vcs > 1 && fewest < self.vcs {
            let problem = format!(
                "the routing divides the VCs of a class, and some routers have {fewest} of {} VCs; \
                 expected all VCs in each router, or a routing that needs one VC",
                self.vcs
            );
            return Err(FlitError::Clash { what: "vcs", problem });
        }
        Ok(())
    }

    /// Whether flits that leave the switch may queue behind it before they are sent.
    pub(super) fn queues_behind_switch(&self) -> bool {
        self.output_speedup > 1 || self.internal_speedup > 1.0 || self.output_buffer.is_some()
    }

    /// The most allocation rounds of a cycle.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the speedup is between 1 and 64"
    )]
    pub fn most_rounds(&self) -> u64 {
        self.internal_speedup.ceil() as u64
    }

    /// The allocation rounds of a cycle. Partial rounds accumulate over cycles, as in BookSim 2
    /// (`Router::Evaluate`). Integers, so that late cycles have neither more nor fewer rounds.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the speedup is between 1 and 64"
    )]
    pub fn rounds_in(&self, cycle: u64) -> u64 {
        let speedup = (self.internal_speedup * 2_f64.powi(32)).round() as u128;
        let before = |cycle: u64| (u128::from(cycle) * speedup) >> 32;
        (before(cycle + 1) - before(cycle)) as u64
    }

    /// Looks for what cannot be.
    ///
    /// # Errors
    /// The first setting that is out of its range, or clashes with another.
    pub fn check(&self) -> Result<(), FlitError> {
        self.check_ranges()?;
        if !(1..=256).contains(&self.classes.len()) {
            let value = self.classes.len() as u64;
            let expected = "1 to 256".to_owned();
            return Err(FlitError::OutOfRange { what: "classes", value, expected });
        }
        for (class, &VcRange { first, last }) in self.classes.iter().enumerate() {
            if first > last || last >= self.vcs {
                return Err(FlitError::NoSuchVcs { class, first, last, vcs: self.vcs });
            }
        }
        self.check_queues()?;
        self.check_port_buffers()?;
        self.check_speculation()
    }

    fn check_queues(&self) -> Result<(), FlitError> {
        let (queues, classes) = (self.queues.len(), self.classes.len());
        if ![0, classes].contains(&queues) {
            let expected = format!("{classes}, one for each class");
            return Err(FlitError::OutOfRange { what: "queues", value: queues as u64, expected });
        }
        let is_used = |queue: &usize| self.queues.iter().any(|of| usize::from(*of) == *queue);
        match (0..self.queues_per_node()).find(|queue| queues > 0 && !is_used(queue)) {
            None => Ok(()),
            Some(queue) => {
                let problem = format!("no class has queue {queue}; expected numbers without gaps");
                Err(FlitError::Clash { what: "queues", problem })
            }
        }
    }

    fn check_port_buffers(&self) -> Result<(), FlitError> {
        for router in &self.buffers {
            let vcs = u64::BITS - router.vcs.leading_zeros();
            for (what, value, most) in
                [("vcs", vcs, self.vcs), ("buffer", router.buffer, self.buffer)]
            {
                if !(1..=most).contains(&value) {
                    let expected = format!("1 to {most}");
                    return Err(FlitError::OutOfRange { what, value: u64::from(value), expected });
                }
            }
            let without = |(_, vcs): &(usize, &VcRange)| router.count(**vcs) == 0;
            if let Some((class, &VcRange { first, last })) =
                self.classes.iter().enumerate().find(without)
            {
                return Err(FlitError::NoSuchVcs { class, first, last, vcs });
            }
        }
        Ok(())
    }

    fn check_speculation(&self) -> Result<(), FlitError> {
        if self.speculation.is_some() && (self.vc_delay, self.switch_delay) != (1, 1) {
            return Err(FlitError::Clash {
                what: "speculation",
                problem: format!(
                    "VC allocation takes {} and switch allocation {} cycles; expected 1 and 1",
                    self.vc_delay, self.switch_delay
                ),
            });
        }
        Ok(())
    }
}
