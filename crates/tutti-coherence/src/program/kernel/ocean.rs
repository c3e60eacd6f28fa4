//! `ocean_like`: red-black over-relaxation on a grid.

use super::super::random::Random;
use super::super::sync::TreeBarrier;
use super::super::work;
use super::super::{Array, Core, Kernel, LINE_WORDS, Memory, Program, ProgramError, Scale};
use super::{Barrier, divisible, nearly_square, own, same_bits, threads};
use std::rc::Rc;

/// Over-relaxation factor.
const RELAXATION: f64 = 1.5;

/// Sweeps end once the largest change is below this value.
const TOLERANCE: f64 = 1e-9;

/// Red-black over-relaxation of a 5-point equation on an n by n grid, until the largest change of a
/// sweep is small or the maximum number of sweeps is reached.
///
/// A core has a rectangle of the grid that is contiguous in memory, and reads the edges of its four
/// neighbours' rectangles. A barrier follows each colour; the second one computes the largest
/// change. Expected: reads at the edges that one other cache serves, and much waiting for other
/// cores.
pub(super) struct OceanLike;

/// Points per side, and sweeps; the first sweep precedes the region of interest.
fn size(scale: Scale) -> (usize, usize) {
    match scale {
        Scale::Tiny => (16, 4),
        Scale::Small => (128, 6),
        Scale::Large => (256, 13),
    }
}

struct OceanData {
    n: usize,
    sweeps: usize,
    /// Rows and columns of cores.
    grid: [usize; 2],
    barrier: TreeBarrier,
    /// For each core, the points of its rectangle and their forces.
    points: Vec<Array>,
    forces: Vec<Array>,
    /// The largest change of each sweep, a line each.
    changes: Array,
}

/// Returns part `part` of `parts` of n rows or columns.
fn part(n: usize, part: usize, parts: usize) -> std::ops::Range<usize> {
    part * n / parts..(part + 1) * n / parts
}

impl OceanData {
    /// Returns the core of a point, and its index in the core's rectangle.
    fn place(&self, row: usize, column: usize) -> (usize, usize) {
        let [rows, columns] = self.grid;
        let of = |at: usize, parts: usize| ((at + 1) * parts - 1) / self.n;
        let (above, left) = (of(row, rows), of(column, columns));
        let (down, across) = (part(self.n, above, rows), part(self.n, left, columns));
        (above * columns + left, (row - down.start) * across.len() + column - across.start)
    }

    fn point(&self, row: usize, column: usize) -> u64 {
        let (core, place) = self.place(row, column);
        self.points[core].at(place)
    }
}

impl Kernel for OceanLike {
    fn name(&self) -> &'static str {
        "ocean_like"
    }

    fn summary(&self) -> &'static str {
        "red-black relaxation of a grid: edges of four neighbours, barriers"
    }

    fn program(&self, cores: u32, scale: Scale, seed: u64) -> Result<Program, ProgramError> {
        let (n, sweeps) = size(scale);
        divisible(self.name(), scale, cores, n * n / 4, "four points of its grid for each")?;
        let grid = nearly_square(cores as usize);
        let most = if grid[1] <= n { n * n / 4 } else { n };
        let why = "or more in a rectangle no wider than its grid";
        divisible(self.name(), scale, cores, most, why)?;
        let mut random = Random::new(seed, 0);
        let forces: Vec<f64> = (0..n * n).map(|_| random.between(-1.0, 1.0)).collect();
        let mut memory = Memory::new();
        let mut layout = OceanData {
            n,
            sweeps,
            grid,
            barrier: TreeBarrier::new(&mut memory, cores),
            points: Vec::new(),
            forces: Vec::new(),
            changes: memory.zeros(LINE_WORDS * sweeps),
        };
        for core in 0..cores as usize {
            let (down, across) =
                (part(n, core / grid[1], grid[0]), part(n, core % grid[1], grid[1]));
            let own = down.flat_map(|row| forces[row * n..][across.clone()].iter().copied());
            let own: Vec<f64> = own.collect();
            layout.points.push(memory.zeros(own.len()));
            layout.forces.push(memory.numbers(&own));
        }
        let layout = Rc::new(layout);
        let threads = threads(cores, |core| run(core, Rc::clone(&layout)));
        let check =
            Box::new(move |words: &[u64]| check(&layout, words, &serial(n, sweeps, &forces)));
        Ok(Program { threads, memory: memory.into_words(), check })
    }
}

fn check(layout: &OceanData, words: &[u64], expected: &(Vec<f64>, Vec<f64>)) -> Result<(), String> {
    let n = layout.n;
    let point = |index: usize| {
        let (core, place) = layout.place(index / n, index % n);
        f64::from_bits(layout.points[core].of(words)[place])
    };
    same_bits("point", &(0..n * n).map(point).collect::<Vec<_>>(), &expected.0)?;
    let changes: Vec<f64> = layout.changes.numbers(words).into_iter().step_by(LINE_WORDS).collect();
    same_bits("largest change", &changes, &expected.1)
}

async fn run(core: Core, layout: Rc<OceanData>) {
    let barrier = Barrier::from(layout.barrier);
    let id = core.id() as usize;
    for array in [&layout.points[id], &layout.forces[id]] {
        own(&core, array, 0..array.len()).await;
    }
    barrier.wait(&core).await;
    sweep(&core, &layout, &barrier, 0).await;
    barrier.begin(&core).await;
    for number in 1..layout.sweeps {
        let change = sweep(&core, &layout, &barrier, number).await;
        core.compute(work::ROUND + work::BRANCH);
        if change < TOLERANCE {
            break;
        }
    }
    barrier.end(&core).await;
}

