//! A queue of events by cycle.

use std::collections::{BTreeMap, VecDeque};

/// Number of cycles with a queue each; small enough for the processor's caches.
const NEAR: u64 = 256;
/// Words of the bit map of these queues.
const WORDS: usize = 4;

/// Events by cycle, and within a cycle in the order in which they were scheduled.
#[derive(Clone, Debug)]
pub(super) struct EventQueue<T> {
    /// Events of the next [`NEAR`] cycles, by cycle modulo that.
    near: Vec<VecDeque<T>>,
    /// A bit per queue: whether it has events.
    occupied: [u64; WORDS],
    /// Events that were scheduled [`NEAR`] or more cycles ahead.
    far: BTreeMap<u64, VecDeque<T>>,
    /// The first cycle of `far`.
    far_first: u64,
}

impl<T> EventQueue<T> {
    pub(super) fn new() -> EventQueue<T> {
        let near = (0..NEAR).map(|_| VecDeque::new()).collect();
        EventQueue { near, occupied: [0; WORDS], far: BTreeMap::new(), far_first: u64::MAX }
    }

    /// Schedules an event for the current or a later cycle.
    #[inline]
    pub(super) fn schedule(&mut self, now: u64, cycle: u64, event: T) {
        debug_assert!(cycle >= now, "an event in a past cycle");
        if cycle - now >= NEAR {
            self.far.entry(cycle).or_default().push_back(event);
            self.far_first = self.far_first.min(cycle);
            return;
        }
        let slot = slot(cycle);
        self.near[slot].push_back(event);
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// Removes the next event of this cycle.
    #[inline]
    pub(super) fn pop(&mut self, now: u64) -> Option<T> {
        if self.far_first <= now {
            return Some(self.pop_far());
        }
        let slot = slot(now);
        let event = self.near[slot].pop_front();
        if event.is_none() {
            self.occupied[slot / 64] &= !(1 << (slot % 64));
        }
        event
    }

    fn pop_far(&mut self) -> T {
        let mut first = self.far.first_entry().expect("there is a first cycle");
        let event = first.get_mut().pop_front().expect("no queue is empty");
        if first.get().is_empty() {
            first.remove();
            self.far_first = self.far.keys().next().copied().unwrap_or(u64::MAX);
        }
        event
    }

    /// Returns the first cycle with an event, from `now` on.
    pub(super) fn next(&self, now: u64) -> Option<u64> {
        let start = slot(now);
        let near = (0..=WORDS).find_map(|step| {
            let word = (start / 64 + step) % WORDS;
            let mut bits = self.occupied[word];
            if step == 0 {
                bits &= u64::MAX << (start % 64);
            } else if step == WORDS {
                bits &= (1 << (start % 64)) - 1;
            }
            (bits != 0).then(|| {
                let at = 64 * word as u64 + u64::from(bits.trailing_zeros());
                now + (at + NEAR - start as u64) % NEAR
            })
        });
        let first = near.unwrap_or(u64::MAX).min(self.far_first);
        (first != u64::MAX).then_some(first.max(now))
    }
}

#[inline]
fn slot(cycle: u64) -> usize {
    usize::try_from(cycle % NEAR).expect("less than NEAR")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_ordered_by_cycle_and_then_by_scheduling() {
        let mut events = EventQueue::new();
        let mut expected = Vec::new();
        let mut random = 1_u64;
        for serial in 0..2000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let cycle = (random >> 33) % 5000;
            events.schedule(0, cycle, (cycle, serial));
            expected.push((cycle, serial));
        }
        expected.sort_unstable();
        let (mut now, mut seen) = (0, Vec::new());
        while let Some(next) = events.next(now) {
            assert!(next >= now);
            now = next;
            while let Some(event) = events.pop(now) {
                assert_eq!(event.0, now);
                seen.push(event);
            }
        }
        assert_eq!(seen, expected);
    }

    #[test]
    fn an_event_scheduled_far_ahead_precedes_later_ones_of_its_cycle() {
        let mut events = EventQueue::new();
        events.schedule(0, 3000, 'a');
        events.schedule(2900, 3000, 'b');
        assert_eq!(events.next(2900), Some(3000));
        assert_eq!(
            [events.pop(3000), events.pop(3000), events.pop(3000)],
            [Some('a'), Some('b'), None]
        );
        assert_eq!(events.next(3000), None);
    }
}
