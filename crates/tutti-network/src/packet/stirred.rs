//! The links that something has happened to and that are still to be served, taken from the first on.
//!
//! A set of small numbers as bits, 64 to a word, and over it for each 64 words a word that says which of
//! them are not empty, and so on up to a single one: the lowest is found in as many looks as there are
//! levels, two for up to 4,096 links.

/// Bits of a word.
const WIDTH: usize = u64::BITS as usize;

/// A set of links.
pub(super) struct Stirred {
    /// Bits of links, bits of those words, ..., a single word.
    levels: Vec<Box<[u64]>>,
}

impl Stirred {
    /// None of `links` links.
    pub(super) fn none_of(links: usize) -> Stirred {
        let mut levels = Vec::new();
        let mut words = links.div_ceil(WIDTH).max(1);
        loop {
            levels.push(vec![0; words].into());
            if words == 1 {
                return Stirred { levels };
            }
            words = words.div_ceil(WIDTH);
        }
    }

    /// Puts a link in, which may be in already.
    #[inline]
    pub(super) fn put(&mut self, link: u32) {
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

    /// Takes the lowest out.
    #[inline]
    pub(super) fn take_lowest(&mut self) -> Option<u32> {
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
        /// Against a tree; a third of the actions take the lowest.
        #[test]
        fn the_lowest_comes_first(
            links in 1_u32..10_000,
            actions in prop::collection::vec((0_u8..3, 0_u32..10_000), 1..400),
        ) {
            let mut stirred = Stirred::none_of(links as usize);
            let mut tree = BTreeSet::new();
            for (action, link) in actions {
                if action == 0 {
                    prop_assert_eq!(stirred.take_lowest(), tree.pop_first());
                } else {
                    stirred.put(link % links);
                    tree.insert(link % links);
                }
            }
            while let Some(link) = tree.pop_first() {
                prop_assert_eq!(stirred.take_lowest(), Some(link));
            }
            prop_assert_eq!(stirred.take_lowest(), None);
        }
    }
}
