//! The argument of a mirrored ring.
//!
//! ```text
//! argument = [ grid [ ":" block { "," block } ] ] [ "," ] [ "bidirectional" ]
//! grid     = columns "x" rows       as many ranks as there are
//! block    = columns "x" rows       innermost first; their product, side by side, is the grid
//! ```
//!
//! Without blocks all blocks are 2x2, on a square with a side that is a power of two. Without a
//! grid, the grid is the square of that many ranks.

use super::mirror::Level;
use crate::algorithm::grid::{self, Grid};
use crate::algorithm::sizes::{Misfit, misfit};

/// The parsed argument.
pub(super) struct Form {
    pub(super) levels: Vec<Level>,
    pub(super) both: bool,
}

const BLOCK: Grid = Grid { columns: 2, rows: 2 };

/// Parses an argument; `None` without a grid if no square has that many ranks.
pub(super) fn read(argument: Option<&str>, ranks: u32) -> Result<Option<Form>, Misfit> {
    let (text, both) = argument.map_or(("", false), grid::bidirectional);
    if argument.is_some() && text.is_empty() && !both {
        return misfit(0, "expected a grid such as `8x8`, or `bidirectional`".to_owned());
    }
    let (grid, blocks) = match text.split_once(':') {
        _ if text.is_empty() => (square(ranks), None),
        Some((grid, blocks)) => (Some(Grid::read(grid)?), Some((blocks, grid.len() + 1))),
        None => (Some(Grid::read(text)?), None),
    };
    let Some(grid) = grid else { return Ok(None) };
    grid.fits(ranks)?;
    let blocks = match blocks {
        Some((blocks, at)) => named(grid, blocks, at)?,
        None => usual(grid)?,
    };
    let levels = Level::all(grid, &blocks).or_else(|index| {
        let block = blocks[index];
        misfit(0, format!("a block of {block} has no Hamiltonian cycle: expected an even number of rows or columns"))
    })?;
    Ok(Some(Form { levels, both }))
}

fn square(ranks: u32) -> Option<Grid> {
    let side = ranks.isqrt();
    (side.is_power_of_two() && side * side == ranks).then_some(Grid { columns: side, rows: side })
}

fn usual(grid: Grid) -> Result<Vec<Grid>, Misfit> {
    if square(grid.columns * grid.rows) != Some(grid) {
        let problem = format!(
            "{grid} is not a square with a side that is a power of two: expected blocks after the grid, \
             innermost first, as in `{grid}:2x2,...`"
        );
        return misfit(0, problem);
    }
    Ok(vec![BLOCK; grid.columns.ilog2() as usize])
}

fn named(grid: Grid, text: &str, mut at: usize) -> Result<Vec<Grid>, Misfit> {
    let start = at;
    let (mut blocks, mut all) = (Vec::new(), [1_u64; 2]);
    for part in text.split(',') {
        let block = Grid::read(part)
            .map_err(|Misfit { at: inside, problem }| Misfit { at: at + inside, problem })?;
        all =
            [all[0].saturating_mul(block.columns.into()), all[1].saturating_mul(block.rows.into())];
        blocks.push(block);
        at += part.len() + 1;
    }
    if all != [grid.columns, grid.rows].map(u64::from) {
        let [columns, rows] = all;
        let problem = format!("the product of the blocks is {columns}x{rows}: expected {grid}");
        return misfit(start, problem);
    }
    Ok(blocks)
}
