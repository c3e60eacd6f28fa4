//! The lower bound of a single collective: the launch, then the busy time of its busiest server or
//! link, or the latency of its first chunk.
//!
//! [`TrainingFabric::limit`] counts the packets of the first NPU without simulation. Tests check that
//! no run is faster, and that runs without contention are equal to it.

use std::sync::Arc;

use super::group::Groups;
use super::network::StepNetwork;
use super::rounds::InNetwork;
use super::transfers::{Channel, Cuts, Sizes};
use super::{TrainingFabric, TrainingRunError};
use crate::dataflow::{Incoming, Messages, Outgoing};
use crate::endpoint::Handling;
use crate::workload::Transfer;
use tutti_units::{Bytes, Time};

/// The load of one collective on an NPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Busy time of each server of the endpoint.
    pub servers: Vec<(Arc<str>, Time)>,
    /// The part of it that packets wait for: all except asynchronous writes.
    pub awaited: Vec<Time>,
    /// Busy time of each link; on a torus two per ring, one per direction.
    pub links: Vec<Time>,
    /// Latency of the shortest chunk without contention, with one packet per message: loaded,
    /// through all phases, and stored. Zero if NPUs do not act alike.
    pub latency: Time,
    /// Time from the issue until the start.
    pub launch: Time,
}

impl Limit {
    /// The lower bound.
    #[must_use]
    pub fn time(&self) -> Time {
        let work = self.awaited.iter().chain(&self.links).max().copied().unwrap_or(Time::ZERO);
        self.launch + work.max(self.latency)
    }
}

impl TrainingFabric {
    /// Returns the load of a single collective on an NPU.
    ///
    /// # Errors
    /// When there is no schedule for it, or a chunk does not fit into a partition.
    pub fn limit(&self, transfer: Transfer) -> Result<Limit, TrainingRunError> {
        self.check_sizes()?;
        let cuts = Cuts::of_one(self, transfer)?;
        let servers = vec![Time::ZERO; self.endpoint.servers.len()];
        let links = vec![Time::ZERO; self.network.exits(0).len()];
        let mut sum = Sum { fabric: self, awaited: servers.clone(), servers, links };
        let chunks = u32::try_from(cuts.chunks()).unwrap_or(u32::MAX);
        for chunk in 0..chunks {
            sum.add_chunk(&cuts, chunk);
        }
        let kinds = &self.endpoint.servers;
        let names = kinds.iter().map(|kind| Arc::clone(&kind.name));
        let units = kinds.iter().map(|kind| u64::from(kind.service.units));
        let mean = |(work, units): (Time, u64)| Time::from_ps(work.ps() / units);
        let latency = |last| self.latency(&cuts, last);
        Ok(Limit {
            servers: names.zip(sum.servers.into_iter().zip(units.clone()).map(mean)).collect(),
            awaited: sum.awaited.into_iter().zip(units).map(mean).collect(),
            links: sum.links,
            latency: chunks.checked_sub(1).map_or(Time::ZERO, latency),
            launch: self.launch,
        })
    }

    /// Latency of the last packet of each message of a chunk, each phase after the previous one.
    fn latency(&self, cuts: &Cuts, chunk: u32) -> Time {
        let (channel, sizes) = (cuts.channel(chunk), cuts.sizes(chunk));
        let trees = channel.flow.is_marked() && self.network.in_network() != InNetwork::default();
        // On routes that depend on the sender, the messages of the first NPU may take the longest.
        let own_routes = matches!(self.network, StepNetwork::Torus(_)) && channel.routes.is_none();
        if channel.flow.symmetry.is_none() || trees || own_routes {
            return Time::ZERO;
        }
        let list = channel.flow.messages(0);
        let path = Path { fabric: self, groups: cuts.groups(chunk), channel, sizes, list };
        let phases = (0..channel.classes.len()).map(|phase| path.of_phase(phase));
        let inside = phases.fold(Time::ZERO, |sum, time| sum + time);
        let load = self.through(Handling::Load, sizes.loaded.min(self.message));
        load + inside + self.through(Handling::Store, sizes.result.min(self.message))
    }

    /// Time at the synchronous stops of a handling.
    fn through(&self, handling: Handling, bytes: Bytes) -> Time {
        let stops = self.endpoint.recipe(handling).iter().filter(|stop| !stop.aside);
        let time = |server: usize, times| {
            let service = self.endpoint.servers[server].service;
            service.work(Bytes(bytes.0 * times)) + service.latency
        };
        stops.map(|stop| time(stop.server, stop.times)).fold(Time::ZERO, |sum, time| sum + time)
    }
}

/// The messages of a chunk on a schedule that all ranks share.
struct Path<'a> {
    fabric: &'a TrainingFabric,
    groups: &'a Groups,
    channel: &'a Channel,
    sizes: &'a Sizes,
    list: &'a Messages,
}

