//! Chain: a broadcast or a reduction in segments along one or more chains of ranks.
//!
//! Ranks are numbered from the root, modulo n. The numbers 1 to n - 1 are divided into F ranges as
//! equal as possible, the longer ones first. Each is a chain: the root exchanges with the first
//! number, and every number with the next. Segments follow each other along the chains, see
//! [`pipeline`](super::pipeline), so with many segments a rank of a single chain sends and receives
//! the payload once and the time hardly depends on the number of ranks. A rank folds its
//! contribution and then those of the chains in order: with root 0 in rank order. Sources: Open
//! MPI's `pipeline` (one chain) and `chain` (four by default); Pjesivac-Grbovic et al.,
//! "Performance analysis of MPI collective operations", Cluster Computing 10 (2007).

use std::sync::Arc;

use super::pipeline::{MOST_SEGMENTS, Options, Pipeline, Tree};
use super::{AlgorithmError, Entry, Request, Stage};
use crate::Schedule;
use crate::collective::Collective;

pub(super) const ENTRY: Entry = Entry {
    name: "chain",
    summary: "broadcast or reduce along chains of ranks, in segments; fewest bytes per rank, most steps",
    source: "Pjesivac-Grbovic et al. 2007; Open MPI",
    argument: "[segments=C,] [fanout=F]: the number of segments (default 1); the number of chains (default 1)",
    collectives: &["broadcast", "reduce"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && form(request).is_ok(),
    build,
    critical_path,
};

/// The number of segments, and the chains.
fn form(request: &Request) -> Result<(u32, Chains), AlgorithmError> {
    let mut options = Options::of(request.argument);
    let mut read = || {
        let segments = options.number("segments", MOST_SEGMENTS)?;
        let fan_out = options.number("fanout", crate::MAX_RANKS)?;
        options.end("`segments=C` or `fanout=F`, such as `segments=64,fanout=4`")?;
        Ok((segments, fan_out))
    };
    let (segments, fan_out) = read().map_err(|misfit| request.misfit(ENTRY.name, misfit))?;
    Ok((segments, Chains::new(request.ranks, fan_out)))
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let (segments, chains) = form(request)?;
    let slots = if request.collective.reduces() { 1 + chains.fan_out() } else { 1 };
    let shape = request.shape(ENTRY.name, segments, slots);
    Ok(Arc::new(Pipeline::from_root(shape, chains)))
}

/// With one segment and equal chains: the last chain of a broadcast starts last. All chains of a
/// reduction end at the same time.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let (segments, Chains { length, longer, count, .. }) = form(request).ok()?;
    if segments > 1 || longer > 0 {
        return None;
    }
    let stage =
        |messages, receives, reductions| Stage { messages, receives, chunks: 1, reductions, of: 1 };
    let links = |stage| std::iter::repeat_n(stage, length as usize - 1);
    Some(match request.collective {
        Collective::Broadcast { .. } => {
            std::iter::once(stage(count, 1, 0)).chain(links(stage(1, 1, 0))).collect()
        }
        _ => links(stage(1, 1, 1)).chain([stage(1, count, count)]).collect(),
    })
}

struct Chains {
    ranks: u32,
    count: u32,
    /// The length of the shorter chains.
    length: u32,
    /// The number of chains that are longer by one; they come first.
    longer: u32,
}

impl Chains {
    fn new(ranks: u32, fan_out: u32) -> Chains {
        let others = ranks - 1;
        let count = fan_out.min(others);
        Chains { ranks, count, length: others / count, longer: others % count }
    }

    /// Returns the first number of a chain.
    fn head(&self, chain: u32) -> u32 {
        1 + chain * self.length + chain.min(self.longer)
    }

    /// Returns whether a number other than 0 is the first of its chain.
    fn is_head(&self, number: u32) -> bool {
        let (place, within) = (number - 1, self.longer * (self.length + 1));
        if place < within {
            place.is_multiple_of(self.length + 1)
        } else {
            (place - within).is_multiple_of(self.length)
        }
    }
}

impl Tree for Chains {
    fn root(&self) -> u32 {
        0
    }

    fn parent(&self, number: u32) -> Option<u32> {
        let previous = number.checked_sub(1)?;
        Some(if self.is_head(number) { 0 } else { previous })
    }

    fn children(&self, number: u32) -> impl Iterator<Item = u32> {
        let next = number + 1;
        let ends = number > 0 && (next == self.ranks || self.is_head(next));
        let heads = if number == 0 { self.count } else { 0 };
        let next = (number > 0 && !ends).then_some(next);
        (0..heads).map(|chain| self.head(chain)).chain(next)
    }

    fn fan_out(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;
    use tutti_units::ids::RankId;

    #[test]
    fn it_does_what_it_claims_at_every_rank_count_and_needs_no_buffers() {
        for ranks in 2..=128 {
            for argument in ["", ":segments=5", ":fanout=4", ":segments=3,fanout=7"] {
                let notation = &format!("chain{argument}");
                check::claims(&ENTRY, notation, ranks);
                let reduce = Collective::Reduce { root: RankId(0) };
                let proof = check::performs(notation, reduce, ranks);
                assert!(proof.rendezvous_safe() && proof.reproducibility.rank_order);
            }
        }
    }

    /// Nine ranks below the root in four chains, and two in more chains than ranks.
    #[test]
    fn longer_chains_come_first() {
        let parents = |ranks, fan_out| -> Vec<u32> {
            let chains = Chains::new(ranks, fan_out);
            (1..ranks).map(|number| chains.parent(number).unwrap()).collect()
        };
        assert_eq!(parents(10, 4), [0, 1, 2, 0, 4, 0, 6, 0, 8]);
        assert_eq!(parents(3, 4), [0, 0]);
        assert_eq!(parents(5, 1), [0, 1, 2, 3]);
    }

    #[test]
    fn parents_and_children_agree() {
        for (ranks, fan_out) in (2..=80).flat_map(|ranks| [1, 2, 3, 4, 9].map(|f| (ranks, f))) {
            let chains = Chains::new(ranks, fan_out);
            for number in 0..ranks {
                assert!(chains.children(number).all(|child| chains.parent(child) == Some(number)));
            }
            let edges = (0..ranks).flat_map(|number| chains.children(number)).count();
            assert_eq!(edges, ranks as usize - 1);
        }
    }

    #[test]
    fn the_critical_path_is_exact_for_equal_chains() {
        let broadcast = Collective::Broadcast { root: RankId(1) };
        let reduce = Collective::Reduce { root: RankId(1) };
        for collective in [broadcast, reduce] {
            for ranks in 2..=24 {
                assert!(check::critical_path_is_exact("chain", collective, ranks));
                let equal = check::critical_path_is_exact("chain:fanout=4", collective, ranks);
                assert_eq!(equal, ranks <= 5 || ranks % 4 == 1, "{ranks} ranks");
            }
            assert!(!check::critical_path_is_exact("chain:segments=2", collective, 4));
        }
    }

    #[test]
    fn other_arguments_are_refused() {
        for (argument, at) in [("fanout=0", 0), ("segments=2,fanout=x", 11), ("4", 0), ("", 0)] {
            let broadcast = Collective::Broadcast { root: RankId(0) };
            let notation = format!("chain:{argument}");
            let error = crate::algorithm::build(&notation, broadcast, 8).err().unwrap();
            assert!(matches!(error, AlgorithmError::Argument { at: found, .. } if found == at));
        }
    }
}
