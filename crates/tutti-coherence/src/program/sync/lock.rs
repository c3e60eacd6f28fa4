//! Locks with backoff, so that a release does not cause accesses of all waiting cores at once (T.
//! Anderson, IEEE TPDS 1990).

use super::super::work;
use super::super::{Core, Memory};

/// Initial and maximum backoff in cycles.
const FIRST_BACKOFF: u64 = 64;
const LONGEST_BACKOFF: u64 = 1024;

/// Backoff in cycles per preceding ticket: about the time to pass a lock on.
const BACKOFF_PER_TICKET: u64 = 200;

/// A test-and-test-and-set lock with exponential backoff; its word is 1 while a core holds it.
#[derive(Clone, Copy, Debug)]
pub struct Spinlock {
    word: u64,
}

impl Spinlock {
    /// Returns the lock in the word at this address; 0 is unlocked.
    #[must_use]
    pub fn at(address: u64) -> Spinlock {
        Spinlock { word: address }
    }

    /// Returns a lock on a separate line.
    pub fn new(memory: &mut Memory) -> Spinlock {
        Spinlock::at(memory.word(0))
    }

    /// Acquires the lock.
    pub async fn lock(&self, core: &Core) {
        let mut backoff = FIRST_BACKOFF;
        loop {
            core.compute(work::BRANCH);
            if core.load(self.word).await == 0 {
                core.compute(work::BRANCH);
                if core.swap(self.word, 1).await == 0 {
                    return;
                }
            }
            core.compute(backoff);
            backoff = LONGEST_BACKOFF.min(2 * backoff);
        }
    }

    /// Releases the lock.
    pub async fn unlock(&self, core: &Core) {
        core.store(self.word, 0).await;
    }
}

/// A ticket lock with backoff proportional to the number of preceding tickets.
#[derive(Clone, Copy, Debug)]
pub struct TicketLock {
    next: u64,
    serving: u64,
}

impl TicketLock {
    /// Returns a lock on two separate lines, so that drawing a ticket does not disturb waiting
    /// cores.
    pub fn new(memory: &mut Memory) -> TicketLock {
        TicketLock { next: memory.word(0), serving: memory.word(0) }
    }

    /// Acquires the lock.
    pub async fn lock(&self, core: &Core) {
        let ticket = core.fetch_add(self.next, 1).await;
        loop {
            let serving = core.load(self.serving).await;
            core.compute(work::BRANCH);
            match ticket.wrapping_sub(serving) {
                0 => return,
                // The next in line: no other core spins on the word.
                1 => _ = core.spin_while(self.serving, serving).await,
                others => core.compute((others - 1) * BACKOFF_PER_TICKET),
            }
        }
    }

    /// Releases the lock.
    pub async fn unlock(&self, core: &Core) {
        let serving = core.load(self.serving).await;
        core.compute(work::OPERATION);
        core.store(self.serving, serving.wrapping_add(1)).await;
    }
}
