//! What cores execute: threads over a shared memory, whose values are computed for real.
//!
//! A [`Program`] has one [`Thread`] per core and the words it begins with. A thread asks for one access
//! at a time and is resumed with the answer, so whoever runs it decides how long an access takes and in
//! which order accesses happen: the simulated chip, or [`interleave`], which only computes. Threads are
//! written as `async` functions over a [`Core`]; nothing is awaited in them but accesses.
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
mod work;

pub use error::{InterleaveError, ProgramError};
pub use interleaved::{Tally, interleave};
pub use memory::{Array, LINE_WORDS, Memory, WORD_BYTES};
pub use thread::{Access, Core, Thread};

/// Whether the words that a program ended with are right; says what is wrong otherwise.
pub type Check = Box<dyn Fn(&[u64]) -> Result<(), String>>;

/// A program for so many cores as it has threads.
pub struct Program {
    /// Thread i runs on core i.
    pub threads: Vec<Thread>,
    /// The words before it begins; the address of each is 8 times its index.
    pub memory: Vec<u64>,
    /// Of the words in the end.
    pub check: Check,
}

/// How much work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, tutti_units::Named)]
pub enum Scale {
    /// For tests: some 10^4 instructions.
    Tiny,
    /// Some 10^6 instructions.
    #[default]
    Small,
    /// Some 10^7 instructions.
    Large,
}

impl Scale {
    /// The one of that name.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<Scale, ProgramError> {
        let found = Scale::ALL.into_iter().find(|scale| scale.name() == name);
        found.ok_or_else(|| ProgramError::UnknownScale { name: name.to_owned() })
    }
}

/// A program by name.
pub trait Kernel {
    /// Its name in configuration files and results.
    fn name(&self) -> &'static str;

    /// One sentence for lists.
    fn summary(&self) -> &'static str;

    /// The program for so many cores; the seed draws its input.
    ///
    /// # Errors
    /// When it cannot be divided among so many cores.
    fn program(&self, cores: u32, scale: Scale, seed: u64) -> Result<Program, ProgramError>;
}
