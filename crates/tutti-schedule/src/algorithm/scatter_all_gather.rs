//! Scatter and all_gather: a broadcast with the bytes of a ring.
//!
//! The root scatters its buffer over a binomial tree, shard r to rank r, and an all_gather
//! assembles it on every rank. About twice the payload passes each rank, where a tree's root sends
//! it log n times. Ranks start the all_gather as soon as they have their shard. The all_gather is a
//! ring (any rank count), recursive doubling (powers of two: fewer steps) or dissemination (any
//! rank count: as few steps; Bruck's, but in place). Sources: van de Geijn, "On global combine
//! operations", J. Parallel Distrib. Comput. 22 (1994); Thakur, Rabenseifner and Gropp,
//! "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005).

use super::{AlgorithmError, Entry, Request, binomial, dissemination, recursive_doubling, ring};
use crate::collective::Collective;

pub(super) const ENTRY: Entry = Entry {
    name: "scatter_all_gather",
    summary: "broadcast as binomial scatter plus all_gather; few bytes, for large payloads",
    source: "van de Geijn 1994; Thakur, Rabenseifner and Gropp 2005",
    argument: "the all_gather algorithm: `ring` (default), `dissemination` or, for powers of two, \
               `recursive_doubling`",
    collectives: &["broadcast"],
    ranks: "any; powers of two with `recursive_doubling`",
    claims: |request| request.ranks >= 2 && gather(request).is_ok(),
    build: |request| request.in_sequence(ENTRY.name, &phases(request)?),
    // If the scatter has one: powers of two, root 0. The rank that receives its shard last delays
    // each exchange of the all_gather by the same time, so the two add up.
    critical_path: |request| request.stages_in_sequence(&phases(request).ok()?),
};

/// Returns the all_gather algorithm.
fn gather(request: &Request) -> Result<&'static Entry, AlgorithmError> {
    if request.argument == Some("recursive_doubling") && !request.ranks.is_power_of_two() {
        return Err(request.wrong_ranks(ENTRY.name, "a power of two for `recursive_doubling`"));
    }
    let all = [&ring::ENTRY, &dissemination::ENTRY, &recursive_doubling::ENTRY];
    request.one_of(ENTRY.name, &all.map(|entry| (entry.name, entry)))
}

fn phases(request: &Request) -> Result<[(&'static Entry, Collective); 2], AlgorithmError> {
    let root = request.collective.root().unwrap_or_default();
    let scatter = (&binomial::ENTRY, Collective::Scatter { root });
    Ok([scatter, (gather(request)?, Collective::AllGather)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;
    use tutti_units::ids::RankId;

    const DOUBLING: &str = "scatter_all_gather:recursive_doubling";

    #[test]
    fn it_does_what_it_claims_at_every_rank_count() {
        for ranks in 2..=128 {
            check::claims(&ENTRY, ENTRY.name, ranks);
            check::claims(&ENTRY, DOUBLING, ranks);
            check::claims(&ENTRY, "scatter_all_gather:dissemination", ranks);
        }
    }

    #[test]
    fn the_critical_path_is_exact_for_powers_of_two() {
        let at = |root| Collective::Broadcast { root: RankId(root) };
        for ranks in [2, 4, 8, 16, 32, 64] {
            assert!(check::critical_path_is_exact(ENTRY.name, at(0), ranks));
            assert!(check::critical_path_is_exact(DOUBLING, at(0), ranks));
        }
        let ragged = crate::algorithm::critical_path(ENTRY.name, at(0), 6);
        assert_eq!(ragged, Ok(None));
    }

    #[test]
    fn other_arguments_and_rank_counts_are_refused() {
        let problem = |notation, ranks| {
            let broadcast = Collective::Broadcast { root: RankId(0) };
            crate::algorithm::build(notation, broadcast, ranks).err().unwrap().to_string()
        };
        assert_eq!(
            problem("scatter_all_gather:x", 4),
            "`x` does not fit scatter_all_gather: expected `ring`, `dissemination` or `recursive_doubling`"
        );
        assert_eq!(
            problem(DOUBLING, 6),
            "scatter_all_gather does not work on 6 ranks: it needs a power of two for \
             `recursive_doubling`"
        );
    }
}
