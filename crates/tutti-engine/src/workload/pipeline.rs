//! Pipelines: which micro-batches a stage processes in which order.
//!
//! - **`GPipe`** (Huang et al. 2019): all forward passes, then all backward passes.
//! - **1F1B** (Narayanan et al. 2019, 2021): after `stages - stage - 1` forward passes, forward and
//!   backward passes alternate, so that a stage holds the activations of few micro-batches.
//! - **Interleaved 1F1B** (Narayanan et al. 2021, section 2.2): each stage has several model chunks,
//!   and messages pass all stages once per chunk. The bubble is shorter by the number of chunks.

use super::Rings;
use tutti_units::Bytes;

/// The order of passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PipelineOrder {
    /// All forward passes, then all backward passes.
    GPipe,
    /// One forward pass, one backward pass; interleaved with several chunks per stage.
    #[default]
    OneForwardOneBackward,
}

/// Pipeline stages along one or more dimensions of the NPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// The number of stages.
    pub stages: u32,
    /// The number of micro-batches.
    pub micro_batches: u32,
    /// The order of passes.
    pub order: PipelineOrder,
    /// The dimensions along which the stages lie.
    pub rings: Rings,
    /// The end of the layers of each model chunk. Chunk c belongs to stage c modulo the stages.
    pub ends: Vec<usize>,
    /// The bytes between each model chunk and the next, per micro-batch; gradients have the same
    /// size.
    pub messages: Vec<Bytes>,
}

/// Why a pipeline is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "WorkloadError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum PipelineError {
    /// Too few stages or micro-batches.
    #[error(
        "a pipeline of {stages} stages and {micro_batches} micro-batches: expected at least 2 stages, \
         and at least {stages} micro-batches"
    )]
    TooFew { stages: u32, micro_batches: u32 },
    /// Interleaving without a multiple of the stages.
    #[error(
        "an interleaved pipeline of {stages} stages has {micro_batches} micro-batches: expected a \
         multiple of {stages}"
    )]
    NotMultiple { stages: u32, micro_batches: u32 },
    /// Interleaving in an order that does not alternate.
    #[error("{chunks} model chunks per stage in the order of GPipe: expected 1, or 1F1B")]
    InterleavedGpipe { chunks: usize },
    /// Model chunks that do not divide the layers.
    #[error(
        "the {chunks} model chunks of a pipeline end at layers {ends:?} of {layers}, with {messages} \
         messages in between: expected a multiple of {stages} chunks, each of at least one layer"
    )]
    WrongChunks { chunks: usize, ends: Vec<usize>, layers: usize, messages: usize, stages: u32 },
    /// Embedding tables in a pipeline.
    #[error(
        "embedding tables are not supported in a pipeline: they are looked up once per iteration"
    )]
    Embedding,
}

/// Forward or backward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Forward.
    Forward,
    /// Backward.
    Backward,
}

/// A pass of a micro-batch over a model chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Forward or backward.
    pub direction: Direction,
    /// The model chunk, among those of all stages.
    pub chunk: usize,
    /// The micro-batch.
    pub micro_batch: u32,
}

