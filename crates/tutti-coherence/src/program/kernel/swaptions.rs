//! `swaptions_like`: swaptions priced by simulated interest rates.

use super::super::random::Random;
use super::super::sync::TreeBarrier;
use super::super::work;
use super::super::{Array, Core, Kernel, LINE_WORDS, Memory, Program, ProgramError, Scale};
use super::{Barrier, divisible, own, same_bits, threads};

/// Points of a forward rate curve: a line.
const POINTS: usize = LINE_WORDS;

/// Steps until the option's expiry.
const STEPS: usize = 8;

/// Swaptions, each priced by Monte Carlo simulation of a curve of eight forward rates that all move
/// by one random shock per step (the one-factor model of Heath, Jarrow and Morton with constant
/// volatility).
///
/// Each core has separate options and simulates its curve on a separate line; random numbers depend
/// on the option's number. Expected: no traffic except that of barriers.
pub(super) struct SwaptionsLike;

/// Number of options, and trials per option; the first trial precedes the region of interest.
fn size(scale: Scale) -> (usize, usize) {
    match scale {
        Scale::Tiny => (16, 3),
        Scale::Small => (64, 31),
        Scale::Large => (256, 41),
    }
}

#[derive(Clone, Copy)]
struct Swaption {
    /// The initial forward rate, constant over the curve.
    rate: f64,
    volatility: f64,
    strike: f64,
    /// Length of a step in years.
    step: f64,
}

#[derive(Clone, Copy)]
struct SwaptionsData {
    options: usize,
    trials: usize,
    seed: u64,
    barrier: TreeBarrier,
    /// A line each: rate, volatility, strike, step, and mean payoff.
    options_at: Array,
    /// A line per core.
    curves: Array,
}

impl Kernel for SwaptionsLike {
    fn name(&self) -> &'static str {
        "swaptions_like"
    }

    fn summary(&self) -> &'static str {
        "swaptions by Monte Carlo: no shared data"
    }

    fn program(&self, cores: u32, scale: Scale, seed: u64) -> Result<Program, ProgramError> {
        let (options, trials) = size(scale);
        divisible(self.name(), scale, cores, options, "one per option")?;
        let input = input(options, seed);
        let mut memory = Memory::new();
        let lines =
            input.iter().map(|o| [o.rate, o.volatility, o.strike, o.step, 0.0, 0.0, 0.0, 0.0]);
        let layout = SwaptionsData {
            options,
            trials,
            seed,
            barrier: TreeBarrier::new(&mut memory, cores),
            options_at: memory.numbers(&lines.flatten().collect::<Vec<_>>()),
            curves: memory.zeros(POINTS * cores as usize),
        };
        let option = |(number, option): (usize, &Swaption)| serial(option, number, trials, seed);
        let expected: Vec<f64> = input.iter().enumerate().map(option).collect();
        Ok(Program {
            threads: threads(cores, |core| run(core, layout)),
            memory: memory.into_words(),
            check: Box::new(move |words| {
                let words = layout.options_at.numbers(words);
                let prices: Vec<f64> = words.into_iter().skip(4).step_by(LINE_WORDS).collect();
                same_bits("price", &prices, &expected)
            }),
        })
    }
}

async fn run(core: Core, layout: SwaptionsData) {
    let barrier = Barrier::from(layout.barrier);
    let options = core.share(layout.options);
    let mine = core.id() as usize * POINTS;
    own(&core, &layout.options_at, options.start * LINE_WORDS..options.end * LINE_WORDS).await;
    own(&core, &layout.curves, mine..mine + POINTS).await;
    let mut randoms: Vec<Random> =
        options.clone().map(|option| stream(layout.seed, option)).collect();
    for trial in 0..layout.trials {
        if trial == 1 {
            barrier.begin(&core).await;
        }
        for (option, random) in options.clone().zip(&mut randoms) {
            simulate(&core, &layout, option, random).await;
            core.compute(work::ROUND);
        }
    }
    barrier.end(&core).await;
}

