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
}

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
            Priority::Local => self.nearest_first(grants, &requests),
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
            let line = self.grid.line(router, output);
            let reached = u64::try_from(line.len().min(reach)).expect("lines are short");
            if reach > 1 {
                self.count_request(&flit, reached);
            }
            requests.push(PathRequest { router, input, output, flit, path: line[..hops].to_vec() });
        }
        requests
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

    /// Whether a flit can bypass a router on its path without contention.
    fn could_pass(&self, request: &PathRequest, router: u32) -> bool {
        let (output, input) = (request.output, request.output.opposite());
        let crossing = self.crossing();
        let stage = self.grid.stage_after(&request.flit, request.router, output);
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

    /// `priority = "local"`.
    fn nearest_first(&self, grants: &Grants, requests: &[PathRequest]) -> Paths {
        let route = |request: &PathRequest| {
            let stops = |&router: &u32| {
                !self.could_pass(request, router)
                    || grants.inputs.contains_key(&(router, request.output))
                    || grants.uses(router, request.output.opposite())
            };
            first_stop(request, stops)
        };
        Paths { routes: requests.iter().map(route).collect(), denied_ejections: BTreeSet::new() }
    }

    /// All priorities but `local`: of the flits that compete for an output, that of the highest
    /// rank gets it; of equal ranks, the nearest.
    fn by_rank(&self, grants: &Grants, requests: &[PathRequest]) -> Paths {
        // The winner of an output of a router: its rank, its distance, and its index among the
        // requests.
        let mut has: BTreeMap<(u32, Port), (i64, usize, usize)> = BTreeMap::new();
        for (place, request) in requests.iter().enumerate() {
            for (distance, router) in self.contests(grants, request) {
                let rank = self.rank(&request.flit, distance);
                let best = has.entry((router, request.output)).or_insert((rank, distance, place));
                let wins = rank > best.0 || rank == best.0 && distance < best.1;
                if wins {
                    *best = (rank, distance, place);
                }
            }
        }
        let taken = |router: u32, input: Port| {
            has.get(&(router, input.opposite())).is_some_and(|&(_, distance, _)| distance > 0)
        };
        let mut paths = Paths::default();
        for (place, request) in requests.iter().enumerate() {
            let has_it = |router: u32| {
                has.get(&(router, request.output)).map(|&(_, _, who)| who) == Some(place)
            };
            let leaves = has_it(request.router) && !taken(request.router, request.input);
            let route =
                if leaves { first_stop(request, |&router| !has_it(router)) } else { Vec::new() };
            paths.routes.push(route);
        }
        let nominees = grants.nominees.keys().copied();
        paths.denied_ejections = nominees.filter(|&(router, input)| taken(router, input)).collect();
        paths
    }

    /// The routers whose output a flit competes for, with their distance: its own, and those that
    /// it can pass and where it outranks the flit that was granted an output from the same input.
    fn contests(&self, grants: &Grants, request: &PathRequest) -> Vec<(usize, u32)> {
        let (_, passed) = request.path.split_last().expect("paths are of one hop or more");
        let mut contests = vec![(0, request.router)];
        for (distance, &router) in (1..).zip(passed) {
            let input = request.output.opposite();
            let rank = self.rank(&request.flit, distance);
            let outranks = !grants.uses(router, input) || {
                let vc = grants.nominees[&(router, input)];
                rank > self.rank(&self.input(router, input).vcs[vc].flits[0], 0)
            };
            if outranks && self.could_pass(request, router) {
                contests.push((distance, router));
            }
        }
        contests
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
        let input = output.opposite();
        for (place, &next) in route.iter().enumerate() {
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

/// The path to the first router at which it stops, or to its end.
fn first_stop(request: &PathRequest, stops: impl Fn(&u32) -> bool) -> Vec<u32> {
    let (_, passed) = request.path.split_last().expect("paths are of one hop or more");
    let hops = passed.iter().position(stops).map_or(request.path.len(), |place| place + 1);
    request.path[..hops].to_vec()
}
