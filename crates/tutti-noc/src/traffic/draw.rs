//! Random bits for traffic, and choices by weight.

use tutti_units::random::{random_bits, scale, split_words, unit};

/// The purpose of a draw; the numbers are part of the meaning of a seed and never change. They
/// differ from the numbers of the disturbances of a run with the same seed.
#[derive(Clone, Copy)]
pub(crate) enum Stream {
    Destination = 0x7000_0000,
    /// Whether a destination is near; which one then, is drawn apart from it.
    Near = 0x7000_0001,
    Size = 0x7000_0002,
    Arrival = 0x7000_0003,
    Phase = 0x7000_0004,
    Permutation = 0x7000_0005,
    /// To whom a multicast goes.
    Members = 0x7000_0006,
    /// The destination of a reduction.
    Root = 0x7000_0007,
}

/// 64 random bits for the draw of that number at that node.
#[inline]
pub(crate) fn bits(seed: u64, stream: Stream, node: u32, number: u64) -> u64 {
    let [low, high] = split_words(number);
    random_bits(seed, [node, low, high, stream as u32])
}

/// In (0, 1].
#[inline]
pub(super) fn share(seed: u64, stream: Stream, node: u32, number: u64) -> f64 {
    unit(bits(seed, stream, node, number))
}

/// Any of 0 to `range` - 1, each as likely.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "below the range")]
pub(crate) fn below(bits: u64, range: u32) -> u32 {
    scale(bits, u128::from(range)) as u32
}

/// Values, each with the chance of its weight among all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Weighted {
    values: Vec<u32>,
    /// The sum of the weights up to and with each value; the last is not zero.
    ends: Vec<u64>,
}

impl Weighted {
    /// `None` when there are not as many weights as values, or all weights are zero.
    pub(super) fn new(values: Vec<u32>, weights: &[u32]) -> Option<Weighted> {
        let mut sum = 0;
        let end = |&weight: &u32| {
            sum += u64::from(weight);
            sum
        };
        let ends: Vec<u64> = weights.iter().map(end).collect();
        let fits = values.len() == ends.len() && ends.last().is_some_and(|&total| total > 0);
        fits.then_some(Weighted { values, ends })
    }

    /// All values as likely.
    pub(super) fn equal(values: Vec<u32>) -> Option<Weighted> {
        let weights = vec![1; values.len()];
        Weighted::new(values, &weights)
    }

    #[inline]
    pub(super) fn draw(&self, bits: u64) -> u32 {
        let total = self.ends[self.ends.len() - 1];
        let place = scale(bits, u128::from(total));
        self.values[self.ends.partition_point(|&end| end <= place)]
    }

    /// The largest value that can be drawn.
    pub(super) fn largest(&self) -> u32 {
        let mut before = 0;
        let drawn = |(&value, &end): (&u32, &u64)| {
            let ever = end > before;
            before = end;
            ever.then_some(value)
        };
        self.values.iter().zip(&self.ends).filter_map(drawn).max().unwrap_or_default()
    }

    /// The probability of a value; values ascend.
    pub(super) fn share(&self, value: u32) -> f64 {
        self.values.binary_search(&value).map_or(0.0, |place| self.part(place))
    }

    /// The probability of each value below `bound`.
    pub(super) fn shares(&self, bound: u32) -> Vec<f64> {
        let mut shares = vec![0.0; bound as usize];
        for (place, &value) in self.values.iter().enumerate() {
            shares[value as usize] += self.part(place);
        }
        shares
    }

    #[expect(clippy::cast_precision_loss, reason = "a probability")]
    fn part(&self, place: usize) -> f64 {
        let before = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        (self.ends[place] - before) as f64 / self.ends[self.ends.len() - 1] as f64
    }

    /// The mean of the values.
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    pub(super) fn mean(&self) -> f64 {
        let mut before = 0;
        let mut sum = 0.0;
        for (&value, &end) in self.values.iter().zip(&self.ends) {
            sum += f64::from(value) * (end - before) as f64;
            before = end;
        }
        sum / before as f64
    }
}
