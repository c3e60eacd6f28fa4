//! Small parallel kernels with the sharing patterns of well-known benchmarks.
//!
//! Kernels are named after the benchmarks whose sharing pattern they have (`fft_like` after FFT of
//! SPLASH-2), but are not those benchmarks: the code is this project's, the input is drawn from a
//! seed, and runtimes are not comparable. Each kernel computes its actual result in the words that
//! the caches move, and compares it with that of a serial program.

mod barnes;
mod blackscholes;
mod canneal;
mod fft;
mod lu;
mod ocean;
mod radix;
mod swaptions;
#[cfg(test)]
mod tests;
mod water;

use std::ops::Range;

use super::sync::Barrier;
use super::{Array, Core, Kernel, LINE_WORDS, ProgramError, Scale, Thread, work};

/// All kernels.
pub const REGISTRY: &[&dyn Kernel] = &[
    &fft::FftLike,
    &lu::LuLike,
    &radix::RadixLike,
    &ocean::OceanLike,
    &barnes::BarnesLike,
    &water::WaterLike { locked: true },
    &blackscholes::BlackscholesLike,
    &swaptions::SwaptionsLike,
    &canneal::CannealLike { locked: true },
];

/// Returns the kernel of a name.
///
/// # Errors
/// When the name is unknown.
pub fn named(name: &str) -> Result<&'static dyn Kernel, ProgramError> {
    let found = REGISTRY.iter().find(|kernel| kernel.name() == name);
    found.copied().ok_or_else(|| ProgramError::UnknownKernel {
        name: name.to_owned(),
        known: REGISTRY.iter().map(|kernel| kernel.name()).collect::<Vec<_>>().join(", "),
    })
}

/// Rejects zero cores, and more than `most`.
fn divisible(
    kernel: &'static str,
    scale: Scale,
    cores: u32,
    most: usize,
    why: &'static str,
) -> Result<(), ProgramError> {
    if (1..=most).contains(&(cores as usize)) {
        return Ok(());
    }
    Err(ProgramError::Cores { kernel, scale: scale.name(), cores, most, why })
}

/// Returns a thread per core.
fn threads<F>(cores: u32, body: impl Fn(Core) -> F) -> Vec<Thread>
where
    F: Future<Output = ()> + 'static,
{
    (0..cores).map(|id| Thread::new(id, cores, &body)).collect()
}

/// Returns the two factors of a number of cores that are closest to each other, the smaller first.
fn nearly_square(cores: usize) -> [usize; 2] {
    let rows = (1..=cores).rev().find(|rows| rows * rows <= cores && cores.is_multiple_of(*rows));
    rows.map_or([1, cores], |rows| [rows, cores / rows])
}

/// Rewrites a word in each line of a part of an array, so that the core owns the lines.
async fn own(core: &Core, array: &Array, part: Range<usize>) {
    let mut index = part.start;
    while index < part.end {
        let word = core.load(array.at(index)).await;
        core.store(array.at(index), word).await;
        core.compute(work::ROUND);
        index = (index / LINE_WORDS + 1) * LINE_WORDS;
    }
}

/// Reads a word in each line of an array.
async fn touch(core: &Core, array: &Array) {
    for index in (0..array.len()).step_by(LINE_WORDS) {
        core.load(array.at(index)).await;
        core.compute(work::ROUND);
    }
}

/// Checks that all numbers have the expected bits.
fn same_bits(what: &str, got: &[f64], expected: &[f64]) -> Result<(), String> {
    let differs = |(got, expected): (&f64, &f64)| got.to_bits() != expected.to_bits();
    match got.iter().zip(expected).position(differs) {
        None if got.len() == expected.len() => Ok(()),
        None => Err(format!("{} {what} instead of {}", got.len(), expected.len())),
        Some(at) => Err(format!("{what} {at} is {} instead of {}", got[at], expected[at])),
    }
}

/// Checks that all words have the expected values.
fn same_words(what: &str, got: &[u64], expected: &[u64]) -> Result<(), String> {
    match got.iter().zip(expected).position(|(got, expected)| got != expected) {
        None if got.len() == expected.len() => Ok(()),
        None => Err(format!("{} {what} instead of {}", got.len(), expected.len())),
        Some(at) => Err(format!("{what} {at} is {} instead of {}", got[at], expected[at])),
    }
}
