//! Flits arrive at the routers where they stop, and where copies of them are retained.

use super::super::record::EventKind;
use super::Mesh;
use super::geometry::router_of;
use super::state::{Kind, index};
use super::tables::Fate;
use super::vcs::{RESPONSE, VcId};

/// Flits that will land, by cycle and input; at most one lands at an input in a cycle.
#[derive(Clone, Debug)]
pub(super) struct Landings {
    /// By cycle modulo their number, a power of two.
    cycles: Vec<Cycle>,
}

#[derive(Clone, Debug)]
struct Cycle {
    /// A bit for each input at which a flit lands.
    inputs: Vec<u64>,
    /// By input: the VC of the flit that lands.
    vcs: Vec<u8>,
}

impl Landings {
    /// For so many cycles ahead.
    pub(super) fn new(ahead: usize, inputs: usize) -> Landings {
        let cycle = Cycle { inputs: vec![0; inputs.div_ceil(64)], vcs: vec![0; inputs] };
        Landings { cycles: vec![cycle; ahead.next_power_of_two()] }
    }

    #[inline]
    pub(super) fn add(&mut self, cycle: u64, place: VcId) {
        let last = self.cycles.len() - 1;
        let cycle = &mut self.cycles[index(cycle) & last];
        let input = place.input as usize;
        let bit = 1 << (input % 64);
        debug_assert!(cycle.inputs[input / 64] & bit == 0, "two flits land at input {input}");
        cycle.inputs[input / 64] |= bit;
        cycle.vcs[input] = place.vc;
    }

    /// Removes and returns the inputs, of 64, at which a flit lands in a cycle: a bit for each.
    #[inline]
    fn take(&mut self, cycle: u64, word: usize) -> u64 {
        let last = self.cycles.len() - 1;
        std::mem::take(&mut self.cycles[index(cycle) & last].inputs[word])
    }

    #[inline]
    fn at(&self, cycle: u64, input: u32) -> VcId {
        let vc = self.cycles[index(cycle) & (self.cycles.len() - 1)].vcs[input as usize];
        VcId { input, vc }
    }

    /// All of them.
    #[cfg(debug_assertions)]
    pub(super) fn iter(&self) -> impl Iterator<Item = VcId> {
        self.cycles.iter().flat_map(|cycle| {
            let all = (0..).zip(&cycle.vcs).map(|(input, &vc)| VcId { input, vc });
            all.filter(|&VcId { input, .. }| {
                cycle.inputs[input as usize / 64] >> (input % 64) & 1 == 1
            })
        })
    }
}

impl Mesh {
    /// Lands the flits that cross in this cycle.
    pub(super) fn land(&mut self) {
        let words = self.vcs.inputs.len().div_ceil(64);
        for (word, first) in (0..words).zip((0..).step_by(64)) {
            let mut bits = self.landings.take(self.now, word);
            while bits != 0 {
                let input = first + bits.trailing_zeros();
                bits &= bits - 1;
                self.land_one(self.landings.at(self.now, input));
            }
        }
        self.tables.settle();
    }

    #[inline]
    fn land_one(&mut self, place: VcId) {
        let vc = *self.vcs.at(place);
        if vc.mask == 0 {
            self.counts.buffer_writes += 1;
            self.note(router_of(place.input), vc.packet, EventKind::Dropped);
            self.discard(place);
            return;
        }
        if vc.is(RESPONSE) {
            return self.land_response(place, vc.packet);
        }
        self.counts.buffer_writes += 1;
        self.vcs.arrives(place, self.now);
    }

    fn land_response(&mut self, place: VcId, slot: u32) {
        let (mut count, mut value) = self.vcs.sum(place);
        if let Kind::Response(flow) = self.packets.get(slot).kind {
            let router = router_of(place.input);
            self.counts.table_reads += 1;
            match self.tables.arrives(flow, router, count, value) {
                Fate::Continues(all, combined) => (count, value) = (all, combined),
                other => {
                    self.combine(router, slot, other, count, value);
                    self.discard(place);
                    return;
                }
            }
        }
        self.fill(place, count, value);
    }

    /// Discards a flit that arrived for a VC; its packet loses a holder.
    fn discard(&mut self, place: VcId) {
        let slot = self.vcs.at(place).packet;
        self.vcs.discard(place, self.now);
        self.packets.release_holder(slot);
    }

    /// A VC is vacated; its packet loses a holder.
    pub(super) fn leave(&mut self, place: VcId) {
        let slot = self.vcs.at(place).packet;
        self.vcs.vacate(place, self.now);
        self.packets.release_holder(slot);
    }
}
