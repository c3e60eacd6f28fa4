//! Technologies of routers, one file each.

pub(super) mod aries_45nm;
pub(super) mod dsent_22nm;
pub(super) mod dsent_32nm;
pub(super) mod dsent_45nm;
pub(super) mod smart_45nm;
pub(super) mod synthesis_45nm;

use super::{Constant, Parameter};

/// A constant of a law that matches DSENT within 20 %.
const fn fitted(value: f64, source: &'static str) -> Constant {
    Constant::of(value, source).within(0.8, 1.25)
}

/// The energy of flip-flop buffers: an upper bound, since deep buffers are SRAM. The factor of one
/// half is inferred.
const fn flip_flops(value: f64, source: &'static str) -> Constant {
    Constant::of(value, source).within(0.5, 1.25)
}

/// The leakage of flip-flop buffers. The factor of a fifth for SRAM is inferred.
const fn flip_flops_leak(value: f64, source: &'static str) -> Constant {
    Constant::of(value, source).within(0.2, 1.25)
}

/// The area of flip-flop buffers. The buffers of ARIES (section V-D, 98740 um2) take 15 % of it.
const fn flip_flops_fill(value: f64, source: &'static str) -> Constant {
    Constant::of(value, source).within(0.15, 1.25)
}

/// No bypass multiplexers around the crossbar.
const fn no_bypass() -> Constant {
    Constant::of(1.0, "by definition: the factor is relative to a crossbar without bypass")
}

/// DSENT has no VC allocator.
const fn vc_allocator() -> Constant {
    const SOURCE: &str = "ARIES (Yin et al., ICCAD 2023), section V-D: areas 9066 and 4589 um2 of VC and \
        switch allocator; that energy and leakage go with area is inferred";
    Constant::inferred(9066.0 / 4589.0, SOURCE).within(0.5, 2.0)
}

/// A lookup in a reduction table of 64 entries of 3 bits.
const fn table() -> Constant {
    const SOURCE: &str = "Krishna and Peh, NOCS 2014, section IV-A.8, neglect the energy of tables of 192 bits; a \
        read of a small register file takes less than 0.1 pJ in 45 nm, which is the upper bound used here";
    Constant::inferred(0.1, SOURCE).within(0.0, 1.0)
}

/// Replaces some constants of a technology.
fn replaced(
    mut constants: Vec<(Parameter, Constant)>,
    others: Vec<(Parameter, Constant)>,
) -> Vec<(Parameter, Constant)> {
    constants.retain(|(known, _)| others.iter().all(|(other, _)| other != known));
    constants.extend(others);
    constants
}
