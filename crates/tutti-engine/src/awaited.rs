//! Whom a rank still waits for in its step, a bit for each: where messages come in order of time, one that is
//! awaited can be taken when it comes and leaves no letter.

use tutti_units::ids::RankId;

/// Bits of a word.
const WIDTH: usize = u64::BITS as usize;

/// The bits of one rank, and how many are set.
#[derive(Default)]
struct Sources {
    bits: Vec<u64>,
    missing: usize,
    /// Whether the rank waits by bits.
    waits: bool,
}

/// The senders awaited by each rank.
#[derive(Default)]
pub(super) struct Awaited {
    ranks: Vec<Sources>,
}

impl Awaited {
    /// A rank of so many begins to wait for one message from each of these; whether it is worth the bits, and
    /// nobody is among them twice.
    pub(super) fn begin(
        &mut self,
        rank: RankId,
        of: usize,
        sources: impl ExactSizeIterator<Item = RankId>,
    ) -> bool {
        // As much as a quarter of a letter each.
        if sources.len() < 2 || sources.len() * WIDTH / 2 < of {
            return false;
        }
        self.ranks.resize_with(of, Sources::default);
        let Sources { bits, missing, waits } = &mut self.ranks[rank.index()];
        bits.resize(of.div_ceil(WIDTH), 0);
        (*missing, *waits) = (sources.len(), true);
        for source in sources {
            let bit = 1 << (source.0 % u64::BITS);
            // Beyond the end are ranks that do not exist, for which one waits in vain.
            match bits.get_mut(source.index() / WIDTH) {
                Some(word) if *word & bit == 0 => *word |= bit,
                _ => *waits = false,
            }
        }
        if !*waits {
            bits.fill(0);
        }
        *waits
    }

    /// A message comes; whether it is awaited, and now not any more.
    #[inline]
    pub(super) fn take(&mut self, rank: RankId, source: RankId) -> bool {
        let awaited = self.holds(rank, source);
        if awaited {
            let sources = &mut self.ranks[rank.index()];
            sources.bits[source.index() / WIDTH] ^= 1 << (source.0 % u64::BITS);
            sources.missing -= 1;
        }
        awaited
    }

    /// Whether a message is awaited.
    #[inline]
    pub(super) fn holds(&self, rank: RankId, source: RankId) -> bool {
        let sources = self.ranks.get(rank.index()).filter(|sources| sources.waits);
        sources.is_some_and(|sources| {
            sources.bits[source.index() / WIDTH] & 1 << (source.0 % u64::BITS) > 0
        })
    }

    /// Whether a rank waits by bits, and how many are missing.
    #[inline]
    pub(super) fn missing(&self, rank: RankId) -> Option<usize> {
        let sources = self.ranks.get(rank.index())?;
        sources.waits.then_some(sources.missing)
    }

    /// A rank goes on.
    pub(super) fn end(&mut self, rank: RankId) {
        self.ranks[rank.index()].waits = false;
    }
}
