//! Paths of several hops (SA-G), and the flits that take them.

use std::collections::{BTreeMap, BTreeSet};

use super::Mesh;
use super::grid::Port;
use super::parts::{Cargo, Flit, Landing, Rule};
use super::switch::Grants;
use crate::smart::settings::{Contender, Priority};

/// A flit that requests a path.
#[derive(Debug)]
struct PathRequest {
    router: u32,
    input: Port,
    output: Port,
    flit: Flit,
    /// The routers on the path, up to the farthest end.
    path: Vec<u32>,
    /// By router of the path: the direction in which the flit comes to it.
    directions: Vec<Port>,
}

impl PathRequest {
    /// The output by which the flit leaves the router after so many hops, if its path goes on.
    fn leaves(&self, hops: usize) -> Port {
        self.directions[hops]
    }

    /// The input by which it enters that router.
    fn enters(&self, hops: usize) -> Port {
        hops.checked_sub(1).map_or(self.input, |last| self.directions[last].opposite())
    }

    /// The hops among the first so many that were made last in one direction, and whether the turn
    /// before them was to the left.
    fn straight(&self, hops: usize, direction: Port) -> (usize, bool) {
        let made = &self.directions[..hops];
        let straight = made.iter().rev().take_while(|&&made| made == direction).count();
        let before = (hops - straight).checked_sub(1).map(|last| made[last]);
        (straight, before.is_some_and(|before| before.left() == direction))
    }
}

/// What decides between two flits that request a port: the larger one wins.
type Claim = (i64, std::cmp::Reverse<usize>, usize, bool);

/// The results of requests.
#[derive(Default, Debug)]
struct Paths {
    /// The routers on each route; empty if the flit stays in its router.
    routes: Vec<Vec<u32>>,
    /// Nominees whose granted ejection is denied.
    denied_ejections: BTreeSet<(u32, Port)>,
}

impl Mesh {
    /// Determines how far each flit with a granted output gets, and sends it there.
    pub(super) fn set_paths(&mut self, grants: &Grants) {
        let requests = self.requests(grants);
        let paths = match self.settings.priority {
            Priority::Local if !self.settings.bypass_turns => self.nearest_first(grants, &requests),
            _ => self.by_rank(grants, &requests),
        };
        for (&(router, input), &vc) in &grants.nominees {
            let is_its = |request: &PathRequest| (request.router, request.input) == (router, input);
            let routes = requests.iter().zip(&paths.routes).filter(|(request, _)| is_its(request));
            let routes: Vec<(Port, &[u32])> =
                routes.map(|(request, route)| (request.output, route.as_slice())).collect();
            let ejects = grants.inputs.get(&(router, Port::Local)) == Some(&input)
                && !paths.denied_ejections.contains(&(router, input));
            self.leave(router, input, vc, &routes, ejects);
        }
    }

    fn requests(&mut self, grants: &Grants) -> Vec<PathRequest> {
        let mut requests = Vec::new();
        let mesh = grants.inputs.iter().filter(|&(&(_, output), _)| output != Port::Local);
        for (&(router, output), &input) in mesh {
            let vc = grants.nominees[&(router, input)];
            let flit = self.input(router, input).vcs[vc].flits[0].clone();
            let reach = self.settings.hops_per_cycle as usize;
            let hops = self.grid.remaining(&flit, router, output).min(reach);
            let mut path = self.grid.line(router, output);
            let mut reached = path.len().min(reach);
            path.truncate(hops);
            let mut directions = vec![output; hops];
            if let Some(then) =
                self.turns_to(&flit, router, path[hops - 1]).filter(|_| hops < reach)
            {
                let line = self.grid.line(path[hops - 1], then);
                reached += line.len().min(reach - hops);
                let more = self.grid.remaining(&flit, path[hops - 1], then).min(reach - hops);
                path.extend(&line[..more]);
                directions.extend(vec![then; more]);
            }
            if reach > 1 {
                self.count_request(&flit, u64::try_from(reached).expect("lines are short"));
            }
            requests.push(PathRequest { router, input, output, flit, path, directions });
        }
        requests
    }

    /// With `bypass_turns`, the output by which a path from one router goes on where it turns.
    fn turns_to(&self, flit: &Flit, from: u32, turn: u32) -> Option<Port> {
        let combined = flit.combines(Rule::Table).or(flit.combines(Rule::Merge)).is_some();
        if !self.settings.bypass_turns || combined {
            return None;
        }
        let to = self.grid.heads_for(flit, from)?;
        Some(self.grid.output(turn, to)).filter(|&output| output != Port::Local)
    }