impl Pipeline {
    /// Model chunks per stage.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        u32::try_from(self.ends.len()).unwrap_or(u32::MAX) / self.stages.max(1)
    }

    /// The layers of a model chunk.
    #[must_use]
    pub fn layers(&self, chunk: usize) -> std::ops::Range<usize> {
        let start = chunk.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[chunk]
    }

    /// Checks it for a model of `layers` layers.
    ///
    /// # Errors
    /// When stages, micro-batches or model chunks do not form a pipeline.
    pub fn check(&self, layers: usize) -> Result<(), PipelineError> {
        let Pipeline { stages, micro_batches, order, .. } = *self;
        if stages < 2 || micro_batches < stages {
            return Err(PipelineError::TooFew { stages, micro_batches });
        }
        let (chunks, ends) = (self.ends.len(), self.ends.clone());
        let ascend = self.ends.first() > Some(&0) && self.ends.is_sorted_by(|a, b| a < b);
        let complete = chunks.is_multiple_of(stages as usize) && self.ends.last() == Some(&layers);
        if !(ascend && complete && self.messages.len() + 1 == chunks) {
            let messages = self.messages.len();
            return Err(PipelineError::WrongChunks { chunks, ends, layers, messages, stages });
        }
        if self.chunks() > 1 && order == PipelineOrder::GPipe {
            return Err(PipelineError::InterleavedGpipe { chunks: self.chunks() as usize });
        }
        if self.chunks() > 1 && !micro_batches.is_multiple_of(stages) {
            return Err(PipelineError::NotMultiple { stages, micro_batches });
        }
        Ok(())
    }

    /// The passes of a stage, in order.
    #[must_use]
    pub fn slots(&self, stage: u32) -> Vec<Slot> {
        let all = self.micro_batches * self.chunks();
        let ahead = self.warm_up(stage).min(all);
        let mut slots: Vec<Slot> = (0..ahead).map(|k| self.forward(stage, k)).collect();
        for k in 0..all - ahead {
            slots.push(self.forward(stage, ahead + k));
            slots.push(self.backward(stage, k));
        }
        slots.extend((all - ahead..all).map(|k| self.backward(stage, k)));
        slots
    }

    /// Forward passes before the first backward pass, but one.
    fn warm_up(&self, stage: u32) -> u32 {
        let (later, chunks) = (self.stages - 1 - stage, self.chunks());
        match self.order {
            PipelineOrder::GPipe => u32::MAX,
            PipelineOrder::OneForwardOneBackward if chunks == 1 => later,
            // With as many micro-batches as stages, the last forward pass precedes all backward
            // passes of the first chunk.
            _ if self.micro_batches == self.stages => u32::MAX,
            _ => 2 * later + (chunks - 1) * self.stages,
        }
    }

    /// The k-th forward pass: as many micro-batches as stages pass each chunk in turn.
    fn forward(&self, stage: u32, k: u32) -> Slot {
        self.slot(Direction::Forward, stage, k)
    }

    fn backward(&self, stage: u32, k: u32) -> Slot {
        self.slot(Direction::Backward, stage, k)
    }

    fn slot(&self, direction: Direction, stage: u32, k: u32) -> Slot {
        let (stages, chunks) = (self.stages, self.chunks());
        let (turn, micro_batch) = match chunks {
            1 => (0, k),
            _ => (k / stages % chunks, k / (stages * chunks) * stages + k % stages),
        };
        let turn = if direction == Direction::Forward { turn } else { chunks - 1 - turn };
        Slot { direction, chunk: (turn * stages + stage) as usize, micro_batch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipeline(stages: u32, chunks: u32, micro_batches: u32, order: PipelineOrder) -> Pipeline {
        let all = (stages * chunks) as usize;
        let messages = vec![Bytes(1); all - 1];
        let ends = (1..=all).collect();
        Pipeline { stages, micro_batches, order, rings: Rings(1), ends, messages }
    }

    fn text(pipeline: &Pipeline, stage: u32) -> String {
        let one = |slot: &Slot| {
            let letter = if slot.direction == Direction::Forward { 'f' } else { 'b' };
            format!("{letter}{}{}", slot.chunk / pipeline.stages as usize, slot.micro_batch)
        };
        pipeline.slots(stage).iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn gpipe_completes_all_forward_passes_first() {
        let gpipe = pipeline(2, 1, 3, PipelineOrder::GPipe);
        assert_eq!(text(&gpipe, 0), "f00 f01 f02 b00 b01 b02");
        assert_eq!(text(&gpipe, 1), "f00 f01 f02 b00 b01 b02");
    }

    /// Narayanan et al. 2021, figure 4 (top): four stages.
    #[test]
    fn passes_alternate_after_the_warm_up() {
        let alternating = pipeline(4, 1, 4, PipelineOrder::OneForwardOneBackward);
        assert_eq!(text(&alternating, 0), "f00 f01 f02 f03 b00 b01 b02 b03");
        assert_eq!(text(&alternating, 2), "f00 f01 b00 f02 b01 f03 b02 b03");
        assert_eq!(text(&alternating, 3), "f00 b00 f01 b01 f02 b02 f03 b03");
    }

    /// Narayanan et al. 2021, figure 4 (bottom): two chunks on each of four stages, eight
    /// micro-batches; the last device alternates from its fifth forward pass on.
    #[test]
    fn interleaved_chunks_take_turns() {
        let interleaved = pipeline(4, 2, 8, PipelineOrder::OneForwardOneBackward);
        let last = "f00 f01 f02 f03 f10 b10 f11 b11 f12 b12 f13 b13 f04 b00 f05 b01 f06 b02 f07 \
                    b03 f14 b14 f15 b15 f16 b16 f17 b17 b04 b05 b06 b07";
        assert_eq!(text(&interleaved, 3), last);
        assert!(
            text(&interleaved, 0).starts_with("f00 f01 f02 f03 f10 f11 f12 f13 f04 f05 f06 b10")
        );
    }

    #[test]
    fn each_chunk_passes_each_micro_batch_once_per_direction() {
        for (stages, chunks, micro_batches) in [(2, 1, 5), (4, 2, 8), (3, 3, 3), (4, 1, 4)] {
            let order = PipelineOrder::OneForwardOneBackward;
            let pipeline = pipeline(stages, chunks, micro_batches, order);
            pipeline.check(pipeline.ends.len()).unwrap();
            for stage in 0..stages {
                let slots = pipeline.slots(stage);
                assert_eq!(slots.len(), (2 * chunks * micro_batches) as usize);
                for (at, slot) in slots.iter().enumerate() {
                    assert!(!slots[..at].contains(slot), "{slot:?} twice");
                    assert_eq!(slot.chunk % stages as usize, stage as usize);
                }
            }
        }
    }

    #[test]
    fn invalid_pipelines_are_refused() {
        let order = PipelineOrder::OneForwardOneBackward;
        let refused = |pipeline: Pipeline, layers| pipeline.check(layers).unwrap_err();
        let few = refused(pipeline(4, 1, 3, order), 4);
        assert_eq!(few, PipelineError::TooFew { stages: 4, micro_batches: 3 });
        let odd = refused(pipeline(2, 2, 3, order), 4);
        assert_eq!(odd, PipelineError::NotMultiple { stages: 2, micro_batches: 3 });
        let gpipe = refused(pipeline(2, 2, 4, PipelineOrder::GPipe), 4);
        assert_eq!(gpipe, PipelineError::InterleavedGpipe { chunks: 2 });
        let short = refused(pipeline(2, 1, 2, order), 3);
        assert!(matches!(short, PipelineError::WrongChunks { .. }), "{short}");
    }
}
