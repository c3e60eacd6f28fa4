//! A timing wheel: the events due in each cycle.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Items due within a bounded number of cycles, a list for each cycle.
#[derive(Clone, Debug)]
pub(super) struct Wheel<T> {
    slots: Vec<Vec<T>>,
    mask: usize,
    /// How many items are in all lists together.
    count: usize,
}

impl<T> Wheel<T> {
    /// For items due at most `longest` cycles ahead.
    pub(super) fn new(longest: u64) -> Wheel<T> {
        let size = usize::try_from(longest + 1).expect("delays are bounded").next_power_of_two();
        Wheel { slots: (0..size).map(|_| Vec::new()).collect(), mask: size - 1, count: 0 }
    }

    /// Item is due in `cycle`, which is after the one now and at most the longest ahead.
    #[inline]
    pub(super) fn push(&mut self, cycle: u64, item: T) {
        self.count += 1;
        self.slots[slot(cycle) & self.mask].push(item);
    }

    /// Takes the list of a cycle. It is given back empty by [`Wheel::restore`], so that its memory
    /// is used again.
    #[inline]
    pub(super) fn take(&mut self, cycle: u64) -> Vec<T> {
        let items = std::mem::take(&mut self.slots[slot(cycle) & self.mask]);
        self.count -= items.len();
        items
    }

    #[inline]
    pub(super) fn restore(&mut self, cycle: u64, mut items: Vec<T>) {
        items.clear();
        self.slots[slot(cycle) & self.mask] = items;
    }

    /// Whether anything is due in a cycle.
    #[inline]
    pub(super) fn has(&self, cycle: u64) -> bool {
        !self.slots[slot(cycle) & self.mask].is_empty()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl<T: PartialEq> Wheel<T> {
    /// Removes an item that is due in a cycle; returns whether it was there.
    fn remove(&mut self, cycle: u64, item: &T) -> bool {
        let items = &mut self.slots[slot(cycle) & self.mask];
        let place = items.iter().position(|other| other == item);
        if let Some(place) = place {
            items.swap_remove(place);
            self.count -= 1;
        }
        place.is_some()
    }
}

/// Numbers due at any time: a wheel for the near future, a heap for the rest.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    near: Wheel<u32>,
    far: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Calendar {
    const NEAR: u64 = 1023;

    pub(super) fn new() -> Calendar {
        Calendar { near: Wheel::new(Calendar::NEAR), far: BinaryHeap::new() }
    }

    /// A number is due in `cycle`, not before the one after `now`.
    #[inline]
    pub(super) fn push(&mut self, now: u64, cycle: u64, number: u32) {
        if cycle - now <= Calendar::NEAR {
            self.near.push(cycle, number);
        } else {
            self.far.push(Reverse((cycle, number)));
        }
    }

    /// Removes a number, which is due once, in a cycle.
    pub(super) fn remove(&mut self, cycle: u64, number: u32) {
        if !self.near.remove(cycle, &number) {
            self.far.retain(|due| due.0.1 != number);
        }
    }

    /// Takes the events due in a cycle; the list is returned by [`Wheel::restore`].
    #[inline]
    pub(super) fn take(&mut self, cycle: u64) -> Vec<u32> {
        let mut due = self.near.take(cycle);
        while let Some(&Reverse((when, number))) = self.far.peek() {
            if when > cycle {
                break;
            }
            self.far.pop();
            due.push(number);
        }
        due
    }

    #[inline]
    pub(super) fn restore(&mut self, cycle: u64, items: Vec<u32>) {
        self.near.restore(cycle, items);
    }

    /// The first cycle, from `now` on, in which anything is due.
    pub(super) fn next(&self, now: u64) -> Option<u64> {
        let far = self.far.peek().map(|first| first.0.0);
        if self.near.is_empty() {
            return far;
        }
        let near = (now..=now + Calendar::NEAR).find(|&cycle| self.near.has(cycle));
        near.into_iter().chain(far).min()
    }
}

/// The low bits of a cycle.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "only low bits are used")]
fn slot(cycle: u64) -> usize {
    cycle as usize
}
