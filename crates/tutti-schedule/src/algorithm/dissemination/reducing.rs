//! all_reduce: every contribution once, for any number of ranks.
//!
//! A rank keeps two partial results: A over the L ranks before it, and A with its own value. They are what
//! lets the last round be as wide as is needed and no wider: write N - 1 in base n + 1, and take its digits
//! from the first. A digit e makes L' = (n + 1) L + e of L: the rank's own A, then those with the own value
//! (L + 1 contributions each) of the e nearest peers, at distances k (L + 1), then A alone (L each) of n - e
//! more, at distances L + e (L + 1) + k L. After the last digit L = N - 1, and the own value makes it N. A
//! round of L = 0 has e messages. So there are as many rounds as in a barrier, and as many messages.
//!
//! Source: Bruck and Ho, "Efficient global combine operations in multi-port message-passing systems",
//! Parallel Processing Letters 3 (1993). The adapted n-way dissemination of End, Yahyapour, Simmendinger and
//! Alrutz (INFOCOMP 2015) cuts the last round of the barrier's pattern to the same end, where a partial
//! result of the right length happens to exist.
//!
//! **The bits differ between ranks**, unless one round is enough: rank r folds r + 1, r + 2, ..., r (mod N).

use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

const WHOLE: ChunkRange = ChunkRange::one(0);
/// A.
const OTHERS: Slot = Slot(1);
/// A with the own value, between the first and the last round.
const ALL: Slot = Slot(2);

pub(super) struct Reducing {
    shape: Shape,
    rounds: Vec<Round>,
}

/// One round.
#[derive(Clone, Copy)]
struct Round {
    /// L before it.
    known: u32,
    /// How many peers send their own value too: e.
    with_own: u32,
    /// How many do not.
    without: u32,
    /// Whether A alone is kept for later rounds, before and after this one.
    keeps_others: [bool; 2],
    /// Whether A with the own value is needed after it.
    keeps_all: bool,
}

impl Round {
    fn peers(self) -> u32 {
        self.with_own + self.without
    }

    /// How far off the peers are, the nearest first.
    fn distance(self, peer: u32) -> u32 {
        match peer.checked_sub(self.with_own) {
            None => (peer + 1) * (self.known + 1),
            Some(further) => self.known + self.with_own * (self.known + 1) + further * self.known,
        }
    }

    /// Operands of the fold that takes in what was received, and whether the own value is added to it.
    fn folds(self) -> (u32, bool) {
        let [before, after] = self.keeps_others;
        let own = u32::from(!after);
        let kept = if before { u32::from(self.known > 0) + own } else { 1 };
        (self.peers() + kept, after && self.keeps_all)
    }

    /// The one message is A: it needs no fold.
    fn takes_one(self) -> bool {
        self.folds().0 == 1
    }
}

fn rounds(ranks: u32, ways: u32) -> Vec<Round> {
    let base = u64::from(ways) + 1;
    let mut rest = u64::from(ranks - 1);
    let mut digits = Vec::new();
    while rest > 0 {
        digits.push(u32::try_from(rest % base).unwrap_or(ways));
        rest /= base;
    }
    digits.reverse();
    let narrow = |digits: &[u32]| digits.iter().any(|&digit| digit < ways);
    let mut known = 0;
    let round = |(index, &digit): (usize, &u32)| {
        let without = if known == 0 { 0 } else { ways - digit };
        let keeps_others = [narrow(&digits[index..]), narrow(&digits[index + 1..])];
        let keeps_all = digits.get(index + 1).is_none_or(|&next| next > 0);
        let round = Round { known, with_own: digit, without, keeps_others, keeps_all };
        known += digit * (known + 1) + without * known;
        round
    };
    digits.iter().enumerate().map(round).collect()
}

/// Messages of a rank, and the folds that follow: how many pieces are folded into another, one by one.
pub(super) fn work(ranks: u32, ways: u32) -> Vec<(u32, Vec<u32>)> {
    let of = |round: Round| {
        let (operands, adds_own) = round.folds();
        let folds = [operands - 1, u32::from(adds_own)];
        (round.peers(), folds.into_iter().filter(|&folded| folded > 0).collect())
    };
    rounds(ranks, ways.min(ranks - 1)).into_iter().map(of).collect()
}

impl Reducing {
    pub(super) fn new(name: String, ranks: u32, ways: u32) -> Reducing {
        let rounds = rounds(ranks, ways.min(ranks - 1));
        let widest = rounds.iter().map(|round| round.peers()).max().unwrap_or_default();
        let shape = Shape::in_place(name, Collective::AllReduce, ranks, 1, 3 + widest);
        Reducing { shape, rounds }
    }

    /// Where the message of a peer arrives.
    fn slot(round: Round, peer: u32) -> Slot {
        if round.takes_one() { OTHERS } else { Slot(3 + peer) }
    }

    fn fold(&self, rank: RankId, round: Round, last: bool, out: &mut Step) {
        let (n, peers) = (self.shape.ranks, round.peers());
        if self.rounds.len() == 1 {
            // All are there at once: the sequential sum, everywhere.
            let slot = |other: u32| match (rank.0 + n - other) % n {
                0 => Slot::DATA,
                distance => Self::slot(round, distance - 1),
            };
            return out.reduce(Slot::DATA, (0..n).map(slot), WHOLE);
        }
        let [before, after] = round.keeps_others;
        let received = (0..peers).rev().map(|peer| Self::slot(round, peer));
        let others = (before && round.known > 0).then_some(OTHERS);
        let own = if before || round.known == 0 { Slot::DATA } else { ALL };
        let all = if last { Slot::DATA } else { ALL };
        if !after {
            return out.reduce(all, received.chain(others).chain([own]), WHOLE);
        }
        if !round.takes_one() {
            out.reduce(OTHERS, received.chain(others), WHOLE);
        }
        if round.keeps_all {
            out.reduce(all, [OTHERS, Slot::DATA], WHOLE);
        }
    }
}

impl Schedule for Reducing {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        u32::try_from(self.rounds.len()).unwrap_or(u32::MAX)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let n = self.shape.ranks;
        let wrap = |value: u32| if value >= n { value - n } else { value };
        let round = self.rounds[step as usize];
        let all = if round.known == 0 { Slot::DATA } else { ALL };
        for peer in 0..round.peers() {
            let distance = round.distance(peer);
            let sent = if peer < round.with_own { all } else { OTHERS };
            out.send(RankId(wrap(rank.0 + distance)), sent, WHOLE);
            out.recv(RankId(wrap(rank.0 + n - distance)), Self::slot(round, peer), WHOLE);
        }
        self.fold(rank, round, step + 1 == self.steps(rank), out);
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        format!("combine {step}")
    }
}
