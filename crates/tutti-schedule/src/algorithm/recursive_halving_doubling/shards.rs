//! Separate reduce_scatter and all_gather, for any rank count.
//!
//! Of the first 2r ranks each even one is replaced by its odd neighbour, so that P take part. The
//! q-th is responsible for the shards of one rank or of two neighbours: contiguous ranges of
//! shards, which recursive halving with the farthest partner first preserves. In a reduce_scatter
//! an even rank sends all of its data first and receives its shard at the end; in an all_gather it
//! sends its shard first and receives all shards at the end. Messages of a round differ in size
//! with the number of ranks that they cover.

use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) struct Shards {
    shape: Shape,
    power: u32,
    rounds: u32,
    extra: u32,
    gathers: bool,
}

impl Shards {
    pub(super) fn new(name: String, collective: Collective, ranks: u32) -> Shards {
        let gathers = collective == Collective::AllGather;
        let rounds = ranks.ilog2();
        let slots = if gathers { 1 } else { 2 };
        let shape = Shape::in_place(name, collective, ranks, ranks, slots);
        Shards { shape, power: 1 << rounds, rounds, extra: ranks - (1 << rounds), gathers }
    }

    /// Returns the steps of a rank that are rounds among the power of two.
    pub(super) fn rounds(&self, rank: RankId) -> std::ops::Range<u32> {
        match (self.is_replaced(rank), self.is_pair(rank)) {
            (true, _) => 0..0,
            (_, true) => 1..self.rounds + 1,
            _ => 0..self.rounds,
        }
    }

    fn is_replaced(&self, rank: RankId) -> bool {
        rank.0 < 2 * self.extra && rank.0.is_multiple_of(2)
    }

    /// Whether the rank takes part for two.
    fn is_pair(&self, rank: RankId) -> bool {
        rank.0 < 2 * self.extra && !rank.0.is_multiple_of(2)
    }

    fn real(&self, number: u32) -> RankId {
        RankId(if number < self.extra { 2 * number + 1 } else { number + self.extra })
    }

    fn number(&self, rank: RankId) -> u32 {
        if rank.0 < 2 * self.extra { rank.0 / 2 } else { rank.0 - self.extra }
    }

    /// Returns the shards of the block of `len` neighbours that contains `number`.
    fn block(&self, number: u32, len: u32) -> ChunkRange {
        let first = number & !(len - 1);
        let start = |number: u32| number + number.min(self.extra);
        ChunkRange::new(start(first), start(first + len))
    }

    fn round(&self, number: u32, round: u32, out: &mut Step) {
        let len = if self.gathers { 1 << round } else { self.power >> (round + 1) };
        let partner = number ^ len;
        let peer = self.real(partner);
        let (own, other) = (self.block(number, len), self.block(partner, len));
        if self.gathers {
            return out.trade(peer, Slot::DATA, own, other);
        }
        out.fold_with((peer, number < partner), Slot::DATA, other, own);
    }

    /// Returns the chunks that an even rank sends, and the chunks that it receives at the end.
    fn exchanged_chunks(&self, even: RankId) -> [ChunkRange; 2] {
        let payload = ChunkRange::new(0, self.shape.ranks);
        let own = ChunkRange::one(even.0);
        if self.gathers { [own, payload] } else { [payload, own] }
    }
}

impl Schedule for Shards {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        match (self.is_replaced(rank), self.is_pair(rank)) {
            (true, _) => 2,
            (_, true) => self.rounds + 2,
            _ => self.rounds,
        }
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        if self.is_replaced(rank) {
            let odd = RankId(rank.0 + 1);
            let [over, back] = self.exchanged_chunks(rank);
            return match step {
                0 => out.send(odd, Slot::DATA, over),
                _ => out.recv(odd, Slot::DATA, back),
            };
        }
        if !self.is_pair(rank) {
            return self.round(self.number(rank), step, out);
        }
        let even = RankId(rank.0 - 1);
        let [over, back] = self.exchanged_chunks(even);
        match step {
            0 if self.gathers => out.recv(even, Slot::DATA, over),
            0 => out.fold_in(even, over),
            _ if step > self.rounds => out.send(even, Slot::DATA, back),
            _ => self.round(self.number(rank), step - 1, out),
        }
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        let pair = self.is_pair(rank);
        if self.is_replaced(rank) || pair {
            if step == 0 {
                return "pre-processing".to_owned();
            }
            if step + 1 == self.steps(rank) {
                return "post-processing".to_owned();
            }
        }
        format!("{} {}", self.shape.collective, step - u32::from(pair))
    }
}
