//! Runs a program without timing: threads access one memory in an order drawn from a seed.

use super::random::Random;
use super::{Access, InterleaveError, Program, Thread, WORD_BYTES};

/// Results of a run without timing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// The final memory.
    pub memory: Vec<u64>,
    /// Instructions of all threads; an access, a cycle of work and a spin are one instruction each.
    pub instructions: u64,
    /// Instructions in the region of interest.
    pub region: u64,
    /// Loads and spins.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Atomic accesses.
    pub atomics: u64,
    /// Number of starts and ends of the region of interest.
    pub region_marks: [u64; 2],
}

/// Runs a program to its end, one access at a time, and checks the result. The seed determines the
/// next thread and its number of accesses. A spinning thread resumes when its word changes.
///
/// # Errors
/// When threads deadlock, access an address outside the memory, exceed `limit` accesses, or compute
/// a wrong result.
pub fn interleave(program: Program, seed: u64, limit: u64) -> Result<Tally, InterleaveError> {
    let mut run = Interleaving::new(program.threads, program.memory, seed);
    for access in 0.. {
        if access == limit {
            return Err(InterleaveError::Endless { accesses: limit });
        }
        if !run.turn()? {
            break;
        }
    }
    run.finish()?;
    match (program.check)(&run.tally.memory) {
        Ok(()) => Ok(run.tally),
        Err(problem) => Err(InterleaveError::Wrong { problem }),
    }
}

struct Interleaving {
    threads: Vec<Thread>,
    values: Vec<u64>,
    /// Threads that can run.
    ready: Vec<usize>,
    /// Threads that spin: thread, address, value.
    spinning: Vec<(usize, u64, u64)>,
    random: Random,
    /// Index in `ready` of the running thread, and its remaining accesses.
    turn: (usize, usize),
    /// The maximum number of accesses of a turn.
    longest: usize,
    inside: bool,
    tally: Tally,
}

impl Interleaving {
    fn new(threads: Vec<Thread>, memory: Vec<u64>, seed: u64) -> Interleaving {
        let mut random = Random::new(seed, 0);
        let count = threads.len();
        Interleaving {
            values: vec![0; count],
            ready: (0..count).collect(),
            spinning: Vec::new(),
            // Some seeds interleave finely; others let threads run far ahead.
            longest: 1 << random.below(10),
            random,
            turn: (0, 0),
            inside: false,
            tally: Tally { memory, ..Tally::default() },
            threads,
        }
    }

    /// Performs one access; returns false if no thread can run.
    fn turn(&mut self) -> Result<bool, InterleaveError> {
        if self.ready.is_empty() {
            return Ok(false);
        }
        if self.turn.1 == 0 || self.turn.0 >= self.ready.len() {
            let next = self.random.below(self.ready.len());
            self.turn = (next, 1 + self.random.below(self.longest));
        }
        let thread = self.ready[self.turn.0];
        self.turn.1 -= 1;
        match self.threads[thread].resume(self.values[thread]) {
            Some(access) => self.access(thread, access)?,
            None => self.suspend(thread),
        }
        Ok(true)
    }

    fn suspend(&mut self, thread: usize) {
        self.ready.retain(|&other| other != thread);
        self.turn.1 = 0;
    }

    fn access(&mut self, thread: usize, access: Access) -> Result<(), InterleaveError> {
        self.count_instructions(access);
        match access {
            Access::Load { address } => {
                self.tally.loads += 1;
                self.values[thread] = *self.word(thread, address)?;
            }
            Access::SpinWhile { address, value } => {
                self.tally.loads += 1;
                let word = *self.word(thread, address)?;
                self.values[thread] = word;
                if word == value {
                    self.suspend(thread);
                    self.spinning.push((thread, address, value));
                }
            }
            Access::Store { address, value } => {
                self.tally.stores += 1;
                self.change(thread, address, |_| value)?;
            }
            Access::Swap { address, value } => self.atomic(thread, address, |_| value)?,
            Access::FetchAdd { address, value } => {
                self.atomic(thread, address, |word| word.wrapping_add(value))?;
            }
            Access::CompareSwap { address, expected, value } => {
                let new = |word| if word == expected { value } else { word };
                self.atomic(thread, address, new)?;
            }
            Access::Compute { .. } => {}
            Access::Begin => {
                (self.inside, self.tally.region_marks[0]) = (true, self.tally.region_marks[0] + 1)
            }
            Access::End => {
                (self.inside, self.tally.region_marks[1]) = (false, self.tally.region_marks[1] + 1)
            }
        }
        Ok(())
    }

    #[inline]
    fn count_instructions(&mut self, access: Access) {
        let instructions = match access {
            Access::Compute { cycles } => cycles,
            Access::Begin | Access::End => 0,
            _ => 1,
        };
        self.tally.instructions += instructions;
        self.tally.region += if self.inside { instructions } else { 0 };
    }

    fn atomic(
        &mut self,
        thread: usize,
        address: u64,
        new: impl Fn(u64) -> u64,
    ) -> Result<(), InterleaveError> {
        self.tally.atomics += 1;
        self.values[thread] = self.change(thread, address, new)?;
        Ok(())
    }

    /// Changes a word and wakes the threads that wait for it; returns the previous value.
    fn change(
        &mut self,
        thread: usize,
        address: u64,
        new: impl Fn(u64) -> u64,
    ) -> Result<u64, InterleaveError> {
        let word = self.word(thread, address)?;
        let before = *word;
        let now = new(before);
        *word = now;
        let (ready, values) = (&mut self.ready, &mut self.values);
        self.spinning.retain(|&(waiting, at, value)| {
            let waits = at != address || value == now;
            if !waits {
                values[waiting] = now;
                ready.push(waiting);
            }
            waits
        });
        Ok(before)
    }

    fn word(&mut self, thread: usize, address: u64) -> Result<&mut u64, InterleaveError> {
        let end = self.tally.memory.len() as u64 * WORD_BYTES;
        let index = usize::try_from(address / WORD_BYTES).ok();
        let found = index.and_then(|index| self.tally.memory.get_mut(index));
        found.filter(|_| address.is_multiple_of(WORD_BYTES)).ok_or(InterleaveError::Address {
            thread,
            address,
            end,
        })
    }

    /// Checks that all threads have finished.
    fn finish(&self) -> Result<(), InterleaveError> {
        let waiting = self.spinning.len();
        match self.spinning.first() {
            None => Ok(()),
            Some(&(thread, address, value)) => {
                Err(InterleaveError::Deadlock { waiting, thread, address, value })
            }
        }
    }
}
