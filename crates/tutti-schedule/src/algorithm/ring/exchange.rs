//! all_to_all on a ring: neighbours forward parts to their destinations.
//!
//! Parts that travel k ranks are at position k. In step s a rank forwards, in one message, all
//! parts that travel s or more ranks in total. Of the received parts it keeps the one at position
//! s, which has arrived. With two directions a part takes the shorter one, forward if both are
//! equal; parts that travel j ranks backwards are at position n - j.

use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

const RESULT: Slot = Slot(1);
/// Slots sent from in one step and received into in the next.
const TRAVELLING: [Slot; 2] = [Slot(2), Slot(3)];

pub(super) struct Exchange {
    shape: Shape,
    /// The distance of parts in each direction.
    forward: u32,
    back: u32,
}

impl Exchange {
    pub(super) fn new(name: String, ranks: u32, bidirectional: bool) -> Exchange {
        let in_place = Shape::in_place(name, Collective::AllToAll, ranks, ranks, 4);
        let shape = Shape { result: RESULT, ..in_place };
        let forward = if bidirectional { ranks / 2 } else { ranks - 1 };
        Exchange { shape, forward, back: ranks - 1 - forward }
    }

    /// Returns the number of parts that travel forward and backwards in each step.
    pub(super) fn lengths(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (1..=self.forward)
            .map(|step| (self.forward + 1 - step, (self.back + 1).saturating_sub(step)))
    }

    /// Copies parts in the order of their distance; the rank's part for itself has arrived.
    fn set_out(&self, rank: u32, out: &mut Step) {
        let n = self.shape.ranks;
        out.copy(Slot::DATA, ChunkRange::one(rank), RESULT, rank);
        for (run, to) in [(ChunkRange::new(rank + 1, n), 1), (ChunkRange::new(0, rank), n - rank)] {
            if !run.is_empty() {
                out.copy(Slot::DATA, run, TRAVELLING[1], to);
            }
        }
    }
}

impl Schedule for Exchange {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        1 + self.forward
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        if step == 0 {
            return self.set_out(rank.0, out);
        }
        let n = self.shape.ranks;
        let wrap = |value: u32| if value >= n { value - n } else { value };
        let (right, left) = (RankId(wrap(rank.0 + 1)), RankId(wrap(rank.0 + n - 1)));
        let (from, into) = (TRAVELLING[step as usize % 2], TRAVELLING[(step as usize + 1) % 2]);
        let onward = ChunkRange::new(step, self.forward + 1);
        out.send(right, from, onward);
        out.recv(left, into, onward);
        out.copy(into, ChunkRange::one(step), RESULT, wrap(rank.0 + n - step));
        if step <= self.back {
            let backward = ChunkRange::new(n - self.back, n - step + 1);
            out.send(left, from, backward);
            out.recv(right, into, backward);
            out.copy(into, ChunkRange::one(n - step), RESULT, wrap(rank.0 + step));
        }
    }

    fn step_name(&self, _rank: RankId, step: u32) -> String {
        if step == 0 { "order by distance".to_owned() } else { format!("all_to_all {}", step - 1) }
    }
}
