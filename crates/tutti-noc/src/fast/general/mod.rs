//! All other allocators and pipelines: priorities, speculation, speedups, delays of several cycles,
//! held switches.
//!
//! Here all routers first send requests, on the state at the start of the cycle. Then the grants
//! that are due take effect: VCs first, then the switch.

mod bids;

use std::collections::VecDeque;

use super::Network;
use super::bits::{Bits, low};
use super::state::{NetworkState, Router, Stage, count};
use crate::FlitError;
use crate::allocator::{Allocator, AllocatorKind, ArbiterKind, Request};
use crate::routing::Candidate;
use crate::settings::{Priority, Settings};

/// Below every priority of a packet or a candidate.
const LAST: i64 = 1 << 62;

/// The result of an allocation for an input VC, known when `due`.
#[derive(Clone, Copy, Debug)]
struct Decision {
    due: u64,
    router: u32,
    /// Counted from the router's first input VC.
    local: usize,
    /// The granted output VC or switch output; counted from the router's first.
    granted: Option<usize>,
}

/// An input VC that requests the switch.
#[derive(Clone, Copy, Debug)]
struct Bid {
    input: usize,
    output: usize,
    local: usize,
    priority: i64,
    speculative: bool,
}

/// Allocators, and the allocations in flight.
pub(super) struct General {
    vc: Vec<Allocator>,
    switch: Vec<Allocator>,
    speculative: Vec<Allocator>,
    /// Per switch input, the VC whose turn it is.
    offsets: Vec<usize>,
    /// Per switch input, the input VC that holds it, counted from the router's first, and the
    /// switch output that it holds.
    holders: Vec<Option<(usize, usize)>>,
    /// Per switch output, how many switch inputs hold it: grants of several rounds can be due in
    /// one.
    held: Vec<u32>,
    vc_decisions: VecDeque<Decision>,
    switch_decisions: VecDeque<Decision>,
    requests: Vec<Request>,
    grants: Vec<(u32, u32)>,
    bids: Vec<Bid>,
    /// VCs granted in the turn of this router, for speculative requests.
    fresh_grants: Vec<(u32, u32)>,
    /// Router and input VC of the packets that hold the switch, and whether they can use it now.
    holding: Vec<(usize, usize, bool)>,
    /// The most rounds of a cycle, and the number of this one; stages and queues count in rounds.
    /// A cycle with fewer rounds skips the last numbers.
    rounds: u64,
    round: u64,
    /// Heads being routed: the round from which they request a VC.
    routing: VecDeque<(u64, u32)>,
    /// Per input port, the round that credits were last freed in, and the cycle they leave in: a
    /// message for a round, and one message in a cycle.
    credits: Vec<(u64, u64)>,
    /// Per output port, the round in which flits reach the queue behind the switch, and the cycle
    /// in which they leave it; where that is bounded.
    queues: Vec<VecDeque<(u64, u64)>>,
}

impl General {
    /// Whether settings require this engine.
    fn needed(settings: &Settings) -> bool {
        let usual = settings.vc_allocator == AllocatorKind::SeparableInputFirst
            && settings.switch_allocator == AllocatorKind::SeparableInputFirst
            && settings.arbiter == ArbiterKind::RoundRobin
            && (settings.vc_delay, settings.switch_delay) == (1, 1)
            && settings.speculation.is_none()
            && (settings.input_speedup, settings.output_speedup) == (1, 1)
            && settings.most_rounds() == 1
            && !settings.prioritize_empty
            && !settings.hold_switch
            && settings.priority == Priority::None;
        !usual
    }

    /// Returns the state of the general allocators, if the settings require them.
    pub(super) fn if_needed<const W: usize>(
        layout: &NetworkState<W>,
        settings: &Settings,
    ) -> Result<Option<Box<General>>, FlitError> {
        let general = General::needed(settings).then(|| General::new(layout, settings));
        Ok(general.transpose()?.map(Box::new))
    }

