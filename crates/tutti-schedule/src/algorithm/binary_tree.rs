//! Binary tree: a broadcast or a reduction in segments, with at most two children per rank.
//!
//! Ranks are numbered from the root, modulo n. Level l holds the numbers 2^l - 1 to 2^(l+1) - 2;
//! the children of number v on it are v + 2^l and v + 2^(l+1). Odd numbers are below the first
//! child of the root, even ones below the second. Segments follow each other along the tree, see
//! [`pipeline`](super::pipeline). A rank folds its contribution and then those of its children.
//!
//! With `in_order` a reduction folds in rank order, for every root. A subtree is a range of ranks
//! whose last rank is its root. Of the other ranks, the first half of the range, rounded down, is
//! the subtree of one child and the rest that of the other. The root of the tree is therefore rank
//! n - 1, which sends the result to any other root in one message. Sources: Open MPI's
//! `binary_tree` broadcast, `binary` and `in-order_binary` reduce; Pjesivac-Grbovic et al.,
//! "Performance analysis of MPI collective operations", Cluster Computing 10 (2007).

use std::sync::Arc;

use super::pipeline::{MOST_SEGMENTS, Options, Pipeline, Tree};
use super::{AlgorithmError, Entry, Request, Stage};
use crate::Schedule;
use crate::collective::Collective;

pub(super) const ENTRY: Entry = Entry {
    name: "binary_tree",
    summary: "broadcast or reduce along a binary tree, in segments; log n levels of two messages",
    source: "Pjesivac-Grbovic et al. 2007; Open MPI",
    argument: "[in_order,] [segments=C]: for reduce a tree that folds in rank order; the number of segments \
               (default 1)",
    collectives: &["broadcast", "reduce"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && form(request).is_ok(),
    build,
    critical_path,
};

struct Form {
    in_order: bool,
    segments: u32,
}

fn form(request: &Request) -> Result<Form, AlgorithmError> {
    let mut options = Options::of(request.argument);
    let in_order = options.word("in_order");
    let segments = options.number("segments", MOST_SEGMENTS);
    let segments = segments.and_then(|segments| {
        options.end("`in_order` or `segments=C`, such as `in_order,segments=4`")?;
        Ok(segments)
    });
    let segments = segments.map_err(|misfit| request.misfit(ENTRY.name, misfit))?;
    if in_order && !request.collective.reduces() {
        let problem = format!("{} does not support `in_order`", request.collective);
        return Err(request.refuse(ENTRY.name, 0, problem));
    }
    Ok(Form { in_order, segments })
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let (Form { in_order, segments }, ranks) = (form(request)?, request.ranks);
    let slots = if request.collective.reduces() { 3.min(ranks) } else { 1 };
    let shape = request.shape(ENTRY.name, segments, slots);
    Ok(match in_order {
        true => Arc::new(Pipeline::of_ranks(shape, InOrder { ranks })),
        false => Arc::new(Pipeline::from_root(shape, LevelOrder { ranks })),
    })
}

/// With one segment, two ranks or full levels: the second child is the last on each level. Upwards
/// all ranks of a level are ready at the same time.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let Form { in_order, segments } = form(request).ok()?;
    if segments > 1 {
        return None;
    }
    let stage =
        |messages, receives, reductions| Stage { messages, receives, chunks: 1, reductions, of: 1 };
    let (levels, children) = full_levels(request.ranks)?;
    let level = match request.collective {
        Collective::Broadcast { .. } => stage(children, 1, 0),
        _ => stage(1, children, children),
    };
    let last = request.collective.root().is_some_and(|root| root.0 == request.ranks - 1);
    let delivery = (in_order && !last).then(|| stage(1, 1, 0));
    Some(std::iter::repeat_n(level, levels as usize).chain(delivery).collect())
}

/// Returns the levels below the root and the children of inner ranks, if all levels are full.
pub(super) fn full_levels(ranks: u32) -> Option<(u32, u32)> {
    match ranks {
        2 => Some((1, 1)),
        _ => (ranks + 1).is_power_of_two().then(|| (ranks.ilog2(), 2)),
    }
}

/// A tree numbered level by level.
pub(super) struct LevelOrder {
    pub(super) ranks: u32,
}

impl Tree for LevelOrder {
    fn root(&self) -> u32 {
        0
    }

    fn parent(&self, number: u32) -> Option<u32> {
        let above = 1 << (number + 1).ilog2().checked_sub(1)?;
        let first = number - above;
        Some(if first < 2 * above - 1 { first } else { first - above })
    }

    fn children(&self, number: u32) -> impl Iterator<Item = u32> {
        let level = 1 << (number + 1).ilog2();
        [number + level, number + 2 * level].into_iter().filter(|&child| child < self.ranks)
    }

    fn fan_out(&self) -> u32 {
        2
    }
}

/// A tree whose subtrees are ranges, each with its last number as its root.
struct InOrder {
    ranks: u32,
}

/// A subtree, the parent of its root, and the ranges of its children: `start..middle` and
/// `middle..end`, one of which may be empty.
struct Subtree {
    parent: Option<u32>,
    start: u32,
    middle: u32,
    end: u32,
}

