//! The parts of a training loop: its layers and their schedule, and embedding tables.

use super::{Layer, Pipeline, PipelineError, ProgramError, Transfer};
use tutti_schedule::collective::Collective;
use tutti_units::{Bytes, Time};

/// Embedding tables distributed among the NPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Embedding {
    /// The number of bottom layers, which precede the use of the lookups.
    pub bottom: usize,
    /// Time of a lookup.
    pub lookup: Time,
    /// Time of the lookup of the first iteration, which does not overlap with an earlier one.
    pub first_lookup: Time,
    /// Time of an update of the tables.
    pub update: Time,
    /// Bytes of the all-to-all of lookups, by its convention; gradients have the same size.
    pub bytes: Bytes,
    /// Whether lookup and update run in the background.
    pub background: bool,
}

/// A training loop: layers, and iterations over them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainingLoop {
    /// The layers, first to last.
    pub layers: Vec<Layer>,
    /// The number of iterations.
    pub iterations: u32,
    /// Whether collectives of gradients overlap with the backward pass; else one exposed collective
    /// at its end reduces all gradients.
    pub overlap: bool,
    /// Whether every forward pass waits for all gradients of the previous iteration, not only for
    /// those of its layer; always without overlap.
    pub barrier: bool,
    /// The bucket size of gradients; None: one collective per layer.
    pub bucket: Option<Bytes>,
    /// Embedding tables in addition to the layers.
    pub embedding: Option<Embedding>,
    /// How many passes ahead of their use weights are gathered; None: as soon as they are updated,
    /// and one pass ahead in the backward pass.
    pub prefetch: Option<u32>,
    /// The pipeline that divides the layers into stages; their times are per micro-batch.
    pub pipeline: Option<Pipeline>,
}

impl Default for TrainingLoop {
    /// One iteration without layers, with overlapped gradients.
    fn default() -> TrainingLoop {
        TrainingLoop {
            layers: Vec::new(),
            iterations: 1,
            overlap: true,
            barrier: false,
            bucket: None,
            embedding: None,
            prefetch: None,
            pipeline: None,
        }
    }
}

/// Why a training loop is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "WorkloadError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum TrainingError {
    /// No layers.
    #[error("the training loop has no layers: expected at least one")]
    NoLayers,
    /// No iterations.
    #[error("a training loop of 0 iterations does nothing: expected at least 1")]
    NoIterations,
    /// No layer left for the top.
    #[error("{bottom} bottom layers of {layers} layers leave no top layer: expected fewer")]
    NoTop { bottom: usize, layers: usize },
    /// An invalid pipeline.
    #[error(transparent)]
    #[refusal(transparent)]
    Pipeline {
        #[from]
        source: PipelineError,
    },
    /// Tasks that do not form a valid program.
    #[error(transparent)]
    #[refusal(transparent)]
    Program {
        #[from]
        source: ProgramError,
    },
}

impl Embedding {
    /// Its all-to-all, which has priority.
    pub(super) fn transfer(&self) -> Transfer {
        Transfer::new(Collective::AllToAll, self.bytes).first()
    }
}
