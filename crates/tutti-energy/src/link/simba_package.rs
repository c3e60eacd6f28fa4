//! Links: die to die on a package, as in Simba.

use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "Simba (Shao et al., MICRO 2019): 0.82 to 1.75 pJ/bit at 11 to 25 Gb/s per pin, 1.17 pJ/bit \
    in simulators; the length is that of GRS on a package";

/// The registry entry.
pub(crate) const ENTRY: Entry =
    Entry { name: "simba_package", summary: "die to die on a package, as in Simba", constants };

fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (Crossing, Constant::of(1.17, SOURCE).within(0.7, 1.5)),
        (Wire, super::beyond()),
        (Included, Constant::inferred(4.5, SOURCE)),
        (Signal, super::beyond()),
        (WireLeakage, super::leaks_unknown()),
        (WireArea, super::area_unknown()),
    ]
}
