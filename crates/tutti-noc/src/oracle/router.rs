//! A router: routing and VC allocation.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::clock::Ticks;
use super::matching::{Entry, Matching, Matrix, no_requests};
use super::parts::{Flit, Output, Packet};
use super::switch::Switch;
use super::{Rules, count};
use crate::routing::{Candidate, Chance, RoutingContext};
use crate::{End, FlitError, Settings, Wiring};

/// The state of the first packet of a VC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The VC is empty.
    Idle,
    /// It became first, and has not been routed.
    Fresh,
    /// It is being routed, and may request a VC in round `until`.
    Routing { until: u64 },
    /// It waits for VC allocation.
    WaitingForVc,
    /// It has this output port and VC.
    Active { port: u32, vc: u32 },
}

/// A VC of an input port.
#[derive(Clone, Debug)]
pub(super) struct InputVc {
    pub(super) flits: VecDeque<Flit>,
    pub(super) state: State,
    /// Where the first packet may go.
    pub(super) candidates: Vec<Candidate>,
    /// The first rounds in which it may request a VC, and the switch: before, the result of its
    /// last request is unknown.
    next_vc_request: u64,
    pub(super) next_switch_request: u64,
}

/// An input port.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) channel: usize,
    injected: bool,
    pub(super) vcs: Vec<InputVc>,
    /// VCs that flits have left in this round.
    pub(super) freed: Vec<u32>,
    /// Messages with the credits of a round each, not yet sent.
    pub(super) credits: VecDeque<Vec<u32>>,
}

/// A VC of an output port, for a VC of an input port, from a round on.
#[derive(Clone, Copy, Debug)]
pub(super) struct VcGrant {
    due: u64,
    pub(super) input: usize,
    pub(super) vc: usize,
    pub(super) port: u32,
    pub(super) out_vc: u32,
}

/// A router.
#[derive(Clone, Debug)]
pub(super) struct Router {
    id: u32,
    pub(super) clock: Ticks,
    pub(super) inputs: Vec<Input>,
    pub(super) outputs: Vec<Output>,
    vc_matching: Matching,
    vc_grants: VecDeque<VcGrant>,
    pub(super) switch: Switch,
}

impl Router {
    pub(super) fn new(id: u32, wiring: &Wiring, settings: &Settings) -> Result<Router, FlitError> {
        let vcs = settings.vcs as usize;
        let vc = InputVc {
            flits: VecDeque::new(),
            state: State::Idle,
            candidates: Vec::new(),
            next_vc_request: 0,
            next_switch_request: 0,
        };
        let input = |&channel: &u32| Input {
            channel: channel as usize,
            injected: matches!(wiring.channels()[channel as usize].from, End::Node(_)),
            vcs: vec![vc.clone(); vcs],
            freed: Vec::new(),
            credits: VecDeque::new(),
        };
        let inputs: Vec<Input> = wiring.inputs(id).iter().map(input).collect();
        let output = |&channel: &u32| Output::new(wiring, channel, settings);
        let outputs: Vec<Output> = wiring.outputs(id).iter().map(output).collect();
        let (ins, outs) = (inputs.len() * vcs, outputs.len() * vcs);
        Ok(Router {
            id,
            clock: Ticks::of(id, wiring, settings),
            vc_matching: Matching::new(settings.vc_allocator, id, ins, outs, settings)?,
            vc_grants: VecDeque::new(),
            switch: Switch::new(id, inputs.len(), outputs.len(), settings)?,
            inputs,
            outputs,
        })
    }

    /// A flit enters a buffer.
    pub(super) fn receive(&mut self, input: usize, flit: Flit) {
        let vc = &mut self.inputs[input].vcs[flit.vc as usize];
        vc.flits.push_back(flit);
        if vc.state == State::Idle {
            assert!(flit.head, "the first flit of a packet is its head");
            vc.state = State::Fresh;
        }
    }

    /// Runs a round on the state before it.
    pub(super) fn round(&mut self, rules: &Rules<'_>, packets: &mut BTreeMap<u64, Packet>) {
        self.route(rules, packets);
        self.allocate_vcs(rules, packets);
        let vcs = self.vcs_due(rules, packets);
        let held = self.held(rules);
        self.allocate_switch(rules, packets);
        let passages = self.passages_due(rules, &vcs);
        for grant in vcs {
            self.outputs[grant.port as usize].take(grant.out_vc);
            let vc = &mut self.inputs[grant.input].vcs[grant.vc];
            vc.state = State::Active { port: grant.port, vc: grant.out_vc };
        }
        self.pass_held(rules, held, packets);
        self.pass(rules, passages, packets);
        self.cross(rules);
    }

    /// Heads that became first are routed, and routed heads may request a VC.
    fn route(&mut self, rules: &Rules<'_>, packets: &mut BTreeMap<u64, Packet>) {
        for input in 0..self.inputs.len() {
            for vc in 0..self.inputs[input].vcs.len() {
                if self.inputs[input].vcs[vc].state == State::Fresh {
                    self.route_vc(input, vc, rules, packets);
                }
                let vc = &mut self.inputs[input].vcs[vc];
                if let State::Routing { until } = vc.state
                    && until <= rules.round
                {
                    vc.state = State::WaitingForVc;
                }
            }
        }
    }

