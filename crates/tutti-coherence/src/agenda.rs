//! What is to happen in which cycle.

use std::collections::{BTreeMap, VecDeque};

/// Cycles for which there is a queue each: so few that they stay in the processor's caches.
const NEAR: u64 = 256;
/// Words with a bit for each.
const WORDS: usize = 4;

/// Events by cycle; those of a cycle in the order in which they were put down.
#[derive(Clone, Debug)]
pub(super) struct Agenda<T> {
    /// Events of the next [`NEAR`] cycles, by cycle modulo that.
    near: Vec<VecDeque<T>>,
    /// A bit for each of these queues that is not empty.
    used: [u64; WORDS],
    /// Events farther off than that when they were put down.
    far: BTreeMap<u64, VecDeque<T>>,
    /// The first cycle of `far`.
    far_first: u64,
}

impl<T> Agenda<T> {
    pub(super) fn new() -> Agenda<T> {
        let near = (0..NEAR).map(|_| VecDeque::new()).collect();
        Agenda { near, used: [0; WORDS], far: BTreeMap::new(), far_first: u64::MAX }
    }

    /// Puts an event down for a cycle that is not over.
    #[inline]
    pub(super) fn put(&mut self, now: u64, cycle: u64, event: T) {
        debug_assert!(cycle >= now, "an event for a cycle that is over");
        if cycle - now >= NEAR {
            self.far.entry(cycle).or_default().push_back(event);
            self.far_first = self.far_first.min(cycle);
            return;
        }
        let place = place(cycle);
        self.near[place].push_back(event);
        self.used[place / 64] |= 1 << (place % 64);
    }

    /// The next event of this cycle.
    #[inline]
    pub(super) fn pop(&mut self, now: u64) -> Option<T> {
        if self.far_first <= now {
            return Some(self.pop_far());
        }
        let place = place(now);
        let event = self.near[place].pop_front();
        if event.is_none() {
            self.used[place / 64] &= !(1 << (place % 64));
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

    /// The first cycle, from this one on, for which there is an event.
    pub(super) fn next(&self, now: u64) -> Option<u64> {
        let start = place(now);
        let near = (0..=WORDS).find_map(|step| {
            let word = (start / 64 + step) % WORDS;
            let mut bits = self.used[word];
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
fn place(cycle: u64) -> usize {
    usize::try_from(cycle % NEAR).expect("less than NEAR")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_the_order_of_their_cycles_and_then_as_put_down() {
        let mut agenda = Agenda::new();
        let mut expected = Vec::new();
        let mut draw = 1_u64;
        for serial in 0..2000_u64 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let cycle = (draw >> 33) % 5000;
            agenda.put(0, cycle, (cycle, serial));
            expected.push((cycle, serial));
        }
        expected.sort_unstable();
        let (mut now, mut seen) = (0, Vec::new());
        while let Some(next) = agenda.next(now) {
            assert!(next >= now);
            now = next;
            while let Some(event) = agenda.pop(now) {
                assert_eq!(event.0, now);
                seen.push(event);
            }
        }
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_was_far_when_put_down_comes_before_what_was_put_down_later() {
        let mut agenda = Agenda::new();
        agenda.put(0, 3000, 'a');
        agenda.put(2900, 3000, 'b');
        assert_eq!(agenda.next(2900), Some(3000));
        assert_eq!(
            [agenda.pop(3000), agenda.pop(3000), agenda.pop(3000)],
            [Some('a'), Some('b'), None]
        );
        assert_eq!(agenda.next(3000), None);
    }
}
