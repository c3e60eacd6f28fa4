//! What is pending between two ranks: a hash table from (destination, source) to a queue.
//!
//! Neighbouring sources share a block, so that ranks which all send to the same ranks, one after the
//! other, stay within the cache. Nothing is ever removed; blocks whose queues are all empty are left
//! behind when the table grows.

use crate::ids::RankId;

/// The two ends of a queue of nodes; 0 is no node.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(super) struct Queue {
    pub(super) head: u32,
    pub(super) tail: u32,
}

const WIDTH: u32 = 8;
type Block = [Queue; WIDTH as usize];

/// Where a queue is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    block: usize,
    within: usize,
}

/// The table. Its order depends on nothing but the calls made.
pub(super) struct Pairs {
    /// 0 where the block is free.
    keys: Vec<u64>,
    blocks: Vec<Block>,
    used: usize,
}

impl Pairs {
    /// A table with room for a pair or two per rank, within reason.
    pub(super) fn new(ranks: u32) -> Pairs {
        let size = (ranks as usize * 2).next_power_of_two().clamp(64, 1 << 16);
        Pairs { keys: vec![0; size], blocks: vec![Block::default(); size], used: 0 }
    }

    /// Where the queue of messages from `source` to `destination` is, until another one is looked for.
    #[inline]
    pub(super) fn find(&mut self, destination: RankId, source: RankId) -> Place {
        let key = (u64::from(destination.0) << 32 | u64::from(source.0 / WIDTH)) + 1;
        let mut at = probe(&self.keys, key);
        if self.keys[at] == 0 {
            if self.used * 4 >= self.keys.len() * 3 {
                self.grow();
                at = probe(&self.keys, key);
            }
            self.keys[at] = key;
            self.used += 1;
        }
        Place { block: at, within: (source.0 % WIDTH) as usize }
    }

    #[inline]
    pub(super) fn at(&mut self, place: Place) -> &mut Queue {
        &mut self.blocks[place.block][place.within]
    }

    /// Leaves empty blocks behind, and makes the table larger unless that halves it.
    #[cold]
    fn grow(&mut self) {
        let live = self.blocks.iter().filter(|block| **block != Block::default()).count();
        let size = if live * 3 < self.keys.len() { self.keys.len() } else { self.keys.len() * 2 };
        let mut keys = vec![0; size];
        let mut blocks = vec![Block::default(); size];
        for (key, block) in self.keys.iter().zip(&self.blocks) {
            if *block != Block::default() {
                let at = probe(&keys, *key);
                (keys[at], blocks[at]) = (*key, *block);
            }
        }
        (self.keys, self.blocks, self.used) = (keys, blocks, live);
    }

    /// Every pair with something pending, as (destination, source, first node), ordered by rank.
    pub(super) fn pending(&self) -> Vec<(RankId, RankId, u32)> {
        let mut found = Vec::new();
        for (key, block) in self.keys.iter().zip(&self.blocks) {
            for (within, queue) in (0..).zip(block).filter(|(_, queue)| queue.head != 0) {
                let destination = u32::try_from((key - 1) >> 32).unwrap_or(u32::MAX);
                let group = u32::try_from((key - 1) & u64::from(u32::MAX)).unwrap_or(u32::MAX);
                found.push((RankId(destination), RankId(group * WIDTH + within), queue.head));
            }
        }
        found.sort_unstable();
        found
    }
}

/// Where `key` is, or where it belongs.
#[inline]
fn probe(keys: &[u64], key: u64) -> usize {
    let mask = keys.len() - 1;
    let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut at = usize::try_from(mixed >> 32).unwrap_or(0) & mask;
    while keys[at] != key && keys[at] != 0 {
        at = (at + 1) & mask;
    }
    at
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn it_agrees_with_an_ordered_map() {
        let (mut pairs, mut map) = (Pairs::new(128), BTreeMap::new());
        let mut state = 1_u64;
        for count in 1..20_000_u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let pick = |shift: u32| RankId(u32::try_from(state >> shift & 127).unwrap());
            let (destination, source) = (pick(40), pick(50));
            let place = pairs.find(destination, source);
            let queue = pairs.at(place);
            let known = map.entry((destination, source)).or_insert(0);
            assert_eq!(queue.head, *known);
            *known = if count % 3 == 0 { 0 } else { count };
            *queue = Queue { head: *known, tail: *known };
        }
        map.retain(|_, head| *head != 0);
        let listed: Vec<_> = map.into_iter().map(|((d, s), head)| (d, s, head)).collect();
        assert_eq!(pairs.pending(), listed);
    }
}
