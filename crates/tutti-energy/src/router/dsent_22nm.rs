//! Routers in 22 nm, fitted to DSENT.

use super::{fitted, flip_flops, flip_flops_fill, flip_flops_leak};
use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const SOURCE: &str = "DSENT 0.9 (Sun et al., NOCS 2012), Bulk22LVT, 0.8 V, 340 K, 1 GHz, random data, \
    DFFRAM buffers, multiplexer crossbar, matrix arbiters; fitted to 3-15 ports, 16-512 bits, 1-64 flits";

/// The registry entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "dsent_22nm",
    summary: "routers in 22 nm with flip-flop buffers, fitted to DSENT",
    constants,
};

fn constants() -> Vec<(Parameter, Constant)> {
    vec![
        (BufferWrite, flip_flops(0.00301, SOURCE)),
        (BufferWriteDepth, flip_flops(0.0004148, SOURCE)),
        (BufferRead, flip_flops(0.001617, SOURCE)),
        (BufferReadDepth, flip_flops(0.000421, SOURCE)),
        (Crossbar, fitted(0.0008949, SOURCE)),
        (CrossbarPort, fitted(0.0006648, SOURCE)),
        (Branch, fitted(0.001065, SOURCE)),
        (BranchPort, fitted(0.0003412, SOURCE)),
        (CrossbarFactor, super::no_bypass()),
        (Arbiter, fitted(0.02042, SOURCE)),
        (ArbiterBend, Constant::of(4.3, SOURCE)),
        (VcAllocatorRatio, super::vc_allocator()),
        (Clock, fitted(0.03509, SOURCE)),
        (ClockSize, fitted(0.0004065, SOURCE)),
        (BufferLeakage, flip_flops_leak(0.7891, SOURCE)),
        (BufferLeakageDepth, flip_flops_leak(0.7309, SOURCE)),
        (CrossbarLeakage, fitted(0.2922, SOURCE)),
        (CrossbarLeakageCross, fitted(0.1981, SOURCE)),
        (ArbiterLeakage, fitted(0.7129, SOURCE)),
        (ClockLeakage, fitted(3.317, SOURCE)),
        (ClockLeakageSize, fitted(0.003796, SOURCE)),
        (BufferArea, flip_flops_fill(1.958, SOURCE)),
        (BufferAreaDepth, flip_flops_fill(1.988, SOURCE)),
        (CrossbarArea, fitted(2.5, SOURCE)),
        (CrossbarAreaCross, fitted(0.0105, SOURCE)),
        (ArbiterArea, fitted(1.918, SOURCE)),
        (ClockArea, fitted(9.948, SOURCE)),
        (ClockAreaSize, fitted(0.005334, SOURCE)),
        (TableRead, super::table()),
    ]
}
