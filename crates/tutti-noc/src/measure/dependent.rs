//! Packets of a trace that wait for the arrival of others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::packet::{Delivery, Order};
use crate::traffic::{Dependencies, Record, Trace};

/// What the network knows of a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Announced {
    /// It had no packet when its next one was requested.
    Nothing,
    /// Its next packet, by this cycle.
    At(u64),
    /// The network injects a packet, and requests the next one after it.
    Later,
}

/// The packets of a trace by node and class; those that wait for others join when these arrive.
pub(super) struct DependentSupply {
    records: Vec<Record>,
    dependencies: Dependencies,
    /// By packet: the cycle from which it may be created, as far as it is known.
    ready: Vec<u64>,
    is_taken: Vec<bool>,
    left: usize,
    classes: usize,
    /// By node, then class: cycle and place of packets that wait for none.
    queues: Vec<BinaryHeap<Reverse<(u64, u32)>>>,
    announced: Vec<Announced>,
    refilled: Vec<(u32, u8)>,
    hastened: Vec<(u32, u8)>,
}

impl DependentSupply {
    pub(super) fn new(
        trace: &Trace,
        dependencies: &Dependencies,
        (nodes, classes): (u32, usize),
    ) -> DependentSupply {
        let records = trace.records().to_vec();
        let queues = nodes as usize * classes;
        let mut supply = DependentSupply {
            ready: records.iter().map(|record| record.cycle).collect(),
            is_taken: vec![false; records.len()],
            left: records.len(),
            classes,
            queues: vec![BinaryHeap::new(); queues],
            announced: vec![Announced::Later; queues],
            refilled: Vec::new(),
            hastened: Vec::new(),
            dependencies: dependencies.clone(),
            records,
        };
        for (place, &waits) in (0_u32..).zip(&dependencies.waits) {
            if waits == 0 {
                supply.join(place);
            }
        }
        supply
    }

