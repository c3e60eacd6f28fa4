//! Links: on-chip wires at minimum spacing, 32 nm.

use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "DSENT 0.9 (Sun et al., NOCS 2012), repeated link of 128 bits, global layer, 1 ns, random \
    data, Bulk32LVT, 0.9 V, minimum spacing, 340 K";

/// The registry entry.
pub(crate) const ENTRY: Entry =
    Entry { name: "dsent_32nm", summary: "on-chip wires at minimum spacing, 32 nm", constants };

fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (Crossing, Constant::of(0.000622, SOURCE)),
        (Wire, Constant::of(0.03177, SOURCE).within(0.72, 3.0)),
        (Included, super::no_transceiver()),
        (Signal, Constant::of(0.03177, SOURCE).within(0.72, 3.0)),
        (WireLeakage, Constant::of(0.2414, SOURCE).within(0.5, 2.0)),
        (WireArea, Constant::of(0.7744, SOURCE).within(0.5, 2.0)),
    ]
}
