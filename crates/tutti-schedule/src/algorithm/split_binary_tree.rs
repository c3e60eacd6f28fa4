//! Split binary tree: a broadcast of each half of the payload down one half of a binary tree.
//!
//! The tree is that of [`binary_tree`](super::binary_tree). The root sends the first half of the
//! payload to its first child and the second half to its second one, each in C segments, and every
//! rank forwards its half. Odd numbers, counted from the root, thus hold the first half and even
//! ones the second. Then number v, if odd, exchanges its half with v + 1, in one message in each
//! direction. If the number of ranks is even, the last number has no partner: the root sends it the
//! second half. The root sends the payload once, where it sends it twice in a binary tree. Source:
//! Open MPI's `split_binary_tree` broadcast; Pjesivac-Grbovic et al., "Performance analysis of MPI
//! collective operations", Cluster Computing 10 (2007).

use std::sync::Arc;

use super::binary_tree::{LevelOrder, full_levels};
use super::pipeline::{MOST_SEGMENTS, Options, Tree};
use super::{AlgorithmError, Entry, Request, Stage};
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "split_binary_tree",
    summary: "broadcast of half of the payload per subtree of a binary tree, then exchanged in pairs",
    source: "Pjesivac-Grbovic et al. 2007; Open MPI",
    argument: "segments=C: the number of segments per half (default 1)",
    collectives: &["broadcast"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && segments(request).is_ok(),
    build,
    critical_path,
};

fn segments(request: &Request) -> Result<u32, AlgorithmError> {
    let mut options = Options::of(request.argument);
    let mut read = || {
        let segments = options.number("segments", MOST_SEGMENTS)?;
        options.end("`segments=C`, such as `segments=8`")?;
        Ok(segments)
    };
    read().map_err(|misfit| request.misfit(ENTRY.name, misfit))
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let segments = segments(request)?;
    Ok(Arc::new(SplitTree {
        shape: request.shape(ENTRY.name, 2 * segments, 1),
        root: request.collective.root().unwrap_or_default().0,
        segments,
        tree: LevelOrder { ranks: request.ranks },
    }))
}

/// With one segment and full levels of at least three ranks: the second child is the last on each
/// level, and its partner waits for its half.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let (levels, children) = full_levels(request.ranks)?;
    if segments(request).ok()? > 1 || children < 2 {
        return None;
    }
    let stage = |messages| Stage { messages, receives: 1, chunks: 1, reductions: 0, of: 2 };
    let down = std::iter::repeat_n(stage(2), levels as usize);
    Some(down.chain([stage(1)]).collect())
}

struct SplitTree {
    shape: Shape,
    root: u32,
    /// C, the segments per half.
    segments: u32,
    tree: LevelOrder,
}

impl SplitTree {
    fn number(&self, rank: RankId) -> u32 {
        let ahead = if rank.0 >= self.root { 0 } else { self.shape.ranks };
        rank.0 + ahead - self.root
    }

    fn rank(&self, number: u32) -> RankId {
        let rank = number + self.root;
        RankId(if rank >= self.shape.ranks { rank - self.shape.ranks } else { rank })
    }

    /// Returns the half of the payload that reaches a number along the tree: 0 for odd numbers.
    fn half(number: u32) -> u32 {
        u32::from(number.is_multiple_of(2))
    }

    fn chunk(&self, half: u32, segment: u32) -> ChunkRange {
        ChunkRange::one(half * self.segments + segment)
    }

    /// Returns all chunks of a half.
    fn complete(&self, half: u32) -> ChunkRange {
        ChunkRange::new(half * self.segments, (half + 1) * self.segments)
    }

    fn steps_along(&self, number: u32) -> u32 {
        let forwards = number > 0 && self.tree.children(number).next().is_some();
        self.segments + u32::from(forwards)
    }