    /// Packets that have not arrived.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    fn queue_of(&self, record: &Record) -> usize {
        record.source as usize * self.classes + record.class as usize
    }

    /// A packet waits for no other: it joins its queue.
    fn join(&mut self, place: u32) {
        let record = self.records[place as usize];
        let (queue, ready) = (self.queue_of(&record), self.ready[place as usize]);
        self.queues[queue].push(Reverse((ready, place)));
        let name = (record.source, u8::try_from(record.class).unwrap_or(u8::MAX));
        match self.announced[queue] {
            Announced::Nothing => {
                self.announced[queue] = Announced::At(ready);
                self.refilled.push(name);
            }
            Announced::At(cycle) if ready < cycle => {
                self.announced[queue] = Announced::At(ready);
                let is_named = self.refilled.contains(&name) || self.hastened.contains(&name);
                if !is_named {
                    self.hastened.push(name);
                }
            }
            Announced::At(_) | Announced::Later => {}
        }
    }

    pub(super) fn next_at(&mut self, node: u32, class: u8) -> Option<u64> {
        let queue = node as usize * self.classes + usize::from(class);
        let next = self.queues[queue].peek().map(|&Reverse((ready, _))| ready);
        self.announced[queue] = next.map_or(Announced::Nothing, Announced::At);
        next
    }

    pub(super) fn take(&mut self, node: u32, class: u8) -> Order {
        let queue = node as usize * self.classes + usize::from(class);
        self.announced[queue] = Announced::Later;
        let Reverse((created, place)) = self.queues[queue].pop().expect("next_at found a packet");
        self.is_taken[place as usize] = true;
        let record = &self.records[place as usize];
        Order {
            created,
            destination: record.destination,
            flits: record.flits,
            class,
            priority: 0,
            tag: u64::from(place),
        }
    }

    /// A packet has arrived: those that wait for it are created from the next cycle on.
    pub(super) fn delivered(&mut self, delivery: &Delivery) {
        self.left -= 1;
        let place = usize::try_from(delivery.tag).expect("a place in the trace");
        for later in std::mem::take(&mut self.dependencies.dependents[place]) {
            let index = later as usize;
            let delay = u64::from(self.dependencies.delays[index]);
            self.ready[index] = self.ready[index].max(delivery.arrived + 1 + delay);
            self.dependencies.waits[index] -= 1;
            if self.dependencies.waits[index] == 0 {
                self.join(later);
            }
        }
    }

    pub(super) fn refilled(&mut self, queues: &mut Vec<(u32, u8)>) {
        queues.append(&mut self.refilled);
    }

    pub(super) fn hastened(&mut self, queues: &mut Vec<(u32, u8)>) {
        queues.append(&mut self.hastened);
    }

    /// The packets that nodes have not started to inject, and whose cycle is before `end`, whether
    /// or not they wait for others.
    pub(super) fn waiting(&self, end: u64) -> impl Iterator<Item = &Record> {
        let taken = self.records.iter().zip(&self.is_taken);
        taken
            .filter(move |(record, taken)| !**taken && record.cycle < end)
            .map(|(record, _)| record)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::generator::Generator;
    use super::super::{MeasurementPlan, Phases, Traffic};
    use super::*;
    use crate::oracle::ReferenceNetwork;
    use crate::{ChannelParameters, Network, Settings, Wiring, routing};
    use tutti_topology::LinkParameters;
    use tutti_units::{Bytes, Time, TimePerByte};

    const NODES: u32 = 16;

    fn wiring() -> Arc<Wiring> {
        let link = LinkParameters::new(TimePerByte::new(1000, 16).unwrap(), Time::from_ps(1000));
        let topology = tutti_topology::build("mesh:4x4", &[link]).unwrap();
        let port = ChannelParameters {
            latency: 1,
            credit_latency: 1,
            flit_time: Time::from_ps(1000),
            length: None,
        };
        let cycle = Time::from_ps(1000);
        Arc::new(Wiring::of(Arc::new(topology), cycle, Bytes(16), port).unwrap())
    }

    /// A trace in which most packets wait for one or two others, and some for a later cycle.
    fn trace(seed: u64) -> Trace {
        let mut state = seed;
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut text = "cycle,source,destination,flits,class,id,after,delay".to_owned();
        for id in 0..120_u64 {
            let (source, target) = (draw(4), draw(u64::from(NODES)));
            let before: Vec<String> =
                (0..draw(3)).filter(|_| id > 0).map(|_| draw(id.max(1)).to_string()).collect();
            let delay = if before.is_empty() { 0 } else { draw(40) };
            let (cycle, flits, class, after) = (draw(2000), 1 + draw(6), draw(2), before.join(" "));
            text += &format!("\n{cycle},{source},{target},{flits},{class},{id},{after},{delay}");
        }
        Trace::parse(&text, NODES).unwrap()
    }

    #[test]
    fn both_engines_send_packets_when_those_before_them_have_arrived() {
        let wiring = wiring();
        for seed in 1..=12 {
            let trace = trace(seed);
            let mut settings = Settings::new(2, 4);
            settings.classes = vec![settings.classes[0]; 2];
            let routing = routing::parse("dimension_order", &wiring).unwrap();
            let phases = Phases { warmup: 0, measure: 2000, drain: 0 };
            let plan =
                MeasurementPlan { phases, batches: 2, patience: 1000, sample: 0, keep_vcs: false };
            let generator =
                || Generator::new(Traffic::Recorded(&trace), (NODES, 2), 1, &plan, true);
            let (mut one, mut other) = (generator(), generator());
            let mut fast = Network::new(&wiring, &settings, Arc::clone(&routing)).unwrap();
            let mut slow = ReferenceNetwork::new(&wiring, &settings, routing).unwrap();
            for _ in 0..30_000 {
                fast.step(&mut one);
                slow.step(&mut other);
                if !one.has_packets() && !other.has_packets() {
                    break;
                }
            }
            let sorted = |of: &Generator| {
                let mut arrived = of.logged().to_vec();
                arrived.sort_unstable();
                arrived
            };
            let arrived = sorted(&one);
            assert_eq!(arrived.len(), 120);
            assert_eq!(arrived, sorted(&other));
            check(&trace, &arrived);
        }
    }

    /// Checks that each packet was created when the last of those before it had arrived.
    fn check(trace: &Trace, arrived: &[Delivery]) {
        let mut ready: Vec<u64> = trace.records().iter().map(|record| record.cycle).collect();
        let dependencies = trace.dependencies().unwrap();
        let place = |delivery: &Delivery| usize::try_from(delivery.tag).unwrap();
        for delivery in arrived {
            for &later in &dependencies.dependents[place(delivery)] {
                let later = later as usize;
                let delay = u64::from(dependencies.delays[later]);
                ready[later] = ready[later].max(delivery.arrived + 1 + delay);
            }
        }
        for delivery in arrived {
            assert_eq!(delivery.created, ready[place(delivery)]);
        }
    }
}
