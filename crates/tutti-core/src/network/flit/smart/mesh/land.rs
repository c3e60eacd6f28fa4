//! Flits come to the routers where they stop, and where copies of them stay.

use super::super::record::EventKind;
use super::Mesh;
use super::answers::Fate;
use super::geometry::router_of;
use super::state::{Kind, Place, index};

/// A flit that will be at a VC.
#[derive(Clone, Copy, Debug)]
pub(super) struct Landing {
    pub(super) place: Place,
    /// The outputs that it will have there; none for a copy that is dropped.
    pub(super) mask: u8,
    pub(super) count: u32,
    pub(super) value: u64,
}

impl Mesh {
    /// Lands what crosses in this cycle.
    pub(super) fn land(&mut self) {
        let length = self.landings.len() as u64;
        let now = index(self.now % length);
        if self.landings[now].is_empty() {
            return;
        }
        let mut landings = std::mem::take(&mut self.landings[now]);
        landings.sort_unstable_by_key(|landing| landing.place.input);
        for landing in landings.drain(..) {
            self.land_one(landing);
        }
        self.landings[now] = landings;
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
        if let Kind::Answer(flow) = self.packets.get(slot).kind {
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
