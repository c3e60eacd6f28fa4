//! Errors of allocators.

use super::{AllocatorKind, ArbiterKind};

/// An invalid allocator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "NocError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum AllocatorError {
    /// No allocator has that name.
    #[error("unknown allocator `{name}`: expected one of {}", AllocatorKind::NAMES.join(", "))]
    UnknownAllocator { name: String },
    /// No arbiter has that name.
    #[error("unknown arbiter `{text}`: expected one of {}", ArbiterKind::FORMS)]
    UnknownArbiter { text: String },
    /// No inputs or no outputs.
    #[error(
        "{kind} with {inputs} inputs and {outputs} outputs is refused: expected at least one of each"
    )]
    NoPorts { kind: AllocatorKind, inputs: u32, outputs: u32 },
    /// More ports than fit into memory.
    #[error(
        "{kind} with {inputs} inputs and {outputs} outputs is refused: expected at most {most} of each"
    )]
    TooManyPorts { kind: AllocatorKind, inputs: u32, outputs: u32, most: u32 },
    /// An allocator without iterations.
    #[error("{kind} with 0 iterations grants nothing: expected at least one")]
    NoIterations { kind: AllocatorKind },
    /// The contenders of a tree arbiter do not divide into equal groups.
    #[error(
        "{arbiter} cannot choose among {contenders}: expected a number of groups that divides it"
    )]
    Groups { arbiter: ArbiterKind, contenders: u32 },
}
