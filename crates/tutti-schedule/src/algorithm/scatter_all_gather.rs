//! Scatter and all_gather: a broadcast with the bytes of a ring.
//!
//! The root scatters its buffer over a binomial tree, shard r to rank r, and an all_gather puts it
//! together again on every rank: about twice the payload passes each rank, where a tree's root sends it
//! log n times. Ranks go on to the all_gather as soon as they have their shard. The all_gather is a ring
//! (any rank count), recursive doubling (powers of two: fewer steps) or dissemination (any rank count: as few
//! steps; Bruck's, but in place). Sources: van de Geijn, "On global
//! combine operations", J. Parallel Distrib. Comput. 22 (1994); Thakur, Rabenseifner and Gropp,
//! "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005).

use std::sync::Arc;

use super::{
    AlgorithmError, Entry, Request, Stage, binomial, dissemination, recursive_doubling, ring,
};
use crate::collective::Collective;
use crate::{Phase, Schedule, Sequence};

pub(super) const ENTRY: Entry = Entry {
    name: "scatter_all_gather",
    summary: "a broadcast as binomial scatter and all_gather; few bytes, for large payloads",
    source: "van de Geijn 1994; Thakur, Rabenseifner and Gropp 2005",
    argument: "the all_gather: `ring` (also without), `dissemination` or, for powers of two, \
               `recursive_doubling`",
    collectives: &["broadcast"],
    ranks: "any; with `recursive_doubling` powers of two",
    claims: |request| request.ranks >= 2 && gather(request).is_ok() && root(request).is_some(),
    build,
    critical_path,
};

fn root(request: &Request) -> Option<tutti_units::ids::RankId> {
    match request.collective {
        Collective::Broadcast { root } => Some(root),
        _ => None,
    }
}

/// Which algorithm gathers.
fn gather(request: &Request) -> Result<&'static Entry, AlgorithmError> {
    match request.argument {
        None | Some("ring") => Ok(&ring::ENTRY),
        Some("dissemination") => Ok(&dissemination::ENTRY),
        Some("recursive_doubling") if request.ranks.is_power_of_two() => {
            Ok(&recursive_doubling::ENTRY)
        }
        Some("recursive_doubling") => Err(AlgorithmError::WrongRanks {
            name: ENTRY.name,
            ranks: request.ranks,
            needs: "a power of two for `recursive_doubling`".to_owned(),
        }),
        Some(argument) => Err(AlgorithmError::Argument {
            name: ENTRY.name,
            argument: argument.to_owned(),
            at: 0,
            problem: "expected `ring`, `dissemination` or `recursive_doubling`".to_owned(),
        }),
    }
}

/// What the two phases are asked for.
fn phases<'a>(request: &Request) -> Option<[Request<'a>; 2]> {
    let of = |collective| Request { collective, ranks: request.ranks, argument: None };
    Some([of(Collective::Scatter { root: root(request)? }), of(Collective::AllGather)])
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let name = match request.argument {
        Some(argument) => format!("{}:{argument}", ENTRY.name),
        None => ENTRY.name.to_owned(),
    };
    let gather = gather(request)?;
    let [down, across] = phases(request).expect("the registry lists broadcast alone");
    let phases = vec![
        Phase { name: "scatter".to_owned(), schedule: (binomial::ENTRY.build)(&down)? },
        Phase { name: "all_gather".to_owned(), schedule: (gather.build)(&across)? },
    ];
    let whole = Sequence::new(name, request.collective, phases);
    Ok(Arc::new(whole.expect("both phases have one chunk per rank and work in place")))
}

/// Where the scatter has one: powers of two, root 0. The rank that gets its shard last delays each
/// exchange of the all_gather by as much, so the two add up.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let [down, across] = phases(request)?;
    let mut stages = (binomial::ENTRY.critical_path)(&down)?;
    stages.extend((gather(request).ok()?.critical_path)(&across)?);
    Some(stages)
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
