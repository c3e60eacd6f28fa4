//! Links: on-chip wires at minimum spacing, 22 nm.

use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "DSENT 0.9 (Sun et al., NOCS 2012), repeated link of 128 bits, global layer, 1 ns, random \
    data, Bulk22LVT, 0.8 V, minimum spacing, 340 K";

/// The registry entry.
pub(crate) const ENTRY: Entry =
    Entry { name: "dsent_22nm", summary: "on-chip wires at minimum spacing, 22 nm", constants };

fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (Crossing, Constant::of(0.0002706, SOURCE)),
        (Wire, Constant::of(0.02331, SOURCE).within(0.72, 3.0)),
        (Included, super::no_transceiver()),
        (Signal, Constant::of(0.02331, SOURCE).within(0.72, 3.0)),
        (WireLeakage, Constant::of(0.1209, SOURCE).within(0.5, 2.0)),
        (WireArea, Constant::of(0.3379, SOURCE).within(0.5, 2.0)),
    ]
}
