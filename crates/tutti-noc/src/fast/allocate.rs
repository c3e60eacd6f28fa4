//! VC allocation and switch allocation: the usual allocators, a few bits at a time.
//!
//! Both allocations are separable, input first, with round-robin arbiters whose pointers advance
//! only with a grant. [`super::general`] has all other allocators.

use super::bits::{Bits, low, low_from};
use super::state::{Flit, InVc, NONE, Router, Stage};
use super::{Network, count, low_half};

impl<const W: usize> Network<W> {
    /// Allocates in every router with requests.
    pub(super) fn allocate_all(&mut self) {
        if self.general.is_some() {
            self.allocate_generally();
            return;
        }
        for index in 0..self.active.words() {
            let mut word = self.active.word(index);
            while word != 0 {
                let router = index * 64 + low(word);
                word &= word - 1;
                self.allocate(router);
            }
        }
    }

    /// Allocates in a router. An input VC that wins a VC now requests the switch in the next cycle.
    #[inline]
    fn allocate(&mut self, router: usize) {
        let ready = self.routers[router].ready;
        if self.routers[router].vc_requests.any() {
            self.allocate_vcs(router);
        }
        if ready.any() {
            self.allocate_switch(router, ready);
        }
        let router_now = &self.routers[router];
        if !router_now.vc_requests.any() && !router_now.ready.any() {
            self.active.clear(router);
        }
    }

    fn allocate_vcs(&mut self, router: usize) {
        let first_in = self.routers[router].first_in as usize * self.vcs;
        let first_out = self.routers[router].first_out as usize * self.vcs;
        let mut rest = self.routers[router].vc_requests;
        if let Some(local) = rest.only() {
            if let Some(out) = self.requested_vc(router, first_in + local) {
                self.give_vc(router, local, out);
            }
            return;
        }
        let mut requested = Bits::<W>::EMPTY;
        while let Some(local) = rest.pop() {
            if let Some(out) = self.requested_vc(router, first_in + local) {
                self.scratch.requests[out].set(local);
                requested.set(out);
            }
        }
        while let Some(out) = requested.pop() {
            let requests = std::mem::replace(&mut self.scratch.requests[out], Bits::EMPTY);
            let turn = self.out_vcs[first_out + out].turn as usize;
            if let Some(local) = requests.first_from(turn) {
                self.give_vc(router, local, out);
            }
        }
    }

    /// Grants a VC, and advances the pointers of both arbiters.
    #[inline]
    fn give_vc(&mut self, router: usize, local: usize, out: usize) {
        let Router { first_in, first_out, inputs, outputs, .. } = self.routers[router];
        let (first_in, first_out) = (first_in as usize * self.vcs, first_out as usize * self.vcs);
        self.out_vcs[first_out + out].turn = low_half(self.after(local, inputs));
        self.in_vcs[first_in + local].turn = self.after(out, outputs);
        self.grant_vc(router, local, out);
    }

    /// The number after a VC's in the turn of all VCs of so many ports.
    #[inline]
    fn after(&self, vc: usize, ports: u32) -> u32 {
        let next = count(vc + 1);
        if next == ports * self.settings.vcs { 0 } else { next }
    }

    /// The output VC that an input VC requests, counted from the router's first: the next free one
    /// in its turn.
    #[inline]
    fn requested_vc(&self, router: usize, in_vc: usize) -> Option<usize> {
        let vc = &self.in_vcs[in_vc];
        if vc.many {
            return self.requested_among(router, in_vc);
        }
        let first_out = self.routers[router].first_out as usize;
        let port = vc.port as usize;
        let free = self.out_ports[first_out + port].free & vc.vcs().mask();
        let free = self.usable(vc, in_vc, first_out + port, free);
        if free == 0 {
            return None;
        }
        let base = port * self.vcs;
        let turn = (self.in_vcs[in_vc].turn as usize).wrapping_sub(base);
        Some(base + if turn < self.vcs { low_from(free, turn) } else { low(free) })
    }

    /// Among several candidates, the free VCs of the highest priority, the next in turn.
    fn requested_among(&self, router: usize, in_vc: usize) -> Option<usize> {
        let first_out = self.routers[router].first_out as usize;
        let outputs = self.routers[router].outputs as usize * self.vcs;
        let turn = self.in_vcs[in_vc].turn as usize;
        let mut best: Option<(i32, usize, usize)> = None;
        for candidate in &self.candidates[in_vc] {
            let port = candidate.port as usize;
            let free = self.out_ports[first_out + port].free & candidate.vcs.mask();
            let free = self.usable(&self.in_vcs[in_vc], in_vc, first_out + port, free);
            if free == 0 {
                continue;
            }
            let base = port * self.vcs;
            let from = turn.wrapping_sub(base);
            let out = base + if from < self.vcs { low_from(free, from) } else { low(free) };
            let distance = (out + outputs - turn) % outputs;
            let better = |&(priority, other, _): &(i32, usize, usize)| {
                (candidate.priority, std::cmp::Reverse(distance))
                    > (priority, std::cmp::Reverse(other))
            };
            if best.as_ref().is_none_or(better) {
                best = Some((candidate.priority, distance, out));
            }
        }
        best.map(|(_, _, out)| out)
    }

