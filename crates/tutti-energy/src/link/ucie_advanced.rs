//! Links: UCIe over an advanced package.

use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "Das Sharma, UCIe consortium, Hot Interconnects 2025: 0.25 pJ/bit up to 16 GT/s, 0.3 above, in an \
    advanced package (2.5D)";
const REACH: &str = "UCIe 1.1: a channel of an advanced package is up to 2 mm long";

/// The registry entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "ucie_advanced",
    summary: "UCIe between dies on an interposer or bridge, transceivers included",
    constants,
};

fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (Crossing, Constant::of(0.25, SOURCE).within(1.0, 1.2)),
        (Wire, super::beyond()),
        (Included, Constant::of(2.0, REACH)),
        (Signal, super::beyond()),
        (WireLeakage, super::leaks_unknown()),
        (WireArea, super::area_unknown()),
    ]
}
