//! The allocators and arbiters by name.

use std::fmt;
use std::str::FromStr;

use tutti_units::parameter::{Kind, ParameterValue};

use super::AllocatorError;

/// The matching algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, tutti_units::Named)]
pub enum AllocatorKind {
    /// Inputs choose, then outputs.
    SeparableInputFirst,
    /// Outputs choose, then inputs.
    SeparableOutputFirst,
    /// Outputs choose, then inputs, in iterations with pointers that drift apart.
    Islip,
    /// Diagonal by diagonal of the request matrix.
    Wavefront,
    /// Outputs choose, then inputs, at random, in iterations.
    Pim,
    /// The largest number of grants.
    Maximum,
}

impl FromStr for AllocatorKind {
    type Err = AllocatorError;

    fn from_str(text: &str) -> Result<Self, AllocatorError> {
        let name = text.trim();
        AllocatorKind::from_name(name)
            .ok_or_else(|| AllocatorError::UnknownAllocator { name: name.to_owned() })
    }
}

impl ParameterValue for AllocatorKind {
    type Error = AllocatorError;
    const KIND: Kind = Kind::Choice(&AllocatorKind::NAMES);

    fn read(text: &str) -> Result<Self, AllocatorError> {
        text.parse()
    }
}

/// Arbitration among contenders of the same priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArbiterKind {
    /// The first at or after the one that follows the last winner.
    RoundRobin,
    /// The one that has waited longest since it last won; at first, the one with the highest
    /// number.
    Matrix,
    /// Round-robin within each group of adjacent contenders, then round-robin among the groups.
    TreeRoundRobin {
        /// The number of groups.
        groups: u32,
    },
    /// Least recently served within each group of adjacent contenders, then among the groups.
    TreeMatrix {
        /// The number of groups.
        groups: u32,
    },
}

impl ArbiterKind {
    pub(super) const FORMS: &str =
        "round_robin, matrix, tree_round_robin:GROUPS, tree_matrix:GROUPS";
}

impl fmt::Display for ArbiterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArbiterKind::RoundRobin => f.write_str("round_robin"),
            ArbiterKind::Matrix => f.write_str("matrix"),
            ArbiterKind::TreeRoundRobin { groups } => write!(f, "tree_round_robin:{groups}"),
            ArbiterKind::TreeMatrix { groups } => write!(f, "tree_matrix:{groups}"),
        }
    }
}

impl ParameterValue for ArbiterKind {
    type Error = AllocatorError;
    const KIND: Kind = Kind::Text;

    fn read(text: &str) -> Result<Self, AllocatorError> {
        text.parse()
    }
}

impl FromStr for ArbiterKind {
    type Err = AllocatorError;

    fn from_str(text: &str) -> Result<Self, AllocatorError> {
        let text = text.trim();
        let groups = |groups: &str| groups.parse().ok().filter(|groups| *groups > 0);
        let kind = match text.split_once(':') {
            None if text == "round_robin" => Some(ArbiterKind::RoundRobin),
            None if text == "matrix" => Some(ArbiterKind::Matrix),
            Some(("tree_round_robin", count)) => {
                groups(count).map(|groups| ArbiterKind::TreeRoundRobin { groups })
            }
            Some(("tree_matrix", count)) => {
                groups(count).map(|groups| ArbiterKind::TreeMatrix { groups })
            }
            _ => None,
        };
        kind.ok_or_else(|| AllocatorError::UnknownArbiter { text: text.to_owned() })
    }
}
