//! Locks and barriers from loads, stores and atomic accesses: what they cost is what their lines cost.

mod barrier;
mod lock;
#[cfg(test)]
mod tests;

pub use barrier::{Barrier, CentralBarrier, TreeBarrier};
pub use lock::{Spinlock, TicketLock};
