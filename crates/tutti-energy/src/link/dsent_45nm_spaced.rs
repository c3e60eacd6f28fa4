//! Links: on-chip wires at three times the minimum spacing, 45 nm.

use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "DSENT 0.9 (Sun et al., NOCS 2012), repeated link of 128 bits, global layer, 1 ns, random \
    data, Bulk45LVT, 1.0 V, three times the minimum spacing, 340 K";

/// The registry entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "dsent_45nm_spaced",
    summary: "on-chip wires at three times the minimum spacing, 45 nm",
    constants,
};

fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (Crossing, Constant::of(0.001135, SOURCE)),
        (Wire, Constant::of(0.02794, SOURCE).within(1.0, 4.2)),
        (Included, super::no_transceiver()),
        (Signal, Constant::of(0.02794, SOURCE).within(1.0, 4.2)),
        (WireLeakage, Constant::of(0.4334, SOURCE).within(0.5, 2.0)),
        (WireArea, Constant::of(1.408, SOURCE).within(0.5, 2.0)),
    ]
}
