//! Recursive halving and doubling: all_reduce in 2 log2 n steps with the bytes of a ring.
//!
//! reduce_scatter halves a rank's range of chunks in every step; all_gather doubles it again. In an
//! all_reduce the first partner is the neighbour. A fold therefore always joins adjacent ranges of
//! ranks, in order, and the largest messages travel the shortest distance. In a separate
//! reduce_scatter the first partner is the farthest: only then does rank r end with a contiguous
//! range that is shard r.
//!
//! Methods for rank counts with r ranks beyond a power of two P, for an all_reduce by the argument:
//!
//! - **`fold`**, the default: of the first 2r ranks each even one sends its data to its odd
//!   neighbour and receives the result from it at the end, as in MPICH.
//! - **`2-1`**: the same, but each of the two folds one half of the data before one sends its half.
//! - **`3-2`**: see [`long_elimination`]: surplus ranks are eliminated during the first exchange of
//!   halves.
//! - **`binary_blocks`**: see [`binary_blocks`]: one block of ranks for each bit of N.
//!
//! Separate reduce_scatter and all_gather fold as in MPICH: see [`shards`]. `segments=K` divides the
//! exchanges of the halving rounds: see [`segmented`](super::segmented). Sources: Rabenseifner,
//! "Optimization of collective reduction operations", ICCS 2004 (`2-1`, `binary_blocks`).
//! Rabenseifner and Traeff, "More efficient reduction algorithms for non-power-of-two number of
//! processors in message-passing parallel systems", EuroPVM/MPI 2004 (`3-2`). Thakur, Rabenseifner
//! and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005)
//! (`fold`).

mod binary_blocks;
mod long_elimination;
mod shards;

use std::ops::Range;
use std::sync::Arc;

use super::segmented::{self, SEGMENTS, Segmented};
use super::sizes::misfit;
use super::{AlgorithmError, Entry, Request, Stage};
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use binary_blocks::BinaryBlocks;
use long_elimination::LongElimination;
use shards::Shards;
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "recursive_halving_doubling",
    summary: "recursive halving, then recursive doubling; few steps, fewest bytes",
    source: "Rabenseifner 2004; Thakur, Rabenseifner and Gropp 2005; Rabenseifner and Traeff 2004",
    argument: "[METHOD] [,segments=K]: for all_reduce, how to handle a rank count other than a power of two: `fold` \
               (default), `2-1`, `3-2` or `binary_blocks`; for `fold` and `2-1`, the number of pieces of each \
               exchange that reduces (default 1)",
    collectives: &["all_reduce", "reduce_scatter", "all_gather"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && form(request).is_ok(),
    build,
    critical_path,
};

const SCRATCH: Slot = Slot(1);

struct Halving {
    shape: Shape,
    /// The largest power of two that is at most the rank count, and its logarithm.
    power: u32,
    rounds: u32,
    /// The number of ranks beyond the power of two.
    extra: u32,
    /// Whether a rank and its replacement fold half of the data each.
    halves: bool,
}

/// The role of a rank in the inner exchange among a power of two.
enum Part {
    /// Replaced by its odd neighbour.
    Replaced,
    /// Takes part for itself and its even neighbour, under this number.
    Pair(u32),
    /// Takes part for itself, under this number.
    Single(u32),
}

/// The method for ranks beyond a power of two.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Surplus {
    Fold,
    TwoToOne,
    ThreeToTwo,
    BinaryBlocks,
}

/// The parsed and checked argument.
struct Form {
    surplus: Surplus,
    segments: u32,
}

