//! Dissemination: in every stage each rank tells n others, ever farther on, all that it knows.
//!
//! After stages 0 ... i - 1 a rank knows of itself and of the d - 1 ranks before it, d = (n + 1)^i. In
//! stage i it sends to the ranks d, 2 d, ... n d further on and hears from those as far back, so that it
//! knows of (n + 1) d ranks: ceil(log_(n+1) N) stages for any N, nobody waiting for a partner's partner. A
//! peer at distance N or more would tell nothing new and is left out. Sources: Hensgen, Finkel and
//! Manber, "Two algorithms for barrier synchronization", Int. J. Parallel Programming 17 (1988); with n
//! ways Hoefler, Mehlan, Mietke and Rehm, "Fast barrier synchronization for InfiniBand", IPDPS 2006.
//!
//! all_gather sends the shards themselves, to where they belong, each to every rank once: in the last
//! stage only those that are still missing. A run of shards that passes rank N - 1 takes two messages.
//!
//! all_reduce takes care that no contribution comes in twice, in as many rounds: see [`reducing`]. Every
//! rank folds the ring of ranks from another beginning, so that ranks end with different bits.

mod reducing;

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request, Stage};
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use reducing::Reducing;
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "dissemination",
    summary: "everyone tells n others, ever farther on, all it knows; fewest stages for any rank count",
    source: "Hensgen, Finkel and Manber 1988; n ways: Hoefler et al. 2006",
    argument: "n, to how many others a rank sends in a stage; 1 without",
    collectives: &["all_reduce", "all_gather", "barrier"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && ways(request).is_ok(),
    build,
    critical_path,
};

fn ways(request: &Request) -> Result<u32, AlgorithmError> {
    let no_number = "expected to how many others a rank sends, at least 1, as in `dissemination:2`";
    request.number(ENTRY.name, 1, 1, ["a rank tells at least 1 other in a stage", no_number])
}

/// One stage: peers are `distance`, 2 `distance`, ... `peers` `distance` further on.
#[derive(Clone, Copy)]
struct Round {
    distance: u32,
    peers: u32,
}

fn rounds(ranks: u32, ways: u32) -> Vec<Round> {
    let mut rounds = Vec::new();
    let mut known = 1;
    while known < ranks {
        let peers = ways.min((ranks - 1) / known);
        rounds.push(Round { distance: known, peers });
        known = known.saturating_mul(ways.saturating_add(1));
    }
    rounds
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let ways = ways(request)?;
    if request.collective == Collective::AllReduce {
        return Ok(Arc::new(Reducing::new(request.notation(ENTRY.name), request.ranks, ways)));
    }
    let rounds = rounds(request.ranks, ways);
    let gathers = request.collective == Collective::AllGather;
    let widest = rounds.iter().map(|round| round.peers).max().unwrap_or_default();
    let (chunks, slots) = if gathers { (request.ranks, 1) } else { (1, 1 + widest) };
    let shape = request.shape(ENTRY.name, chunks, slots);
    Ok(Arc::new(Dissemination { shape, rounds, gathers }))
}

/// All ranks do the same at the same time, but for the runs of an all_gather that take two messages:
/// there are none only where every message is of one shard.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let n = request.ranks;
    if request.collective == Collective::AllReduce {
        return Some(reducing_stages(n, ways(request).ok()?));
    }
    let rounds = rounds(n, ways(request).ok()?);
    let gathers = request.collective == Collective::AllGather;
    if gathers && rounds.iter().any(|round| round.distance > 1 && n - round.distance > 1) {
        return None;
    }
    let stage = |round: &Round| Stage {
        messages: round.peers,
        receives: round.peers,
        chunks: 1,
        reductions: if gathers { 0 } else { round.peers },
        of: if gathers { n } else { 1 },
    };
    Some(rounds.iter().map(stage).collect())
}

/// A second fold of a round is a stage without messages.
fn reducing_stages(ranks: u32, ways: u32) -> Vec<Stage> {
    let stage =
        |messages, reductions| Stage { messages, receives: messages, chunks: 1, reductions, of: 1 };
    let round = |(messages, folds): (u32, Vec<u32>)| {
        let first = folds.first().copied().unwrap_or_default();
        let more = folds.into_iter().skip(1).map(move |folded| stage(0, folded));
        std::iter::once(stage(messages, first)).chain(more)
    };
    reducing::work(ranks, ways).into_iter().flat_map(round).collect()
}

struct Dissemination {
    shape: Shape,
    rounds: Vec<Round>,
    /// Whether shards travel rather than a token.
    gathers: bool,
}

