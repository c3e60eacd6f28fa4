//! Routers whose power does not depend on traffic, as synthesis reports it: ARIES's buffers as
//! flip-flops without clock gating.

use super::{aries_45nm, replaced};
use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const CELLS: &str = "NanGate 45 nm open cell library, typical corner: DFF_X1 takes 4.522 um2, 6.9 fJ per clock \
    cycle without a change of data, 1.1 fJ at its clock pin, and leaks 79 nW. ARIES's buffers of 98740 um2 \
    (section V-D) are 21835 of them. That registers are not gated is inferred";
const AVERAGE: &str =
    "by definition: an average power is charged for the time, events are not counted";

/// Flip-flops per bit and port of a router of 5 ports and 128 bits.
const PER_BIT: f64 = 98740.0 / 4.522 / 640.0;

/// The registry entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "synthesis_45nm",
    summary: "routers of a chiplet package that take the same power with and without traffic, in 45 nm",
    constants,
};

fn constants() -> Vec<(Parameter, Constant)> {
    let no_event = |parameter| (parameter, Constant::inferred(0.0, AVERAGE));
    let own = vec![
        no_event(BufferWrite),
        no_event(BufferRead),
        no_event(CrossbarPort),
        no_event(Arbiter),
        no_event(Clock),
        (ClockSize, Constant::inferred(0.008 * PER_BIT, CELLS).within(0.5, 2.0)),
        (BufferLeakage, Constant::inferred(0.079 * PER_BIT, CELLS).within(0.5, 2.0)),
        no_event(BufferLeakageDepth),
    ];
    replaced(aries_45nm::constants(), own)
}
