//! The value at each position of each slot of each rank, as 32-bit ids.
//!
//! All slots are dense arrays if their total is small. Otherwise only the data slots are, and a
//! rank's other slots are a hash table of the written positions: a schedule with a slot per peer
//! uses few chunks of each.
//!
//! Dense positions are stored in tiles of neighbouring ranks and chunks, with a chunk's slots
//! adjacent. Ranks take turns, and each has a separate row of the payload, so without tiles every
//! access would be to another page of memory.

use crate::{Shape, Slot};
use tutti_units::ids::RankId;

/// The id of a position that was not written.
pub(super) const NOTHING: u32 = u32::MAX;

/// Slots are dense up to this total number of positions (512 MiB).
const DENSE: u64 = 1 << 27;

/// Ids per cache line. Positions a multiple of this apart would map to few cache sets, and a slot
/// of many ranks would not stay in the cache; one line more spreads them.
const LINE: usize = 16;

/// The maximum side of a tile, as a power of two.
const TILE: u32 = 5;

pub(super) struct Slots {
    /// Sides of a tile, as powers of two.
    rank_bits: u32,
    chunk_bits: u32,
    /// Adjacent tiles that hold a rank's chunks.
    tiles: usize,
    /// The number of dense slots of a rank: all, or the data slot.
    dense_slots: usize,
    /// The distance between positions: at least the dense slots.
    stride: usize,
    dense: Vec<u32>,
    sparse: Vec<Sparse>,
}

impl Slots {
    pub(super) fn new(shape: &Shape) -> Slots {
        let bits = |count: u32| (32 - (count - 1).leading_zeros()).min(TILE);
        let (rank_bits, chunk_bits) = (bits(shape.ranks), bits(shape.chunks));
        let tiles = |count: u32, bits: u32| u64::from(count.div_ceil(1 << bits));
        let (rows, columns) = (tiles(shape.ranks, rank_bits), tiles(shape.chunks, chunk_bits));
        let positions = (rows * columns) << (rank_bits + chunk_bits);
        let all = positions.checked_mul(u64::from(shape.slots)).filter(|&all| all <= DENSE);
        let dense_slots = if all.is_some() { shape.slots as usize } else { 1 };
        let stride = dense_slots + if dense_slots.is_multiple_of(LINE) { LINE } else { 0 };
        let index = |wide| usize::try_from(wide).unwrap_or(usize::MAX);
        let sparse = if all.is_some() { 0 } else { shape.ranks as usize };
        Slots {
            rank_bits,
            chunk_bits,
            tiles: index(columns),
            dense_slots,
            stride,
            dense: vec![NOTHING; index(positions) * stride],
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
        let (rank_bits, chunk_bits) = (self.rank_bits, self.chunk_bits);
        let tile = (rank.index() >> rank_bits) * self.tiles + (chunk as usize >> chunk_bits);
        let row = tile << rank_bits | rank.index() & ((1 << rank_bits) - 1);
        let position = row << chunk_bits | chunk as usize & ((1 << chunk_bits) - 1);
        position * self.stride + slot.0 as usize
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

    #[test]
    fn dense_positions_do_not_share_a_place() {
        for (ranks, chunks, slots) in [(1, 1, 3), (3, 100, 2), (70, 33, 1), (5, 1, 7), (1, 1000, 1)]
        {
            let collective = Collective::AllReduce;
            let (name, result) = (String::new(), Slot::DATA);
            let shape = Shape { name, collective, ranks, chunks, slots, result };
            let mut held = Slots::new(&shape);
            let positions = || {
                let slots = move |rank, chunk| (0..slots).map(move |slot| (rank, slot, chunk));
                (0..ranks).flat_map(move |r| (0..chunks).flat_map(move |c| slots(r, c)))
            };
            for (id, (rank, slot, chunk)) in (0..).zip(positions()) {
                assert_eq!(held.get(RankId(rank), Slot(slot), chunk), NOTHING);
                held.set(RankId(rank), Slot(slot), chunk, id);
            }
            for (id, (rank, slot, chunk)) in (0..).zip(positions()) {
                assert_eq!(held.get(RankId(rank), Slot(slot), chunk), id);
            }
        }
    }
}
