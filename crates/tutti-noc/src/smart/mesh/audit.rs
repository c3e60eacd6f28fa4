//! What must hold in every cycle, checked in debug builds.

use super::super::message::FlowId;
use super::Mesh;
use super::geometry::{
    Geometry, LOCAL, NOWHERE, PORTS, TO_NIC, input_of, opposite, port_of, router_of,
};
use super::state::{Kind, index};
use super::vcs::{Input, ON_TREE, SEVERAL, VcId};

/// Which inputs and outputs of the switches are in use, by crossing cycle.
#[derive(Clone, Debug)]
pub(super) struct Audit {
    /// By cycle modulo its length and router: bits of inputs and of outputs.
    used: Vec<Vec<(u8, u8)>>,
}

impl Audit {
    pub(super) fn new(nodes: usize, cycles: usize) -> Audit {
        Audit { used: vec![vec![(0, 0); nodes]; cycles] }
    }

    fn uses(&mut self, router: u32, inputs: u8, outputs: u8, crossing: u64) {
        let length = self.used.len() as u64;
        let used = &mut self.used[index(crossing % length)][router as usize];
        assert!(
            used.0 & inputs == 0 && used.1 & outputs == 0,
            "router {router} is crossed twice in cycle {crossing}: inputs {:05b} and {inputs:05b}, outputs \
             {:05b} and {outputs:05b}",
            used.0,
            used.1
        );
        used.0 |= inputs;
        used.1 |= outputs;
    }

    /// A flit is read from an input and goes to outputs.
    pub(super) fn reads(&mut self, input: u32, outputs: u8, crossing: u64) {
        self.uses(router_of(input), 1 << (port_of(input)), outputs, crossing);
    }

    /// A flit passes a router, along a direction and by an output.
    pub(super) fn passes(&mut self, router: u32, came: usize, output: usize, crossing: u64) {
        self.uses(router, 1 << opposite(came), 1 << output, crossing);
    }

    /// A multicast passes a router, along a direction and by several outputs.
    pub(super) fn forks(&mut self, router: u32, came: usize, outputs: u8, crossing: u64) {
        self.uses(router, 1 << opposite(came), outputs, crossing);
    }

    /// A flit travels along a full line of preset routers. Flits that wait at an edge have a
    /// separate input.
    pub(super) fn sends_line(&mut self, geometry: &Geometry, input: u32, output: usize, now: u64) {
        let mut router = router_of(input);
        self.uses(router, 0, 1 << output, now);
        for hop in 1.. {
            router = geometry.neighbour(router, output);
            if geometry.neighbour(router, output) == NOWHERE {
                break;
            }
            self.passes(router, output, output, now + geometry.shift(hop + 1));
        }
    }

    /// Forgets skipped cycles, in which the winners of the last ejection ports cross.
    pub(super) fn skip_cycles(&mut self, from: u64, to: u64) {
        let length = self.used.len() as u64;
        (from..to.min(from + length)).for_each(|cycle| self.ends(cycle));
    }

    /// Forgets a cycle that is over.
    fn ends(&mut self, now: u64) {
        let length = self.used.len() as u64;
        self.used[index(now % length)].fill((0, 0));
    }
}

impl Mesh {
    /// Inspects all that must hold at the end of a cycle.
    pub(super) fn check_invariants(&mut self) {
        self.audit.ends(self.now);
        let (mut responses, mut holders) = (self.tables.dropped(), self.waiting);
        for input in 0..self.vcs.inputs.len() {
            let Input { ready, taken, .. } = self.vcs.inputs[input];
            assert!(ready & !taken == 0, "a VC of input {input} was not given");
            let input = u32::try_from(input).expect("inputs are counted in 32 bits");
            for vc in 0..self.vcs.per_port {
                let place = VcId { input, vc };
                self.check_requests(place);
                let vc = self.vcs.at(place);
                if vc.packet == super::state::NO_PACKET {
                    continue;
                }
                holders += 1;
                let is_response = matches!(self.packets.get(vc.packet).kind, Kind::Response(_));
                if is_response && vc.come > vc.left {
                    responses += u64::from(self.vcs.sum(place).0);
                }
                let local = port_of(input) == LOCAL;
                assert!(local || self.on_mesh(input), "a VC of a port that is not there");
            }
        }
        let landing = self.landings.iter();
        responses += landing.map(|place| self.responses_of(place)).sum::<u64>();
        let late = self.late.iter().filter_map(|arrival| arrival.responses);
        let late = late.filter(|responses| self.tables.combines(responses.flow));
        responses += late.map(|responses| u64::from(responses.count)).sum::<u64>();
        for queue in &self.queues {
            let is_response =
                |&&slot: &&u32| matches!(self.packets.get(slot).kind, Kind::Response(_));
            responses += queue.iter().filter(is_response).count() as u64;
        }
        assert_eq!(responses, self.flows.in_flight(|id: FlowId| self.tables.combines(id)));
        assert_eq!(holders, self.packets.holders(), "a packet has no holder, or two");
    }

    /// What allocation inspects is what can be seen from the VCs themselves.
    fn check_requests(&self, place: VcId) {
        let (router, vc) = (router_of(place.input), self.vcs.at(place));
        let (bit, input) = (1_u64 << place.vc, &self.vcs.inputs[place.input as usize]);
        let ready = input.ready & bit != 0;
        let preset = vc.is(ON_TREE) && self.geometry.interval.is_some();
        let turns = self.vcs.turns.get(place.input as usize);
        for output in 0..PORTS {
            let straight = vc.route.straight >> output & 1 == 1;
            let goes = ready && vc.mask >> output & 1 == 1 && !(preset && output != LOCAL);
            let apart = vc.pool(output) % 3 != 0 && output != LOCAL;
            assert_eq!(input.requests[output] & bit != 0, goes && !apart, "{vc:?} at {place:?}");
            let Some([before, after]) = turns.filter(|_| output != LOCAL) else { continue };
            assert_eq!(before[output] & bit != 0, goes && apart && straight, "{vc:?}");
            assert_eq!(after[output] & bit != 0, goes && apart && !straight, "{vc:?}");
        }
        if ready && vc.is(SEVERAL) && vc.mask & TO_NIC == 0 {
            let output = vc.mask.trailing_zeros() as usize;
            let next = self.geometry.neighbour(router, output);
            let own =
                self.vcs.of_packet(input_of(next, opposite(output)), vc.pool(output), vc.packet);
            assert_eq!(input.follows & bit != 0, own.is_some(), "{vc:?} at {place:?}");
        }
    }

    fn on_mesh(&self, input: u32) -> bool {
        let port = port_of(input);
        self.geometry.neighbour(router_of(input), port) != NOWHERE
    }

    /// The responses that will land at a VC.
    fn responses_of(&self, place: VcId) -> u64 {
        let slot = self.vcs.at(place).packet;
        let is_response = matches!(self.packets.get(slot).kind, Kind::Response(_));
        if is_response { u64::from(self.vcs.sum(place).0) } else { 0 }
    }
}
