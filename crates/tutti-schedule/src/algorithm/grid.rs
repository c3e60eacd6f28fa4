//! Grids of ranks, and cycles round them.
//!
//! Rank x + C y stands in column x and row y of a grid `CxR`, as the members of a `mesh` do.

use super::sizes::{self, Misfit, misfit};

/// A grid of at least two columns and two rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Grid {
    pub(super) columns: u32,
    pub(super) rows: u32,
}

impl Grid {
    /// Reads `8x4`: columns, then rows.
    pub(super) fn read(text: &str) -> Result<Grid, Misfit> {
        let expected = "expected columns and rows, as in `8x4`";
        if !text.contains('x') {
            return misfit(0, format!("`{text}` is no grid: {expected}"));
        }
        match sizes::read(text, "grid")?[..] {
            [columns, rows] => Ok(Grid { columns, rows }),
            _ => misfit(0, format!("`{text}` has too many sizes: {expected}")),
        }
    }

    /// Whether it holds so many ranks.
    pub(super) fn fits(self, ranks: u32) -> Result<(), Misfit> {
        sizes::fits(&[self.columns, self.rows], ranks)
    }
}

impl std::fmt::Display for Grid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.columns, self.rows)
    }
}

/// An argument with commas between its words, the last of which may be `bidirectional`: what comes before it,
/// and whether it is there.
pub(super) fn bidirectional(argument: &str) -> (&str, bool) {
    let (before, last) = match argument.rsplit_once(',') {
        Some((before, last)) => (before, last),
        None => ("", argument),
    };
    if last.trim() == "bidirectional" { (before, true) } else { (argument, false) }
}

/// A Hamiltonian cycle of a grid, from neighbour to neighbour: along the first row, then in turns down and up
/// the columns of the other rows, from the last column back to the first. Where the number of columns is odd,
/// rows and columns change places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cycle {
    /// Of the line that comes first.
    long: u32,
    /// How many more lines there are.
    deep: u32,
    by_column: bool,
}

impl Cycle {
    /// Nothing where both sizes are odd: a cycle alternates between the colours of a chessboard, which then has
    /// one more square of one than of the other.
    pub(super) fn of(grid: Grid) -> Option<Cycle> {
        let Grid { columns, rows } = grid;
        if columns.is_multiple_of(2) || rows == 2 {
            Some(Cycle { long: columns, deep: rows - 1, by_column: false })
        } else if rows.is_multiple_of(2) {
            Some(Cycle { long: rows, deep: columns - 1, by_column: true })
        } else {
            None
        }
    }

    /// The column and row that the cycle comes to at its `turn`-th place.
    #[inline]
    pub(super) fn at(self, turn: u32) -> (u32, u32) {
        let (along, line) = match turn.checked_sub(self.long) {
            None => (turn, 0),
            Some(rest) => {
                let (lane, way) = (rest / self.deep, rest % self.deep);
                (
                    self.long - 1 - lane,
                    if lane.is_multiple_of(2) { 1 + way } else { self.deep - way },
                )
            }
        };
        if self.by_column { (line, along) } else { (along, line) }
    }

    /// When it comes there.
    #[inline]
    pub(super) fn turn(self, (column, row): (u32, u32)) -> u32 {
        let (along, line) = if self.by_column { (row, column) } else { (column, row) };
        if line == 0 {
            return along;
        }
        let lane = self.long - 1 - along;
        let way = if lane.is_multiple_of(2) { line - 1 } else { self.deep - line };
        self.long + lane * self.deep + way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_go_from_neighbour_to_neighbour_through_all() {
        for (columns, rows) in (2..=9).flat_map(|columns| (2..=9).map(move |rows| (columns, rows)))
        {
            let Some(cycle) = Cycle::of(Grid { columns, rows }) else {
                assert_eq!((columns % 2, rows % 2), (1, 1));
                continue;
            };
            let mut seen = vec![false; (columns * rows) as usize];
            for turn in 0..columns * rows {
                let (x, y) = cycle.at(turn);
                let (next_x, next_y) = cycle.at((turn + 1) % (columns * rows));
                assert_eq!(x.abs_diff(next_x) + y.abs_diff(next_y), 1, "{columns}x{rows} {turn}");
                assert!(!std::mem::replace(&mut seen[(y * columns + x) as usize], true));
                assert_eq!(cycle.turn((x, y)), turn);
            }
        }
    }

    /// The one of four by four: the first row, then columns 3 down, 2 up, 1 down and 0 up.
    #[test]
    fn a_cycle_by_hand() {
        let cycle = Cycle::of(Grid { columns: 4, rows: 4 }).unwrap();
        let found: Vec<u32> = (0..16).map(|turn| cycle.at(turn)).map(|(x, y)| 4 * y + x).collect();
        assert_eq!(found, [0, 1, 2, 3, 7, 11, 15, 14, 10, 6, 5, 9, 13, 12, 8, 4]);
    }

    #[test]
    fn what_is_no_grid_is_refused() {
        let problem = |text: &str| Grid::read(text).unwrap_err();
        assert!(problem("2x2x2").problem.contains("too many sizes"));
        assert_eq!(problem("4").problem, "`4` is no grid: expected columns and rows, as in `8x4`");
        assert_eq!(problem("4x1").at, 2);
        assert_eq!(bidirectional("8x8:2x2, bidirectional"), ("8x8:2x2", true));
        assert_eq!(bidirectional("bidirectional"), ("", true));
        assert_eq!(bidirectional("8x8,2x2"), ("8x8,2x2", false));
    }
}