/// Simulates a trial of an option, and adds its share to the mean.
async fn simulate(core: &Core, layout: &SwaptionsData, option: usize, random: &mut Random) {
    let (line, mine) = (option * LINE_WORDS, core.id() as usize * POINTS);
    let mut terms = [0.0; 4];
    for (place, term) in terms.iter_mut().enumerate() {
        *term = core.load_f64(layout.options_at.at(line + place)).await;
    }
    let [rate, volatility, strike, step] = terms;
    let swaption = Swaption { rate, volatility, strike, step };
    for point in 0..POINTS {
        core.store_f64(layout.curves.at(mine + point), rate).await;
        core.compute(work::ROUND);
    }
    let mut discount = 1.0;
    for _ in 0..STEPS {
        let shock = shock(random);
        core.compute(2 * Random::INSTRUCTIONS + 2 * work::TRANSCENDENTAL + 6 * work::OPERATION);
        for point in 0..POINTS {
            let address = layout.curves.at(mine + point);
            let rate = core.load_f64(address).await;
            core.store_f64(address, swaption.moved(rate, point, shock)).await;
            core.compute(7 * work::OPERATION + work::ROUND);
            if point == 0 {
                discount *= swaption.discount(rate);
                core.compute(work::TRANSCENDENTAL + 2 * work::OPERATION);
            }
        }
        core.compute(work::ROUND);
    }
    let mut paid = Payoff::new(discount);
    for point in 0..POINTS {
        let rate = core.load_f64(layout.curves.at(mine + point)).await;
        paid.year(rate, swaption.strike);
        core.compute(work::TRANSCENDENTAL + 4 * work::OPERATION + work::ROUND);
    }
    let mean = core.load_f64(layout.options_at.at(line + 4)).await;
    let mean = mean + paid.value() / trials(layout.trials);
    core.store_f64(layout.options_at.at(line + 4), mean).await;
    core.compute(work::DIVISION + 2 * work::OPERATION + work::BRANCH);
}

impl Swaption {
    /// Returns a point of the curve a step later; the drift excludes arbitrage.
    #[expect(clippy::cast_precision_loss, reason = "eight points")]
    fn moved(&self, rate: f64, point: usize, shock: f64) -> f64 {
        let drift = self.volatility * self.volatility * self.step * (point as f64 + 0.5);
        rate + (drift * self.step + self.volatility * libm::sqrt(self.step) * shock)
    }

    /// Returns the discount factor of a step.
    fn discount(&self, rate: f64) -> f64 {
        libm::exp(-rate * self.step)
    }
}

/// The value of a swap at the option's expiry, accumulated year by year.
struct Payoff {
    discount: f64,
    sum: f64,
}

impl Payoff {
    fn new(discount: f64) -> Payoff {
        Payoff { discount, sum: 0.0 }
    }

    fn year(&mut self, rate: f64, strike: f64) {
        self.discount *= libm::exp(-rate);
        self.sum += self.discount * (rate - strike);
    }

    fn value(&self) -> f64 {
        self.sum.max(0.0)
    }
}

/// Returns a standard normal deviate (Box and Muller) from two uniform ones.
fn shock(random: &mut Random) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - random.unit()));
    radius * libm::cos(2.0 * std::f64::consts::PI * random.unit())
}

fn stream(seed: u64, option: usize) -> Random {
    Random::new(seed, 1 + option as u64)
}

#[expect(clippy::cast_precision_loss, reason = "hundreds")]
fn trials(trials: usize) -> f64 {
    trials as f64
}

fn input(options: usize, seed: u64) -> Vec<Swaption> {
    let mut random = Random::new(seed, 0);
    let option = |_| Swaption {
        rate: random.between(0.02, 0.06),
        volatility: random.between(0.005, 0.02),
        strike: random.between(0.02, 0.06),
        step: random.between(0.05, 0.25),
    };
    (0..options).map(option).collect()
}

fn serial(swaption: &Swaption, option: usize, count: usize, seed: u64) -> f64 {
    let mut random = stream(seed, option);
    let mut mean = 0.0;
    for _ in 0..count {
        let (mut curve, mut discount) = ([swaption.rate; POINTS], 1.0);
        for _ in 0..STEPS {
            discount *= swaption.discount(curve[0]);
            let shock = shock(&mut random);
            for (point, rate) in curve.iter_mut().enumerate() {
                *rate = swaption.moved(*rate, point, shock);
            }
        }
        let mut paid = Payoff::new(discount);
        curve.iter().for_each(|&rate| paid.year(rate, swaption.strike));
        mean += paid.value() / trials(count);
    }
    mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_volatility_an_option_has_the_value_of_its_swap() {
        let swaption = Swaption { rate: 0.05, volatility: 0.0, strike: 0.03, step: 0.125 };
        let annuity: f64 = (1..=8).map(|year| libm::exp(-0.05 * f64::from(year))).sum();
        let expected = libm::exp(-0.05) * 0.02 * annuity;
        assert!((serial(&swaption, 0, 4, 1) - expected).abs() < 1e-12);
        let out = Swaption { strike: 0.06, ..swaption };
        assert!(serial(&out, 0, 4, 1).abs() < 1e-15);
        let open = Swaption { volatility: 0.02, ..out };
        assert!(serial(&open, 0, 400, 1) > 0.01);
    }
}
