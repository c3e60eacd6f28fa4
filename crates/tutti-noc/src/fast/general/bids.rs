//! Requests for the switch: of VCs that have an output VC, and of speculative heads.

use super::{Bid, Decision, General, LAST, enter};
use crate::allocator::Request;
use crate::fast::Network;
use crate::fast::bits::{Bits, low};
use crate::fast::state::{Router, count};
use crate::routing::Candidate;
use crate::settings::Speculation;

impl<const W: usize> Network<W> {
    pub(super) fn bid_for_switch(
        &mut self,
        general: &mut General,
        router: usize,
        mut ready: Bits<W>,
        vc_requests: Bits<W>,
    ) {
        general.bids.clear();
        let mut rest = ready;
        while let Some(local) = rest.pop() {
            if let Some(can) = self.bid(general, router, local) {
                ready.clear(local);
                general.holding.push((router, local, can));
            }
        }
        if let Some(speculation) = self.settings.speculation {
            let mut rest = vc_requests;
            while let Some(local) = rest.pop() {
                self.speculate(general, router, local, speculation);
            }
        }
        self.match_bids(general, router);
        let due = self.ends(general, router, self.settings.switch_delay);
        let mut rest = ready;
        while let Some(local) = rest.pop() {
            let in_vc = self.routers[router].first_in as usize * self.vcs + local;
            self.in_vcs[in_vc].switch_pending = true;
            if !general.bids.iter().any(|bid| bid.local == local && !bid.speculative) {
                let router = count(router);
                let decision = Decision { due, router, local, granted: None };
                enter(&mut general.switch_decisions, decision);
            }
        }
        general.bids.sort_unstable_by_key(|bid| bid.input);
        for bid in &general.bids {
            let (router, granted) = (count(router), Some(bid.output));
            let decision = Decision { due, router, local: bid.local, granted };
            enter(&mut general.switch_decisions, decision);
        }
    }

    /// An active VC requests the switch, if it can use it. If it already holds the switch, records
    /// whether it can use it.
    fn bid(&mut self, general: &mut General, router: usize, local: usize) -> Option<bool> {
        let switch = self.switch();
        let Router { first_in, first_out, .. } = self.routers[router];
        let in_vc = first_in as usize * self.vcs + local;
        let vc = &self.in_vcs[in_vc];
        let out = &self.out_vcs[vc.out as usize];
        let port = out.port as usize;
        let (input, output) =
            (switch.input(local), switch.output(local, port - first_out as usize));
        let holder = general.holders[first_in as usize * switch.ins + input];
        let can = out.credits > 0 && self.takes(general, port);
        if holder.is_some_and(|(holder, _)| holder == local) {
            return Some(can);
        }
        let held = general.held[first_out as usize * switch.outs + output] > 0;
        if can && holder.is_none() && !held {
            let priority = self.first_priority(in_vc);
            self.add_bid(
                general,
                router,
                Bid { input, output, local, priority, speculative: false },
            );
        }
        None
    }

    /// Whether the queue and the channel behind a switch output can accept a flit.
    fn takes(&self, general: &mut General, port: usize) -> bool {
        if let Some(most) = self.settings.output_buffer {
            let (round, queue) = (general.round, &mut general.queues[port]);
            while queue.front().is_some_and(|&(_, leaves)| leaves < self.now) {
                queue.pop_front();
            }
            let waiting = queue.iter().filter(|&&(reaches, _)| reaches < round).count();
            if waiting >= most as usize {
                return false;
            }
        }
        !self.slow || self.can_send(port)
    }

    /// A head requests the switch before it has a VC.
    fn speculate(
        &mut self,
        general: &mut General,
        router: usize,
        local: usize,
        speculation: Speculation,
    ) {
        let switch = self.switch();
        let Router { first_in, first_out, .. } = self.routers[router];
        let in_vc = first_in as usize * self.vcs + local;
        let mut candidates = std::mem::take(&mut self.scratch.candidates);
        candidates.clear();
        self.for_each_candidate(in_vc, |candidate| candidates.push(*candidate));
        let input = switch.input(local);
        let priority = self.first_priority(in_vc);
        let lower = if speculation.allocator.is_none() { LAST } else { 0 };
        for candidate in &candidates {
            let port = (first_out + candidate.port) as usize;
            if !self.may_speculate(general, port, candidate, speculation) {
                continue;
            }
            let output = switch.output(local, candidate.port as usize);
            let holder = general.holders[first_in as usize * switch.ins + input];
            let held = general.held[first_out as usize * switch.outs + output] > 0;
            if holder.is_none() && !held {
                let priority = priority - lower;
                self.add_bid(
                    general,
                    router,
                    Bid { input, output, local, priority, speculative: true },
                );
            }
        }
        self.scratch.candidates = candidates;
    }

