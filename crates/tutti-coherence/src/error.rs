//! Why a chip cannot be, or why a run of it ended early.

use tutti_noc::FlitError;

/// Why a program did not run to its end, and to the right one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "CoherenceRunError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum CoherenceError {
    /// A setting out of its range.
    #[error("`{what}` is {value}: expected {expected}")]
    #[refusal(class = "CoherenceError")]
    OutOfRange { what: &'static str, value: u64, expected: String },
    /// A program for another number of cores.
    #[error(
        "the program has {threads} threads and the fabric {nodes} nodes: expected 1 to {nodes} threads"
    )]
    #[refusal(class = "CoherenceError")]
    Threads { threads: usize, nodes: u32 },
    /// More memory than lines are counted for.
    #[error("the program has {words} words of memory: expected 1 to {most}")]
    #[refusal(class = "CoherenceError")]
    Memory { words: usize, most: u64 },
    /// The fabric does not take the protocol's messages, or is broken.
    #[error(
        "cycle {cycle}: the fabric refused a message: {source}; its settings must be fit for the chip (`SystemSettings::fit`)"
    )]
    Fabric { cycle: u64, source: FlitError },
    /// An access outside of the memory, or not to a word.
    #[error(
        "cycle {cycle}: core {core} accesses {address:#x}: expected a multiple of 8 below {end:#x}"
    )]
    Address { cycle: u64, core: u32, address: u64, end: u64 },
    /// The region of interest begins twice, or ends before it begins.
    #[error("cycle {cycle}: core {core} {what}: expected one `begin`, then one `end`")]
    Region { cycle: u64, core: u32, what: &'static str },
    /// The protocol is broken.
    #[error("cycle {cycle}, line {line:#x}: {problem}")]
    Incoherent { cycle: u64, line: u64, problem: String },
    /// Cores wait for what will not come.
    #[error(
        "cycle {cycle}: no core can go on: {waiting}; a program that waits for what nobody does, or lost messages"
    )]
    Deadlock { cycle: u64, waiting: String },
    /// Packets are under way and none moves.
    #[error(
        "cycle {cycle}: packets are under way in the fabric and none moves; meanwhile {waiting}"
    )]
    FabricStuck { cycle: u64, waiting: String },
    /// Nothing gets done.
    #[error("cycle {cycle}: no access has been done for {patience} cycles: {waiting}")]
    NoProgress { cycle: u64, patience: u64, waiting: String },
    /// It takes too long.
    #[error(
        "not finished after {limit} cycles: {waiting}; a longer program needs a higher `limit`"
    )]
    Endless { limit: u64, waiting: String },
    /// It ended with words it should not have ended with.
    #[error(
        "wrong result after {cycles} cycles: {problem}; as no incoherence was seen, threads race, or the program is wrong"
    )]
    Wrong { cycles: u64, problem: String },
    /// Someone asked for it.
    #[error("the run was stopped at cycle {cycle}")]
    Stopped { cycle: u64 },
}
