//! Traffic that is generated, or read from a trace, and a record of what arrives.

use super::tally::Tally;
use super::{Load, MeasurementSettings, Phases, Traffic};
use crate::packet::{Delivery, Order, Source};
use crate::traffic::{Arrivals, Record};

/// Where packets come from.
pub(super) enum Supply {
    /// Classes of synthetic traffic: its seed, its law, and how many packets each node has sent.
    Synthetic(Vec<Class>),
    /// Records by node and class.
    Recorded {
        /// By node, then class, in order of time, the next one last.
        queues: Vec<Vec<Record>>,
        /// How many classes there are.
        classes: usize,
    },
}

/// A class of synthetic traffic.
pub(super) struct Class {
    load: Load,
    arrivals: Arrivals,
    seed: u64,
    /// Per node, the packets it has sent, and the cycle from which the next is looked for.
    nodes: Vec<(u64, u64)>,
}

/// The traffic of a run.
pub(super) struct Generator {
    supply: Supply,
    phases: Phases,
    pub(super) tallies: Vec<Tally>,
    /// Packets created in the window, as far as they have been taken, that have not arrived.
    pub(super) missing: u64,
    /// Routers that gave a VC to packets that arrived in the window.
    pub(super) vc_grants: u64,
}

impl Generator {
    /// Traffic of so many nodes and classes.
    pub(super) fn new(
        traffic: Traffic<'_>,
        (nodes, classes): (u32, usize),
        seed: u64,
        settings: &MeasurementSettings,
    ) -> Generator {
        let supply = match traffic {
            Traffic::Synthetic(loads) => {
                let class = |(class, load): (u64, &Load)| {
                    let seed = seed ^ class << 48;
                    Class {
                        arrivals: Arrivals::new(load.process, nodes, seed),
                        load: load.clone(),
                        seed,
                        nodes: vec![(0, 0); nodes as usize],
                    }
                };
                Supply::Synthetic((0..).zip(loads).map(class).collect())
            }
            Traffic::Recorded(trace) => {
                let mut queues = vec![Vec::new(); nodes as usize * classes];
                for record in trace.records().iter().rev() {
                    let queue = record.source as usize * classes + record.class as usize;
                    queues[queue].push(*record);
                }
                Supply::Recorded { queues, classes }
            }
        };
        let tallies = vec![Tally::new(settings, nodes); classes];
        Generator { supply, phases: settings.phases, tallies, missing: 0, vc_grants: 0 }
    }

    /// Packets and flits created before `end` that nodes have not begun to inject.
    pub(super) fn waiting(&self, end: u64) -> (u64, u64) {
        let mut waiting = (0, 0);
        match &self.supply {
            Supply::Synthetic(classes) => {
                for class in classes {
                    class.count_waiting(end, &mut waiting);
                }
            }
            Supply::Recorded { queues, .. } => {
                for record in queues.iter().flatten().filter(|record| record.cycle < end) {
                    waiting = (waiting.0 + 1, waiting.1 + u64::from(record.flits));
                }
            }
        }
        waiting
    }

    /// Counts what was created in the window and never taken as created, too.
    pub(super) fn count_untaken(&mut self) {
        let (start, end) = (self.phases.warmup, self.phases.end());
        match &self.supply {
            Supply::Synthetic(classes) => {
                for (class, tally) in classes.iter().zip(&mut self.tallies) {
                    let (mut all, mut before) = ((0, 0), (0, 0));
                    class.count_waiting(end, &mut all);
                    class.count_waiting(start, &mut before);
                    tally.created_flits += all.1 - before.1;
                }
            }
            Supply::Recorded { queues, .. } => {
                for record in queues.iter().flatten() {
                    if (start..end).contains(&record.cycle) {
                        let flits = u64::from(record.flits);
                        self.tallies[record.class as usize].created_flits += flits;
                    }
                }
            }
        }
    }

