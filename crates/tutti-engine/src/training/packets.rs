//! The packets of chunks: their handling at the endpoint, their links, and the network.

use std::cmp::Reverse;

use super::event::{Event, Job, Kind};
use super::fabric::{Population, Running};
use super::network::{InFlight, News, StepNetwork};
use super::npu::{Cause, Piece, Waiting};
use super::torus::Torus;
use super::trees::Packets;
use crate::dataflow::{Incoming, Outgoing};
use crate::endpoint::Handling;
use tutti_units::{Bytes, Time};

impl Running<'_> {
    /// The torus, if the routes of a chunk on it depend on the sender.
    #[inline]
    fn torus_of_routes(&self, chunk: u32) -> Option<&Torus> {
        match &self.fabric.network {
            StepNetwork::Torus(torus) if self.cuts.channel(chunk).routes.is_none() => Some(torus),
            _ => None,
        }
    }

    /// The packet at the NPU that it has reached, if its route depends on the sender.
    #[inline]
    pub(super) fn located(&self, job: Job) -> Job {
        if job.at.hop == 0 || job.kind != Kind::Came {
            return job;
        }
        let Some(torus) = self.torus_of_routes(job.at.chunk) else { return job };
        let from = self.cuts.sender(job.to, job.at.chunk, job.at.step);
        let offset = torus.offset(from, job.to);
        Job { npu: torus.after(from, offset, u32::from(job.at.hop)), ..job }
    }

    /// The receive of a packet, if the NPU is its receiver.
    #[inline]
    fn received(&self, job: Job) -> Option<&Incoming> {
        let recv = &self.cuts.list(job.to, job.at.chunk).recvs[job.at.step as usize];
        (job.kind == Kind::Came && !self.passes(job, recv)).then_some(recv)
    }

    /// Whether a packet has further hops on a torus.
    #[inline]
    fn passes(&self, job: Job, recv: &Incoming) -> bool {
        let channel = self.cuts.channel(job.at.chunk);
        let Some(routes) = &channel.routes else { return job.npu != job.to };
        let hops = routes[recv.sent_as as usize].len();
        hops > 1 && usize::from(job.at.hop) < hops
    }

    /// Whether a packet that has arrived at an NPU of a torus has further hops.
    pub(super) fn is_relayed(&self, job: Job) -> bool {
        self.received(job).is_none()
    }

    /// The send that a packet is part of when it leaves the NPU: its own, or the one into which the
    /// receive is forwarded.
    #[inline]
    fn sent(&self, job: Job) -> Option<u32> {
        match job.kind {
            Kind::Own => Some(job.at.step),
            Kind::Came => {
                let recv = &self.cuts.list(job.to, job.at.chunk).recvs[job.at.step as usize];
                if self.passes(job, recv) { Some(recv.sent_as) } else { recv.forward }
            }
            _ => None,
        }
    }

    /// The handling of a packet and its size; None for data that a receive has already read.
    #[inline]
    fn handling(&self, job: Job) -> (Option<Handling>, Bytes) {
        let Piece { chunk, step, piece, .. } = job.at;
        if matches!(job.kind, Kind::Load | Kind::Store) {
            let (handling, bytes) = self.moved_piece(job);
            return (Some(handling), bytes);
        }
        let (flow, sizes) = (&self.cuts.channel(chunk).flow, self.cuts.sizes(chunk));
        let list = self.cuts.list(job.to, chunk);
        let fused = |length, part| {
            part > 0 && piece < sizes.packets_of(length, (part, flow.chunks_of(length)))
        };
        if job.kind == Kind::Own {
            let Outgoing { length, handling, fused: part, .. } = list.sends[step as usize];
            let is_read = !fused(length, part) && !self.fabric.is_later_branch(list, step);
            let handling = is_read.then_some(handling);
            return (handling, sizes.bytes(length, piece));
        }
        let recv = &list.recvs[step as usize];
        let bytes = sizes.bytes(recv.length, piece);
        if self.fabric.is_earlier_member(list, step) {
            return (None, bytes);
        }
        let handling = if self.passes(job, recv) {
            Handling::PassOn
        } else if fused(recv.length, recv.fused.1) {
            recv.fused.0
        } else {
            recv.kept
        };
        (Some(handling), bytes)
    }

    fn moved_piece(&self, job: Job) -> (Handling, Bytes) {
        let sizes = self.cuts.sizes(job.at.chunk);
        let (handling, all) = match job.kind {
            Kind::Load => (Handling::Load, sizes.loaded),
            _ => (Handling::Store, sizes.result),
        };
        let before = u64::from(job.at.piece) * self.fabric.message.0;
        (handling, Bytes((all.0 - before).min(self.fabric.message.0)))
    }

    /// The link on which a packet of a send leaves; on a graph, the queue of its receiver.
    #[inline]
    fn link(&mut self, job: Job, send: u32) -> u16 {
        let channel = self.cuts.channel(job.at.chunk);
        if let Some(routes) = &channel.routes {
            let own = job.kind == Kind::Own || self.received(job).is_some();
            return routes[send as usize][if own { 0 } else { usize::from(job.at.hop) }];
        }
        let to = self.receiver(job, send);
        if self.messages.is_some() {
            return self.npus[job.npu as usize].queue(to);
        }
        if job.npu != job.to
            && let Some(torus) = self.torus_of_routes(job.at.chunk)
        {
            let from = self.cuts.sender(to, job.at.chunk, job.at.step);
            let hop = torus.hop(torus.offset(from, to), u32::from(job.at.hop));
            return hop.map_or(0, |(ring, direction)| Torus::link(ring, direction));
        }
        let out = self.cuts.list(job.npu, job.at.chunk).sends[send as usize].channel;
        self.fabric.network.exit(job.npu, to, out).link
    }

    /// The NPU that receives a send.
    fn receiver(&self, job: Job, send: u32) -> u32 {
        if job.npu == job.to { self.cuts.receiver(job.npu, job.at.chunk, send) } else { job.to }
    }

    /// The capacity of the buffer of a link; None if the network has buffers.
    #[inline]
    fn port(&self) -> Option<u32> {
        let buffers = self.messages.as_ref().is_some_and(|messages| messages.buffers());
        self.fabric.endpoint.port.filter(|_| !buffers)
    }

    /// Starts to handle a packet when the buffer of its link has space.
    pub(super) fn start_handling(&mut self, job: Job, now: Time) {
        if let Some(port) = self.port()
            && let Some(send) = self.sent(job)
        {
            let link = self.link(job, send);
            let state = &mut self.npus[job.npu as usize];
            let own = job.kind == Kind::Own;
            if state.links[usize::from(link)].held >= port {
                return state.wait(usize::from(link), (own, job), now);
            }
            state.links[usize::from(link)].held += 1;
        }
        self.go(job, 0, now);
    }

    /// A packet has left for its link: the next waiting one is handled.
    pub(super) fn leave(&mut self, npu: u32, link: u16, now: Time) {
        let state = &mut self.npus[npu as usize];
        let link = &mut state.links[usize::from(link)];
        let Some(Reverse(Waiting { since, own, at, to, .. })) = link.waiting.pop() else {
            link.held -= 1;
            return;
        };
        state.stall(Cause::Port, now - since);
        let kind = if own { Kind::Own } else { Kind::Came };
        self.go(Job { npu, to, kind, at }, 0, now);
    }

    /// Moves a packet from stop to stop until one takes time.
    pub(super) fn go(&mut self, job: Job, from: u16, now: Time) {
        let Job { npu, to, kind, at } = job;
        let (handling, bytes) = self.handling(job);
        let recipe = handling.map_or(&[][..], |handling| self.fabric.endpoint.recipe(handling));
        let mut stop = from;
        while let Some(next) = recipe.get(usize::from(stop)) {
            let server = &mut self.npus[npu as usize].servers[next.server];
            let (_, done) = server.serve(now, Bytes(bytes.0 * next.times));
            stop += 1;
            if !next.aside && done > now {
                let Piece { chunk, step, piece, hop } = at;
                let event = Event { time: done, chunk, step, piece, hop, kind, stop, npu: to };
                self.events.push(event);
                return;
            }
        }
        self.finish(job, bytes, now);
    }

    /// A packet has passed its last stop.
    fn finish(&mut self, job: Job, bytes: Bytes, now: Time) {
        if let Some(send) = self.sent(job) {
            self.send(job, send, bytes, now);
        }
        let Job { npu, kind, at, .. } = job;
        if kind == Kind::Came {
            let Some(&recv) = self.received(job) else { return };
            self.follow(job, &recv, now);
        }
        let state = &mut self.npus[npu as usize];
        let chunk = &mut state.chunks[at.chunk as usize];
        chunk.left -= 1;
        let is_last = chunk.left == 0;
        if kind == Kind::Load {
            state.loads = state.loads.map(|loads| loads + 1);
        }
        if is_last {
            match kind {
                Kind::Load | Kind::Store => self.moved((npu, at.chunk), kind, now),
                _ => self.end_phase(npu, at.chunk, now),
            }
        }
    }

    /// Starts the sends that awaited a packet.
    fn follow(&mut self, job: Job, recv: &Incoming, now: Time) {
        let Job { npu, at, .. } = job;
        let phase = self.npus[npu as usize].chunks[at.chunk as usize].phase as usize;
        let complete = match self.npus[npu as usize].awaited.get_mut(&at.chunk) {
            Some(awaited) => {
                let first = self.cuts.list(npu, at.chunk).recvs_of(phase).start;
                let packets = &mut awaited.packets[(at.step - first) as usize];
                *packets -= 1;
                *packets == 0
            }
            None => false,
        };
        for index in 0..self.cuts.list(npu, at.chunk).followers(recv).len() {
            let list = self.cuts.list(npu, at.chunk);
            let follower = list.followers(recv)[index];
            if follower.by_packet {
                let at = Piece { step: follower.send, hop: 0, ..at };
                self.start_handling(Job::new(npu, Kind::Own, at), now);
                continue;
            }
            let first = list.sends_of(phase).start;
            let awaited = self.npus[npu as usize].awaited.get_mut(&at.chunk).filter(|_| complete);
            let Some(awaited) = awaited else { continue };
            let messages = &mut awaited.messages[(follower.send - first) as usize];
            *messages -= 1;
            if *messages == 0 {
                self.start_send((npu, at.chunk), follower.send, now);
            }
        }
    }

    /// Sends a packet on its link.
    fn send(&mut self, job: Job, send: u32, bytes: Bytes, now: Time) {
        let Job { npu, at, .. } = job;
        let link = self.link(job, send);
        let onward = self.onward(job, send);
        let fabric = self.fabric;
        match &fabric.network {
            StepNetwork::Torus(torus) => {
                let to = self.next_npu(torus, (job, send), link);
                self.send_on_torus(torus, job, (link, to, onward), bytes, now);
            }
            StepNetwork::Graph(_) | StepNetwork::Mesh(_) | StepNetwork::Isolated(_) => {
                let to = self.receiver(job, send);
                let packet = InFlight::new((npu, link, at), (to, onward), bytes, now);
                if !fabric.is_later_branch(self.cuts.list(npu, at.chunk), send) {
                    let exit = fabric.network.exit(npu, to, 0).link;
                    self.npus[npu as usize].links[usize::from(exit)].server.count(bytes);
                }
                let Some(packets) = self.tree_of(send, packet) else { return };
                if let Some(messages) = &mut self.messages {
                    match packets {
                        Packets::One(packet) => messages.send(packet),
                        Packets::Tree(packets, inwards) => messages.send_tree(packets, inwards),
                    }
                }
            }
        }
    }

    /// A packet of a send as it arrives.
    fn onward(&self, job: Job, send: u32) -> Piece {
        let at = job.at;
        if job.kind == Kind::Came && self.received(job).is_none() {
            return Piece { hop: at.hop + 1, ..at };
        }
        let relayed = match (&self.cuts.channel(at.chunk).routes, &self.fabric.network) {
            (Some(routes), _) => routes[send as usize].len() > 1,
            (None, StepNetwork::Torus(torus)) => {
                torus.hop(torus.offset(job.npu, self.receiver(job, send)), 1).is_some()
            }
            _ => false,
        };
        let step = self.cuts.list(job.npu, at.chunk).sends[send as usize].arrives_as;
        Piece { chunk: self.cuts.at_receiver(at.chunk), step, hop: u16::from(relayed), ..at }
    }

    /// The NPU of the event of a packet that leaves on a link of a torus.
    #[inline]
    fn next_npu(&self, torus: &Torus, (job, send): (Job, u32), link: u16) -> u32 {
        match self.fabric.population {
            Population::One => job.npu,
            Population::All if self.cuts.channel(job.at.chunk).routes.is_none() => {
                self.receiver(job, send)
            }
            Population::All => {
                torus.neighbour(job.npu, usize::from(link) / 2, u8::from(link % 2 == 1))
            }
        }
    }

    fn send_on_torus(
        &mut self,
        torus: &Torus,
        job: Job,
        (link, to, onward): (u16, u32, Piece),
        bytes: Bytes,
        now: Time,
    ) {
        let Job { npu, at, .. } = job;
        let wire = &mut self.npus[npu as usize].links[usize::from(link)];
        let (start, left) = wire.server.serve(now, bytes);
        let relay = torus.relay(usize::from(link) / 2, bytes);
        let time = left + wire.latency + self.fabric.endpoint.delay + relay;
        self.links.add(start, left);
        if self.port().is_some() {
            self.left((npu, link, at), left);
        }
        let Piece { chunk, step, piece, hop } = onward;
        let event = Event { time, chunk, step, piece, hop, kind: Kind::Came, stop: 0, npu: to };
        self.events.push(event);
    }

    /// A packet leaves the buffer of its link at `time`.
    fn left(&mut self, (npu, link, at): (u32, u16, Piece), time: Time) {
        let Piece { chunk, step, piece, hop } = at;
        let event = Event { time, chunk, step, piece, hop, kind: Kind::Left, stop: link, npu };
        self.events.push(event);
    }

    /// Turns what happens in the network before the next event, and not after `until`, into events.
    pub(super) fn run_network(&mut self, until: Option<Time>) {
        loop {
            let next = self.events.next();
            let until = next.into_iter().chain(until).min().unwrap_or(Time::MAX);
            let news = self.messages.as_mut().and_then(|messages| messages.next(until));
            match news {
                None => return,
                Some(News::Left(packet, time)) => {
                    self.links.add(packet.sent, time);
                    if self.port().is_some() {
                        self.left((packet.source, packet.link, packet.at), time);
                    }
                }
                Some(News::Arrived(packet, time)) => {
                    let Piece { chunk, step, piece, hop } = packet.onward;
                    let (time, npu) = (time + self.fabric.endpoint.delay, packet.destination);
                    let (kind, stop) = (Kind::Came, 0);
                    let event = Event { time, chunk, step, piece, hop, kind, stop, npu };
                    self.events.push(event);
                }
            }
        }
    }
}
