//! VC allocation and switch allocation: the usual allocators, a few bits at a time.
//!
//! Both allocations are separable, input first, with round-robin arbiters whose pointers advance
//! only with a grant. [`super::general`] has all other allocators.

use super::Network;
use super::bits::{Bits, low, low_from};
use super::clocks::Clocks;
use super::general::General;
use super::state::{NONE, Router, Stage, index, low_half};

impl<const W: usize> Network<W> {
    /// Allocates in every router with requests.
    pub(super) fn allocate_all(&mut self) {
        if self.general.is_some() {
            self.allocate_generally();
            return;
        }
        if self.clocks.is_some() {
            self.allocate_clocked();
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
    pub(super) fn allocate(&mut self, number: usize) {
        let router = self.routers[number];
        if router.vc_requests.any() {
            self.allocate_vcs(&router);
        }
        if router.ready.any() {
            self.allocate_switch(&router);
        }
        let router = &self.routers[number];
        if !router.vc_requests.any() && !router.ready.any() {
            self.active.clear(number);
        }
    }

    fn allocate_vcs(&mut self, router: &Router<W>) {
        let first_in = router.first_in_vc as usize;
        let mut rest = router.vc_requests;
        if let Some(local) = rest.only() {
            if let Some(out) = self.requested_vc(router, first_in + local) {
                self.grant_vc(router, local, out);
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
            let turn = self.out_vcs[router.first_out_vc as usize + out].turn as usize;
            if let Some(local) = requests.first_from(turn) {
                self.grant_vc(router, local, out);
            }
        }
    }

    /// The output VC that an input VC requests, counted from the router's first: the next free one
    /// in its turn.
    #[inline]
    fn requested_vc(&self, router: &Router<W>, in_vc: usize) -> Option<usize> {
        let vc = &self.in_vcs[in_vc];
        if vc.many {
            return self.requested_among(router, in_vc);
        }
        let port = vc.port as usize;
        let out_port = router.first_out as usize + port;
        let mut free = self.out_ports[out_port].free & vc.allowed;
        if self.restricts_vcs {
            free = self.usable(in_vc, out_port, free);
        }
        if free == 0 {
            return None;
        }
        let base = port * self.vcs;
        let turn = usize::from(vc.turn).wrapping_sub(base);
        Some(base + if turn < self.vcs { low_from(free, turn) } else { low(free) })
    }

    /// Among several candidates, the free VCs of the highest priority, the next in turn.
    #[inline(never)]
    fn requested_among(&self, router: &Router<W>, in_vc: usize) -> Option<usize> {
        let first_out = router.first_out as usize;
        let outputs = router.outputs as usize * self.vcs;
        let turn = usize::from(self.in_vcs[in_vc].turn);
        let mut best: Option<(i32, usize, usize)> = None;
        for candidate in &self.candidates[in_vc] {
            let port = candidate.port as usize;
            let free = self.usable(in_vc, first_out + port, candidate.vcs.mask());
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

    /// The free VCs of a port among those given that a packet can use now.
    pub(super) fn usable(&self, in_vc: usize, port: usize, vcs: u64) -> u64 {
        let free = self.out_ports[port].free & vcs;
        if self.restricts_vcs { self.with_space(in_vc, port, free) } else { free }
    }

    /// The VCs of a port with the buffer space that a packet needs.
    fn with_space(&self, in_vc: usize, port: usize, mut free: u64) -> u64 {
        let mut needs = 1;
        if self.settings.cut_through {
            needs = self.packets[self.first_flit(in_vc).packet() as usize].order.flits;
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

    /// Allocates an output VC to the first packet of an input VC, and advances the pointers of the
    /// arbiters of both.
    #[inline(always)]
    pub(super) fn grant_vc(&mut self, router: &Router<W>, local: usize, out: usize) {
        let in_vc = router.first_in_vc as usize + local;
        let vc = &mut self.in_vcs[in_vc];
        vc.out = router.first_out_vc + index(out);
        vc.stage = Stage::Active;
        vc.turn = low_half(after(out));
        let out_vc = &mut self.out_vcs[vc.out as usize];
        out_vc.owner = index(in_vc);
        out_vc.turn = low_half(after(local));
        self.out_ports[out_vc.port as usize].free &= !(1 << out_vc.vc);
        let is_ready = out_vc.credits > 0 || self.always_requests;
        let router = &mut self.routers[vc.router as usize];
        router.vc_requests.clear(local);
        if is_ready {
            router.ready.set(local);
        }
    }

    fn allocate_switch(&mut self, router: &Router<W>) {
        if let (Some(local), false) = (router.ready.only(), self.slow) {
            self.win(router, self.port_of[local] as usize, local);
            return;
        }
        let mut requested = self.choose_inputs(router);
        while let Some(output) = requested.pop() {
            let requests = std::mem::replace(&mut self.scratch.requests[output], Bits::EMPTY);
            let turn = self.out_ports[router.first_out as usize + output].turn as usize;
            if let Some(input) = requests.first_from(turn) {
                self.win(router, input, input * self.vcs + self.scratch.chosen[input]);
            }
        }
    }

    /// A VC of an input port wins the switch, and the pointers of its arbiters advance.
    #[inline]
    fn win(&mut self, router: &Router<W>, input: usize, local: usize) {
        let in_vc = router.first_in_vc as usize + local;
        let out_port = self.out_vcs[self.in_vcs[in_vc].out as usize].port;
        self.out_ports[out_port as usize].turn = after(input);
        let port = &mut self.in_ports[router.first_in as usize + input];
        port.turn = out_port - router.first_out + 1;
        let vc_turn = local - input * self.vcs + 1;
        port.vc_turn = if vc_turn == self.vcs { 0 } else { index(vc_turn) };
        self.leave(in_vc, 0);
    }

    /// Each input port chooses an output port and one of its VCs; returns the output ports
    /// requested.
    #[inline]
    fn choose_inputs(&mut self, router: &Router<W>) -> Bits<W> {
        let mut requested = Bits::<W>::EMPTY;
        let mut ready = router.ready;
        let first_in = router.first_in as usize;
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
    fn output_of(&self, router: &Router<W>, in_vc: usize) -> usize {
        let out = self.in_vcs[in_vc].out as usize;
        (self.out_vcs[out].port - router.first_out) as usize
    }

    /// The output port that the round-robin arbiter of an input port selects, and the VC that it
    /// selects among those that request this port.
    fn choose_output(&self, router: &Router<W>, input: usize, vcs: u64) -> Option<(usize, usize)> {
        let (first_in, first_out) = (router.first_in as usize, router.first_out as usize);
        let outputs = router.outputs as usize;
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
        let ends = self.clocks.as_ref().map(|clocks| clocks.end(port));
        self.serial[port].free_at < ends.unwrap_or((self.now + 1) * self.cycle)
    }

    /// A flit leaves its buffer for its output VC, `sooner` cycles before it would if this were the
    /// last round of the cycle. Returns whether more flits of its packet follow.
    #[inline]
    pub(super) fn leave(&mut self, in_vc: usize, sooner: u64) -> bool {
        let flit = self.first_flit(in_vc);
        let vc = &mut self.in_vcs[in_vc];
        vc.front = if u32::from(vc.front) + 1 == self.settings.buffer { 0 } else { vc.front + 1 };
        vc.length -= 1;
        let mut counts = self.now + u64::from(vc.credit_after);
        if self.late_credits {
            let port = in_vc / self.vcs;
            counts = late_credit(&self.clocks, &mut self.general, port, self.now, counts);
        }
        self.events.credits.push(counts, vc.credits_to);
        let out_vc = &mut self.out_vcs[vc.out as usize];
        out_vc.credits -= 1;
        out_vc.sent = out_vc.sent.wrapping_add(1);
        let port = &mut self.out_ports[out_vc.port as usize];
        port.sent += 1;
        let mut goes_on = vc.length > 0 && (out_vc.credits > 0 || self.always_requests);
        if flit.is_tail() {
            goes_on = false;
            out_vc.owner = NONE;
            port.free |= u64::from(!self.settings.wait_for_tail_credit) << out_vc.vc;
            vc.stage = if vc.length == 0 { Stage::Idle } else { Stage::Routing };
            if vc.length > 0 {
                self.events.fresh.push(index(in_vc));
            }
        }
        self.routers[vc.router as usize].ready.put(usize::from(vc.local), goes_on);
        let mut arrives = self.now - sooner + u64::from(port.after);
        if self.slow {
            let number = out_vc.port as usize;
            let serial = &mut self.serial[number];
            arrives = match &mut self.clocks {
                Some(clocks) => clocks.send(number, serial),
                None => serial.send(self.now, self.cycle, arrives),
            };
        }
        if port.ejects {
            self.events.ejections.push(arrives, (flit, vc.out));
        } else {
            self.events.arrivals.push(arrives, (flit, out_vc.to));
        }
        !flit.is_tail()
    }
}

/// When a credit counts that may leave later than in the cycle that frees it, as `counts` assumes.
fn late_credit(
    clocks: &Option<Box<Clocks>>,
    general: &mut Option<Box<General>>,
    in_port: usize,
    now: u64,
    counts: u64,
) -> u64 {
    match (clocks, general) {
        (Some(clocks), _) => clocks.credit_of_input(in_port),
        (None, Some(general)) => counts + general.credit_waits(in_port, now),
        (None, None) => counts,
    }
}

/// The number after another one in a turn. The last one's is that of no VC or port, which stands for
/// the first.
#[inline]
fn after(number: usize) -> u32 {
    index(number + 1)
}
