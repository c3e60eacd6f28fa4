//! Division by a fixed number as a multiplication.

/// A divisor of 32-bit numbers.
///
/// `magic` is 2^64 / divisor, rounded up. The upper half of its product with any 32-bit number is
/// the exact quotient (Lemire, Kaser and Kurz, "Faster remainder by direct computation", Softw.
/// Pract. Exper. 49 (2019), theorem 1). It overflows for a divisor of one, for which it is zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Divisor {
    value: u32,
    magic: u64,
}

impl Divisor {
    /// Returns a divisor for `value`, which must not be zero.
    pub(super) fn new(value: u32) -> Divisor {
        Divisor { value, magic: (u64::MAX / u64::from(value.max(1))).wrapping_add(1) }
    }

    #[inline]
    pub(super) fn value(self) -> u32 {
        self.value
    }

    /// Returns the quotient and the remainder of `number`.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the quotient is at most `number`")]
    pub(super) fn divide(self, number: u32) -> (u32, u32) {
        if self.magic == 0 {
            return (number, 0);
        }
        let quotient = ((u128::from(self.magic) * u128::from(number)) >> 64) as u32;
        (quotient, number - quotient * self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn divides_like_the_machine(number: u32, value in 1_u32..) {
            let expected = (number / value, number % value);
            proptest::prop_assert_eq!(Divisor::new(value).divide(number), expected);
        }
    }

    #[test]
    fn divides_exactly_at_the_edges() {
        for value in [1, 2, 3, 7, 1 << 20, u32::MAX - 1, u32::MAX] {
            for number in [0, 1, value - 1, value, u32::MAX - 1, u32::MAX] {
                let expected = (number / value, number % value);
                assert_eq!(Divisor::new(value).divide(number), expected);
            }
        }
    }
}
