//! Traffic from generators or a trace, and the record of arrivals.

use super::dependent::DependentSupply;
use super::requests::{RequestSupply, RoundTrips};
use super::tally::Tally;
use super::{Load, MeasurementPlan, Traffic};
use crate::packet::{Delivery, Order, Source};
use crate::traffic::{Injectors, NEVER, Record, load_seed};

/// The longest window: that of a run whose last arrival is not known yet.
const LONGEST: u64 = 1 << 40;

/// The source of packets.
enum Supply {
    /// Classes of synthetic traffic.
    Synthetic(Vec<Class>),
    /// Classes whose packets have replies, or are limited in number.
    Requests(RequestSupply),
    /// Records by node and class.
    Recorded {
        /// By node, then class, in order of time, the next one last.
        queues: Vec<Vec<Record>>,
        /// The number of classes.
        classes: usize,
        /// Packets that have not arrived.
        left: usize,
    },
    /// Records that wait for others.
    Dependent(DependentSupply),
}

/// A class of synthetic traffic.
struct Class {
    load: Load,
    seed: u64,
    injectors: Injectors,
}

/// The traffic of a run.
pub(super) struct Generator {
    supply: Supply,
    pub(super) tallies: Vec<Tally>,
    /// Routers that gave a VC to packets that arrived in the window.
    pub(super) vc_grants: u64,
    /// The last cycle in which a packet arrived.
    pub(super) last_arrival: u64,
    /// All packets that have arrived, if they are counted after the run.
    log: Option<Vec<Delivery>>,
}

impl Generator {
    /// Traffic of the given nodes and classes; `is_complete` if the window starts in cycle 0 and
    /// ends with the last arrival, so that packets are counted after the run.
    pub(super) fn new(
        traffic: Traffic<'_>,
        (nodes, classes): (u32, usize),
        seed: u64,
        settings: &MeasurementPlan,
        is_complete: bool,
    ) -> Generator {
        let mut settings = *settings;
        if is_complete {
            settings.phases.measure = LONGEST;
        }
        let supply = match traffic {
            Traffic::Synthetic(loads) => {
                let class = |(index, load): (usize, &Load)| {
                    Class::new(load.clone(), nodes, load_seed(seed, index))
                };
                Supply::Synthetic(loads.iter().enumerate().map(class).collect())
            }
            Traffic::Requests(loads) => {
                Supply::Requests(RequestSupply::new(loads, nodes, seed, &settings))
            }
            Traffic::Recorded(trace) if trace.dependencies().is_some() => {
                let dependencies = trace.dependencies().expect("it has some");
                Supply::Dependent(DependentSupply::new(trace, dependencies, (nodes, classes)))
            }
            Traffic::Recorded(trace) => {
                let mut queues = vec![Vec::new(); nodes as usize * classes];
                for record in trace.records().iter().rev() {
                    let queue = record.source as usize * classes + record.class as usize;
                    queues[queue].push(*record);
                }
                Supply::Recorded { queues, classes, left: trace.records().len() }
            }
        };
        let tallies = vec![Tally::new(&settings, nodes); classes];
        let log = is_complete.then(Vec::new);
        Generator { supply, tallies, vc_grants: 0, last_arrival: 0, log }
    }

    /// Counts the packets of a run from cycle 0 in its window, whose length is known now.
    pub(super) fn count(&mut self, settings: &MeasurementPlan) {
        self.tallies.iter_mut().for_each(|tally| tally.restart(settings));
        if let Supply::Requests(supply) = &mut self.supply {
            supply.restart(settings);
        }
        for delivery in self.log.take().unwrap_or_default() {
            if self.tallies[usize::from(delivery.class)].arrive(&delivery) {
                self.vc_grants += u64::from(delivery.hops);
            }
            if let Supply::Requests(supply) = &mut self.supply {
                supply.count(&delivery);
            }
        }
    }

    /// The packets that have arrived, if they are counted after the run.
    #[cfg(test)]
    pub(super) fn logged(&self) -> &[Delivery] {
        self.log.as_deref().unwrap_or_default()
    }

    /// Whether packets of a trace or batch have not arrived.
    pub(super) fn has_packets(&self) -> bool {
        match &self.supply {
            Supply::Synthetic(_) => true,
            Supply::Requests(supply) => supply.is_behind(NEVER),
            Supply::Recorded { left, .. } => *left > 0,
            Supply::Dependent(supply) => supply.left() > 0,
        }
    }

    /// Visits class and flits of each packet created before `end` that its node has not started to
    /// inject.
    fn for_each_waiting(&self, end: u64, mut visit: impl FnMut(usize, u64)) {
        match &self.supply {
            Supply::Synthetic(classes) => {
                for (index, Class { load, seed, injectors }) in classes.iter().enumerate() {
                    injectors.for_each_before(end, |node, serial| {
                        visit(index, u64::from(load.size.draw(*seed, node, serial)));
                    });
                }
            }
            Supply::Requests(supply) => supply.for_each_waiting(end, visit),
            Supply::Recorded { queues, .. } => {
                for record in queues.iter().flatten().filter(|record| record.cycle < end) {
                    visit(record.class as usize, u64::from(record.flits));
                }
            }
            Supply::Dependent(supply) => {
                for record in supply.waiting(end) {
                    visit(record.class as usize, u64::from(record.flits));
                }
            }
        }
    }

