//! Links: on-chip low-swing wires, measured in silicon, 45 nm SOI.

use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "low-swing repeated links measured in 45 nm SOI, as quoted in the literature on SMART: 40.4 fJ/bit/mm";

/// The registry entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "low_swing_45nm",
    summary: "on-chip low-swing wires, measured in silicon, 45 nm SOI",
    constants,
};

fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (Crossing, super::by_length_only()),
        (Wire, Constant::of(0.0404, SOURCE)),
        (Included, super::no_transceiver()),
        (Signal, Constant::of(0.0404, SOURCE)),
        (WireLeakage, super::leaks_unknown()),
        (WireArea, super::area_unknown()),
    ]
}
