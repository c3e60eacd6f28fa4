//! The constants by name: what a technology has to say of a router and of a link.

use super::{EnergyError, Interval};

/// What a constant is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, tutti_units::Named)]
pub enum Part {
    /// Buffers, crossbar, allocators and clock.
    Router,
    /// Wires, and the transceivers at their ends.
    Link,
}

/// Lists the constants once; the enum, the list of all and the names follow.
macro_rules! parameters {
    ($($(#[$note:meta])* $variant:ident: $part:ident, $name:literal, $meaning:literal;)*) => {
        /// A constant of a technology; its unit is the end of its name.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[expect(missing_docs, reason = "`meaning` says it")]
        pub enum Parameter { $($variant),* }

        impl Parameter {
            /// All of them, those of routers first.
            pub const ALL: &'static [Parameter] = &[$(Parameter::$variant),*];

            /// Its name in lists and in Python.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Parameter::$variant => $name),* }
            }

            /// What it is of.
            #[must_use]
            pub fn part(self) -> Part {
                match self { $(Parameter::$variant => Part::$part),* }
            }

            /// What it costs, and for what.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Parameter::$variant => $meaning),* }
            }
        }
    };
}

parameters! {
    BufferWrite: Router, "buffer_write_pj_per_bit", "a write, whatever the buffer's depth";
    BufferWriteDepth: Router, "buffer_write_pj_per_bit_flit", "a write, for each flit of a port's buffer";
    BufferRead: Router, "buffer_read_pj_per_bit", "a read, whatever the buffer's depth";
    BufferReadDepth: Router, "buffer_read_pj_per_bit_flit", "a read, for each flit of a port's buffer";
    Crossbar: Router, "crossbar_pj_per_bit", "a traversal, whatever the number of ports";
    CrossbarPort: Router, "crossbar_pj_per_bit_port", "a traversal, for each port";
    Branch: Router, "branch_pj_per_bit", "each output beyond the first, whatever the number of ports";
    BranchPort: Router, "branch_pj_per_bit_port", "each output beyond the first, for each port";
    CrossbarFactor: Router, "crossbar_factor", "how much more a traversal costs for bypass muxes and repeaters";
    Arbiter: Router, "arbiter_pj", "a decision of an arbiter, per input where there are many";
    ArbiterBend: Router, "arbiter_bend_inputs", "inputs below which a decision costs less than in proportion";
    VcAllocatorRatio: Router, "vc_allocator_ratio", "a VC allocator to the switch allocator: energy, leakage and area";
    Clock: Router, "clock_pj", "a cycle of the clock tree, whatever the router's size";
    ClockSize: Router, "clock_pj_per_bit_port", "a cycle of the clock tree, for each bit of each port";
    BufferLeakage: Router, "buffer_leakage_uw_per_bit", "leakage of a port's registers";
    BufferLeakageDepth: Router, "buffer_leakage_uw_per_bit_flit", "leakage of a port's buffer";
    CrossbarLeakage: Router, "crossbar_leakage_uw_per_bit_port", "leakage of the crossbar, for each output";
    CrossbarLeakageCross: Router, "crossbar_leakage_uw_per_bit_port2", "leakage of the crossbar, for each pair of input and output";
    ArbiterLeakage: Router, "arbiter_leakage_uw_per_pair", "leakage of an arbiter, for each ordered pair of its inputs";
    ClockLeakage: Router, "clock_leakage_uw", "leakage of the clock tree, whatever the router's size";
    ClockLeakageSize: Router, "clock_leakage_uw_per_bit_port", "leakage of the clock tree, for each bit of each port";
    BufferArea: Router, "buffer_area_um2_per_bit", "area of a port's registers";
    BufferAreaDepth: Router, "buffer_area_um2_per_bit_flit", "area of a port's buffer";
    CrossbarArea: Router, "crossbar_area_um2_per_bit_port", "area of the crossbar's registers, for each output";
    CrossbarAreaCross: Router, "crossbar_area_um2_per_bit2_port2", "area of the crossbar, for each crossing of wires";
    ArbiterArea: Router, "arbiter_area_um2_per_pair", "area of an arbiter, for each ordered pair of its inputs";
    ClockArea: Router, "clock_area_um2", "area of the clock tree, whatever the router's size";
    ClockAreaSize: Router, "clock_area_um2_per_bit_port", "area of the clock tree, for each bit of each port";
    TableRead: Router, "table_read_pj", "a look into a table of reductions, or an operand added on passing";
    Crossing: Link, "crossing_pj_per_bit", "a bit over a link, whatever its length: transceivers, bumps";
    Wire: Link, "wire_pj_per_bit_mm", "a bit over a wire, beyond the length that the crossing includes";
    Included: Link, "included_mm", "length of wire that the crossing includes";
    Signal: Link, "signal_pj_per_bit_mm", "a bit over the wires of control signals";
    WireLeakage: Link, "wire_leakage_uw_per_bit_mm", "leakage of a wire's repeaters";
    WireArea: Link, "wire_area_um2_per_bit_mm", "area of a wire's repeaters";
}

impl Parameter {
    /// The constant of that name.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(name: &str) -> Result<Parameter, EnergyError> {
        let found = Parameter::ALL.iter().find(|known| known.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Parameter::ALL.iter().map(|known| known.name()).collect();
            let known = names.join(", ");
            EnergyError::UnknownParameter { parameter: name.to_owned(), known }
        })
    }
}

/// The value of a constant, with its source and its bounds.
#[derive(Clone, PartialEq, Debug)]
pub struct Constant {
    /// In the unit that the parameter's name says.
    pub value: f64,
    /// The lower bound, as a part of the value.
    pub low_factor: f64,
    /// The upper bound, as a multiple of the value.
    pub high_factor: f64,
    /// Paper and table, or tool with version and configuration.
    pub source: std::borrow::Cow<'static, str>,
    /// Whether it was concluded, not read from its source.
    pub inferred: bool,
}

impl Constant {
    /// As its source gives it.
    #[must_use]
    pub const fn of(value: f64, source: &'static str) -> Constant {
        Constant::new(value, source, false)
    }

    /// Concluded from its source.
    #[must_use]
    pub const fn inferred(value: f64, source: &'static str) -> Constant {
        Constant::new(value, source, true)
    }

    const fn new(value: f64, source: &'static str, inferred: bool) -> Constant {
        let source = std::borrow::Cow::Borrowed(source);
        Constant { value, low_factor: 1.0, high_factor: 1.0, source, inferred }
    }

    /// The same between bounds, as factors of the value.
    #[must_use]
    pub const fn within(mut self, low_factor: f64, high_factor: f64) -> Constant {
        self.low_factor = low_factor;
        self.high_factor = high_factor;
        self
    }

    /// Value and bounds.
    #[must_use]
    pub fn interval(&self) -> Interval {
        let (low, high) = (self.value * self.low_factor, self.value * self.high_factor);
        Interval { low, nominal: self.value, high }
    }

    /// Whether it can be the constant of that name.
    pub(super) fn check(&self, parameter: Parameter) -> Result<(), EnergyError> {
        let parameter = parameter.name();
        if !(self.value.is_finite() && self.value >= 0.0) {
            return Err(EnergyError::Value { parameter, value: self.value });
        }
        let (low, high) = (self.low_factor, self.high_factor);
        let bounded = (0.0..=1.0).contains(&low) && high >= 1.0 && high.is_finite();
        if !bounded {
            return Err(EnergyError::Bounds { parameter, low, high });
        }
        if self.source.trim().is_empty() {
            return Err(EnergyError::NoSource { parameter });
        }
        Ok(())
    }
}
