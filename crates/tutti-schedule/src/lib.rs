//! Schedules: what every rank does, in which order, on which part of the payload.
//!
//! A schedule is a stream of [`Step`]s per rank, produced on demand: nothing is stored per rank, so a
//! million ranks cost nothing until someone walks them. Sizes appear only as [`ChunkRange`]s, fractions
//! of the payload, so one schedule holds for every message size and datatype.
//!
//! **What a step means.** All sends are issued, in order; all receives are posted at once; the step waits for its
//! receives (and, where sends are not buffered, its sends); then its local ops run in order. The next step starts
//! after that. The k-th message from a to b meets b's k-th receive from a. The messages of a step are concurrent: a
//! send may read its chunks, and a receive write its own, at any moment until the step ends. So a receive must not
//! write what another message of the step touches; [`verify()`] refuses it. Then each send carries what its chunks
//! hold when it is issued, and a step is safe with non-blocking calls of any MPI.
#![deny(unsafe_code)]

pub mod algorithm;
mod chunks;
pub mod collective;
mod compose;
mod explicit;
mod marks;
pub mod notation;
mod part;
mod progress;
mod repeated;
mod step;
pub mod text;
pub mod verify;

pub use chunks::{ChunkRange, Layout, LayoutError};
pub use compose::{ComposeError, Digit, Embedded, Phase, Placement, Sequence};
pub use explicit::{Builder, Explicit, ExplicitError};
pub use marks::{Mark, MessageRange};
pub use part::OnlyPhase;
pub use progress::{At, Wait};
pub use repeated::Repeated;
pub use step::{Local, Message, Op, OperandRange, Slot, Step};
pub use verify::{Fold, Reproducibility, Verification, VerifyError, verify, verify_exactly};

use crate::collective::Collective;
use tutti_units::ids::RankId;

/// The most ranks a schedule can have: ids, chunks and steps are counted in 32 bits with room to spare.
pub const MAX_RANKS: u32 = 1 << 24;

/// What is known of a schedule without walking it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How it was asked for, in the algorithm notation (`ring`, `recursive_multiplying:a8,a4`).
    pub name: String,
    /// What it is meant to do.
    pub collective: Collective,
    /// How many ranks take part.
    pub ranks: u32,
    /// How many equal chunks the payload is divided into; at least one.
    pub chunks: u32,
    /// How many slots a rank needs: the data slot, then scratch.
    pub slots: u32,
    /// Where the result is afterwards: the data slot, unless the collective works out of place.
    pub result: Slot,
}

impl Shape {
    /// The shape of a schedule whose result is in the data slot.
    pub(crate) fn in_place(
        name: impl Into<String>,
        collective: Collective,
        ranks: u32,
        chunks: u32,
        slots: u32,
    ) -> Shape {
        Shape { name: name.into(), collective, ranks, chunks, slots, result: Slot::DATA }
    }

    /// Whether chunks end at other places than they begin at: in every all_to_all, and in a collective that
    /// deals in shards and leaves them in another slot than its data.
    #[must_use]
    pub fn moves_chunks(&self) -> bool {
        self.collective == Collective::AllToAll
            || self.collective.has_shards() && self.result != Slot::DATA
    }
}

/// A collective algorithm laid out for a number of ranks: a stream of steps per rank.
pub trait Schedule: Send + Sync {
    /// What is known without walking it.
    fn shape(&self) -> &Shape;

    /// How many steps `rank` takes.
    fn steps(&self, rank: RankId) -> u32;

    /// Writes step `step` of `rank` into `out`, which the caller has cleared.
    fn step(&self, rank: RankId, step: u32, out: &mut Step);

    /// Whether chunks change places, in the result or in between: then all must be equal, as one would not
    /// fit where another was.
    fn moves_chunks(&self) -> bool {
        self.shape().moves_chunks()
    }

    /// How many phases it has. Between two of them the network may be set up anew, where it can be: each sends
    /// among pairs of ranks of its own. A rank does not wait for others at the end of a phase.
    fn phases(&self) -> u32 {
        1
    }

    /// The phase that a step of a rank belongs to: below [`Schedule::phases`], and never less than that of the
    /// rank's step before.
    fn phase(&self, _rank: RankId, _step: u32) -> u32 {
        0
    }

    /// Whether it is only a part of what its collective asks for, so that it cannot be proved alone.
    fn is_part(&self) -> bool {
        false
    }

    /// A short name for the step, for drawings and traces.
    fn step_name(&self, _rank: RankId, step: u32) -> String {
        format!("step {step}")
    }
}