fn form(request: &Request) -> Result<Form, AlgorithmError> {
    let (method, option) = match request.argument {
        Some(argument) if argument.starts_with(SEGMENTS) => (None, Some(argument)),
        Some(argument) => match argument.split_once(',') {
            Some((method, option)) => (Some(method), Some(option.trim())),
            None => (Some(argument), None),
        },
        None => (None, None),
    };
    let surplus = surplus(&Request { argument: method, ..*request })?;
    let at = request.argument.unwrap_or_default().len() - option.unwrap_or_default().len();
    let segments = match option.map(|option| (option, option.strip_prefix(SEGMENTS))) {
        Some((_, Some(number))) => segmented::pieces(number, at),
        Some((option, None)) => {
            misfit(at, format!("unknown option `{option}`: expected `segments=K`"))
        }
        None => Ok(1),
    };
    let segments = segments.map_err(|misfit| request.misfit(ENTRY.name, misfit))?;
    let gathers = request.collective == Collective::AllGather;
    if segments > 1 && (gathers || matches!(surplus, Surplus::ThreeToTwo | Surplus::BinaryBlocks)) {
        let problem = "segments need exchanges that reduce: expected `fold` or `2-1` of all_reduce, or \
                       reduce_scatter";
        return Err(request.refuse(ENTRY.name, at, problem));
    }
    Ok(Form { surplus, segments })
}

/// Reads the method for ranks beyond a power of two.
fn surplus(request: &Request) -> Result<Surplus, AlgorithmError> {
    let words = [
        ("fold", Surplus::Fold),
        ("2-1", Surplus::TwoToOne),
        ("3-2", Surplus::ThreeToTwo),
        ("binary_blocks", Surplus::BinaryBlocks),
    ];
    let surplus = request.one_of(ENTRY.name, &words)?;
    if surplus != Surplus::Fold && request.collective != Collective::AllReduce {
        let problem = format!("{} supports only `fold`", request.collective);
        return Err(request.refuse(ENTRY.name, 0, problem));
    }
    Ok(surplus)
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let (ranks, Form { surplus, segments }) = (request.ranks, form(request)?);
    let name = request.notation(ENTRY.name);
    let divided = if request.collective != Collective::AllReduce {
        let shards = Arc::new(Shards::new(name, request.collective, ranks));
        let inner = shards.clone();
        Segmented::divide(inner, segments, move |rank| shards.rounds(rank))
    } else {
        match surplus {
            Surplus::ThreeToTwo => return Ok(Arc::new(LongElimination::new(name, ranks))),
            Surplus::BinaryBlocks => return Ok(Arc::new(BinaryBlocks::new(name, ranks))),
            Surplus::Fold | Surplus::TwoToOne => {
                let halving = Arc::new(Halving::new(request, surplus == Surplus::TwoToOne));
                let inner = halving.clone();
                Segmented::divide(inner, segments, move |rank| halving.halvings(rank))
            }
        }
    };
    divided.map_err(|misfit| request.misfit(ENTRY.name, misfit))
}

/// The closed form for every rank count with folded surplus ranks. Ranks that take part for two
/// start and end last, and each round propagates their delay to their partners. The doubling rounds
/// reverse the halving rounds, so the same ranks have the full delay at the end, when the replaced
/// ranks wait for them.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let rounds = request.ranks.ilog2();
    let power = 1 << rounds;
    let stage =
        |chunks, reductions| Stage { messages: 1, receives: 1, chunks, reductions, of: power };
    let extra = request.ranks > power;
    let mut stages = Vec::new();
    // The overlap of segments depends on the network.
    let form = form(request).ok().filter(|form| form.segments == 1)?;
    match form.surplus {
        _ if !extra => {}
        Surplus::Fold if request.collective == Collective::AllReduce => {
            stages.push(stage(power, 1));
        }
        Surplus::TwoToOne => stages.extend([stage(power / 2, 1), stage(power / 2, 0)]),
        _ => return None,
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
    fn new(request: &Request, halves: bool) -> Halving {
        let rounds = request.ranks.ilog2();
        let power = 1 << rounds;
        let shape = request.shape(ENTRY.name, power, 2);
        Halving { shape, power, rounds, extra: request.ranks - power, halves }
    }

    /// Returns the steps of a rank that are halving rounds.
    fn halvings(&self, rank: RankId) -> Range<u32> {
        match self.part(rank) {
            Part::Replaced => 0..0,
            Part::Pair(_) => self.joining()..self.joining() + self.rounds,
            Part::Single(_) => 0..self.rounds,
        }
    }

    fn part(&self, rank: RankId) -> Part {
        if rank.0 >= 2 * self.extra {
            Part::Single(rank.0 - self.extra)
        } else if rank.0.is_multiple_of(2) {
            Part::Replaced
        } else {
            Part::Pair(rank.0 / 2)
        }
    }

    /// Returns the rank that takes part under this number.
    fn real(&self, number: u32) -> RankId {
        RankId(if number < self.extra { 2 * number + 1 } else { number + self.extra })
    }

    /// Returns the range of `number` after `halved` rounds of halving.
    fn range(&self, number: u32, halved: u32) -> ChunkRange {
        let len = self.power >> halved;
        let start = (number & ((1 << halved) - 1)).reverse_bits() >> (u32::BITS - self.rounds);
        ChunkRange::new(start, start + len)
    }

    fn halve(&self, number: u32, round: u32, out: &mut Step) {
        let partner = number ^ (1 << round);
        let peer = self.real(partner);
        let [kept, sent] = [number, partner].map(|number| self.range(number, round + 1));
        out.fold_with((peer, number < partner), Slot::DATA, sent, kept);
    }

    fn double(&self, number: u32, round: u32, out: &mut Step) {
        let halving = self.rounds - 1 - round;
        let partner = number ^ (1 << halving);
        let peer = self.real(partner);
        let [own, other] = [number, partner].map(|number| self.range(number, halving + 1));
        out.trade(peer, Slot::DATA, own, other);
    }

    fn payload(&self) -> ChunkRange {
        ChunkRange::new(0, self.power)
    }
}

