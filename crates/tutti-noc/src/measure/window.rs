//! Counts of a load in the measurement window, for every engine.

use super::phases::Phases;
use super::statistics::{BatchSums, Histogram};

/// Messages of a load that were created in the window, and the parts that arrived in it: flits of
/// packets, deliveries of multicasts, responses of reductions.
#[derive(Clone)]
pub(crate) struct WindowTally {
    phases: Phases,
    batches: u64,
    /// Messages created in the window.
    pub(crate) created: u64,
    /// Their parts.
    pub(crate) created_parts: u64,
    /// Messages created in the window that have not ended.
    pub(crate) missing: u64,
    /// Parts that arrived in the window, by batch.
    pub(crate) accepted: Vec<u64>,
    /// Latencies of the messages created in the window that have ended.
    pub(crate) latency: BatchSums,
    pub(crate) histogram: Histogram,
}

impl WindowTally {
    /// Counts in a window that is cut into batches.
    pub(crate) fn new(phases: Phases, batches: u32) -> WindowTally {
        WindowTally {
            phases,
            batches: u64::from(batches),
            created: 0,
            created_parts: 0,
            missing: 0,
            accepted: vec![0; batches as usize],
            latency: BatchSums::new(batches),
            histogram: Histogram::default(),
        }
    }

    /// Counts in another window, which contains all messages created so far; none has ended.
    pub(crate) fn restarted(&self, phases: Phases, batches: u32) -> WindowTally {
        let WindowTally { created, created_parts, .. } = *self;
        let fresh = WindowTally::new(phases, batches);
        WindowTally { created, created_parts, missing: created, ..fresh }
    }

    /// The batch that a cycle of the window is in.
    fn batch(&self, cycle: u64) -> Option<usize> {
        let after = self.phases.in_window(cycle)?;
        usize::try_from(after * self.batches / self.phases.measure).ok()
    }

    /// A message of so many parts was created in a cycle.
    #[inline]
    pub(crate) fn create(&mut self, cycle: u64, parts: u64) {
        if self.phases.in_window(cycle).is_some() {
            self.created += 1;
            self.created_parts += parts;
            self.missing += 1;
        }
    }

    /// Parts arrived in a cycle; returns whether it is in the window.
    #[inline]
    pub(crate) fn accept(&mut self, cycle: u64, parts: u64) -> bool {
        let batch = self.batch(cycle);
        if let Some(batch) = batch {
            self.accepted[batch] += parts;
        }
        batch.is_some()
    }

    /// A message ended; returns the batch in which it was created, if that is in the window.
    #[inline]
    pub(crate) fn end(&mut self, created: u64, ended: u64) -> Option<usize> {
        let batch = self.batch(created)?;
        self.missing -= 1;
        self.latency.add(batch, ended - created);
        self.histogram.add(ended - created);
        Some(batch)
    }

    /// Parts that arrived in the window.
    pub(crate) fn accepted_parts(&self) -> u64 {
        self.accepted.iter().sum()
    }

    /// Adds the counts of another load.
    pub(crate) fn join(&mut self, other: &WindowTally) {
        self.created += other.created;
        self.created_parts += other.created_parts;
        self.missing += other.missing;
        self.accepted.iter_mut().zip(&other.accepted).for_each(|(sum, more)| *sum += more);
        self.latency.join(&other.latency);
        self.histogram.join(&other.histogram);
    }
}

/// Whether more than a percentage of the parts created was not accepted.
pub(crate) fn falls_short(accepted: u64, created: u64, tolerated_percent: u64) -> bool {
    accepted * 100 < created * (100 - tolerated_percent)
}
