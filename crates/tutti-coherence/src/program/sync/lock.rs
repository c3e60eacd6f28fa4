//! Locks. Who finds one taken looks again after a while, so that a lock that is let go does not bring all who
//! wait for it at once (T. Anderson, IEEE TPDS 1990).

use super::super::work;
use super::super::{Core, Memory};

/// How long one waits at first, in cycles, and at most.
const FIRST_WAIT: u64 = 64;
const LONGEST_WAIT: u64 = 1024;

/// How long one waits for each who comes first: about what it takes to pass a lock on.
const WAIT_OF_EACH: u64 = 200;

/// A word that is 1 while somebody holds it: test and test-and-set, waits that double.
#[derive(Clone, Copy, Debug)]
pub struct Spinlock {
    word: u64,
}

impl Spinlock {
    /// The lock in this word; nobody holds it while that is 0.
    #[must_use]
    pub fn at(word: u64) -> Spinlock {
        Spinlock { word }
    }

    /// A lock on a line of its own.
    pub fn new(memory: &mut Memory) -> Spinlock {
        Spinlock::at(memory.word(0))
    }

    /// Waits until nobody holds it, then holds it.
    pub async fn lock(&self, core: &Core) {
        let mut wait = FIRST_WAIT;
        loop {
            core.compute(work::BRANCH);
            if core.load(self.word).await == 0 {
                core.compute(work::BRANCH);
                if core.swap(self.word, 1).await == 0 {
                    return;
                }
            }
            core.compute(wait);
            wait = LONGEST_WAIT.min(2 * wait);
        }
    }

    /// Holds it no longer.
    pub async fn unlock(&self, core: &Core) {
        core.store(self.word, 0).await;
    }
}

/// Who came first holds it first; waits are as long as there are others before one.
#[derive(Clone, Copy, Debug)]
pub struct TicketLock {
    next: u64,
    serving: u64,
}

impl TicketLock {
    /// On two lines of its own, so that a ticket that is drawn disturbs nobody who waits.
    pub fn new(memory: &mut Memory) -> TicketLock {
        TicketLock { next: memory.word(0), serving: memory.word(0) }
    }

    /// Waits for its turn.
    pub async fn lock(&self, core: &Core) {
        let ticket = core.fetch_add(self.next, 1).await;
        loop {
            let serving = core.load(self.serving).await;
            core.compute(work::BRANCH);
            match ticket.wrapping_sub(serving) {
                0 => return,
                // The next one: nobody else looks at the word any more.
                1 => _ = core.spin_while(self.serving, serving).await,
                others => core.compute((others - 1) * WAIT_OF_EACH),
            }
        }
    }

    /// Lets the next one in.
    pub async fn unlock(&self, core: &Core) {
        let serving = core.load(self.serving).await;
        core.compute(work::OPERATION);
        core.store(self.serving, serving.wrapping_add(1)).await;
    }
}
