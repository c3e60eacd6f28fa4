//! Recursive halving and doubling: all_reduce in 2 log2 n steps with the bytes of a ring.
//!
//! reduce_scatter halves the range of chunks that a rank is responsible for in every step, all_gather
//! doubles it again. In an all_reduce the first partner is the neighbour, so that a fold always joins
//! neighbouring runs of ranks, in order, and so that the largest messages travel the least. In a
//! reduce_scatter by itself the first partner is the farthest: only then is the range that rank r ends
//! with contiguous all along and shard r in the end.
//!
//! Rank counts that are no power of two: of the first 2e ranks (e ranks more than the power) each even
//! one hands its data to its odd neighbour and gets the result from it in the end. Source: Rabenseifner,
//! "Optimization of collective reduction operations", ICCS 2004; as in MPICH (Thakur, Rabenseifner and
//! Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005)).

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request, Stage};
use crate::collective::Collective;
use crate::ids::RankId;
use crate::schedule::{ChunkRange, Schedule, Shape, Slot, Step};

pub(super) const ENTRY: Entry = Entry {
    name: "recursive_halving_doubling",
    summary: "halves the payload step by step, then doubles it back; few steps and least bytes",
    source: "Rabenseifner 2004; Thakur, Rabenseifner and Gropp 2005",
    argument: "",
    collectives: &["all_reduce", "reduce_scatter", "all_gather"],
    ranks: "all_reduce: any; reduce_scatter and all_gather: powers of two",
    claims,
    build,
    critical_path,
};

const SCRATCH: Slot = Slot(1);

struct Halving {
    shape: Shape,
    /// The largest power of two that is not above the rank count, and its logarithm.
    power: u32,
    rounds: u32,
    /// How many ranks there are beyond the power.
    extra: u32,
    /// Rounds that reduce: all of `rounds` or none.
    reducing: u32,
    /// Rounds that gather: all of `rounds` or none.
    gathering: u32,
}

/// What a rank is to the inner exchange among a power of two.
enum Part {
    /// Its odd neighbour does its work.
    Replaced,
    /// Takes part for itself and its even neighbour, under this number.
    Pair(u32),
    /// Takes part for itself, under this number.
    Single(u32),
}

fn claims(request: &Request) -> bool {
    request.ranks >= 2
        && (request.collective == Collective::AllReduce || request.ranks.is_power_of_two())
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let ranks = request.ranks;
    if !claims(request) {
        return Err(AlgorithmError::WrongRanks {
            name: ENTRY.name,
            ranks,
            needs: format!("a power of two for {}", request.collective),
        });
    }
    let rounds = ranks.ilog2();
    let power = 1 << rounds;
    let reduces = request.collective != Collective::AllGather;
    let gathers = request.collective != Collective::ReduceScatter;
    let shape = Shape {
        name: ENTRY.name.to_owned(),
        collective: request.collective,
        ranks,
        chunks: power,
        slots: if reduces { 2 } else { 1 },
        result: Slot::DATA,
    };
    Ok(Arc::new(Halving {
        shape,
        power,
        rounds,
        extra: ranks - power,
        reducing: if reduces { rounds } else { 0 },
        gathering: if gathers { rounds } else { 0 },
    }))
}

/// For every rank count: the ranks that take part for two start and end last, and each round hands
/// their delay on to their partners; the rounds back undo the rounds there, so that the delay of those
/// same ranks is whole in the end, when the replaced ranks wait for them.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let rounds = request.ranks.ilog2();
    let power = 1 << rounds;
    let stage =
        |chunks, reductions| Stage { messages: 1, receives: 1, chunks, reductions, of: power };
    let extra = request.ranks > power;
    let mut stages = Vec::new();
    if extra {
        stages.push(stage(power, 1));
    }
    if request.collective != Collective::AllGather {
        stages.extend((0..rounds).map(|round| stage(power >> (round + 1), 1)));
    }
    if request.collective != Collective::ReduceScatter {
        stages.extend((0..rounds).map(|round| stage(1 << round, 0)));
    }
    if extra {
        stages.push(stage(power, 0));
    }
    Some(stages)
}

impl Halving {
    fn part(&self, rank: RankId) -> Part {
        if rank.0 >= 2 * self.extra {
            Part::Single(rank.0 - self.extra)
        } else if rank.0.is_multiple_of(2) {
            Part::Replaced
        } else {
            Part::Pair(rank.0 / 2)
        }
    }

