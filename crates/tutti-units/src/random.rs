//! Random numbers with the same bits on every platform and for any number of threads: counter-based,
//! and the sequence of NumPy's default generator.

/// Returns 64 random bits for a counter.
#[inline]
#[must_use]
pub fn random_bits(seed: u64, counter: [u32; 4]) -> u64 {
    let [a, b, ..] = philox_4x32_10(counter, split_words(seed));
    u64::from(a) | u64::from(b) << 32
}

/// Philox 4x32 with ten rounds.
#[inline]
fn philox_4x32_10(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let [low_0, high_0] = split_words(u64::from(counter[0]) * 0xD251_1F53);
        let [low_1, high_1] = split_words(u64::from(counter[2]) * 0xCD9E_8D57);
        counter = [high_1 ^ counter[1] ^ key[0], low_1, high_0 ^ counter[3] ^ key[1], low_0];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

/// Returns the low and the high half.
#[expect(clippy::cast_possible_truncation, reason = "the halves of 64 bits")]
#[must_use]
pub const fn split_words(bits: u64) -> [u32; 2] {
    [bits as u32, (bits >> 32) as u32]
}

/// Returns `bits` / 2^64 of `range`, rounded down; `range` is at most 2^64.
#[must_use]
pub fn scale(bits: u64, range: u128) -> u64 {
    // bits < 2^64 and range <= 2^64, so the product is below 2^128.
    ((u128::from(bits) * range) >> 64) as u64
}

/// Returns a real in (0, 1], in steps of 2^-53: all bits set is 1.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact in f64")]
#[must_use]
pub fn unit(bits: u64) -> f64 {
    ((bits >> 11) + 1) as f64 * 2.0_f64.powi(-53)
}

/// PCG64 XSL-RR (O'Neill 2014), as in `numpy.random.PCG64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pcg64 {
    state: u128,
    increment: u128,
}

impl Pcg64 {
    const MULTIPLIER: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;

    /// A generator with the state and the increment of NumPy's.
    #[must_use]
    pub const fn new(state: u128, increment: u128) -> Pcg64 {
        Pcg64 { state, increment }
    }

    /// Returns the next 64 random bits.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the halves and the top bits of the state")]
    pub fn next_bits(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(Self::MULTIPLIER).wrapping_add(self.increment);
        ((self.state >> 64) as u64 ^ self.state as u64).rotate_right((self.state >> 122) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::{Pcg64, philox_4x32_10};

    #[test]
    fn the_sequence_is_that_of_numpy() {
        // numpy.random.PCG64([7, 3]).state, and its random_raw(4).
        let mut random = Pcg64::new(
            32_432_357_684_061_543_701_087_222_144_349_624_191,
            150_795_630_292_607_300_648_757_720_611_875_732_857,
        );
        let expected = [
            0xf99b_cc89_ba58_d5c6,
            0xe272_ff9a_89c7_6221,
            0x3b62_6a10_58dc_f29e,
            0xbb34_03ae_1b91_2b61,
        ];
        assert_eq!([(); 4].map(|()| random.next_bits()), expected);
    }

    #[test]
    fn the_generator_is_philox_4x32_10() {
        // Known-answer tests of Random123 (kat_vectors).
        let ones = u32::MAX;
        for (counter, key, expected) in [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([ones; 4], [ones; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ] {
            assert_eq!(philox_4x32_10(counter, key), expected);
        }
    }
}
