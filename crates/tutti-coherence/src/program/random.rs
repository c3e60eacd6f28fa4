//! Random numbers of kernels.

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014); its state is one word, which a thread can hold
/// in a register.
#[derive(Clone, Debug)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    /// Instructions per number: an addition, three shifts, three exclusive ors, two
    /// multiplications.
    pub(super) const INSTRUCTIONS: u64 = 9;

    /// Returns stream `stream` of a seed.
    pub(super) fn new(seed: u64, stream: u64) -> Random {
        let mut random = Random { state: seed };
        random.state = random.bits() ^ stream.wrapping_mul(0xD1B5_4A32_D192_ED03);
        random
    }

    /// Returns 64 random bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// Returns a number in [0, 1), a multiple of 2^-53.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact in f64")]
    pub(super) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * 2.0_f64.powi(-53)
    }

    /// Returns a number in [`low`, `high`).
    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Returns an integer from 0 to `range` - 1.
    #[expect(clippy::cast_possible_truncation, reason = "below the range")]
    pub(super) fn below(&mut self, range: usize) -> usize {
        ((u128::from(self.bits()) * range as u128) >> 64) as usize
    }
}
