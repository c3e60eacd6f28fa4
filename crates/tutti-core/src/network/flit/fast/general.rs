//! Every other allocator and pipeline.

use super::state::Layout;
use super::{Network, Settings};

/// What the usual allocators do without.
pub(super) struct General {}

impl General {
    /// Whether settings ask for more than the usual.
    pub(super) fn needed(_settings: &Settings) -> bool {
        false
    }

    pub(super) fn new<const W: usize>(_layout: &Layout<W>, _settings: &Settings) -> General {
        General {}
    }
}

impl<const W: usize> Network<W> {
    pub(super) fn allocate_generally(&mut self) {}
}
