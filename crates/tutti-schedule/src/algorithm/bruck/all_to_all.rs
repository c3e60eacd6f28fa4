//! all_to_all: a block travels its distance digit by digit.
//!
//! Position p of rank r's work slot holds a block that is p ranks from its destination: initially
//! r's block for rank r + p. Write p in base K + 1. Round i moves every block by its i-th digit.
//! The positions with digit z go to rank r + z (K + 1)^i (mod N), all in one message, and arrive
//! from the same distance behind at the same positions. After the last round position p holds the
//! block of rank r - p for r, and is copied to its place. The positions of a message lie in ranges
//! of (K + 1)^i and are packed contiguously.

use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

const WORK: Slot = Slot(1);
/// The packed send buffer.
const OUT: Slot = Slot(2);
/// The packed receive buffer.
const IN: Slot = Slot(3);
const RESULT: Slot = Slot(4);

pub(super) struct AllToAll {
    shape: Shape,
    ports: u32,
    /// The powers of K + 1 below N.
    weights: Vec<u32>,
}

fn weights(ranks: u32, ports: u32) -> Vec<u32> {
    let powers = std::iter::successors(Some(1_u32), |power| power.checked_mul(ports + 1));
    powers.take_while(|&power| power < ranks).collect()
}

/// The positions below N with this `digit` at one weight, among those with a non-zero digit there.
#[derive(Clone, Copy)]
struct Places {
    ranks: u32,
    weight: u32,
    /// The distance between ranges.
    period: u32,
    digit: u32,
}

impl Places {
    fn new(ranks: u32, ports: u32, weight: u32, digit: u32) -> Places {
        Places { ranks, weight, period: weight.saturating_mul(ports + 1), digit }
    }

    /// Returns the number of positions.
    fn count(self) -> u32 {
        self.before(self.digit + 1) - self.before(self.digit)
    }

    /// Returns their packed positions, with those of all digits packed contiguously, digit by
    /// digit.
    fn packed(self) -> ChunkRange {
        ChunkRange::new(self.before(self.digit), self.before(self.digit + 1))
    }

    /// Returns the number of positions with digits from 1 to below `digit`.
    fn before(self, digit: u32) -> u32 {
        let (periods, rest) = (self.ranks / self.period, self.ranks % self.period);
        let wide = (digit - 1) * self.weight;
        periods * wide + rest.saturating_sub(self.weight).min(wide)
    }

    /// Returns the ranges of positions, and the packed position of each.
    fn runs(self) -> impl Iterator<Item = (ChunkRange, u32)> {
        let first = self.digit * self.weight;
        let starts = (first..self.ranks).step_by(self.period as usize);
        let packed = self.packed().start;
        starts.zip(0..).map(move |(start, index)| {
            let end = self.ranks.min(start + self.weight);
            (ChunkRange::new(start, end), packed + index * self.weight)
        })
    }
}

/// Returns the messages of a round with weight `weight`, by digit.
fn digits(ranks: u32, ports: u32, weight: u32) -> impl Iterator<Item = Places> {
    let most = ports.min((ranks - 1) / weight);
    (1..=most).map(move |digit| Places::new(ranks, ports, weight, digit))
}

/// Returns the blocks in each message of a rank, round by round.
pub(super) fn message_lengths(ranks: u32, ports: u32) -> Vec<Vec<u32>> {
    let lengths = |weight| digits(ranks, ports, weight).map(Places::count).collect();
    weights(ranks, ports).into_iter().map(lengths).collect()
}

impl AllToAll {
    pub(super) fn new(name: String, ranks: u32, ports: u32) -> AllToAll {
        let in_place = Shape::in_place(name, Collective::AllToAll, ranks, ranks, 5);
        let shape = Shape { result: RESULT, ..in_place };
        AllToAll { shape, ports, weights: weights(ranks, ports) }
    }

    fn digits(&self, weight: u32) -> impl Iterator<Item = Places> {
        digits(self.shape.ranks, self.ports, weight)
    }

    /// Starts with the rank's block for itself, then those for the ranks behind it.
    fn turn(&self, rank: RankId, out: &mut Step) {
        let n = self.shape.ranks;
        out.copy(Slot::DATA, ChunkRange::new(rank.0, n), WORK, 0);
        if rank.0 > 0 {
            out.copy(Slot::DATA, ChunkRange::new(0, rank.0), WORK, n - rank.0);
        }
    }

    fn exchange(&self, rank: RankId, weight: u32, out: &mut Step) {
        let n = self.shape.ranks;
        let wrap = |value: u32| if value >= n { value - n } else { value };
        for places in self.digits(weight) {
            let distance = places.digit * weight;
            out.send(RankId(wrap(rank.0 + distance)), OUT, places.packed());
            out.recv(RankId(wrap(rank.0 + n - distance)), IN, places.packed());
        }
        for (run, packed) in self.digits(weight).flat_map(Places::runs) {
            out.copy(IN, ChunkRange::new(packed, packed + run.len()), WORK, run.start);
        }
    }

    /// For the next round, or the result after the last.
    fn pack(&self, rank: RankId, round: usize, out: &mut Step) {
        let Some(&weight) = self.weights.get(round) else {
            for place in 0..self.shape.ranks {
                let ahead = if place > rank.0 { self.shape.ranks } else { 0 };
                out.copy(WORK, ChunkRange::one(place), RESULT, rank.0 + ahead - place);
            }
            return;
        };
        for (run, packed) in self.digits(weight).flat_map(Places::runs) {
            out.copy(WORK, run, OUT, packed);
        }
    }
}

impl Schedule for AllToAll {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        1 + u32::try_from(self.weights.len()).unwrap_or(u32::MAX - 1)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        match step.checked_sub(1) {
            None => self.turn(rank, out),
            Some(round) => self.exchange(rank, self.weights[round as usize], out),
        }
        self.pack(rank, step as usize, out);
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        match step.checked_sub(1) {
            None => "turn".to_owned(),
            Some(round) => format!("digit {round}"),
        }
    }
}
