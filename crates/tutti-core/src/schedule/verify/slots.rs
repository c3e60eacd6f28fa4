//! Which value each position of each slot of each rank holds, as 32-bit ids.
//!
//! Slots are laid out densely when all of them together are small. Otherwise only the data slots are,
//! and a rank's other slots are a hash table of the positions that have been written: a schedule with a
//! slot per peer touches few chunks of each.

use crate::ids::RankId;
use crate::schedule::{Shape, Slot};

/// The id of a position that nothing has written.
pub(super) const NOTHING: u32 = u32::MAX;

/// Slots are dense up to this many positions in all (512 MiB).
const DENSE: u64 = 1 << 27;

pub(super) struct Slots {
    chunks: usize,
    /// How many slots of a rank are dense: all, or the data slot.
    dense_slots: usize,
    dense: Vec<u32>,
    sparse: Vec<Sparse>,
}

impl Slots {
    pub(super) fn new(shape: &Shape) -> Slots {
        let positions = u64::from(shape.ranks) * u64::from(shape.chunks);
        let all = positions.checked_mul(u64::from(shape.slots)).filter(|&all| all <= DENSE);
        let dense_slots = if all.is_some() { shape.slots as usize } else { 1 };
        let dense = usize::try_from(positions).unwrap_or(usize::MAX) * dense_slots;
        let sparse = if all.is_some() { 0 } else { shape.ranks as usize };
        Slots {
            chunks: shape.chunks as usize,
            dense_slots,
            dense: vec![NOTHING; dense],
            sparse: (0..sparse).map(|_| Sparse::default()).collect(),
        }
    }

    #[inline]
    pub(super) fn get(&self, rank: RankId, slot: Slot, chunk: u32) -> u32 {
        if slot.0 as usize >= self.dense_slots {
            return self.sparse[rank.index()].get(key(slot, chunk));
        }
        self.dense[self.index(rank, slot, chunk)]
    }

    #[inline]
    pub(super) fn set(&mut self, rank: RankId, slot: Slot, chunk: u32, id: u32) {
        if slot.0 as usize >= self.dense_slots {
            return self.sparse[rank.index()].set(key(slot, chunk), id);
        }
        let index = self.index(rank, slot, chunk);
        self.dense[index] = id;
    }

    #[inline]
    fn index(&self, rank: RankId, slot: Slot, chunk: u32) -> usize {
        (rank.index() * self.dense_slots + slot.0 as usize) * self.chunks + chunk as usize
    }
}

/// Never 0, because sparse slots are not the data slot.
#[inline]
fn key(slot: Slot, chunk: u32) -> u64 {
    u64::from(slot.0) << 32 | u64::from(chunk)
}

/// A hash table with open addressing; key 0 is free.
#[derive(Default)]
struct Sparse {
    keys: Vec<u64>,
    ids: Vec<u32>,
    used: usize,
}

impl Sparse {
    #[inline]
    fn get(&self, key: u64) -> u32 {
        if self.keys.is_empty() {
            return NOTHING;
        }
        let at = self.place(key);
        if self.keys[at] == key { self.ids[at] } else { NOTHING }
    }

    #[inline]
    fn set(&mut self, key: u64, id: u32) {
        if self.used * 8 >= self.keys.len() * 7 {
            self.grow();
        }
        let at = self.place(key);
        self.used += usize::from(self.keys[at] != key);
        (self.keys[at], self.ids[at]) = (key, id);
    }

    #[inline]
    fn place(&self, key: u64) -> usize {
        let mask = self.keys.len() - 1;
        let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let mut at = usize::try_from(mixed).unwrap_or(0) & mask;
        while self.keys[at] != key && self.keys[at] != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        let size = (self.keys.len() * 2).max(8);
        let keys = std::mem::replace(&mut self.keys, vec![0; size]);
        let ids = std::mem::replace(&mut self.ids, vec![NOTHING; size]);
        for (key, id) in keys.into_iter().zip(ids).filter(|(key, _)| *key != 0) {
            let at = self.place(key);
            (self.keys[at], self.ids[at]) = (key, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::Collective;

    #[test]
    fn sparse_slots_hold_what_dense_ones_do() {
        let shape = |slots| Shape {
            name: String::new(),
            collective: Collective::AllReduce,
            ranks: 2,
            chunks: 50,
            slots,
            result: Slot::DATA,
        };
        let (mut dense, mut sparse) = (Slots::new(&shape(40)), Slots::new(&shape(1 << 30)));
        let mut state = 7_u64;
        for _ in 0..5_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let pick = |shift: u32, below: u64| u32::try_from((state >> shift) % below).unwrap();
            let (rank, slot, chunk) = (RankId(pick(20, 2)), Slot(pick(30, 40)), pick(40, 50));
            assert_eq!(dense.get(rank, slot, chunk), sparse.get(rank, slot, chunk));
            dense.set(rank, slot, chunk, pick(8, 1 << 20));
            sparse.set(rank, slot, chunk, pick(8, 1 << 20));
        }
    }
}
