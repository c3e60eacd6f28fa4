//! Binomial tree: the k-nomial tree of radix 2.
//!
//! The oldest tree algorithm: every step doubles the number of ranks reached. Source: Thakur,
//! Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA
//! 19 (2005).

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request, Stage, knomial};
use crate::Schedule;

pub(super) const ENTRY: Entry = Entry {
    name: "binomial",
    summary: "binomial tree: each step doubles the ranks reached; fewest steps of one message each",
    source: "Thakur, Rabenseifner and Gropp 2005",
    argument: "",
    collectives: knomial::COLLECTIVES,
    ranks: "any",
    claims: |request| request.ranks >= 2,
    build,
    critical_path,
};

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    knomial::tree(request, 2, ENTRY.name.to_owned())
}

fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    knomial::stages(request, 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;
    use crate::collective::Collective;

    #[test]
    fn it_does_what_it_claims_at_every_rank_count() {
        for ranks in 2..=128 {
            check::claims(&ENTRY, ENTRY.name, ranks);
        }
    }

    #[test]
    fn the_critical_path_is_exact_for_powers_of_two() {
        for collective in Collective::ALL {
            for ranks in [2, 4, 8, 16, 32, 64] {
                if ENTRY.collectives.contains(&collective.name()) {
                    assert!(check::critical_path_is_exact(ENTRY.name, collective, ranks));
                }
            }
        }
    }
}
