//! Routers of SMART: those of DSENT, with bypass multiplexers around the crossbar.

use super::{dsent_45nm, replaced};
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "Krishna and Peh, NOCS 2014, section V-C: crossbar energy per access 1.58 times that of \
    the baseline, for bypass muxes and the repeaters that drive wires over several hops";

/// The registry entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "smart_45nm",
    summary: "routers that flits can bypass without a stop, in 45 nm",
    constants,
};

fn constants() -> Vec<(Parameter, Constant)> {
    let factor = (Parameter::CrossbarFactor, Constant::of(1.58, SOURCE));
    replaced(dsent_45nm::constants(), vec![factor])
}
