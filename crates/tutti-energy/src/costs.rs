//! Energy, leakage and area of one router or link: the scaling laws.
//!
//! With W bits per flit, P ports, V VCs and B flits of buffer per port:
//!
//! - buffer write and read: W (a + b B), for longer bit lines and wider multiplexers;
//! - crossbar traversal to f outputs: W (c + d P), and W (e + g P) for each output beyond the
//!   first, because the wire of an input spans all outputs and each output multiplexes all inputs;
//! - arbiter with n inputs: s (n - 1)^2 / (n + t), because every pair has a priority bit, few of
//!   which change for large n. The switch allocator arbitrates among V VCs at the input, then among
//!   P inputs at the output;
//! - clock: k + l W P; link of length L: W (x + w max(0, L - included));
//! - leakage: of a buffer, W (linear in B) per port; of a crossbar, W (linear and quadratic in P);
//!   of an allocator, P (V (V - 1) + P (P - 1)) per pair. Area has the same forms, with the
//!   crossings (W P)^2 for the crossbar.
//!
//! The forms are fitted to DSENT and match it within 20 %.

use super::{Component, Interval, Parameter, RouterHardware, Technology, real};
use tutti_units::Length;

/// Costs of events on routers and links as wide as a flit, in picojoules.
pub struct Costs<'a> {
    pub(super) technology: &'a Technology,
    width: f64,
    ports: f64,
    vcs: f64,
    depth: f64,
}

impl<'a> Costs<'a> {
    /// Returns the costs of a router in a technology.
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

    /// A buffer write of a flit.
    #[must_use]
    pub fn buffer_write_pj(&self) -> Interval {
        self.linear(Parameter::BufferWrite, Parameter::BufferWriteDepth, self.depth)
            .times(self.width)
    }

    /// A buffer read of a flit.
    #[must_use]
    pub fn buffer_read_pj(&self) -> Interval {
        self.linear(Parameter::BufferRead, Parameter::BufferReadDepth, self.depth).times(self.width)
    }

    /// A crossbar traversal of a flit to a number of outputs.
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

    /// A switch allocation of a flit: one arbitration at its input, one at the output.
    #[must_use]
    pub fn switch_allocation_pj(&self) -> Interval {
        self.input_arbitration_pj() + self.output_arbitration_pj()
    }

    /// An arbitration among the VCs of an input.
    #[must_use]
    pub fn input_arbitration_pj(&self) -> Interval {
        self.decision(self.vcs)
    }

    /// An arbitration among the inputs of an output.
    #[must_use]
    pub fn output_arbitration_pj(&self) -> Interval {
        self.decision(self.ports)
    }

    /// A lookup in the reduction table.
    #[must_use]
    pub fn table_read_pj(&self) -> Interval {
        self.of(Parameter::TableRead)
    }

    /// A VC allocation of a packet.
    #[must_use]
    pub fn vc_allocation_pj(&self) -> Interval {
        self.switch_allocation_pj() * self.of(Parameter::VcAllocatorRatio)
    }

    /// The clock tree of a router per cycle.
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

    /// The leakage of a router component in microwatts; zero for links, which are not part of a
    /// router.
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

    /// The leakage of a link of this length in microwatts.
    #[must_use]
    pub fn link_leakage_uw(&self, length: Length) -> Interval {
        self.of(Parameter::WireLeakage).times(self.width * millimetres(length))
    }

    /// The area of a router component in square micrometres; zero for links.
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

    /// The area of the repeaters of a link in square micrometres.
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

    /// An arbitration among `inputs`; zero for a single input.
    fn decision(&self, inputs: f64) -> Interval {
        let bend = self.of(Parameter::ArbiterBend).nominal;
        let others = inputs - 1.0;
        self.of(Parameter::Arbiter).times(others * others / (inputs + bend))
    }

    /// An arbiter over the VCs at each input and one over the inputs at each output.
    fn allocator(&self, per_pair: Parameter) -> Interval {
        let pairs = |inputs: f64| inputs * (inputs - 1.0);
        self.of(per_pair).times(self.ports * (pairs(self.vcs) + pairs(self.ports)))
    }
}

fn millimetres(length: Length) -> f64 {
    real(length.um()) / 1e3
}
