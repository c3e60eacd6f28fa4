//! Schedules: the actions of every rank, their order, and the parts of the payload they use.
//!
//! A schedule is a stream of [`Step`]s per rank, generated on demand. Nothing is stored per rank,
//! so a million ranks cost nothing until their steps are read. Sizes appear only as
//! [`ChunkRange`]s, fractions of the payload, so one schedule holds for every message size and
//! datatype.
//!
//! **Semantics of a step.** All sends are issued, in order; all receives are posted at once. The
//! step waits for its receives (and, where sends are not buffered, its sends); then its local ops
//! run in order. The next step starts after that. The k-th message from a to b matches b's k-th
//! receive from a. The messages of a step are concurrent: a send may read its chunks, and a receive
//! write its chunks, at any moment until the step ends. A receive must therefore not write chunks
//! that another message of the step accesses; [`verify()`] refuses such a step. Each send then
//! carries the content of its chunks at issue, and a step is safe with non-blocking calls of any
//! MPI.
#![deny(unsafe_code)]

pub mod algorithm;
mod blocks;
mod chains;
mod chunks;
pub mod collective;
mod compose;
mod concurrent;
mod explicit;
mod marks;
pub mod notation;
mod part;
mod progress;
mod repeated;
mod step;
pub mod text;
pub mod verify;

pub use blocks::{Blocks, BlocksError};
pub use chains::{Chains, ChainsError};
pub use chunks::{ChunkRange, Layout, LayoutError};
pub use compose::{ComposeError, Digit, Embedded, Phase, Placement, Sequence};
pub use concurrent::{Channels, Concurrent, ConcurrentError};
pub use explicit::{Builder, Explicit, ExplicitError};
pub use marks::{Mark, MessageRange};
pub use part::OnlyPhase;
pub use progress::{At, Wait};
pub use repeated::Repeated;
pub use step::{Local, Message, Op, OperandRange, Slot, Step};
pub use verify::{Fold, Reproducibility, Verification, VerifyError, verify, verify_exactly};

use crate::collective::Collective;
use tutti_units::ids::RankId;

/// The maximum number of ranks: leaves headroom for ids, chunks and steps in 32 bits.
pub const MAX_RANKS: u32 = 1 << 24;

/// The properties of a schedule that are known without reading its steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The name in the algorithm notation (`ring`, `recursive_multiplying:a8,a4`).
    pub name: String,
    /// The collective that it performs.
    pub collective: Collective,
    /// The number of ranks.
    pub ranks: u32,
    /// The number of chunks of the payload, at least one. They are equal, unless the schedule has
    /// [`Schedule::blocks`].
    pub chunks: u32,
    /// The number of slots per rank: the data slot, then scratch.
    pub slots: u32,
    /// The result slot: the data slot, unless the collective works out of place.
    pub result: Slot,
}

impl Shape {
    /// Returns the shape of a schedule whose result is in the data slot.
    pub(crate) fn in_place(
        name: impl Into<String>,
        collective: Collective,
        ranks: u32,
        chunks: u32,
        slots: u32,
    ) -> Shape {
        Shape { name: name.into(), collective, ranks, chunks, slots, result: Slot::DATA }
    }

    /// Returns whether chunks are copied to other positions: in every all_to_all, and in a
    /// collective with shards whose result is in a slot other than its data.
    #[must_use]
    pub fn moves_chunks(&self) -> bool {
        self.collective == Collective::AllToAll
            || self.collective.has_shards() && self.result != Slot::DATA
    }
}

/// A collective algorithm for a number of ranks: a stream of steps per rank.
pub trait Schedule: Send + Sync {
    /// Returns the properties that are known without reading the steps.
    fn shape(&self) -> &Shape;

    /// Returns the number of steps of `rank`.
    fn steps(&self, rank: RankId) -> u32;

    /// Writes step `step` of `rank` into `out`, which the caller has cleared.
    fn step(&self, rank: RankId, step: u32, out: &mut Step);

    /// Returns whether chunks are copied to other positions, in the result or in between. All
    /// chunks must then have equal size.
    fn moves_chunks(&self) -> bool {
        self.shape().moves_chunks()
    }

    /// Returns the relative sizes of the chunks of an all_to_all_v; otherwise chunks are equal.
    fn blocks(&self) -> Option<&Blocks> {
        None
    }

    /// Returns the number of phases. Between two phases the network may be reconfigured: each phase
    /// uses different pairs of ranks. A rank does not wait for others at the end of a phase.
    fn phases(&self) -> u32 {
        1
    }

    /// Returns the phase of a step of a rank: below [`Schedule::phases`], and not below that of the
    /// rank's previous step.
    fn phase(&self, _rank: RankId, _step: u32) -> u32 {
        0
    }

    /// Returns whether the sends of a step await the receives of the previous one even where an
    /// endpoint sends each chunk as soon as it has arrived.
    fn is_ordered(&self, _rank: RankId, _step: u32) -> bool {
        false
    }

    /// Returns whether it performs only a part of its collective and cannot be verified alone.
    fn is_part(&self) -> bool {
        false
    }

    /// Returns the digits of the rank number under whose rotation the messages do not change, if
    /// they are known. A rotation adds a constant to a digit of every rank, modulo its size. It maps
    /// the messages of each rank, in order, to those of another. The digits that are not listed may
    /// be rotated in any radix.
    fn symmetry(&self) -> Option<Vec<Digit>> {
        None
    }

    /// Returns which of the parallel links to its peer a message prefers: the `send`-th of a step.
    fn channel(&self, _rank: RankId, _step: u32, _send: u32) -> u32 {
        0
    }

    /// Returns the channels that progress concurrently; otherwise a step waits for all ops of the
    /// previous one.
    fn channels(&self) -> Option<Channels> {
        None
    }

    /// Writes the ops of a step that belong to one of its channels into `out`, which the caller has
    /// cleared. Each op of the step belongs to one channel.
    fn step_of_channel(
        &self,
        (rank, step): (RankId, u32),
        channels: Channels,
        channel: u32,
        out: &mut Step,
    ) {
        self.step(rank, step, out);
        out.keep_channel(channels, channel);
    }

    /// Returns a short name of the step, for drawings and traces.
    fn step_name(&self, _rank: RankId, step: u32) -> String {
        format!("step {step}")
    }
}
