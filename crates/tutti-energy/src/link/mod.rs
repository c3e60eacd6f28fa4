//! Technologies of links, one file each.

pub(super) mod dsent_22nm;
pub(super) mod dsent_32nm;
pub(super) mod dsent_45nm;
pub(super) mod dsent_45nm_spaced;
pub(super) mod grs_28nm;
pub(super) mod grs_package;
pub(super) mod keckler_40nm;
pub(super) mod low_swing_45nm;
pub(super) mod muchisim_die;
pub(super) mod muchisim_interposer;
pub(super) mod muchisim_substrate;
pub(super) mod simba_package;
pub(super) mod smart_45nm;
pub(super) mod ucie_advanced;
pub(super) mod ucie_standard;

use super::Constant;

/// On-chip wires start at the crossbar.
const fn no_transceiver() -> Constant {
    Constant::of(0.0, "by definition: on-chip wires are charged by length only")
}

/// The source has no energy independent of length.
const fn by_length_only() -> Constant {
    Constant::of(0.0, "by definition: the source gives energy by length only")
}

/// Wires beyond the length that a transceiver's energy includes.
const fn beyond() -> Constant {
    const SOURCE: &str = "Keckler et al., IEEE Micro 31(5), 2011, as quoted: 0.12 pJ/bit/mm on a chip of 40 nm; \
        that wires of a package take as much is inferred";
    Constant::inferred(0.12, SOURCE).within(0.34, 2.0)
}

/// The source gives no leakage.
const fn leaks_unknown() -> Constant {
    Constant::inferred(0.0, "not given by the source of this link: omitted")
}

/// The source gives no area.
const fn area_unknown() -> Constant {
    Constant::inferred(0.0, "not given by the source of this link: omitted")
}
