//! Direct: every rank exchanges with every other rank in one step.
//!
//! This takes the fewest steps and the most messages: n - 1 from each rank. Every reduction folds
//! the contributions of all ranks in rank order, so the result has the bits of the sequential sum.
//! all_reduce has two forms. In `one_step` every rank receives every buffer and reduces the full
//! payload. `two_step` is a direct reduce_scatter and a direct all_gather, with the fewest bytes.
//! all_to_all works out of place. Sources: Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005), on
//! all_to_all and all_gather; one-shot and two-shot all_reduce as in TensorRT-LLM and MSCCL++.

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request, Stage};
use super::{sizes, unequal};
use crate::collective::Collective;
use crate::{ChunkRange, Digit, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "direct",
    summary: "every rank exchanges with every other rank at once; one step, most messages",
    source: "Thakur, Rabenseifner and Gropp 2005; one- and two-shot all_reduce: MSCCL++",
    argument: "for all_reduce: `one_step` (default) or `two_step`; for all_to_all and all_to_all_v: sizes of a grid of ranks, such as \
               `4x4`, whose offsets give the order of the messages",
    collectives: &[
        "all_reduce",
        "reduce_scatter",
        "all_gather",
        "broadcast",
        "reduce",
        "gather",
        "scatter",
        "all_to_all",
        "all_to_all_v",
        "barrier",
    ],
    ranks: "any",
    claims: |request| request.ranks >= 2 && two_step(request).is_ok(),
    build,
    critical_path,
};

/// The result slot of an all_to_all.
const RESULT: Slot = Slot(1);

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    if request.collective == Collective::AllToAllV {
        return unequal::build(&ENTRY, request, None);
    }
    if two_step(request)? {
        let halves = [(&ENTRY, Collective::ReduceScatter), (&ENTRY, Collective::AllGather)];
        return request.in_sequence(ENTRY.name, &halves);
    }
    let name = request.notation(ENTRY.name);
    let direct = Direct::new(name, request.collective, request.ranks);
    Ok(Arc::new(Direct { sizes: grid(request)?, ..direct }))
}

/// Returns the sizes of the grid of ranks, innermost first.
fn grid(request: &Request) -> Result<Vec<u32>, AlgorithmError> {
    match request.argument.filter(|_| exchanges(request)) {
        None => Ok(vec![request.ranks]),
        Some(argument) => sizes::read(argument, "dimension")
            .and_then(|sizes| sizes::fits(&sizes, request.ranks).map(|()| sizes))
            .map_err(|misfit| request.misfit(ENTRY.name, misfit)),
    }
}

/// Returns whether every rank has data for every rank.
fn exchanges(request: &Request) -> bool {
    matches!(request.collective, Collective::AllToAll | Collective::AllToAllV)
}

fn two_step(request: &Request) -> Result<bool, AlgorithmError> {
    if exchanges(request) {
        return grid(request).map(|_| false);
    }
    if request.argument.is_some() && request.collective != Collective::AllReduce {
        let problem = format!("{} takes no argument", request.collective);
        return Err(request.refuse(ENTRY.name, 0, problem));
    }
    request.one_of(ENTRY.name, &[("one_step", false), ("two_step", true)])
}

fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let (others, shards) = (request.ranks - 1, request.ranks);
    let stage = |messages, receives, reductions, of| Stage {
        messages,
        receives,
        chunks: 1,
        reductions,
        of,
    };
    let exchange = |reductions, of| stage(others, others, reductions, of);
    Some(match request.collective {
        Collective::AllReduce if two_step(request).ok()? => {
            vec![exchange(others, shards), exchange(0, shards)]
        }
        Collective::AllReduce | Collective::Barrier => vec![exchange(others, 1)],
        Collective::ReduceScatter => vec![exchange(others, shards)],
        Collective::AllGather | Collective::AllToAll => vec![exchange(0, shards)],
        Collective::Broadcast { .. } => vec![stage(others, 1, 0, 1)],
        Collective::Scatter { .. } => vec![stage(others, 1, 0, shards)],
        Collective::Reduce { .. } => vec![stage(1, others, others, 1)],
        Collective::Gather { .. } => vec![stage(1, others, 0, shards)],
        Collective::AllToAllV => return None,
    })
}

