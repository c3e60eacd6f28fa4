//! `fft_like`: six-step Fourier transform.

use super::super::random::Random;
use super::super::sync::TreeBarrier;
use super::super::work;
use super::super::{Array, Core, Kernel, Memory, Program, ProgramError, Scale};
use super::{Barrier, divisible, own, same_bits, threads, touch};

/// The six-step Fourier transform of n^2 complex numbers in an n by n matrix, n a power of two:
/// transpose, transform each row, multiply by twiddle factors, transpose, transform each row,
/// transpose.
///
/// A core has consecutive rows. In each transpose it reads a part of all other cores' rows, which
/// their owners wrote last: all-to-all reads from other caches in bursts between barriers. It then
/// works on its rows only. Expected: many reads that another cache serves, few stores to shared
/// lines.
pub(super) struct FftLike;

/// Returns the number of rows.
fn side(scale: Scale) -> usize {
    match scale {
        Scale::Tiny => 16,
        Scale::Small => 128,
        Scale::Large => 256,
    }
}

#[derive(Clone, Copy)]
struct FftData {
    n: usize,
    barrier: TreeBarrier,
    /// Real and imaginary parts interleaved, row-major.
    data: Array,
    other: Array,
    /// The n-th roots of unity that the transforms of rows use.
    roots: Array,
    /// Twiddle factors: exp(-2 pi i j k / n^2) for row j, column k.
    twiddles: Array,
}

impl Kernel for FftLike {
    fn name(&self) -> &'static str {
        "fft_like"
    }

    fn summary(&self) -> &'static str {
        "six-step Fourier transform: all-to-all reads in three transposes"
    }

    fn program(&self, cores: u32, scale: Scale, seed: u64) -> Result<Program, ProgramError> {
        let n = side(scale);
        divisible(self.name(), scale, cores, n, "one per row of its matrix")?;
        let mut random = Random::new(seed, 0);
        let input: Vec<f64> = (0..2 * n * n).map(|_| random.between(-1.0, 1.0)).collect();
        let mut memory = Memory::new();
        let layout = FftData {
            n,
            barrier: TreeBarrier::new(&mut memory, cores),
            data: memory.numbers(&input),
            other: memory.zeros(2 * n * n),
            roots: memory.numbers(&roots(n)),
            twiddles: memory.numbers(&twiddle_factors(n)),
        };
        let expected = serial(&input, n);
        Ok(Program {
            threads: threads(cores, |core| run(core, layout)),
            memory: memory.into_words(),
            check: Box::new(move |words| {
                same_bits("part", &layout.other.numbers(words), &expected)
            }),
        })
    }
}

async fn run(core: Core, layout: FftData) {
    let barrier = Barrier::from(layout.barrier);
    let n = layout.n;
    let rows = core.share(n);
    for array in [&layout.data, &layout.other, &layout.twiddles] {
        own(&core, array, 2 * n * rows.start..2 * n * rows.end).await;
    }
    touch(&core, &layout.roots).await;
    barrier.begin(&core).await;
    transpose(&core, &layout, &layout.data, &layout.other).await;
    for row in rows.clone() {
        transform(&core, &layout, &layout.other, row).await;
        multiply(&core, &layout, row).await;
    }
    barrier.wait(&core).await;
    transpose(&core, &layout, &layout.other, &layout.data).await;
    for row in rows {
        transform(&core, &layout, &layout.data, row).await;
    }
    barrier.wait(&core).await;
    transpose(&core, &layout, &layout.data, &layout.other).await;
    barrier.end(&core).await;
}

/// Fills the core's rows of `to` with columns of `from`. Starts at a different column on each core,
/// so that cores do not all read from the same one.
async fn transpose(core: &Core, layout: &FftData, from: &Array, to: &Array) {
    let n = layout.n;
    let rows = core.share(n);
    for column in (0..n).map(|column| (rows.start + column) % n) {
        for row in rows.clone() {
            let (source, target) = (2 * (column * n + row), 2 * (row * n + column));
            for part in 0..2 {
                let word = core.load(from.at(source + part)).await;
                core.store(to.at(target + part), word).await;
            }
            core.compute(2 * work::INDEX_2D + work::ROUND);
        }
        core.compute(work::ROUND);
    }
}

async fn load(core: &Core, array: &Array, index: usize) -> [f64; 2] {
    [core.load_f64(array.at(2 * index)).await, core.load_f64(array.at(2 * index + 1)).await]
}

async fn store(core: &Core, array: &Array, index: usize, [real, imaginary]: [f64; 2]) {
    core.store_f64(array.at(2 * index), real).await;
    core.store_f64(array.at(2 * index + 1), imaginary).await;
}

