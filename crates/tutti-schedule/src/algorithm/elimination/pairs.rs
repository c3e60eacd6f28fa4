//! The formation of 2^(f-1) pairs of survivors from two, three or four ranks each.

/// The ranks that form a pair of survivors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::algorithm) enum Origin {
    Two,
    Three,
    Four,
}

impl Origin {
    /// Returns log2 of the number of ranks, except for triples.
    fn log(self) -> u32 {
        if self == Origin::Four { 2 } else { 1 }
    }

    pub(in crate::algorithm) fn ranks(self) -> u32 {
        match self {
            Origin::Two => 2,
            Origin::Three => 3,
            Origin::Four => 4,
        }
    }
}

/// The position of a rank: its pair, and its index among the pair's ranks.
#[derive(Clone, Copy)]
pub(in crate::algorithm) struct PairPosition {
    pub(in crate::algorithm) pair: u32,
    pub(in crate::algorithm) origin: Origin,
    /// The lowest rank of the pair's origin.
    pub(in crate::algorithm) first: u32,
    pub(in crate::algorithm) member: u32,
}

/// The division of N ranks into 2^(f-1) pairs: triples hold the lowest ranks.
#[derive(Clone, Copy)]
pub(in crate::algorithm) struct Pairs {
    /// Pairs formed from three ranks.
    triples: u32,
    /// The origin of the other pairs.
    others: Origin,
}

impl Pairs {
    pub(in crate::algorithm) fn new(ranks: u32) -> Pairs {
        let log = ranks.ilog2();
        let surplus = ranks - (1 << log);
        let pairs = 1 << (log - 1);
        if surplus <= pairs {
            Pairs { triples: surplus, others: Origin::Two }
        } else {
            Pairs { triples: (1 << log) - surplus, others: Origin::Four }
        }
    }

    #[inline]
    pub(in crate::algorithm) fn place(self, rank: u32) -> PairPosition {
        let behind = 3 * self.triples;
        if rank < behind {
            let pair = rank / 3;
            let first = pair * 3;
            return PairPosition { pair, origin: Origin::Three, first, member: rank - first };
        }
        let log = self.others.log();
        let (pair, member) = ((rank - behind) >> log, (rank - behind) & ((1 << log) - 1));
        PairPosition {
            pair: pair + self.triples,
            origin: self.others,
            first: rank - member,
            member,
        }
    }

    /// Returns the origin of a pair, and its lowest rank.
    #[inline]
    pub(in crate::algorithm) fn origin(self, pair: u32) -> (Origin, u32) {
        if pair < self.triples {
            (Origin::Three, 3 * pair)
        } else {
            let first = 3 * self.triples + ((pair - self.triples) << self.others.log());
            (self.others, first)
        }
    }
}