struct Direct {
    shape: Shape,
    /// Whether received chunks are combined (for a barrier: its tokens).
    reduces: bool,
    /// What a rank sends to a peer: its full buffer, its shard, or the peer's shard.
    sent: Sent,
    pattern: Pattern,
    /// The sizes of the grid of ranks, innermost first; one size without a grid.
    sizes: Vec<u32>,
}

#[derive(Clone, Copy)]
enum Pattern {
    Everyone,
    FromRoot(RankId),
    ToRoot(RankId),
}

#[derive(Clone, Copy)]
enum Sent {
    Buffer,
    Own,
    Theirs,
}

impl Direct {
    fn new(name: String, collective: Collective, ranks: u32) -> Direct {
        let reduces = collective.reduces() || collective == Collective::Barrier;
        let out_of_place = collective == Collective::AllToAll;
        let shape = Shape {
            name,
            collective,
            ranks,
            chunks: if collective.has_shards() { ranks } else { 1 },
            slots: if reduces { ranks } else { 1 + u32::from(out_of_place) },
            result: if out_of_place { RESULT } else { Slot::DATA },
        };
        let sent = match collective {
            Collective::AllGather | Collective::Gather { .. } => Sent::Own,
            Collective::ReduceScatter | Collective::Scatter { .. } | Collective::AllToAll => {
                Sent::Theirs
            }
            _ => Sent::Buffer,
        };
        let pattern = match collective {
            Collective::Broadcast { root } | Collective::Scatter { root } => {
                Pattern::FromRoot(root)
            }
            Collective::Reduce { root } | Collective::Gather { root } => Pattern::ToRoot(root),
            _ => Pattern::Everyone,
        };
        Direct { shape, reduces, sent, pattern, sizes: vec![ranks] }
    }

    fn chunks(&self, from: RankId, to: RankId) -> ChunkRange {
        ChunkRange::one(match self.sent {
            Sent::Buffer => 0,
            Sent::Own => from.0,
            Sent::Theirs => to.0,
        })
    }

    /// Returns the slot for chunks from `peer`; a reduction needs one slot per peer.
    fn slot(&self, rank: RankId, peer: RankId) -> Slot {
        if !self.reduces {
            return self.shape.result;
        }
        match peer.cmp(&rank) {
            std::cmp::Ordering::Less => Slot(peer.0 + 1),
            std::cmp::Ordering::Equal => Slot::DATA,
            std::cmp::Ordering::Greater => Slot(peer.0),
        }
    }

    fn send(&self, rank: RankId, peer: RankId, out: &mut Step) {
        out.send(peer, Slot::DATA, self.chunks(rank, peer));
    }

    fn receive(&self, rank: RankId, peer: RankId, out: &mut Step) {
        // In an all_to_all this rank's shard of the peer's buffer becomes the peer's shard of the
        // result.
        let out_of_place = self.shape.result == RESULT;
        let chunks = if out_of_place { ChunkRange::one(peer.0) } else { self.chunks(peer, rank) };
        out.recv(peer, self.slot(rank, peer), chunks);
    }

    /// Each rank starts with its right-hand neighbour, so that no two ranks start with the same
    /// peer.
    fn send_all(&self, rank: RankId, out: &mut Step) {
        for offset in 1..self.shape.ranks {
            self.send(rank, self.at(rank, offset, true), out);
        }
    }

    /// Returns the rank at an offset, or the rank to which `rank` is at that offset: digit by digit
    /// on the grid.
    fn at(&self, rank: RankId, offset: u32, ahead: bool) -> RankId {
        if self.sizes.len() == 1 {
            let moved = rank.0 + if ahead { offset } else { self.shape.ranks - offset };
            return RankId(moved.checked_sub(self.shape.ranks).unwrap_or(moved));
        }
        let (mut stride, mut found) = (1, 0);
        for &size in &self.sizes {
            let (place, offset) = (rank.0 / stride % size, offset / stride % size);
            let offset = if ahead { offset } else { size - offset };
            found += (place + offset) % size * stride;
            stride *= size;
        }
        RankId(found)
    }