    fn count_request(&mut self, flit: &Flit, reached: u64) {
        if flit.combines(Rule::Table).or(flit.combines(Rule::Merge)).is_some() {
            self.counts.response_requests += 1;
            self.counts.response_request_hops += reached;
        } else {
            self.counts.requests += 1;
            self.counts.request_hops += reached;
        }
    }

    /// Whether a flit can bypass the router after so many hops of its path without contention.
    fn could_pass(&self, request: &PathRequest, hops: usize) -> bool {
        let router = request.path[hops - 1];
        let (input, output) = (request.enters(hops), request.leaves(hops));
        let crossing = self.crossing();
        let stage = self.grid.stage_after(&request.flit, request.router, request.output);
        let waits_for_others = match request.flit.combines(Rule::Table) {
            Some(flow) => self.directions(flow, router) != 1,
            None => false,
        };
        let behind_its_own = self.comes_before(router, input, request.flit.packet);
        self.has_free_vc(router, output, &request.flit, stage)
            && !behind_its_own
            && !waits_for_others
            && !self.keeps_input(router, input, crossing)
            && !self.keeps_output(router, output, crossing)
    }

    /// Whether a flit of a packet is at an input, or will stop there.
    fn comes_before(&self, router: u32, input: Port, packet: u64) -> bool {
        let vcs = &self.input(router, input).vcs;
        let will = |landing: &Landing| {
            (landing.router, landing.input, landing.flit.packet) == (router, input, packet)
        };
        vcs.iter().flat_map(|vc| &vc.flits).any(|flit| flit.packet == packet)
            || self.landings.iter().any(will)
    }

    /// `priority = "local"`, without turns.
    fn nearest_first(&self, grants: &Grants, requests: &[PathRequest]) -> Paths {
        let route = |request: &PathRequest| {
            let stops = |hops: usize| {
                let router = request.path[hops - 1];
                !self.could_pass(request, hops)
                    || grants.inputs.contains_key(&(router, request.output))
                    || grants.uses(router, request.output.opposite())
            };
            first_stop(request, stops)
        };
        Paths { routes: requests.iter().map(route).collect(), denied_ejections: BTreeSet::new() }
    }

    /// All priorities but `local`, and all with turns: each input of a router selects a flit, and
    /// each output selects among these and the flit that it was granted in SA-L.
    fn by_rank(&self, grants: &Grants, requests: &[PathRequest]) -> Paths {
        let selected = self.select(grants, requests);
        // By router and output, the winner: its index among the requests, and its hops.
        let mut has: BTreeMap<(u32, Port), (Claim, usize, usize)> = BTreeMap::new();
        let granted = (0..).zip(requests).map(|(index, request)| (request.router, index, 0));
        let passing =
            selected.iter().map(|(&(router, _), &(_, index, hops))| (router, index, hops));
        for (router, index, hops) in granted.chain(passing) {
            let output = requests[index].leaves(hops);
            let claim = self.claim(&requests[index], hops, output);
            let best = has.entry((router, output)).or_insert((claim, index, hops));
            if claim > best.0 {
                *best = (claim, index, hops);
            }
        }
        let taken: BTreeSet<(u32, Port)> = has
            .iter()
            .filter(|&(_, &(_, _, hops))| hops > 0)
            .map(|(&(router, _), &(_, index, hops))| (router, requests[index].enters(hops)))
            .collect();
        let mut paths = Paths::default();
        for (index, request) in requests.iter().enumerate() {
            let has_it = |router: u32, hops: usize| {
                has.get(&(router, request.leaves(hops))).map(|&(_, who, _)| who) == Some(index)
            };
            let leaves =
                has_it(request.router, 0) && !taken.contains(&(request.router, request.input));
            let stops = |hops: usize| !has_it(request.path[hops - 1], hops);
            paths.routes.push(if leaves { first_stop(request, stops) } else { Vec::new() });
        }
        paths.denied_ejections =
            grants.nominees.keys().filter(|&place| taken.contains(place)).copied().collect();
        paths
    }

    /// By router and input, the flit of the largest claim among those that can pass by it and
    /// outrank the flit that was granted an output from this input.
    fn select(
        &self,
        grants: &Grants,
        requests: &[PathRequest],
    ) -> BTreeMap<(u32, Port), (Claim, usize, usize)> {
        let mut selected: BTreeMap<(u32, Port), (Claim, usize, usize)> = BTreeMap::new();
        for (index, request) in requests.iter().enumerate() {
            for hops in 1..request.path.len() {
                let (router, input) = (request.path[hops - 1], request.enters(hops));
                let claim = self.claim(request, hops, input.opposite());
                let outranks = !grants.uses(router, input) || {
                    let vc = grants.nominees[&(router, input)];
                    claim.0 > self.rank(&self.input(router, input).vcs[vc].flits[0], 0)
                };
                if !outranks || !self.could_pass(request, hops) {
                    continue;
                }
                let best = selected.entry((router, input)).or_insert((claim, index, hops));
                if claim > best.0 {
                    *best = (claim, index, hops);
                }
            }
        }
        selected
    }

