//! The priority of collectives at admission.

use tutti_units::Time;

/// The order of collectives of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// First come, first served.
    Fifo,
    /// Last in, first out: in a backward pass the newest collective is needed first.
    Lifo,
}

/// A collective with chunks that have not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    transfer: usize,
    level: u8,
    since: Time,
    next: u32,
    chunks: u32,
}

/// The collectives of an NPU with chunks that have not started.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    waiting: Vec<Waiting>,
}

impl Entry {
    /// Adds a collective of `chunks` chunks.
    pub(super) fn put(&mut self, transfer: usize, level: u8, chunks: u32, now: Time) {
        self.waiting.push(Waiting { transfer, level, since: now, next: 0, chunks });
    }

    /// The next chunk to start: (transfer, chunk, issued).
    pub(super) fn first(&self, order: Order) -> Option<(usize, u32, Time)> {
        let at = self.at(order)?;
        let Waiting { transfer, next, since, .. } = self.waiting[at];
        Some((transfer, next, since))
    }

    /// Removes the chunk of [`Entry::first`].
    pub(super) fn take(&mut self, order: Order) {
        let Some(at) = self.at(order) else { return };
        self.waiting[at].next += 1;
        if self.waiting[at].next == self.waiting[at].chunks {
            self.waiting.remove(at);
        }
    }

    /// Whether chunks of a collective have not started.
    pub(super) fn waits(&self, transfer: usize) -> bool {
        self.waiting.iter().any(|waiting| waiting.transfer == transfer)
    }

    /// Collectives are in order of arrival, so that positions break ties.
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
