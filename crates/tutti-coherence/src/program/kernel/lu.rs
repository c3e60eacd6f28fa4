//! `lu_like`: blocked LU factorisation.

use super::super::random::Random;
use super::super::sync::TreeBarrier;
use super::super::work;
use super::super::{Array, Core, Kernel, Memory, Program, ProgramError, Scale};
use super::{Barrier, divisible, nearly_square, own, same_bits, threads};

/// Rows of a block; a row of a block is a line.
const SIDE: usize = 8;

/// Right-looking LU factorisation of a diagonally dominant dense matrix, without pivoting, in
/// contiguous blocks of 8 by 8. Block (i, j) belongs to core (i mod r, j mod c) of a grid of r by
/// c.
///
/// In each step the owner of the diagonal block factors it, the owners of its row and column read
/// it and update theirs, and all others read two of those: one core writes, many read. Cores run
/// out of blocks towards the end, and wait at barriers. Expected: reads that another cache serves.
pub(super) struct LuLike;

/// Returns the number of blocks per side.
fn blocks(scale: Scale) -> usize {
    match scale {
        Scale::Tiny => 3,
        Scale::Small => 14,
        Scale::Large => 24,
    }
}

#[derive(Clone, Copy)]
struct LuData {
    blocks: usize,
    /// Rows and columns of cores.
    grid: [usize; 2],
    barrier: TreeBarrier,
    /// Blocks in row-major order, each row-major.
    matrix: Array,
}

impl LuData {
    fn owns(&self, core: &Core, row: usize, column: usize) -> bool {
        let [rows, columns] = self.grid;
        core.id() as usize == (row % rows) * columns + column % columns
    }

    /// Returns the index of a block's first element.
    fn block(&self, row: usize, column: usize) -> usize {
        (row * self.blocks + column) * SIDE * SIDE
    }
}

impl Kernel for LuLike {
    fn name(&self) -> &'static str {
        "lu_like"
    }

    fn summary(&self) -> &'static str {
        "blocked LU factorisation: one core writes a block, many read it"
    }

    fn program(&self, cores: u32, scale: Scale, seed: u64) -> Result<Program, ProgramError> {
        let blocks = blocks(scale);
        divisible(self.name(), scale, cores, blocks * blocks, "one per block of its matrix")?;
        let n = blocks * SIDE;
        let input = input(n, seed);
        let mut memory = Memory::new();
        let layout = LuData {
            blocks,
            grid: nearly_square(cores as usize),
            barrier: TreeBarrier::new(&mut memory, cores),
            matrix: memory.numbers(&by_blocks(&input, n)),
        };
        let expected = by_blocks(&serial(input, n), n);
        Ok(Program {
            threads: threads(cores, |core| run(core, layout)),
            memory: memory.into_words(),
            check: Box::new(move |words| {
                same_bits("element", &layout.matrix.numbers(words), &expected)
            }),
        })
    }
}

async fn run(core: Core, layout: LuData) {
    let barrier = Barrier::from(layout.barrier);
    let blocks = layout.blocks;
    for row in 0..blocks {
        for column in 0..blocks {
            if layout.owns(&core, row, column) {
                let first = layout.block(row, column);
                own(&core, &layout.matrix, first..first + SIDE * SIDE).await;
            }
        }
    }
    barrier.begin(&core).await;
    for step in 0..blocks {
        let diagonal = layout.block(step, step);
        if layout.owns(&core, step, step) {
            factor(&core, &layout.matrix, diagonal).await;
        }
        barrier.wait(&core).await;
        for other in step + 1..blocks {
            if layout.owns(&core, other, step) {
                divide(&core, &layout.matrix, diagonal, layout.block(other, step)).await;
            }
            if layout.owns(&core, step, other) {
                solve(&core, &layout.matrix, diagonal, layout.block(step, other)).await;
            }
            core.compute(work::ROUND + 2 * work::BRANCH);
        }
        barrier.wait(&core).await;
        update(&core, &layout, step).await;
    }
    barrier.end(&core).await;
}

/// Updates the trailing blocks of a step with the products of its row and column.
async fn update(core: &Core, layout: &LuData, step: usize) {
    for row in step + 1..layout.blocks {
        for column in step + 1..layout.blocks {
            core.compute(work::ROUND + work::BRANCH);
            if layout.owns(core, row, column) {
                let left = layout.block(row, step);
                let above = layout.block(step, column);
                let own = layout.block(row, column);
                for k in 0..SIDE {
                    for i in 0..SIDE {
                        subtract(
                            core,
                            &layout.matrix,
                            left + i * SIDE + k,
                            above + k * SIDE,
                            own + i * SIDE,
                            0,
                        )
                        .await;
                    }
                    core.compute(work::ROUND);
                }
            }
        }
    }
}

