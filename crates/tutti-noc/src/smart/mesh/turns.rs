//! Paths of several hops with a turn (SMART_2D): who wins each router, and how far flits get.
//! [`super::trees`] has the multicasts that fork on them.
//!
//! A router arbitrates in two stages. Each input selects one of the requests that enter by it, then
//! each output selects among these and the flit that SA-L granted it.

use std::cmp::Reverse;

use super::super::message::Arrival;
use super::super::record::{EventKind, Stop};
use super::Mesh;
use super::allocate::Grant;
use super::geometry::{LOCAL, PORTS, input_of, is_left_turn, opposite, port_of, router_of};
use super::paths::{Request, count_request};
use super::state::NO_PACKET;
use super::vcs::{ON_TREE, RESPONSE, low_bit};

/// A request for a path that may turn once, or a branch of a multicast's tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bent {
    pub(super) request: Request,
    /// The output by which the flit leaves its router.
    pub(super) output: usize,
    /// Hops before the turn; all of them without one.
    pub(super) first: u32,
    /// The direction after the turn.
    pub(super) then: usize,
    /// Of a branch: the request from whose path it forks off, and the hops before; else itself, and
    /// 0.
    pub(super) trunk: u32,
    pub(super) from: u32,
}

/// What decides between two requests: the larger one wins. It is the rank, then fewer hops from the
/// buffer, then more hops in the direction of travel, then a turn to the left.
type Claim = (i64, Reverse<u32>, u32, bool);

/// A request at a router on its path, `hop` hops from its buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contest {
    claim: Claim,
    pub(super) request: u32,
    hop: u32,
    /// The outputs by which it can pass.
    outputs: u8,
}

/// Buffers of a cycle's arbitration.
#[derive(Clone, Debug, Default)]
pub(super) struct Bends {
    /// Branches follow their trunk.
    pub(super) requests: Vec<Bent>,
    /// By input: the packet whose flit was granted outputs, and the passing request selected.
    granted: Vec<u32>,
    selected: Vec<Option<Contest>>,
    /// The inputs with such a request.
    inputs: Vec<u32>,
    /// By router and output: the winner.
    pub(super) winners: Vec<[Option<Contest>; 4]>,
    /// By router: a bit for each input that a passing flit uses.
    used: Vec<u8>,
}

impl Bends {
    pub(super) fn new(nodes: usize) -> Bends {
        Bends {
            granted: vec![NO_PACKET; nodes * PORTS],
            selected: vec![None; nodes * PORTS],
            winners: vec![[None; 4]; nodes],
            used: vec![0; nodes],
            ..Bends::default()
        }
    }

    /// Forgets the last cycle.
    fn clear(&mut self) {
        self.granted.fill(NO_PACKET);
        self.selected.fill(None);
        self.inputs.clear();
        self.winners.fill([None; 4]);
        self.used.fill(0);
    }

    /// Whether a request has won an output.
    pub(super) fn has_won(&self, number: usize, router: u32, output: usize) -> bool {
        let winner = self.winners[router as usize][output];
        winner.is_some_and(|winner| winner.request as usize == number)
    }

    /// The requests that leave a router by an output: that of the path itself, or a branch.
    fn leaving(&self, contest: &Contest, output: usize) -> u32 {
        let own = &self.requests[contest.request as usize];
        let branches = (0..).zip(&self.requests).skip(contest.request as usize + 1);
        if own.direction(contest.hop + 1) == output {
            return contest.request;
        }
        let forks =
            |(_, branch): &(u32, &Bent)| branch.from == contest.hop && branch.then == output;
        let (number, _) = branches.into_iter().find(forks).expect("a branch leaves there");
        number
    }
}

impl Bent {
    /// The direction of a hop, counted from 1.
    pub(super) fn direction(&self, hop: u32) -> usize {
        if hop <= self.first { self.output } else { self.then }
    }

