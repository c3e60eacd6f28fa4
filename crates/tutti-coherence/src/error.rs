//! Errors of chips and of runs.

use tutti_noc::FlitError;

/// A reason why a run gives no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "CoherenceRunError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum CoherenceError {
    /// A setting out of its range.
    #[error("`{what}` is {value}: expected {expected}")]
    #[refusal(class = "CoherenceError")]
    OutOfRange { what: &'static str, value: u64, expected: String },
    /// The program does not match the number of nodes.
    #[error(
        "the program has {threads} threads and the fabric {nodes} nodes: expected 1 to {nodes} \
         threads"
    )]
    #[refusal(class = "CoherenceError")]
    Threads { threads: usize, nodes: u32 },
    /// The memory exceeds the range of line numbers.
    #[error("the program has {words} words of memory: expected 1 to {most}")]
    #[refusal(class = "CoherenceError")]
    Memory { words: usize, most: u64 },
    /// The fabric rejects a message of the protocol.
    #[error(
        "cycle {cycle}: the fabric refused a message: {source}; `SystemSettings::fit` gives the \
         settings that the chip requires"
    )]
    Fabric { cycle: u64, source: FlitError },
    /// An access outside the memory, or not aligned to a word.
    #[error(
        "cycle {cycle}: core {core} accesses {address:#x}: expected a multiple of 8 below {end:#x}"
    )]
    Address { cycle: u64, core: u32, address: u64, end: u64 },
    /// The program enters or leaves its region of interest out of order.
    #[error("cycle {cycle}: core {core} {what}: expected one `begin`, then one `end`")]
    Region { cycle: u64, core: u32, what: &'static str },
    /// The protocol violates coherence.
    #[error("cycle {cycle}, line {line:#x}: {problem}")]
    Incoherent { cycle: u64, line: u64, problem: String },
    /// All cores wait for events that never occur.
    #[error(
        "cycle {cycle}: no core can continue: {waiting}; the program waits for a store that no \
         core issues, or messages were lost"
    )]
    Deadlock { cycle: u64, waiting: String },
    /// Packets are in flight and none moves.
    #[error("cycle {cycle}: packets are in flight in the fabric and none moves; {waiting}")]
    FabricStuck { cycle: u64, waiting: String },
    /// No access has completed for `patience` cycles.
    #[error("cycle {cycle}: no access has completed for {patience} cycles: {waiting}")]
    NoProgress { cycle: u64, patience: u64, waiting: String },
    /// The run exceeds the limit of cycles.
    #[error(
        "not finished after {limit} cycles: {waiting}; a longer program needs a higher `limit`"
    )]
    Endless { limit: u64, waiting: String },
    /// The final memory fails the check of the program.
    #[error(
        "wrong result after {cycles} cycles: {problem}; the checker found no incoherence, so \
         threads race, or the program is wrong"
    )]
    Wrong { cycles: u64, problem: String },
    /// The caller set the stop flag.
    #[error("the run was stopped at cycle {cycle}")]
    Stopped { cycle: u64 },
}
