//! Why there is no such program, and why one came to no end.

/// Why there is no such program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "CoherenceError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum ProgramError {
    /// No kernel has that name.
    #[error("there is no kernel `{name}`: expected one of {known}")]
    UnknownKernel { name: String, known: String },
    /// No scale has that name.
    #[error("there is no scale `{name}`: expected tiny, small or large")]
    UnknownScale { name: String },
    /// A number of cores among which the work cannot be divided.
    #[error(
        "{kernel} at scale {scale} cannot be divided among {cores} cores: expected 1 to {most}, {why}"
    )]
    Cores { kernel: &'static str, scale: &'static str, cores: u32, most: usize, why: &'static str },
}

/// Why a program came to no end, or to a wrong one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum InterleaveError {
    /// All threads that are left wait for a word that nobody will change.
    #[error(
        "all {waiting} threads that are left spin: thread {thread} while word {address:#x} is {value}"
    )]
    Deadlock { waiting: usize, thread: usize, address: u64, value: u64 },
    /// An access outside of the memory, or not to a word.
    #[error("thread {thread} accesses {address:#x}: expected a multiple of 8 below {end:#x}")]
    Address { thread: usize, address: u64, end: u64 },
    /// It takes more accesses than were allowed.
    #[error("not finished after {accesses} accesses")]
    Endless { accesses: u64 },
    /// It ended with words it should not have ended with.
    #[error("wrong result: {problem}")]
    Wrong { problem: String },
}