    fn new<const W: usize>(
        layout: &NetworkState<W>,
        settings: &Settings,
    ) -> Result<General, FlitError> {
        let allocators = |kind, inputs: u32, outputs: u32| {
            let one = |(index, router): (u64, &Router<W>)| {
                let (inputs, outputs) = (router.inputs * inputs, router.outputs * outputs);
                let seed = settings.seed ^ index << 32;
                let (arbiter, iterations) = (settings.arbiter, settings.iterations);
                Allocator::new(kind, arbiter, inputs, outputs, iterations, seed)
            };
            (0..).zip(&layout.routers).map(one).collect::<Result<Vec<_>, _>>()
        };
        let (ins, outs) = (settings.input_speedup, settings.output_speedup);
        let speculative = settings.speculation.and_then(|speculation| speculation.allocator);
        let (in_ports, out_ports) = (layout.in_ports.len(), layout.out_ports.len());
        let inputs = in_ports * ins as usize;
        Ok(General {
            vc: allocators(settings.vc_allocator, settings.vcs, settings.vcs)?,
            switch: allocators(settings.switch_allocator, ins, outs)?,
            speculative: speculative.map_or(Ok(Vec::new()), |kind| allocators(kind, ins, outs))?,
            offsets: (0..inputs).map(|input| input % ins as usize).collect(),
            holders: vec![None; inputs],
            held: vec![0; out_ports * outs as usize],
            vc_decisions: VecDeque::new(),
            switch_decisions: VecDeque::new(),
            requests: Vec::new(),
            grants: Vec::new(),
            bids: Vec::new(),
            fresh_grants: Vec::new(),
            holding: Vec::new(),
            rounds: settings.most_rounds(),
            round: 0,
            routing: VecDeque::new(),
            credits: vec![(u64::MAX, 0); in_ports],
            queues: vec![VecDeque::new(); out_ports],
        })
    }
}

impl General {
    /// The last round of a stage of `delay` cycles that starts in `round`.
    fn end_of(&self, round: u64, cycles: u64) -> u64 {
        if cycles <= 1 { round } else { (round / self.rounds + cycles - 1) * self.rounds }
    }

    /// The round after this one, in this cycle or in the next.
    fn next(&self, same_cycle: bool) -> u64 {
        if same_cycle { self.round + 1 } else { (self.round / self.rounds + 1) * self.rounds }
    }

    /// Whether no allocation is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.routing.is_empty() && self.vc_decisions.is_empty() && self.switch_decisions.is_empty()
    }

    /// A head is routed from this round on, or from the first of a cycle that has just started.
    pub(super) fn route_until(&mut self, now: u64, delay: u64, in_vc: u32) {
        let round = self.round.max(now * self.rounds);
        self.routing.push_back((self.end_of(round, delay) + 1, in_vc));
    }

    /// A VC holds a switch input and output from now on; a previous holder of that input loses it.
    fn hold(&mut self, input: usize, local: usize, output: usize) {
        self.release_hold(input);
        self.holders[input] = Some((local, output));
        self.held[output] += 1;
    }

    /// A switch input, and the output it is held for, are free again.
    fn release_hold(&mut self, input: usize) {
        if let Some((_, output)) = self.holders[input].take() {
            self.held[output] -= 1;
        }
    }

    /// How long credits freed now wait for earlier credits.
    pub(super) fn credit_waits(&mut self, in_port: usize, now: u64) -> u64 {
        let (round, leaves) = &mut self.credits[in_port];
        if *round != self.round {
            *leaves = if *round == u64::MAX { now } else { now.max(*leaves + 1) };
            *round = self.round;
        }
        *leaves - now
    }
}

/// The switch inputs or outputs of a router's ports.
#[derive(Clone, Copy)]
struct Switch {
    ins: usize,
    outs: usize,
    vcs: usize,
}

impl Switch {
    /// The switch input of an input VC.
    fn input(self, local: usize) -> usize {
        let (port, vc) = (local / self.vcs, local % self.vcs);
        port * self.ins + vc % self.ins
    }

    /// The switch output that an input VC uses of an output port.
    fn output(self, local: usize, port: usize) -> usize {
        port * self.outs + local / self.vcs % self.outs
    }
}

impl<const W: usize> Network<W> {
    /// All rounds of a cycle.
    pub(super) fn allocate_generally(&mut self) {
        let (most, rounds) = (self.settings.most_rounds(), self.settings.rounds_in(self.now));
        for round in 0..rounds {
            self.begin_round(self.now * most + round);
            let Some(mut general) = self.general.take() else { return };
            for index in 0..self.active.words() {
                let mut word = self.active.word(index) & self.due_routers(index);
                while word != 0 {
                    self.ask(&mut general, index * 64 + low(word));
                    word &= word - 1;
                }
            }
            self.commit_vcs(&mut general);
            let passages = self.passages(&mut general);
            self.general = Some(general);
            let sooner = round + 1 < rounds && self.settings.traversal_delay > 0;
            self.commit_switch(passages, sooner);
        }
    }

