//! K-nomial tree: every step multiplies the number of ranks reached by the radix.
//!
//! Ranks are counted from the root, modulo n. In base K, the parent of a rank is that rank with its
//! lowest non-zero digit set to zero. A subtree is therefore a range of ranks, and a reduction
//! folds adjacent ranges in order: with root 0 the result is folded in rank order. In a gather or
//! scatter with another root, a range may wrap around rank n - 1; its data is sent in two messages.
//! An all_reduce is a reduce to rank 0 and a broadcast from it; barrier does the same with a token.
//! Sources: binomial trees in Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005); any radix as in
//! UCC's and MPICH's k-nomial trees.

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request, Stage};
use crate::collective::Collective;
use crate::{ChunkRange, Phase, Schedule, Sequence, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) const COLLECTIVES: &[&str] =
    &["all_reduce", "broadcast", "reduce", "gather", "scatter", "barrier"];

pub(super) const ENTRY: Entry = Entry {
    name: "knomial",
    summary: "k-nomial tree: each step multiplies the ranks reached by K; fewer, wider steps than binomial",
    source: "MPICH and UCC; binomial: Thakur, Rabenseifner and Gropp 2005",
    argument: "K, the radix, at least 2; default 4",
    collectives: COLLECTIVES,
    ranks: "any",
    claims: |request| request.ranks >= 2 && radix(request).is_ok(),
    build,
    critical_path,
};

/// The default radix, that of UCC.
const RADIX: u32 = 4;

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    tree(request, radix(request)?, request.notation(ENTRY.name))
}

fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    stages(request, radix(request).ok()?)
}

fn radix(request: &Request) -> Result<u32, AlgorithmError> {
    let not_a_number = "expected the radix, an integer of at least 2, such as `knomial:4`";
    request.number(ENTRY.name, RADIX, 2, ["a tree's radix is at least 2", not_a_number])
}

/// Builds the tree of that radix.
pub(super) fn tree(
    request: &Request,
    radix: u32,
    name: String,
) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let root = RankId(0);
    let phase = |name: &str, collective, reduces| -> Arc<dyn Schedule> {
        Arc::new(Tree::new(name.to_owned(), collective, request.ranks, radix, reduces))
    };
    match request.collective {
        Collective::AllReduce | Collective::Barrier => {
            let up = phase(&name, Collective::Reduce { root }, true);
            let down = phase(&name, Collective::Broadcast { root }, false);
            let phases = vec![Phase::new("reduce", up), Phase::new("broadcast", down)];
            let sequence = Sequence::new(name, request.collective, phases);
            Ok(Arc::new(sequence.expect("both phases have the same ranks and one chunk")))
        }
        other => Ok(phase(&name, other, matches!(other, Collective::Reduce { .. }))),
    }
}

/// Returns the closed form if the tree is full: n = d K^h, so that only the top level has fewer
/// children.
///
/// Downwards the slowest rank is the last child of the last child; upwards all parents of a level
/// are ready at the same time. With another root some messages of gather and scatter come in two
/// parts.
pub(super) fn stages(request: &Request, radix: u32) -> Option<Vec<Stage>> {
    let ranks = request.ranks;
    let mut levels = Vec::new();
    let mut subtree = 1;
    while subtree < ranks {
        let children = (radix - 1).min(ranks / subtree - 1);
        if children == 0 {
            return None;
        }
        levels.push((subtree, children));
        subtree *= children + 1;
    }
    if subtree != ranks {
        return None;
    }
    let shards = request.collective.has_shards();
    if shards && request.collective.root() != Some(RankId(0)) {
        return None;
    }
    let of = if shards { ranks } else { 1 };
    let chunks = |subtree| if shards { subtree } else { 1 };
    let up = levels.iter().map(|&(subtree, children)| {
        let reductions = if shards { 0 } else { children };
        Stage { messages: 1, receives: children, chunks: chunks(subtree), reductions, of }
    });
    let down = levels.iter().rev().map(|&(subtree, children)| Stage {
        messages: children,
        receives: 1,
        chunks: chunks(subtree),
        reductions: 0,
        of,
    });
    Some(match request.collective {
        Collective::Reduce { .. } | Collective::Gather { .. } => up.collect(),
        Collective::Broadcast { .. } | Collective::Scatter { .. } => down.collect(),
        _ => up.chain(down).collect(),
    })
}

