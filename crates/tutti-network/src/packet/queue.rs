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
pub(super) struct EventQueue<E> {
    now: u64,
    buckets: [Vec<(u64, E)>; BUCKETS],
    /// Bit b is set if bucket b is not empty.
    filled: u128,
    /// How many events of bucket 0 have been removed.
    taken: usize,
}

impl<E: Copy> EventQueue<E> {
    pub(super) fn new() -> Self {
        EventQueue { now: 0, buckets: std::array::from_fn(|_| Vec::new()), filled: 0, taken: 0 }
    }

    /// The time of the event removed last.
    #[inline]
    pub(super) fn now(&self) -> Time {
        Time::from_ps(self.now)
    }

    /// Schedules an event; one in the past happens now.
    #[inline]
    pub(super) fn push(&mut self, at: Time, event: E) {
        let at = at.ps().max(self.now);
        let bucket = self.bucket(at);
        self.buckets[bucket].push((at, event));
        self.filled |= 1 << bucket;
    }

    /// Removes the next event of the current time, if one is left.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<E> {
        let &(_, event) = self.buckets[0].get(self.taken)?;
        self.taken += 1;
        Some(event)
    }

    /// The remaining events of the current time.
    #[inline]
    pub(super) fn present(&self) -> impl Iterator<Item = E> {
        self.buckets[0][self.taken..].iter().map(|&(_, event)| event)
    }

    /// The bucket of a time relative to the current time.
    #[inline]
    fn bucket(&self, at: u64) -> usize {
        (u64::BITS - (at ^ self.now).leading_zeros()) as usize
    }

    /// Advances to the time of the earliest remaining event, which may be the current time; `None` when the
    /// queue is empty.
    pub(super) fn advance(&mut self) -> Option<()> {
        if self.taken < self.buckets[0].len() {
            return Some(());
        }
        self.buckets[0].clear();
        self.taken = 0;
        self.filled &= !1;
        if self.filled == 0 {
            return None;
        }
        let lowest = self.filled.trailing_zeros() as usize;
        self.filled &= !(1 << lowest);
        let mut moved = std::mem::take(&mut self.buckets[lowest]);
        self.now = moved.iter().map(|&(at, _)| at).min()?;
        for (at, event) in moved.drain(..) {
            let bucket = self.bucket(at);
            self.buckets[bucket].push((at, event));
            self.filled |= 1 << bucket;
        }
        // Reuses the allocation.
        self.buckets[lowest] = moved;
        Some(())
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
            queue.advance()?;
            queue.pop()
        })
    }

    proptest! {
        /// Compared with a heap with sequence numbers; a third of the actions remove an event.
        #[test]
        fn events_come_by_time_then_first_in_first_out(
            actions in prop::collection::vec((0_u8..3, 0_u64..2000, 0_u32..40), 1..400),
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
