//! Recursive doubling: in stage i every rank exchanges with the rank whose number differs in bit i.
//!
//! For all_reduce and barrier this is MPICH's algorithm, with its pre- and post-processing for rank
//! counts other than powers of two. With 2^f the largest power below N and r = N - 2^f, the even
//! ranks below 2r first send their value to the odd rank above them, and receive the result from it
//! at the end. The participating ranks are renumbered, rank / 2 below 2r and rank - r above.
//! all_gather doubles the shards gathered by each pair of ranks, and requires a power of two. So
//! does all_to_all: every stage exchanges the half of a rank's parts that is for ranks across, see
//! [`exchange`](super::exchange). Sources: Thakur, Rabenseifner and Gropp, "Optimization of
//! collective communication operations in MPICH", IJHPCA 19 (2005); pre-processing as in algorithm
//! 1 of Ruefenacht, Bull and Booth, Parallel Computing 69 (2017).
//!
//! Every partial result covers consecutive ranks, and the lower half is folded first.

use std::sync::Arc;

use super::exchange::Exchange;
use super::{AlgorithmError, Entry, Request, Stage, pairwise};
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "recursive_doubling",
    summary: "pairwise exchanges at doubling distances; fewest stages of one message each",
    source: "Thakur, Rabenseifner and Gropp 2005 (MPICH)",
    argument: "",
    collectives: &["all_reduce", "all_gather", "all_to_all", "barrier"],
    ranks: "any; all_gather and all_to_all: powers of two",
    claims: |request| request.ranks >= 2 && check(request).is_ok(),
    build,
    critical_path,
};

fn check(request: &Request) -> Result<(), AlgorithmError> {
    let doubles = matches!(request.collective, Collective::AllGather | Collective::AllToAll);
    if doubles && !request.ranks.is_power_of_two() {
        let needs = format!("a power of two for {}", request.collective);
        return Err(request.wrong_ranks(ENTRY.name, needs));
    }
    Ok(())
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    check(request)?;
    if request.collective == Collective::AllGather {
        return Ok(Arc::new(Gathering { shape: request.shape(ENTRY.name, request.ranks, 1) }));
    }
    if request.collective == Collective::AllToAll {
        return exchange(request.ranks);
    }
    Ok(Arc::new(Doubling::new(ENTRY.name.to_owned(), request)))
}

/// all_to_all: a digit of base two at a time.
fn exchange(ranks: u32) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let pair = Request { collective: Collective::AllToAll, ranks: 2, argument: None };
    let sizes = vec![2; ranks.ilog2() as usize];
    let mut inners = Vec::new();
    for stage in 0..sizes.len() {
        inners.push((format!("exchange {stage}"), (pairwise::ENTRY.build)(&pair)?));
    }
    let all_to_all = Exchange::new(ENTRY.name.to_owned(), &sizes, inners);
    Ok(Arc::new(all_to_all.expect("every pair exchanges in a group of two")))
}

/// The delay of the ranks below 2r reaches a rank that returns a result only if two odd ranks there
/// differ in all bits of their new number. Those numbers are below r, so r must exceed half of 2^f.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let n = request.ranks;
    let log = n.ilog2();
    let stage = |chunks, reductions, of| Stage { messages: 1, receives: 1, chunks, reductions, of };
    if request.collective == Collective::AllToAll {
        return n.is_power_of_two().then(|| vec![stage(1, 0, 2); log as usize]);
    }
    if request.collective == Collective::AllGather {
        return n.is_power_of_two().then(|| (0..log).map(|i| stage(1 << i, 0, n)).collect());
    }
    let paired = n - (1 << log);
    let exchanges = std::iter::repeat_n(stage(1, 1, 1), log as usize);
    if paired == 0 {
        return Some(exchanges.collect());
    }
    let before = std::iter::once(stage(1, 1, 1));
    let after = std::iter::once(stage(1, 0, 1));
    (paired > 1 << (log - 1)).then(|| before.chain(exchanges).chain(after).collect())
}

/// all_reduce and barrier.
pub(super) struct Doubling {
    shape: Shape,
    /// Stages among the participating ranks.
    stages: u32,
    /// r, the ranks that do not participate.
    paired: u32,
}

impl Doubling {
    pub(super) fn new(name: String, request: &Request) -> Doubling {
        let stages = request.ranks.ilog2();
        let shape = Shape::in_place(name, request.collective, request.ranks, 1, 2);
        Doubling { shape, stages, paired: request.ranks - (1 << stages) }
    }

    fn is_paired(&self, rank: u32) -> bool {
        rank < 2 * self.paired
    }

