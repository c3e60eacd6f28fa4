//! Blocks of four ranks: the accumulators, and the messages to and from them.

use std::sync::Arc;

use crate::algorithm::grid::Grid;
use crate::collective::Collective;
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

/// A position in a block: column and row, 0 or 1. Neighbouring blocks are mirror images of each
/// other, so that ranks on the border to the next block in one of them are on that border in the
/// next as well.
pub(super) type Seat = [u32; 2];

const SCRATCH: Slot = Slot(1);

/// The chunks of an accumulator for trees whose chunks reach it along one dimension first.
#[derive(Clone, Copy)]
struct Share {
    /// The first dimension: 0 along the row, 1 along the column.
    first: usize,
    of: Seat,
    chunks: ChunkRange,
}

/// The 2x2 blocks of a grid.
pub(super) struct Groups {
    grid: Grid,
    accumulators: Vec<Seat>,
    /// In chunk order: for each dimension the seats by their position along it, then along the
    /// other, so that chunks of one message are contiguous.
    shares: Vec<Share>,
}

impl Groups {
    pub(super) fn new(grid: Grid, accumulators: u32) -> Groups {
        let accumulators: Vec<Seat> = match accumulators {
            1 => vec![[1, 1]],
            2 => vec![[1, 0], [0, 1]],
            _ => vec![[0, 0], [1, 0], [0, 1], [1, 1]],
        };
        let trees = grid.columns * grid.rows / 4;
        let (mut shares, mut start) = (Vec::new(), 0);
        for first in [0, 1] {
            let mut seats = accumulators.clone();
            seats.sort_unstable_by_key(|seat| (seat[first], seat[1 - first]));
            for of in seats {
                let count = (0..trees).filter(|&tree| first_of(of, tree) == first).count();
                let end = start + u32::try_from(count).unwrap_or(0);
                shares.push(Share { first, of, chunks: ChunkRange::new(start, end) });
                start = end;
            }
        }
        Groups { grid, accumulators, shares }
    }

    pub(super) fn ranks(&self) -> u32 {
        self.grid.columns * self.grid.rows
    }

    pub(super) fn chunks(&self) -> u32 {
        self.shares.last().map_or(1, |share| share.chunks.end)
    }

    /// Returns the blocks as columns and rows.
    pub(super) fn mesh(&self) -> Grid {
        Grid { columns: self.grid.columns / 2, rows: self.grid.rows / 2 }
    }

    pub(super) fn accumulators(&self) -> &[Seat] {
        &self.accumulators
    }

    /// Returns the rank in a seat of a block.
    pub(super) fn member(&self, group: u32, seat: Seat) -> u32 {
        let columns = self.grid.columns / 2;
        let at = |block: u32, seat: u32| {
            2 * block + if block.is_multiple_of(2) { seat } else { 1 - seat }
        };
        at(group / columns, seat[1]) * self.grid.columns + at(group % columns, seat[0])
    }

    fn seat(&self, rank: u32) -> Seat {
        let along = |at: u32| if (at / 2).is_multiple_of(2) { at % 2 } else { 1 - at % 2 };
        [along(rank % self.grid.columns), along(rank / self.grid.columns)]
    }

    /// Returns the other rank of the block in the same row (0) or column (1).
    fn neighbour(&self, rank: u32, dimension: usize) -> RankId {
        let (column, row) = (rank % self.grid.columns, rank / self.grid.columns);
        RankId(if dimension == 0 {
            row * self.grid.columns + (column ^ 1)
        } else {
            (row ^ 1) * self.grid.columns + column
        })
    }

    /// Returns the chunk of a tree in the part of an accumulator.
    pub(super) fn chunk(&self, of: Seat, tree: u32) -> u32 {
        let first = first_of(of, tree);
        let share = self.shares.iter().find(|share| (share.first, share.of) == (first, of));
        share.map_or(0, |share| share.chunks.start + tree / 2)
    }

    /// Returns the chunks that travel along a dimension first and are for seats at a position along
    /// it, optionally only those at a position along the other dimension.
    fn run(&self, first: usize, place: u32, other: Option<u32>) -> ChunkRange {
        let selected = |share: &&Share| {
            share.first == first
                && share.of[first] == place
                && other.is_none_or(|other| share.of[1 - first] == other)
        };
        let mut found = self.shares.iter().filter(selected).map(|share| share.chunks);
        let Some(run) = found.next() else { return ChunkRange::default() };
        found.fold(run, |run, next| ChunkRange::new(run.start, next.end))
    }
}

/// Returns the dimension along which the chunk of a tree reaches an accumulator first. Each
/// dimension serves half of the trees; if their number is odd, one more goes along the row for one
/// half of the accumulators and along the column for the other half.
fn first_of(of: Seat, tree: u32) -> usize {
    usize::from(!(tree + of[0] + of[1]).is_multiple_of(2))
}

/// One of the two phases within blocks.
pub(super) struct Local {
    shape: Shape,
    groups: Arc<Groups>,
    gathers: bool,
}

impl Local {
    pub(super) fn new(name: String, groups: Arc<Groups>, gathers: bool) -> Local {
        let (ranks, chunks) = (groups.ranks(), groups.chunks());
        let shape = Shape::in_place(name, Collective::AllReduce, ranks, chunks, 2);
        Local { shape, groups, gathers }
    }

    /// In a step towards the accumulators along a dimension: the chunks for the neighbour's side,
    /// and for this rank's side.
    fn passes(&self, rank: u32, dimension: usize, step: u32) -> [ChunkRange; 2] {
        let seat = self.groups.seat(rank);
        let (here, across) = (seat[dimension], seat[1 - dimension]);
        [1 - here, here].map(|place| {
            if step == 0 {
                // The first hop of one half, to both seats of the neighbour's side.
                self.groups.run(dimension, place, None)
            } else {
                // The second hop of the other half, to the neighbour itself.
                self.groups.run(1 - dimension, across, Some(place))
            }
        })
    }
}

impl Schedule for Local {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, _rank: RankId) -> u32 {
        2
    }

    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        for dimension in [0, 1] {
            let peer = self.groups.neighbour(rank.0, dimension);
            let [theirs, ours] =
                self.passes(rank.0, dimension, if self.gathers { 1 - step } else { step });
            let (sent, received) = if self.gathers { (ours, theirs) } else { (theirs, ours) };
            if !sent.is_empty() {
                out.send(peer, Slot::DATA, sent);
            }
            if received.is_empty() {
                continue;
            }
            if self.gathers {
                out.recv(peer, Slot::DATA, received);
                continue;
            }
            out.recv(peer, SCRATCH, received);
            let in_order = if peer < rank { [SCRATCH, Slot::DATA] } else { [Slot::DATA, SCRATCH] };
            out.reduce(Slot::DATA, in_order, received);
        }
    }
}
