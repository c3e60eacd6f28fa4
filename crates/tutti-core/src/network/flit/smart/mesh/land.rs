//! Flits come to the routers where they stop, and where copies of them stay.

use super::super::record::EventKind;
use super::Mesh;
use super::answers::Fate;
use super::geometry::router_of;
use super::state::{Kind, index};
use super::vcs::{ANSWER, Place};

/// A flit that will be at a VC.
#[derive(Clone, Copy, Debug)]
pub(super) struct Landing {
    pub(super) place: Place,
    /// The outputs that it will have there; none for a copy that is dropped.
    pub(super) mask: u8,
    pub(super) count: u32,
    pub(super) value: u64,
}

/// What will land, by cycle and, as no two do at an input in a cycle, by input.
#[derive(Clone, Debug)]
pub(super) struct Landings {
    /// By cycle modulo their number, a power of two.
    cycles: Vec<Cycle>,
}

#[derive(Clone, Debug)]
struct Cycle {
    /// A bit for each input at which a flit lands.
    inputs: Vec<u64>,
    /// By input.
    landings: Vec<Landing>,
}

impl Landings {
    /// For so many cycles ahead.
    pub(super) fn new(ahead: usize, inputs: usize) -> Landings {
        let place = Place { input: 0, vc: 0 };
        let none = Landing { place, mask: 0, count: 0, value: 0 };
        let cycle = Cycle { inputs: vec![0; inputs.div_ceil(64)], landings: vec![none; inputs] };
        Landings { cycles: vec![cycle; ahead.next_power_of_two()] }
    }

    #[inline]
    pub(super) fn add(&mut self, cycle: u64, landing: Landing) {
        let last = self.cycles.len() - 1;
        let cycle = &mut self.cycles[index(cycle) & last];
        let input = landing.place.input as usize;
        let bit = 1 << (input % 64);
        debug_assert!(cycle.inputs[input / 64] & bit == 0, "two flits land at input {input}");
        cycle.inputs[input / 64] |= bit;
        cycle.landings[input] = landing;
    }

    /// A bit for each input, of 64, at which a flit lands in a cycle; then no longer.
    #[inline]
    fn take(&mut self, cycle: u64, word: usize) -> u64 {
        let last = self.cycles.len() - 1;
        std::mem::take(&mut self.cycles[index(cycle) & last].inputs[word])
    }

    #[inline]
    fn at(&self, cycle: u64, input: usize) -> Landing {
        self.cycles[index(cycle) & (self.cycles.len() - 1)].landings[input]
    }

    /// All of them.
    #[cfg(debug_assertions)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Landing> {
        self.cycles.iter().flat_map(|cycle| {
            let lands =
                |&(input, _): &(usize, _)| cycle.inputs[input / 64] >> (input % 64) & 1 == 1;
            cycle.landings.iter().enumerate().filter(lands).map(|(_, landing)| landing)
        })
    }
}

impl Mesh {
    /// Lands what crosses in this cycle.
    pub(super) fn land(&mut self) {
        for word in 0..self.vcs.taken.len().div_ceil(64) {
            let mut bits = self.landings.take(self.now, word);
            while bits != 0 {
                let input = 64 * word + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                self.land_one(self.landings.at(self.now, input));
            }
        }
    }

    fn land_one(&mut self, landing: Landing) {
        let Landing { place, mask, mut count, mut value } = landing;
        let router = router_of(place.input);
        let slot = self.vcs.at(place).packet;
        if mask == 0 {
            self.counts.buffer_writes += 1;
            self.note(router, slot, EventKind::Dropped);
            self.forgo(place);
            return;
        }
        if self.vcs.at(place).is(ANSWER)
            && let Kind::Answer(flow) = self.packets.get(slot).kind
        {
            self.counts.table_reads += 1;
            match self.tables.comes(flow, router, count, value) {
                Fate::Kept(all, combined) => (count, value) = (all, combined),
                gone => {
                    self.combine(router, slot, gone, count, value);
                    self.forgo(place);
                    return;
                }
            }
        }
        self.fill(place, mask, count, value);
    }

    /// What came for a VC is not kept, and its packet held by one less.
    fn forgo(&mut self, place: Place) {
        let slot = self.vcs.at(place).packet;
        self.vcs.forgo(place, self.now);
        self.packets.let_go(slot);
    }

    /// A VC is vacated, and its packet held by one less.
    pub(super) fn leave(&mut self, place: Place) {
        let slot = self.vcs.at(place).packet;
        self.vcs.vacate(place, self.now);
        self.packets.let_go(slot);
    }
}