    /// Hops made in the direction of a hop before it, and whether they follow a turn to the left.
    fn straight(&self, before: u32, hop: u32) -> (u32, bool) {
        if hop <= self.first {
            (before, false)
        } else {
            (before - self.first, is_left_turn(self.output, self.then))
        }
    }

    /// Its claim of the output by which it leaves the router at `hop`.
    fn claim(&self, rank: i64, hop: u32) -> Claim {
        let (straight, left) = self.straight(hop, hop + 1);
        (rank, Reverse(hop), straight, left)
    }

    /// Its claim of the input by which it enters that router.
    fn claim_of_input(&self, rank: i64, hop: u32) -> Claim {
        let (straight, left) = self.straight(hop, hop);
        (rank, Reverse(hop), straight, left)
    }
}

impl Mesh {
    /// Moves granted flits along paths that may turn.
    pub(super) fn cross_with_turns(&mut self, arrivals: &mut Vec<Arrival>) {
        let mut grants = std::mem::take(&mut self.grants);
        let mut bends = std::mem::take(&mut self.bends);
        bends.clear();
        for (index, grant) in (0..).zip(&grants) {
            self.each_request(index, grant, |mesh, request, output| {
                mesh.bend(&mut bends.requests, request, output);
            });
        }
        self.select(&mut bends, &grants);
        self.choose_winners(&mut bends);
        lose_outputs(&bends, &mut grants);
        for grant in grants.iter().filter(|grant| grant.outputs != 0) {
            self.read_out(grant, arrivals);
        }
        for number in 0..bends.requests.len() {
            let bent = bends.requests[number];
            let grant = &grants[bent.request.grant as usize];
            if bent.from > 0 || grant.outputs >> bent.output & 1 == 0 {
                continue;
            }
            self.note_requested(&bent);
            if self.settings.collective_turns && bent.request.route.is(ON_TREE) {
                self.walk_tree(&bends, number);
            } else {
                let sum = self.sum_of(&bent.request, grant);
                self.walk_from(&bends, number, bent.request.router, sum);
            }
        }
        for grant in grants.iter().filter(|grant| grant.outputs != 0) {
            self.depart(grant);
        }
        bends.requests.clear();
        (self.bends, self.grants) = (bends, grants);
    }

    /// Adds a request, as far as it reaches. Multicasts on their tree and responses that are
    /// combined pass turns only with [`super::Settings::collective_turns`]: the paper defines their
    /// paths per dimension.
    fn bend(&mut self, requests: &mut Vec<Bent>, mut request: Request, output: usize) {
        let reach = self.settings.hops_per_cycle;
        if request.route.is(RESPONSE) {
            request.flow = self.packets.flow(request.slot);
        }
        let mut wires = self.geometry.to_edge(request.router, output).min(reach);
        let trunk = u32::try_from(requests.len()).expect("fewer than the outputs of all routers");
        let mut bent = Bent { request, output, first: wires, then: output, trunk, from: 0 };
        if !request.route.is(ON_TREE) {
            let to = self.packets.get(request.slot).destination;
            bent.first = self.geometry.towards(request.router, to).1.min(reach);
            let left = reach - bent.first;
            let turn = self.geometry.ahead(request.router, output, bent.first);
            let (then, hops) = self.geometry.towards(turn, to);
            let turns = request.flow.is_none() || self.settings.collective_turns;
            if left > 0 && then != LOCAL && turns {
                wires += self.geometry.to_edge(turn, then).min(left);
                bent.then = then;
                bent.request.hops = bent.first + hops.min(left);
                requests.push(bent);
                count_request(&mut self.counts, u64::from(wires), request.flow.is_some());
                return;
            }
        }
        bent.request.hops = bent.first;
        requests.push(bent);
        if self.settings.collective_turns && request.route.is(ON_TREE) {
            wires += self.add_branches(requests, &bent);
        }
        count_request(&mut self.counts, u64::from(wires), request.flow.is_some());
    }

