//! A barrier's tokens: the contributing ranks, as exact sets.
//!
//! Contributions may be included twice, and sums of weights cannot distinguish two from one and
//! none; no fingerprint smaller than the set can. The sets of 4,096 ranks' tokens take 512 bytes
//! each.

use super::fast::{Algebra, COMPUTED, contribution};
use super::{Reproducibility, VerifyError};
use crate::collective::Contribution;
use tutti_units::ids::RankId;

/// The maximum memory for sets, in words of 8 bytes: 1 GiB.
const MAX_WORDS: usize = 1 << 27;

pub(super) struct Tokens {
    ranks: u32,
    chunks: u32,
    /// Words per set.
    words: usize,
    sets: Vec<u64>,
}

impl Tokens {
    pub(super) fn new(ranks: u32, chunks: u32) -> Tokens {
        Tokens { ranks, chunks, words: ranks.div_ceil(64) as usize, sets: Vec::new() }
    }

    fn has(&self, id: u32, origin: u32) -> bool {
        if id < COMPUTED {
            return contribution(id, self.chunks).origin.0 == origin;
        }
        let start = (id - COMPUTED) as usize * self.words;
        self.sets[start + (origin / 64) as usize] >> (origin % 64) & 1 == 1
    }
}

impl Algebra for Tokens {
    fn fold(&mut self, ids: &[u32]) -> Result<u32, VerifyError> {
        let start = self.sets.len();
        if start + self.words > MAX_WORDS {
            let what = format!("the tokens of {} ranks, in words of 64", self.ranks);
            return Err(VerifyError::TooLarge { what, most: MAX_WORDS as u64 });
        }
        self.sets.resize(start + self.words, 0);
        for &id in ids {
            if id < COMPUTED {
                let origin = contribution(id, self.chunks).origin.0;
                self.sets[start + (origin / 64) as usize] |= 1 << (origin % 64);
                continue;
            }
            let (old, new) = self.sets.split_at_mut(start);
            let from = (id - COMPUTED) as usize * self.words;
            for (into, word) in new.iter_mut().zip(&old[from..from + self.words]) {
                *into |= word;
            }
        }
        Ok(COMPUTED + u32::try_from(start / self.words).unwrap_or(u32::MAX - COMPUTED))
    }

    fn is_old(&self, _id: u32) -> bool {
        false
    }

    fn recall(&mut self, _ids: impl Iterator<Item = u32>) {}

    fn expect(&mut self, _chunks: std::ops::Range<u32>) {}

    fn judge(&mut self, rank: RankId, chunk: u32, id: u32) -> Result<(), VerifyError> {
        let mut missing = (0..self.ranks).filter(|&origin| !self.has(id, origin));
        let Some(origin) = missing.next().map(RankId) else { return Ok(()) };
        let contribution = Contribution { origin, chunk };
        Err(VerifyError::Missing { rank, chunk, contribution, count: missing.count() + 1 })
    }

    fn count(&self, id: u32) -> u32 {
        (0..self.ranks).map(|origin| u32::from(self.has(id, origin))).sum()
    }

    fn class(&self) -> Reproducibility {
        Reproducibility::ALL
    }
}
