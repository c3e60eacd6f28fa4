//! Locks and barriers of loads, stores and atomic accesses, with the cost of their lines.

mod barrier;
mod lock;
#[cfg(test)]
mod tests;

pub use barrier::{Barrier, CentralBarrier, TreeBarrier};
pub use lock::{Spinlock, TicketLock};
