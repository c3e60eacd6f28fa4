//! Which VC waits for which: the explanation of a deadlock.

use super::Network;
use super::state::{INJECTING, Stage};
use crate::network::{Reason, Waiting};
use crate::routing::find_cycle;

impl<const W: usize> Network<W> {
    /// Input VCs in a deadlock cycle, each waiting for the next and the last for the first; empty
    /// without one.
    pub(crate) fn deadlock_cycle(&self) -> Vec<Waiting> {
        let waits: Vec<_> = (0..self.in_vcs.len()).map(|in_vc| self.waits_for(in_vc)).collect();
        let successor = |wait: &Option<(usize, Reason)>| {
            wait.iter().map(|&(next, _)| super::count(next)).collect()
        };
        let found = find_cycle(&waits.iter().map(successor).collect::<Vec<Vec<u32>>>());
        let place = |in_vc: u32| {
            let (_, reason) = waits[in_vc as usize]?;
            Some(self.place(in_vc as usize, reason))
        };
        found.into_iter().filter_map(place).collect()
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

    /// The input VC that must move before this one can: the one that has the VC it requests, or the
    /// one behind its output that gives it no credit.
    fn waits_for(&self, in_vc: usize) -> Option<(usize, Reason)> {
        let vc = &self.in_vcs[in_vc];
        if vc.length == 0 {
            return None;
        }
        match vc.stage {
            Stage::Waiting => {
                let first_out = self.routers[vc.router as usize].first_out as usize;
                let (port, vcs) = match self.candidates[in_vc].last().filter(|_| vc.many) {
                    Some(candidate) => (candidate.port as usize, candidate.vcs),
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
                let behind = self.out_vcs[out].to as usize;
                (!port.ejects).then_some((behind, Reason::Credit))
            }
            _ => None,
        }
    }
}
