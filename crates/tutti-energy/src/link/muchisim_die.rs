//! Links: wires within a die, with the constants of MuchiSim.

use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "MuchiSim (Orenes-Vera et al., 2023): 0.15 pJ/bit/mm within a die";

/// The registry entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "muchisim_die",
    summary: "wires within a die, with the constants of MuchiSim",
    constants,
};

fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (Crossing, super::by_length_only()),
        (Wire, Constant::of(0.15, SOURCE).within(0.27, 1.6)),
        (Included, super::no_transceiver()),
        (Signal, Constant::of(0.15, SOURCE).within(0.27, 1.6)),
        (WireLeakage, super::leaks_unknown()),
        (WireArea, super::area_unknown()),
    ]
}
