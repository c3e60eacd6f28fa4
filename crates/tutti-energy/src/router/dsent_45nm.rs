//! Routers in 45 nm, fitted to DSENT.

use super::{fitted, flip_flops, flip_flops_fill, flip_flops_leak};
use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "DSENT 0.9 (Sun et al., NOCS 2012), Bulk45LVT, 1.0 V, 340 K, 1 GHz, random data, \
    DFFRAM buffers, multiplexer crossbar, matrix arbiters; fitted to 3-15 ports, 16-512 bits, 1-128 flits";

/// The registry entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "dsent_45nm",
    summary: "routers in 45 nm with flip-flop buffers, fitted to DSENT",
    constants,
};

pub(super) fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (BufferWrite, flip_flops(0.01125, SOURCE)),
        (BufferWriteDepth, flip_flops(0.001575, SOURCE)),
        (BufferRead, flip_flops(0.006135, SOURCE)),
        (BufferReadDepth, flip_flops(0.001685, SOURCE)),
        (Crossbar, fitted(0.002894, SOURCE)),
        (CrossbarPort, fitted(0.002747, SOURCE)),
        (Branch, fitted(0.003662, SOURCE)),
        (BranchPort, fitted(0.001385, SOURCE)),
        (CrossbarFactor, super::no_bypass()),
        (Arbiter, fitted(0.07896, SOURCE)),
        (ArbiterBend, Constant::of(4.175, SOURCE)),
        (VcAllocatorRatio, super::vc_allocator()),
        (Clock, fitted(0.1361, SOURCE)),
        (ClockSize, fitted(0.001212, SOURCE)),
        (BufferLeakage, flip_flops_leak(2.183, SOURCE)),
        (BufferLeakageDepth, flip_flops_leak(2.004, SOURCE)),
        (CrossbarLeakage, fitted(0.7902, SOURCE)),
        (CrossbarLeakageCross, fitted(0.5385, SOURCE)),
        (ArbiterLeakage, fitted(2.246, SOURCE)),
        (ClockLeakage, fitted(10.8, SOURCE)),
        (ClockLeakageSize, fitted(0.01602, SOURCE)),
        (BufferArea, flip_flops_fill(8.287, SOURCE)),
        (BufferAreaDepth, flip_flops_fill(8.252, SOURCE)),
        (CrossbarArea, fitted(10.0, SOURCE)),
        (CrossbarAreaCross, fitted(0.042, SOURCE)),
        (ArbiterArea, fitted(7.995, SOURCE)),
        (ClockArea, fitted(38.63, SOURCE)),
        (ClockAreaSize, fitted(0.02784, SOURCE)),
        (TableRead, super::table()),
    ]
}
