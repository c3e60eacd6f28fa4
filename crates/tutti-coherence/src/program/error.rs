//! Errors of programs.

/// A reason why a program cannot be generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "CoherenceError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum ProgramError {
    /// The kernel is unknown.
    #[error("there is no kernel `{name}`: expected one of {known}")]
    UnknownKernel { name: String, known: String },
    /// The scale is unknown.
    #[error("there is no scale `{name}`: expected tiny, small or large")]
    UnknownScale { name: String },
    /// The work cannot be divided among that many cores.
    #[error(
        "{kernel} at scale {scale} cannot be divided among {cores} cores: expected 1 to {most}, \
         {why}"
    )]
    Cores { kernel: &'static str, scale: &'static str, cores: u32, most: usize, why: &'static str },
    /// A trace that no program can follow.
    #[error("trace: {problem}")]
    Trace { problem: String },
}

/// A reason why a program does not finish, or has a wrong result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum InterleaveError {
    /// All unfinished threads wait for a word that no thread will change.
    #[error(
        "all {waiting} unfinished threads spin: thread {thread} while word {address:#x} is {value}"
    )]
    Deadlock { waiting: usize, thread: usize, address: u64, value: u64 },
    /// An access outside the memory, or not aligned to a word.
    #[error("thread {thread} accesses {address:#x}: expected a multiple of 8 below {end:#x}")]
    Address { thread: usize, address: u64, end: u64 },
    /// The program exceeds the limit of accesses.
    #[error("not finished after {accesses} accesses")]
    Endless { accesses: u64 },
    /// The final memory fails the check of the program.
    #[error("wrong result: {problem}")]
    Wrong { problem: String },
}
