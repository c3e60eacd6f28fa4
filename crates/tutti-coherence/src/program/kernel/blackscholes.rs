//! `blackscholes_like`: option pricing by a closed form.

use super::super::random::Random;
use super::super::sync::TreeBarrier;
use super::super::work;
use super::super::{Array, Core, Kernel, LINE_WORDS, Memory, Program, ProgramError, Scale};
use super::{Barrier, divisible, own, same_bits, threads};

/// European options priced by the Black-Scholes formula, with a polynomial for the normal
/// distribution (Abramowitz and Stegun, 26.2.17).
///
/// A core has lines of prices, and a line of input per price; it accesses no data of other cores.
/// Expected: no traffic except that of barriers, so that the network has almost no effect.
pub(super) struct BlackscholesLike;

/// Number of options, and how often each is priced; the first time precedes the region of interest.
fn size(scale: Scale) -> (usize, usize) {
    match scale {
        Scale::Tiny => (512, 2),
        Scale::Small => (2048, 11),
        Scale::Large => (8192, 21),
    }
}

/// Cost of an option: two logarithms or exponentials of prices, two of the distribution.
const INSTRUCTIONS: u64 = 4 * work::TRANSCENDENTAL
    + 5 * work::DIVISION
    + 2 * (15 * work::OPERATION + work::BRANCH)
    + 17 * work::OPERATION
    + work::BRANCH;

#[derive(Clone, Copy)]
struct BlackscholesData {
    options: usize,
    times: usize,
    barrier: TreeBarrier,
    /// A line each: stock price, strike, rate, volatility, years, and 1 for a put.
    options_at: Array,
    prices: Array,
}

impl Kernel for BlackscholesLike {
    fn name(&self) -> &'static str {
        "blackscholes_like"
    }

    fn summary(&self) -> &'static str {
        "options priced by a formula: no shared data"
    }

    fn program(&self, cores: u32, scale: Scale, seed: u64) -> Result<Program, ProgramError> {
        let (options, times) = size(scale);
        divisible(self.name(), scale, cores, options / LINE_WORDS, "one per line of prices")?;
        let input = input(options, seed);
        let mut memory = Memory::new();
        let layout = BlackscholesData {
            options,
            times,
            barrier: TreeBarrier::new(&mut memory, cores),
            options_at: memory.numbers(&input.concat()),
            prices: memory.zeros(options),
        };
        let expected: Vec<f64> = input.iter().map(price).collect();
        Ok(Program {
            threads: threads(cores, |core| run(core, layout)),
            memory: memory.into_words(),
            check: Box::new(move |words| {
                same_bits("price", &layout.prices.numbers(words), &expected)
            }),
        })
    }
}

async fn run(core: Core, layout: BlackscholesData) {
    let barrier = Barrier::from(layout.barrier);
    let lines = core.share(layout.options / LINE_WORDS);
    let options = lines.start * LINE_WORDS..lines.end * LINE_WORDS;
    own(&core, &layout.prices, options.clone()).await;
    for time in 0..layout.times {
        if time == 1 {
            barrier.begin(&core).await;
        }
        for option in options.clone() {
            let mut terms = [0.0; LINE_WORDS];
            for (place, term) in terms.iter_mut().take(6).enumerate() {
                *term = core.load_f64(layout.options_at.at(option * LINE_WORDS + place)).await;
            }
            core.compute(INSTRUCTIONS + 2 * work::INDEX + work::ROUND);
            core.store_f64(layout.prices.at(option), price(&terms)).await;
        }
    }
    barrier.end(&core).await;
}

fn input(options: usize, seed: u64) -> Vec<[f64; LINE_WORDS]> {
    let mut random = Random::new(seed, 0);
    let option = |_| {
        let stock = random.between(20.0, 120.0);
        let strike = stock * random.between(0.8, 1.2);
        let (rate, volatility) = (random.between(0.01, 0.1), random.between(0.05, 0.6));
        let years = random.between(0.1, 2.0);
        let put = if random.unit() < 0.5 { 1.0 } else { 0.0 };
        [stock, strike, rate, volatility, years, put, 0.0, 0.0]
    };
    (0..options).map(option).collect()
}

fn price(&[stock, strike, rate, volatility, years, put, ..]: &[f64; LINE_WORDS]) -> f64 {
    let deviation = volatility * libm::sqrt(years);
    let drift = (rate + 0.5 * volatility * volatility) * years;
    let high = (libm::log(stock / strike) + drift) / deviation;
    let discounted = strike * libm::exp(-rate * years);
    let (over, under) = (normal(high), normal(high - deviation));
    if put > 0.5 {
        discounted * (1.0 - under) - stock * (1.0 - over)
    } else {
        stock * over - discounted * under
    }
}

/// Returns the standard normal distribution function of x, to 1e-7.
fn normal(x: f64) -> f64 {
    const TERMS: [f64; 5] =
        [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_53];
    let k = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let polynomial = TERMS.iter().fold(0.0, |sum, term| (sum + term) * k);
    let density = libm::exp(-0.5 * x * x) / libm::sqrt(2.0 * std::f64::consts::PI);
    let above = density * polynomial;
    if x < 0.0 { above } else { 1.0 - above }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_match_the_textbook_and_put_call_parity() {
        // Hull, Options, Futures and Other Derivatives, example of the Black-Scholes chapter: 4.76,
        // 0.81.
        let terms = [42.0, 40.0, 0.1, 0.2, 0.5, 0.0, 0.0, 0.0];
        let put = [42.0, 40.0, 0.1, 0.2, 0.5, 1.0, 0.0, 0.0];
        assert!((price(&terms) - 4.76).abs() < 0.005 && (price(&put) - 0.81).abs() < 0.005);
        for terms in input(100, 4) {
            let [mut call, mut put] = [terms; 2];
            (call[5], put[5]) = (0.0, 1.0);
            let parity = terms[0] - terms[1] * libm::exp(-terms[2] * terms[4]);
            assert!((price(&call) - price(&put) - parity).abs() < 1e-9);
        }
    }
}
