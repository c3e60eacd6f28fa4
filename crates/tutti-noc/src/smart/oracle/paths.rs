//! Paths of several hops (SA-G), and the flits that take them.

use std::collections::{BTreeMap, BTreeSet};

use super::Mesh;
use super::grid::Port;
use super::parts::{Cargo, Flit, Landing, Rule};
use super::switch::Grants;
use crate::smart::settings::{Contender, Priority};

/// A flit that requests a path, or all paths of a tree within its reach.
#[derive(Debug)]
struct PathRequest {
    router: u32,
    input: Port,
    output: Port,
    /// The routers on the path, its own first.
    steps: Vec<Step>,
}

/// A router on a requested path.
#[derive(Debug)]
struct Step {
    router: u32,
    /// The directions of the hops to it.
    made: Vec<Port>,
    /// The flit as it comes there: its stage may differ.
    flit: Flit,
    /// The outputs by which the path goes on.
    leaves: Vec<Port>,
}

impl Step {
    /// The input by which the flit enters; of its own router, that where it is buffered.
    fn enters(&self, buffered: Port) -> Port {
        self.made.last().map_or(buffered, |made| made.opposite())
    }

    /// The hops to here that were made in one direction, and whether the turn before them was to
    /// the left.
    fn straight(&self, direction: Port) -> (usize, bool) {
        let straight = self.made.iter().rev().take_while(|&&made| made == direction).count();
        let before = (self.made.len() - straight).checked_sub(1).map(|last| self.made[last]);
        (straight, before.is_some_and(|before| before.left() == direction))
    }
}

/// A router that a flit reaches.
#[derive(Debug)]
pub(super) struct Reached {
    pub(super) router: u32,
    pub(super) input: Port,
    /// The outputs by which it goes on; none where it stops.
    pub(super) on: Vec<Port>,
}

/// What decides between two flits that request a port: the larger one wins.
type Claim = (i64, std::cmp::Reverse<usize>, usize, bool);

/// The results of requests.
#[derive(Default, Debug)]
struct Paths {
    /// The routers that each flit reaches; empty if it stays in its router.
    routes: Vec<Vec<Reached>>,
    /// Nominees whose granted ejection is denied.
    denied_ejections: BTreeSet<(u32, Port)>,
}

