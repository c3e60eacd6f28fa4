//! Cores and the accesses that they wait for.

use super::program::{Access, LINE_WORDS, Thread, WORD_BYTES};
use super::run::MissKind;

/// An access in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) access: Access,
    /// Index of its word in memory.
    pub(super) word: usize,
    pub(super) line: u32,
    /// Whether it requires write permission.
    pub(super) write: bool,
    /// The cycle in which it started, or, of a spin, in which its last read started.
    pub(super) issued: u64,
}

impl Pending {
    /// Returns an access that starts now.
    ///
    /// # Errors
    /// The address, if it is unaligned or beyond `words` words.
    pub(super) fn new(access: Access, words: usize, now: u64) -> Result<Pending, u64> {
        let (address, write) = match access {
            Access::Load { address } | Access::SpinWhile { address, .. } => (address, false),
            Access::Store { address, .. }
            | Access::Swap { address, .. }
            | Access::FetchAdd { address, .. }
            | Access::CompareSwap { address, .. } => (address, true),
            Access::Compute { .. } | Access::Begin | Access::End => {
                unreachable!("not a memory access")
            }
        };
        let word = usize::try_from(address / WORD_BYTES).unwrap_or(usize::MAX);
        if address % WORD_BYTES != 0 || word >= words {
            return Err(address);
        }
        let line = u32::try_from(word / LINE_WORDS).expect("lines are counted in 32 bits");
        Ok(Pending { access, word, line, write, issued: now })
    }

    /// Returns the new value of the word, if the access writes.
    #[inline]
    pub(super) fn new_value(&self, old: u64) -> Option<u64> {
        match self.access {
            Access::Store { value, .. } | Access::Swap { value, .. } => Some(value),
            Access::FetchAdd { value, .. } => Some(old.wrapping_add(value)),
            Access::CompareSwap { expected, value, .. } => (old == expected).then_some(value),
            _ => None,
        }
    }

    /// Describes the access in errors.
    pub(super) fn describe(&self) -> String {
        let address = self.word * 8;
        match self.access {
            Access::SpinWhile { value, .. } => format!("spins while {address:#x} is {value}"),
            _ if self.write => format!("waits to write {address:#x}"),
            _ => format!("waits to read {address:#x}"),
        }
    }
}

/// An access that misses in the core's caches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Miss {
    pub(super) line: u32,
    pub(super) write: bool,
    pub(super) kind: MissKind,
    /// Serial number, unique over all cores, from 1.
    pub(super) serial: u64,
    pub(super) issued: u64,
    /// The cycle in which the lookup in the core's caches ended.
    pub(super) lookup_done: u64,
    /// The cycle in which the request was first sent.
    pub(super) sent: u64,
}

/// A core.
#[derive(Default)]
pub(super) struct Core {
    /// `None` once the thread has finished.
    pub(super) thread: Option<Thread>,
    /// The result of the last access, for the thread.
    pub(super) value: u64,
    pub(super) pending: Option<Pending>,
    pub(super) miss: Option<Miss>,
    /// The cycle since which the core spins on an unchanged copy.
    pub(super) spinning: Option<u64>,
}
