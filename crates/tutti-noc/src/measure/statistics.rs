//! Latency histograms and confidence intervals.

/// A mean with the half-width of its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The half-width; not a number with fewer than two batches that hold anything.
    pub half_width: f64,
}

/// Sums and counts of a quantity, by batch of the measurement window.
#[derive(Clone, Debug, Default)]
pub(crate) struct BatchSums(Vec<(u64, u64)>);

impl BatchSums {
    pub(crate) fn new(batches: u32) -> BatchSums {
        BatchSums(vec![(0, 0); batches as usize])
    }

    pub(crate) fn add(&mut self, batch: usize, value: u64) {
        self.0[batch].0 += value;
        self.0[batch].1 += 1;
    }

    /// Adds all values of another one.
    pub(crate) fn join(&mut self, other: &BatchSums) {
        for (batch, more) in self.0.iter_mut().zip(&other.0) {
            *batch = (batch.0 + more.0, batch.1 + more.1);
        }
    }

    /// The sum and the number of all values.
    pub(crate) fn total(&self) -> (u64, u64) {
        self.0.iter().fold((0, 0), |all, batch| (all.0 + batch.0, all.1 + batch.1))
    }

    /// The mean of all values, with the confidence interval of the batch means.
    pub(crate) fn estimate(&self) -> Estimate {
        let (sum, count) = self.total();
        let filled = self.0.iter().filter(|batch| batch.1 > 0);
        let means: Vec<f64> = filled.map(|batch| real(batch.0) / real(batch.1)).collect();
        Estimate { mean: real(sum) / real(count), half_width: half_width(&means) }
    }
}

/// The number of packets or messages by latency, in cycles.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    /// By latency; the last entry counts all from [`LONGEST`] on.
    counts: Vec<u64>,
    extremes: (u64, u64),
}

/// The last bin of the histogram; it counts longer latencies too.
const LONGEST: usize = 1 << 16;

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: Vec::new(), extremes: (u64::MAX, 0) }
    }
}

impl Histogram {
    pub(crate) fn add(&mut self, latency: u64) {
        self.extremes = (self.extremes.0.min(latency), self.extremes.1.max(latency));
        let place = usize::try_from(latency).unwrap_or(LONGEST).min(LONGEST);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
    }

    /// Adds all latencies of another one.
    pub(crate) fn join(&mut self, other: &Histogram) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        let (least, most) = self.extremes;
        self.extremes = (least.min(other.extremes.0), most.max(other.extremes.1));
    }

    /// The minimum and maximum; 0 without values.
    pub(crate) fn extremes(&self) -> (u64, u64) {
        (self.extremes.0.min(self.extremes.1), self.extremes.1)
    }

    /// The latencies that 50, 90, 99 and 99.9 % do not exceed; 0 without values.
    pub(crate) fn quantiles(&self) -> [u64; 4] {
        let count: u64 = self.counts.iter().sum();
        [500, 900, 990, 999].map(|thousandths| {
            let rank = (count * thousandths).div_ceil(1000).max(1);
            let mut seen = 0;
            let reaches = |&(_, &packets): &(u64, &u64)| {
                seen += packets;
                seen >= rank
            };
            (0..).zip(&self.counts).find(reaches).map_or(0, |(latency, _)| latency)
        })
    }
}

/// The half-width of the 95 % confidence interval of the mean of independent values; not a number
/// if there are fewer than two.
#[must_use]
pub fn half_width(values: &[f64]) -> f64 {
    let count = real(values.len() as u64);
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let freedom = count - 1.0;
    student(freedom) * libm::sqrt(squares / freedom / count)
}

/// The 97.5 % quantile of Student's t with so many degrees of freedom: exact for one and two, else
/// by the expansion in inverse degrees of freedom (Abramowitz and Stegun 26.7.5), to 1 % from three
/// on.
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
pub(crate) fn real(count: u64) -> f64 {
    count as f64
}

/// A float of at least 0, rounded up to a count.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "callers have counts far below 2^53"
)]
pub(crate) fn rounded_up(count: f64) -> u64 {
    libm::ceil(count) as u64
}

#[cfg(test)]
mod tests {
    use super::student;

    /// From tables of the distribution.
    #[test]
    fn students_t_matches_published_tables() {
        for (freedom, tabled) in
            [(1.0, 12.706), (2.0, 4.303), (3.0, 3.182), (5.0, 2.571), (19.0, 2.093)]
        {
            let computed = student(freedom);
            assert!((computed / tabled - 1.0).abs() < 0.01, "{freedom}: {computed}");
        }
    }
}