    /// Heads that have become first are routed; routed heads request a VC.
    fn begin_round(&mut self, round: u64) {
        if let Some(general) = &mut self.general {
            general.round = round;
        }
        self.route_fresh();
        while let Some(general) = &mut self.general
            && let Some(&(from, in_vc)) = general.routing.front()
            && from <= round
        {
            general.routing.pop_front();
            self.request_vc(in_vc);
        }
    }

    /// The last round of a stage of a router that starts now.
    fn ends(&self, general: &General, router: usize, cycles: u32) -> u64 {
        match &self.clocks {
            Some(clocks) => clocks.ahead(count(router), u64::from(cycles.max(1) - 1)),
            None => general.end_of(general.round, u64::from(cycles)),
        }
    }

    fn switch(&self) -> Switch {
        Switch {
            ins: self.settings.input_speedup as usize,
            outs: self.settings.output_speedup as usize,
            vcs: self.vcs,
        }
    }

    /// The VCs of a router send their requests.
    fn ask(&mut self, general: &mut General, router: usize) {
        let (vc_requests, ready) = (self.routers[router].vc_requests, self.routers[router].ready);
        general.fresh_grants.clear();
        if vc_requests.any() {
            self.bid_for_vcs(general, router, vc_requests);
        }
        let speculates = self.settings.speculation.is_some() && vc_requests.any();
        if ready.any() || speculates {
            self.bid_for_switch(general, router, ready, vc_requests);
        }
        self.routers[router].vc_requests = Bits::EMPTY;
        self.routers[router].ready = Bits::EMPTY;
        self.active.clear(router);
    }

    fn bid_for_vcs(&mut self, general: &mut General, router: usize, vc_requests: Bits<W>) {
        general.requests.clear();
        let mut rest = vc_requests;
        while let Some(local) = rest.pop() {
            let in_vc = self.routers[router].first_in as usize * self.vcs + local;
            self.for_each_candidate(in_vc, |candidate| {
                self.request_vcs(general, router, local, candidate)
            });
        }
        general.vc[router].allocate(&general.requests, &mut general.fresh_grants);
        let due = self.ends(general, router, self.settings.vc_delay);
        let mut rest = vc_requests;
        let mut grants = general.fresh_grants.iter().peekable();
        while let Some(local) = rest.pop() {
            let granted = grants.next_if(|grant| grant.0 as usize == local);
            let granted = granted.map(|grant| grant.1 as usize);
            self.in_vcs[self.routers[router].first_in as usize * self.vcs + local].stage =
                Stage::Pending;
            let decision = Decision { due, router: count(router), local, granted };
            enter(&mut general.vc_decisions, decision);
        }
    }

    /// Every candidate of the first packet of a VC.
    fn for_each_candidate(&self, in_vc: usize, mut what: impl FnMut(&Candidate)) {
        let vc = &self.in_vcs[in_vc];
        if vc.many {
            self.candidates[in_vc].iter().for_each(what);
        } else {
            what(&Candidate { port: u32::from(vc.port), vcs: vc.vcs(), priority: 0 });
        }
    }

    /// A packet requests every VC of a candidate that it can have.
    fn request_vcs(
        &self,
        general: &mut General,
        router: usize,
        local: usize,
        candidate: &Candidate,
    ) {
        let in_vc = self.routers[router].first_in as usize * self.vcs + local;
        let port = (self.routers[router].first_out + candidate.port) as usize;
        let mut free = self.usable(in_vc, port, candidate.vcs.mask());
        let output_priority = self.first_priority(in_vc);
        while free != 0 {
            let bit = low(free);
            free &= free - 1;
            let credits = self.out_vcs[port * self.vcs + bit].credits;
            let empty = credits == self.out_ports[port].capacity;
            let last = if self.settings.prioritize_empty && !empty { LAST } else { 0 };
            general.requests.push(Request {
                input: count(local),
                output: candidate.port * self.settings.vcs + count(bit),
                input_priority: i64::from(candidate.priority) - last,
                output_priority,
            });
        }
    }

    /// The priority of the packet that is first in a VC.
    fn first_priority(&self, in_vc: usize) -> i64 {
        self.priority(self.first_flit(in_vc).packet())
    }

    fn commit_vcs(&mut self, general: &mut General) {
        while general.vc_decisions.front().is_some_and(|decision| decision.due <= general.round) {
            let Some(Decision { router, local, granted, .. }) = general.vc_decisions.pop_front()
            else {
                break;
            };
            let router = router as usize;
            let in_vc = self.routers[router].first_in as usize * self.vcs + local;
            let still = granted.filter(|&out| self.is_still_free(router, in_vc, out));
            match still {
                Some(out) => self.grant_vc(&{ self.routers[router] }, local, out),
                None => {
                    self.in_vcs[in_vc].stage = Stage::Waiting;
                    self.routers[router].vc_requests.set(local);
                }
            }
            self.active.set(router);
        }
    }

