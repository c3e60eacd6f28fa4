//! Cores: what each waits for.

use super::program::{Access, LINE_WORDS, Thread, WORD_BYTES};
use super::run::MissKind;

/// An access that is not done yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) access: Access,
    /// The place of its word in memory.
    pub(super) word: usize,
    pub(super) line: u32,
    /// Whether it needs the line exclusively.
    pub(super) write: bool,
    /// The cycle in which it was begun, or, after a spin, begun again.
    pub(super) issued: u64,
}

impl Pending {
    /// An access to memory, in this cycle; none if it leaves a memory of so many words, or the words.
    pub(super) fn new(access: Access, words: usize, now: u64) -> Result<Pending, u64> {
        let (address, write) = match access {
            Access::Load { address } | Access::SpinWhile { address, .. } => (address, false),
            Access::Store { address, .. }
            | Access::Swap { address, .. }
            | Access::FetchAdd { address, .. }
            | Access::CompareSwap { address, .. } => (address, true),
            Access::Compute { .. } | Access::Begin | Access::End => unreachable!("not to memory"),
        };
        let word = usize::try_from(address / WORD_BYTES).unwrap_or(usize::MAX);
        if address % WORD_BYTES != 0 || word >= words {
            return Err(address);
        }
        let line = u32::try_from(word / LINE_WORDS).expect("lines are counted in 32 bits");
        Ok(Pending { access, word, line, write, issued: now })
    }

    /// What its word becomes, if it is written.
    #[inline]
    pub(super) fn new_value(&self, old: u64) -> Option<u64> {
        match self.access {
            Access::Store { value, .. } | Access::Swap { value, .. } => Some(value),
            Access::FetchAdd { value, .. } => Some(old.wrapping_add(value)),
            Access::CompareSwap { expected, value, .. } => (old == expected).then_some(value),
            _ => None,
        }
    }

    /// For errors.
    pub(super) fn describe(&self) -> String {
        let address = self.word * 8;
        match self.access {
            Access::SpinWhile { value, .. } => format!("spins while {address:#x} is {value}"),
            _ if self.write => format!("waits to write {address:#x}"),
            _ => format!("waits to read {address:#x}"),
        }
    }
}

/// An access that went to the network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Miss {
    pub(super) line: u32,
    pub(super) write: bool,
    pub(super) kind: MissKind,
    /// Which one, over all cores, from 1.
    pub(super) serial: u64,
    pub(super) issued: u64,
    /// The cycle in which the core's own caches had been looked into.
    pub(super) looked: u64,
    /// The cycle in which the request was sent first.
    pub(super) sent: u64,
}

/// A core.
#[derive(Default)]
pub(super) struct Core {
    /// None once it is finished.
    pub(super) thread: Option<Thread>,
    pub(super) answer: u64,
    pub(super) pending: Option<Pending>,
    pub(super) miss: Option<Miss>,
    /// Since when it spins on a copy that does not change.
    pub(super) spinning: Option<u64>,
}
