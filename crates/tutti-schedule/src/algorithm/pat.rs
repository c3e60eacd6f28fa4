//! PAT, parallel aggregated trees: a binomial tree per shard, the longest distance first, with up to
//! A shards in a message.
//!
//! Offset s of rank r is shard r + s (mod N). In an all_gather a rank receives offset s from rank
//! r + d, where d is the lowest set bit of s; there it is offset s - d. Let N' be the power of two
//! from N on, and D = N' / A. First come the offsets that are multiples of D, by descending lowest
//! bit: log2 A rounds, in which the shards per message double, as in Bruck's algorithm with the
//! dimensions reversed. Then come the other offsets, in rounds of up to A offsets that are equal
//! modulo D: the numbers v = 1 ... D - 1 in depth-first order of their tree, the farthest child
//! first. A rank thus forwards a message early, and needs buffers for log2 D messages in addition to
//! the result. A reduce_scatter is the same backwards in time, with a fold per round. The shards of a
//! message are not contiguous, so they are copied to and from a buffer.
//!
//! Source: Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
//! arXiv 2506.20252 (2025); NCCL 2.23 and later. NCCL derives A from the size of its buffers.

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request, Stage};
use crate::collective::Collective;
use crate::{ChunkRange, Digit, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "pat",
    summary: "a binomial tree per shard, longest distance first, up to A shards per message; few buffers",
    source: "Jeaugey 2025 (PAT); NCCL",
    argument: "A, the most shards per message, a power of two (default: half of the ranks or more, all that \
               travel together)",
    collectives: &["all_gather", "reduce_scatter"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && aggregation(request).is_ok(),
    build,
    critical_path,
};

/// Shards to send, shards that have arrived, and shards to fold them into.
const OUT: Slot = Slot(1);
const IN: Slot = Slot(2);
const FOLD: Slot = Slot(3);

/// Returns A.
fn aggregation(request: &Request) -> Result<u32, AlgorithmError> {
    let most = request.ranks.next_power_of_two() / 2;
    let not_a_number = "expected the most shards per message, a power of two, such as `pat:4`";
    let given = request.number(ENTRY.name, most, 1, [not_a_number; 2])?;
    if !given.is_power_of_two() {
        return Err(request.refuse(ENTRY.name, 0, not_a_number));
    }
    Ok(given.min(most))
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let rounds = rounds(request.ranks, aggregation(request)?);
    let shape = request.shape(ENTRY.name, request.ranks, 4);
    Ok(Arc::new(Pat { shape, rounds }))
}

/// All ranks act alike and stay synchronised.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let rounds = rounds(request.ranks, aggregation(request).ok()?);
    let reductions = u32::from(request.collective.reduces());
    let stage = |round: &Round| {
        let chunks = u32::try_from(round.offsets.len()).unwrap_or(u32::MAX);
        Stage { messages: 1, receives: 1, chunks, reductions, of: request.ranks }
    };
    let all = rounds.iter().map(stage);
    Some(if reductions > 0 { all.rev().collect() } else { all.collect() })
}

/// A message of every rank in an all_gather.
struct Round {
    distance: u32,
    /// The offsets at the sender, ascending.
    offsets: Vec<u32>,
}

fn rounds(ranks: u32, aggregation: u32) -> Vec<Round> {
    let all = ranks.next_power_of_two();
    let stride = all / aggregation;
    let mut rounds = Vec::new();
    let mut add = |distance: u32, first: u32, stride: u32| {
        let sent = (first..ranks - distance).step_by(stride as usize);
        rounds.push(Round { distance, offsets: sent.collect() });
    };
    let mut distance = all / 2;
    while distance >= stride {
        add(distance, 0, 2 * distance);
        distance /= 2;
    }
    depth_first(0, distance, &mut |from, distance| add(distance, from, stride));
    rounds.retain(|round| !round.offsets.is_empty());
    rounds
}

/// Visits the tree below a number: its children are larger by a power of two up to `distance`.
fn depth_first(from: u32, mut distance: u32, visit: &mut impl FnMut(u32, u32)) {
    while distance > 0 {
        visit(from, distance);
        let next = distance / 2;
        depth_first(from + distance, next, visit);
        distance = next;
    }
}

struct Pat {
    shape: Shape,
    rounds: Vec<Round>,
}

impl Pat {
    fn shard(&self, rank: RankId, offset: u32) -> u32 {
        (rank.0 + offset) % self.shape.ranks
    }

    /// Returns the round of a step; a reduce_scatter may start with a step of copies.
    fn round(&self, step: u32) -> Option<&Round> {
        let step = step as usize;
        if self.shape.collective == Collective::AllGather {
            return self.rounds.get(step);
        }
        let back = (step + 1).checked_sub(usize::from(self.copies_first()))?;
        self.rounds.get(self.rounds.len().checked_sub(back)?).filter(|_| back > 0)
    }

    fn copies_first(&self) -> bool {
        let last = self.rounds.last().map_or(0, |round| round.offsets.len());
        self.shape.collective.reduces() && last > 1
    }

    /// The first offset of a round at the sender and at the receiver: distances from the rank.
    fn bases(&self, round: &Round) -> (u32, u32) {
        if self.shape.collective.reduces() { (round.distance, 0) } else { (0, round.distance) }
    }

    /// Copies the shards of a round to the buffer, unless there is only one.
    fn pack(&self, rank: RankId, round: &Round, out: &mut Step) {
        let (base, _) = self.bases(round);
        for (to, offset) in (0..).zip(&round.offsets).filter(|_| round.offsets.len() > 1) {
            let shard = self.shard(rank, base + offset);
            out.copy(Slot::DATA, ChunkRange::one(shard), OUT, to);
        }
    }

