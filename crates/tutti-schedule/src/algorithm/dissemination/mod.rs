//! Dissemination: in every stage each rank sends all it holds to n peers at growing distances.
//!
//! After stages 0 ... i - 1 a rank holds the data of itself and of the d - 1 ranks before it, d =
//! (n + 1)^i. In stage i it sends to the ranks d, 2 d, ... n d ahead and receives from those at the
//! same distances behind. It then holds the data of (n + 1) d ranks: ceil(log_(n+1) N) stages for
//! any N, without pre- or post-processing. Peers at distance N or more are left out. Sources:
//! Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", Int. J. Parallel
//! Programming 17 (1988); n-way: Hoefler, Mehlan, Mietke and Rehm, "Fast barrier synchronization
//! for InfiniBand", IPDPS 2006.
//!
//! all_gather sends the shards in place, each to every rank once; the last stage sends only the
//! missing shards. A range of shards that wraps around rank N - 1 takes two messages.
//!
//! all_reduce folds every contribution once, in the same number of rounds: see [`reducing`]. Every
//! rank starts the reduction at another rank of the ring, so the results differ in their bits.

mod reducing;

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request, Stage};
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use reducing::Reducing;
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "dissemination",
    summary: "each rank sends all it holds to n peers at growing distances; fewest stages for any rank count",
    source: "Hensgen, Finkel and Manber 1988; n-way: Hoefler et al. 2006",
    argument: "n, the number of peers that a rank sends to per stage; default 1",
    collectives: &["all_reduce", "all_gather", "barrier"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && ports(request).is_ok(),
    build,
    critical_path,
};

fn ports(request: &Request) -> Result<u32, AlgorithmError> {
    let not_a_number = "expected the number of peers per stage, an integer of at least 1, such as `dissemination:2`";
    request.number(ENTRY.name, 1, 1, ["expected at least 1 peer per stage", not_a_number])
}

/// One stage: the peers are `distance`, 2 `distance`, ... `peers` `distance` ahead.
#[derive(Clone, Copy)]
struct Round {
    distance: u32,
    peers: u32,
}

fn rounds(ranks: u32, ports: u32) -> Vec<Round> {
    let mut rounds = Vec::new();
    let mut known = 1;
    while known < ranks {
        let peers = ports.min((ranks - 1) / known);
        rounds.push(Round { distance: known, peers });
        known = known.saturating_mul(ports.saturating_add(1));
    }
    rounds
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let ports = ports(request)?;
    if request.collective == Collective::AllReduce {
        return Ok(Arc::new(Reducing::new(request.notation(ENTRY.name), request.ranks, ports)));
    }
    let rounds = rounds(request.ranks, ports);
    let gathers = request.collective == Collective::AllGather;
    let widest = rounds.iter().map(|round| round.peers).max().unwrap_or_default();
    let (chunks, slots) = if gathers { (request.ranks, 1) } else { (1, 1 + widest) };
    let shape = request.shape(ENTRY.name, chunks, slots);
    Ok(Arc::new(Dissemination { shape, rounds, gathers }))
}

/// All ranks act alike at the same time, except for ranges of an all_gather that take two messages.
/// No range takes two messages only if every message has one shard.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let n = request.ranks;
    if request.collective == Collective::AllReduce {
        return Some(reducing_stages(n, ports(request).ok()?));
    }
    let rounds = rounds(n, ports(request).ok()?);
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
fn reducing_stages(ranks: u32, ports: u32) -> Vec<Stage> {
    let stage =
        |messages, reductions| Stage { messages, receives: messages, chunks: 1, reductions, of: 1 };
    let round = |(messages, folds): (u32, Vec<u32>)| {
        let first = folds.first().copied().unwrap_or_default();
        let more = folds.into_iter().skip(1).map(move |folded| stage(0, folded));
        std::iter::once(stage(messages, first)).chain(more)
    };
    reducing::work(ranks, ports).into_iter().flat_map(round).collect()
}

