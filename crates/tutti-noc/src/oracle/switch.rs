//! Switch allocation and traversal.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use super::matching::{Entry, Matching, Matrix, no_requests};
use super::parts::{Flit, Packet};
use super::router::{Router, State, VcGrant};
use super::{Rules, count};
use crate::{FlitError, Settings};

/// A passage through the switch for the next flit of a VC, in a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    due: u64,
    input: usize,
    vc: usize,
    port: u32,
}

/// A flit that has left its buffer, and when it is through the switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossing {
    due: u64,
    pub(super) port: u32,
    pub(super) flit: Flit,
}

/// A switch, with several inputs for an input port and several outputs for an output port.
#[derive(Clone, Debug)]
pub(super) struct Switch {
    matching: Matching,
    /// For speculative requests, if they have a separate allocator.
    speculative: Option<Matching>,
    /// Per switch input, the VC with the highest round-robin priority.
    turns: Vec<usize>,
    passages: VecDeque<Passage>,
    /// Per switch input, the switch output and the VC that it is held for.
    held: Vec<Option<(usize, usize)>>,
    pub(super) crossing: VecDeque<Crossing>,
}

impl Switch {
    pub(super) fn new(
        router: u32,
        inputs: usize,
        outputs: usize,
        settings: &Settings,
    ) -> Result<Switch, FlitError> {
        let inputs = inputs * settings.input_speedup as usize;
        let outputs = outputs * settings.output_speedup as usize;
        let matching = |kind| Matching::new(kind, router, inputs, outputs, settings);
        let speculation = settings.speculation.as_ref();
        let speculative = speculation.and_then(|speculation| speculation.allocator);
        Ok(Switch {
            matching: matching(settings.switch_allocator)?,
            speculative: speculative.map(matching).transpose()?,
            turns: (0..inputs).map(|input| input % settings.input_speedup as usize).collect(),
            passages: VecDeque::new(),
            held: vec![None; inputs],
            crossing: VecDeque::new(),
        })
    }

    fn is_held(&self, input: usize, output: usize) -> bool {
        self.held[input].is_some() || self.held.iter().flatten().any(|&(other, _)| other == output)
    }
}

/// The requests for the switch in a round.
struct Requests {
    plain: Matrix,
    speculative: Matrix,
}

/// The switch input of a VC, and the switch output of an output port for an input port.
fn switch_input(input: usize, vc: usize, settings: &Settings) -> usize {
    let speedup = settings.input_speedup as usize;
    input * speedup + vc % speedup
}

fn switch_output(port: u32, input: usize, settings: &Settings) -> usize {
    let speedup = settings.output_speedup as usize;
    port as usize * speedup + input % speedup
}

impl Router {
    /// VCs with a flit request the switch, unless a request is in flight.
    pub(super) fn allocate_switch(&mut self, rules: &Rules<'_>, packets: &BTreeMap<u64, Packet>) {
        let settings = rules.settings;
        let done = rules.end_of(rules.round, settings.switch_delay);
        let (inputs, outputs) = (
            self.inputs.len() * settings.input_speedup as usize,
            self.outputs.len() * settings.output_speedup as usize,
        );
        let (plain, speculative) = (no_requests(inputs, outputs), no_requests(inputs, outputs));
        let mut requests = Requests { plain, speculative };
        for input in 0..self.inputs.len() {
            for vc in 0..settings.vcs as usize {
                if self.inputs[input].vcs[vc].next_switch_request > rules.round {
                    continue;
                }
                if self.request_switch(input, vc, rules, packets, &mut requests) {
                    self.inputs[input].vcs[vc].next_switch_request = done + 1;
                }
            }
        }
        for (input, vc, output) in self.match_switch(&requests, rules) {
            let port = count(output / settings.output_speedup as usize);
            let turn = (vc + settings.input_speedup as usize) % settings.vcs as usize;
            self.switch.turns[input] = turn;
            let input = input / settings.input_speedup as usize;
            self.switch.passages.push_back(Passage { due: done, input, vc, port });
        }
    }

    /// Enters the request of a VC; returns whether it has one.
    fn request_switch(
        &self,
        input: usize,
        vc: usize,
        rules: &Rules<'_>,
        packets: &BTreeMap<u64, Packet>,
        requests: &mut Requests,
    ) -> bool {
        let from = &self.inputs[input].vcs[vc];
        let Some(flit) = from.flits.front() else { return false };
        let priority = packets[&flit.packet].priority(rules.settings);
        match from.state {
            State::Active { port, vc: out_vc } => {
                if self.is_held_for(input, vc, rules.settings) {
                    return false;
                }
                if self.credits(port, out_vc) > 0 && self.is_ready(port, rules) {
                    self.enter(input, vc, port, priority, rules.settings, &mut requests.plain);
                }
                true
            }
            State::WaitingForVc if rules.settings.speculation.is_some() => {
                self.speculate(input, vc, priority, rules, requests);
                true
            }
            _ => false,
        }
    }

