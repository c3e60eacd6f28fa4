//! A ring along a Hamiltonian cycle of a grid instead of rank order.

use std::sync::Arc;

use crate::algorithm::grid::{Cycle, Grid};
use crate::{ChunkRange, Schedule, Shape, Step};
use tutti_units::ids::RankId;

/// A ring of the ranks of a grid in the order of a cycle. Shards are not reordered: shard r belongs
/// to rank r.
pub(super) struct Around {
    shape: Shape,
    inner: Arc<dyn Schedule>,
    columns: u32,
    cycle: Cycle,
    /// Chunks per shard; a message has one of them.
    pieces: u32,
}

impl Around {
    pub(super) fn new(name: String, inner: Arc<dyn Schedule>, grid: Grid, cycle: Cycle) -> Around {
        let shape = Shape { name, ..inner.shape().clone() };
        let pieces = shape.chunks / shape.ranks;
        Around { shape, inner, columns: grid.columns, cycle, pieces }
    }

    fn turn(&self, rank: RankId) -> RankId {
        RankId(self.cycle.turn((rank.0 % self.columns, rank.0 / self.columns)))
    }

    fn rank(&self, turn: u32) -> u32 {
        let (column, row) = self.cycle.at(turn);
        row * self.columns + column
    }
}

impl Schedule for Around {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        self.inner.steps(self.turn(rank))
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        self.inner.step(self.turn(rank), step, out);
        let chunk = |run: ChunkRange| {
            let (shard, piece) = (run.start / self.pieces, run.start % self.pieces);
            ChunkRange::one(self.rank(shard) * self.pieces + piece)
        };
        out.rewrite(|peer| RankId(self.rank(peer.0)), |slot| slot, chunk);
    }

    fn step_name(&self, rank: RankId, step: u32) -> String {
        self.inner.step_name(self.turn(rank), step)
    }
}

#[cfg(test)]
mod tests {
    use crate::Step;
    use crate::algorithm::{build, check};
    use crate::collective::Collective;
    use tutti_units::ids::RankId;

    const KINDS: [Collective; 3] =
        [Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather];

    /// Returns columns and rows of grids that have a cycle.
    fn grids() -> impl Iterator<Item = (u32, u32)> {
        let all = (2..=9).flat_map(|columns| (2..=8).map(move |rows| (columns, rows)));
        all.filter(|(columns, rows)| columns * rows % 2 == 0)
    }

    #[test]
    fn it_does_what_it_claims_and_takes_as_long_as_a_ring() {
        for ((columns, rows), kind) in grids().flat_map(|grid| KINDS.map(|kind| (grid, kind))) {
            for words in ["", ",bidirectional"] {
                let notation = format!("ring:{columns}x{rows}{words}");
                let proof = check::performs(&notation, kind, columns * rows);
                assert!(proof.rendezvous_safe() && proof.reproducibility.same_on_all_ranks);
                assert!(check::critical_path_is_exact(&notation, kind, columns * rows));
            }
        }
    }

    #[test]
    fn messages_go_to_neighbours_only_and_every_rank_sends_as_much() {
        for (columns, rows) in grids() {
            let notation = format!("ring:{columns}x{rows},bidirectional");
            let schedule = build(&notation, Collective::AllReduce, columns * rows).unwrap();
            for rank in 0..columns * rows {
                let mut chunks = 0;
                for index in 0..schedule.steps(RankId(rank)) {
                    let mut step = Step::new();
                    schedule.step(RankId(rank), index, &mut step);
                    for send in &step.sends {
                        let (x, y) = (send.peer.0 % columns, send.peer.0 / columns);
                        let far = x.abs_diff(rank % columns) + y.abs_diff(rank / columns);
                        assert_eq!(far, 1, "{notation}, {rank}");
                        chunks += send.chunks.len();
                    }
                }
                assert_eq!(chunks, 4 * (columns * rows - 1), "{notation}, {rank}");
            }
        }
    }

    /// Golden: the order of the published construction, first row and then back over the others.
    #[test]
    fn the_ring_of_four_by_four() {
        let schedule = build("ring:4x4", Collective::AllGather, 16).unwrap();
        let next = |rank| {
            let mut step = Step::new();
            schedule.step(RankId(rank), 0, &mut step);
            step.sends[0].peer.0
        };
        let ring: Vec<u32> =
            std::iter::successors(Some(0), |&rank| Some(next(rank))).take(17).collect();
        assert_eq!(ring, [0, 1, 2, 3, 7, 11, 15, 14, 10, 6, 5, 9, 13, 12, 8, 4, 0]);
    }

    #[test]
    fn grids_without_a_cycle_are_refused() {
        for (argument, ranks, expected) in [
            ("3x5", 15, "3x5 has no Hamiltonian cycle: expected an even number of rows or columns"),
            ("4x4", 15, "4x4 is 16 ranks: expected sizes whose product is 15"),
            ("4x4x4", 64, "`4x4x4` has too many sizes: expected columns and rows, such as `8x4`"),
            ("4x1", 4, "a grid has at least 2 ranks"),
            ("4x4,both", 16, "`4,both` is not a grid size"),
            ("4x4:bidirectional", 16, "is not a grid size"),
            (
                "",
                4,
                "expected `bidirectional`, `backward`, `blockwise`, `segments=K`, `node=G,channels=C`, a grid such as `4x4`, or `4x4,bidirectional`",
            ),
        ] {
            let error = build(&format!("ring:{argument}"), Collective::AllReduce, ranks).err();
            let error = error.unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let error = build("ring:4x4", Collective::AllToAll, 16).err().unwrap().to_string();
        assert!(error.contains("all_to_all does not support a grid"), "{error}");
    }
}
