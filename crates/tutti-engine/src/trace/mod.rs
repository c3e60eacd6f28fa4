//! Traces: the sends, receives and computations of every rank, with fixed times and sizes.
//!
//! A schedule describes a collective of any size; its steps are generated on access. A trace is the
//! recorded program of an application: operations on streams, with dependencies between operations
//! of a rank. [`TraceRun`] executes it on the models of [`tutti_network`], [`goal::read`] reads it
//! from a file in GOAL, [`chakra::read`] reads the nodes of Chakra files, and [`lower()`] turns a
//! schedule of a given size into one.

mod builder;
pub mod chakra;
mod channels;
mod checks;
pub mod goal;
mod graph;
mod labels;
mod lower;
mod matching;
mod narrow;
#[cfg(test)]
mod oracle;
mod run;
#[cfg(test)]
mod tests;

pub use channels::OtherSizes;
pub use graph::TraceGraph;
pub use lower::lower;
pub use run::{TraceOutcome, TraceRun};

use tutti_units::ids::RankId;

/// The kind of an operation, as stored in [`Operations::kinds`].
pub mod kind {
    /// A computation.
    pub const COMPUTE: u8 = 0;
    /// A send.
    pub const SEND: u8 = 1;
    /// A receive.
    pub const RECEIVE: u8 = 2;
    /// A collective whose time is known. It starts with the last rank of its group.
    pub const TIMED: u8 = 4;
}

/// The source of a receive that accepts any, and the tag of one that accepts any.
pub const ANY: i32 = -1;

/// The operations of a rank, by column. The types are those of the Python columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// The kind of each operation; see [`kind`].
    pub kinds: Vec<u8>,
    /// The bytes of each message.
    pub sizes: Vec<i64>,
    /// The duration of each computation and of each timed collective in ps.
    pub durations: Vec<i64>,
    /// The destination or the source of each message; the ranks of a timed collective.
    pub peers: Vec<i32>,
    /// The tag of each message; the number of a timed collective.
    pub tags: Vec<i64>,
    /// The stream that executes the operation.
    pub streams: Vec<i32>,
    /// The start of the dependencies of each operation, and their number.
    pub first_dependency: Vec<i64>,
    /// Operations of the same rank.
    pub dependencies: Vec<i64>,
    /// Whether a dependency is satisfied when the other operation starts; one per dependency.
    pub on_start: Vec<bool>,
}

impl Operations {
    /// Returns no operations.
    #[must_use]
    pub fn new() -> Operations {
        Operations { first_dependency: vec![0], ..Operations::default() }
    }

    /// The number of operations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Appends an operation without dependencies; returns its index.
    pub(crate) fn push(
        &mut self,
        kind: u8,
        amount: i64,
        (peer, tag): (i32, i64),
        stream: i32,
    ) -> i64 {
        let computes = kind == kind::COMPUTE;
        self.kinds.push(kind);
        self.sizes.push(if computes { 0 } else { amount });
        self.durations.push(if computes { amount } else { 0 });
        self.peers.push(peer);
        self.tags.push(tag);
        self.streams.push(stream);
        self.first_dependency.push(self.dependencies.len() as i64);
        self.kinds.len() as i64 - 1
    }

    /// Adds a dependency to the operation that was appended last.
    pub(crate) fn require(&mut self, on: i64) {
        self.dependencies.push(on);
        self.on_start.push(false);
        if let Some(end) = self.first_dependency.last_mut() {
            *end += 1;
        }
    }
}

/// Why a trace is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "WorkloadError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum TraceError {
    /// Columns of different lengths.
    #[error("column `{column}` of {rank} has {length} entries: expected {expected}")]
    #[refusal(kind = "trace_column")]
    Length { rank: RankId, column: &'static str, length: usize, expected: usize },
    /// A value out of range.
    #[error("operation {operation} of {rank} has {column} {value}: expected {expected}")]
    #[refusal(kind = "trace_value")]
    Value {
        rank: RankId,
        operation: usize,
        column: &'static str,
        value: String,
        expected: &'static str,
    },
    /// More operations than the executor numbers.
    #[error("the trace has {operations} operations: expected fewer than {most}")]
    #[refusal(kind = "trace_size")]
    TooLarge { operations: usize, most: u32 },
    /// Text that is not GOAL.
    #[error("line {line}: {problem}: expected {expected}")]
    #[refusal(kind = "goal")]
    Text { line: usize, problem: String, expected: String },
    /// The binary form of GOAL with a fault: of a rank, or of the file.
    #[error("not GOAL in binary form, or damaged: {problem}")]
    #[refusal(kind = "goal")]
    Damaged { rank: Option<RankId>, problem: String },
    /// The binary form of GOAL after a run that saved memory.
    #[error("LogGOPSim has overwritten the file")]
    #[refusal(kind = "goal")]
    Overwritten,
}
