//! Links: die to die over an organic substrate, transceivers included.

use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "MuchiSim (Orenes-Vera et al., 2023): 0.55 pJ/bit per hop of up to 25 mm over a substrate; \
    bounds by BoW (0.2 pJ/bit) and the 1.17 pJ/bit of simulators";

/// The registry entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "muchisim_substrate",
    summary: "die to die over an organic substrate, transceivers included",
    constants,
};

fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (Crossing, Constant::of(0.55, SOURCE).within(0.36, 2.13)),
        (Wire, super::beyond()),
        (Included, Constant::of(25.0, SOURCE)),
        (Signal, super::beyond()),
        (WireLeakage, super::leaks_unknown()),
        (WireArea, super::area_unknown()),
    ]
}
