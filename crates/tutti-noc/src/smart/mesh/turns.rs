//! Paths of several hops with a turn (SMART_2D): who wins each router, and how far flits get.
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

/// A request for a path that may turn once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bent {
    request: Request,
    /// The output by which the flit leaves its router.
    output: usize,
    /// Hops before the turn; all of them without one.
    first: u32,
    /// The direction after the turn.
    then: usize,
}

/// What decides between two requests: the larger one wins. It is the rank, then fewer hops from the
/// buffer, then more hops in the direction of travel, then a turn to the left.
type Claim = (i64, Reverse<u32>, u32, bool);

/// A request at a router on its path, `hop` hops from its buffer.
#[derive(Clone, Copy, Debug)]
struct Contest {
    claim: Claim,
    request: u32,
    hop: u32,
}

/// Buffers of a cycle's arbitration.
#[derive(Clone, Debug, Default)]
pub(super) struct Bends {
    requests: Vec<Bent>,
    /// By input: the packet whose flit was granted outputs, and the passing request selected.
    granted: Vec<u32>,
    selected: Vec<Option<Contest>>,
    /// The inputs with such a request.
    inputs: Vec<u32>,
    /// By router and output: the winner.
    winners: Vec<[Option<Contest>; 4]>,
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
}

impl Bent {
    /// The direction of a hop, counted from 1.
    fn direction(&self, hop: u32) -> usize {
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
                bends.requests.push(mesh.bend(request, output));
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
            if grant.outputs >> bent.output & 1 == 1 {
                self.walk_bent(&bends, number, grant);
            }
        }
        for grant in grants.iter().filter(|grant| grant.outputs != 0) {
            self.depart(grant);
        }
        bends.requests.clear();
        (self.bends, self.grants) = (bends, grants);
    }

    /// How far a request reaches. Multicasts on their tree and responses that are combined do not
    /// pass turns: the paper defines their paths per dimension.
    fn bend(&mut self, mut request: Request, output: usize) -> Bent {
        let reach = self.settings.hops_per_cycle;
        if request.route.is(RESPONSE) {
            request.flow = self.packets.flow(request.slot);
        }
        let mut wires = self.geometry.to_edge(request.router, output).min(reach);
        let mut bent = Bent { request, output, first: wires, then: output };
        if !request.route.is(ON_TREE) {
            let to = self.packets.get(request.slot).destination;
            bent.first = self.geometry.towards(request.router, to).1.min(reach);
            let left = reach - bent.first;
            let turn = self.geometry.ahead(request.router, output, bent.first);
            let (then, hops) = self.geometry.towards(turn, to);
            if left > 0 && then != LOCAL && request.flow.is_none() {
                wires += self.geometry.to_edge(turn, then).min(left);
                bent.then = then;
                bent.request.hops = bent.first + hops.min(left);
                count_request(&mut self.counts, u64::from(wires), false);
                return bent;
            }
        }
        bent.request.hops = bent.first;
        count_request(&mut self.counts, u64::from(wires), request.flow.is_some());
        bent
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
            let claim = bent.claim(priority.rank(&flit, 0), 0);
            let own = Contest { claim, request: number, hop: 0 };
            bends.winners[request.router as usize][bent.output] = Some(own);
            let mut router = request.router;
            for hop in 1..request.hops {
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
                if selected.replace(Contest { claim, request: number, hop }).is_none() {
                    bends.inputs.push(input);
                }
            }
        }
    }

    /// Lets each output choose among the flit that SA-L granted it and the selected requests.
    fn choose_winners(&self, bends: &mut Bends) {
        for &input in &bends.inputs {
            let Some(Contest { claim, request, hop }) = bends.selected[input as usize] else {
                continue;
            };
            let bent = &bends.requests[request as usize];
            let claim = bent.claim(claim.0, hop);
            let winner = &mut bends.winners[router_of(input) as usize][bent.direction(hop + 1)];
            if winner.is_none_or(|other| claim > other.claim) {
                *winner = Some(Contest { claim, request, hop });
            }
        }
        for (winners, used) in bends.winners.iter().zip(&mut bends.used) {
            for winner in winners.iter().flatten().filter(|winner| winner.hop > 0) {
                let came = bends.requests[winner.request as usize].direction(winner.hop);
                *used |= 1 << opposite(came);
            }
        }
    }

    /// Moves a flit along its path, as far as it gets.
    fn walk_bent(&mut self, bends: &Bends, number: usize, grant: &Grant) {
        let bent = &bends.requests[number];
        let Bent { request, .. } = bent;
        let mut sum = self.sum_of(request, grant);
        self.note_legs(bent, request.hops, |output, hops| EventKind::Requested { output, hops });
        let mut router = request.router;
        for hop in 1..=request.hops {
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
    fn stop_bent(
        &self,
        bends: &Bends,
        number: usize,
        router: u32,
        (came, leaves): (usize, usize),
    ) -> Option<Stop> {
        let winner = bends.winners[router as usize][leaves];
        if winner.is_some_and(|winner| winner.request as usize == number) {
            return None;
        }
        let request = &bends.requests[number].request;
        let obstacle =
            self.record.as_ref().and_then(|_| self.obstacle(request, router, came, leaves));
        Some(obstacle.unwrap_or_else(|| {
            let input = bends.granted[input_of(router, opposite(came)) as usize];
            let local = winner.is_some_and(|winner| winner.hop == 0) || input != NO_PACKET;
            if local { Stop::Local } else { Stop::Passing }
        }))
    }

    /// Records the legs of a path of so many hops.
    fn note_legs(&mut self, bent: &Bent, hops: u32, kind: impl Fn(u8, u8) -> EventKind) {
        if self.record.is_none() {
            return;
        }
        let Bent { request, output, first, then } = *bent;
        let legs = |hops: u32| u8::try_from(hops).expect("at most 64 hops");
        self.note(request.router, request.slot, kind(low_bit(1 << output), legs(hops.min(first))));
        if hops > first {
            let turn = self.geometry.ahead(request.router, output, first);
            self.note(turn, request.slot, kind(low_bit(1 << then), legs(hops - first)));
        }
    }

    /// Records the links that a flit crosses.
    fn note_crossing(&mut self, bent: &Bent, hops: u32) {
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
    fn note_idle_bent(&mut self, bends: &Bends, number: usize, from: u32, stopped: u32) {
        if self.record.is_none() {
            return;
        }
        let bent = &bends.requests[number];
        let mut router = from;
        for hop in stopped..bent.request.hops {
            let output = bent.direction(hop + 1);
            let winner = bends.winners[router as usize][output];
            if winner.is_some_and(|winner| winner.request as usize == number) {
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
    for (number, bent) in (0..).zip(&bends.requests) {
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