/// One phase of the tree: towards the root or away from it.
struct Tree {
    shape: Shape,
    root: u32,
    radix: u32,
    /// The powers of the radix below the rank count: the size of a full subtree per level.
    subtrees: Vec<u32>,
    /// Whether messages go towards the root.
    up: bool,
    reduces: bool,
    shards: bool,
}

impl Tree {
    fn new(name: String, collective: Collective, ranks: u32, radix: u32, reduces: bool) -> Tree {
        let shards = collective.has_shards();
        let powers = std::iter::successors(Some(1u32), |power| power.checked_mul(radix));
        let chunks = if shards { ranks } else { 1 };
        let slots = if reduces { radix.min(ranks) } else { 1 };
        Tree {
            shape: Shape::in_place(name, collective, ranks, chunks, slots),
            root: collective.root().unwrap_or_default().0,
            radix,
            subtrees: powers.take_while(|&power| power < ranks).collect(),
            up: matches!(collective, Collective::Reduce { .. } | Collective::Gather { .. }),
            reduces,
            shards,
        }
    }

    /// Returns the number of a rank, counted from the root.
    fn number(&self, rank: RankId) -> u32 {
        if rank.0 >= self.root { rank.0 - self.root } else { rank.0 + self.shape.ranks - self.root }
    }

    fn real(&self, number: u32) -> RankId {
        let rank = number + self.root;
        RankId(if rank >= self.shape.ranks { rank - self.shape.ranks } else { rank })
    }

    /// Returns the level at which a rank is attached to its parent, and that parent; all levels for
    /// the root.
    fn parent(&self, number: u32) -> (usize, u32) {
        let mut level = 0;
        while let Some(&above) = self.subtrees.get(level + 1) {
            let rest = number % above;
            if rest != 0 {
                return (level, number - rest);
            }
            level += 1;
        }
        if number == 0 { (self.subtrees.len(), 0) } else { (level, 0) }
    }

    /// Returns the number of levels, from the lowest, at which a rank attached at `level` has
    /// children.
    fn levels(&self, number: u32, level: usize) -> usize {
        let remaining = self.shape.ranks - number;
        let mut levels = level;
        while levels > 0 && self.subtrees[levels - 1] >= remaining {
            levels -= 1;
        }
        levels
    }

    fn children(&self, number: u32, level: usize) -> impl Iterator<Item = u32> {
        let subtree = self.subtrees[level];
        let last = (self.shape.ranks - 1 - number) / subtree;
        (1..=last.min(self.radix - 1)).map(move |digit| number + digit * subtree)
    }

    /// Returns the ranges of chunks of the subtree of `number`, which is attached at `level`.
    fn runs(&self, number: u32, level: usize) -> [ChunkRange; 2] {
        if !self.shards {
            return [ChunkRange::one(0), ChunkRange::default()];
        }
        let ranks = self.shape.ranks;
        let len = self.subtrees[level].min(ranks - number);
        let start = self.real(number).0;
        let end = start + len;
        [ChunkRange::new(start, end.min(ranks)), ChunkRange::new(0, end.saturating_sub(ranks))]
    }

    fn send(&self, number: u32, level: usize, peer: u32, out: &mut Step) {
        for run in self.runs(number, level).into_iter().filter(|run| !run.is_empty()) {
            out.send(self.real(peer), Slot::DATA, run);
        }
    }

    fn recv(&self, number: u32, level: usize, peer: u32, into: Slot, out: &mut Step) {
        for run in self.runs(number, level).into_iter().filter(|run| !run.is_empty()) {
            out.recv(self.real(peer), into, run);
        }
    }