struct Dissemination {
    shape: Shape,
    rounds: Vec<Round>,
    /// Whether messages carry shards rather than a token.
    gathers: bool,
}

impl Dissemination {
    /// Returns the shards of `sender` and of the ranks before it that the rank `distance` ahead
    /// lacks; `known` is the number that `sender` has.
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
        for multiple in 1..=peers {
            let distance = multiple * known;
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
                out.recv(RankId(from), Slot(multiple), ChunkRange::one(0));
            }
        }
        if !self.gathers {
            out.reduce(Slot::DATA, (0..=peers).map(Slot), ChunkRange::one(0));
        }
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        format!("stage {step}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;

    #[test]
    fn it_does_what_it_claims_at_every_rank_count_and_number_of_ports() {
        for ranks in 2..=128 {
            check::claims(&ENTRY, "dissemination", ranks);
        }
        for ranks in 2..=40 {
            for ports in [2, 3, 4, 7, 30, u32::MAX] {
                check::claims(&ENTRY, &format!("dissemination:{ports}"), ranks);
            }
        }
    }

    #[test]
    fn a_barrier_has_a_closed_form_everywhere_and_an_all_gather_where_no_run_is_wide() {
        for ranks in 2..=64 {
            for ports in [1, 2, 3, 5] {
                let notation = format!("dissemination:{ports}");
                assert!(check::critical_path_is_exact(&notation, Collective::Barrier, ranks));
                let gather = check::critical_path_is_exact(&notation, Collective::AllGather, ranks);
                assert_eq!(gather, ranks <= ports + 2, "{notation}, {ranks} ranks");
            }
        }
    }

    #[test]
    fn an_all_reduce_has_a_closed_form_and_the_messages_of_a_barrier() {
        for (ranks, ports) in
            (2..=90).flat_map(|ranks| [1, 2, 3, 6, 89].map(|ports| (ranks, ports)))
        {
            let notation = format!("dissemination:{ports}");
            assert!(check::critical_path_is_exact(&notation, Collective::AllReduce, ranks));
            let [reduce, barrier] = [Collective::AllReduce, Collective::Barrier]
                .map(|collective| check::performs(&notation, collective, ranks));
            assert_eq!((reduce.steps, reduce.messages), (barrier.steps, barrier.messages));
        }
    }

    /// In a single round all contributions arrive at once and are folded in rank order.
    #[test]
    fn the_bits_of_an_all_reduce_differ_but_in_one_round() {
        for (ports, ranks) in [(1, 2), (2, 3), (4, 5), (9, 7)] {
            let notation = format!("dissemination:{ports}");
            assert!(
                check::performs(&notation, Collective::AllReduce, ranks).reproducibility.sequential
            );
        }
        for (ports, ranks) in [(1, 3), (1, 8), (2, 9), (3, 27)] {
            let notation = format!("dissemination:{ports}");
            let found = check::performs(&notation, Collective::AllReduce, ranks).reproducibility;
            assert!(!found.same_on_all_ranks && !found.rank_order, "{notation}, {ranks} ranks");
        }
    }

    /// The smallest s with (n + 1)^s >= N, and no rank is sent the same data twice.
    #[test]
    fn stages_are_as_few_as_can_be() {
        for (ports, ranks, stages) in [(1, 2, 1), (1, 9, 4), (1, 16, 4), (2, 27, 3), (2, 28, 4)] {
            assert_eq!(rounds(ranks, ports).len(), stages, "{ports} ports, {ranks} ranks");
        }
        assert_eq!(rounds(5, 2).iter().map(|round| round.peers).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn invalid_numbers_of_ports_are_refused() {
        for (argument, at) in [("0", 0), (" x", 1), ("", 0), ("-2", 0)] {
            let notation = format!("dissemination:{argument}");
            let error = crate::algorithm::build(&notation, Collective::Barrier, 8).err().unwrap();
            assert!(matches!(error, AlgorithmError::Argument { at: found, .. } if found == at));
        }
    }
}