    /// Whether speculating on an output port is allowed.
    fn may_speculate(
        &self,
        general: &mut General,
        port: usize,
        candidate: &Candidate,
        speculation: Speculation,
    ) -> bool {
        if !speculation.check_vc && !speculation.check_credit {
            return !self.slow || self.can_send(port);
        }
        if !self.takes(general, port) {
            return false;
        }
        let mut free = self.out_ports[port].free & candidate.vcs.mask();
        if !speculation.check_credit {
            return free != 0;
        }
        while free != 0 {
            if self.out_vcs[port * self.vcs + low(free)].credits > 0 {
                return true;
            }
            free &= free - 1;
        }
        false
    }

    /// One of the VCs of a switch input that request the same output sends the request: the one
    /// with the highest priority, then the next in turn.
    fn add_bid(&self, general: &mut General, router: usize, bid: Bid) {
        let first = self.routers[router].first_in as usize * self.switch().ins;
        let offset = general.offsets[first + bid.input];
        let separate = !general.speculative.is_empty();
        let distance = |local: usize| (local % self.vcs + self.vcs - offset) % self.vcs;
        let rival = general.bids.iter_mut().find(|other| {
            (other.input, other.output) == (bid.input, bid.output)
                && (!separate || other.speculative == bid.speculative)
        });
        let Some(rival) = rival else {
            general.bids.push(bid);
            return;
        };
        let rank = |bid: &Bid| (bid.priority, std::cmp::Reverse(distance(bid.local)));
        if rank(&bid) > rank(rival) {
            *rival = bid;
        }
    }

    /// Removes the losers.
    fn match_bids(&mut self, general: &mut General, router: usize) {
        let separate = !general.speculative.is_empty();
        let General { bids, requests, grants, switch, speculative, .. } = general;
        fill(requests, bids, |bid| !separate || !bid.speculative);
        grants.clear();
        switch[router].allocate(requests, grants);
        let sure = grants.clone();
        let requested: Vec<u32> = requests.iter().map(|request| request.output).collect();
        grants.clear();
        if separate {
            fill(requests, bids, |bid| bid.speculative);
            speculative[router].allocate(requests, grants);
        }
        let yields = self.settings.speculation.is_some_and(|spec| spec.yield_to_requests);
        let is_masked = |input: u32, output: u32| {
            let taken = sure.iter().any(|grant| grant.1 == output);
            let contested = requested.contains(&output);
            sure.iter().any(|grant| grant.0 == input) || if yields { contested } else { taken }
        };
        let (sure, maybe) = (&sure, &*grants);
        bids.retain(|bid| {
            let pair = (count(bid.input), count(bid.output));
            if bid.speculative && separate {
                maybe.contains(&pair) && !is_masked(pair.0, pair.1)
            } else {
                sure.contains(&pair)
            }
        });
        self.settle(general, router);
    }

    /// Pointers advance for winners; a speculative winner without a VC there wins nothing.
    fn settle(&mut self, general: &mut General, router: usize) {
        let switch = self.switch();
        let Router { first_in, first_out, .. } = self.routers[router];
        for bid in &general.bids {
            let turn = (bid.local % self.vcs + switch.ins) % self.vcs;
            general.offsets[first_in as usize * switch.ins + bid.input] = turn;
        }
        let grants = &general.fresh_grants;
        general.bids.retain(|bid| {
            if !bid.speculative {
                return true;
            }
            let granted = grants.iter().find(|grant| grant.0 as usize == bid.local);
            granted.is_some_and(|&(_, out)| {
                let out = out as usize;
                let has_credit = self.out_vcs[first_out as usize * self.vcs + out].credits > 0;
                has_credit && switch.output(bid.local, out / self.vcs) == bid.output
            })
        });
    }
}

/// The requests of the bids that count.
fn fill(requests: &mut Vec<Request>, bids: &[Bid], counts: impl Fn(&Bid) -> bool) {
    requests.clear();
    requests.extend(bids.iter().filter(|bid| counts(bid)).map(|bid| Request {
        input: count(bid.input),
        output: count(bid.output),
        input_priority: bid.priority,
        output_priority: bid.priority,
    }));
}
