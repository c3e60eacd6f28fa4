//! What the routers are like: virtual channels, buffers, pipeline, allocators.

use super::FlitError;
use super::allocator::{AllocatorKind, ArbiterKind};

/// The VCs `first..=last` of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VcRange {
    /// The lowest.
    pub first: u32,
    /// The highest.
    pub last: u32,
}

impl VcRange {
    /// How many they are.
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

    /// One of so many parts, the first ones one larger where that does not come out even; empty ones
    /// are not asked for.
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

/// When a head asks for the switch before it has a VC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Speculation {
    /// Ask only where a VC is free.
    pub check_vc: bool,
    /// Ask only where a free VC has a credit.
    pub check_credit: bool,
    /// The allocator of its own for those that speculate; without one they share the switch allocator
    /// at lower priority.
    pub allocator: Option<AllocatorKind>,
    /// Those that speculate lose an output that others ask for, even if the others do not get it.
    pub yield_to_requests: bool,
}

/// Which packets allocators prefer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Priority {
    /// All are alike.
    #[default]
    None,
    /// What [`super::Order::priority`] says.
    Ordered,
    /// Those that were created first.
    Age,
}

/// The settings of all routers of a network. All delays are in cycles.
///
/// A flit that is at an input at cycle t is in its buffer then. A head that is first in its VC asks for a
/// VC of the next router at t + [`Settings::routing_delay`], has it [`Settings::vc_delay`] - 1 cycles
/// later, asks for the switch in the next cycle (in the same cycle with [`Settings::speculation`]), and
/// leaves its buffer [`Settings::switch_delay`] - 1 cycles after it asked. It is on the channel
/// [`Settings::traversal_delay`] cycles later, and at the next input one cycle and the channel's latency
/// after that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Virtual channels of each port, 1 to 64.
    pub vcs: u32,
    /// Flits that the buffer of each VC holds.
    pub buffer: u32,
    /// The VCs of each message class; ranges may overlap.
    pub classes: Vec<VcRange>,
    /// Cycles for routing; none with look-ahead.
    pub routing_delay: u32,
    /// Cycles for VC allocation, at least one.
    pub vc_delay: u32,
    /// Cycles for switch allocation, at least one.
    pub switch_delay: u32,
    /// Cycles in the switch; none when switch and link are crossed in one cycle.
    pub traversal_delay: u32,
    /// Cycles until a credit that has arrived counts.
    pub credit_delay: u32,
    /// Whether heads ask for VC and switch at once. With delays of one cycle only.
    pub speculation: Option<Speculation>,
    /// Who gets which VC.
    pub vc_allocator: AllocatorKind,
    /// Who gets the switch.
    pub switch_allocator: AllocatorKind,
    /// The arbiters in both.
    pub arbiter: ArbiterKind,
    /// Iterations of allocators that iterate.
    pub iterations: u32,
    /// Switch inputs per input port: its VCs are dealt out to them.
    pub input_speedup: u32,
    /// Switch outputs per output port: input ports are dealt out to them.
    pub output_speedup: u32,
    /// Allocation rounds per cycle.
    pub internal_speedup: u32,
    /// Flits that wait behind each switch output at most; without a limit if there is none.
    pub output_buffer: Option<u32>,
    /// A VC is given to the next packet only when the last one has left the buffer behind it.
    pub wait_for_tail_credit: bool,
    /// A VC without credits is not given to anybody.
    pub busy_when_full: bool,
    /// Empty VCs are given first.
    pub prioritize_empty: bool,
    /// A packet keeps its way through the switch until its tail has passed.
    pub hold_switch: bool,
    /// A packet goes on only into a buffer that has room for all of it.
    pub cut_through: bool,
    /// Which packets go first.
    pub priority: Priority,
    /// For all random choices of routers.
    pub seed: u64,
}

impl Settings {
    /// Routers with look-ahead routing, separable input-first allocators, round-robin arbiters and a
    /// cycle for each of VC allocation, switch allocation and traversal.
    #[must_use]
    pub fn new(vcs: u32, buffer: u32) -> Settings {
        Settings {
            vcs,
            buffer,
            classes: vec![VcRange { first: 0, last: vcs.saturating_sub(1) }],
            routing_delay: 0,
            vc_delay: 1,
            switch_delay: 1,
            traversal_delay: 1,
            credit_delay: 1,
            speculation: None,
            vc_allocator: AllocatorKind::SeparableInputFirst,
            switch_allocator: AllocatorKind::SeparableInputFirst,
            arbiter: ArbiterKind::RoundRobin,
            iterations: 1,
            input_speedup: 1,
            output_speedup: 1,
            internal_speedup: 1,
            output_buffer: None,
            wait_for_tail_credit: false,
            busy_when_full: false,
            prioritize_empty: false,
            hold_switch: false,
            cut_through: false,
            priority: Priority::None,
            seed: 0,
        }
    }

    /// Looks for what cannot be.
    ///
    /// # Errors
    /// The first setting that is out of its range, or clashes with another.
    pub fn check(&self) -> Result<(), FlitError> {
        let most = super::LONGEST_DELAY;
        in_range("vcs", self.vcs, 1, 64)?;
        in_range("buffer", self.buffer, 1, 1 << 15)?;
        in_range("routing_delay", self.routing_delay, 0, most)?;
        in_range("vc_delay", self.vc_delay, 1, most)?;
        in_range("switch_delay", self.switch_delay, 1, most)?;
        in_range("traversal_delay", self.traversal_delay, 0, most)?;
        in_range("credit_delay", self.credit_delay, 0, most)?;
        in_range("iterations", self.iterations, 1, 64)?;
        in_range("input_speedup", self.input_speedup, 1, 64)?;
        in_range("output_speedup", self.output_speedup, 1, 64)?;
        in_range("internal_speedup", self.internal_speedup, 1, 64)?;
        if let Some(output_buffer) = self.output_buffer {
            in_range("output_buffer", output_buffer, 1, 1 << 15)?;
        }
        in_range("classes", u32::try_from(self.classes.len()).unwrap_or(u32::MAX), 1, 256)?;
        for (class, &VcRange { first, last }) in self.classes.iter().enumerate() {
            if first > last || last >= self.vcs {
                return Err(FlitError::NoSuchVcs { class, first, last, vcs: self.vcs });
            }
        }
        self.check_speculation()
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

fn in_range(what: &'static str, value: u32, least: u32, most: u32) -> Result<(), FlitError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let expected = format!("{least} to {most}");
    Err(FlitError::OutOfRange { what, value: u64::from(value), expected })
}
