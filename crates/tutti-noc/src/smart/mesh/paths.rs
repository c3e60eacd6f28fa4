//! Paths of several hops (SA-G): which flits bypass which routers, and how far they get.

use super::super::message::{Arrival, FlowId};
use super::super::record::{EventKind, Stop};
use super::super::settings::{FanIn, Fault, Priority, Tree};
use super::Mesh;
use super::allocate::Grant;
use super::geometry::{TO_NIC, input_of, opposite, router_of};
use super::ranks::NONE;
use super::vcs::{CHANGES, ON_TREE, RESPONSE, RouteState, SEVERAL, VcId, low_bit};

/// A request for a path along one output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// The index of its grant in this cycle.
    pub(super) grant: u32,
    pub(super) router: u32,
    pub(super) hops: u32,
    pub(super) slot: u32,
    /// The pool of its VCs at the routers along the path.
    pub(super) pool: u8,
    /// Its state for routers.
    pub(super) route: RouteState,
    /// The flow of a combinable response.
    pub(super) flow: Option<FlowId>,
}

impl Mesh {
    /// Moves granted flits: to the NIC, and along their paths as far as they get.
    pub(super) fn cross(&mut self, arrivals: &mut Vec<Arrival>) {
        let several = self.settings.hops_per_cycle > 1;
        if self.grants.is_empty() {
        } else if self.settings.bypass_turns {
            self.cross_with_turns(arrivals);
        } else if self.record.is_some() || several && self.settings.priority != Priority::Local {
            self.cross_by_direction(arrivals);
        } else if several {
            self.cross_one_by_one(arrivals);
        } else {
            self.cross_a_link(arrivals);
        }
    }

    /// With one hop per cycle no flit blocks another.
    fn cross_a_link(&mut self, arrivals: &mut Vec<Arrival>) {
        let grants = std::mem::take(&mut self.grants);
        for (index, grant) in (0..).zip(&grants) {
            self.read_out(grant, arrivals);
            self.each_request(index, grant, |mesh, request, output| {
                let sum = mesh.sum_of(&request, grant);
                let next = mesh.geometry.neighbour(request.router, output);
                mesh.counts.link_hops += 1;
                mesh.buffer_flit(&request, next, output, true, sum);
            });
            self.depart(grant);
        }
        self.grants = grants;
    }

    /// With priority to nearer flits, all that can block a flit is known before any flit moves,
    /// except earlier flits of its packet: these stay in their VCs until all have moved.
    fn cross_one_by_one(&mut self, arrivals: &mut Vec<Arrival>) {
        let grants = std::mem::take(&mut self.grants);
        for (index, grant) in (0..).zip(&grants) {
            self.read_out(grant, arrivals);
            self.each_request(index, grant, |mesh, mut request, output| {
                mesh.reach(&mut request, output);
                mesh.walk(&request, grant, output, NONE);
            });
        }
        grants.iter().for_each(|grant| self.depart(grant));
        self.grants = grants;
    }

    /// The same in the order in which it is recorded, or with priority to passing flits.
    fn cross_by_direction(&mut self, arrivals: &mut Vec<Arrival>) {
        let mut grants = std::mem::take(&mut self.grants);
        let mut requests = std::mem::take(&mut self.paths.requests);
        for (index, grant) in (0..).zip(&grants) {
            self.each_request(index, grant, |mesh, mut request, output| {
                mesh.reach(&mut request, output);
                requests[output].push(request);
            });
        }
        if self.settings.priority != Priority::Local && self.settings.hops_per_cycle > 1 {
            self.reserve(&grants, &requests);
            self.take_from_local(&mut grants, &requests);
        }
        for grant in grants.iter().filter(|grant| grant.outputs != 0) {
            self.read_out(grant, arrivals);
        }
        for (output, requests) in requests.iter_mut().enumerate() {
            for (number, request) in (0..).zip(requests.drain(..)) {
                let grant = &grants[request.grant as usize];
                if grant.outputs >> output & 1 == 1 {
                    self.walk(&request, grant, output, number);
                }
            }
        }
        for grant in grants.iter().filter(|grant| grant.outputs != 0) {
            self.depart(grant);
        }
        (self.paths.requests, self.grants) = (requests, grants);
    }

