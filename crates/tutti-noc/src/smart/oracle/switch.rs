//! Switch allocation within routers (SA-L).

use std::collections::BTreeMap;

use super::Mesh;
use super::grid::Port;
use super::parts::{Cargo, Flit, Rule};
use crate::smart::settings::{Arbiter, clamped};

/// The grants of routers in a cycle.
#[derive(Default, Debug)]
pub(super) struct Grants {
    /// The VC that an input of a router has nominated.
    pub(super) nominees: BTreeMap<(u32, Port), usize>,
    /// The input whose nominee was granted an output of a router.
    pub(super) inputs: BTreeMap<(u32, Port), Port>,
}

impl Grants {
    /// Whether the nominee of an input was granted anything.
    pub(super) fn uses(&self, router: u32, input: Port) -> bool {
        Port::ALL.iter().any(|&output| self.inputs.get(&(router, output)) == Some(&input))
    }
}

impl Mesh {
    /// Inputs nominate VCs, outputs choose among the nominees.
    pub(super) fn allocate(&mut self) -> Grants {
        let mut grants = Grants::default();
        for router in 0..self.grid.nodes() {
            self.nominate(router, &mut grants);
            self.grant(router, &mut grants);
            self.advance(router, &grants);
        }
        grants
    }

    fn nominate(&mut self, router: u32, grants: &mut Grants) {
        for port in Port::ALL {
            let input = self.input(router, port);
            let vcs = input.vcs.len();
            let order = (0..vcs).map(|step| (input.pointer + step) % vcs);
            let mut requesting = order.filter(|&vc| !self.open_to(router, port, vc).is_empty());
            let chosen = match self.settings.arbiter {
                Arbiter::RoundRobin => requesting.next(),
                Arbiter::Oldest => requesting.min_by_key(|&vc| self.created(router, port, vc)),
            };
            if let Some(vc) = chosen {
                grants.nominees.insert((router, port), vc);
                self.counts.input_arbitrations += 1;
            }
        }
    }

    fn grant(&mut self, router: u32, grants: &mut Grants) {
        for output in Port::ALL {
            let pointer = self.routers[router as usize].pointers[output as usize];
            let order = (0..5).map(|step| Port::ALL[(pointer + step) % 5]);
            let mut requesting = order.filter(|&input| {
                let nominee = grants.nominees.get(&(router, input));
                nominee.is_some_and(|&vc| self.open_to(router, input, vc).contains(&output))
            });
            let created =
                |&input: &Port| self.created(router, input, grants.nominees[&(router, input)]);
            let chosen = match self.settings.arbiter {
                Arbiter::RoundRobin => requesting.next(),
                Arbiter::Oldest => requesting.min_by_key(created),
            };
            if let Some(input) = chosen {
                grants.inputs.insert((router, output), input);
                self.counts.output_arbitrations += 1;
            }
        }
    }

    fn advance(&mut self, router: u32, grants: &Grants) {
        for port in Port::ALL {
            if let Some(&input) = grants.inputs.get(&(router, port)) {
                self.routers[router as usize].pointers[port as usize] = (input as usize + 1) % 5;
            }
            if grants.uses(router, port) {
                let vc = grants.nominees[&(router, port)];
                let input = self.input_mut(router, port);
                input.pointer = (vc + 1) % input.vcs.len();
            }
        }
    }

    /// When the packet of the first flit of a VC was created.
    fn created(&self, router: u32, input: Port, vc: usize) -> u64 {
        self.input(router, input).vcs[vc].flits[0].created
    }

    /// Whether a buffered response waits for others of its flow.
    fn is_held(&self, router: u32, flit: &Flit) -> bool {
        let (Some(rule), Some(flow)) = (&self.settings.hold, flit.combines(Rule::Merge)) else {
            return false;
        };
        let Cargo::Response { count, .. } = flit.cargo else { return false };
        let missing = self.missing(flow, router);
        let (stay, age) = (self.now - flit.arrived, self.now - flit.created);
        let values = [clamped(stay), i64::from(count), i64::from(missing), clamped(age)];
        rule.value(&values) != 0
    }

    /// The outputs that are open to the first flit of a VC.
    fn open_to(&self, router: u32, input: Port, vc: usize) -> Vec<Port> {
        let Some(flit) = self.input(router, input).vcs[vc].flits.front() else { return Vec::new() };
        let crossing = self.crossing();
        if self.keeps_input(router, input, crossing) || self.is_held(router, flit) {
            return Vec::new();
        }
        let is_open = |&output: &Port| {
            !self.keeps_output(router, output, crossing)
                && match output {
                    Port::Local => !self.blocks_ejection(crossing),
                    _ => {
                        self.may_request(router, flit) && {
                            let stage = self.grid.stage_after(flit, router, output);
                            self.has_free_vc(router, output, flit, stage)
                        }
                    }
                }
        };
        flit.mask.iter().copied().filter(is_open).collect()
    }

    /// Whether a flit requests paths to other routers, instead of using preset paths only.
    fn may_request(&self, router: u32, flit: &Flit) -> bool {
        let multicast = matches!(flit.cargo, Cargo::Multicast { .. });
        !(multicast && self.interval().is_some()) || self.grid.is_to_corner(flit, router)
    }
}