/// Relaxes both colours; returns the largest change of all cores.
async fn sweep(core: &Core, layout: &OceanData, barrier: &Barrier, number: usize) -> f64 {
    let mut largest = 0.0_f64;
    for colour in 0..2 {
        largest = largest.max(relax(core, layout, colour).await);
        if colour == 0 {
            barrier.wait(core).await;
        }
    }
    let largest = barrier.largest(core, largest).await;
    if core.id() == 0 {
        core.store_f64(layout.changes.at(LINE_WORDS * number), largest).await;
    }
    largest
}

/// Relaxes the core's points of a colour; returns the largest change.
async fn relax(core: &Core, layout: &OceanData, colour: usize) -> f64 {
    let (n, id) = (layout.n, core.id() as usize);
    let [rows, columns] = layout.grid;
    let across = part(n, id % columns, columns);
    let mut largest = 0.0_f64;
    for row in part(n, id / columns, rows) {
        core.compute(work::ROUND);
        for column in across.clone().filter(|column| (row + column) % 2 == colour) {
            let mut sum = 0.0;
            for (down, right) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
                // Points outside the grid are 0.
                let (down, right) =
                    ((row + down).wrapping_sub(1), (column + right).wrapping_sub(1));
                if down < n && right < n {
                    sum += core.load_f64(layout.point(down, right)).await;
                }
            }
            let (_, place) = layout.place(row, column);
            let force = core.load_f64(layout.forces[id].at(place)).await;
            let old = core.load_f64(layout.points[id].at(place)).await;
            let (new, change) = relaxed(old, sum, force);
            core.store_f64(layout.points[id].at(place), new).await;
            largest = largest.max(change);
            // Sum, mean, difference, product, sum; change, absolute value, maximum. Addresses are
            // consecutive along a row.
            core.compute(4 * work::OPERATION + 4 * work::OPERATION + 3 * work::OPERATION);
            core.compute(work::INDEX + work::ROUND);
        }
    }
    largest
}

/// Returns a point's new value, and its change.
fn relaxed(old: f64, sum: f64, force: f64) -> (f64, f64) {
    let new = old + RELAXATION * (0.25 * (sum - force) - old);
    (new, (new - old).abs())
}

/// Returns the points, and the largest change of each sweep.
fn serial(n: usize, sweeps: usize, forces: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let (mut points, mut changes) = (vec![0.0; n * n], vec![0.0_f64; sweeps]);
    for (number, largest) in changes.iter_mut().enumerate() {
        for colour in 0..2 {
            for index in (0..n * n).filter(|index| (index / n + index % n) % 2 == colour) {
                let (row, column) = (index / n, index % n);
                let mut sum = if row > 0 { points[index - n] } else { 0.0 };
                sum += if column > 0 { points[index - 1] } else { 0.0 };
                sum += if column + 1 < n { points[index + 1] } else { 0.0 };
                sum += if row + 1 < n { points[index + n] } else { 0.0 };
                let (new, change) = relaxed(points[index], sum, forces[index]);
                points[index] = new;
                *largest = largest.max(change);
            }
        }
        if number > 0 && *largest < TOLERANCE {
            break;
        }
    }
    (points, changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_serial_sweeps_converge() {
        let mut random = Random::new(2, 0);
        let forces: Vec<f64> = (0..64).map(|_| random.between(-1.0, 1.0)).collect();
        let (points, changes) = serial(8, 200, &forces);
        let ended = changes.iter().position(|&change| change < TOLERANCE).unwrap();
        assert!((10..100).contains(&ended), "{ended}");
        let at = |row: usize, column: usize| {
            if (1..9).contains(&row) && (1..9).contains(&column) {
                points[(row - 1) * 8 + column - 1]
            } else {
                0.0
            }
        };
        for (index, force) in forces.iter().enumerate() {
            let (row, column) = (index / 8 + 1, index % 8 + 1);
            let around = at(row - 1, column)
                + at(row + 1, column)
                + at(row, column - 1)
                + at(row, column + 1);
            assert!((4.0 * at(row, column) - around + force).abs() < 1e-7);
        }
    }

    #[test]
    fn every_point_has_a_separate_place() {
        for cores in [1, 2, 6, 7, 12, 64] {
            let mut program_memory = Memory::new();
            let grid = nearly_square(cores);
            let layout = OceanData {
                n: 16,
                sweeps: 1,
                grid,
                barrier: TreeBarrier::new(&mut program_memory, 1),
                points: Vec::new(),
                forces: Vec::new(),
                changes: program_memory.zeros(1),
            };
            let mut places: Vec<_> =
                (0..256).map(|index| layout.place(index / 16, index % 16)).collect();
            places.sort_unstable();
            let lengths = (0..cores).map(|core| {
                part(16, core / grid[1], grid[0]).len() * part(16, core % grid[1], grid[1]).len()
            });
            let expected: Vec<_> = lengths
                .enumerate()
                .flat_map(|(core, length)| (0..length).map(move |place| (core, place)))
                .collect();
            assert_eq!(places, expected);
        }
    }
}
