//! k-ary tree: a broadcast or a reduction in segments, with K children per rank.
//!
//! Ranks are numbered from the root, modulo n. The children of number v are K v + 1 to K v + K: the
//! tree is filled level by level. Segments follow each other along the tree, see
//! [`pipeline`](super::pipeline). A rank folds its contribution and then those of its children. With
//! K = 1 this is a [`chain`](super::chain). In a [`binary_tree`](super::binary_tree) of Open MPI the
//! children of a rank have other numbers. Source: MPICH's `pipelined_tree` and `tree` broadcasts and
//! its `tree` reduce, with the tree type `kary`.

use std::sync::Arc;

use super::pipeline::{MOST_SEGMENTS, Options, Pipeline, Tree};
use super::{AlgorithmError, Entry, Request, Stage};
use crate::Schedule;
use crate::collective::Collective;

pub(super) const ENTRY: Entry = Entry {
    name: "kary_tree",
    summary: "broadcast or reduce along a k-ary tree, in segments; fewer, wider levels than a binary tree",
    source: "MPICH",
    argument: "[fanout=K,] [segments=C]: the children of a rank (default 2); the number of segments (default 1)",
    collectives: &["broadcast", "reduce"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && form(request).is_ok(),
    build,
    critical_path,
};

/// The default number of children.
const FAN_OUT: u32 = 2;

/// The tree, and the number of segments.
fn form(request: &Request) -> Result<(KAry, u32), AlgorithmError> {
    let mut options = Options::of(request.argument);
    let mut read = || {
        let fan_out = options.number_or("fanout", crate::MAX_RANKS, FAN_OUT)?;
        let segments = options.number("segments", MOST_SEGMENTS)?;
        options.end("`fanout=K` or `segments=C`, such as `fanout=8,segments=4`")?;
        Ok((fan_out, segments))
    };
    let (fan_out, segments) = read().map_err(|misfit| request.misfit(ENTRY.name, misfit))?;
    let ranks = request.ranks;
    Ok((KAry { ranks, fan_out: fan_out.min(ranks - 1) }, segments))
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let (tree, segments) = form(request)?;
    let slots = if request.collective.reduces() { 1 + tree.fan_out() } else { 1 };
    let shape = request.shape(ENTRY.name, segments, slots);
    Ok(Arc::new(Pipeline::from_root(shape, tree)))
}

/// With one segment and full levels: the last child is the last on each level. Upwards all ranks of
/// a level are ready at the same time.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let (KAry { ranks, fan_out }, segments) = form(request).ok()?;
    let (mut levels, mut width, mut below) = (0, 1, ranks - 1);
    while below > 0 {
        width *= fan_out;
        below = below.checked_sub(width)?;
        levels += 1;
    }
    let stage =
        |messages, receives, reductions| Stage { messages, receives, chunks: 1, reductions, of: 1 };
    let level = match request.collective {
        Collective::Broadcast { .. } => stage(fan_out, 1, 0),
        _ => stage(1, fan_out, fan_out),
    };
    (segments == 1).then(|| vec![level; levels])
}

struct KAry {
    ranks: u32,
    fan_out: u32,
}

impl Tree for KAry {
    fn root(&self) -> u32 {
        0
    }

    fn parent(&self, number: u32) -> Option<u32> {
        Some(number.checked_sub(1)? / self.fan_out)
    }

    fn children(&self, number: u32) -> impl Iterator<Item = u32> {
        let first = number.saturating_mul(self.fan_out).saturating_add(1);
        first..self.ranks.min(first.saturating_add(self.fan_out))
    }

    fn fan_out(&self) -> u32 {
        self.fan_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;
    use tutti_units::ids::RankId;

    const BOTH: [Collective; 2] =
        [Collective::Broadcast { root: RankId(1) }, Collective::Reduce { root: RankId(1) }];

    #[test]
    fn it_does_what_it_claims_at_every_rank_count_and_needs_no_buffers() {
        for ranks in 2..=128 {
            for argument in ["", ":segments=5", ":fanout=4", ":fanout=7,segments=3"] {
                let notation = &format!("kary_tree{argument}");
                check::claims(&ENTRY, notation, ranks);
                for collective in BOTH {
                    let proof = check::performs(notation, collective, ranks);
                    assert!(proof.rendezvous_safe(), "{notation}, {ranks} ranks");
                }
            }
        }
    }

    #[test]
    fn one_child_is_a_chain() {
        for (collective, ranks) in BOTH.into_iter().flat_map(|kind| [2, 3, 9].map(|n| (kind, n))) {
            let [tree, chain] = ["kary_tree:fanout=1,segments=4", "chain:segments=4"]
                .map(|text| crate::algorithm::build(text, collective, ranks).unwrap());
            check::same_steps(&*tree, &*chain);
        }
    }

    #[test]
    fn parents_and_children_agree() {
        for (ranks, fan_out) in (2..=80).flat_map(|ranks| [1, 2, 3, 8].map(|k| (ranks, k))) {
            let tree = KAry { ranks, fan_out };
            for number in 0..ranks {
                assert!(tree.children(number).all(|child| tree.parent(child) == Some(number)));
            }
            let edges = (0..ranks).flat_map(|number| tree.children(number)).count();
            assert_eq!(edges, ranks as usize - 1);
        }
    }

    #[test]
    fn the_critical_path_is_exact_for_full_levels() {
        for collective in BOTH {
            for (fan_out, full) in [(2, [2, 3, 7, 15]), (3, [3, 4, 13, 40]), (8, [2, 6, 9, 73])] {
                let notation = format!("kary_tree:fanout={fan_out}");
                for ranks in full {
                    assert!(check::critical_path_is_exact(&notation, collective, ranks));
                }
                assert!(!check::critical_path_is_exact(&notation, collective, 14));
            }
            assert!(!check::critical_path_is_exact("kary_tree:segments=2", collective, 7));
        }
    }

    #[test]
    fn other_arguments_are_refused() {
        for (argument, at) in [("fanout=0", 0), ("segments=2, fanout=x", 12), ("4", 0), ("", 0)] {
            let notation = format!("kary_tree:{argument}");
            let error = crate::algorithm::build(&notation, BOTH[0], 8).err().unwrap();
            assert!(matches!(error, AlgorithmError::Argument { at: found, .. } if found == at));
        }
    }
}