    /// A head requests the switch though it has no VC.
    fn speculate(
        &self,
        input: usize,
        vc: usize,
        priority: i64,
        rules: &Rules<'_>,
        requests: &mut Requests,
    ) {
        let Some(speculation) = &rules.settings.speculation else { return };
        for candidate in &self.inputs[input].vcs[vc].candidates {
            let checks = speculation.check_vc || speculation.check_credit;
            let available = (candidate.vcs.first..=candidate.vcs.last).any(|out_vc| {
                let taken = self.outputs[candidate.port as usize].vcs[out_vc as usize].taken;
                let credit = !speculation.check_credit || self.credits(candidate.port, out_vc) > 0;
                !taken && credit && self.is_ready(candidate.port, rules)
            });
            if (checks && !available) || self.is_busy(candidate.port, rules) {
                continue;
            }
            let (matrix, priority) = match speculation.allocator {
                Some(_) => (&mut requests.speculative, priority),
                None => (&mut requests.plain, behind(priority)),
            };
            self.enter(input, vc, candidate.port, priority, rules.settings, matrix);
        }
    }

    /// Of several VCs of a switch input that request the same output, the one with the highest
    /// priority sends the request; ties are broken round-robin.
    fn enter(
        &self,
        input: usize,
        vc: usize,
        port: u32,
        priority: i64,
        settings: &Settings,
        matrix: &mut Matrix,
    ) {
        let (from, to) = (switch_input(input, vc, settings), switch_output(port, input, settings));
        if self.switch.is_held(from, to) {
            return;
        }
        let vcs = settings.vcs as usize;
        let distance = |vc: usize| (vc + vcs - self.switch.turns[from]) % vcs;
        let rank = |priority: i64, vc: usize| (priority, Reverse(distance(vc)));
        let place = &mut matrix[from][to];
        let first = place.is_none_or(|other| {
            rank(priority, vc) > rank(other.input_priority, other.label as usize)
        });
        if first {
            let (input_priority, output_priority) = (priority, priority);
            *place = Some(Entry { label: count(vc), input_priority, output_priority });
        }
    }

    /// Switch inputs, their VCs and the switch outputs granted. Speculative requests come second.
    fn match_switch(
        &mut self,
        requests: &Requests,
        rules: &Rules<'_>,
    ) -> Vec<(usize, usize, usize)> {
        let plain = self.switch.matching.allocate(&requests.plain);
        let speculative = match &mut self.switch.speculative {
            Some(matching) => matching.allocate(&requests.speculative),
            None => vec![None; plain.len()],
        };
        let yields = rules.settings.speculation.as_ref().is_some_and(|s| s.yield_to_requests);
        let mut matched = Vec::new();
        for input in 0..plain.len() {
            if let Some(output) = plain[input] {
                matched.extend(winner(&requests.plain, input, output));
            } else if let Some(output) = speculative[input] {
                let requested = requests.plain.iter().any(|row| row[output].is_some());
                let masked = if yields { requested } else { plain.contains(&Some(output)) };
                if !masked {
                    matched.extend(winner(&requests.speculative, input, output));
                }
            }
        }
        matched
    }

    /// Switch traversals that start now: granted some cycles ago, if there is still a credit and no
    /// held passage blocks them; for a speculative head, if it gets a VC of that port with a
    /// credit.
    pub(super) fn passages_due(&mut self, rules: &Rules<'_>, vcs: &[VcGrant]) -> Vec<Passage> {
        let mut due = Vec::new();
        while self.switch.passages.front().is_some_and(|passage| passage.due <= rules.round) {
            let Some(passage) = self.switch.passages.pop_front() else { break };
            let Passage { input, vc, port, .. } = passage;
            let from = switch_input(input, vc, rules.settings);
            let to = switch_output(port, input, rules.settings);
            let out_vc = match self.inputs[input].vcs[vc].state {
                State::Active { vc, .. } => Some(vc),
                _ => vcs
                    .iter()
                    .find(|grant| (grant.input, grant.vc, grant.port) == (input, vc, port))
                    .map(|grant| grant.out_vc),
            };
            let credit = out_vc.is_some_and(|out_vc| self.credits(port, out_vc) > 0);
            if credit && !self.is_busy(port, rules) && !self.switch.is_held(from, to) {
                due.push(passage);
            }
        }
        due
    }