/// Transforms a row in place: bit reversal, then radix-2 butterflies.
async fn transform(core: &Core, layout: &FftData, data: &Array, row: usize) {
    let (n, first) = (layout.n, row * layout.n);
    for place in 0..n {
        let mirrored = place.reverse_bits() >> (usize::BITS - n.trailing_zeros());
        core.compute(work::ROUND + work::BRANCH + 2 * work::OPERATION);
        if place < mirrored {
            let one = load(core, data, first + place).await;
            let other = load(core, data, first + mirrored).await;
            store(core, data, first + place, other).await;
            store(core, data, first + mirrored, one).await;
            core.compute(2 * work::INDEX);
        }
    }
    let mut half = 1;
    while half < n {
        for place in (0..n).filter(|place| place & half == 0) {
            let root = load(core, &layout.roots, (place & (half - 1)) * (n / 2 / half)).await;
            let low = load(core, data, first + place).await;
            let high = load(core, data, first + place + half).await;
            let [sum, difference] = butterfly(low, high, root);
            store(core, data, first + place, sum).await;
            store(core, data, first + place + half, difference).await;
            core.compute(work::COMPLEX_PRODUCT + 2 * work::COMPLEX_SUM);
            core.compute(3 * work::INDEX + work::ROUND);
        }
        half *= 2;
        core.compute(work::ROUND);
    }
}

async fn multiply(core: &Core, layout: &FftData, row: usize) {
    for index in row * layout.n..(row + 1) * layout.n {
        let root = load(core, &layout.twiddles, index).await;
        let number = load(core, &layout.other, index).await;
        store(core, &layout.other, index, product(number, root)).await;
        core.compute(work::COMPLEX_PRODUCT + 2 * work::INDEX + work::ROUND);
    }
}

fn product([a, b]: [f64; 2], [c, d]: [f64; 2]) -> [f64; 2] {
    [a * c - b * d, a * d + b * c]
}

fn butterfly(low: [f64; 2], high: [f64; 2], root: [f64; 2]) -> [[f64; 2]; 2] {
    let high = product(high, root);
    [[low[0] + high[0], low[1] + high[1]], [low[0] - high[0], low[1] - high[1]]]
}

/// Returns exp(-2 pi i numerator / denominator).
#[expect(clippy::cast_precision_loss, reason = "indices of small matrices")]
fn root(numerator: usize, denominator: usize) -> [f64; 2] {
    let angle = -2.0 * std::f64::consts::PI * numerator as f64 / denominator as f64;
    [libm::cos(angle), libm::sin(angle)]
}

fn roots(n: usize) -> Vec<f64> {
    (0..n.div_ceil(2)).flat_map(|k| root(k, n)).collect()
}

fn twiddle_factors(n: usize) -> Vec<f64> {
    (0..n * n).flat_map(|index| root((index / n) * (index % n), n * n)).collect()
}

/// Computes the same transform by recursion. The sums are identical, and therefore the bits.
fn serial(input: &[f64], n: usize) -> Vec<f64> {
    let numbers: Vec<[f64; 2]> = input.chunks(2).map(|pair| [pair[0], pair[1]]).collect();
    let transposed = |matrix: &[[f64; 2]]| -> Vec<[f64; 2]> {
        (0..n * n).map(|index| matrix[(index % n) * n + index / n]).collect()
    };
    let rows = |matrix: &[[f64; 2]]| -> Vec<[f64; 2]> {
        matrix.chunks(n).flat_map(|row| recursive(row, n)).collect()
    };
    let mut matrix = rows(&transposed(&numbers));
    for (index, number) in matrix.iter_mut().enumerate() {
        *number = product(*number, root((index / n) * (index % n), n * n));
    }
    transposed(&rows(&transposed(&matrix))).concat()
}

/// Transforms a subsequence of `n` numbers by its even and odd elements.
fn recursive(numbers: &[[f64; 2]], n: usize) -> Vec<[f64; 2]> {
    if numbers.len() == 1 {
        return numbers.to_vec();
    }
    let every_other = |from: usize| -> Vec<[f64; 2]> {
        recursive(&numbers.iter().skip(from).step_by(2).copied().collect::<Vec<_>>(), n)
    };
    let (even, odd) = (every_other(0), every_other(1));
    let stride = n / numbers.len();
    let pairs = even.iter().zip(&odd).enumerate();
    let both = pairs.map(|(k, (&low, &high))| butterfly(low, high, root(k * stride, n)));
    let (sums, differences): (Vec<_>, Vec<_>) = both.map(|[sum, rest]| (sum, rest)).unzip();
    [sums, differences].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_serial_transform_matches_the_definition() {
        let mut random = Random::new(5, 0);
        let input: Vec<f64> = (0..2 * 64).map(|_| random.between(-1.0, 1.0)).collect();
        let result = serial(&input, 8);
        for frequency in 0..64 {
            let mut sum = [0.0, 0.0];
            for time in 0..64 {
                let term =
                    product([input[2 * time], input[2 * time + 1]], root(time * frequency, 64));
                sum = [sum[0] + term[0], sum[1] + term[1]];
            }
            for part in 0..2 {
                assert!((sum[part] - result[2 * frequency + part]).abs() < 1e-12);
            }
        }
    }
}
