//! all_reduce: every contribution once, for any number of ranks.
//!
//! A rank stores two partial results: A over the L preceding ranks, and A with its contribution.
//! They allow a last round that is only as wide as needed. Write N - 1 in base n + 1 and process
//! its digits from the most significant. A digit e turns L into L' = (n + 1) L + e by folding, in
//! this order, the rank's A and messages from n peers. The e nearest peers, at distances k (L + 1),
//! send A with their contribution (L + 1 contributions each). The other n - e, at distances L + e
//! (L + 1) + k L, send A (L each). After the last digit L = N - 1, and the rank's contribution
//! makes it N. A round with L = 0 has e messages. The number of rounds and of messages is that of a
//! barrier.
//!
//! Source: Bruck and Ho, "Efficient global combine operations in multi-port message-passing
//! systems", Parallel Processing Letters 3 (1993). The adapted n-way dissemination of End,
//! Yahyapour, Simmendinger and Alrutz (INFOCOMP 2015) shortens the last round of the barrier's
//! pattern instead, which works only if a partial result of the right length exists.
//!
//! **The bits differ between ranks** unless one round suffices: rank r folds r + 1, r + 2, ..., r
//! (mod N).

use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

const PAYLOAD: ChunkRange = ChunkRange::one(0);
/// A.
const OTHERS: Slot = Slot(1);
/// A with the rank's contribution, between the first and the last round.
const ALL: Slot = Slot(2);

pub(super) struct Reducing {
    shape: Shape,
    rounds: Vec<Round>,
}

/// One round.
#[derive(Clone, Copy)]
struct Round {
    /// L before the round.
    known: u32,
    /// e, the number of peers that also send their contribution.
    with_own: u32,
    /// The number of peers that do not.
    without: u32,
    /// Whether later rounds need A alone, before and after this one.
    keeps_others: [bool; 2],
    /// Whether later rounds need A with the contribution.
    keeps_all: bool,
}

impl Round {
    fn peers(self) -> u32 {
        self.with_own + self.without
    }

    /// Returns the distances of the peers, the nearest first.
    fn distance(self, peer: u32) -> u32 {
        match peer.checked_sub(self.with_own) {
            None => (peer + 1) * (self.known + 1),
            Some(further) => self.known + self.with_own * (self.known + 1) + further * self.known,
        }
    }

    /// Returns the operands of the fold of the received values, and whether the rank's contribution
    /// is added.
    fn folds(self) -> (u32, bool) {
        let [before, after] = self.keeps_others;
        let own = u32::from(!after);
        let kept = if before { u32::from(self.known > 0) + own } else { 1 };
        (self.peers() + kept, after && self.keeps_all)
    }

    /// Whether the one message is A, which needs no fold.
    fn takes_one(self) -> bool {
        self.folds().0 == 1
    }
}

fn rounds(ranks: u32, ports: u32) -> Vec<Round> {
    let base = u64::from(ports) + 1;
    let mut rest = u64::from(ranks - 1);
    let mut digits = Vec::new();
    while rest > 0 {
        digits.push(u32::try_from(rest % base).unwrap_or(ports));
        rest /= base;
    }
    digits.reverse();
    let narrow = |digits: &[u32]| digits.iter().any(|&digit| digit < ports);
    let mut known = 0;
    let round = |(index, &digit): (usize, &u32)| {
        let without = if known == 0 { 0 } else { ports - digit };
        let keeps_others = [narrow(&digits[index..]), narrow(&digits[index + 1..])];
        let keeps_all = digits.get(index + 1).is_none_or(|&next| next > 0);
        let round = Round { known, with_own: digit, without, keeps_others, keeps_all };
        known += digit * (known + 1) + without * known;
        round
    };
    digits.iter().enumerate().map(round).collect()
}

/// Returns the messages of a rank, and the pieces of the folds that follow.
pub(super) fn work(ranks: u32, ports: u32) -> Vec<(u32, Vec<u32>)> {
    let of = |round: Round| {
        let (operands, adds_own) = round.folds();
        let folds = [operands - 1, u32::from(adds_own)];
        (round.peers(), folds.into_iter().filter(|&folded| folded > 0).collect())
    };
    rounds(ranks, ports.min(ranks - 1)).into_iter().map(of).collect()
}

impl Reducing {
    pub(super) fn new(name: String, ranks: u32, ports: u32) -> Reducing {
        let rounds = rounds(ranks, ports.min(ranks - 1));
        let widest = rounds.iter().map(|round| round.peers()).max().unwrap_or_default();
        let shape = Shape::in_place(name, Collective::AllReduce, ranks, 1, 3 + widest);
        Reducing { shape, rounds }
    }

    /// Returns the slot for the message of a peer.
    fn slot(round: Round, peer: u32) -> Slot {
        if round.takes_one() { OTHERS } else { Slot(3 + peer) }
    }

    fn fold(&self, rank: RankId, round: Round, last: bool, out: &mut Step) {
        let (n, peers) = (self.shape.ranks, round.peers());
        if self.rounds.len() == 1 {
            // All contributions are present at once: the sequential sum, on all ranks.
            let slot = |other: u32| match (rank.0 + n - other) % n {
                0 => Slot::DATA,
                distance => Self::slot(round, distance - 1),
            };
            return out.reduce(Slot::DATA, (0..n).map(slot), PAYLOAD);
        }
        let [before, after] = round.keeps_others;
        let received = (0..peers).rev().map(|peer| Self::slot(round, peer));
        let others = (before && round.known > 0).then_some(OTHERS);
        let own = if before || round.known == 0 { Slot::DATA } else { ALL };
        let all = if last { Slot::DATA } else { ALL };
        if !after {
            return out.reduce(all, received.chain(others).chain([own]), PAYLOAD);
        }
        if !round.takes_one() {
            out.reduce(OTHERS, received.chain(others), PAYLOAD);
        }
        if round.keeps_all {
            out.reduce(all, [OTHERS, Slot::DATA], PAYLOAD);
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
            out.send(RankId(wrap(rank.0 + distance)), sent, PAYLOAD);
            out.recv(RankId(wrap(rank.0 + n - distance)), Self::slot(round, peer), PAYLOAD);
        }
        self.fold(rank, round, step + 1 == self.steps(rank), out);
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        format!("round {step}")
    }
}
