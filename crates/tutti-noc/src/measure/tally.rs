//! What is counted, and the means of it.

use super::{Estimate, Measured, MeasurementPlan};
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
    /// How many packets had each latency; those beyond are in the last place.
    histogram: Vec<u64>,
    extremes: (u64, u64),
}

/// Sums and counts by batch.
#[derive(Clone)]
struct Batches(Vec<(u64, u64)>);

/// Latencies that are told apart; longer ones are read as this.
const LONGEST: usize = 1 << 16;

impl Tally {
    pub(super) fn new(plan: &MeasurementPlan, nodes: u32) -> Tally {
        let batches = Batches(vec![(0, 0); plan.batches as usize]);
        Tally {
            nodes,
            window: plan.measure,
            batches: u64::from(plan.batches),
            created_flits: 0,
            accepted: vec![0; nodes as usize],
            accepted_batches: vec![0; plan.batches as usize],
            latency: batches.clone(),
            network: batches.clone(),
            hops: batches,
            histogram: Vec::new(),
            extremes: (u64::MAX, 0),
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
        self.extremes = (self.extremes.0.min(latency), self.extremes.1.max(latency));
        let place = usize::try_from(latency).unwrap_or(LONGEST).min(LONGEST);
        if self.histogram.len() <= place {
            self.histogram.resize(place + 1, 0);
        }
        self.histogram[place] += 1;
    }

    /// The latency that so many of a thousand packets do not exceed.
    fn quantile(&self, thousandths: u64) -> u64 {
        let count: u64 = self.histogram.iter().sum();
        let rank = (count * thousandths).div_ceil(1000).max(1);
        let mut seen = 0;
        for (latency, &packets) in (0..).zip(&self.histogram) {
            seen += packets;
            if seen >= rank {
                return latency;
            }
        }
        0
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
            latency_extremes: (self.extremes.0.min(self.extremes.1), self.extremes.1),
            network_latency: self.network.estimate(),
            hops: self.hops.estimate(),
            packets: self.latency.0.iter().map(|batch| batch.1).sum(),
            quantiles: [500, 900, 990, 999].map(|thousandths| self.quantile(thousandths)),
        }
    }

    /// Both together.
    pub(super) fn with(mut self, other: &Tally) -> Tally {
        let add = |sums: &mut Vec<u64>, more: &[u64]| {
            sums.resize(sums.len().max(more.len()), 0);
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        };
        self.created_flits += other.created_flits;
        add(&mut self.accepted, &other.accepted);
        add(&mut self.accepted_batches, &other.accepted_batches);
        add(&mut self.histogram, &other.histogram);
        self.latency.join(&other.latency);
        self.network.join(&other.network);
        self.hops.join(&other.hops);
        let (least, most) = self.extremes;
        self.extremes = (least.min(other.extremes.0), most.max(other.extremes.1));
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

/// The half width of the 95 % confidence interval of the mean of independent values; not a number if there
/// are fewer than two.
#[must_use]
pub fn half_width(values: &[f64]) -> f64 {
    let count = real(values.len() as u64);
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let freedom = count - 1.0;
    student(freedom) * libm::sqrt(squares / freedom / count)
}

/// What 97.5 % of Student's t with so many degrees of freedom lies below: exact for one and two, else by
/// the expansion in inverse degrees of freedom (Abramowitz and Stegun 26.7.5), to 1 % from three on.
fn student(freedom: f64) -> f64 {
    if freedom < 1.5 {
        return 12.706;
    }
    if freedom < 2.5 {
        return 4.303;
    }
    let z: f64 = 1.959_963_985;
    let terms = [
        z,
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
    ];
    terms.iter().rev().fold(0.0, |sum, term| sum / freedom + term)
}

/// A count as a float.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn real(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::student;

    /// From tables of the distribution.
    #[test]
    fn students_t_is_as_tabled() {
        for (freedom, tabled) in
            [(1.0, 12.706), (2.0, 4.303), (3.0, 3.182), (5.0, 2.571), (19.0, 2.093)]
        {
            assert!(
                (student(freedom) / tabled - 1.0).abs() < 0.01,
                "{freedom}: {}",
                student(freedom)
            );
        }
    }
}
