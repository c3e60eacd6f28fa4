//! Counts of a message class, and means over batches.

use super::statistics::{Histogram, real};
use super::{Estimate, Measured, MeasurementSettings, half_width};
use crate::packet::Delivery;

/// What is counted of a message class.
#[derive(Clone)]
pub(super) struct Tally {
    nodes: u32,
    window: u64,
    batches: u64,
    pub(super) created_flits: u64,
    /// Flits by node.
    accepted: Vec<u64>,
    /// Flits by batch.
    accepted_batches: Vec<u64>,
    latency: Batches,
    network: Batches,
    hops: Batches,
    histogram: Histogram,
}

/// Sums and counts by batch.
#[derive(Clone)]
struct Batches(Vec<(u64, u64)>);

impl Tally {
    pub(super) fn new(settings: &MeasurementSettings, nodes: u32) -> Tally {
        let batches = Batches(vec![(0, 0); settings.batches as usize]);
        Tally {
            nodes,
            window: settings.phases.measure,
            batches: u64::from(settings.batches),
            created_flits: 0,
            accepted: vec![0; nodes as usize],
            accepted_batches: vec![0; settings.batches as usize],
            latency: batches.clone(),
            network: batches.clone(),
            hops: batches,
            histogram: Histogram::default(),
        }
    }

    /// The batch of a cycle counted from the start of the window.
    fn batch(&self, cycle: u64) -> usize {
        usize::try_from(cycle * self.batches / self.window).unwrap_or(usize::MAX)
    }

    /// A packet arrived in that cycle of the window.
    pub(super) fn accept(&mut self, delivery: &Delivery, cycle: u64) {
        let batch = self.batch(cycle);
        self.accepted[delivery.destination as usize] += u64::from(delivery.flits);
        self.accepted_batches[batch] += u64::from(delivery.flits);
    }

    /// A packet that was created in that cycle of the window arrived.
    pub(super) fn arrive(&mut self, delivery: &Delivery, cycle: u64) {
        let batch = self.batch(cycle);
        let latency = delivery.arrived - delivery.created;
        self.latency.add(batch, latency);
        self.network.add(batch, delivery.arrived - delivery.injected);
        self.hops.add(batch, u64::from(delivery.hops));
        self.histogram.add(latency);
    }

    pub(super) fn measured(&self) -> Measured {
        let node_cycles = real(u64::from(self.nodes) * self.window);
        let per_node = |flits: u64| real(flits) / real(self.window);
        let batch_cycles = node_cycles / real(self.batches);
        let rates: Vec<f64> =
            self.accepted_batches.iter().map(|&flits| real(flits) / batch_cycles).collect();
        let accepted: u64 = self.accepted.iter().sum();
        let fewest = self.accepted.iter().copied().min().unwrap_or(0);
        let most = self.accepted.iter().copied().max().unwrap_or(0);
        Measured {
            offered: real(self.created_flits) / node_cycles,
            accepted: Estimate {
                mean: real(accepted) / node_cycles,
                half_width: half_width(&rates),
            },
            accepted_extremes: (per_node(fewest), per_node(most)),
            latency: self.latency.estimate(),
            latency_extremes: self.histogram.extremes(),
            network_latency: self.network.estimate(),
            hops: self.hops.estimate(),
            packets: self.latency.0.iter().map(|batch| batch.1).sum(),
            quantiles: self.histogram.quantiles(),
        }
    }

    /// Both together.
    pub(super) fn with(mut self, other: &Tally) -> Tally {
        let add = |sums: &mut [u64], more: &[u64]| {
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        };
        self.created_flits += other.created_flits;
        add(&mut self.accepted, &other.accepted);
        add(&mut self.accepted_batches, &other.accepted_batches);
        self.latency.join(&other.latency);
        self.network.join(&other.network);
        self.hops.join(&other.hops);
        self.histogram.join(&other.histogram);
        self
    }

    /// Flits that arrived in the window.
    pub(super) fn accepted_flits(&self) -> u64 {
        self.accepted.iter().sum()
    }
}

impl Batches {
    fn add(&mut self, batch: usize, value: u64) {
        self.0[batch].0 += value;
        self.0[batch].1 += 1;
    }

    fn join(&mut self, other: &Batches) {
        for (batch, more) in self.0.iter_mut().zip(&other.0) {
            *batch = (batch.0 + more.0, batch.1 + more.1);
        }
    }

    /// The mean of all, and its interval by the batches' means.
    fn estimate(&self) -> Estimate {
        let all = self.0.iter().fold((0, 0), |all, batch| (all.0 + batch.0, all.1 + batch.1));
        let filled = self.0.iter().filter(|batch| batch.1 > 0);
        let means: Vec<f64> = filled.map(|batch| real(batch.0) / real(batch.1)).collect();
        Estimate { mean: real(all.0) / real(all.1), half_width: half_width(&means) }
    }
}
