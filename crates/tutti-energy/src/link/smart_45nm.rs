//! Links: on-chip wires with repeaters that cross a chip in one cycle, 45 nm.

use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "DSENT 0.9, Bulk45LVT, 1.0 V, repeated for 65 ps/mm at three times the minimum spacing: 4.16 \
    pJ and 0.22 mW for 128 bits and 1 mm";
const SSR: &str =
    "DSENT 0.9, Bulk45LVT, three times the minimum spacing: 0.228 pJ per bit over 8 mm in 1 ns";
const AREA: &str =
    "DSENT 0.9, Bulk45LVT: repeater area of a slow wire, scaled with the leakage of the repeaters";

/// The registry entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "smart_45nm",
    summary: "on-chip wires with repeaters that cross a chip in one cycle, 45 nm",
    constants,
};

fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (Crossing, super::by_length_only()),
        (Wire, Constant::of(4.16 / 128.0, SOURCE).within(0.8, 3.6)),
        (Included, super::no_transceiver()),
        (Signal, Constant::of(0.228 / 8.0, SSR).within(0.8, 4.2)),
        (WireLeakage, Constant::of(220.0 / 128.0, SOURCE).within(0.5, 2.0)),
        (WireArea, Constant::inferred(1.408 * 4.0, AREA).within(0.5, 2.0)),
    ]
}
