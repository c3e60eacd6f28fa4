//! Buffered responses that wait for others of their flow, by a rule.

use super::super::message::FlowId;
use super::super::settings::clamped;
use super::Mesh;
use super::geometry::router_of;
use super::vcs::VcId;

/// A response in a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffered {
    place: VcId,
    slot: u32,
    /// Distinguishes its packet from a later one of the same slot.
    serial: u64,
    flow: FlowId,
    /// The cycle in which it was injected or landed.
    since: u64,
}

impl Mesh {
    /// A response was buffered that the rule may hold.
    #[inline]
    pub(super) fn may_hold(&mut self, place: VcId, slot: u32, flow: FlowId) {
        if self.settings.hold.is_some() {
            let serial = self.packets.get(slot).serial;
            self.buffered.push(Buffered { place, slot, serial, flow, since: self.now });
        }
    }

    /// Lets the buffered responses request outputs for which the rule is 0, and no others.
    pub(super) fn hold_responses(&mut self) {
        let Some(rule) = self.settings.hold.take() else { return };
        let mut buffered = std::mem::take(&mut self.buffered);
        buffered.retain(|one| {
            let is_there = self.vcs.at(one.place).packet == one.slot;
            is_there && self.packets.get(one.slot).serial == one.serial
        });
        for &Buffered { place, slot, flow, since, .. } in &buffered {
            let (count, _) = self.vcs.sum(place);
            let missing = self.tables.missing(flow, router_of(place.input));
            let age = self.now - self.packets.get(slot).created;
            let (count, missing) = (i64::from(count), i64::from(missing));
            if rule.value(&[clamped(self.now - since), count, missing, clamped(age)]) == 0 {
                self.vcs.requests_again(place);
            } else {
                self.vcs.set_bare(place);
            }
        }
        self.buffered = buffered;
        self.settings.hold = Some(rule);
    }
}
