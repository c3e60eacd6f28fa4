//! Links: ground-referenced signalling between dies on a package.

use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "NVIDIA's papers on ground-referenced signalling: 0.54 to 0.58 pJ/bit over 4.5 mm of package \
    at 20 Gb/s";

/// The registry entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "grs_package",
    summary: "ground-referenced signalling between dies on a package",
    constants,
};

fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (Crossing, Constant::of(0.56, SOURCE).within(0.96, 1.04)),
        (Wire, super::beyond()),
        (Included, Constant::of(4.5, SOURCE)),
        (Signal, super::beyond()),
        (WireLeakage, super::leaks_unknown()),
        (WireArea, super::area_unknown()),
    ]
}
