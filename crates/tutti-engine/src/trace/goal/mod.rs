//! GOAL, the traces of `LogGOPSim` and ATLAHS, in text and in binary form.
//!
//! Sources: `src/LogGOPSim/txt2bin.re` and `Parser.hpp` of spcl/LogGOPSim (commit 76451de).
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   c: calc 1500 cpu 0
//!   s: send 4096b to 1 tag 7 cpu 0 nic 0
//!   s requires c
//! }
//! rank 1 {
//!   recv 4096b from 0 tag 7
//! }
//! ```
//!
//! Labels are local to a rank, and a dependency may precede the operation that it names.
//!
//! The readers take a file rank by rank, so that the memory does not depend on its size but on the
//! number of operations and the largest rank.

mod binary;
mod blocks;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
mod text;
mod words;
mod write;

pub use binary::read_binary;
pub use text::read;
pub use write::{Losses, Writer};

use super::{TraceError, TraceGraph};

/// Picoseconds of a unit of a computation.
const UNIT: u64 = 1000;

/// A trace, and what is lost in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    /// The operations of all ranks.
    pub graph: TraceGraph,
    /// Operations on another network interface than 0.
    pub other_nics: u64,
}

/// Why a file cannot be read.
#[derive(Debug)]
pub enum ReadError {
    /// The system cannot read it.
    File(std::io::Error),
    /// It is not GOAL.
    Trace(TraceError),
}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> ReadError {
        ReadError::File(error)
    }
}

impl From<TraceError> for ReadError {
    fn from(error: TraceError) -> ReadError {
        ReadError::Trace(error)
    }
}
