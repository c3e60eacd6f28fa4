//! Programs that repeat the recorded accesses of other programs.
//!
//! A trace has no values: stores store the number of the core, and nothing is checked at the end. It
//! fixes the order of the accesses of each core, and barriers order those of different cores.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::sync::{Barrier, TreeBarrier};
use super::{Array, Core, LINE_WORDS, Memory, Program, ProgramError, Thread, WORD_BYTES};

/// A step of a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Computes for a number of cycles.
    Compute(u64),
    /// Loads the word at an address.
    Load(u64),
    /// Stores to the word at an address.
    Store(u64),
    /// Adds 1 to the word at an address, atomically.
    Update(u64),
    /// Waits until all cores have come to as many barriers.
    Barrier,
}

/// The steps of each core, from core 0 on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trace {
    /// By core.
    pub cores: Vec<Vec<Step>>,
}

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;

/// The most pages that a trace can touch: 256 MiB of words.
pub const MOST_PAGES: usize = 1 << 16;

impl Trace {
    /// Returns the program. Pages of [`PAGE_BYTES`] are placed in memory in the order in which the
    /// cores, the lowest first, touch them.
    ///
    /// # Errors
    /// When there are no cores, an address is not that of a word, cores have different numbers of
    /// barriers, or more than [`MOST_PAGES`] pages are touched.
    pub fn program(&self) -> Result<Program, ProgramError> {
        let cores = u32::try_from(self.cores.len()).unwrap_or(u32::MAX);
        self.check()?;
        let mut pages = BTreeMap::new();
        for address in self.cores.iter().flatten().filter_map(Step::address) {
            let next = pages.len();
            pages.entry(address / PAGE_BYTES).or_insert(next);
        }
        if pages.len() > MOST_PAGES {
            let problem = format!("{} pages of 4 KiB; expected {MOST_PAGES} or fewer", pages.len());
            return Err(ProgramError::Trace { problem });
        }
        let mut memory = Memory::new();
        let words_of_page = usize::try_from(PAGE_BYTES / WORD_BYTES).expect("a page is small");
        let data = memory.zeros(words_of_page * pages.len().max(1));
        let barrier = TreeBarrier::new(&mut memory, cores);
        let place = |address: u64| {
            let page = pages[&(address / PAGE_BYTES)];
            let word = usize::try_from(address % PAGE_BYTES / WORD_BYTES).expect("it is in a page");
            page * words_of_page + word
        };
        let threads = (0..cores).zip(&self.cores).map(|(id, steps)| {
            let steps: Rc<[Placed]> = steps.iter().map(|step| Placed::of(step, place)).collect();
            Thread::new(id, cores, |core| repeat(core, steps, data, barrier))
        });
        Ok(Program {
            threads: threads.collect(),
            memory: memory.into_words(),
            check: Box::new(|_| Ok(())),
        })
    }

    fn check(&self) -> Result<(), ProgramError> {
        let refuse = |problem: String| Err(ProgramError::Trace { problem });
        if self.cores.is_empty() {
            return refuse("no core has a step".to_owned());
        }
        let barriers =
            |steps: &Vec<Step>| steps.iter().filter(|&&step| step == Step::Barrier).count();
        let first = barriers(&self.cores[0]);
        for (core, steps) in self.cores.iter().enumerate() {
            let own = barriers(steps);
            if own != first {
                return refuse(format!(
                    "core {core} has {own} barriers and core 0 has {first}; expected as many on \
                     each core"
                ));
            }
            let unaligned = |address: &u64| !address.is_multiple_of(WORD_BYTES);
            if let Some(address) = steps.iter().filter_map(Step::address).find(unaligned) {
                return refuse(format!(
                    "core {core} accesses {address:#x}; expected a multiple of {WORD_BYTES}"
                ));
            }
        }
        Ok(())
    }
}

impl Step {
    /// The address that it accesses.
    #[must_use]
    pub fn address(&self) -> Option<u64> {
        match *self {
            Step::Load(address) | Step::Store(address) | Step::Update(address) => Some(address),
            Step::Compute(_) | Step::Barrier => None,
        }
    }
}

/// A step with the word that it accesses instead of its address.
#[derive(Clone, Copy)]
enum Placed {
    Compute(u64),
    Load(usize),
    Store(usize),
    Update(usize),
    Barrier,
}

impl Placed {
    fn of(step: &Step, place: impl Fn(u64) -> usize) -> Placed {
        match *step {
            Step::Compute(cycles) => Placed::Compute(cycles),
            Step::Load(address) => Placed::Load(place(address)),
            Step::Store(address) => Placed::Store(place(address)),
            Step::Update(address) => Placed::Update(place(address)),
            Step::Barrier => Placed::Barrier,
        }
    }
}

async fn repeat(core: Core, steps: Rc<[Placed]>, data: Array, barrier: TreeBarrier) {
    let barrier = Barrier::from(barrier);
    for step in steps.iter() {
        match *step {
            Placed::Compute(cycles) => core.compute(cycles),
            Placed::Load(word) => _ = core.load(data.at(word)).await,
            Placed::Store(word) => core.store(data.at(word), u64::from(core.id())).await,
            Placed::Update(word) => _ = core.fetch_add(data.at(word), 1).await,
            Placed::Barrier => barrier.wait(&core).await,
        }
    }
}

const _: () = assert!(PAGE_BYTES.is_multiple_of(WORD_BYTES * LINE_WORDS as u64));
