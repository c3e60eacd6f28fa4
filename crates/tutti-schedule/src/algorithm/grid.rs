//! Grids of ranks and Hamiltonian cycles on them.
//!
//! Rank x + C y is in column x and row y of a grid `CxR`, as in a `mesh`.

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
        let expected = "expected columns and rows, such as `8x4`";
        if !text.contains('x') {
            return misfit(0, format!("invalid grid `{text}`: {expected}"));
        }
        match sizes::read(text, "grid")?[..] {
            [columns, rows] => Ok(Grid { columns, rows }),
            _ => misfit(0, format!("`{text}` has too many sizes: {expected}")),
        }
    }

    /// Checks that the grid has `ranks` ranks.
    pub(super) fn fits(self, ranks: u32) -> Result<(), Misfit> {
        sizes::fits(&[self.columns, self.rows], ranks)
    }
}

impl std::fmt::Display for Grid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.columns, self.rows)
    }
}

/// Splits a comma-separated argument whose last word may be `bidirectional`. Returns the text
/// before that word, and whether the word is present.
pub(super) fn bidirectional(argument: &str) -> (&str, bool) {
    let (before, last) = match argument.rsplit_once(',') {
        Some((before, last)) => (before, last),
        None => ("", argument),
    };
    if last.trim() == "bidirectional" { (before, true) } else { (argument, false) }
}

/// A Hamiltonian cycle of a grid along neighbours: along the first row, then alternately down and
/// up the columns of the other rows, from the last column back to the first. If the number of
/// columns is odd, rows and columns are swapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cycle {
    /// The length of the first line.
    long: u32,
    /// The number of further lines.
    deep: u32,
    by_column: bool,
}

impl Cycle {
    /// Returns `None` if both sides are odd: a cycle alternates between the colours of a
    /// chessboard, which then has one more square of one colour.
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

    /// Returns the column and row at step `turn` of the cycle.
    #[inline]
    pub(super) fn at(self, turn: u32) -> (u32, u32) {
        let (along, line) = match turn.checked_sub(self.long) {
            None => (turn, 0),
            Some(rest) => {
                let (lane, offset) = (rest / self.deep, rest % self.deep);
                (
                    self.long - 1 - lane,
                    if lane.is_multiple_of(2) { 1 + offset } else { self.deep - offset },
                )
            }
        };
        if self.by_column { (line, along) } else { (along, line) }
    }

    /// Returns the step at which the cycle visits a column and row.
    #[inline]
    pub(super) fn turn(self, (column, row): (u32, u32)) -> u32 {
        let (along, line) = if self.by_column { (row, column) } else { (column, row) };
        if line == 0 {
            return along;
        }
        let lane = self.long - 1 - along;
        let offset = if lane.is_multiple_of(2) { line - 1 } else { self.deep - line };
        self.long + lane * self.deep + offset
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

    /// The cycle of 4x4: the first row, then columns 3 down, 2 up, 1 down and 0 up.
    #[test]
    fn a_cycle_by_hand() {
        let cycle = Cycle::of(Grid { columns: 4, rows: 4 }).unwrap();
        let found: Vec<u32> = (0..16).map(|turn| cycle.at(turn)).map(|(x, y)| 4 * y + x).collect();
        assert_eq!(found, [0, 1, 2, 3, 7, 11, 15, 14, 10, 6, 5, 9, 13, 12, 8, 4]);
    }

    #[test]
    fn invalid_grids_are_refused() {
        let problem = |text: &str| Grid::read(text).unwrap_err();
        assert!(problem("2x2x2").problem.contains("too many sizes"));
        assert_eq!(
            problem("4").problem,
            "invalid grid `4`: expected columns and rows, such as `8x4`"
        );
        assert_eq!(problem("4x1").at, 2);
        assert_eq!(bidirectional("8x8:2x2, bidirectional"), ("8x8:2x2", true));
        assert_eq!(bidirectional("bidirectional"), ("", true));
        assert_eq!(bidirectional("8x8,2x2"), ("8x8,2x2", false));
    }
}
