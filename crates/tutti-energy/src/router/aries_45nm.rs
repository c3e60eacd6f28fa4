//! The package routers of ARIES: areas from its synthesis, energies from DSENT for its buffers.

use super::{dsent_45nm, replaced};
use crate::Parameter::*;
use crate::{Constant, Entry, Parameter};

const AREA: &str = "ARIES (Yin et al., ICCAD 2023), section V-D: crossbar 17806, switch allocator 4589, \
    buffers 98740 um2 for 5 ports and 4 VCs of 32 flits; that a flit has 128 bits is inferred";
const BUFFERS: &str =
    "DSENT, Bulk45LVT, 4 VCs of 32 flits of 128 bits, flip-flops: 25.8 and 25.1 pJ";
const SRAM: &str = "a fifth of the DSENT value for flip-flops, Bulk45LVT: SRAM";
const CROSSBAR: &str = "DSENT, Bulk45LVT, 128 bits: 2.13, 2.79 and 5.62 pJ for 5, 7 and 15 ports, as 0.017 \
    pJ/bit times ports / 5";
const CLOCK: &str = "DSENT 0.91, Bulk45LVT, 128 bits: 5.1, 5.4 and 6.7 mW at 1 GHz for 5, 7 and 15 ports; \
    DSENT 0.9 gives 1.05 mW for 5";
const NONE: &str = "included in the constant that is independent of depth, ports or length";

/// The registry entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "aries_45nm",
    summary: "routers of a chiplet package with deep SRAM buffers, in 45 nm",
    constants,
};

pub(super) fn constants() -> Vec<(Parameter, Constant)> {
    let own = vec![
        (BufferWrite, Constant::of(0.20, BUFFERS).within(0.5, 1.25)),
        (BufferWriteDepth, Constant::of(0.0, NONE)),
        (BufferRead, Constant::of(0.20, BUFFERS).within(0.5, 1.25)),
        (BufferReadDepth, Constant::of(0.0, NONE)),
        (Crossbar, Constant::of(0.0, NONE)),
        (CrossbarPort, Constant::of(0.0034, CROSSBAR).within(0.8, 1.25)),
        (Clock, Constant::of(4.3, CLOCK).within(0.2, 1.25)),
        (ClockSize, Constant::of(0.00125, CLOCK).within(0.8, 1.25)),
        (BufferLeakage, Constant::inferred(2.183 / 5.0, SRAM).within(1.0, 5.0)),
        (BufferLeakageDepth, Constant::inferred(2.004 / 5.0, SRAM).within(1.0, 5.0)),
        (BufferArea, Constant::of(0.0, AREA)),
        (BufferAreaDepth, Constant::inferred(98740.0 / 81920.0, AREA).within(0.8, 1.25)),
        (CrossbarArea, Constant::of(0.0, AREA)),
        (CrossbarAreaCross, Constant::inferred(17806.0 / 409_600.0, AREA).within(0.8, 1.25)),
        (ArbiterArea, Constant::inferred(4589.0 / 160.0, AREA).within(0.8, 1.25)),
    ];
    replaced(dsent_45nm::constants(), own)
}