/// Subtracts from a row of a block, from a column on, a multiple of another row.
async fn subtract(core: &Core, matrix: &Array, by: usize, row: usize, from: usize, first: usize) {
    let factor = core.load_f64(matrix.at(by)).await;
    core.compute(work::INDEX_2D + work::ROUND);
    for column in first..SIDE {
        let other = core.load_f64(matrix.at(row + column)).await;
        let own = core.load_f64(matrix.at(from + column)).await;
        core.store_f64(matrix.at(from + column), own - factor * other).await;
        core.compute(2 * work::OPERATION + work::ROUND);
    }
}

/// Divides an element by one of the diagonal.
async fn divide_one(core: &Core, matrix: &Array, element: usize, diagonal: usize) {
    let pivot = core.load_f64(matrix.at(diagonal)).await;
    let own = core.load_f64(matrix.at(element)).await;
    core.store_f64(matrix.at(element), own / pivot).await;
    core.compute(work::DIVISION + 2 * work::INDEX);
}

/// Factors a diagonal block.
async fn factor(core: &Core, matrix: &Array, block: usize) {
    for k in 0..SIDE {
        for i in k + 1..SIDE {
            let row = block + i * SIDE;
            divide_one(core, matrix, row + k, block + k * SIDE + k).await;
            subtract(core, matrix, row + k, block + k * SIDE, row, k + 1).await;
        }
        core.compute(work::ROUND);
    }
}

/// Updates a block below the diagonal.
async fn divide(core: &Core, matrix: &Array, diagonal: usize, block: usize) {
    for k in 0..SIDE {
        for i in 0..SIDE {
            let row = block + i * SIDE;
            divide_one(core, matrix, row + k, diagonal + k * SIDE + k).await;
            subtract(core, matrix, row + k, diagonal + k * SIDE, row, k + 1).await;
        }
        core.compute(work::ROUND);
    }
}

/// Updates a block right of the diagonal.
async fn solve(core: &Core, matrix: &Array, diagonal: usize, block: usize) {
    for k in 0..SIDE {
        for i in k + 1..SIDE {
            subtract(core, matrix, diagonal + i * SIDE + k, block + k * SIDE, block + i * SIDE, 0)
                .await;
        }
        core.compute(work::ROUND);
    }
}

/// Returns a row-major, diagonally dominant matrix.
#[expect(clippy::cast_precision_loss, reason = "a small matrix")]
fn input(n: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed, 0);
    let element = |index| {
        let heavy = if index / n == index % n { n as f64 } else { 0.0 };
        heavy + random.between(-1.0, 1.0)
    };
    (0..n * n).map(element).collect()
}

/// Converts from row-major to block order.
fn by_blocks(matrix: &[f64], n: usize) -> Vec<f64> {
    let blocks = n / SIDE;
    let element = |index: usize| {
        let (block, within) = (index / (SIDE * SIDE), index % (SIDE * SIDE));
        let row = block / blocks * SIDE + within / SIDE;
        matrix[row * n + block % blocks * SIDE + within % SIDE]
    };
    (0..n * n).map(element).collect()
}

/// Factors without blocking. Each element sees the same subtractions in the same order, so the bits
/// are the same.
fn serial(mut matrix: Vec<f64>, n: usize) -> Vec<f64> {
    for k in 0..n {
        for i in k + 1..n {
            matrix[i * n + k] /= matrix[k * n + k];
            for j in k + 1..n {
                matrix[i * n + j] -= matrix[i * n + k] * matrix[k * n + j];
            }
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_of_the_serial_factors_is_the_matrix() {
        let n = 24;
        let (matrix, factors) = (input(n, 3), serial(input(n, 3), n));
        for (index, element) in matrix.iter().enumerate() {
            let (row, column) = (index / n, index % n);
            let term = |k: usize| {
                let left = if k == row { 1.0 } else { factors[row * n + k] };
                left * factors[k * n + column]
            };
            let sum: f64 = (0..=row.min(column)).map(term).sum();
            assert!((sum - element).abs() < 1e-12, "{row}, {column}");
        }
    }
}
