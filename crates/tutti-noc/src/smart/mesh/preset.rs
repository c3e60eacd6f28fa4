//! Paths that are preset in broadcast slots: all of an edge, then all rows and columns
//! (SFO_Complete).

use super::super::record::{EventKind, Stop};
use super::Mesh;
use super::geometry::{Geometry, NOWHERE, PORTS, input_of, opposite};
use super::state::Kind;
use super::vcs::{VcId, low_bit, pool_of};

impl Mesh {
    /// Sends the multicasts of this cycle's slot.
    pub(super) fn send_preset(&mut self) {
        let Some(phase) = self.geometry.phase(self.now) else { return };
        if phase >= self.geometry.preset_cycles || self.packets.alive == 0 {
            return;
        }
        for corner in 0..4 {
            let node = self.geometry.corner_node(corner);
            let (straight, turn) = Geometry::straight_and_turn(corner);
            if phase == 0 {
                self.send_line(node, corner, straight, 1);
                continue;
            }
            let mut router = node;
            for hops in 0.. {
                if self.geometry.shift(hops) + 1 == phase {
                    self.send_line(router, corner, turn, 2);
                }
                router = self.geometry.neighbour(router, straight);
                if router == NOWHERE {
                    break;
                }
            }
        }
    }

    /// Sends the oldest multicast at a router along a full line, if every router on it has a free
    /// VC.
    fn send_line(&mut self, router: u32, corner: u8, direction: usize, stage: u8) {
        let Some(place) = self.oldest_multicast(router, corner, direction) else { return };
        let slot = self.vcs.at(place).packet;
        let pool = pool_of(self.packets.get(slot).class, stage);
        let port = low_bit(1 << opposite(direction));
        let hops = self.geometry.to_edge(router, direction);
        let mut next = router;
        for _ in 0..hops {
            next = self.geometry.neighbour(next, direction);
            if !self.vcs.has_free_vc(input_of(next, opposite(direction)), pool) {
                return;
            }
        }
        self.count_line(router, slot, direction, hops);
        #[cfg(debug_assertions)]
        self.audit.sends_line(&self.geometry, place.input, direction, self.now);
        let mut next = router;
        for hop in 1..=hops {
            next = self.geometry.neighbour(next, direction);
            let mask = self.mask_at(slot, next, direction, true, false);
            let input = input_of(next, opposite(direction));
            let place = self.give(input, pool, slot);
            self.schedule(self.now + self.geometry.shift(hop), place, mask);
            let end = hop == hops;
            let stopped = EventKind::Stopped { input: port, why: Stop::End };
            self.note(next, slot, if end { stopped } else { EventKind::Retained { input: port } });
        }
        if self.vcs.clear_outputs(place, 1 << direction) == 0 {
            self.leave(place);
        }
    }

    fn count_line(&mut self, router: u32, slot: u32, direction: usize, hops: u32) {
        self.watchdog.moved(self.now);
        self.counts.buffer_reads += 1;
        self.counts.crossings[0] += u64::from(hops);
        self.counts.bypasses += u64::from(hops - 1);
        self.counts.link_hops += u64::from(hops);
        let output = low_bit(1 << direction);
        self.note(router, slot, EventKind::Granted { outputs: 1 << output });
        let hops = u8::try_from(hops).expect("at most 63 hops");
        self.note(router, slot, EventKind::Crossed { output, hops, crossing: self.now });
    }

    /// The oldest multicast of a corner's tree that still requests an output in a direction.
    fn oldest_multicast(&self, router: u32, corner: u8, direction: usize) -> Option<VcId> {
        let mut first: Option<(u64, VcId)> = None;
        for port in 0..PORTS {
            let input = input_of(router, port);
            let mut bits = self.vcs.inputs[input as usize].ready;
            while bits != 0 {
                let place = VcId { input, vc: low_bit(bits) };
                bits &= bits - 1;
                let vc = self.vcs.at(place);
                let packet = self.packets.get(vc.packet);
                let goes = packet.kind == Kind::Many
                    && packet.corner == corner
                    && vc.stage < 2
                    && (vc.stage > 0 || packet.destination == router)
                    && vc.mask >> direction & 1 == 1;
                let arrived = self.vcs.since(place);
                if goes && first.is_none_or(|(since, _)| arrived < since) {
                    first = Some((arrived, place));
                }
            }
        }
        first.map(|(_, place)| place)
    }
}