    /// Lets each input select, of the requests that may pass its router and enter by it, that with
    /// the largest claim. It must outrank the flit of the input that was granted outputs.
    fn select(&self, bends: &mut Bends, grants: &[Grant]) {
        for grant in grants {
            bends.granted[grant.place.input as usize] = self.vcs.at(grant.place).packet;
        }
        let priority = &self.settings.priority;
        for (number, bent) in (0..).zip(&bends.requests) {
            let request = &bent.request;
            let flit = self.contender(request.slot);
            if bent.from == 0 {
                let claim = bent.claim(priority.rank(&flit, 0), 0);
                let own = Contest { claim, request: number, hop: 0, outputs: 0 };
                bends.winners[request.router as usize][bent.output] = Some(own);
            }
            let start = bent.from.max(1);
            let mut router = self.geometry.ahead(request.router, bent.output, start - 1);
            for hop in start..request.hops {
                let (came, leaves) = (bent.direction(hop), bent.direction(hop + 1));
                router = self.geometry.neighbour(router, came);
                let input = input_of(router, opposite(came));
                let rank = priority.rank(&flit, hop);
                let claim = bent.claim_of_input(rank, hop);
                let selected = &mut bends.selected[input as usize];
                let granted = bends.granted[input as usize];
                if selected.is_some_and(|other| other.claim > claim)
                    || granted != NO_PACKET && rank <= priority.rank(&self.contender(granted), 0)
                    || self.obstacle(request, router, came, leaves).is_some()
                {
                    continue;
                }
                // Where it forks, a multicast is one flit that passes by several outputs.
                let request = if hop == bent.from { bent.trunk } else { number };
                let outputs = match selected {
                    Some(other) if other.request == request => other.outputs | 1 << leaves,
                    _ => 1 << leaves,
                };
                if selected.replace(Contest { claim, request, hop, outputs }).is_none() {
                    bends.inputs.push(input);
                }
            }
        }
    }

    /// Lets each output choose among the flit that SA-L granted it and the selected requests.
    fn choose_winners(&self, bends: &mut Bends) {
        for &input in &bends.inputs {
            let Some(contest) = bends.selected[input as usize] else { continue };
            let mut outputs = contest.outputs;
            while outputs != 0 {
                let output = outputs.trailing_zeros() as usize;
                outputs &= outputs - 1;
                let request = bends.leaving(&contest, output);
                let claim = bends.requests[request as usize].claim(contest.claim.0, contest.hop);
                let winner = &mut bends.winners[router_of(input) as usize][output];
                if winner.is_none_or(|other| claim > other.claim) {
                    *winner = Some(Contest { claim, request, ..contest });
                }
            }
        }
        for (winners, used) in bends.winners.iter().zip(&mut bends.used) {
            for winner in winners.iter().flatten().filter(|winner| winner.hop > 0) {
                let came = bends.requests[winner.request as usize].direction(winner.hop);
                *used |= 1 << opposite(came);
            }
        }
    }

    /// Moves a flit along its path from a router, where it starts or forks off, as far as it gets.
    pub(super) fn walk_from(
        &mut self,
        bends: &Bends,
        number: usize,
        mut router: u32,
        mut sum: (u32, u64),
    ) {
        let bent = &bends.requests[number];
        let Bent { request, .. } = bent;
        for hop in bent.from + 1..=request.hops {
            let came = bent.direction(hop);
            router = self.geometry.neighbour(router, came);
            self.counts.link_hops += 1;
            let leaves = bent.direction(hop + 1);
            let why = if hop == request.hops {
                Some(Stop::End)
            } else {
                self.stop_bent(bends, number, router, (came, leaves))
            };
            let Some(why) = why else {
                #[cfg(debug_assertions)]
                self.audit.passes(router, came, leaves, self.crossing());
                self.pass(request, router, came, &mut sum);
                continue;
            };
            let stopped = EventKind::Stopped { input: low_bit(1 << opposite(came)), why };
            self.note(router, request.slot, stopped);
            self.note_crossing(bent, hop);
            self.buffer_flit(request, router, came, true, sum);
            self.note_idle_bent(bends, number, router, hop);
            return;
        }
    }