    /// Calls a function with a one-hop request for each mesh output that a flit was granted.
    #[inline]
    pub(super) fn each_request(
        &mut self,
        index: u32,
        &Grant { place, outputs }: &Grant,
        mut act: impl FnMut(&mut Mesh, Request, usize),
    ) {
        let router = router_of(place.input);
        let vc = *self.vcs.at(place);
        let mut bits = outputs & (TO_NIC - 1);
        while bits != 0 {
            let output = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let (slot, pool, route) = (vc.packet, vc.pool(output), vc.route);
            let request = Request { grant: index, router, hops: 1, slot, pool, route, flow: None };
            act(self, request, output);
        }
    }

    /// How far a request reaches.
    #[inline]
    fn reach(&mut self, request: &mut Request, output: usize) {
        let reach = self.settings.hops_per_cycle;
        if request.route.is(RESPONSE) {
            request.flow = self.packets.flow(request.slot);
        }
        if reach == 1 {
            return;
        }
        let reached = self.geometry.to_edge(request.router, output).min(reach);
        request.hops = if request.route.is(ON_TREE) {
            reached
        } else {
            let to = self.packets.get(request.slot).destination;
            self.geometry.towards(request.router, to).1.min(reach)
        };
        count_request(&mut self.counts, u64::from(reached), request.flow.is_some());
    }

    /// The number of responses combined into a response, and their value.
    #[inline]
    pub(super) fn sum_of(&self, request: &Request, grant: &Grant) -> (u32, u64) {
        if request.route.is(RESPONSE) { self.vcs.sum(grant.place) } else { (1, 0) }
    }

    /// Why a flit that has come along a direction cannot bypass a router by an output, regardless of
    /// contention.
    pub(super) fn obstacle(
        &self,
        request: &Request,
        router: u32,
        came: usize,
        output: usize,
    ) -> Option<Stop> {
        let (reserved_in, reserved_out) = self.geometry.reserved(router, self.crossing());
        if reserved_in >> opposite(came) & 1 == 1 || reserved_out >> output & 1 == 1 {
            return Some(Stop::Preset);
        }
        if request.flow.is_some_and(|flow| !self.tables.may_bypass(flow, router)) {
            return Some(Stop::Responses);
        }
        if let Some(place) = self.own_vc(request, router, came) {
            let vc = self.vcs.at(place);
            if vc.due > vc.left {
                return Some(Stop::Order);
            }
        }
        let takes = self.takes(router, output, request.pool, request.slot);
        (!takes).then_some(Stop::NoBuffer)
    }

    /// The VC that a packet of several flits has at a router on its path.
    fn own_vc(&self, request: &Request, router: u32, output: usize) -> Option<VcId> {
        if !request.route.is(SEVERAL) {
            return None;
        }
        self.vcs.of_packet(arrives_at(router, output), request.pool, request.slot)
    }

    /// What stops a flit at an intermediate router of its path.
    fn stop(&self, request: &Request, number: u32, router: u32, output: usize) -> Option<Stop> {
        let (inputs, outputs) = self.granted[router as usize];
        let contended = outputs >> output & 1 == 1 || inputs >> opposite(output) & 1 == 1;
        if self.settings.priority == Priority::Local && contended {
            return Some(Stop::Local);
        }
        let obstacle = self.obstacle(request, router, output, output);
        if obstacle.is_some() || self.settings.priority == Priority::Local {
            return obstacle;
        }
        let lost = self.paths.has[router as usize][output] != number;
        let to_local = contended && self.settings.priority != Priority::Bypass;
        lost.then_some(if to_local { Stop::Local } else { Stop::Farther })
    }

    /// Reads a granted flit from its buffer, and hands it to the NIC if that is granted.
    #[inline]
    pub(super) fn read_out(
        &mut self,
        &Grant { place, outputs }: &Grant,
        arrivals: &mut Vec<Arrival>,
    ) {
        self.watchdog.moved(self.now);
        self.counts.buffer_reads += 1;
        self.counts.crossings[outputs.count_ones() as usize - 1] += 1;
        let router = router_of(place.input);
        let slot = self.vcs.at(place).packet;
        self.note(router, slot, EventKind::Granted { outputs });
        #[cfg(debug_assertions)]
        self.audit.reads(place.input, outputs, self.crossing());
        if outputs & TO_NIC != 0 {
            self.eject(place, arrivals);
        }
    }

