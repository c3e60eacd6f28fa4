//! Blocks: the relative sizes of an all_to_all_v, from each rank to each rank.

use std::sync::Arc;

use tutti_units::ids::RankId;

/// The maximum number of ranks: 128 MiB of sizes.
const MAX_RANKS: u32 = 1 << 12;

/// Invalid sizes of blocks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "LayoutError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum BlocksError {
    /// A number of sizes that is not that of a square matrix of the ranks.
    #[error(
        "{found} sizes of blocks for {ranks} ranks: expected {ranks} x {ranks}, a row per source"
    )]
    NotSquare { found: u64, ranks: u32 },
    /// Too many ranks.
    #[error("an all_to_all_v on {ranks} ranks: expected 1 to {MAX_RANKS}")]
    TooManyRanks { ranks: u32 },
    /// A sum of sizes above 64 bits.
    #[error("the sizes of the blocks sum to more than 2^64 - 1")]
    TooLarge,
    /// No block with any bytes.
    #[error("all blocks are empty: expected a positive size")]
    AllEmpty,
}

/// The relative sizes of the blocks of an all_to_all_v. The block from rank s to rank d is chunk
/// `s x ranks + d` of the payload. A size of zero is a block that is not sent.
///
/// The payload of a size S gives the rank with the largest sum of blocks, including that for
/// itself, S bytes to send. The other blocks are in proportion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    ranks: u32,
    /// The sum of the sizes before each chunk, and of all.
    before: Arc<[u64]>,
    /// The largest sum of the blocks of a source.
    largest: u64,
}

impl Blocks {
    /// Returns the blocks of these sizes, a row per source.
    ///
    /// # Errors
    /// If the sizes are not ranks x ranks, all are zero, or their sum exceeds 64 bits.
    pub fn new(ranks: u32, sizes: &[u64]) -> Result<Blocks, BlocksError> {
        if !(1..=MAX_RANKS).contains(&ranks) {
            return Err(BlocksError::TooManyRanks { ranks });
        }
        if sizes.len() as u64 != u64::from(ranks) * u64::from(ranks) {
            return Err(BlocksError::NotSquare { found: sizes.len() as u64, ranks });
        }
        let mut before = Vec::with_capacity(sizes.len() + 1);
        let mut sum = 0_u64;
        before.push(0);
        for &size in sizes {
            sum = sum.checked_add(size).ok_or(BlocksError::TooLarge)?;
            before.push(sum);
        }
        let rows = before.iter().step_by(ranks as usize);
        let largest = rows.clone().zip(rows.skip(1)).map(|(start, end)| end - start).max();
        let largest = largest.filter(|&largest| largest > 0).ok_or(BlocksError::AllEmpty)?;
        Ok(Blocks { ranks, before: before.into(), largest })
    }

    /// Returns equal blocks.
    ///
    /// # Errors
    /// If there are too many ranks.
    pub fn equal(ranks: u32) -> Result<Blocks, BlocksError> {
        if ranks > MAX_RANKS {
            return Err(BlocksError::TooManyRanks { ranks });
        }
        Blocks::new(ranks, &vec![1; ranks as usize * ranks as usize])
    }

    /// Returns the number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Returns the number of chunks of the payload, one per block.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        self.ranks * self.ranks
    }

    /// Returns the chunk of the block from one rank to another.
    #[inline]
    #[must_use]
    pub fn chunk(&self, source: RankId, destination: RankId) -> u32 {
        source.0 * self.ranks + destination.0
    }

    /// Returns whether the block has no bytes.
    #[inline]
    #[must_use]
    pub fn is_empty(&self, chunk: u32) -> bool {
        self.before(chunk) == self.before(chunk + 1)
    }

    /// Returns the relative sizes, a row per source.
    pub fn sizes(&self) -> impl Iterator<Item = u64> {
        self.before.iter().zip(&self.before[1..]).map(|(start, end)| end - start)
    }

    /// Returns the largest sum of the sizes of a source: the size of the payload in these units.
    #[inline]
    #[must_use]
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// Returns the sum of the sizes before a chunk; of all for chunks beyond the payload.
    #[inline]
    pub(crate) fn before(&self, chunk: u32) -> u64 {
        self.before[(chunk as usize).min(self.before.len() - 1)]
    }
}

/// Writes rows, separated by semicolons.
impl std::fmt::Display for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, size) in (0..).zip(self.sizes()) {
            let separator = if index == 0 {
                ""
            } else if index % self.ranks == 0 {
                "; "
            } else {
                " "
            };
            write!(f, "{separator}{size}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_a_square_matrix_with_a_positive_sum_in_64_bits() {
        let error = |ranks, sizes: &[u64]| Blocks::new(ranks, sizes).unwrap_err();
        assert_eq!(error(2, &[1, 2, 3]), BlocksError::NotSquare { found: 3, ranks: 2 });
        assert_eq!(error(2, &[0; 4]), BlocksError::AllEmpty);
        assert_eq!(error(2, &[u64::MAX, 0, 1, 0]), BlocksError::TooLarge);
        assert_eq!(error(0, &[]), BlocksError::TooManyRanks { ranks: 0 });
        assert!(Blocks::equal(u32::MAX).is_err());
        let blocks = Blocks::new(2, &[1, 0, u64::MAX - 2, 1]).unwrap();
        assert_eq!(
            (blocks.largest(), blocks.is_empty(1), blocks.chunks()),
            (u64::MAX - 1, true, 4)
        );
        assert_eq!(blocks.to_string(), "1 0; 18446744073709551613 1");
    }
}