    /// Returns the number that exchanges with `number`; the root is the partner of the last of an
    /// even number of ranks, and otherwise of none.
    fn partner(&self, number: u32) -> Option<u32> {
        let last = self.shape.ranks - 1;
        match number {
            0 => Some(last).filter(|last| !last.is_multiple_of(2)),
            _ if number.is_multiple_of(2) => Some(number - 1),
            _ if number == last => Some(0),
            _ => Some(number + 1),
        }
    }

    fn exchange(&self, number: u32, partner: u32, out: &mut Step) {
        let peer = self.rank(partner);
        if partner != 0 {
            out.send(peer, Slot::DATA, self.complete(SplitTree::half(number)));
        }
        if number != 0 {
            out.recv(peer, Slot::DATA, self.complete(1 - SplitTree::half(number)));
        }
    }
}

impl Schedule for SplitTree {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        let number = self.number(rank);
        self.steps_along(number) + u32::from(self.partner(number).is_some())
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        let number = self.number(rank);
        if step == self.steps_along(number) {
            if let Some(partner) = self.partner(number) {
                self.exchange(number, partner, out);
            }
            return;
        }
        let parent = self.tree.parent(number);
        if let Some(segment) = step.checked_sub(u32::from(parent.is_some())) {
            for child in self.tree.children(number) {
                let chunk = self.chunk(SplitTree::half(child), segment);
                out.send(self.rank(child), Slot::DATA, chunk);
            }
        }
        if let Some(parent) = parent.filter(|_| step < self.segments) {
            let chunk = self.chunk(SplitTree::half(number), step);
            out.recv(self.rank(parent), Slot::DATA, chunk);
        }
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        if step == self.steps_along(self.number(rank)) {
            return "exchange".to_owned();
        }
        format!("segment {step}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;
    use crate::collective::Collective;

    const NOTATIONS: [&str; 2] = [ENTRY.name, "split_binary_tree:segments=5"];

    #[test]
    fn it_does_what_it_claims_at_every_rank_count_and_needs_no_buffers() {
        for (ranks, notation) in (2..=128).flat_map(|ranks| NOTATIONS.map(|text| (ranks, text))) {
            check::claims(&ENTRY, notation, ranks);
            let root = RankId(ranks / 2);
            let proof = check::performs(notation, Collective::Broadcast { root }, ranks);
            assert!(proof.rendezvous_safe(), "{notation}, {ranks} ranks");
        }
    }

    #[test]
    fn the_critical_path_is_exact_for_full_levels() {
        for ranks in [3, 7, 15, 31] {
            let broadcast = Collective::Broadcast { root: RankId(1) };
            assert!(check::critical_path_is_exact(NOTATIONS[0], broadcast, ranks));
            assert!(!check::critical_path_is_exact(NOTATIONS[1], broadcast, ranks));
        }
    }

    /// The root sends the payload once, and a half more to the last of an even number of ranks.
    #[test]
    fn the_root_sends_each_half_once() {
        for (ranks, expected) in [(2, 8), (3, 8), (6, 12), (15, 8), (16, 12)] {
            let broadcast = Collective::Broadcast { root: RankId(0) };
            let schedule =
                crate::algorithm::build("split_binary_tree:segments=4", broadcast, ranks).unwrap();
            let mut out = Step::new();
            (0..schedule.steps(RankId(0))).for_each(|at| schedule.step(RankId(0), at, &mut out));
            let sent: u32 = out.sends.iter().map(|send| send.chunks.len()).sum();
            assert_eq!(sent, expected, "{ranks} ranks");
        }
    }

    #[test]
    fn other_arguments_are_refused() {
        let broadcast = Collective::Broadcast { root: RankId(0) };
        let problem =
            |notation| crate::algorithm::build(notation, broadcast, 4).err().unwrap().to_string();
        assert_eq!(
            problem("split_binary_tree:4"),
            "`4` does not fit split_binary_tree: `4`: expected `segments=C`, such as `segments=8`"
        );
    }
}
