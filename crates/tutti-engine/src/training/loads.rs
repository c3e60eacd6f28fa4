//! The loads of the phases of collectives on an engine with partitions: how its SRAM and its FSMs
//! are divided among them.

use super::network::{Exit, StepNetwork};
use super::transfers::{Plan, Plans, classes};
use super::{TrainingFabric, TrainingRunError};
use crate::dataflow::Dataflow;
use crate::endpoint::ace::PhaseLoad;
use crate::workload::Transfer;
use tutti_schedule::collective::Collective;
use tutti_units::{Bytes, Time, TimePerByte};

impl TrainingFabric {
    /// Returns the load of each phase of the collectives of `transfers`, for chunks in packets of at
    /// most `packet`. An all_reduce among all NPUs comes first; others fill the classes that it does
    /// not have. All-to-alls share the partition of one of these phases, with the mean of their chunk
    /// sizes (Rashidi et al. 2021, section IV).
    ///
    /// # Errors
    /// When a collective has no schedule for its groups.
    pub fn phase_loads(
        &self,
        transfers: &[Transfer],
        packet: Bytes,
    ) -> Result<Vec<PhaseLoad>, TrainingRunError> {
        let mut plans = Plans::default();
        let first = Transfer::new(Collective::AllReduce, Bytes(1));
        let mut found: Vec<(Transfer, Plan)> = Vec::new();
        for (index, &transfer) in [first].iter().chain(transfers).enumerate() {
            match plans.of(self, transfer) {
                Ok(plan) => found.push((transfer, plan)),
                Err(_) if index == 0 => {}
                Err(error) => return Err(error),
            }
        }
        let is_exchange = |transfer: &Transfer| transfer.collective == Collective::AllToAll;
        let mut loads: Vec<Option<PhaseLoad>> = vec![None; plans.phases()];
        for (_, plan) in found.iter().filter(|(transfer, _)| !is_exchange(transfer)) {
            for (class, load) in self.loads(plan, loads.len(), packet) {
                loads[class].get_or_insert(load);
            }
        }
        for (_, plan) in found.iter().filter(|(transfer, _)| is_exchange(transfer)).take(1) {
            for (class, load) in self.loads(plan, loads.len(), packet) {
                let shared = loads[class].get_or_insert(load);
                shared.exchange = load.time;
                shared.chunk = Bytes(shared.chunk.0.midpoint(load.chunk.0));
            }
        }
        let spare = loads.iter().flatten().next().copied();
        Ok(loads.into_iter().filter_map(|load| load.or(spare)).collect())
    }

    /// The load of each phase of a collective, by class.
    fn loads(&self, plan: &Plan, count: usize, packet: Bytes) -> Vec<(usize, PhaseLoad)> {
        let Some(flow) = plan.flows.first() else { return Vec::new() };
        let phase = |(phase, class)| {
            let time = self.alone(plan, flow, phase, packet);
            let load = PhaseLoad {
                links: self.links(plan, phase),
                chunk: flow.entry(phase, self.chunk),
                time,
                exchange: Time::ZERO,
            };
            (class, load)
        };
        classes(flow, count).into_iter().enumerate().map(phase).collect()
    }

    /// The first links of the sends of a phase, at the first NPU that sends.
    fn exits(&self, plan: &Plan, flow: &Dataflow, phase: usize) -> Vec<(Exit, Bytes)> {
        let sends = |&npu: &u32| !flow.messages(plan.groups.rank(npu)).sends_of(phase).is_empty();
        let npu = (0..self.network.npus()).find(sends).unwrap_or(0);
        let rank = plan.groups.rank(npu);
        let list = flow.messages(rank);
        let lengths = flow.lengths(self.chunk);
        let exit = |send: u32| {
            let send = &list.sends[send as usize];
            let to = plan.groups.member(npu, flow.peer(rank, send.peer));
            (self.network.exit(npu, to, send.channel), lengths[send.length as usize])
        };
        list.sends_of(phase).map(exit).collect()
    }

    /// The time per byte of all links of a phase together.
    fn links(&self, plan: &Plan, phase: usize) -> TimePerByte {
        let exits = plan.flows.iter().flat_map(|flow| self.exits(plan, flow, phase));
        let mut exits: Vec<Exit> = exits.map(|(exit, _)| exit).collect();
        exits.sort_unstable_by_key(|exit| exit.link);
        exits.dedup_by_key(|exit| exit.link);
        let Some(first) = exits.first() else { return TimePerByte::ZERO };
        let (ps, bytes) = first.per_byte.fraction();
        let all = bytes.checked_mul(exits.len() as u64);
        all.and_then(|bytes| TimePerByte::new(ps, bytes)).unwrap_or(first.per_byte)
    }

    /// Approximate time of a phase for a chunk without contention. Packets are pipelined, and a
    /// forwarded message starts when its first packet arrives. Messages that do not depend on each
    /// other share their links.
    fn alone(&self, plan: &Plan, flow: &Dataflow, phase: usize, packet: Bytes) -> Time {
        if flow.phases[phase].reduces || flow.messages(0).sends_of(phase).len() < 2 {
            return self.in_sequence(plan, flow, phase, packet);
        }
        let list = flow.messages(plan.groups.rank(0));
        let mut sends = list.sends_of(phase);
        if sends.any(|send| list.sends[send as usize].forwarded) {
            return self.in_sequence(plan, flow, phase, packet);
        }
        self.at_once(plan, flow, phase)
    }

    fn in_sequence(&self, plan: &Plan, flow: &Dataflow, phase: usize, packet: Bytes) -> Time {
        let exits = self.exits(plan, flow, phase);
        let mut time = Time::ZERO;
        for (index, (exit, bytes)) in (1..).zip(&exits) {
            let all = exit.per_byte.of(*bytes);
            time += if index == exits.len() {
                all + exit.latency
            } else {
                (exit.per_byte.of((*bytes).min(packet)) + exit.latency).max(all)
            };
        }
        time
    }

    /// The busy time of the busiest link plus the longest path; on a torus packets are relayed.
    fn at_once(&self, plan: &Plan, flow: &Dataflow, phase: usize) -> Time {
        let rank = plan.groups.rank(0);
        let list = flow.messages(rank);
        let lengths = flow.lengths(self.chunk);
        let links = self.network.exits(0);
        let mut work = vec![Time::ZERO; links.len()];
        let mut longest = Time::ZERO;
        for send in list.sends_of(phase).map(|send| &list.sends[send as usize]) {
            let to = plan.groups.member(0, flow.peer(rank, send.peer));
            let bytes = lengths[send.length as usize];
            let latency = match &self.network {
                StepNetwork::Torus(torus) => {
                    let route = torus.route(torus.offset(0, to)).into_iter().map(usize::from);
                    route.fold(Time::ZERO, |path, link| {
                        work[link] += links[link].0.of(bytes);
                        path + links[link].1
                    })
                }
                _ => {
                    let exit = self.network.exit(0, to, send.channel);
                    work[usize::from(exit.link)] += exit.per_byte.of(bytes);
                    exit.latency
                }
            };
            longest = longest.max(latency);
        }
        work.into_iter().max().unwrap_or(Time::ZERO) + longest
    }
}
