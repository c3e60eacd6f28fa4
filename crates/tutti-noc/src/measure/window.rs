//! Counts of a load in the measurement window, for every engine.

use super::phases::Phases;
use super::statistics::{BatchSums, Histogram, real, rounded_up};

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

/// An offered load and what a window accepted of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    /// Messages created in the window.
    pub(crate) messages: u64,
    /// Their parts.
    pub(crate) parts: u64,
    /// Parts that arrived in the window.
    pub(crate) accepted: u64,
    /// Messages created and not ended when the window starts, and when it ends.
    pub(crate) queued: [u64; 2],
    /// The number of nodes.
    pub(crate) nodes: u64,
    /// The percentage of parts that may be missing because they are in flight.
    pub(crate) tolerated_percent: u64,
}

/// What a window shows of an offered load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Acceptance {
    /// The load was accepted.
    Accepted,
    /// The window is too short to decide: a steady queue explains the missing parts as well.
    Undecided {
        /// The length of a window that decides, as a multiple of this one.
        longer: u64,
    },
    /// The load was not accepted: queues grew.
    Overloaded,
}

impl Offer {
    /// Whether the load was accepted.
    ///
    /// In a steady network, the messages missing at the end of a window are the difference of those
    /// in flight at its start and its end. These are taken as Poisson counts, whose variance is
    /// their mean; the difference varies by no more than the arrivals of the window. A load is
    /// overloaded if more is missing than tolerated, and than three standard deviations. Within
    /// them, it is accepted if nodes have less than a message each in flight, and most have ended.
    pub(crate) fn acceptance(&self) -> Acceptance {
        let Offer { messages, parts, accepted, queued: [before, after], nodes, .. } = *self;
        if accepted * 100 >= parts * (100 - self.tolerated_percent) {
            return Acceptance::Accepted;
        }
        let queued = real(before + after);
        let missing = real(parts - accepted) * real(messages) / real(parts);
        if missing > DEVIATIONS * libm::sqrt(queued.min(real(messages))) {
            return Acceptance::Overloaded;
        }
        if after < nodes && 2 * after <= messages {
            return Acceptance::Accepted;
        }
        // With so many messages, the tolerance is significant in such queues, and in ones that grow
        // by it from zero.
        let tolerated = real(self.tolerated_percent) / 100.0;
        let steady = DEVIATIONS * libm::sqrt(queued) / tolerated;
        let growing = 2.0 * DEVIATIONS * DEVIATIONS / tolerated;
        let longer = rounded_up(steady.max(growing) / real(messages)).max(2);
        Acceptance::Undecided { longer }
    }
}

/// Standard deviations of the messages in flight that may be due to chance.
const DEVIATIONS: f64 = 3.0;

impl Acceptance {
    /// Both loads together: the worse of the two.
    pub(crate) fn and(self, other: Acceptance) -> Acceptance {
        use Acceptance::{Accepted, Overloaded, Undecided};
        match (self, other) {
            (Overloaded, _) | (_, Overloaded) => Overloaded,
            (Undecided { longer }, Undecided { longer: more }) => {
                Undecided { longer: longer.max(more) }
            }
            (Accepted, other) => other,
            (undecided, Accepted) => undecided,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Acceptance, Offer};

    fn of(messages: u64, missing: u64, queued: [u64; 2]) -> Acceptance {
        let (nodes, tolerated_percent) = (16, 3);
        let (parts, accepted) = (messages * 15, (messages - missing) * 15);
        Offer { messages, parts, accepted, queued, nodes, tolerated_percent }.acceptance()
    }

    #[test]
    fn a_load_is_overloaded_if_its_queues_grow_by_more_than_chance() {
        use Acceptance::{Accepted, Overloaded, Undecided};
        // Within the tolerance, whatever is queued; nothing was created.
        assert_eq!(of(1000, 30, [500, 530]), Accepted);
        assert_eq!(of(0, 0, [0, 0]), Accepted);
        // A message in flight of a dozen.
        assert_eq!(of(12, 1, [0, 1]), Accepted);
        // Long windows: 31 of 1000 that were in flight neither before nor long.
        assert_eq!(of(1000, 31, [5, 36]), Overloaded);
        assert_eq!(of(5000, 500, [100, 600]), Overloaded);
        // 20 of 300 missing, where 100 wait anyway: 3 (100 + 120)^(1/2) = 44.
        let undecided = Undecided { longer: 5 }; // 44.5 / 0.03 = 1483 messages
        assert_eq!(of(300, 20, [100, 120]), undecided);
        // None of four has ended: of so few, nothing is known. 2 x 3^2 / 0.03 = 600 messages.
        assert_eq!(of(4, 4, [0, 4]), Undecided { longer: 150 });
        assert_eq!(Accepted.and(undecided), undecided);
        assert_eq!(undecided.and(Undecided { longer: 7 }), Undecided { longer: 7 });
        assert_eq!(undecided.and(Overloaded), Overloaded);
    }
}