    /// Receives from the left-hand neighbour first, in the order of arrival, then runs the local
    /// ops.
    fn receive_all(&self, rank: RankId, out: &mut Step) {
        for offset in 1..self.shape.ranks {
            self.receive(rank, self.at(rank, offset, false), out);
        }
        if self.reduces {
            let operands = (0..self.shape.ranks).map(|peer| self.slot(rank, RankId(peer)));
            out.reduce(Slot::DATA, operands, self.chunks(rank, rank));
        } else if self.shape.result == RESULT {
            out.copy(Slot::DATA, ChunkRange::one(rank.0), RESULT, rank.0);
        }
    }
}

impl Schedule for Direct {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        1
    }

    fn step(&self, rank: RankId, _step: u32, out: &mut Step) {
        match self.pattern {
            Pattern::FromRoot(root) if rank == root => self.send_all(rank, out),
            Pattern::FromRoot(root) => self.receive(rank, root, out),
            Pattern::ToRoot(root) if rank == root => self.receive_all(rank, out),
            Pattern::ToRoot(root) => self.send(rank, root, out),
            Pattern::Everyone => {
                self.send_all(rank, out);
                self.receive_all(rank, out);
            }
        }
    }

    fn symmetry(&self) -> Option<Vec<Digit>> {
        let Pattern::Everyone = self.pattern else { return None };
        let strides = self.sizes.iter().scan(1, |next, &size| {
            let stride = *next;
            *next *= size;
            Some(Digit { stride, size })
        });
        Some(strides.collect())
    }

    fn step_name(&self, _rank: RankId, _step: u32) -> String {
        "exchange".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;

    #[test]
    fn it_does_what_it_claims_at_every_rank_count() {
        for ranks in 2..=128 {
            check::claims(&ENTRY, "direct", ranks);
            check::performs("direct:two_step", Collective::AllReduce, ranks);
        }
    }

    #[test]
    fn a_grid_gives_the_order_of_an_all_to_all() {
        for notation in ["direct:2x2", "direct:4x3x2"] {
            let ranks = if notation.len() > 10 { 24 } else { 4 };
            check::performs(notation, Collective::AllToAll, ranks);
            assert!(check::is_symmetric(notation, Collective::AllToAll, ranks));
        }
        assert!(check::is_symmetric("direct", Collective::AllReduce, 7));
    }

    #[test]
    fn reductions_are_the_sequential_sum() {
        for ranks in [2, 3, 8, 13] {
            let sequential = |notation, collective| {
                check::performs(notation, collective, ranks).reproducibility.sequential
            };
            assert!(sequential("direct", Collective::AllReduce));
            assert!(sequential("direct:two_step", Collective::AllReduce));
            assert!(sequential("direct", Collective::ReduceScatter));
            assert!(sequential("direct", Collective::Reduce { root: RankId(1) }));
        }
    }

    #[test]
    fn the_critical_path_is_exact_at_every_rank_count() {
        for ranks in [2, 3, 5, 8, 16, 21] {
            for collective in Collective::ALL.into_iter().filter(|&c| c != Collective::AllToAllV) {
                assert!(check::critical_path_is_exact("direct", collective, ranks));
            }
            let two_step = "direct:two_step";
            assert!(check::critical_path_is_exact(two_step, Collective::AllReduce, ranks));
        }
    }

    #[test]
    fn other_arguments_are_refused() {
        let problem = |notation, collective| {
            crate::algorithm::build(notation, collective, 4).err().unwrap().to_string()
        };
        assert_eq!(
            problem("direct:three_step", Collective::AllReduce),
            "`three_step` does not fit direct: expected `one_step` or `two_step`"
        );
        assert_eq!(
            problem("direct:two_step", Collective::AllGather),
            "`two_step` does not fit direct: all_gather takes no argument"
        );
        assert_eq!(
            problem("direct:3x2", Collective::AllToAll),
            "`3x2` does not fit direct: 3x2 is 6 ranks: expected sizes whose product is 4"
        );
    }
}