impl Halving {
    /// Returns the steps until a rank that takes part for two has the data of both.
    fn joining(&self) -> u32 {
        1 + u32::from(self.halves)
    }

    /// Adds a step of a replaced rank.
    fn replaced(&self, rank: RankId, step: u32, out: &mut Step) {
        let odd = RankId(rank.0 + 1);
        let [low, high] = self.both_halves();
        match step {
            0 if self.halves => {
                out.fold_with((odd, true), Slot::DATA, high, low);
            }
            1 if self.halves => out.send(odd, Slot::DATA, low),
            0 => out.send(odd, Slot::DATA, self.payload()),
            _ => out.recv(odd, Slot::DATA, self.payload()),
        }
    }

    /// Adds a step in which a rank that takes part for two receives the data of the other.
    fn join(&self, rank: RankId, step: u32, out: &mut Step) {
        let even = RankId(rank.0 - 1);
        let [low, high] = self.both_halves();
        let folded = if self.halves { high } else { self.payload() };
        if step == 1 {
            return out.recv(even, Slot::DATA, low);
        }
        if self.halves {
            out.send(even, Slot::DATA, low);
        }
        out.fold_in(even, folded);
    }

    fn both_halves(&self) -> [ChunkRange; 2] {
        [ChunkRange::new(0, self.power / 2), ChunkRange::new(self.power / 2, self.power)]
    }
}

impl Schedule for Halving {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        let rounds = 2 * self.rounds;
        match self.part(rank) {
            Part::Replaced => self.joining() + 1,
            Part::Pair(_) => rounds + self.joining() + 1,
            Part::Single(_) => rounds,
        }
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let (number, round) = match self.part(rank) {
            Part::Replaced => return self.replaced(rank, step, out),
            Part::Pair(_) if step < self.joining() => return self.join(rank, step, out),
            Part::Pair(_) if step + 1 == self.steps(rank) => {
                return out.send(RankId(rank.0 - 1), Slot::DATA, self.payload());
            }
            Part::Pair(number) => (number, step - self.joining()),
            Part::Single(number) => (number, step),
        };
        if round < self.rounds {
            self.halve(number, round, out);
        } else {
            self.double(number, round - self.rounds, out);
        }
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        let joining = self.joining();
        let round = match self.part(rank) {
            Part::Single(_) => step,
            _ if step < joining => return "pre-processing".to_owned(),
            _ if step + 1 == self.steps(rank) => return "post-processing".to_owned(),
            _ => step - joining,
        };
        if round < self.rounds {
            format!("reduce_scatter {round}")
        } else {
            format!("all_gather {}", round - self.rounds)
        }
    }
}

#[cfg(test)]
mod tests;
