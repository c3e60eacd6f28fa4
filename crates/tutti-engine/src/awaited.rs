//! The senders that a rank waits for in its step, as a bit mask: if messages arrive in order of
//! time, an awaited message is received on arrival and needs no letter.

use tutti_units::ids::RankId;

/// Bits of a word.
const WIDTH: usize = u64::BITS as usize;

/// The bits of one rank, and how many are set.
#[derive(Default)]
struct Sources {
    bits: Vec<u64>,
    missing: usize,
    /// Whether the rank waits by bit mask.
    waits: bool,
}

/// The senders awaited by each rank.
#[derive(Default)]
pub(super) struct Awaited {
    ranks: Vec<Sources>,
}

impl Awaited {
    /// Makes a rank wait for one message from each source; returns false if a mask is not
    /// worthwhile or a source occurs twice.
    pub(super) fn wait_for(
        &mut self,
        rank: RankId,
        of: usize,
        sources: impl ExactSizeIterator<Item = RankId>,
    ) -> bool {
        // At most a quarter of a letter per source.
        if sources.len() < 2 || sources.len() * WIDTH / 2 < of {
            return false;
        }
        self.ranks.resize_with(of, Sources::default);
        let Sources { bits, missing, waits } = &mut self.ranks[rank.index()];
        bits.resize(of.div_ceil(WIDTH), 0);
        (*missing, *waits) = (sources.len(), true);
        for source in sources {
            let bit = 1 << (source.0 % u64::BITS);
            // Ranks beyond the end do not exist, so their messages never arrive.
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

    /// Notes the arrival of a message; returns whether it was awaited.
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

    /// The number of missing messages, if a rank waits by bit mask.
    #[inline]
    pub(super) fn missing(&self, rank: RankId) -> Option<usize> {
        let sources = self.ranks.get(rank.index())?;
        sources.waits.then_some(sources.missing)
    }

    /// Ends the wait of a rank.
    pub(super) fn end(&mut self, rank: RankId) {
        self.ranks[rank.index()].waits = false;
    }
}
