//! Recursive exchange: recursive halving and doubling in groups of K ranks instead of pairs.
//!
//! P = K^m is the largest power of K that is at most N; the other N - P ranks are extra. With
//! q = (N - P) / (K - 1), the first q K ranks are sets of K, whose last rank takes part for all. If
//! K - 1 does not divide N - P, the next set has the remaining extra ranks and one more. Every other
//! rank takes part for itself. Extra ranks send first and receive last. The ranks that take part are
//! numbered in order, and number w covers a range of consecutive ranks.
//!
//! In an exchange of distance K^s the group of w consists of the numbers that differ from w only in
//! digit s in base K. In an all_gather a rank sends its block of shards to the K - 1 others, the
//! shortest distance first, so that blocks are contiguous. A reduce_scatter is the same backwards:
//! each rank sends the others their blocks and folds K operands, the longest distance first. An
//! all_reduce is both, with P chunks of the payload: its reduce_scatter has the shortest distance
//! first, so that folds are in rank order and the largest messages travel the shortest distance. Its
//! blocks have the digits of w in reverse.
//!
//! Sources: Wilkins et al., "Generalized collective algorithms for the exascale era", IEEE CLUSTER
//! (2023), recursive multiplying. MPICH 5, `recexch` with distance doubling (all_gather,
//! reduce_scatter) and `k_reduce_scatter_allgather` (all_reduce); [`recursive_multiplying`
//! ](super::recursive_multiplying) is `recexch` of all_reduce. MPICH sends by ascending digit, tutti
//! to the next digits cyclically.

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request, Stage};
use crate::collective::Collective;
use crate::{ChunkRange, Digit, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "recursive_exchange",
    summary: "recursive halving and doubling in groups of K; few steps of K - 1 messages, fewest bytes",
    source: "Wilkins et al. 2023 (CLUSTER); MPICH",
    argument: "K, the ranks of a group, at least 2; with fewer ranks than K there is one group (default 4)",
    collectives: &["all_reduce", "reduce_scatter", "all_gather"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && radix(request).is_ok(),
    build,
    critical_path,
};

/// The default K, as of [`knomial`](super::knomial).
const RADIX: u32 = 4;

/// Returns K, at most the rank count.
fn radix(request: &Request) -> Result<u32, AlgorithmError> {
    let problems = [
        "a group has at least 2 ranks",
        "expected the ranks of a group, an integer of at least 2, such as `recursive_exchange:4`",
    ];
    Ok(request.number(ENTRY.name, RADIX, 2, problems)?.min(request.ranks))
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    Ok(Arc::new(RecursiveExchange::new(request, radix(request)?)))
}

/// Where every rank takes part, all act alike. Otherwise the delay of extra ranks depends on the
/// order of arrival.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let schedule = RecursiveExchange::new(request, radix(request).ok()?);
    let stage = |index| {
        let Exchange { distance, reduces } = schedule.exchange(index);
        let messages = schedule.radix - 1;
        let reductions = if reduces { messages } else { 0 };
        let chunks = schedule.block(0, distance).len();
        Stage { messages, receives: messages, chunks, reductions, of: request.ranks }
    };
    (schedule.extra == 0).then(|| (0..schedule.exchanges()).map(stage).collect())
}

struct RecursiveExchange {
    shape: Shape,
    /// K.
    radix: u32,
    /// m and P = K^m.
    stages: u32,
    power: u32,
    /// N - P.
    extra: u32,
    /// Sets of K ranks, of which one takes part.
    full: u32,
}

/// An exchange in groups: all-gathering, or reducing and scattering.
struct Exchange {
    distance: u32,
    reduces: bool,
}

impl RecursiveExchange {
    fn new(request: &Request, radix: u32) -> RecursiveExchange {
        let stages = request.ranks.ilog(radix);
        let power = radix.pow(stages);
        let extra = request.ranks - power;
        let chunks =
            if request.collective == Collective::AllReduce { power } else { request.ranks };
        let slots = if request.collective.reduces() { radix } else { 1 };
        let shape = request.shape(ENTRY.name, chunks, slots);
        RecursiveExchange { shape, radix, stages, power, extra, full: extra / (radix - 1) }
    }

    fn both(&self) -> bool {
        self.shape.collective == Collective::AllReduce
    }

    fn exchanges(&self) -> u32 {
        if self.both() { 2 * self.stages } else { self.stages }
    }

    fn exchange(&self, index: u32) -> Exchange {
        let reduces = self.shape.collective.reduces() && index < self.stages;
        let index = index % self.stages;
        // The phases of an all_reduce have the opposite order of separate ones.
        let digit = if reduces == self.both() { index } else { self.stages - 1 - index };
        Exchange { distance: self.radix.pow(digit), reduces }
    }

    /// Returns the first rank that a number covers.
    fn first(&self, number: u32) -> u32 {
        if number <= self.full { number * self.radix } else { number + self.extra }
    }

