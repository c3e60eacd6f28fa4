//! Multicasts that fork on paths with turns: all of a tree within reach is one request, whose
//! outputs are won one by one.

use super::super::record::{EventKind, Stop};
use super::Mesh;
use super::geometry::opposite;
use super::turns::{Bends, Bent};
use super::vcs::low_bit;

impl Mesh {
    /// Adds the branches of a multicast's path, as far as they reach; returns their hops.
    pub(super) fn add_branches(&self, requests: &mut Vec<Bent>, trunk: &Bent) -> u32 {
        let (request, reach) = (trunk.request, self.settings.hops_per_cycle);
        let corner = self.packets.get(request.slot).corner;
        let mut all = 0;
        for hop in 1..=trunk.first.min(reach - 1) {
            let router = self.geometry.ahead(request.router, trunk.output, hop);
            let mut outputs = self.geometry.branches(router, corner, trunk.output);
            while outputs != 0 {
                let then = outputs.trailing_zeros() as usize;
                outputs &= outputs - 1;
                let hops = self.geometry.to_edge(router, then).min(reach - hop);
                let mut branch = Bent { first: hop, then, from: hop, ..*trunk };
                branch.request.hops = hop + hops;
                branch.request.pool = request.route.pool(then);
                requests.push(branch);
                all += hops;
            }
        }
        all
    }

    /// Moves a multicast along its path and the branches that it won, as far as it gets.
    pub(super) fn walk_tree(&mut self, bends: &Bends, number: usize) {
        let trunk = &bends.requests[number];
        let branches = || {
            let after = bends.requests.iter().enumerate().skip(number + 1);
            after.take_while(|(_, branch)| branch.from > 0)
        };
        branches().for_each(|(_, branch)| self.note_requested(branch));
        let (mut router, came) = (trunk.request.router, trunk.output);
        for hop in 1..=trunk.request.hops {
            router = self.geometry.neighbour(router, came);
            self.counts.link_hops += 1;
            let why = if hop == trunk.request.hops {
                Some(Stop::End)
            } else {
                self.stop_bent(bends, number, router, (came, came))
            };
            let forks = |&(branch, bent): &(usize, &Bent)| {
                bent.from == hop && bends.has_won(branch, router, bent.then)
            };
            let won = branches().filter(forks).fold(0, |won, (_, bent)| won | 1 << bent.then);
            self.fork(trunk, router, won, why);
            for (branch, _) in branches().filter(forks) {
                self.walk_from(bends, branch, router, (1, 0));
            }
            if why.is_some() {
                self.note_crossing(trunk, hop);
                self.note_idle_tree(bends, number, router, hop);
                return;
            }
        }
    }

    /// A multicast reaches a router: it goes on by the outputs that it won, straight on unless it
    /// stops, and a copy with the others is retained.
    fn fork(&mut self, trunk: &Bent, router: u32, won: u8, why: Option<Stop>) {
        let (request, came) = (&trunk.request, trunk.output);
        let outputs = if why.is_some() { won } else { won | 1 << came };
        if outputs != 0 {
            self.counts.bypasses += 1;
            self.counts.crossings[outputs.count_ones() as usize - 1] += 1;
            #[cfg(debug_assertions)]
            self.audit.forks(router, came, outputs, self.crossing());
        }
        let mask = self.mask_at(request.slot, router, came, true, why.is_some()) & !won;
        self.buffer_copy(request, router, came, mask);
        let input = low_bit(1 << opposite(came));
        let kind =
            why.map_or(EventKind::Retained { input }, |why| EventKind::Stopped { input, why });
        self.note(router, request.slot, kind);
    }

    /// Records outputs that stay reserved for a multicast that stopped earlier.
    fn note_idle_tree(&mut self, bends: &Bends, number: usize, from: u32, stopped: u32) {
        self.note_idle_bent(bends, number, from, stopped);
        let trunk = bends.requests[number];
        let branches = bends.requests.iter().enumerate().skip(number + 1);
        for (branch, bent) in branches.take_while(|(_, branch)| branch.from > 0) {
            if bent.from > stopped {
                let fork = self.geometry.ahead(trunk.request.router, trunk.output, bent.from);
                self.note_idle_bent(bends, branch, fork, bent.from);
            }
        }
    }
}