    /// The free VCs of a port that a packet can use now.
    #[inline]
    pub(super) fn usable(&self, vc: &InVc, in_vc: usize, port: usize, mut free: u64) -> u64 {
        if !self.settings.busy_when_full && !self.settings.cut_through {
            return free;
        }
        let mut needs = 1;
        if self.settings.cut_through {
            let flit = self.slots[in_vc * self.settings.buffer as usize + vc.front as usize];
            needs = self.packets[flit.packet() as usize].order.flits;
        }
        let mut rest = free;
        while rest != 0 {
            let bit = low(rest);
            rest &= rest - 1;
            if u32::from(self.out_vcs[port * self.vcs + bit].credits) < needs {
                free &= !(1 << bit);
            }
        }
        free
    }

    /// Allocates a VC to a packet.
    #[inline]
    pub(super) fn grant_vc(&mut self, router: usize, local: usize, out: usize) {
        let (first_in, first_out) = (self.routers[router].first_in, self.routers[router].first_out);
        let in_vc = first_in as usize * self.vcs + local;
        let out_vc = first_out as usize * self.vcs + out;
        let port = self.port_of[out] as usize;
        self.out_ports[first_out as usize + port].free &= !(1 << (out - port * self.vcs));
        self.out_vcs[out_vc].owner = count(in_vc);
        self.in_vcs[in_vc].out = count(out_vc);
        self.in_vcs[in_vc].stage = Stage::Active;
        let router = &mut self.routers[router];
        router.vc_requests.clear(local);
        if self.out_vcs[out_vc].credits > 0 || self.always_requests {
            router.ready.set(local);
        }
    }

    fn allocate_switch(&mut self, router: usize, ready: Bits<W>) {
        if let (Some(local), false) = (ready.only(), self.slow) {
            let input = self.port_of[local] as usize;
            let in_vc = self.routers[router].first_in as usize * self.vcs + local;
            let output = self.output_of(router, in_vc);
            self.win(router, input, local - input * self.vcs, output);
            return;
        }
        let mut requested = self.choose_inputs(router, ready);
        while let Some(output) = requested.pop() {
            let requests = std::mem::replace(&mut self.scratch.requests[output], Bits::EMPTY);
            let first_out = self.routers[router].first_out as usize;
            let turn = self.out_ports[first_out + output].turn as usize;
            if let Some(input) = requests.first_from(turn) {
                self.win(router, input, self.scratch.chosen[input], output);
            }
        }
    }

    /// A VC of an input port wins the switch, and the pointers of its arbiters advance.
    #[inline]
    fn win(&mut self, router: usize, input: usize, vc: usize, output: usize) {
        let next =
            |number: usize, size: usize| if number + 1 == size { 0 } else { count(number + 1) };
        let Router { first_in, first_out, inputs, outputs, .. } = self.routers[router];
        let (in_port, out_port) = (first_in as usize + input, first_out as usize + output);
        self.out_ports[out_port].turn = next(input, inputs as usize);
        let port = &mut self.in_ports[in_port];
        (port.turn, port.vc_turn) = (next(output, outputs as usize), next(vc, self.vcs));
        self.leave(router, input * self.vcs + vc, 0);
    }

    /// Each input port chooses an output port and one of its VCs; returns the output ports
    /// requested.
    #[inline]
    fn choose_inputs(&mut self, router: usize, mut ready: Bits<W>) -> Bits<W> {
        let mut requested = Bits::<W>::EMPTY;
        let first_in = self.routers[router].first_in as usize;
        while let Some(local) = ready.first() {
            let input = self.port_of[local] as usize;
            let vcs = ready.take_window(input * self.vcs, self.vcs);
            let chosen = if vcs & (vcs - 1) == 0 && !self.slow {
                let vc = low(vcs);
                Some((vc, self.output_of(router, (first_in + input) * self.vcs + vc)))
            } else {
                self.choose_output(router, input, vcs)
            };
            if let Some((vc, output)) = chosen {
                self.scratch.chosen[input] = vc;
                self.scratch.requests[output].set(input);
                requested.set(output);
            }
        }
        requested
    }