    /// Returns the rank that takes part under a number: the last that it covers.
    fn real(&self, number: u32) -> u32 {
        self.first(number + 1) - 1
    }

    /// Returns the number that covers a rank.
    fn number(&self, rank: RankId) -> u32 {
        if rank.0 < self.full * self.radix {
            rank.0 / self.radix
        } else {
            rank.0.saturating_sub(self.extra).max(self.full)
        }
    }

    /// Returns the chunks of a number in an exchange of that distance.
    fn block(&self, number: u32, distance: u32) -> ChunkRange {
        if !self.both() {
            let start = number - number % distance;
            return ChunkRange::new(self.first(start), self.first(start + distance));
        }
        let (mut start, mut len, mut weight) = (0, self.power, 1);
        while weight <= distance {
            len /= self.radix;
            start += number / weight % self.radix * len;
            weight *= self.radix;
        }
        ChunkRange::new(start, start + len)
    }

    fn payload(&self) -> ChunkRange {
        ChunkRange::new(0, self.shape.chunks)
    }

    /// Returns the chunks that an extra rank sends, and those that it receives at the end.
    fn exchanged_chunks(&self, rank: u32) -> [ChunkRange; 2] {
        match self.shape.collective {
            Collective::AllGather => [ChunkRange::one(rank), self.payload()],
            Collective::ReduceScatter => [self.payload(), ChunkRange::one(rank)],
            _ => [self.payload(); 2],
        }
    }

    /// Sends to higher digits, wrapping around, and receives from lower ones: the order of arrival.
    fn trade(&self, number: u32, at: &Exchange, out: &mut Step) {
        let &Exchange { distance, reduces } = at;
        let digit = number / distance % self.radix;
        let member = |other: u32| number - digit * distance + other * distance;
        let kept = self.block(number, distance);
        for peer in (digit + 1..self.radix).chain(0..digit).map(member) {
            let sent = if reduces { self.block(peer, distance) } else { kept };
            out.send(RankId(self.real(peer)), Slot::DATA, sent);
        }
        for other in (0..digit).rev().chain((digit + 1..self.radix).rev()) {
            let peer = member(other);
            // This rank's value is in place; those of the others are in the next slots, by digit.
            let (into, chunks) = if reduces {
                (Slot(if other < digit { other + 1 } else { other }), kept)
            } else {
                (Slot::DATA, self.block(peer, distance))
            };
            out.recv(RankId(self.real(peer)), into, chunks);
        }
        if reduces {
            let operands = (1..=digit).chain([0]).chain(digit + 1..self.radix);
            out.reduce(Slot::DATA, operands.map(Slot), kept);
        }
    }

    /// Receives from the extra ranks that a number covers.
    fn collect(&self, extras: std::ops::Range<u32>, out: &mut Step) {
        let reduces = self.shape.collective.reduces();
        for (slot, extra) in (1..).zip(extras.clone()) {
            let [chunks, _] = self.exchanged_chunks(extra);
            out.recv(RankId(extra), if reduces { Slot(slot) } else { Slot::DATA }, chunks);
        }
        if reduces {
            let values = (1..=extras.end - extras.start).chain([0]);
            out.reduce(Slot::DATA, values.map(Slot), self.payload());
        }
    }
}

impl Schedule for RecursiveExchange {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        let number = self.number(rank);
        match self.real(number) {
            taking_part if taking_part != rank.0 => 2,
            _ if self.first(number) < rank.0 => self.exchanges() + 2,
            _ => self.exchanges(),
        }
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let number = self.number(rank);
        let (first, taking_part) = (self.first(number), self.real(number));
        if rank.0 != taking_part {
            let [over, back] = self.exchanged_chunks(rank.0);
            return match step {
                0 => out.send(RankId(taking_part), Slot::DATA, over),
                _ => out.recv(RankId(taking_part), Slot::DATA, back),
            };
        }
        let before = u32::from(first < rank.0);
        if step < before {
            return self.collect(first..rank.0, out);
        }
        if step - before < self.exchanges() {
            return self.trade(number, &self.exchange(step - before), out);
        }
        for extra in first..rank.0 {
            let [_, back] = self.exchanged_chunks(extra);
            out.send(RankId(extra), Slot::DATA, back);
        }
    }

    fn symmetry(&self) -> Option<Vec<Digit>> {
        let digit = |stage| Digit { stride: self.radix.pow(stage), size: self.radix };
        (self.extra == 0).then(|| (0..self.stages).map(digit).collect())
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        let number = self.number(rank);
        let is_set = self.first(number) < self.real(number);
        if is_set && step == 0 {
            return "pre-processing".to_owned();
        }
        if is_set && step + 1 == self.steps(rank) {
            return "post-processing".to_owned();
        }
        let Exchange { distance, reduces } = self.exchange(step - u32::from(is_set));
        let phase = if reduces { "reduce_scatter" } else { "all_gather" };
        format!("{phase}, distance {distance}")
    }
}

#[cfg(test)]
mod tests;