    /// The rank that takes part under this number.
    fn real(&self, number: u32) -> RankId {
        RankId(if number < self.extra { 2 * number + 1 } else { number + self.extra })
    }

    /// In which bit the partners of halving round `round` differ.
    fn mask(&self, round: u32) -> u32 {
        if self.gathering > 0 && self.reducing > 0 { 1 << round } else { self.power >> (round + 1) }
    }

    /// What `number` is responsible for after `halved` rounds of halving.
    fn range(&self, number: u32, halved: u32) -> ChunkRange {
        let len = self.power >> halved;
        let start = if self.gathering > 0 && self.reducing > 0 {
            (number & ((1 << halved) - 1)).reverse_bits() >> (u32::BITS - self.rounds)
        } else {
            number & !(len - 1)
        };
        ChunkRange::new(start, start + len)
    }

    fn halve(&self, number: u32, round: u32, out: &mut Step) {
        let partner = number ^ self.mask(round);
        let peer = self.real(partner);
        let kept = self.range(number, round + 1);
        out.send(peer, Slot::DATA, self.range(partner, round + 1));
        out.recv(peer, SCRATCH, kept);
        let operands = if number < partner { [Slot::DATA, SCRATCH] } else { [SCRATCH, Slot::DATA] };
        out.reduce(Slot::DATA, operands, kept);
    }

    fn double(&self, number: u32, round: u32, out: &mut Step) {
        let halving = self.rounds - 1 - round;
        let partner = number ^ self.mask(halving);
        let peer = self.real(partner);
        out.send(peer, Slot::DATA, self.range(number, halving + 1));
        out.recv(peer, Slot::DATA, self.range(partner, halving + 1));
    }

    fn whole(&self) -> ChunkRange {
        ChunkRange::new(0, self.power)
    }
}

impl Schedule for Halving {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        let rounds = self.reducing + self.gathering;
        match self.part(rank) {
            Part::Replaced => 2,
            Part::Pair(_) => rounds + 2,
            Part::Single(_) => rounds,
        }
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let (number, round) = match self.part(rank) {
            Part::Replaced => {
                let odd = RankId(rank.0 + 1);
                return match step {
                    0 => out.send(odd, Slot::DATA, self.whole()),
                    _ => out.recv(odd, Slot::DATA, self.whole()),
                };
            }
            Part::Pair(number) => {
                let even = RankId(rank.0 - 1);
                if step == 0 {
                    out.recv(even, SCRATCH, self.whole());
                    return out.reduce(Slot::DATA, [SCRATCH, Slot::DATA], self.whole());
                }
                if step > self.reducing + self.gathering {
                    return out.send(even, Slot::DATA, self.whole());
                }
                (number, step - 1)
            }
            Part::Single(number) => (number, step),
        };
        if round < self.reducing {
            self.halve(number, round, out);
        } else {
            self.double(number, round - self.reducing, out);
        }
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        let rounds = self.reducing + self.gathering;
        let round = match (self.part(rank), step) {
            (Part::Replaced | Part::Pair(_), 0) => return "fold the extra ranks in".to_owned(),
            (Part::Replaced, _) => return "hand the result back".to_owned(),
            (Part::Pair(_), _) if step > rounds => return "hand the result back".to_owned(),
            (Part::Pair(_), _) => step - 1,
            (Part::Single(_), _) => step,
        };
        if round < self.reducing {
            format!("reduce_scatter {round}")
        } else {
            format!("all_gather {}", round - self.reducing)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;

    #[test]
    fn it_does_what_it_claims_at_every_rank_count() {
        for ranks in 2..=128 {
            check::claims(&ENTRY, ENTRY.name, ranks);
        }
    }

    #[test]
    fn all_reduce_folds_in_rank_order() {
        for ranks in 2..=40 {
            check::folds_in_rank_order(ENTRY.name, Collective::AllReduce, ranks);
        }
    }

    #[test]
    fn the_critical_path_is_exact_at_every_rank_count() {
        for ranks in 2..=70 {
            for collective in
                [Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather]
            {
                if claims(&Request { collective, ranks, argument: None }) {
                    assert!(check::critical_path_is_exact(ENTRY.name, collective, ranks));
                }
            }
        }
    }

    #[test]
    fn reduce_scatter_refuses_what_is_no_power_of_two() {
        let error =
            crate::algorithm::build(ENTRY.name, Collective::ReduceScatter, 6).err().unwrap();
        assert_eq!(
            error.to_string(),
            "recursive_halving_doubling does not work on 6 ranks: it needs a power of two for \
             reduce_scatter"
        );
    }
}
