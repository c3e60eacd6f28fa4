//! The pending messages between two ranks: a hash table from (destination, source) to a queue.
//!
//! Neighbouring sources share a block, so that ranks that send to the same ranks in turn stay
//! within the cache. Entries are never removed; blocks whose queues are all empty are dropped when
//! the table grows.

use tutti_units::ids::RankId;

/// The first and last node of a queue; 0 is the null node.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(super) struct Queue {
    pub(super) head: u32,
    pub(super) tail: u32,
}

const WIDTH: u32 = 7;

/// Queues from neighbouring sources to one destination; the size of a cache line.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Block {
    /// 0 if the block is free.
    key: u64,
    queues: [Queue; WIDTH as usize],
}

impl Block {
    fn is_empty(&self) -> bool {
        self.queues.iter().all(|queue| queue.head == 0)
    }
}

/// The position of a queue.
#[derive(Clone, Copy, Default)]
pub(super) struct QueueIndex {
    block: usize,
    within: usize,
}

/// The table. Its order depends only on the calls.
pub(super) struct Pairs {
    blocks: Vec<Block>,
    used: usize,
}

impl Pairs {
    /// Returns a small table: few pairs of most schedules are pending at a time, and a table that
    /// fits into the first cache is faster, although it drops blocks more often.
    pub(super) fn new() -> Pairs {
        Pairs { blocks: vec![Block::default(); 256], used: 0 }
    }

    /// Reserves capacity, so that this many queues can be looked up without moving any.
    #[inline]
    pub(super) fn reserve(&mut self, queues: usize) {
        while (self.used + queues) * 4 > self.blocks.len() * 3 {
            self.grow();
        }
    }

    /// Prefetches the queues of pairs (destination, source): without a branch that depends on one,
    /// the processor loads many at a time.
    #[inline]
    pub(super) fn touch(&self, pairs: impl Iterator<Item = (RankId, RankId)>) {
        let at = |pair: (RankId, RankId)| home(key(pair.0, pair.1)) & (self.blocks.len() - 1);
        let keys = pairs.map(|pair| self.blocks[at(pair)].key);
        std::hint::black_box(keys.fold(0, std::ops::BitXor::bitxor));
    }

    /// Returns the position of the queue of messages to `destination` from `source`. It is valid
    /// until a lookup exceeds the reserved capacity.
    #[inline]
    pub(super) fn find(&mut self, (destination, source): (RankId, RankId)) -> QueueIndex {
        let within = source.0 % WIDTH;
        let key = key(destination, source);
        let mut at = probe(&self.blocks, key);
        if self.blocks[at].key == 0 {
            if self.used * 4 >= self.blocks.len() * 3 {
                self.grow();
                at = probe(&self.blocks, key);
            }
            self.blocks[at].key = key;
            self.used += 1;
        }
        QueueIndex { block: at, within: within as usize }
    }

    #[inline]
    pub(super) fn at(&mut self, place: QueueIndex) -> &mut Queue {
        &mut self.blocks[place.block].queues[place.within]
    }

    /// Drops empty blocks, and enlarges the table unless that halves it.
    #[cold]
    fn grow(&mut self) {
        let size = self.blocks.len();
        let live = self.blocks.iter().filter(|block| !block.is_empty()).count();
        let size = if live * 3 < size { size } else { size * 2 };
        let mut blocks = vec![Block::default(); size];
        for block in self.blocks.iter().filter(|block| !block.is_empty()) {
            let at = probe(&blocks, block.key);
            blocks[at] = *block;
        }
        (self.blocks, self.used) = (blocks, live);
    }

    /// Returns every pair with pending messages, as (destination, source, first node), ordered by
    /// rank.
    pub(super) fn pending(&self) -> Vec<(RankId, RankId, u32)> {
        let mut found = Vec::new();
        for block in &self.blocks {
            for (within, queue) in (0..).zip(&block.queues).filter(|(_, queue)| queue.head != 0) {
                let key = block.key - 1;
                let destination = u32::try_from(key >> 32).unwrap_or(u32::MAX);
                let group = u32::try_from(key & u64::from(u32::MAX)).unwrap_or(u32::MAX);
                found.push((RankId(destination), RankId(group * WIDTH + within), queue.head));
            }
        }
        found.sort_unstable();
        found
    }
}

/// Returns the key of a pair's block; never 0.
#[inline]
fn key(destination: RankId, source: RankId) -> u64 {
    (u64::from(destination.0) << 32 | u64::from(source.0 / WIDTH)) + 1
}

/// Returns the first position of the search for a key, modulo the size of the table.
#[inline]
fn home(key: u64) -> usize {
    usize::try_from(key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32).unwrap_or(0)
}

/// Returns the position of `key`, or of the free block for it.
#[inline]
fn probe(blocks: &[Block], key: u64) -> usize {
    let mask = blocks.len() - 1;
    let mut at = home(key) & mask;
    while blocks[at].key != key && blocks[at].key != 0 {
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
        let (mut pairs, mut map) = (Pairs::new(), BTreeMap::new());
        let mut state = 1_u64;
        for count in 1..20_000_u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let pick = |shift: u32| RankId(u32::try_from(state >> shift & 127).unwrap());
            let (destination, source) = (pick(40), pick(50));
            let place = pairs.find((destination, source));
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
