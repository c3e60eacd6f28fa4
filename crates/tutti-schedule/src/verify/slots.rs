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

/// The factors of one coordinate of a position: `place * each + (place >> bits) * tile`.
struct Axis {
    bits: u32,
    each: usize,
    tile: usize,
}

impl Axis {
    /// Neighbours within a tile are `each` apart, and tiles are `tile` apart.
    fn new(bits: u32, each: usize, tile: usize) -> Axis {
        Axis { bits, each, tile: tile - (each << bits) }
    }

    #[inline]
    fn offset(&self, place: u32) -> usize {
        place as usize * self.each + (place >> self.bits) as usize * self.tile
    }
}

/// A rank, and the offset of its dense positions.
#[derive(Clone, Copy)]
pub(super) struct Row {
    rank: RankId,
    offset: usize,
}

/// A chunk of a rank, and the offset of its dense slots.
#[derive(Clone, Copy)]
pub(super) struct Place {
    rank: RankId,
    pub(super) chunk: u32,
    offset: usize,
}

pub(super) struct Slots {
    ranks: Axis,
    chunks: Axis,
    /// The number of dense slots of a rank: all, or the data slot.
    dense_slots: usize,
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
        // The distance between positions: at least the dense slots.
        let stride = dense_slots + if dense_slots.is_multiple_of(LINE) { LINE } else { 0 };
        let index = |wide| usize::try_from(wide).unwrap_or(usize::MAX);
        let sparse = if all.is_some() { 0 } else { shape.ranks as usize };
        let tile = stride << (rank_bits + chunk_bits);
        Slots {
            ranks: Axis::new(rank_bits, stride << chunk_bits, tile * index(columns)),
            chunks: Axis::new(chunk_bits, stride, tile),
            dense_slots,
            dense: vec![NOTHING; index(positions) * stride],
            sparse: (0..sparse).map(|_| Sparse::default()).collect(),
        }
    }

    #[inline]
    pub(super) fn row(&self, rank: RankId) -> Row {
        Row { rank, offset: self.ranks.offset(rank.0) }
    }

    #[inline]
    pub(super) fn place(&self, Row { rank, offset }: Row, chunk: u32) -> Place {
        Place { rank, chunk, offset: offset + self.chunks.offset(chunk) }
    }

    #[inline]
    pub(super) fn get(&self, at: Place, slot: Slot) -> u32 {
        if slot.0 as usize >= self.dense_slots {
            return self.sparse[at.rank.index()].get(key(slot, at.chunk));
        }
        self.dense[at.offset + slot.0 as usize]
    }

    #[inline]
    pub(super) fn set(&mut self, at: Place, slot: Slot, id: u32) {
        if slot.0 as usize >= self.dense_slots {
            return self.sparse[at.rank.index()].set(key(slot, at.chunk), id);
        }
        self.dense[at.offset + slot.0 as usize] = id;
    }

    /// Copies chunks to other positions; returns the first that was not written. Not inlined,
    /// because the preparation of its loop takes longer than the copy of one chunk.
    #[inline(never)]
    pub(super) fn copy(
        &mut self,
        (source, from): (Row, Slot),
        (target, into): (Row, Slot),
        chunks: impl Iterator<Item = (u32, u32)>,
    ) -> Result<(), u32> {
        for (chunk, to) in chunks {
            let id = self.get(self.place(source, chunk), from);
            if id == NOTHING {
                return Err(chunk);
            }
            self.set(self.place(target, to), into, id);
        }
        Ok(())
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
    #[inline(never)]
    fn get(&self, key: u64) -> u32 {
        if self.keys.is_empty() {
            return NOTHING;
        }
        let at = self.place(key);
        if self.keys[at] == key { self.ids[at] } else { NOTHING }
    }

    #[inline(never)]
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
            let at = dense.place(dense.row(rank), chunk);
            let same = sparse.place(sparse.row(rank), chunk);
            assert_eq!(dense.get(at, slot), sparse.get(same, slot));
            dense.set(at, slot, pick(8, 1 << 20));
            sparse.set(same, slot, pick(8, 1 << 20));
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
                let at = held.place(held.row(RankId(rank)), chunk);
                assert_eq!(held.get(at, Slot(slot)), NOTHING);
                held.set(at, Slot(slot), id);
            }
            for (id, (rank, slot, chunk)) in (0..).zip(positions()) {
                let at = held.place(held.row(RankId(rank)), chunk);
                assert_eq!(held.get(at, Slot(slot)), id);
            }
        }
    }
}
