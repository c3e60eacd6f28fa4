//! Who waits for whom: the explanation of a deadlock.

use super::Network;
use super::state::{INJECTING, Stage};
use crate::network::{Reason, Waiting};

impl<const W: usize> Network<W> {
    /// A circle of input VCs of which each waits for the next, and the last for the first; empty if there
    /// is none.
    pub(crate) fn circle(&self) -> Vec<Waiting> {
        let mut seen = vec![0_u32; self.in_vcs.len()];
        for (start, turn) in (0..self.in_vcs.len()).zip(1..) {
            let mut at = start;
            while seen[at] == 0 {
                seen[at] = turn;
                let Some((next, _)) = self.waits_for(at) else { break };
                at = next;
            }
            if seen[at] == turn && self.waits_for(at).is_some() {
                return self.around(at);
            }
        }
        Vec::new()
    }

    fn around(&self, start: usize) -> Vec<Waiting> {
        let mut circle = Vec::new();
        let mut at = start;
        while let Some((next, reason)) = self.waits_for(at) {
            circle.push(self.place(at, reason));
            at = next;
            if at == start {
                break;
            }
        }
        circle
    }

    fn place(&self, in_vc: usize, reason: Reason) -> Waiting {
        let router = self.in_vcs[in_vc].router;
        let port = super::count(in_vc / self.vcs);
        Waiting {
            router,
            input: port - self.routers[router as usize].first_in,
            vc: super::count(in_vc % self.vcs),
            reason,
        }
    }

    /// The input VC that must move before this one can: the one that has the VC it asks for, or the one
    /// behind its output that gives it no credit.
    fn waits_for(&self, in_vc: usize) -> Option<(usize, Reason)> {
        let vc = &self.in_vcs[in_vc];
        if vc.length == 0 {
            return None;
        }
        match vc.stage {
            Stage::Waiting => {
                let first_out = self.routers[vc.router as usize].first_out as usize;
                let (port, vcs) = match self.ways[in_vc].last().filter(|_| vc.many) {
                    Some(way) => (way.port as usize, way.vcs),
                    None => (vc.port as usize, vc.vcs()),
                };
                let outs =
                    (vcs.first..=vcs.last).map(|v| (first_out + port) * self.vcs + v as usize);
                let mut owners = outs.map(|out| self.out_vcs[out].owner);
                let owner = owners.rfind(|&owner| owner < INJECTING)?;
                Some((owner as usize, Reason::Vc))
            }
            Stage::Active if self.out_vcs[vc.out as usize].credits == 0 => {
                let out = vc.out as usize;
                let port = &self.out_ports[self.out_vcs[out].port as usize];
                let behind = port.to as usize + out % self.vcs;
                (!port.ejects).then_some((behind, Reason::Credit))
            }
            _ => None,
        }
    }
}