    #[inline]
    fn exchange(&self, rank: u32, stage: u32, out: &mut Step) {
        let own = if self.is_paired(rank) { rank / 2 } else { rank - self.paired };
        let peer = own ^ (1 << stage);
        let peer = if peer < self.paired { peer * 2 + 1 } else { peer + self.paired };
        let payload = ChunkRange::one(0);
        out.fold_with((RankId(peer), rank < peer), Slot::DATA, payload, payload);
    }
}

impl Schedule for Doubling {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        match (self.is_paired(rank.0), rank.0 % 2) {
            (false, _) => self.stages,
            (true, 0) => 2,
            (true, _) => self.stages + 2,
        }
    }

    #[inline]
    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let payload = ChunkRange::one(0);
        if !self.is_paired(rank.0) {
            return self.exchange(rank.0, step, out);
        }
        let partner = RankId(rank.0 ^ 1);
        match (rank.0 % 2, step) {
            (0, 0) => out.send(partner, Slot::DATA, payload),
            (0, _) => out.recv(partner, Slot::DATA, payload),
            (_, 0) => out.fold_in(partner, payload),
            (_, step) if step <= self.stages => self.exchange(rank.0, step - 1, out),
            _ => out.send(partner, Slot::DATA, payload),
        }
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        match (self.is_paired(rank.0), step) {
            (false, step) => format!("exchange {step}"),
            (true, 0) => "collapse".to_owned(),
            (true, step) if step + 1 == self.steps(rank) => "expand".to_owned(),
            (true, step) => format!("exchange {}", step - 1),
        }
    }
}

/// all_gather among a power of two.
struct Gathering {
    shape: Shape,
}

impl Schedule for Gathering {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        self.shape.ranks.ilog2()
    }

    #[inline]
    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let distance = 1 << step;
        let gathered = |rank: u32| {
            let start = rank & !(distance - 1);
            ChunkRange::new(start, start + distance)
        };
        let peer = rank.0 ^ distance;
        out.trade(RankId(peer), Slot::DATA, gathered(rank.0), gathered(peer));
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        format!("exchange {step}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::build as lay_out;
    use super::super::check::{claims, critical_path_is_exact, folds_in_rank_order, performs};
    use super::*;

    #[test]
    fn performs_what_it_claims_and_in_rank_order() {
        for ranks in 2..=128 {
            claims(&ENTRY, "recursive_doubling", ranks);
            folds_in_rank_order("recursive_doubling", Collective::AllReduce, ranks);
        }
    }

    #[test]
    fn closed_forms_are_exact_where_there_are_any() {
        for ranks in 2..=128_u32 {
            let exact = critical_path_is_exact("recursive_doubling", Collective::AllReduce, ranks);
            let paired = ranks - (1 << ranks.ilog2());
            assert_eq!(exact, paired == 0 || 2 * paired > 1 << ranks.ilog2(), "{ranks} ranks");
        }
        for ranks in [2, 4, 8, 64] {
            assert!(critical_path_is_exact("recursive_doubling", Collective::AllGather, ranks));
            assert!(critical_path_is_exact("recursive_doubling", Collective::AllToAll, ranks));
        }
    }

    /// MPICH's method is `c(2r)m2,a2...,e(2r)m2`: the general algorithm must produce the same
    /// steps.
    #[test]
    fn is_recursive_multiplying_by_two() {
        for ranks in 2..=200_u32 {
            let exchanges = vec!["a2"; ranks.ilog2() as usize].join(",");
            let threshold = 2 * (ranks - (1 << ranks.ilog2()));
            let notation = match threshold {
                0 => exchanges,
                _ => format!("c{threshold}m2,{exchanges},e{threshold}m2"),
            };
            let doubling = lay_out("recursive_doubling", Collective::AllReduce, ranks).unwrap();
            let name = format!("recursive_multiplying:{notation}");
            let multiplying = lay_out(&name, Collective::AllReduce, ranks).unwrap();
            for rank in (0..ranks).map(RankId) {
                assert_eq!(doubling.steps(rank), multiplying.steps(rank));
                for index in 0..doubling.steps(rank) {
                    let (mut one, mut other) = (Step::new(), Step::new());
                    doubling.step(rank, index, &mut one);
                    multiplying.step(rank, index, &mut other);
                    assert_eq!(one, other, "{notation}, {rank}, step {index}");
                }
            }
        }
    }

    #[test]
    fn all_gather_refuses_other_rank_counts() {
        let error =
            lay_out("recursive_doubling", Collective::AllGather, 6).map(|_| ()).unwrap_err();
        let expected =
            "recursive_doubling does not work on 6 ranks: it needs a power of two for all_gather";
        assert_eq!(error.to_string(), expected);
        performs("recursive_doubling", Collective::AllGather, 16);
    }
}