impl Dissemination {
    /// The shards of `sender` and of the ranks before it that are news to the rank `distance` further
    /// on; `known` are those that `sender` has.
    fn news(&self, sender: u32, distance: u32, known: u32) -> impl Iterator<Item = ChunkRange> {
        let n = self.shape.ranks;
        let len = known.min(n - distance);
        let end = sender + 1;
        let wrapped = len.saturating_sub(end);
        let runs = [ChunkRange::new(n - wrapped, n), ChunkRange::new(end - (len - wrapped), end)];
        runs.into_iter().filter(|run| !run.is_empty())
    }
}

impl Schedule for Dissemination {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        u32::try_from(self.rounds.len()).unwrap_or(u32::MAX)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let n = self.shape.ranks;
        let wrap = |value: u32| if value >= n { value - n } else { value };
        let Round { distance: known, peers } = self.rounds[step as usize];
        for way in 1..=peers {
            let distance = way * known;
            let (to, from) = (wrap(rank.0 + distance), wrap(rank.0 + n - distance));
            if self.gathers {
                for run in self.news(rank.0, distance, known) {
                    out.send(RankId(to), Slot::DATA, run);
                }
                for run in self.news(from, distance, known) {
                    out.recv(RankId(from), Slot::DATA, run);
                }
            } else {
                out.send(RankId(to), Slot::DATA, ChunkRange::one(0));
                out.recv(RankId(from), Slot(way), ChunkRange::one(0));
            }
        }
        if !self.gathers {
            out.reduce(Slot::DATA, (0..=peers).map(Slot), ChunkRange::one(0));
        }
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        format!("tell {step}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;

    #[test]
    fn it_does_what_it_claims_at_every_rank_count_and_in_every_number_of_ways() {
        for ranks in 2..=128 {
            check::claims(&ENTRY, "dissemination", ranks);
        }
        for ranks in 2..=40 {
            for ways in [2, 3, 4, 7, 30, u32::MAX] {
                check::claims(&ENTRY, &format!("dissemination:{ways}"), ranks);
            }
        }
    }

    #[test]
    fn a_barrier_has_a_closed_form_everywhere_and_an_all_gather_where_no_run_is_wide() {
        for ranks in 2..=64 {
            for ways in [1, 2, 3, 5] {
                let notation = format!("dissemination:{ways}");
                assert!(check::critical_path_is_exact(&notation, Collective::Barrier, ranks));
                let gather = check::critical_path_is_exact(&notation, Collective::AllGather, ranks);
                assert_eq!(gather, ranks <= ways + 2, "{notation}, {ranks} ranks");
            }
        }
    }

    #[test]
    fn an_all_reduce_has_a_closed_form_and_the_messages_of_a_barrier() {
        for (ranks, ways) in (2..=90).flat_map(|ranks| [1, 2, 3, 6, 89].map(|ways| (ranks, ways))) {
            let notation = format!("dissemination:{ways}");
            assert!(check::critical_path_is_exact(&notation, Collective::AllReduce, ranks));
            let [reduce, barrier] = [Collective::AllReduce, Collective::Barrier]
                .map(|collective| check::performs(&notation, collective, ranks));
            assert_eq!((reduce.steps, reduce.messages), (barrier.steps, barrier.messages));
        }
    }

    /// Of one round everything is there at once, and is folded in the order of the ranks.
    #[test]
    fn the_bits_of_an_all_reduce_differ_but_in_one_round() {
        for (ways, ranks) in [(1, 2), (2, 3), (4, 5), (9, 7)] {
            let notation = format!("dissemination:{ways}");
            assert!(
                check::performs(&notation, Collective::AllReduce, ranks).reproducibility.sequential
            );
        }
        for (ways, ranks) in [(1, 3), (1, 8), (2, 9), (3, 27)] {
            let notation = format!("dissemination:{ways}");
            let found = check::performs(&notation, Collective::AllReduce, ranks).reproducibility;
            assert!(!found.same_on_all_ranks && !found.rank_order, "{notation}, {ranks} ranks");
        }
    }

    /// The least s with (n + 1)^s >= N, and so many messages of a rank that nobody is told twice.
    #[test]
    fn stages_are_as_few_as_can_be() {
        for (ways, ranks, stages) in [(1, 2, 1), (1, 9, 4), (1, 16, 4), (2, 27, 3), (2, 28, 4)] {
            assert_eq!(rounds(ranks, ways).len(), stages, "{ways} ways, {ranks} ranks");
        }
        assert_eq!(rounds(5, 2).iter().map(|round| round.peers).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn what_is_no_number_of_ways_is_refused() {
        for (argument, at) in [("0", 0), (" x", 1), ("", 0), ("-2", 0)] {
            let notation = format!("dissemination:{argument}");
            let error = crate::algorithm::build(&notation, Collective::Barrier, 8).err().unwrap();
            assert!(matches!(error, AlgorithmError::Argument { at: found, .. } if found == at));
        }
    }
}
