//! Arbitration of paths by rank (SA-G): who wins each output if passing flits can have priority.

use super::super::settings::{Contender, Priority};
use super::Mesh;
use super::allocate::Grant;
use super::geometry::{EAST, LOCAL, NORTH, PORTS, opposite, port_of, router_of};
use super::paths::Request;
use super::state::{Kind, NO_PACKET};

/// No request.
pub(super) const NONE: u32 = u32::MAX;

/// Buffers of a cycle's arbitration.
#[derive(Clone, Debug)]
pub(super) struct Scratch {
    /// By direction, in the order of routers.
    pub(super) requests: [Vec<Request>; 4],
    /// By router and output: the request that won it, unless the priority is [`Priority::Local`].
    pub(super) has: Vec<[u32; 4]>,
    /// By router and output, with ranks other than distances: the rank of the winner.
    ranks: Vec<[i64; 4]>,
    /// By input, with ranks other than distances: the packet whose flit was granted outputs.
    granted: Vec<u32>,
}

impl Scratch {
    pub(super) fn new(nodes: usize) -> Scratch {
        Scratch {
            requests: std::array::from_fn(|_| Vec::new()),
            has: vec![[NONE; 4]; nodes],
            ranks: vec![[0; 4]; nodes],
            granted: vec![NO_PACKET; nodes * PORTS],
        }
    }
}

impl Mesh {
    /// Finds the winner of each output.
    pub(super) fn reserve(&mut self, grants: &[Grant], requests: &[Vec<Request>; 4]) {
        if self.settings.priority == Priority::Bypass {
            self.reserve_for_farthest(requests);
        } else {
            self.reserve_by_rank(grants, requests);
        }
    }

    /// Finds the farthest request of each output.
    fn reserve_for_farthest(&mut self, requests: &[Vec<Request>; 4]) {
        let mut has = std::mem::take(&mut self.paths.has);
        has.fill([NONE; 4]);
        for (output, requests) in requests.iter().enumerate() {
            let mut one = |number: usize, request: &Request| {
                let mut router = request.router;
                for hop in 0..request.hops {
                    let free = has[router as usize][output] == NONE;
                    if free
                        && (hop == 0 || self.obstacle(request, router, output, output).is_none())
                    {
                        has[router as usize][output] = u32::try_from(number).expect("few requests");
                    }
                    router = self.geometry.neighbour(router, output);
                }
            };
            // The farthest first: against the direction of travel.
            if output == EAST || output == NORTH {
                requests.iter().enumerate().for_each(|(number, request)| one(number, request));
            } else {
                requests
                    .iter()
                    .enumerate()
                    .rev()
                    .for_each(|(number, request)| one(number, request));
            }
        }
        self.paths.has = has;
    }

    /// Finds the request of the highest rank of each output. A request competes only if it
    /// outranks the flit that its input granted.
    fn reserve_by_rank(&mut self, grants: &[Grant], requests: &[Vec<Request>; 4]) {
        let mut paths = std::mem::replace(&mut self.paths, Scratch::new(0));
        paths.has.fill([NONE; 4]);
        paths.granted.fill(NO_PACKET);
        for grant in grants {
            paths.granted[grant.place.input as usize] = self.vcs.at(grant.place).packet;
        }
        for (output, requests) in requests.iter().enumerate() {
            for (number, request) in (0..).zip(requests) {
                let flit = self.contender(request.slot);
                let mut router = request.router;
                for hop in 0..request.hops {
                    let place = router as usize;
                    let rank = self.settings.priority.rank(&flit, hop);
                    if self.can_win(&paths, request, (router, output), hop, rank) {
                        paths.has[place][output] = number;
                        paths.ranks[place][output] = rank;
                    }
                    router = self.geometry.neighbour(router, output);
                }
            }
        }
        self.paths = paths;
    }

    /// Whether a request wins an output over the requests seen so far.
    fn can_win(
        &self,
        paths: &Scratch,
        request: &Request,
        (router, output): (u32, usize),
        hop: u32,
        rank: i64,
    ) -> bool {
        let place = router as usize;
        let best = paths.has[place][output];
        if best != NONE {
            // Of equal ranks the nearer wins. Requests are in order of routers: those of one
            // direction come from farther away if they travel with that order.
            let nearer_later = output == EAST || output == NORTH;
            let before = paths.ranks[place][output];
            if rank < before || rank == before && !nearer_later {
                return false;
            }
        }
        if hop == 0 {
            return true;
        }
        let granted = paths.granted[place * PORTS + opposite(output)];
        let outranks =
            granted == NO_PACKET || rank > self.settings.priority.rank(&self.contender(granted), 0);
        outranks && self.obstacle(request, router, output, output).is_none()
    }

    /// What arbitration knows of a flit of a packet.
    pub(super) fn contender(&self, slot: u32) -> Contender {
        let packet = self.packets.get(slot);
        Contender {
            response: matches!(packet.kind, Kind::Response(_) | Kind::Single(_)),
            multicast: packet.kind == Kind::Many,
            class: packet.class,
            age: self.now - packet.created,
        }
    }

    /// Removes outputs from grants that other flits have won.
    pub(super) fn take_from_local(&mut self, grants: &mut [Grant], requests: &[Vec<Request>; 4]) {
        for (output, requests) in requests.iter().enumerate() {
            for (number, request) in (0..).zip(requests) {
                if self.paths.has[request.router as usize][output] != number {
                    grants[request.grant as usize].outputs &= !(1 << output);
                }
            }
        }
        for grant in grants {
            let (router, port) = (router_of(grant.place.input), port_of(grant.place.input));
            if port != LOCAL && self.is_passed(router, opposite(port), requests) {
                grant.outputs = 0;
            }
        }
    }

    /// Whether a bypassing flit has won a router's output.
    fn is_passed(&self, router: u32, output: usize, requests: &[Vec<Request>; 4]) -> bool {
        let has = self.paths.has[router as usize][output];
        has != NONE && requests[output][has as usize].router != router
    }
}
