//! Routers in 32 nm, fitted to DSENT.

use super::{fitted, flip_flops, flip_flops_fill, flip_flops_leak};
use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "DSENT 0.9 (Sun et al., NOCS 2012), Bulk32LVT, 0.9 V, 340 K, 1 GHz, random data, \
    DFFRAM buffers, multiplexer crossbar, matrix arbiters; fitted to 3-15 ports, 16-512 bits, 1-128 flits";

/// The registry entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "dsent_32nm",
    summary: "routers in 32 nm with flip-flop buffers, fitted to DSENT",
    constants,
};

fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (BufferWrite, flip_flops(0.006218, SOURCE)),
        (BufferWriteDepth, flip_flops(0.0008694, SOURCE)),
        (BufferRead, flip_flops(0.003391, SOURCE)),
        (BufferReadDepth, flip_flops(0.0009229, SOURCE)),
        (Crossbar, fitted(0.001623, SOURCE)),
        (CrossbarPort, fitted(0.001507, SOURCE)),
        (Branch, fitted(0.002042, SOURCE)),
        (BranchPort, fitted(0.0007574, SOURCE)),
        (CrossbarFactor, super::no_bypass()),
        (Arbiter, fitted(0.04348, SOURCE)),
        (ArbiterBend, Constant::of(4.175, SOURCE)),
        (VcAllocatorRatio, super::vc_allocator()),
        (Clock, fitted(0.07676, SOURCE)),
        (ClockSize, fitted(0.0006988, SOURCE)),
        (BufferLeakage, flip_flops_leak(1.341, SOURCE)),
        (BufferLeakageDepth, flip_flops_leak(1.2, SOURCE)),
        (CrossbarLeakage, fitted(0.4944, SOURCE)),
        (CrossbarLeakageCross, fitted(0.3146, SOURCE)),
        (ArbiterLeakage, fitted(1.334, SOURCE)),
        (ClockLeakage, fitted(6.582, SOURCE)),
        (ClockLeakageSize, fitted(0.007624, SOURCE)),
        (BufferArea, flip_flops_fill(4.558, SOURCE)),
        (BufferAreaDepth, flip_flops_fill(4.538, SOURCE)),
        (CrossbarArea, fitted(4.021, SOURCE)),
        (CrossbarAreaCross, fitted(0.04677, SOURCE)),
        (ArbiterArea, fitted(4.397, SOURCE)),
        (ClockArea, fitted(22.8, SOURCE)),
        (ClockAreaSize, fitted(0.01222, SOURCE)),
        (TableRead, super::table()),
    ]
}
