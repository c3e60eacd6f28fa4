//! The messages that sources create: in which cycle, and under which serial number.

use super::{Arrivals, Process};

/// The cycle of a message that is never created.
pub(crate) const NEVER: u64 = u64::MAX;

/// The seed of a load of a run: draws for a message are functions of it, the source and the serial
/// number.
pub(crate) fn load_seed(seed: u64, load: usize) -> u64 {
    seed ^ (load as u64) << 48
}

/// The next message of every source of a load.
#[derive(Clone, Debug)]
pub(crate) struct Injectors {
    arrivals: Arrivals,
    /// By source; [`NEVER`] for sources that do not send.
    next: Vec<Created>,
}

/// A message of a source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Created {
    /// The cycle in which it is created; [`NEVER`] if the source sends no more.
    pub(crate) cycle: u64,
    /// Messages that the source has created before it.
    pub(crate) serial: u64,
}

impl Injectors {
    /// An injector for each sender.
    pub(crate) fn new(process: Process, senders: &[u32], seed: u64) -> Injectors {
        let sources = senders.iter().max().map_or(0, |&last| last + 1);
        let mut arrivals = Arrivals::new(process, sources, seed);
        let mut next = vec![Created { cycle: NEVER, serial: 0 }; sources as usize];
        for &sender in senders {
            next[sender as usize].cycle = arrivals.next(sender, 0).unwrap_or(NEVER);
        }
        Injectors { arrivals, next }
    }

    /// The cycle in which a source creates its next message, or [`NEVER`].
    #[inline]
    pub(crate) fn next_at(&self, source: u32) -> u64 {
        self.next.get(source as usize).map_or(NEVER, |next| next.cycle)
    }

    /// The first cycle in which a source creates a message, or [`NEVER`].
    pub(crate) fn earliest(&self) -> u64 {
        self.next.iter().map(|next| next.cycle).min().unwrap_or(NEVER)
    }

    /// Takes the next message of a source, which has one.
    #[inline]
    pub(crate) fn take(&mut self, source: u32) -> Created {
        let next = &mut self.next[source as usize];
        let taken = *next;
        next.cycle = self.arrivals.next(source, taken.cycle + 1).unwrap_or(NEVER);
        next.serial += 1;
        taken
    }

    /// One more than the last source that sends.
    pub(crate) fn sources(&self) -> u32 {
        u32::try_from(self.next.len()).expect("sources are counted in 32 bits")
    }

    /// Visits the source and serial number of each message before `end` that has not been taken.
    pub(crate) fn for_each_before(&self, end: u64, mut visit: impl FnMut(u32, u64)) {
        let mut rest = self.clone();
        for source in 0..self.sources() {
            while rest.next_at(source) < end {
                visit(source, rest.take(source).serial);
            }
        }
    }
}