impl Path<'_> {
    fn last_packet(&self, length: u32) -> Bytes {
        self.sizes.bytes(length, self.sizes.packets(length) - 1)
    }

    /// The latest receive of a phase. Rank 0 receives what it sends, when it sends it.
    fn of_phase(&self, phase: usize) -> Time {
        let (sends, recvs) = (self.list.sends_of(phase), self.list.recvs_of(phase));
        let mut ready: Vec<Time> = vec![Time::ZERO; sends.len()];
        let mut latest = Time::ZERO;
        for index in sends.clone() {
            let send = &self.list.sends[index as usize];
            let mut left = ready[(index - sends.start) as usize];
            let bytes = self.last_packet(send.length);
            if !send.forwarded && send.fused == 0 {
                left += self.fabric.through(send.handling, bytes);
            }
            debug_assert!(recvs.contains(&send.arrives_as), "a message crosses phases");
            let recv = &self.list.recvs[send.arrives_as as usize];
            let arrived = left + self.transit(index, send, bytes);
            let done = arrived + self.fabric.through(handling(recv), bytes);
            latest = latest.max(done);
            let forward = recv.forward.into_iter();
            let others = self.list.followers(recv).iter().map(|follower| follower.send);
            for follower in forward.chain(others) {
                let ready = &mut ready[(follower - sends.start) as usize];
                *ready = (*ready).max(done);
            }
        }
        latest
    }

    /// Time of a packet between its sender and its receiver.
    fn transit(&self, index: u32, send: &Outgoing, bytes: Bytes) -> Time {
        let delay = self.fabric.endpoint.delay;
        match (&self.fabric.network, &self.channel.routes) {
            (StepNetwork::Torus(torus), Some(routes)) => {
                let mut time = Time::ZERO;
                for (hop, &link) in routes[index as usize].iter().enumerate() {
                    if hop > 0 {
                        time += self.fabric.through(Handling::PassOn, bytes);
                    }
                    let ring = torus.rings()[usize::from(link) / 2];
                    time += ring.per_byte.of(bytes) + ring.latency + delay;
                    time += torus.relay(usize::from(link) / 2, bytes);
                }
                time
            }
            (network, _) => {
                let rank = self.groups.rank(0);
                let to = self.groups.member(0, self.channel.flow.peer(rank, send.peer));
                let exit = network.exit(0, to, send.channel);
                exit.per_byte.of(bytes) + exit.latency + delay
            }
        }
    }
}

/// The handling of the last packet of a message.
fn handling(recv: &Incoming) -> Handling {
    if recv.forward.is_some() { recv.fused.0 } else { recv.kept }
}

/// Accumulated work.
struct Sum<'a> {
    fabric: &'a TrainingFabric,
    servers: Vec<Time>,
    awaited: Vec<Time>,
    links: Vec<Time>,
}

impl Sum<'_> {
    fn add_chunk(&mut self, cuts: &Cuts, chunk: u32) {
        let (groups, channel, sizes) = (cuts.groups(chunk), cuts.channel(chunk), cuts.sizes(chunk));
        let list = cuts.list(0, chunk);
        self.moved(Handling::Load, sizes.loaded);
        let fabric = self.fabric;
        for (index, send) in (0..).zip(&list.sends) {
            if fabric.is_later_branch(list, index) {
                continue;
            }
            let fused = self.fused(channel, sizes, send.length, send.fused);
            for piece in 0..sizes.packets(send.length) {
                let bytes = sizes.bytes(send.length, piece);
                if !send.forwarded && piece >= fused {
                    self.handled(send.handling, bytes);
                }
                self.sent(groups, channel, (index as usize, send), bytes);
            }
        }
        for (index, recv) in (0..).zip(&list.recvs) {
            if fabric.is_earlier_member(list, index) {
                continue;
            }
            let fused = self.fused(channel, sizes, recv.length, recv.fused.1);
            for piece in 0..sizes.packets(recv.length) {
                let handling = if piece < fused { recv.fused.0 } else { recv.kept };
                self.handled(handling, sizes.bytes(recv.length, piece));
            }
        }
        self.moved(Handling::Store, sizes.result);
    }

    fn fused(&self, channel: &Channel, sizes: &Sizes, length: u32, part: u32) -> u32 {
        let chunks = channel.flow.chunks_of(length);
        if part == 0 { 0 } else { sizes.packets_of(length, (part, chunks)) }
    }

    /// Adds the handling of a packet.
    fn handled(&mut self, handling: Handling, bytes: Bytes) {
        for stop in self.fabric.endpoint.recipe(handling) {
            let service = self.fabric.endpoint.servers[stop.server].service;
            let work = service.work(Bytes(bytes.0 * stop.times));
            self.servers[stop.server] += work;
            if !stop.aside {
                self.awaited[stop.server] += work;
            }
        }
    }

    /// Adds a load or store of a chunk, one message at a time.
    fn moved(&mut self, handling: Handling, bytes: Bytes) {
        let message = self.fabric.message.0;
        for at in 0..bytes.0.div_ceil(message) {
            self.handled(handling, Bytes((bytes.0 - at * message).min(message)));
        }
    }

    /// Adds the links of a packet. On a torus, NPUs relay as many packets as are relayed for them.
    fn sent(&mut self, groups: &Groups, channel: &Channel, send: (usize, &Outgoing), bytes: Bytes) {
        let (index, send) = send;
        let exits = self.fabric.network.exits(0);
        let Some(routes) = &channel.routes else {
            let rank = groups.rank(0);
            let to = groups.member(0, channel.flow.peer(rank, send.peer));
            let exit = self.fabric.network.exit(0, to, send.channel);
            self.links[usize::from(exit.link)] += exit.per_byte.of(bytes);
            return;
        };
        for (hop, &link) in routes[index].iter().enumerate() {
            if hop > 0 {
                self.handled(Handling::PassOn, bytes);
            }
            self.links[usize::from(link)] += exits[usize::from(link)].0.of(bytes);
        }
    }
}