    /// Whether an output VC granted some cycles ago is still available.
    fn is_still_free(&self, router: usize, in_vc: usize, out: usize) -> bool {
        let port = self.routers[router].first_out as usize + out / self.vcs;
        let bit = 1 << (out % self.vcs);
        self.settings.vc_delay == 1 || self.usable(in_vc, port, bit) != 0
    }

    /// The input VCs that are due to pass and still can, before any of them does; the others
    /// request again.
    fn passages(&mut self, general: &mut General) -> Vec<(usize, usize)> {
        let mut passages = Vec::new();
        while general.switch_decisions.front().is_some_and(|decision| decision.due <= general.round)
        {
            let Some(Decision { router, local, granted, .. }) =
                general.switch_decisions.pop_front()
            else {
                break;
            };
            let router = router as usize;
            let in_vc = self.routers[router].first_in as usize * self.vcs + local;
            self.in_vcs[in_vc].switch_pending = false;
            let out = &self.out_vcs[self.in_vcs[in_vc].out as usize];
            let can = out.credits > 0 && (!self.slow || self.can_send(out.port as usize));
            if can && granted.is_some_and(|output| !self.is_held(general, router, local, output)) {
                passages.push((router, local));
            } else {
                self.routers[router].ready.set(local);
                self.active.set(router);
            }
        }
        passages
    }

    /// Packets that hold the switch go on, or lose it; then packets with a grant pass.
    fn commit_switch(&mut self, passages: Vec<(usize, usize)>, sooner: bool) {
        let Some(general) = &mut self.general else { return };
        let mut holding = std::mem::take(&mut general.holding);
        for &(router, local, can) in &holding {
            self.release(router, local);
            if !can {
                self.routers[router].ready.set(local);
                self.active.set(router);
            }
        }
        for &(router, local, _) in holding.iter().filter(|&&(_, _, can)| can) {
            self.pass(router, local, sooner);
        }
        holding.clear();
        if let Some(general) = &mut self.general {
            general.holding = holding;
        }
        for (router, local) in passages {
            self.pass(router, local, sooner);
        }
    }

    /// A held switch is free again.
    fn release(&mut self, router: usize, local: usize) {
        let switch = self.switch();
        let first_in = self.routers[router].first_in as usize;
        let Some(general) = &mut self.general else { return };
        general.release_hold(first_in * switch.ins + switch.input(local));
    }

    /// A flit passes the switch.
    fn pass(&mut self, router: usize, local: usize, sooner: bool) {
        let Router { first_in, first_out, .. } = self.routers[router];
        let in_vc = first_in as usize * self.vcs + local;
        let port = self.out_vcs[self.in_vcs[in_vc].out as usize].port as usize;
        let goes_on = self.leave(in_vc, u64::from(sooner));
        if self.routers[router].ready.any() {
            self.active.set(router);
        }
        let switch = self.switch();
        let Some(general) = &mut self.general else { return };
        let delay = u64::from(self.settings.traversal_delay);
        if self.settings.output_buffer.is_some() {
            let leaves = self.serial[port].next + delay - u64::from(self.out_ports[port].after) - 1;
            let reaches = match delay {
                0 => general.round,
                delay => general.end_of(general.next(sooner), delay),
            };
            general.queues[port].push_back((reaches, leaves));
        }
        if self.settings.hold_switch && goes_on && self.in_vcs[in_vc].length > 0 {
            let input = first_in as usize * switch.ins + switch.input(local);
            let output = switch.output(local, port - first_out as usize);
            general.hold(input, local, first_out as usize * switch.outs + output);
        }
    }

    /// Whether a packet has come to hold the switch input or output since they were granted.
    fn is_held(&self, general: &General, router: usize, local: usize, output: usize) -> bool {
        let switch = self.switch();
        let Router { first_in, first_out, .. } = self.routers[router];
        general.holders[first_in as usize * switch.ins + switch.input(local)].is_some()
            || general.held[first_out as usize * switch.outs + output] > 0
    }
}

/// Adds a decision after all that are due no later; those of routers with slower clocks are later.
fn enter(decisions: &mut VecDeque<Decision>, decision: Decision) {
    let after = decisions.iter().rev().take_while(|other| other.due > decision.due).count();
    decisions.insert(decisions.len() - after, decision);
}
