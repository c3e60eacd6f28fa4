//! How packets choose among ways.

/// How packets choose among ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Choice {
    /// Not at all: every pair of ranks has its one route.
    #[default]
    Routes,
}
