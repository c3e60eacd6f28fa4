//! Which collective's next chunk goes first.

use tutti_units::Time;

/// The order of collectives of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// First come, first served.
    Fifo,
    /// The newest first: in a backward pass that is the one that is needed first.
    Lifo,
}

/// A collective with chunks that have not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    transfer: usize,
    level: u8,
    since: Time,
    next: u32,
    chunks: u32,
}

/// The collectives of an NPU that have chunks left to begin.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    waiting: Vec<Waiting>,
}

impl Entry {
    /// A collective of so many chunks.
    pub(super) fn put(&mut self, transfer: usize, level: u8, chunks: u32, now: Time) {
        self.waiting.push(Waiting { transfer, level, since: now, next: 0, chunks });
    }

    /// The collective whose chunk comes next, and which chunk of it: (transfer, chunk, issued).
    pub(super) fn first(&self, order: Order) -> Option<(usize, u32, Time)> {
        let at = self.at(order)?;
        let Waiting { transfer, next, since, .. } = self.waiting[at];
        Some((transfer, next, since))
    }

    /// Takes what [`Entry::first`] named.
    pub(super) fn take(&mut self, order: Order) {
        let Some(at) = self.at(order) else { return };
        self.waiting[at].next += 1;
        if self.waiting[at].next == self.waiting[at].chunks {
            self.waiting.remove(at);
        }
    }

    /// They stand in the order in which they came, so that ties need no more than their position.
    fn at(&self, order: Order) -> Option<usize> {
        let level = self.waiting.iter().map(|waiting| waiting.level).max()?;
        let mut of_level = self.waiting.iter().enumerate().filter(|(_, w)| w.level == level);
        match order {
            Order::Fifo => of_level.next(),
            Order::Lifo => of_level.next_back(),
        }
        .map(|(at, _)| at)
    }
}
