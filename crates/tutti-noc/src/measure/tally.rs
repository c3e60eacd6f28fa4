//! Counts of a message class, and means over batches.

use super::statistics::{BatchSums, real};
use super::window::WindowTally;
use super::{Estimate, Measured, MeasurementPlan, half_width};
use crate::packet::Delivery;

/// The counts of a message class.
#[derive(Clone)]
pub(super) struct Tally {
    /// Packets and their flits.
    pub(super) window: WindowTally,
    cycles: u64,
    /// Flits by node.
    accepted: Vec<u64>,
    network: BatchSums,
    hops: BatchSums,
}

impl Tally {
    pub(super) fn new(settings: &MeasurementPlan, nodes: u32) -> Tally {
        Tally {
            window: WindowTally::new(settings.phases, settings.batches),
            cycles: settings.phases.measure,
            accepted: vec![0; nodes as usize],
            network: BatchSums::new(settings.batches),
            hops: BatchSums::new(settings.batches),
        }
    }

    /// Counts arrivals in another window, which contains all packets created so far.
    pub(super) fn restart(&mut self, settings: &MeasurementPlan) {
        let nodes = u32::try_from(self.accepted.len()).unwrap_or(u32::MAX);
        let window = self.window.restarted(settings.phases, settings.batches);
        *self = Tally { window, ..Tally::new(settings, nodes) };
    }

    /// A packet arrived; returns whether in the window.
    pub(super) fn arrive(&mut self, delivery: &Delivery) -> bool {
        let flits = u64::from(delivery.flits);
        let accepted = self.window.accept(delivery.arrived, flits);
        if accepted {
            self.accepted[delivery.destination as usize] += flits;
        }
        if let Some(batch) = self.window.end(delivery.created, delivery.arrived) {
            self.network.add(batch, delivery.arrived - delivery.injected);
            self.hops.add(batch, u64::from(delivery.hops));
        }
        accepted
    }

    pub(super) fn measured(&self) -> Measured {
        let WindowTally { created_parts, accepted, latency, histogram, .. } = &self.window;
        let node_cycles = real(self.accepted.len() as u64 * self.cycles);
        let per_node = |flits: u64| real(flits) / real(self.cycles);
        let batch_cycles = node_cycles / real(accepted.len() as u64);
        let rates: Vec<f64> = accepted.iter().map(|&flits| real(flits) / batch_cycles).collect();
        let fewest = self.accepted.iter().copied().min().unwrap_or(0);
        let most = self.accepted.iter().copied().max().unwrap_or(0);
        Measured {
            offered: real(*created_parts) / node_cycles,
            accepted: Estimate {
                mean: real(self.window.accepted_parts()) / node_cycles,
                half_width: half_width(&rates),
            },
            accepted_extremes: (per_node(fewest), per_node(most)),
            latency: latency.estimate(),
            latency_extremes: histogram.extremes(),
            network_latency: self.network.estimate(),
            hops: self.hops.estimate(),
            packets: latency.total().1,
            quantiles: histogram.quantiles(),
        }
    }

    /// Both together.
    pub(super) fn with(mut self, other: &Tally) -> Tally {
        self.window.join(&other.window);
        self.accepted.iter_mut().zip(&other.accepted).for_each(|(sum, more)| *sum += more);
        self.network.join(&other.network);
        self.hops.join(&other.hops);
        self
    }
}
