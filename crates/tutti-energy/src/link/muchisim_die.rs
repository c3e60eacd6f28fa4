//! Links: wires within a die, as MuchiSim counts them.

use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "MuchiSim (Orenes-Vera et al., 2023): 0.15 pJ/bit/mm within a die";

/// Its line of the registry.
pub(crate) const ENTRY: Entry = Entry {
    name: "muchisim_die",
    summary: "wires within a die, as MuchiSim counts them",
    constants,
};

fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (Crossing, super::whole_wire()),
        (Wire, Constant::of(0.15, SOURCE).within(0.27, 1.6)),
        (Included, super::no_transceiver()),
        (Signal, Constant::of(0.15, SOURCE).within(0.27, 1.6)),
        (WireLeakage, super::leaks_unknown()),
        (WireArea, super::area_unknown()),
    ]
}
