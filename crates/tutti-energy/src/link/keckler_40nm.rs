//! Links: on-chip wires, 40 nm.

use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "Keckler et al., IEEE Micro 31(5), 2011, as quoted: 0.24 pJ/bit/mm per transition, half of \
    the bits toggle";

/// The registry entry.
pub(crate) const ENTRY: Entry =
    Entry { name: "keckler_40nm", summary: "on-chip wires, 40 nm", constants };

fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (Crossing, super::by_length_only()),
        (Wire, Constant::of(0.12, SOURCE).within(0.34, 2.0)),
        (Included, super::no_transceiver()),
        (Signal, Constant::of(0.12, SOURCE).within(0.34, 2.0)),
        (WireLeakage, super::leaks_unknown()),
        (WireArea, super::area_unknown()),
    ]
}