    /// Packets and flits created before `end` that nodes have not started to inject.
    pub(super) fn waiting(&self, end: u64) -> (u64, u64) {
        let mut waiting = (0, 0);
        self.for_each_waiting(end, |_, flits| waiting = (waiting.0 + 1, waiting.1 + flits));
        waiting
    }

    /// Counts packets created from `start` to before `end` that were never taken, too.
    pub(super) fn count_untaken(&mut self, start: u64, end: u64) {
        let mut flits = vec![0; self.tallies.len()];
        self.for_each_waiting(end, |class, more| flits[class] += more);
        self.for_each_waiting(start, |class, less| flits[class] -= less);
        for (tally, flits) in self.tallies.iter_mut().zip(flits) {
            tally.window.created_parts += flits;
        }
    }

    /// Whether every packet created in the window has been taken and has arrived, and none from
    /// before its end is left.
    pub(super) fn has_all(&self, end: u64) -> bool {
        self.tallies.iter().all(|tally| tally.window.missing == 0) && !self.is_behind(end)
    }

    /// Requests with their replies.
    pub(super) fn round_trips(&self) -> Vec<RoundTrips> {
        match &self.supply {
            Supply::Requests(supply) => supply.round_trips(),
            Supply::Synthetic(_) | Supply::Recorded { .. } | Supply::Dependent(_) => Vec::new(),
        }
    }

    /// Whether some node still has a packet to send that was created before `end`.
    fn is_behind(&self, end: u64) -> bool {
        match &self.supply {
            Supply::Synthetic(classes) => {
                classes.iter().any(|class| class.injectors.earliest() < end)
            }
            Supply::Requests(supply) => supply.is_behind(end),
            Supply::Recorded { queues, .. } => {
                queues.iter().any(|queue| queue.last().is_some_and(|record| record.cycle < end))
            }
            Supply::Dependent(supply) => supply.waiting(end).next().is_some(),
        }
    }
}

impl Source for Generator {
    #[inline]
    fn next_at(&mut self, node: u32, class: u8) -> Option<u64> {
        match &mut self.supply {
            Supply::Synthetic(classes) => {
                let next = classes.get(usize::from(class))?.injectors.next_at(node);
                (next != NEVER).then_some(next)
            }
            Supply::Requests(supply) => supply.next_at(node, class),
            Supply::Dependent(supply) => supply.next_at(node, class),
            Supply::Recorded { queues, classes, .. } => {
                let queue = &queues[node as usize * *classes + usize::from(class)];
                queue.last().map(|record| record.cycle)
            }
        }
    }

    #[inline]
    fn take(&mut self, node: u32, queue: u8, now: u64) -> Order {
        // Only requests and replies share queues: otherwise each class has its own.
        let class = queue;
        let order = match &mut self.supply {
            Supply::Synthetic(classes) => classes[usize::from(class)].take(node, class),
            Supply::Requests(supply) => supply.take(node, queue, now),
            Supply::Dependent(supply) => supply.take(node, class),
            Supply::Recorded { queues, classes, .. } => {
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
        let tally = &mut self.tallies[usize::from(order.class)];
        tally.window.create(order.created, u64::from(order.flits));
        order
    }

    #[inline]
    fn delivered(&mut self, delivery: &Delivery) {
        self.last_arrival = self.last_arrival.max(delivery.arrived);
        if let Some(log) = &mut self.log {
            log.push(*delivery);
        } else if self.tallies[usize::from(delivery.class)].arrive(delivery) {
            self.vc_grants += u64::from(delivery.hops);
        }
        match &mut self.supply {
            Supply::Requests(supply) => supply.delivered(delivery),
            Supply::Dependent(supply) => supply.delivered(delivery),
            Supply::Recorded { left, .. } => *left -= 1,
            Supply::Synthetic(_) => {}
        }
    }

    fn refilled(&mut self, queues: &mut Vec<(u32, u8)>) {
        match &mut self.supply {
            Supply::Requests(supply) => supply.refilled(queues),
            Supply::Dependent(supply) => supply.refilled(queues),
            Supply::Synthetic(_) | Supply::Recorded { .. } => {}
        }
    }

    fn hastened(&mut self, queues: &mut Vec<(u32, u8)>) {
        match &mut self.supply {
            Supply::Requests(supply) => supply.hastened(queues),
            Supply::Dependent(supply) => supply.hastened(queues),
            Supply::Synthetic(_) | Supply::Recorded { .. } => {}
        }
    }
}

impl Class {
    fn new(load: Load, nodes: u32, seed: u64) -> Class {
        let senders: Vec<u32> = (0..nodes).filter(|&node| load.pattern.sends(node)).collect();
        let injectors = Injectors::new(load.process, &senders, seed);
        Class { load, seed, injectors }
    }

    #[inline]
    fn take(&mut self, node: u32, class: u8) -> Order {
        let created = self.injectors.take(node);
        let destination = self.load.pattern.destination(self.seed, node, created.serial);
        Order {
            created: created.cycle,
            destination: destination.unwrap_or(node),
            flits: self.load.size.draw(self.seed, node, created.serial),
            class,
            priority: self.load.priority,
            tag: 0,
        }
    }
}