    fn exchange(&self, rank: RankId, round: &Round, out: &mut Step) {
        let n = self.shape.ranks;
        let (lower, higher) = ((rank.0 + n - round.distance) % n, (rank.0 + round.distance) % n);
        let reduces = self.shape.collective.reduces();
        let (to, from) = if reduces { (higher, lower) } else { (lower, higher) };
        let (sent, received) = self.bases(round);
        if let [offset] = round.offsets[..] {
            let [mine, theirs] =
                [sent, received].map(|base| ChunkRange::one(self.shard(rank, base + offset)));
            let into = if reduces { IN } else { Slot::DATA };
            out.send(RankId(to), Slot::DATA, mine);
            out.recv(RankId(from), into, theirs);
            if reduces {
                out.reduce(Slot::DATA, [Slot::DATA, IN], theirs);
            }
            return;
        }
        let count = u32::try_from(round.offsets.len()).unwrap_or(u32::MAX);
        let all = ChunkRange::new(0, count);
        out.send(RankId(to), OUT, all);
        out.recv(RankId(from), IN, all);
        let shards = || round.offsets.iter().map(|offset| self.shard(rank, received + offset));
        if reduces {
            for (to, shard) in (0..).zip(shards()) {
                out.copy(Slot::DATA, ChunkRange::one(shard), FOLD, to);
            }
            out.reduce(FOLD, [FOLD, IN], all);
        }
        let result = if reduces { FOLD } else { IN };
        for (place, shard) in (0..).zip(shards()) {
            out.copy(result, ChunkRange::one(place), Slot::DATA, shard);
        }
    }
}

impl Schedule for Pat {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        u32::try_from(self.rounds.len()).unwrap_or(u32::MAX) + u32::from(self.copies_first())
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        if let Some(round) = self.round(step) {
            self.exchange(rank, round, out);
        }
        if let Some(next) = self.round(step + 1) {
            self.pack(rank, next, out);
        }
    }

    fn moves_chunks(&self) -> bool {
        self.rounds.iter().any(|round| round.offsets.len() > 1)
    }

    fn symmetry(&self) -> Option<Vec<Digit>> {
        Some(vec![Digit { stride: 1, size: self.shape.ranks }])
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        self.round(step).map_or("copies".to_owned(), |round| format!("distance {}", round.distance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;

    const BOTH: [Collective; 2] = [Collective::AllGather, Collective::ReduceScatter];

    #[test]
    fn it_does_what_it_claims_at_every_rank_count() {
        for ranks in 2..=70 {
            for notation in ["pat", "pat:1", "pat:2", "pat:8", "pat:64"] {
                check::claims(&ENTRY, notation, ranks);
            }
        }
    }

    #[test]
    fn the_critical_path_is_exact_at_every_rank_count() {
        for (ranks, collective) in (2..=40).flat_map(|ranks| BOTH.map(|one| (ranks, one))) {
            for notation in ["pat", "pat:1", "pat:4"] {
                assert!(check::critical_path_is_exact(notation, collective, ranks));
            }
        }
    }

    #[test]
    fn every_rank_sends_alike() {
        for (notation, ranks) in [("pat", 5), ("pat:2", 6), ("pat:4", 16), ("pat:1", 23)] {
            assert!(BOTH.iter().all(|&one| check::is_symmetric(notation, one, ranks)));
        }
    }

    /// log2 A + N / A - 1 messages, and every shard once.
    #[test]
    fn messages_are_few_and_carry_every_shard_once() {
        for log in 1..=8_u32 {
            for exponent in 0..log {
                let rounds = rounds(1 << log, 1 << exponent);
                let (ranks, most) = (1_usize << log, 1_usize << exponent);
                let count = exponent as usize + ranks / most - 1;
                assert_eq!(rounds.len(), count, "{ranks} {most}");
                let shards: usize = rounds.iter().map(|round| round.offsets.len()).sum();
                assert_eq!(shards, ranks - 1);
                assert!(rounds.iter().all(|round| round.offsets.len() <= most));
            }
        }
    }

    /// The offsets of 8 ranks: depth first, the farthest child first.
    #[test]
    fn the_rounds_of_eight_ranks() {
        let found = |most| -> Vec<(u32, Vec<u32>)> {
            rounds(8, most).into_iter().map(|round| (round.distance, round.offsets)).collect()
        };
        let at = |distance: u32, offsets: &[u32]| (distance, offsets.to_vec());
        assert_eq!(found(4), [at(4, &[0]), at(2, &[0, 4]), at(1, &[0, 2, 4, 6])]);
        assert_eq!(found(2), [at(4, &[0]), at(2, &[0, 4]), at(1, &[2, 6]), at(1, &[0, 4])]);
        let tree = [(4, 0), (2, 4), (1, 6), (1, 4), (2, 0), (1, 2), (1, 0)];
        assert_eq!(found(1), tree.map(|(distance, from)| at(distance, &[from])));
    }

    #[test]
    fn invalid_numbers_are_refused() {
        for argument in ["0", "3", "x", ""] {
            let notation = format!("pat:{argument}");
            let error = crate::algorithm::build(&notation, Collective::AllGather, 8).err();
            assert!(matches!(error, Some(AlgorithmError::Argument { at: 0, .. })), "{notation}");
        }
    }
}
