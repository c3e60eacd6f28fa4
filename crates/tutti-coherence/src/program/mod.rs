//! Programs: threads over a shared memory that compute actual values.
//!
//! A [`Program`] has one [`Thread`] per core, and its initial memory. A thread requests one access
//! at a time and is resumed with the result. The caller determines how long an access takes, and in
//! which order accesses happen: the simulated chip, or [`interleave`], which has no timing. Threads
//! are `async` functions over a [`Core`] that await only accesses.
//!
//! Words are 8 bytes, lines 64; the address of word i is 8 i.

mod error;
mod interleaved;
pub mod kernel;
mod memory;
mod random;
pub mod sync;
#[cfg(test)]
mod tests;
mod thread;
pub mod trace;
mod work;

pub use error::{InterleaveError, ProgramError};
pub use interleaved::{Tally, interleave};
pub use memory::{Array, LINE_WORDS, Memory, WORD_BYTES};
pub use thread::{Access, Core, Thread};

/// Validates the final memory of a program; the error describes what is wrong.
pub type Check = Box<dyn Fn(&[u64]) -> Result<(), String>>;

/// A program for as many cores as it has threads.
pub struct Program {
    /// Thread i runs on core i.
    pub threads: Vec<Thread>,
    /// The initial words; the address of each is 8 times its index.
    pub memory: Vec<u64>,
    /// Validates the final memory.
    pub check: Check,
}

/// Problem size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, tutti_units::Named)]
pub enum Scale {
    /// For tests: about 10^4 instructions.
    Tiny,
    /// About 10^6 instructions.
    #[default]
    Small,
    /// About 10^7 instructions.
    Large,
}

impl Scale {
    /// Returns the scale of a name.
    ///
    /// # Errors
    /// When the name is unknown.
    pub fn named(name: &str) -> Result<Scale, ProgramError> {
        let found = Scale::ALL.into_iter().find(|scale| scale.name() == name);
        found.ok_or_else(|| ProgramError::UnknownScale { name: name.to_owned() })
    }
}

/// A named generator of programs.
pub trait Kernel {
    /// Returns its name in configuration files and results.
    fn name(&self) -> &'static str;

    /// Returns a one-line description.
    fn summary(&self) -> &'static str;

    /// Returns the program for `cores` cores, with input from `seed`.
    ///
    /// # Errors
    /// When the work cannot be divided among that many cores.
    fn program(&self, cores: u32, scale: Scale, seed: u64) -> Result<Program, ProgramError>;
}