    fn collect(&self, number: u32, level: usize, out: &mut Step) {
        let mut slots = 0;
        for child in self.children(number, level) {
            slots += u32::from(self.reduces);
            self.recv(child, level, child, Slot(slots), out);
        }
        if self.reduces {
            out.reduce(Slot::DATA, (0..=slots).map(Slot), ChunkRange::one(0));
        }
    }

    fn distribute(&self, number: u32, level: usize, out: &mut Step) {
        for child in self.children(number, level) {
            self.send(child, level, child, out);
        }
    }
}

impl Schedule for Tree {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        let number = self.number(rank);
        let levels = self.levels(number, self.parent(number).0);
        u32::try_from(levels).unwrap_or(u32::MAX) + u32::from(number != 0)
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let number = self.number(rank);
        let (level, parent) = self.parent(number);
        let levels = self.levels(number, level);
        let step = step as usize;
        if self.up {
            if step < levels {
                self.collect(number, step, out);
            } else {
                self.send(number, level, parent, out);
            }
        } else if number == 0 {
            self.distribute(number, levels - 1 - step, out);
        } else if step == 0 {
            self.recv(number, level, parent, Slot::DATA, out);
        } else {
            self.distribute(number, levels - step, out);
        }
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        let number = self.number(rank);
        let (level, _) = self.parent(number);
        let levels = self.levels(number, level);
        let step = step as usize;
        if self.up {
            if step < levels { format!("from children {step}") } else { "to parent".to_owned() }
        } else if step == 0 && number != 0 {
            "from parent".to_owned()
        } else {
            format!("to children {}", levels + usize::from(number != 0) - 1 - step)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;

    #[test]
    fn it_does_what_it_claims_at_every_rank_count() {
        for ranks in 2..=128 {
            check::claims(&ENTRY, "knomial", ranks);
        }
    }

    #[test]
    fn every_radix_works_also_those_above_the_rank_count() {
        for ranks in 2..=30 {
            for notation in
                ["knomial:2", "knomial:3", "knomial:5", "knomial:8", "knomial:4000000000"]
            {
                check::claims(&ENTRY, notation, ranks);
            }
        }
    }

    #[test]
    fn rank_0_folds_in_rank_order() {
        for ranks in 2..=40 {
            let reduce = Collective::Reduce { root: RankId(0) };
            check::folds_in_rank_order("knomial:3", reduce, ranks);
            check::folds_in_rank_order("knomial:4", Collective::AllReduce, ranks);
        }
    }

    #[test]
    fn the_critical_path_is_exact_for_full_trees() {
        let full = [("knomial:3", 27), ("knomial:3", 9), ("knomial:3", 18), ("knomial:4", 64)];
        let flat = [("knomial:4", 12), ("knomial:8", 5), ("knomial:16", 16), ("knomial:4", 3)];
        for (notation, ranks) in full.into_iter().chain(flat) {
            for name in COLLECTIVES {
                let collective = Collective::from_name(name, RankId(0)).unwrap();
                assert!(check::critical_path_is_exact(notation, collective, ranks));
            }
            let elsewhere = Collective::Broadcast { root: RankId(1) };
            assert!(check::critical_path_is_exact(notation, elsewhere, ranks));
        }
        let ragged = crate::algorithm::critical_path("knomial:4", Collective::AllReduce, 7);
        assert_eq!(ragged, Ok(None));
    }

    #[test]
    fn invalid_radices_are_refused() {
        for (notation, at) in
            [("knomial:1", 0), ("knomial: x", 1), ("knomial:", 0), ("knomial:-2", 0)]
        {
            let error = crate::algorithm::build(notation, Collective::AllReduce, 8).err().unwrap();
            assert!(matches!(error, AlgorithmError::Argument { at: found, .. } if found == at));
        }
    }
}
