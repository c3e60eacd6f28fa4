//! What one event costs on one kind of router: the scaling laws.
//!
//! With W bits of a flit, P ports, V VCs and B flits of buffer at each port:
//!
//! - a buffer's write and read: W (a + b B); longer bit lines and wider multiplexers;
//! - a crossbar's traversal to f outputs: W (c + d P) and W (e + g P) for each output beyond the first,
//!   as an input's wire passes all outputs and each output chooses among all inputs;
//! - an arbiter of n inputs: s (n - 1)^2 / (n + t): all pairs have a priority, of which few change when
//!   there are many. The switch allocator chooses among V at the input, then among P at the output;
//! - the clock: k + l W P; a link of length L: W (x + w max(0, L - included));
//! - leakage of a buffer W (B-linear) per port, of a crossbar W (P-linear + P-quadratic), of an allocator
//!   P (V (V - 1) + P (P - 1)) per pair; area likewise, the crossbar's with the crossings (W P)^2.
//!
//! The forms are fitted to DSENT, whose figures they meet to 20 %.

use super::{Component, Interval, Parameter, RouterHardware, Technology, real};
use tutti_units::Length;

/// What events cost on a kind of router with links as wide as its flits, in picojoules.
pub struct Costs<'a> {
    pub(super) technology: &'a Technology,
    width: f64,
    ports: f64,
    vcs: f64,
    depth: f64,
}

