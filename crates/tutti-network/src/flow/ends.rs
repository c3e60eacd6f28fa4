//! When the transmissions of active flows end: a tree of minima over all flows. A solution changes the ends of
//! many flows at once, so minima are computed when the earliest end is needed.

use tutti_units::Time;

/// When a flow ends, or a time before; at ties, the flow that started first is first.
type Key = (Time, u64);

/// The key of a flow that is not transmitted.
const ABSENT: Key = (Time::MAX, u64::MAX);

/// How many keys a minimum is computed from.
const CHILDREN: u32 = 16;

/// The minima of [`CHILDREN`] keys each.
#[derive(Default)]
struct Minima {
    all: Vec<Key>,
    /// Those to compute again.
    changed: Vec<u32>,
    is_changed: Vec<bool>,
}

/// The ends of flows, by flow index.
#[derive(Default)]
pub(super) struct Ends {
    /// The key of each flow.
    keys: Vec<Key>,
    /// The minima of keys, then of minima, up to a single one.
    levels: Vec<Minima>,
}

impl Ends {
    /// The first key, if its time is at most `until`, and its flow.
    #[inline]
    pub(super) fn first(&mut self, until: Time) -> Option<(Time, u32)> {
        let first = self.least();
        if first == ABSENT || first.0 > until {
            return None;
        }
        let mut at = 0;
        let (_, lower) = self.levels.split_last()?;
        for keys in lower.iter().rev().map(|level| &level.all).chain([&self.keys]) {
            at *= CHILDREN as usize;
            at += keys[at..].iter().position(|&key| key == first)?;
        }
        Some((first.0, u32::try_from(at).ok()?))
    }

    /// Removes a flow.
    pub(super) fn remove(&mut self, flow: u32) {
        self.keys[flow as usize] = ABSENT;
        self.levels[0].mark(flow);
    }

    /// Sets the end of a flow.
    #[inline]
    pub(super) fn set(&mut self, flow: u32, time: Time, serial: u64) {
        if flow as usize >= self.keys.len() {
            self.grow(flow as usize + 1);
        }
        self.keys[flow as usize] = (time, serial);
        self.levels[0].mark(flow);
    }

    /// Makes place for the keys of flows.
    fn grow(&mut self, flows: usize) {
        let children = CHILDREN as usize;
        let mut count = flows.max(2 * self.keys.len()).next_multiple_of(children);
        self.keys.resize(count, ABSENT);
        let mut height = 0;
        while count > 1 {
            count = count.div_ceil(children);
            if height == self.levels.len() {
                self.levels.push(Minima::default());
            }
            let level = &mut self.levels[height];
            level.all.resize(count, ABSENT);
            level.is_changed.resize(count, false);
            height += 1;
        }
        (0..).zip(&self.keys).step_by(children).for_each(|(flow, _)| self.levels[0].mark(flow));
    }

    /// The least key.
    #[inline]
    fn least(&mut self) -> Key {
        if self.levels.first().is_some_and(|level| !level.changed.is_empty()) {
            self.refresh();
        }
        self.levels.last().map_or(ABSENT, |top| top.all[0])
    }

    /// Computes the minima of changed keys.
    fn refresh(&mut self) {
        let Ends { keys, levels } = self;
        for height in 0..levels.len() {
            let (lower, upper) = levels.split_at_mut(height);
            let Some((level, above)) = upper.split_first_mut() else { break };
            level.refresh(lower.last().map_or(&*keys, |lower| &lower.all), above.first_mut());
        }
    }
}

impl Minima {
    /// Marks the minimum of a child.
    #[inline]
    fn mark(&mut self, child: u32) {
        let parent = child / CHILDREN;
        if !std::mem::replace(&mut self.is_changed[parent as usize], true) {
            self.changed.push(parent);
        }
    }

    /// Computes the marked minima, and marks those of the level above.
    fn refresh(&mut self, keys: &[Key], mut above: Option<&mut Minima>) {
        let Minima { all, changed, is_changed } = self;
        for group in changed.drain(..) {
            let place = group as usize;
            is_changed[place] = false;
            let start = place * CHILDREN as usize;
            let end = keys.len().min(start + CHILDREN as usize);
            all[place] = keys[start..end].iter().copied().fold(ABSENT, Key::min);
            if let Some(above) = &mut above {
                above.mark(group);
            }
        }
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
                let end = Time::from_ps(time);
                prop_assert_eq!(ends.first(Time::MAX), Some((end, flow)));
                prop_assert_eq!(ends.first(end), Some((end, flow)));
                if time > 0 {
                    prop_assert_eq!(ends.first(Time::from_ps(time - 1)), None);
                }
                ends.remove(flow);
            }
            prop_assert_eq!(ends.first(Time::MAX), None);
        }
    }
}
