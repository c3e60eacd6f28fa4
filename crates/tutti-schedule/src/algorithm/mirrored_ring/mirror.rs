//! Nested mirror images of a grid: the ranks that a level's ring joins, and their shares.
//!
//! Blocks tile the grid; blocks of blocks tile it again, and so on. Fold the grid along the edges
//! of the blocks of one level, like a sheet of paper: the ranks that coincide are each other's
//! **mirror images**, one in each of these blocks. A level's ring joins the mirror images within
//! one block of blocks, in the order of a Hamiltonian cycle through the blocks.

use crate::algorithm::grid::{Cycle, Grid};

/// One dimension of one level: a position is `(block x size + seat) x below + inside`.
#[derive(Clone, Copy, Debug)]
struct Side {
    /// The ranks along this dimension in a block of the levels below.
    below: u32,
    /// The number of these blocks along this dimension in a block of this level.
    size: u32,
}

impl Side {
    /// Returns the position in the first block below that coincides with `position` after folding.
    #[inline]
    fn folded(self, position: u32) -> u32 {
        let (block, inside) = (position / self.below, position % self.below);
        if block.is_multiple_of(2) { inside } else { self.below - 1 - inside }
    }

    /// Returns the index of the position's block below, within its block of this level.
    #[inline]
    fn seat(self, position: u32) -> u32 {
        position / self.below % self.size
    }

    /// Returns that seat, or a seat in the same block, as seen from ranks whose block is the first
    /// of the level above.
    #[inline]
    fn mirrored(self, position: u32, seat: u32) -> u32 {
        let block = position / self.below / self.size;
        if block.is_multiple_of(2) { seat } else { self.size - 1 - seat }
    }

    /// Returns the mirror image in another seat of the same block.
    #[inline]
    fn moved(self, position: u32, seat: u32) -> u32 {
        let inside = self.folded(position);
        let block = position / self.below / self.size * self.size + seat;
        block * self.below + if block.is_multiple_of(2) { inside } else { self.below - 1 - inside }
    }
}

/// A level of the hierarchy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    columns: u32,
    x: Side,
    y: Side,
    cycle: Cycle,
    /// The members of a ring.
    pub(super) size: u32,
    /// The shards left to a member: ranks over the sizes of all rings so far.
    pub(super) run: u32,
}

impl Level {
    /// Returns the levels of a grid whose sides are the products of the block sides, or the index
    /// of a block without a Hamiltonian cycle.
    pub(super) fn all(grid: Grid, blocks: &[Grid]) -> Result<Vec<Level>, usize> {
        let mut below = Grid { columns: 1, rows: 1 };
        let mut run = grid.columns * grid.rows;
        let mut levels = Vec::new();
        for (index, block) in blocks.iter().enumerate() {
            let cycle = Cycle::of(*block).ok_or(index)?;
            let size = block.columns * block.rows;
            run /= size;
            let x = Side { below: below.columns, size: block.columns };
            let y = Side { below: below.rows, size: block.rows };
            levels.push(Level { columns: grid.columns, x, y, cycle, size, run });
            below.columns *= block.columns;
            below.rows *= block.rows;
        }
        Ok(levels)
    }

    #[inline]
    fn place(&self, rank: u32) -> (u32, u32) {
        (rank % self.columns, rank / self.columns)
    }

    /// Returns the step at which the cycle of its ring visits a rank.
    #[inline]
    pub(super) fn turn(&self, rank: u32) -> u32 {
        let (column, row) = self.place(rank);
        self.cycle.turn((self.x.seat(column), self.y.seat(row)))
    }

    /// Returns the rank of the same ring that the cycle visits at that step.
    #[inline]
    pub(super) fn member(&self, rank: u32, turn: u32) -> u32 {
        let (column, row) = self.place(rank);
        let (x, y) = self.cycle.at(turn);
        self.y.moved(row, y) * self.columns + self.x.moved(column, x)
    }

    /// Returns the part of the ring's payload for the member at that step: mirror images of the
    /// levels above have the same part.
    #[inline]
    pub(super) fn share(&self, rank: u32, turn: u32) -> u32 {
        let (column, row) = self.place(rank);
        let (x, y) = self.cycle.at(turn);
        self.y.mirrored(row, y) * self.x.size + self.x.mirrored(column, x)
    }

    /// Whether the ring of a rank follows the direction of the cycle. Neighbouring rings have
    /// opposite directions, like the colours of a chessboard: their long edges share lines, one
    /// half in each direction.
    #[inline]
    pub(super) fn along(&self, rank: u32) -> bool {
        let (column, row) = self.place(rank);
        (self.x.folded(column) + self.y.folded(row)).is_multiple_of(2)
    }
}
