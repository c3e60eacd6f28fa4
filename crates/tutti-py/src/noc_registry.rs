//! What flit networks offer: routings, patterns of traffic, allocators.

use pyo3::prelude::*;
use tutti_noc::allocator::AllocatorKind;
use tutti_noc::{routing, traffic};

/// A line of a registry.
#[pyclass(frozen, get_all, module = "tutti._core")]
pub(crate) struct FlitRegistryEntry {
    /// Its name in the notation `name:argument`.
    name: &'static str,
    /// What follows the colon; empty where nothing does.
    argument: &'static str,
    /// One sentence for lists.
    summary: &'static str,
}

/// Every routing of flit networks.
#[pyfunction]
pub(crate) fn flit_routings() -> Vec<FlitRegistryEntry> {
    let line = |entry: &routing::Entry| FlitRegistryEntry {
        name: entry.name,
        argument: entry.argument,
        summary: entry.summary,
    };
    routing::REGISTRY.iter().map(line).collect()
}

/// Every pattern of traffic.
#[pyfunction]
pub(crate) fn flit_patterns() -> Vec<FlitRegistryEntry> {
    let line = |entry: &traffic::Entry| FlitRegistryEntry {
        name: entry.name,
        argument: entry.argument,
        summary: entry.summary,
    };
    traffic::REGISTRY.iter().map(line).collect()
}

/// The names of all allocators.
#[pyfunction]
pub(crate) fn flit_allocators() -> Vec<&'static str> {
    AllocatorKind::ALL.map(AllocatorKind::name).to_vec()
}