    /// Moves a flit along its path, as far as it gets.
    fn walk(&mut self, request: &Request, grant: &Grant, output: usize, number: u32) {
        let mut sum = self.sum_of(request, grant);
        let hops = u8::try_from(request.hops).expect("at most 63 hops");
        let direction = low_bit(1 << output);
        if self.settings.hops_per_cycle > 1 {
            let kind = EventKind::Requested { output: direction, hops };
            self.note(request.router, request.slot, kind);
        }
        let mut router = request.router;
        for hop in 1..=request.hops {
            router = self.geometry.neighbour(router, output);
            self.counts.link_hops += 1;
            let why = if hop == request.hops {
                Some(Stop::End)
            } else {
                self.stop(request, number, router, output)
            };
            let Some(why) = why else {
                #[cfg(debug_assertions)]
                self.audit.passes(router, output, output, self.crossing());
                self.pass(request, router, output, &mut sum);
                continue;
            };
            let stopped = EventKind::Stopped { input: low_bit(1 << opposite(output)), why };
            self.note(router, request.slot, stopped);
            let crossing = self.crossing();
            let hops = u8::try_from(hop).expect("at most 63 hops");
            let crossed = EventKind::Crossed { output: direction, hops, crossing };
            self.note(request.router, request.slot, crossed);
            self.buffer_flit(request, router, output, true, sum);
            self.note_idle(request, number, router, output, hop);
            return;
        }
    }

    /// Records outputs that stay reserved for a flit that stopped earlier.
    fn note_idle(&mut self, request: &Request, number: u32, from: u32, output: usize, hop: u32) {
        if self.record.is_none() || self.settings.priority == Priority::Local {
            return;
        }
        let mut router = from;
        for _ in hop..request.hops {
            if self.paths.has[router as usize][output] == number {
                let kind = EventKind::Idle { output: low_bit(1 << output) };
                self.note(router, request.slot, kind);
            }
            router = self.geometry.neighbour(router, output);
        }
    }

    /// A flit bypasses a router where it has come along a direction: a copy of it may be retained,
    /// and it may take buffered responses along.
    pub(super) fn pass(
        &mut self,
        request: &Request,
        router: u32,
        came: usize,
        sum: &mut (u32, u64),
    ) {
        self.counts.crossings[0] += 1;
        self.counts.bypasses += 1;
        if request.route.is(SEVERAL) {
            self.keep_route(request, router, came);
        }
        if request.route.is(ON_TREE) {
            self.buffer_flit(request, router, came, false, *sum);
            let kind = EventKind::Retained { input: low_bit(1 << opposite(came)) };
            self.note(router, request.slot, kind);
        }
        let Some(flow) = request.flow else { return };
        self.counts.table_reads += 1;
        let loses = self.settings.fault == Some(Fault::LostMerge);
        if self.settings.fan_in == FanIn::Complete {
            match self.tables.arrives(flow, router, sum.0, sum.1) {
                super::tables::Fate::Continues(_, _) if loses => {}
                super::tables::Fate::Continues(count, value) => *sum = (count, value),
                fate => unreachable!("a response passed that was {fate:?}"),
            }
            return;
        }
        self.tables.passes(flow, router, sum.0);
        if self.settings.priority == Priority::Local {
            return;
        }
        while let Some(place) = self.tables.buffered_at(flow, router) {
            let buffered = self.vcs.at(place).packet;
            if !loses {
                *sum = self.tables.joined(flow, *sum, self.vcs.sum(place));
            }
            self.counts.merged += 1;
            self.note(router, buffered, EventKind::Merged);
            self.tables.leaves(flow, router, place);
            self.leave(place);
        }
    }

    /// A packet of several flits holds a VC in each router that it bypasses until its tail has
    /// passed: another packet that stops there would otherwise wait for a VC while this packet
    /// holds the channel.
    fn keep_route(&mut self, request: &Request, router: u32, output: usize) {
        let own = self.own_vc(request, router, output);
        let place = own
            .unwrap_or_else(|| self.give(arrives_at(router, output), request.pool, request.slot));
        let vc = self.vcs.at_mut(place);
        (vc.due, vc.come, vc.left) = (vc.due + 1, vc.come + 1, vc.left + 1);
        if vc.left == self.packets.get(request.slot).flits {
            self.leave(place);
        }
    }