    fn route_vc(
        &mut self,
        input: usize,
        vc: usize,
        rules: &Rules<'_>,
        packets: &mut BTreeMap<u64, Packet>,
    ) {
        let outputs = &self.outputs;
        let used = |port: u32| {
            let output = &outputs[port as usize];
            output.vcs.iter().map(|vc| output.capacity - vc.credits).sum::<u32>()
        };
        let (port, number) = (&mut self.inputs[input], count(vc));
        let injected = port.injected;
        let vc = &mut port.vcs[vc];
        let Some(packet) = packets.get_mut(&vc.flits[0].packet) else { return };
        let place = RoutingContext {
            router: self.id,
            input: count(input),
            vc: number,
            injected,
            vcs: rules.settings.classes[usize::from(packet.head.class)],
            chance: Chance::Seed(rules.settings.seed),
            used: &used,
        };
        vc.candidates.clear();
        rules.routing.route(&place, &mut packet.head, &mut vc.candidates);
        let until = match rules.settings.routing_delay {
            0 => rules.round,
            delay => rules.end_of(rules.round, delay) + 1,
        };
        vc.state = State::Routing { until };
    }

    /// Waiting heads request free VCs.
    fn allocate_vcs(&mut self, rules: &Rules<'_>, packets: &BTreeMap<u64, Packet>) {
        let vcs = rules.settings.vcs as usize;
        let done = rules.end_of(rules.round, rules.settings.vc_delay);
        let mut matrix = no_requests(self.inputs.len() * vcs, self.outputs.len() * vcs);
        for input in 0..self.inputs.len() {
            for vc in 0..vcs {
                let from = &self.inputs[input].vcs[vc];
                if from.state != State::WaitingForVc || from.next_vc_request > rules.round {
                    continue;
                }
                self.request_vcs(input, vc, rules, packets, &mut matrix);
                self.inputs[input].vcs[vc].next_vc_request = done + 1;
            }
        }
        for (requester, granted) in self.vc_matching.allocate(&matrix).into_iter().enumerate() {
            let Some(granted) = granted else { continue };
            let (input, vc) = (requester / vcs, requester % vcs);
            let (port, out_vc) = (count(granted / vcs), count(granted % vcs));
            self.vc_grants.push_back(VcGrant { due: done, input, vc, port, out_vc });
        }
    }

    fn request_vcs(
        &self,
        input: usize,
        vc: usize,
        rules: &Rules<'_>,
        packets: &BTreeMap<u64, Packet>,
        matrix: &mut Matrix,
    ) {
        let vcs = rules.settings.vcs as usize;
        let from = &self.inputs[input].vcs[vc];
        let packet = &packets[&from.flits[0].packet];
        for candidate in &from.candidates {
            for out_vc in candidate.vcs.first..=candidate.vcs.last {
                if !self.may_have(candidate.port, out_vc, packet, rules) {
                    continue;
                }
                let capacity = self.outputs[candidate.port as usize].capacity;
                let empty = self.credits(candidate.port, out_vc) == capacity;
                let last = rules.settings.prioritize_empty && !empty;
                let entry = Entry {
                    label: 0,
                    input_priority: i64::from(candidate.priority) - if last { 1 << 32 } else { 0 },
                    output_priority: packet.priority(rules.settings),
                };
                let place =
                    &mut matrix[input * vcs + vc][candidate.port as usize * vcs + out_vc as usize];
                if place.is_none_or(|other| other.input_priority < entry.input_priority) {
                    *place = Some(entry);
                }
            }
        }
    }

    /// Whether a packet can be given a VC: it is free, and has enough buffer space.
    fn may_have(&self, port: u32, vc: u32, packet: &Packet, rules: &Rules<'_>) -> bool {
        let full = rules.settings.busy_when_full && self.credits(port, vc) == 0;
        let small = rules.settings.cut_through && self.credits(port, vc) < packet.order.flits;
        !self.outputs[port as usize].vcs[vc as usize].taken && !full && !small
    }

    pub(super) fn credits(&self, port: u32, vc: u32) -> u32 {
        self.outputs[port as usize].vcs[vc as usize].credits
    }

    /// VCs that are allocated now: granted some cycles ago, and still available.
    fn vcs_due(&mut self, rules: &Rules<'_>, packets: &BTreeMap<u64, Packet>) -> Vec<VcGrant> {
        let mut due = Vec::new();
        let mut given = BTreeSet::new();
        while self.vc_grants.front().is_some_and(|grant| grant.due <= rules.round) {
            let Some(grant) = self.vc_grants.pop_front() else { break };
            let flit = self.inputs[grant.input].vcs[grant.vc].flits[0];
            let may = self.may_have(grant.port, grant.out_vc, &packets[&flit.packet], rules);
            if may && given.insert((grant.port, grant.out_vc)) {
                due.push(grant);
            }
        }
        due
    }
}