impl InOrder {
    /// Returns the subtree whose root is `number`.
    fn subtree(&self, number: u32) -> Subtree {
        let (mut parent, mut start, mut end) = (None, 0, self.ranks - 1);
        loop {
            let middle = start + (end + 1 - start) / 2;
            if number == end {
                return Subtree { parent, start, middle: middle.min(end), end };
            }
            parent = Some(end);
            if number < middle { end = middle - 1 } else { (start, end) = (middle, end - 1) }
        }
    }
}

impl Tree for InOrder {
    fn root(&self) -> u32 {
        self.ranks - 1
    }

    fn parent(&self, number: u32) -> Option<u32> {
        self.subtree(number).parent
    }

    fn children(&self, number: u32) -> impl Iterator<Item = u32> {
        let Subtree { start, middle, end, .. } = self.subtree(number);
        let ranges = [(start, middle), (middle, end)];
        ranges.into_iter().filter(|(start, end)| start < end).map(|(_, end)| end - 1)
    }

    fn fan_out(&self) -> u32 {
        2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;
    use tutti_units::ids::RankId;

    fn parents(tree: &impl Tree, ranks: u32) -> Vec<Option<u32>> {
        (0..ranks).map(|number| tree.parent(number)).collect()
    }

    #[test]
    fn it_does_what_it_claims_at_every_rank_count_and_needs_no_buffers() {
        for ranks in 2..=128 {
            for argument in ["", ":segments=5", ":in_order", ":in_order,segments=3"] {
                check::claims(&ENTRY, &format!("binary_tree{argument}"), ranks);
            }
            let reduce = Collective::Reduce { root: RankId(ranks / 2) };
            let proof = check::performs("binary_tree:segments=4,in_order", reduce, ranks);
            assert!(proof.rendezvous_safe() && proof.reproducibility.rank_order, "{ranks} ranks");
        }
    }

    /// The trees drawn in Open MPI's `coll_base_topo.c`.
    #[test]
    fn the_trees_are_open_mpi_s() {
        let drawn = [None, Some(0), Some(0), Some(1), Some(2), Some(1), Some(2)];
        assert_eq!(parents(&LevelOrder { ranks: 7 }, 7), drawn);
        for (ranks, drawn) in
            [(2, vec![1]), (3, vec![2, 2]), (4, vec![1, 3, 3]), (9, vec![1, 3, 3, 8, 5, 7, 7, 8])]
        {
            let found = parents(&InOrder { ranks }, ranks);
            assert_eq!(found, drawn.into_iter().map(Some).chain([None]).collect::<Vec<_>>());
        }
    }

    #[test]
    fn parents_and_children_agree() {
        fn agree(tree: &impl Tree, ranks: u32) {
            for number in 0..ranks {
                assert!(tree.children(number).all(|child| tree.parent(child) == Some(number)));
                let children = tree.children(number).count();
                assert!(children <= tree.fan_out() as usize);
                assert_eq!(tree.parent(number).is_none(), number == tree.root());
            }
            assert_eq!((0..ranks).flat_map(|at| tree.children(at)).count(), ranks as usize - 1);
        }
        for ranks in 2..=300 {
            agree(&LevelOrder { ranks }, ranks);
            agree(&InOrder { ranks }, ranks);
        }
    }

    #[test]
    fn the_critical_path_is_exact_for_full_levels() {
        let broadcast = Collective::Broadcast { root: RankId(1) };
        for ranks in [2, 3, 7, 15, 31] {
            assert!(check::critical_path_is_exact("binary_tree", broadcast, ranks));
            for root in [0, ranks - 1] {
                let reduce = Collective::Reduce { root: RankId(root) };
                assert!(check::critical_path_is_exact("binary_tree", reduce, ranks));
                assert!(check::critical_path_is_exact("binary_tree:in_order", reduce, ranks));
            }
        }
        for notation in ["binary_tree:segments=2", "binary_tree"] {
            let ranks = if notation.len() > 11 { 7 } else { 6 };
            assert!(!check::critical_path_is_exact(notation, broadcast, ranks));
        }
    }

    #[test]
    fn other_arguments_are_refused() {
        let problem = |notation: &str, collective| {
            crate::algorithm::build(notation, collective, 4).err().unwrap().to_string()
        };
        let [broadcast, reduce] =
            [Collective::Broadcast { root: RankId(0) }, Collective::Reduce { root: RankId(0) }];
        assert_eq!(
            problem("binary_tree:in_order", broadcast),
            "`in_order` does not fit binary_tree: broadcast does not support `in_order`"
        );
        assert_eq!(
            problem("binary_tree:segments=0", broadcast),
            "`segments=0` does not fit binary_tree: invalid number of segments `0`: expected 1 to \
             1048576"
        );
        assert_eq!(
            problem("binary_tree:in_order,segments=2, segments=2", reduce),
            "`in_order,segments=2, segments=2` does not fit binary_tree: `segments=2`: expected \
             `in_order` or `segments=C`, such as `in_order,segments=4`"
        );
    }
}