    /// The claim of a flit on a port, where it has come so many hops and travels in a direction.
    fn claim(&self, request: &PathRequest, hops: usize, direction: Port) -> Claim {
        let (straight, left) = request.straight(hops, direction);
        (self.rank(&request.flit, hops), std::cmp::Reverse(hops), straight, left)
    }

    fn rank(&self, flit: &Flit, distance: usize) -> i64 {
        let contender = Contender {
            response: matches!(flit.cargo, Cargo::Response { .. }),
            multicast: matches!(flit.cargo, Cargo::Multicast { .. }),
            class: flit.class,
            age: self.now - flit.created,
        };
        let distance = u32::try_from(distance).expect("lines are short");
        self.settings.priority.rank(&contender, distance)
    }

    /// A nominee leaves by its granted outputs.
    fn leave(
        &mut self,
        router: u32,
        input: Port,
        vc: usize,
        routes: &[(Port, &[u32])],
        ejects: bool,
    ) {
        let routes: Vec<_> = routes.iter().filter(|(_, route)| !route.is_empty()).collect();
        let outputs = routes.len() + usize::from(ejects);
        if outputs == 0 {
            return;
        }
        let at = self.crossing();
        self.watchdog.moved(self.now);
        self.counts.buffer_reads += 1;
        self.counts.crossings[outputs - 1] += 1;
        let flit = self.input(router, input).vcs[vc].flits[0].clone();
        for &&(output, route) in &routes {
            self.audit_departure(at, router, input, output, route, &flit);
            let mut copy = flit.clone();
            let (_, passed) = route.split_last().expect("it leaves");
            passed.iter().for_each(|&passed| self.take_along(passed, &mut copy));
            self.set_out(&copy, router, output, route, |_| at, false);
            self.uncover(router, input, vc, output);
        }
        if ejects {
            self.audit_ejection(at, router, input, &flit);
            self.eject(router, &flit);
            self.uncover(router, input, vc, Port::Local);
        }
    }

    /// A flit has left by an output; vacates its VC if that was its last.
    pub(super) fn uncover(&mut self, router: u32, input: Port, vc: usize, output: Port) {
        let now = self.now;
        let input = self.input_mut(router, input);
        let flit = input.vcs[vc].flits.front_mut().expect("it is there");
        assert!(flit.mask.remove(&output), "a flit goes where it still has to go");
        if flit.mask.is_empty() {
            input.pop(vc, now);
        }
    }

    /// A flit crosses links; `when` maps the number of routers before a link to the cycle.
    pub(super) fn set_out(
        &mut self,
        flit: &Flit,
        router: u32,
        output: Port,
        route: &[u32],
        when: impl Fn(usize) -> u64,
        covers: bool,
    ) {
        let leaves_copies = self.grid.heads_for(flit, router).is_none();
        let stage = self.grid.stage_after(flit, router, output);
        let pool = self.pool(flit.class, stage);
        let mut from = router;
        for (place, &next) in route.iter().enumerate() {
            let input = self.grid.direction(from, next).opposite();
            from = next;
            self.counts.link_hops += 1;
            let last = place + 1 == route.len();
            if !last {
                self.counts.bypasses += 1;
                self.counts.crossings[0] += 1;
            }
            let now = self.now;
            let buffers = last || leaves_copies;
            if buffers || flit.is_of_several() {
                self.input_mut(next, input).claim(pool, flit.packet, now);
            }
            if !buffers && flit.is_of_several() && flit.tail {
                self.input_mut(next, input).release(flit.packet, now);
            }
            if buffers {
                let flit = Flit { stage, ..flit.clone() };
                let (at, stops) = (when(place), last && !covers);
                self.landings.push(Landing { at, router: next, input, stops, flit });
            }
        }
    }
}

/// The path to the first router at which it stops, or to its end; `stops` by hops.
fn first_stop(request: &PathRequest, stops: impl Fn(usize) -> bool) -> Vec<u32> {
    let all = request.path.len();
    let hops = (1..all).find(|&hops| stops(hops)).unwrap_or(all);
    request.path[..hops].to_vec()
}