/// By port of a router, the flit that has it: its claim, its request, and the step.
type Holders = BTreeMap<(u32, Port), (Claim, usize, usize)>;

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
            let routes: Vec<(Port, &[Reached])> =
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
            let steps = self.steps(&flit, router, output);
            if self.settings.hops_per_cycle > 1 {
                let wires = self.wires(&flit, &steps);
                self.count_request(&flit, u64::try_from(wires).expect("lines are short"));
            }
            requests.push(PathRequest { router, input, output, steps });
        }
        requests
    }

    /// The routers that a flit can reach by an output, nearer ones first.
    fn steps(&self, flit: &Flit, router: u32, output: Port) -> Vec<Step> {
        let start = Step { router, made: Vec::new(), flit: flit.clone(), leaves: vec![output] };
        let mut steps = vec![start];
        let mut place = 0;
        while let Some(Step { router, made, flit, leaves }) = steps.get(place) {
            let mut next = Vec::new();
            for &output in leaves {
                let stage = self.grid.stage_after(flit, *router, output);
                let flit = Flit { stage, ..flit.clone() };
                let made = [made.as_slice(), &[output]].concat();
                let at = self.grid.next(*router, output).expect("paths stay on the mesh");
                let leaves = self.goes_on(&flit, steps[0].router, at, &made);
                next.push(Step { router: at, made, flit, leaves });
            }
            steps.extend(next);
            place += 1;
        }
        steps
    }

    /// The outputs by which the path of a flit goes on at a router, after so many hops.
    fn goes_on(&self, flit: &Flit, start: u32, router: u32, made: &[Port]) -> Vec<Port> {
        let came = *made.last().expect("it has made a hop");
        if made.len() == self.settings.hops_per_cycle as usize {
            return Vec::new();
        }
        let turns = self.settings.collective_turns;
        if let Some(to) = self.grid.heads_for(flit, start) {
            let combined = flit.combines(Rule::Table).or(flit.combines(Rule::Merge)).is_some();
            let turns = self.settings.bypass_turns && (turns || !combined);
            let output = self.grid.output(router, to);
            let ends = output == Port::Local || output != came && !turns;
            return if ends { Vec::new() } else { vec![output] };
        }
        let tree = self.grid.mask(flit, router, came.opposite(), true);
        let fits = |&output: &Port| output != Port::Local && (turns || output == came);
        tree.into_iter().filter(fits).collect()
    }

    /// The hops over which a request is driven: on trees all that it requests, else to the edge, and
    /// from a turn to the edge.
    fn wires(&self, flit: &Flit, steps: &[Step]) -> usize {
        let Step { router: start, leaves, .. } = &steps[0];
        if self.grid.heads_for(flit, *start).is_none() {
            return steps.len() - 1;
        }
        let reach = self.settings.hops_per_cycle as usize;
        let mut wires = self.grid.line(*start, leaves[0]).len().min(reach);
        for step in &steps[1..] {
            let turn = step.leaves.iter().find(|&&output| step.made.last() != Some(&output));
            if let Some(&then) = turn {
                wires += self.grid.line(step.router, then).len().min(reach - step.made.len());
            }
        }
        wires
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

    /// Whether a flit can pass the router of a step by an output without contention.
    fn could_pass(&self, step: &Step, output: Port) -> bool {
        let (router, input) = (step.router, step.enters(Port::Local));
        let crossing = self.crossing();
        let stage = self.grid.stage_after(&step.flit, router, output);
        let waits_for_others = match step.flit.combines(Rule::Table) {
            Some(flow) => self.directions(flow, router) != 1,
            None => false,
        };
        let behind_its_own = self.comes_before(router, input, step.flit.packet);
        self.has_free_vc(router, output, &step.flit, stage)
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
            let passes = |place: usize, output: Port| {
                let step = &request.steps[place];
                place == 0
                    || self.could_pass(step, output)
                        && !grants.inputs.contains_key(&(step.router, output))
                        && !grants.uses(step.router, step.enters(request.input))
            };
            self.reached(request, passes)
        };
        Paths { routes: requests.iter().map(route).collect(), denied_ejections: BTreeSet::new() }
    }

    /// All priorities but `local`, and all with turns: each input of a router selects a flit, and
    /// each output selects among these and the flit that it was granted in SA-L.
    fn by_rank(&self, grants: &Grants, requests: &[PathRequest]) -> Paths {
        let selected = self.select(grants, requests);
        let mut has = Holders::new();
        let granted = (0..requests.len()).map(|index| (index, 0));
        let passing = selected.values().map(|&(_, index, place)| (index, place));
        for (index, place) in granted.chain(passing) {
            let step = &requests[index].steps[place];
            for &output in &step.leaves {
                if place > 0 && !self.could_pass(step, output) {
                    continue;
                }
                let claim = self.claim(step, output);
                let best = has.entry((step.router, output)).or_insert((claim, index, place));
                if claim > best.0 {
                    *best = (claim, index, place);
                }
            }
        }
        let taken: BTreeSet<(u32, Port)> = has
            .iter()
            .filter(|&(_, &(_, _, place))| place > 0)
            .map(|(&(router, _), &(_, index, place))| {
                (router, requests[index].steps[place].enters(Port::Local))
            })
            .collect();
        let mut paths = Paths::default();
        for (index, request) in requests.iter().enumerate() {
            let has_it = |place: usize, output: Port| {
                has.get(&(request.steps[place].router, output)).map(|&(_, who, _)| who)
                    == Some(index)
            };
            let leaves =
                has_it(0, request.output) && !taken.contains(&(request.router, request.input));
            paths.routes.push(if leaves { self.reached(request, has_it) } else { Vec::new() });
        }
        paths.denied_ejections =
            grants.nominees.keys().filter(|&place| taken.contains(place)).copied().collect();
        paths
    }

    /// By router and input, the flit of the largest claim among those that can pass by it and
    /// outrank the flit that was granted an output from this input.
    fn select(&self, grants: &Grants, requests: &[PathRequest]) -> Holders {
        let mut selected = Holders::new();
        for (index, request) in requests.iter().enumerate() {
            for (place, step) in request.steps.iter().enumerate().skip(1) {
                let (router, input) = (step.router, step.enters(request.input));
                let claim = self.claim(step, input.opposite());
                let outranks = !grants.uses(router, input) || {
                    let vc = grants.nominees[&(router, input)];
                    claim.0 > self.rank(&self.input(router, input).vcs[vc].flits[0], 0)
                };
                if !outranks || !step.leaves.iter().any(|&output| self.could_pass(step, output)) {
                    continue;
                }
                let best = selected.entry((router, input)).or_insert((claim, index, place));
                if claim > best.0 {
                    *best = (claim, index, place);
                }
            }
        }
        selected
    }

    /// The claim of a flit on a port at a step, where it travels in a direction.
    fn claim(&self, step: &Step, direction: Port) -> Claim {
        let (straight, left) = step.straight(direction);
        let hops = step.made.len();
        (self.rank(&step.flit, hops), std::cmp::Reverse(hops), straight, left)
    }

    /// The routers that a flit reaches, if it passes those of its path by the outputs that it has.
    fn reached(&self, request: &PathRequest, has: impl Fn(usize, Port) -> bool) -> Vec<Reached> {
        let mut on: BTreeMap<u32, Vec<Port>> = BTreeMap::new();
        let mut reached = Vec::new();
        for (place, step) in request.steps.iter().enumerate() {
            let comes = step.made.last().is_none_or(|&made| {
                let before = self.grid.next(step.router, made.opposite()).expect("it came");
                on.get(&before).is_some_and(|on| on.contains(&made))
            });
            if !comes {
                continue;
            }
            let leaves = step.leaves.iter().copied().filter(|&output| has(place, output));
            let leaves: Vec<Port> = leaves.collect();
            on.insert(step.router, leaves.clone());
            if place > 0 {
                let (router, input) = (step.router, step.enters(request.input));
                reached.push(Reached { router, input, on: leaves });
            }
        }
        reached
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
        routes: &[(Port, &[Reached])],
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
            let passed = route.iter().filter(|reached| !reached.on.is_empty());
            passed.for_each(|reached| self.take_along(reached.router, &mut copy));
            self.set_out(&copy, router, route, |_| at, false);
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
        route: &[Reached],
        when: impl Fn(usize) -> u64,
        covers: bool,
    ) {
        let leaves_copies = self.grid.heads_for(flit, router).is_none();
        let mut stages = BTreeMap::from([(router, flit.stage)]);
        for (place, &Reached { router: next, input, ref on }) in route.iter().enumerate() {
            let before = self.grid.next(next, input).expect("it came");
            let came = Flit { stage: stages[&before], ..flit.clone() };
            let stage = self.grid.stage_after(&came, before, input.opposite());
            stages.insert(next, stage);
            let pool = self.pool(flit.class, stage);
            self.counts.link_hops += 1;
            if let Some(outputs) = on.len().checked_sub(1) {
                self.counts.bypasses += 1;
                self.counts.crossings[outputs] += 1;
            }
            let now = self.now;
            let buffers = on.is_empty() || leaves_copies;
            if buffers || flit.is_of_several() {
                self.input_mut(next, input).claim(pool, flit.packet, now);
            }
            if !buffers && flit.is_of_several() && flit.tail {
                self.input_mut(next, input).release(flit.packet, now);
            }
            if buffers {
                let flit = Flit { stage, ..flit.clone() };
                let (at, stops) = (when(place), !covers);
                let gone = on.clone();
                self.landings.push(Landing { at, router: next, input, stops, gone, flit });
            }
        }
    }
}
