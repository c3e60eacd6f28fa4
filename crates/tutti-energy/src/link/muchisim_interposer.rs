//! Links: die to die over an interposer, transceivers included.

use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "MuchiSim (Orenes-Vera et al., 2023): 0.50 pJ/bit per hop of up to 5 mm over an interposer; \
    bounds by BoW (0.2 pJ/bit) and the 1.17 pJ/bit of simulators";

/// The registry entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "muchisim_interposer",
    summary: "die to die over an interposer, transceivers included",
    constants,
};

fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (Crossing, Constant::of(0.5, SOURCE).within(0.4, 2.34)),
        (Wire, super::beyond()),
        (Included, Constant::of(5.0, SOURCE)),
        (Signal, super::beyond()),
        (WireLeakage, super::leaks_unknown()),
        (WireArea, super::area_unknown()),
    ]
}
