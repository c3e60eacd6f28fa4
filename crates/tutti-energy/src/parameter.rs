//! The constants of routers and links by name.

use super::{EnergyError, Interval};

/// The part that a constant describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, tutti_units::Named)]
pub enum Part {
    /// Buffers, crossbar, allocators and clock.
    Router,
    /// Wires and transceivers.
    Link,
}

/// Declares the constants; the enum, the list and the names follow.
macro_rules! parameters {
    ($($(#[$note:meta])* $variant:ident: $part:ident, $name:literal, $meaning:literal;)*) => {
        /// A constant of a technology; its name ends with its unit.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[expect(missing_docs, reason = "`meaning` documents each")]
        pub enum Parameter { $($variant),* }

        impl Parameter {
            /// All constants, those of routers first.
            pub const ALL: &'static [Parameter] = &[$(Parameter::$variant),*];

            /// The name in lists and in Python.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Parameter::$variant => $name),* }
            }

            /// The part that the constant describes.
            #[must_use]
            pub fn part(self) -> Part {
                match self { $(Parameter::$variant => Part::$part),* }
            }

            /// The meaning of the constant.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Parameter::$variant => $meaning),* }
            }
        }
    };
}

parameters! {
    BufferWrite: Router, "buffer_write_pj_per_bit", "energy of a buffer write, independent of depth";
    BufferWriteDepth: Router, "buffer_write_pj_per_bit_flit", "energy of a buffer write, per flit of depth";
    BufferRead: Router, "buffer_read_pj_per_bit", "energy of a buffer read, independent of depth";
    BufferReadDepth: Router, "buffer_read_pj_per_bit_flit", "energy of a buffer read, per flit of depth";
    Crossbar: Router, "crossbar_pj_per_bit", "energy of a crossbar traversal, independent of the port count";
    CrossbarPort: Router, "crossbar_pj_per_bit_port", "energy of a crossbar traversal, per port";
    Branch: Router, "branch_pj_per_bit", "energy of each additional crossbar output, independent of the port count";
    BranchPort: Router, "branch_pj_per_bit_port", "energy of each additional crossbar output, per port";
    CrossbarFactor: Router, "crossbar_factor", "factor of crossbar energy for bypass multiplexers and repeaters";
    Arbiter: Router, "arbiter_pj", "energy of an arbitration, per input for many inputs";
    ArbiterBend: Router, "arbiter_bend_inputs", "inputs at which arbitration energy changes from quadratic to linear";
    VcAllocatorRatio: Router, "vc_allocator_ratio", "ratio of VC allocator to switch allocator: energy, leakage, area";
    Clock: Router, "clock_pj", "energy of the clock tree per cycle, independent of router size";
    ClockSize: Router, "clock_pj_per_bit_port", "energy of the clock tree per cycle, per bit of each port";
    BufferLeakage: Router, "buffer_leakage_uw_per_bit", "leakage of the registers of a port";
    BufferLeakageDepth: Router, "buffer_leakage_uw_per_bit_flit", "leakage of the buffer of a port, per flit of depth";
    CrossbarLeakage: Router, "crossbar_leakage_uw_per_bit_port", "leakage of the crossbar, per output";
    CrossbarLeakageCross: Router, "crossbar_leakage_uw_per_bit_port2", "leakage of the crossbar, per pair of input and output";
    ArbiterLeakage: Router, "arbiter_leakage_uw_per_pair", "leakage of an arbiter, per ordered pair of inputs";
    ClockLeakage: Router, "clock_leakage_uw", "leakage of the clock tree, independent of router size";
    ClockLeakageSize: Router, "clock_leakage_uw_per_bit_port", "leakage of the clock tree, per bit of each port";
    BufferArea: Router, "buffer_area_um2_per_bit", "area of the registers of a port";
    BufferAreaDepth: Router, "buffer_area_um2_per_bit_flit", "area of the buffer of a port, per flit of depth";
    CrossbarArea: Router, "crossbar_area_um2_per_bit_port", "area of the crossbar registers, per output";
    CrossbarAreaCross: Router, "crossbar_area_um2_per_bit2_port2", "area of the crossbar, per wire crossing";
    ArbiterArea: Router, "arbiter_area_um2_per_pair", "area of an arbiter, per ordered pair of inputs";
    ClockArea: Router, "clock_area_um2", "area of the clock tree, independent of router size";
    ClockAreaSize: Router, "clock_area_um2_per_bit_port", "area of the clock tree, per bit of each port";
    TableRead: Router, "table_read_pj", "energy of a reduction table lookup, or of an operand added in transit";
    Crossing: Link, "crossing_pj_per_bit", "energy of a link crossing, independent of length: transceivers, bumps";
    Wire: Link, "wire_pj_per_bit_mm", "energy of a wire beyond the length that the crossing includes";
    Included: Link, "included_mm", "wire length that the crossing includes";
    Signal: Link, "signal_pj_per_bit_mm", "energy of the wires of control signals";
    WireLeakage: Link, "wire_leakage_uw_per_bit_mm", "leakage of the repeaters of a wire";
    WireArea: Link, "wire_area_um2_per_bit_mm", "area of the repeaters of a wire";
}

impl Parameter {
    /// Returns the constant of that name.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn find(name: &str) -> Result<Parameter, EnergyError> {
        let found = Parameter::ALL.iter().find(|known| known.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Parameter::ALL.iter().map(|known| known.name()).collect();
            let known = names.join(", ");
            EnergyError::UnknownParameter { parameter: name.to_owned(), known }
        })
    }
}

/// The value of a constant with its source and bounds.
#[derive(Clone, PartialEq, Debug)]
pub struct Constant {
    /// The value in the unit of the parameter's name.
    pub value: f64,
    /// The lower bound as a factor of the value.
    pub low_factor: f64,
    /// The upper bound as a factor of the value.
    pub high_factor: f64,
    /// The source: paper and table, or tool with version and configuration.
    pub source: std::borrow::Cow<'static, str>,
    /// Whether the value is inferred, not stated by the source.
    pub inferred: bool,
}

impl Constant {
    /// A value stated by its source.
    #[must_use]
    pub const fn of(value: f64, source: &'static str) -> Constant {
        Constant::new(value, source, false)
    }

    /// A value inferred from its source.
    #[must_use]
    pub const fn inferred(value: f64, source: &'static str) -> Constant {
        Constant::new(value, source, true)
    }

    const fn new(value: f64, source: &'static str, inferred: bool) -> Constant {
        let source = std::borrow::Cow::Borrowed(source);
        Constant { value, low_factor: 1.0, high_factor: 1.0, source, inferred }
    }

    /// Returns the constant with bounds, as factors of the value.
    #[must_use]
    pub const fn within(mut self, low_factor: f64, high_factor: f64) -> Constant {
        self.low_factor = low_factor;
        self.high_factor = high_factor;
        self
    }

    /// The value and its bounds.
    #[must_use]
    pub fn interval(&self) -> Interval {
        let (low, high) = (self.value * self.low_factor, self.value * self.high_factor);
        Interval { low, nominal: self.value, high }
    }

    /// Checks the value, bounds and source.
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