    /// Whether every packet of the window has been taken and has arrived: whether its queues have none
    /// left from before `end`.
    pub(super) fn has_all(&mut self, end: u64) -> bool {
        self.missing == 0 && !self.is_behind(end)
    }

    /// Whether some node still has a packet to send that was created before `end`.
    fn is_behind(&mut self, end: u64) -> bool {
        match &mut self.supply {
            Supply::Synthetic(classes) => classes.iter_mut().any(|class| {
                let Class { load, arrivals, nodes, .. } = class;
                (0..).zip(nodes.iter()).any(|(node, &(_, from))| {
                    load.pattern.sends(node)
                        && arrivals.next(node, from).is_some_and(|created| created < end)
                })
            }),
            Supply::Recorded { queues, .. } => {
                queues.iter().any(|queue| queue.last().is_some_and(|record| record.cycle < end))
            }
        }
    }
}

impl Source for Generator {
    #[inline]
    fn next_at(&mut self, node: u32, class: u8) -> Option<u64> {
        match &mut self.supply {
            Supply::Synthetic(classes) => {
                let class = classes.get_mut(usize::from(class))?;
                if !class.load.pattern.sends(node) {
                    return None;
                }
                class.arrivals.next(node, class.nodes[node as usize].1)
            }
            Supply::Recorded { queues, classes } => {
                let queue = &queues[node as usize * *classes + usize::from(class)];
                queue.last().map(|record| record.cycle)
            }
        }
    }

    #[inline]
    fn take(&mut self, node: u32, class: u8) -> Order {
        let order = match &mut self.supply {
            Supply::Synthetic(classes) => classes[usize::from(class)].take(node, class),
            Supply::Recorded { queues, classes } => {
                let queue = &mut queues[node as usize * *classes + usize::from(class)];
                let record = queue.pop().expect("next_at returned its cycle");
                Order {
                    created: record.cycle,
                    destination: record.destination,
                    flits: record.flits,
                    class,
                    priority: 0,
                    tag: 0,
                }
            }
        };
        if self.phases.in_window(order.created).is_some() {
            self.missing += 1;
            self.tallies[usize::from(class)].created_flits += u64::from(order.flits);
        }
        order
    }

    #[inline]
    fn delivered(&mut self, delivery: &Delivery) {
        let arrived = self.phases.in_window(delivery.arrived);
        let created = self.phases.in_window(delivery.created);
        let tally = &mut self.tallies[usize::from(delivery.class)];
        if let Some(cycle) = arrived {
            tally.accept(delivery, cycle);
            self.vc_grants += u64::from(delivery.hops);
        }
        if let Some(cycle) = created {
            tally.arrive(delivery, cycle);
            self.missing -= 1;
        }
    }

    fn refilled(&mut self, _: &mut Vec<(u32, u8)>) {}
}

impl Class {
    fn count_waiting(&self, end: u64, waiting: &mut (u64, u64)) {
        let mut arrivals = self.arrivals.clone();
        for (node, &(mut serial, mut from)) in (0..).zip(&self.nodes) {
            while self.load.pattern.sends(node) {
                let Some(created) = arrivals.next(node, from).filter(|&cycle| cycle < end) else {
                    break;
                };
                waiting.0 += 1;
                waiting.1 += u64::from(self.load.size.draw(self.seed, node, serial));
                (serial, from) = (serial + 1, created + 1);
            }
        }
    }

    #[inline]
    fn take(&mut self, node: u32, class: u8) -> Order {
        let (serial, from) = self.nodes[node as usize];
        let created = self.arrivals.next(node, from).unwrap_or(from);
        self.nodes[node as usize] = (serial + 1, created + 1);
        let destination = self.load.pattern.destination(self.seed, node, serial);
        Order {
            created,
            destination: destination.unwrap_or(node),
            flits: self.load.size.draw(self.seed, node, serial),
            class,
            priority: self.load.priority,
            tag: 0,
        }
    }
}
