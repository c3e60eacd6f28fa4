//! Small sets of numbers, as bits.

/// A set of numbers below 64 W, where W is a power of two. Masked indices need no bounds check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bits<const W: usize>([u64; W]);

impl<const W: usize> Bits<W> {
    pub(super) const EMPTY: Bits<W> = Bits([0; W]);

    #[inline]
    pub(super) fn set(&mut self, number: usize) {
        self.0[number / 64 % W] |= 1 << (number % 64);
    }

    #[inline]
    pub(super) fn clear(&mut self, number: usize) {
        self.0[number / 64 % W] &= !(1 << (number % 64));
    }

    /// Sets or clears a number.
    #[inline]
    pub(super) fn put(&mut self, number: usize, set: bool) {
        let word = &mut self.0[number / 64 % W];
        *word = *word & !(1 << (number % 64)) | u64::from(set) << (number % 64);
    }

    #[inline]
    pub(super) fn any(&self) -> bool {
        self.0.iter().any(|&word| word != 0)
    }

    /// The lowest member.
    #[inline]
    pub(super) fn first(&self) -> Option<usize> {
        for (index, &word) in self.0.iter().enumerate() {
            if word != 0 {
                return Some(index * 64 + low(word));
            }
        }
        None
    }

    /// The member, if there is exactly one.
    #[inline]
    pub(super) fn only(&self) -> Option<usize> {
        let first = self.first()?;
        let word = self.0[first / 64 % W];
        let others = self.0[first / 64 + 1..].iter().any(|&word| word != 0);
        (word & (word - 1) == 0 && !others).then_some(first)
    }

    /// Removes the lowest member.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<usize> {
        let first = self.first()?;
        self.0[first / 64 % W] &= self.0[first / 64 % W] - 1;
        Some(first)
    }

    /// The lowest member at or above `start`, else the lowest: round-robin order from `start`, which
    /// may be one after the largest number.
    #[inline]
    pub(super) fn first_from(&self, start: usize) -> Option<usize> {
        let word = start / 64 % W;
        let above = self.0[word] >> (start % 64);
        if above != 0 {
            return Some(start + low(above));
        }
        for (index, &bits) in self.0.iter().enumerate().skip(word + 1) {
            if bits != 0 {
                return Some(index * 64 + low(bits));
            }
        }
        self.first()
    }

    /// Removes and returns the members from `start` on, `count` numbers wide, at most 64.
    #[inline]
    pub(super) fn take_window(&mut self, start: usize, count: usize) -> u64 {
        let (word, shift) = (start / 64 % W, start % 64);
        let mask = u64::MAX >> (64 - count);
        let mut window = self.0[word] >> shift & mask;
        self.0[word] &= !(mask << shift);
        if W > 1 && shift + count > 64 {
            window |= self.0[word + 1] << (64 - shift) & mask;
            self.0[word + 1] &= !(mask >> (64 - shift));
        }
        window
    }
}

/// The position of the lowest bit of a word that is not zero.
#[inline]
pub(super) fn low(word: u64) -> usize {
    word.trailing_zeros() as usize
}

/// The lowest bit at or above `start`, else the lowest, of a word that is not zero.
#[inline]
pub(super) fn low_from(word: u64, start: usize) -> usize {
    let above = word & (u64::MAX << start);
    low(if above == 0 { word } else { above })
}

/// A set of any size, for what is active in a cycle.
#[derive(Clone, Debug)]
pub(super) struct Members(Vec<u64>);

impl Members {
    pub(super) fn new(count: usize) -> Members {
        Members(vec![0; count.div_ceil(64)])
    }

    #[inline]
    pub(super) fn set(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    #[inline]
    pub(super) fn clear(&mut self, number: usize) {
        self.0[number / 64] &= !(1 << (number % 64));
    }

    /// Adds the members of a set for as many numbers.
    pub(super) fn extend(&mut self, others: &Members) {
        self.0.iter_mut().zip(&others.0).for_each(|(word, others)| *word |= others);
    }

    pub(super) fn empty(&mut self) {
        self.0.fill(0);
    }

    pub(super) fn any(&self) -> bool {
        self.0.iter().any(|&word| word != 0)
    }

    #[inline]
    pub(super) fn words(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(super) fn word(&self, index: usize) -> u64 {
        self.0[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_start_at_the_given_position() {
        let mut bits = Bits::<2>::EMPTY;
        for number in [3, 70, 100] {
            bits.set(number);
        }
        let from = |start| bits.first_from(start).unwrap();
        assert_eq!(
            [from(0), from(3), from(4), from(64), from(71), from(101)],
            [3, 3, 70, 70, 100, 3]
        );
        assert_eq!(Bits::<2>::EMPTY.first_from(5), None);
    }

    #[test]
    fn windows_reach_over_words() {
        let mut bits = Bits::<2>::EMPTY;
        for number in [61, 63, 64, 66, 67] {
            bits.set(number);
        }
        assert_eq!(bits.take_window(62, 5), 0b1_0110);
        assert_eq!((bits.pop(), bits.pop(), bits.pop()), (Some(61), Some(67), None));
    }

    #[test]
    fn a_turn_within_a_word() {
        assert_eq!([low_from(0b1010, 0), low_from(0b1010, 2), low_from(0b0010, 2)], [1, 3, 1]);
    }
}
