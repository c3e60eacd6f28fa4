//! Links: UCIe over a standard package.

use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "Das Sharma, UCIe consortium, Hot Interconnects 2025: 0.5 pJ/bit up to 16 GT/s, 0.6 above, in a \
    standard package (2D)";
const REACH: &str = "UCIe 1.1: a channel of a standard package is up to 25 mm long";

/// The registry entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "ucie_standard",
    summary: "UCIe between dies on a standard package, transceivers included",
    constants,
};

fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (Crossing, Constant::of(0.5, SOURCE).within(1.0, 1.2)),
        (Wire, super::beyond()),
        (Included, Constant::of(25.0, REACH)),
        (Signal, super::beyond()),
        (WireLeakage, super::leaks_unknown()),
        (WireArea, super::area_unknown()),
    ]
}
