//! The active links, which have events and are still to be served, lowest first.
//!
//! A hierarchical bit set: 64 links per word, and per 64 words a word that marks the nonempty ones, up to a
//! single word. The lowest link is found with one lookup per level, two for up to 4,096 links.

/// Bits of a word.
const WIDTH: usize = u64::BITS as usize;

/// A set of links.
pub(super) struct ActiveLinks {
    /// Bits of links, bits of those words, ..., a single word.
    levels: Vec<Box<[u64]>>,
}

impl ActiveLinks {
    /// Returns the empty set for `links` links.
    pub(super) fn new(links: usize) -> ActiveLinks {
        let mut levels = Vec::new();
        let mut words = links.div_ceil(WIDTH).max(1);
        loop {
            levels.push(vec![0; words].into());
            if words == 1 {
                return ActiveLinks { levels };
            }
            words = words.div_ceil(WIDTH);
        }
    }

    /// Inserts a link, which may already be in the set.
    #[inline]
    pub(super) fn insert(&mut self, link: u32) {
        let mut at = link as usize;
        for level in &mut self.levels {
            let word = &mut level[at / WIDTH];
            let filled = *word != 0;
            *word |= 1 << (at % WIDTH);
            if filled {
                return;
            }
            at /= WIDTH;
        }
    }

    /// Removes and returns the lowest link.
    #[inline]
    pub(super) fn pop_lowest(&mut self) -> Option<u32> {
        let mut lowest = 0;
        for level in self.levels.iter().rev() {
            let word = level[lowest];
            if word == 0 {
                return None;
            }
            lowest = lowest * WIDTH + word.trailing_zeros() as usize;
        }
        let mut at = lowest;
        for level in &mut self.levels {
            let word = &mut level[at / WIDTH];
            *word &= !(1 << (at % WIDTH));
            if *word != 0 {
                break;
            }
            at /= WIDTH;
        }
        u32::try_from(lowest).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Compared with a tree; a third of the actions remove the lowest.
        #[test]
        fn the_lowest_comes_first(
            links in 1_u32..10_000,
            actions in prop::collection::vec((0_u8..3, 0_u32..10_000), 1..400),
        ) {
            let mut active = ActiveLinks::new(links as usize);
            let mut tree = BTreeSet::new();
            for (action, link) in actions {
                if action == 0 {
                    prop_assert_eq!(active.pop_lowest(), tree.pop_first());
                } else {
                    active.insert(link % links);
                    tree.insert(link % links);
                }
            }
            while let Some(link) = tree.pop_first() {
                prop_assert_eq!(active.pop_lowest(), Some(link));
            }
            prop_assert_eq!(active.pop_lowest(), None);
        }
    }
}