    /// What stops a flit at an intermediate router of its path.
    pub(super) fn stop_bent(
        &self,
        bends: &Bends,
        number: usize,
        router: u32,
        (came, leaves): (usize, usize),
    ) -> Option<Stop> {
        if bends.has_won(number, router, leaves) {
            return None;
        }
        let winner = bends.winners[router as usize][leaves];
        let request = &bends.requests[number].request;
        let obstacle =
            self.record.as_ref().and_then(|_| self.obstacle(request, router, came, leaves));
        Some(obstacle.unwrap_or_else(|| {
            let input = bends.granted[input_of(router, opposite(came)) as usize];
            let local = winner.is_some_and(|winner| winner.hop == 0) || input != NO_PACKET;
            if local { Stop::Local } else { Stop::Passing }
        }))
    }

    /// Records the path that a request is for.
    pub(super) fn note_requested(&mut self, bent: &Bent) {
        let kind = |output, hops| EventKind::Requested { output, hops };
        self.note_legs(bent, bent.request.hops, kind);
    }

    /// Records the legs of a path of so many hops; of a branch, what lies behind the fork.
    fn note_legs(&mut self, bent: &Bent, hops: u32, kind: impl Fn(u8, u8) -> EventKind) {
        if self.record.is_none() {
            return;
        }
        let Bent { request, output, first, then, from, .. } = *bent;
        let legs = |hops: u32| u8::try_from(hops).expect("at most 64 hops");
        if from == 0 {
            let straight = legs(hops.min(first));
            self.note(request.router, request.slot, kind(low_bit(1 << output), straight));
        }
        if hops > first {
            let turn = self.geometry.ahead(request.router, output, first);
            self.note(turn, request.slot, kind(low_bit(1 << then), legs(hops - first)));
        }
    }

    /// Records the links that a flit crosses.
    pub(super) fn note_crossing(&mut self, bent: &Bent, hops: u32) {
        let crossing = self.crossing();
        let first = low_bit(1 << bent.output);
        self.note_legs(bent, hops, |output, hops| {
            if output == first {
                EventKind::Crossed { output, hops, crossing }
            } else {
                EventKind::Turned { output, hops, crossing }
            }
        });
    }

    /// Records outputs that stay reserved for a flit that stopped earlier.
    pub(super) fn note_idle_bent(&mut self, bends: &Bends, number: usize, from: u32, stopped: u32) {
        if self.record.is_none() {
            return;
        }
        let bent = &bends.requests[number];
        let mut router = from;
        for hop in stopped..bent.request.hops {
            let output = bent.direction(hop + 1);
            if bends.has_won(number, router, output) {
                let kind = EventKind::Idle { output: low_bit(1 << output) };
                self.note(router, bent.request.slot, kind);
            }
            router = self.geometry.neighbour(router, output);
        }
    }
}

/// Removes outputs from grants that other flits have won, and all outputs from those whose input a
/// passing flit uses.
fn lose_outputs(bends: &Bends, grants: &mut [Grant]) {
    for (number, bent) in (0..).zip(&bends.requests).filter(|(_, bent)| bent.from == 0) {
        let winner = bends.winners[bent.request.router as usize][bent.output];
        if winner.is_some_and(|winner| winner.request != number) {
            grants[bent.request.grant as usize].outputs &= !(1 << bent.output);
        }
    }
    for grant in grants {
        let (router, port) = (router_of(grant.place.input), port_of(grant.place.input));
        if bends.used[router as usize] >> port & 1 == 1 {
            grant.outputs = 0;
        }
    }
}
