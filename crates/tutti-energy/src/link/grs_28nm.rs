//! Links: ground-referenced signalling on a chip, 28 nm.

use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str =
    "NVIDIA's papers on ground-referenced signalling: on-chip, 28 nm, 0.17 pJ/bit/mm";

/// The registry entry.
pub(crate) const ENTRY: Entry =
    Entry { name: "grs_28nm", summary: "ground-referenced signalling on a chip, 28 nm", constants };

fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (Crossing, super::by_length_only()),
        (Wire, Constant::of(0.17, SOURCE)),
        (Included, super::no_transceiver()),
        (Signal, Constant::of(0.17, SOURCE)),
        (WireLeakage, super::leaks_unknown()),
        (WireArea, super::area_unknown()),
    ]
}