    /// The output port of an active VC, counted from the router's first.
    #[inline]
    pub(super) fn output_of(&self, router: usize, in_vc: usize) -> usize {
        let out = self.in_vcs[in_vc].out as usize;
        (self.out_vcs[out].port - self.routers[router].first_out) as usize
    }

    /// The output port that the round-robin arbiter of an input port selects, and the VC that it
    /// selects among those that request this port.
    fn choose_output(&self, router: usize, input: usize, vcs: u64) -> Option<(usize, usize)> {
        let (first_in, first_out) =
            (self.routers[router].first_in as usize, self.routers[router].first_out as usize);
        let outputs = self.routers[router].outputs as usize;
        let turn = self.in_ports[first_in + input].turn as usize;
        let offset = self.in_ports[first_in + input].vc_turn as usize;
        let mut best: Option<(usize, usize, usize)> = None;
        let above = vcs & (u64::MAX << offset);
        for mut part in [above, vcs & !above] {
            while part != 0 {
                let vc = low(part);
                part &= part - 1;
                let output = self.output_of(router, (first_in + input) * self.vcs + vc);
                if self.slow && !self.can_send(first_out + output) {
                    continue;
                }
                let distance = if output >= turn { output - turn } else { output + outputs - turn };
                if best.is_none_or(|(other, _, _)| distance < other) {
                    best = Some((distance, vc, output));
                }
            }
        }
        best.map(|(_, vc, output)| (vc, output))
    }

    /// Whether the channel of an output port can take a flit now.
    #[inline]
    pub(super) fn can_send(&self, port: usize) -> bool {
        self.serial[port].free_at < (self.now + 1) * self.cycle
    }

    /// A flit leaves its buffer for its output VC, `sooner` cycles before it would if this were the
    /// last round of the cycle. Returns whether more flits of its packet follow.
    #[inline]
    pub(super) fn leave(&mut self, router: usize, local: usize, sooner: u64) -> bool {
        let in_port = self.routers[router].first_in as usize + self.port_of[local] as usize;
        let in_vc = self.routers[router].first_in as usize * self.vcs + local;
        let depth = self.settings.buffer as usize;
        let vc = &mut self.in_vcs[in_vc];
        let flit = self.slots[in_vc * depth + vc.front as usize];
        vc.front = if vc.front as usize + 1 == depth { 0 } else { vc.front + 1 };
        vc.length -= 1;
        let out = vc.out as usize;
        let out_vc = &mut self.out_vcs[out];
        out_vc.credits -= 1;
        out_vc.sent = out_vc.sent.wrapping_add(1);
        let goes_on = vc.length > 0 && (out_vc.credits > 0 || self.always_requests);
        let port = out_vc.port as usize;
        if flit.is_tail() {
            out_vc.owner = NONE;
            let free = u64::from(!self.settings.wait_for_tail_credit);
            self.out_ports[port].free |= free << (out - port * self.vcs);
            self.routers[router].ready.clear(local);
            self.next_packet(in_vc);
        } else if goes_on {
            self.routers[router].ready.set(local);
        } else {
            self.routers[router].ready.clear(local);
        }
        let credit = self.in_ports[in_port];
        let vc_of_port = count(in_vc - in_port * self.vcs);
        let wait =
            self.general.as_mut().map_or(0, |general| general.credit_waits(in_port, self.now));
        let counts = self.now + wait + u64::from(credit.credit_after);
        self.credits.push(counts, credit.credits_to + vc_of_port);
        self.send(flit, out, port, sooner);
        !flit.is_tail()
    }

    /// A flit is in flight behind an output port.
    #[inline]
    fn send(&mut self, flit: Flit, out: usize, port: usize, sooner: u64) {
        let mut arrives = self.now - sooner + u64::from(self.out_ports[port].after);
        if self.slow {
            let serial = &mut self.serial[port];
            serial.occupy(self.now * self.cycle, self.cycle);
            arrives = arrives.max(serial.next);
            serial.next = arrives + 1;
        }
        let port = &mut self.out_ports[port];
        port.sent += 1;
        if port.ejects {
            self.ejections.push(arrives, (flit, count(out)));
        } else {
            let vc = count(out) - self.out_vcs[out].port * self.settings.vcs;
            self.arrivals.push(arrives, (flit, port.to + vc));
        }
    }

    /// The tail of a packet has left a VC.
    #[inline]
    fn next_packet(&mut self, in_vc: usize) {
        let vc = &mut self.in_vcs[in_vc];
        if vc.length == 0 {
            vc.stage = Stage::Idle;
        } else {
            vc.stage = Stage::Routing;
            self.fresh.push(count(in_vc));
        }
    }
}