impl<'a> Costs<'a> {
    /// For this router in this technology.
    #[must_use]
    pub fn new(router: &RouterHardware, technology: &'a Technology) -> Costs<'a> {
        Costs {
            technology,
            width: f64::from(router.flit_bits()),
            ports: f64::from(router.ports()),
            vcs: f64::from(router.vcs()),
            depth: f64::from(router.buffer_flits()),
        }
    }

    /// A flit into an input buffer.
    #[must_use]
    pub fn buffer_write_pj(&self) -> Interval {
        self.linear(Parameter::BufferWrite, Parameter::BufferWriteDepth, self.depth)
            .times(self.width)
    }

    /// A flit out of an input buffer.
    #[must_use]
    pub fn buffer_read_pj(&self) -> Interval {
        self.linear(Parameter::BufferRead, Parameter::BufferReadDepth, self.depth).times(self.width)
    }

    /// A flit through the crossbar to so many outputs at once.
    #[must_use]
    pub fn crossbar_pj(&self, outputs: u32) -> Interval {
        if outputs == 0 {
            return Interval::default();
        }
        let first = self.linear(Parameter::Crossbar, Parameter::CrossbarPort, self.ports);
        let branch = self.linear(Parameter::Branch, Parameter::BranchPort, self.ports);
        let all = first + branch.times(f64::from(outputs - 1));
        all.times(self.width) * self.of(Parameter::CrossbarFactor)
    }

    /// A flit is given an output: one decision at its input, one at the output.
    #[must_use]
    pub fn switch_allocation_pj(&self) -> Interval {
        self.input_arbitration_pj() + self.output_arbitration_pj()
    }

    /// An input chooses one of its VCs.
    #[must_use]
    pub fn input_arbitration_pj(&self) -> Interval {
        self.decision(self.vcs)
    }

    /// An output chooses one of the inputs.
    #[must_use]
    pub fn output_arbitration_pj(&self) -> Interval {
        self.decision(self.ports)
    }

    /// A look into the table of reductions.
    #[must_use]
    pub fn table_read_pj(&self) -> Interval {
        self.of(Parameter::TableRead)
    }

    /// A packet is given a VC downstream.
    #[must_use]
    pub fn vc_allocation_pj(&self) -> Interval {
        self.switch_allocation_pj() * self.of(Parameter::VcAllocatorRatio)
    }

    /// The clock tree of a router, a cycle.
    #[must_use]
    pub fn clock_pj_per_cycle(&self) -> Interval {
        self.linear(Parameter::Clock, Parameter::ClockSize, self.width * self.ports)
    }

    /// A flit over a link of this length.
    #[must_use]
    pub fn link_pj(&self, length: Length) -> Interval {
        let included = self.of(Parameter::Included).nominal;
        let beyond = (millimetres(length) - included).max(0.0);
        self.linear(Parameter::Crossing, Parameter::Wire, beyond).times(self.width)
    }

    /// A bit of a control signal over a micrometre.
    #[must_use]
    pub fn signal_pj_per_bit_um(&self) -> Interval {
        self.of(Parameter::Signal).times(1e-3)
    }

    /// What a router's component leaks, in microwatts; nothing for links, which are no part of it.
    #[must_use]
    pub fn leakage_uw(&self, component: Component) -> Interval {
        let (width, ports) = (self.width, self.ports);
        match component {
            Component::Buffers => self
                .linear(Parameter::BufferLeakage, Parameter::BufferLeakageDepth, self.depth)
                .times(width * ports),
            Component::Crossbar => self
                .linear(Parameter::CrossbarLeakage, Parameter::CrossbarLeakageCross, ports)
                .times(width * ports),
            Component::SwitchAllocator => self.allocator(Parameter::ArbiterLeakage),
            Component::VcAllocator => {
                self.allocator(Parameter::ArbiterLeakage) * self.of(Parameter::VcAllocatorRatio)
            }
            Component::Links => Interval::default(),
            Component::Clock => {
                self.linear(Parameter::ClockLeakage, Parameter::ClockLeakageSize, width * ports)
            }
        }
    }

    /// What a link of this length leaks, in microwatts.
    #[must_use]
    pub fn link_leakage_uw(&self, length: Length) -> Interval {
        self.of(Parameter::WireLeakage).times(self.width * millimetres(length))
    }

    /// The silicon of a router's component, in square micrometres; none for links.
    #[must_use]
    pub fn area_um2(&self, component: Component) -> Interval {
        let size = self.width * self.ports;
        match component {
            Component::Buffers => self
                .linear(Parameter::BufferArea, Parameter::BufferAreaDepth, self.depth)
                .times(size),
            Component::Crossbar => {
                self.linear(Parameter::CrossbarArea, Parameter::CrossbarAreaCross, size).times(size)
            }
            Component::SwitchAllocator => self.allocator(Parameter::ArbiterArea),
            Component::VcAllocator => {
                self.allocator(Parameter::ArbiterArea) * self.of(Parameter::VcAllocatorRatio)
            }
            Component::Links => Interval::default(),
            Component::Clock => self.linear(Parameter::ClockArea, Parameter::ClockAreaSize, size),
        }
    }

    /// The silicon below a link of this length, in square micrometres: its repeaters.
    #[must_use]
    pub fn link_area_um2(&self, length: Length) -> Interval {
        self.of(Parameter::WireArea).times(self.width * millimetres(length))
    }

    fn of(&self, parameter: Parameter) -> Interval {
        self.technology.interval(parameter)
    }

    /// `base + slope x`.
    fn linear(&self, base: Parameter, slope: Parameter, x: f64) -> Interval {
        self.of(base) + self.of(slope).times(x)
    }

    /// An arbiter chooses one of `inputs`; where there is no choice, it costs nothing.
    fn decision(&self, inputs: f64) -> Interval {
        let bend = self.of(Parameter::ArbiterBend).nominal;
        let others = inputs - 1.0;
        self.of(Parameter::Arbiter).times(others * others / (inputs + bend))
    }

    /// An arbiter over the VCs at each input, and one over the inputs at each output.
    fn allocator(&self, per_pair: Parameter) -> Interval {
        let pairs = |inputs: f64| inputs * (inputs - 1.0);
        self.of(per_pair).times(self.ports * (pairs(self.vcs) + pairs(self.ports)))
    }
}

fn millimetres(length: Length) -> f64 {
    real(length.um()) / 1e3
}