    /// Flits leave their buffers. With a held switch, later flits of the packet keep the passage.
    pub(super) fn pass(
        &mut self,
        rules: &Rules<'_>,
        passages: Vec<Passage>,
        packets: &mut BTreeMap<u64, Packet>,
    ) {
        for Passage { input, vc, port, .. } in passages {
            let tail = self.leave(input, vc, rules, packets);
            self.inputs[input].freed.push(count(vc));
            if rules.settings.hold_switch && !tail && !self.inputs[input].vcs[vc].flits.is_empty() {
                let from = switch_input(input, vc, rules.settings);
                let to = switch_output(port, input, rules.settings);
                self.switch.held[from] = Some((to, vc));
            }
        }
    }

    /// VCs for which a passage is held, and whether their next flit can take it.
    pub(super) fn held(&self, rules: &Rules<'_>) -> Vec<(Passage, bool)> {
        let mut held = Vec::new();
        for input in 0..self.inputs.len() {
            for vc in 0..rules.settings.vcs as usize {
                let State::Active { port, vc: out_vc } = self.inputs[input].vcs[vc].state else {
                    continue;
                };
                if self.is_held_for(input, vc, rules.settings) {
                    let can = self.credits(port, out_vc) > 0 && self.is_ready(port, rules);
                    held.push((Passage { due: rules.round, input, vc, port }, can));
                }
            }
        }
        held
    }

    /// Held passages are used; one is released when it is not used, after a packet's tail, or while
    /// no flit follows.
    pub(super) fn pass_held(
        &mut self,
        rules: &Rules<'_>,
        held: Vec<(Passage, bool)>,
        packets: &mut BTreeMap<u64, Packet>,
    ) {
        let mut taken = Vec::new();
        for (passage, can) in held {
            self.switch.held[switch_input(passage.input, passage.vc, rules.settings)] = None;
            if can {
                taken.push(passage);
            }
        }
        self.pass(rules, taken, packets);
    }

    fn is_held_for(&self, input: usize, vc: usize, settings: &Settings) -> bool {
        let held = self.switch.held[switch_input(input, vc, settings)];
        held.is_some_and(|(_, for_vc)| for_vc == vc)
    }

    /// Whether an output port takes requests: its channel is free, and the queue behind the switch
    /// is not full.
    fn is_ready(&self, port: u32, rules: &Rules<'_>) -> bool {
        let waiting = count(self.outputs[port as usize].queue.len());
        let full = rules.settings.output_buffer.is_some_and(|most| waiting >= most);
        !full && !self.is_busy(port, rules)
    }

    fn is_busy(&self, port: u32, rules: &Rules<'_>) -> bool {
        self.outputs[port as usize].is_busy(rules.picoseconds)
    }

    /// The first flit of a VC leaves its buffer. Returns whether it is the tail.
    fn leave(
        &mut self,
        input: usize,
        vc: usize,
        rules: &Rules<'_>,
        packets: &mut BTreeMap<u64, Packet>,
    ) -> bool {
        let from = &mut self.inputs[input].vcs[vc];
        let State::Active { port, vc: out_vc } = from.state else {
            unreachable!("only packets with a VC go on")
        };
        let mut flit = from.flits.pop_front().expect("a passage is for a flit");
        flit.vc = out_vc;
        if flit.tail {
            from.state = if from.flits.is_empty() { State::Idle } else { State::Fresh };
        }
        if flit.head
            && let Some(packet) = packets.get_mut(&flit.packet)
        {
            packet.head.hops += 1;
        }
        let output = &mut self.outputs[port as usize];
        output.use_credit(&flit, rules.settings);
        output.occupy(rules.picoseconds);
        let due = match rules.settings.traversal_delay {
            0 => rules.round,
            delay => rules.end_of(rules.next, delay),
        };
        self.switch.crossing.push_back(Crossing { due, port, flit });
        flit.tail
    }

    /// Flits that are through the switch wait for their channel; so do the credits of the round.
    pub(super) fn cross(&mut self, rules: &Rules<'_>) {
        while self.switch.crossing.front().is_some_and(|crossing| crossing.due <= rules.round) {
            let Some(Crossing { port, flit, .. }) = self.switch.crossing.pop_front() else { break };
            self.outputs[port as usize].queue.push_back(flit);
        }
        for input in self.inputs.iter_mut().filter(|input| !input.freed.is_empty()) {
            input.credits.push_back(std::mem::take(&mut input.freed));
        }
    }
}

/// Below every non-speculative priority.
fn behind(priority: i64) -> i64 {
    priority - (1 << 62)
}

fn winner(matrix: &Matrix, input: usize, output: usize) -> Option<(usize, usize, usize)> {
    matrix[input][output].map(|entry| (input, entry.label as usize, output))
}
