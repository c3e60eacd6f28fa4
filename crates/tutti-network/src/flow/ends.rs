//! When the transmissions of active flows end: a heap with the position of each flow, so that an end can change.

use tutti_units::Time;

/// Not in the heap.
const ABSENT: u32 = u32::MAX;

/// When a flow ends; at ties, the flow that started first is first.
type Key = (Time, u64);

/// The ends of flows, by flow index.
#[derive(Default)]
pub(super) struct Ends {
    heap: Vec<(Key, u32)>,
    position: Vec<u32>,
}

impl Ends {
    /// The earliest end.
    #[inline]
    pub(super) fn earliest(&self) -> Option<Time> {
        self.heap.first().map(|&((time, _), _)| time)
    }

    /// Removes the flow that ends first, if it ends by `now`.
    #[inline]
    pub(super) fn pop(&mut self, now: Time) -> Option<u32> {
        let &((time, _), flow) = self.heap.first()?;
        if time > now {
            return None;
        }
        self.position[flow as usize] = ABSENT;
        let last = self.heap.pop()?;
        if !self.heap.is_empty() {
            self.sift_down(0, last);
        }
        Some(flow)
    }

    /// Sets the end of a flow.
    pub(super) fn set(&mut self, flow: u32, time: Time, serial: u64) {
        let places = self.position.len().max(flow as usize + 1);
        self.position.resize(places, ABSENT);
        let entry = ((time, serial), flow);
        let at = self.position[flow as usize];
        if at == ABSENT {
            self.heap.push(entry);
            self.sift_up(self.heap.len() - 1, entry);
        } else if entry < self.heap[at as usize] {
            self.sift_up(at as usize, entry);
        } else {
            self.sift_down(at as usize, entry);
        }
    }

    fn sift_up(&mut self, mut at: usize, entry: (Key, u32)) {
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(at, self.heap[parent]);
            at = parent;
        }
        self.put(at, entry);
    }

    fn sift_down(&mut self, mut at: usize, entry: (Key, u32)) {
        loop {
            let children = 4 * at + 1..(4 * at + 5).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| self.heap[child]) else { break };
            if entry <= self.heap[least] {
                break;
            }
            self.put(at, self.heap[least]);
            at = least;
        }
        self.put(at, entry);
    }

    #[inline]
    fn put(&mut self, at: usize, entry: (Key, u32)) {
        self.heap[at] = entry;
        self.position[entry.1 as usize] = u32::try_from(at).unwrap_or(ABSENT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Compared with a map, with ends set again and again.
        #[test]
        fn flows_end_in_order_of_time(sets in prop::collection::vec((0_u32..20, 0_u64..50), 1..200)) {
            let (mut ends, mut expected) = (Ends::default(), BTreeMap::new());
            for (flow, time) in sets {
                ends.set(flow, Time::from_ps(time), u64::from(flow));
                expected.insert(flow, time);
            }
            let mut order: Vec<_> = expected.into_iter().map(|(flow, time)| (time, flow)).collect();
            order.sort_unstable();
            for (time, flow) in order {
                prop_assert_eq!(ends.earliest(), Some(Time::from_ps(time)));
                prop_assert_eq!(ends.pop(Time::from_ps(time.saturating_sub(1))), if time == 0 { Some(flow) } else { None });
                if time > 0 {
                    prop_assert_eq!(ends.pop(Time::from_ps(time)), Some(flow));
                }
            }
            prop_assert_eq!(ends.pop(Time::MAX), None);
        }
    }
}
