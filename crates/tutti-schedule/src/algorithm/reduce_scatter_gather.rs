//! Reduce_scatter and gather: a reduce with the bytes of a reduce_scatter.
//!
//! The reverse of [`scatter_all_gather`](super::scatter_all_gather): every rank obtains a reduced
//! shard, and the root gathers the shards over a binomial tree. About twice the payload passes the
//! root, where a tree folds the payload log n times. The reduce_scatter is recursive halving (few
//! steps) or a ring. Sources: van de Geijn, "On global combine operations", J. Parallel Distrib.
//! Comput. 22 (1994); Rabenseifner, "Optimization of collective reduction operations", ICCS 2004;
//! as in MPICH (Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005)).

use super::{AlgorithmError, Entry, Request, binomial, recursive_halving_doubling, ring};
use crate::collective::Collective;

pub(super) const ENTRY: Entry = Entry {
    name: "reduce_scatter_gather",
    summary: "reduce as reduce_scatter plus binomial gather; few bytes, for large payloads",
    source: "van de Geijn 1994; Rabenseifner 2004",
    argument: "the reduce_scatter algorithm: `recursive_halving_doubling` (default) or `ring`",
    collectives: &["reduce"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && scatter(request).is_ok(),
    build: |request| request.in_sequence(ENTRY.name, &phases(request)?),
    // Where both have one: powers of two, root 0. The reduce_scatter ends on all ranks at once.
    critical_path: |request| request.stages_in_sequence(&phases(request).ok()?),
};

/// Returns the reduce_scatter algorithm.
fn scatter(request: &Request) -> Result<&'static Entry, AlgorithmError> {
    let all = [&recursive_halving_doubling::ENTRY, &ring::ENTRY];
    request.one_of(ENTRY.name, &all.map(|entry| (entry.name, entry)))
}

fn phases(request: &Request) -> Result<[(&'static Entry, Collective); 2], AlgorithmError> {
    let root = request.collective.root().unwrap_or_default();
    let gather = (&binomial::ENTRY, Collective::Gather { root });
    Ok([(scatter(request)?, Collective::ReduceScatter), gather])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;
    use tutti_units::ids::RankId;

    const RING: &str = "reduce_scatter_gather:ring";

    #[test]
    fn it_does_what_it_claims_at_every_rank_count() {
        for ranks in 2..=128 {
            check::claims(&ENTRY, ENTRY.name, ranks);
            check::claims(&ENTRY, RING, ranks);
        }
    }

    #[test]
    fn the_critical_path_is_exact_for_powers_of_two() {
        let at = |root| Collective::Reduce { root: RankId(root) };
        for ranks in [2, 4, 8, 16, 32, 64] {
            assert!(check::critical_path_is_exact(ENTRY.name, at(0), ranks));
            assert!(check::critical_path_is_exact(RING, at(0), ranks));
        }
        for (root, ranks) in [(0, 6), (1, 8)] {
            assert!(!check::critical_path_is_exact(ENTRY.name, at(root), ranks));
        }
    }

    #[test]
    fn other_arguments_are_refused() {
        let reduce = Collective::Reduce { root: RankId(0) };
        let error = crate::algorithm::build("reduce_scatter_gather:x", reduce, 4).err().unwrap();
        assert_eq!(
            error.to_string(),
            "`x` does not fit reduce_scatter_gather: expected `recursive_halving_doubling` or `ring`"
        );
    }
}
