//! The event queue: by time, first in first out at equal times.
//!
//! A radix heap. Events are in buckets by the highest bit in which their time differs from the time
//! of the last event removed. When its turn comes, a bucket is distributed among the lower ones. An event
//! thus moves at most once per bit, usually once or twice, and always to the end of a bucket. Events of
//! equal time are always in the same bucket in insertion order, without a sequence number.

use tutti_units::Time;

/// Times differ in at most 64 bits; bucket 0 is for no difference.
const BUCKETS: usize = 65;

/// Events of type `E`, taken in order of time. Time never runs backwards.
pub struct EventQueue<E> {
    now: u64,
    buckets: [Vec<(u64, E)>; BUCKETS],
    /// The earliest time in each bucket but bucket 0.
    first: [u64; BUCKETS],
    /// Bit b is set if bucket b is not empty.
    filled: u128,
    /// How many events of bucket 0 have been removed.
    taken: usize,
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> EventQueue<E> {
    /// The empty queue at time zero.
    #[must_use]
    pub fn new() -> Self {
        EventQueue {
            now: 0,
            buckets: std::array::from_fn(|_| Vec::new()),
            first: [u64::MAX; BUCKETS],
            filled: 0,
            taken: 0,
        }
    }

    /// The time of the event removed last.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Time {
        Time::from_ps(self.now)
    }

    /// Schedules an event; one in the past happens now.
    #[inline]
    pub fn push(&mut self, at: Time, event: E) {
        let at = at.ps().max(self.now);
        self.insert(at, event);
    }

    #[inline]
    fn insert(&mut self, at: u64, event: E) {
        let bucket = self.bucket(at);
        self.buckets[bucket].push((at, event));
        self.first[bucket] = self.first[bucket].min(at);
        self.filled |= 1 << bucket;
    }

    /// Removes the next event of the current time, if one is left.
    #[inline]
    pub fn pop(&mut self) -> Option<E> {
        let &(_, event) = self.buckets[0].get(self.taken)?;
        self.taken += 1;
        Some(event)
    }

    /// The remaining events of the current time.
    #[inline]
    pub fn present(&self) -> impl Iterator<Item = E> {
        self.buckets[0][self.taken..].iter().map(|&(_, event)| event)
    }

    /// The bucket of a time relative to the current time.
    #[inline]
    fn bucket(&self, at: u64) -> usize {
        (u64::BITS - (at ^ self.now).leading_zeros()) as usize
    }

    /// The time of the earliest remaining event.
    #[inline]
    #[must_use]
    pub fn earliest(&self) -> Option<Time> {
        if self.taken < self.buckets[0].len() {
            return Some(self.now());
        }
        let lowest = (self.filled & !1).trailing_zeros() as usize;
        self.first.get(lowest).copied().map(Time::from_ps)
    }

    /// Advances to a time that no remaining event precedes.
    pub fn advance_to(&mut self, time: Time) {
        if time.ps() == self.now {
            return;
        }
        self.buckets[0].clear();
        self.taken = 0;
        self.filled &= !1;
        let lowest = self.filled.trailing_zeros() as usize;
        let reached = self.bucket(time.ps());
        self.now = time.ps();
        // The events of higher buckets differ from the new time in the same highest bit.
        if reached < lowest {
            return;
        }
        self.filled &= !(1 << lowest);
        let mut moved = std::mem::take(&mut self.buckets[lowest]);
        self.first[lowest] = u64::MAX;
        for (at, event) in moved.drain(..) {
            self.insert(at, event);
        }
        // Reuses the allocation.
        self.buckets[lowest] = moved;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    /// Removes the next event, current or later.
    fn next(queue: &mut EventQueue<usize>) -> Option<usize> {
        queue.pop().or_else(|| {
            queue.advance_to(queue.earliest()?);
            queue.pop()
        })
    }

    proptest! {
        /// Compared with a heap with sequence numbers; a third of the actions remove an event, some advance to
        /// a time before the next event.
        #[test]
        fn events_come_by_time_then_first_in_first_out(
            actions in prop::collection::vec((0_u8..4, 0_u64..2000, 0_u32..40), 1..400),
        ) {
            let mut queue = EventQueue::new();
            let mut heap = BinaryHeap::new();
            for (sequence, (action, ahead, shift)) in actions.into_iter().enumerate() {
                if action == 0 {
                    let expected = heap.pop().map(|Reverse((at, sequence))| {
                        let _: u64 = at;
                        sequence
                    });
                    prop_assert_eq!(next(&mut queue), expected);
                } else if action == 3 {
                    let earliest = heap.peek().map(|&Reverse((at, _))| Time::from_ps(at));
                    prop_assert_eq!(queue.earliest(), earliest);
                    let ahead = queue.now() + Time::from_ps(ahead);
                    queue.advance_to(earliest.map_or(ahead, |earliest| earliest.min(ahead)));
                } else {
                    let at = queue.now() + Time::from_ps(if shift > 36 { ahead << shift } else { ahead });
                    queue.push(at, sequence);
                    heap.push(Reverse((at.ps(), sequence)));
                }
            }
            while let Some(Reverse((at, sequence))) = heap.pop() {
                prop_assert_eq!(next(&mut queue), Some(sequence));
                prop_assert_eq!(queue.now().ps(), at);
            }
            prop_assert_eq!(next(&mut queue), None);
        }
    }
}
