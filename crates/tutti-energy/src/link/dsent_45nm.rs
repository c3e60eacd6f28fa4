//! Links: on-chip wires at minimum spacing, 45 nm.

use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "DSENT 0.9 (Sun et al., NOCS 2012), repeated link of 128 bits, global layer, 1 ns, random \
    data, Bulk45LVT, 1.0 V, minimum spacing, 340 K";

/// The registry entry.
pub(crate) const ENTRY: Entry =
    Entry { name: "dsent_45nm", summary: "on-chip wires at minimum spacing, 45 nm", constants };

fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (Crossing, Constant::of(0.00113, SOURCE)),
        (Wire, Constant::of(0.03923, SOURCE).within(0.72, 3.0)),
        (Included, super::no_transceiver()),
        (Signal, Constant::of(0.03923, SOURCE).within(0.72, 3.0)),
        (WireLeakage, Constant::of(0.4334, SOURCE).within(0.5, 2.0)),
        (WireArea, Constant::of(1.408, SOURCE).within(0.5, 2.0)),
    ]
}
