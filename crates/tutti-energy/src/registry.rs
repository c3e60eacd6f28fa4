//! The technologies by name: for routers, and for links. One line each.

use super::{Constant, EnergyError, Parameter, Part, link, router};

/// Every technology of routers.
pub const ROUTERS: &[Entry] = &[
    router::dsent_45nm::ENTRY,
    router::dsent_32nm::ENTRY,
    router::dsent_22nm::ENTRY,
    router::smart_45nm::ENTRY,
    router::aries_45nm::ENTRY,
];

/// Every technology of links.
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
];

/// A line of a registry.
pub struct Entry {
    /// Its name in Python and in results.
    pub name: &'static str,
    /// One sentence for lists.
    pub summary: &'static str,
    /// Its constants, all of its part.
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

/// The technology of that name.
///
/// # Errors
/// When there is none.
pub fn find(part: Part, name: &str) -> Result<&'static Entry, EnergyError> {
    let entries = registry(part);
    entries.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let known: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
        let (part, known) = (part.name(), known.join(", "));
        EnergyError::UnknownTechnology { part, name: name.to_owned(), known }
    })
}
