//! The technologies of routers and links by name, one line each.

use super::{Constant, EnergyError, Parameter, Part, link, router};

/// The technologies of routers.
pub const ROUTERS: &[Entry] = &[
    router::dsent_45nm::ENTRY,
    router::dsent_32nm::ENTRY,
    router::dsent_22nm::ENTRY,
    router::smart_45nm::ENTRY,
    router::aries_45nm::ENTRY,
    router::synthesis_45nm::ENTRY,
];

/// The technologies of links.
pub const LINKS: &[Entry] = &[
    link::dsent_45nm::ENTRY,
    link::dsent_45nm_spaced::ENTRY,
    link::dsent_32nm::ENTRY,
    link::dsent_22nm::ENTRY,
    link::smart_45nm::ENTRY,
    link::low_swing_45nm::ENTRY,
    link::keckler_40nm::ENTRY,
    link::grs_28nm::ENTRY,
    link::muchisim_die::ENTRY,
    link::muchisim_interposer::ENTRY,
    link::muchisim_substrate::ENTRY,
    link::grs_package::ENTRY,
    link::simba_package::ENTRY,
    link::ucie_standard::ENTRY,
    link::ucie_advanced::ENTRY,
];

/// An entry of a registry.
pub struct Entry {
    /// The name in Python and in results.
    pub name: &'static str,
    /// A summary for lists.
    pub summary: &'static str,
    /// All constants of the part.
    pub constants: fn() -> Vec<(Parameter, Constant)>,
}

/// The registry of a part.
#[must_use]
pub fn registry(part: Part) -> &'static [Entry] {
    match part {
        Part::Router => ROUTERS,
        Part::Link => LINKS,
    }
}

/// Returns the technology of that name.
///
/// # Errors
/// The name is unknown.
pub fn find(part: Part, name: &str) -> Result<&'static Entry, EnergyError> {
    let entries = registry(part);
    entries.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let known: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
        let (part, known) = (part.name(), known.join(", "));
        EnergyError::UnknownTechnology { part, name: name.to_owned(), known }
    })
}