    /// Buffers a flit, or a copy of it, in a VC of a router that it reaches.
    pub(super) fn buffer_flit(
        &mut self,
        request: &Request,
        router: u32,
        output: usize,
        stops: bool,
        sum: (u32, u64),
    ) {
        let (input, pool, slot) = (arrives_at(router, output), request.pool, request.slot);
        let (mask, place) = if request.route.is(CHANGES) {
            let mask = self.mask_at(slot, router, output, request.route.is(ON_TREE), stops);
            let own = self.own_vc(request, router, output);
            (mask, own.unwrap_or_else(|| self.give_on(request, input)))
        } else {
            // The flit only moves: the holders of its packet stay the same.
            let to = self.packets.get(slot).destination;
            let mask = 1 << self.geometry.towards(router, to).0;
            (mask, self.vcs.give(input, pool, slot, request.route))
        };
        if request.route.is(RESPONSE) {
            self.vcs.set_sum(place, sum);
        }
        self.schedule(self.crossing(), place, mask);
    }

    /// Buffers a copy of a multicast on its tree in a VC of a router that it reaches, with the outputs
    /// that are left to it.
    pub(super) fn buffer_copy(&mut self, request: &Request, router: u32, came: usize, mask: u8) {
        let place = self.give_on(request, arrives_at(router, came));
        self.schedule(self.crossing(), place, mask);
    }

    /// Allocates a VC of a later router to a packet.
    #[inline]
    fn give_on(&mut self, request: &Request, input: u32) -> VcId {
        if self.geometry.tree == Some(Tree::Private) {
            return self.give(input, request.pool, request.slot);
        }
        self.packets.get_mut(request.slot).holders += 1;
        self.vcs.give(input, request.pool, request.slot, request.route)
    }

    /// The outputs that a flit has where it has come along a direction.
    pub(super) fn mask_at(
        &self,
        slot: u32,
        router: u32,
        direction: usize,
        on_tree: bool,
        stops: bool,
    ) -> u8 {
        if !on_tree {
            return self.first_mask(router, slot);
        }
        let packet = self.packets.get(slot);
        let on = if self.geometry.tree == Some(Tree::Shared) {
            self.geometry.shared_copy(router, direction, stops)
        } else {
            self.geometry.private_copy(router, packet.corner, direction, stops)
        };
        let nic = if packet.members.contains(router) { TO_NIC } else { 0 };
        on | nic
    }

    /// Clears the granted outputs of a flit; vacates its VC when none is left.
    #[inline]
    pub(super) fn depart(&mut self, &Grant { place, outputs }: &Grant) {
        let vc = *self.vcs.at(place);
        if vc.is(SEVERAL) {
            return self.depart_one_of_several(place);
        }
        if self.vcs.clear_outputs(place, outputs) != 0 {
            return;
        }
        let ejected = outputs & TO_NIC != 0;
        if vc.is(RESPONSE)
            && !ejected
            && let Some(flow) = self.packets.flow(vc.packet)
        {
            self.tables.leaves(flow, router_of(place.input), place);
        }
        self.vcs.vacate(place, self.now);
        if vc.is(CHANGES) || ejected {
            self.packets.release_holder(vc.packet);
        }
    }

    fn depart_one_of_several(&mut self, place: VcId) {
        let vc = self.vcs.at_mut(place);
        vc.left += 1;
        let (left, come, slot) = (vc.left, vc.come, vc.packet);
        if left == self.packets.get(slot).flits {
            self.leave(place);
        } else if left == come {
            self.vcs.set_bare(place);
        } else {
            self.vcs.inputs[place.input as usize].follows |= 1 << place.vc;
        }
    }
}

/// The input at which a flit enters a router along a direction.
fn arrives_at(router: u32, direction: usize) -> u32 {
    input_of(router, opposite(direction))
}

pub(super) fn count_request(counts: &mut super::Counts, reached: u64, is_response: bool) {
    let (requests, hops) = if is_response {
        (&mut counts.response_requests, &mut counts.response_request_hops)
    } else {
        (&mut counts.requests, &mut counts.request_hops)
    };
    *requests += 1;
    *hops += reached;
}
