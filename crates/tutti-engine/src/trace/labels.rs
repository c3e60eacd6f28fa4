//! Tables of texts, such as the labels of a rank.

/// The fewest slots of a table.
const LEAST: usize = 64;

/// A label: its place in the text, and its operation.
#[derive(Clone, Copy, Default)]
struct Slot {
    start: usize,
    length: usize,
    hash: u32,
    operation: u32,
    /// The rank in which the slot was filled; others are free.
    round: u32,
}

/// A table of labels that is used again for every rank. It stores places in the text, not text.
#[derive(Default)]
pub(super) struct Labels {
    slots: Vec<Slot>,
    used: usize,
    round: u32,
}

impl Labels {
    /// A table without labels.
    pub(super) fn empty() -> Labels {
        Labels { round: 1, ..Labels::default() }
    }

    /// Forgets all labels.
    pub(super) fn clear(&mut self) {
        self.used = 0;
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.slots.clear();
            self.round = 1;
        }
    }

    /// Adds the label at a place; returns false if it exists.
    pub(super) fn add(
        &mut self,
        text: &[u8],
        place: std::ops::Range<usize>,
        operation: u32,
    ) -> bool {
        if (self.used + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let label = &text[place.clone()];
        let hash = hash(label);
        let at = self.slot(text, label, hash);
        if self.slots[at].round == self.round {
            return false;
        }
        let (start, length, round) = (place.start, place.len(), self.round);
        self.slots[at] = Slot { start, length, hash, operation, round };
        self.used += 1;
        true
    }

    /// The operation of a label.
    pub(super) fn find(&self, text: &[u8], label: &[u8]) -> Option<u32> {
        if self.used == 0 {
            return None;
        }
        let slot = &self.slots[self.slot(text, label, hash(label))];
        (slot.round == self.round).then_some(slot.operation)
    }

    /// The slot of a label, or the free slot for it.
    fn slot(&self, text: &[u8], label: &[u8], hash: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = &self.slots[at];
            let same = || &text[slot.start..slot.start + slot.length] == label;
            if slot.round != self.round || (slot.hash == hash && same()) {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let length = (self.slots.len() * 2).max(LEAST);
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); length]);
        for slot in old.into_iter().filter(|slot| slot.round == self.round) {
            let mut at = slot.hash as usize & (length - 1);
            while self.slots[at].round == self.round {
                at = (at + 1) & (length - 1);
            }
            self.slots[at] = slot;
        }
    }
}

/// A multiplicative hash of 8 bytes at a time.
fn hash(label: &[u8]) -> u32 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut sum = label.len() as u64;
    for part in label.chunks(8) {
        let mut bytes = [0; 8];
        bytes[..part.len()].copy_from_slice(part);
        sum = (sum.rotate_left(5) ^ u64::from_le_bytes(bytes)).wrapping_mul(FACTOR);
    }
    let [.., a, b, c, d] = sum.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
