//! `canneal_like`: placement of circuit elements by simulated annealing.

use std::collections::BTreeMap;

use super::super::random::Random;
use super::super::sync::{Spinlock, TreeBarrier};
use super::super::work;
use super::super::{Array, Core, Kernel, LINE_WORDS, Memory, Program, ProgramError, Scale};
use super::{Barrier, divisible, own, same_words, threads};

/// Wires per element.
const WIRES: usize = 5;

/// Temperatures, each a fixed fraction of the previous one; the first precedes the region of
/// interest.
const TEMPERATURES: usize = 5;
const COOLING: f64 = 0.6;

/// Elements of a circuit on a square grid. Two random elements swap places if that shortens their
/// wires, or else with a probability that falls with the temperature.
///
/// A core draws from all elements, reads the places of ten others, and writes two under their locks
/// (the original swaps them without locks). An element is a line. Expected: reads of random lines
/// from other caches, or from memory if the elements exceed the caches; and stores to them.
///
/// The order of accesses determines which swaps happen. Each core logs its swaps with the number of
/// previous moves of both elements. The check replays the log in that order, and detects every lost
/// or duplicated swap. On one core the result is that of the serial program.
pub(super) struct CannealLike {
    /// False only in a test of the check.
    pub(super) locked: bool,
}

/// Side of the grid, and trials per temperature over all cores.
fn size(scale: Scale) -> (usize, usize) {
    match scale {
        Scale::Tiny => (16, 64),
        Scale::Small => (48, 1920),
        Scale::Large => (192, 19_200),
    }
}

#[derive(Clone, Copy)]
struct CannealData {
    side: usize,
    /// Trials per core and temperature.
    trials: usize,
    seed: u64,
    locked: bool,
    barrier: TreeBarrier,
    /// A line each: lock, place, number of moves, wires.
    elements: Array,
    /// One or more lines per core: the number of swaps, then two words per swap.
    logs: Array,
    log: usize,
}

impl CannealData {
    fn word(&self, element: usize, word: usize) -> u64 {
        self.elements.at(element * LINE_WORDS + word)
    }
}

const PLACE: usize = 1;
const MOVED: usize = 2;
const FIRST_WIRE: usize = 3;

impl Kernel for CannealLike {
    fn name(&self) -> &'static str {
        "canneal_like"
    }

    fn summary(&self) -> &'static str {
        "simulated annealing: random lines are read, and swapped under locks"
    }

    fn program(&self, cores: u32, scale: Scale, seed: u64) -> Result<Program, ProgramError> {
        let (side, trials) = size(scale);
        divisible(self.name(), scale, cores, trials, "one trial at each temperature")?;
        let trials = trials.div_ceil(cores as usize);
        let circuit = circuit(side, seed);
        let lines = circuit.iter().enumerate().flat_map(|(place, wires)| {
            let mut line = [0; LINE_WORDS];
            line[PLACE] = place as u64;
            for (word, &wire) in line[FIRST_WIRE..].iter_mut().zip(wires) {
                *word = wire as u64;
            }
            line
        });
        let mut memory = Memory::new();
        let log = (1 + 2 * trials * TEMPERATURES).next_multiple_of(LINE_WORDS);
        let layout = CannealData {
            side,
            trials,
            seed,
            locked: self.locked,
            barrier: TreeBarrier::new(&mut memory, cores),
            elements: memory.array(&lines.collect::<Vec<_>>()),
            logs: memory.zeros(log * cores as usize),
            log,
        };
        let check = Box::new(move |words: &[u64]| check(&layout, words, cores, &circuit));
        let threads = threads(cores, |core| run(core, layout));
        Ok(Program { threads, memory: memory.into_words(), check })
    }
}

async fn run(core: Core, layout: CannealData) {
    let barrier = Barrier::from(layout.barrier);
    let (id, all) = (core.id() as usize, layout.side * layout.side);
    let elements = core.share(all);
    own(&core, &layout.elements, elements.start * LINE_WORDS..elements.end * LINE_WORDS).await;
    own(&core, &layout.logs, id * layout.log..(id + 1) * layout.log).await;
    let mut random = Random::new(layout.seed, 1 + id as u64);
    let mut temperature = start(layout.side);
    barrier.wait(&core).await;
    for step in 0..TEMPERATURES {
        if step == 1 {
            barrier.begin(&core).await;
        }
        for _ in 0..layout.trials {
            let pair = draw(&mut random, all);
            let mut longer = 0.0;
            let places =
                [place(&core, &layout, pair[0]).await, place(&core, &layout, pair[1]).await];
            for turn in 0..2 {
                longer += added(&core, &layout, pair, places, turn).await;
            }
            core.compute(3 * Random::INSTRUCTIONS + 8 * work::OPERATION + work::ROUND);
            core.compute(work::TRANSCENDENTAL + work::DIVISION + 2 * work::BRANCH);
            if accepted(longer, temperature, &mut random) {
                swap(&core, &layout, pair).await;
            }
        }
        temperature *= COOLING;
        barrier.wait(&core).await;
    }
    barrier.end(&core).await;
}

/// Draws two different elements.
fn draw(random: &mut Random, all: usize) -> [usize; 2] {
    let one = random.below(all);
    let other = random.below(all - 1);
    [one, if other < one { other } else { other + 1 }]
}

/// Always draws a number, so that later draws do not depend on the result.
fn accepted(longer: f64, temperature: f64, random: &mut Random) -> bool {
    let chance = random.unit();
    longer < 0.0 || chance < libm::exp(-longer / temperature)
}

#[expect(clippy::cast_precision_loss, reason = "a small side")]
fn start(side: usize) -> f64 {
    0.5 * side as f64
}

#[expect(clippy::cast_possible_truncation, reason = "numbers of elements and places")]
fn number(word: u64) -> usize {
    word as usize
}

async fn place(core: &Core, layout: &CannealData, element: usize) -> usize {
    core.compute(work::INDEX);
    number(core.load(layout.word(element, PLACE)).await)
}

/// Returns the change in length of the wires of one of two elements that swap places.
async fn added(
    core: &Core,
    layout: &CannealData,
    pair: [usize; 2],
    places: [usize; 2],
    turn: usize,
) -> f64 {
    let mut longer = 0.0;
    for wire in 0..WIRES {
        let other = number(core.load(layout.word(pair[turn], FIRST_WIRE + wire)).await);
        core.compute(work::BRANCH + 14 * work::OPERATION + work::ROUND);
        // A wire between the two keeps its length.
        if other != pair[1 - turn] {
            let at = place(core, layout, other).await;
            longer += distance(layout.side, places[1 - turn], at)
                - distance(layout.side, places[turn], at);
        }
    }
    longer
}

#[expect(clippy::cast_precision_loss, reason = "a small side")]
fn distance(side: usize, one: usize, other: usize) -> f64 {
    ((one / side).abs_diff(other / side) + (one % side).abs_diff(other % side)) as f64
}

/// Swaps the places of two elements, and logs the swap.
async fn swap(core: &Core, layout: &CannealData, pair: [usize; 2]) {
    let [low, high] = [pair[0].min(pair[1]), pair[0].max(pair[1])];
    let locks = [low, high].map(|element| Spinlock::at(layout.word(element, 0)));
    if layout.locked {
        locks[0].lock(core).await;
        locks[1].lock(core).await;
    }
    let (mut places, mut moved) = ([0; 2], [0; 2]);
    for (side, &element) in pair.iter().enumerate() {
        places[side] = core.load(layout.word(element, PLACE)).await;
        moved[side] = core.load(layout.word(element, MOVED)).await;
    }
    for (side, &element) in pair.iter().enumerate() {
        core.store(layout.word(element, PLACE), places[1 - side]).await;
        core.store(layout.word(element, MOVED), moved[side] + 1).await;
        core.compute(work::OPERATION + work::INDEX);
    }
    if layout.locked {
        locks[1].unlock(core).await;
        locks[0].unlock(core).await;
    }
    let mine = core.id() as usize * layout.log;
    let count = core.load(layout.logs.at(mine)).await;
    let at = mine + 1 + 2 * number(count);
    core.store(layout.logs.at(at), pair[0] as u64 | (pair[1] as u64) << 32).await;
    core.store(layout.logs.at(at + 1), moved[0] | moved[1] << 32).await;
    core.store(layout.logs.at(mine), count + 1).await;
    core.compute(2 * work::INDEX + 5 * work::OPERATION);
}

/// Returns the elements that each element has wires to.
fn circuit(side: usize, seed: u64) -> Vec<[usize; WIRES]> {
    let mut random = Random::new(seed, 0);
    let all = side * side;
    let mut other_than = |element| {
        let other = random.below(all - 1);
        if other < element { other } else { other + 1 }
    };
    let wires = |element| std::array::from_fn(|_| other_than(element));
    (0..all).map(wires).collect()
}

/// Returns the logged swaps: for each of the two elements, its number and its previous moves.
fn logged_swaps(layout: &CannealData, words: &[u64]) -> Result<Vec<[(usize, u64); 2]>, String> {
    let mut swaps = Vec::new();
    for (core, log) in layout.logs.of(words).chunks(layout.log).enumerate() {
        let count = number(log[0]);
        if 2 * count >= log.len() {
            return Err(format!("core {core} logs {count} swaps"));
        }
        let halves = |word: u64| [word & 0xFFFF_FFFF, word >> 32];
        for entry in log[1..=2 * count].chunks(2) {
            let ([one, other], [before, before_other]) = (halves(entry[0]), halves(entry[1]));
            if one.max(other) >= (layout.side * layout.side) as u64 {
                return Err(format!(
                    "core {core} logs a swap of unknown elements {one} and {other}"
                ));
            }
            swaps.push([(number(one), before), (number(other), before_other)]);
        }
    }
    Ok(swaps)
}

/// Checks that the logged swaps, each once and in some order, produce the final places.
fn check(
    layout: &CannealData,
    words: &[u64],
    cores: u32,
    circuit: &[[usize; WIRES]],
) -> Result<(), String> {
    let column = |word| -> Vec<u64> {
        layout.elements.of(words).iter().skip(word).step_by(LINE_WORDS).copied().collect()
    };
    let swaps = logged_swaps(layout, words)?;
    let (places, moved) = replay(circuit.len(), &swaps)?;
    same_words("place of element", &column(PLACE), &places)?;
    same_words("number of moves of element", &column(MOVED), &moved)?;
    if cores == 1 {
        let expected = serial(layout.side, layout.trials, layout.seed, circuit);
        same_words("place of element", &places, &expected)?;
    }
    Ok(())
}

/// Returns the places and numbers of moves after all swaps. A swap is applied once both elements
/// have the logged number of moves.
fn replay(all: usize, swaps: &[[(usize, u64); 2]]) -> Result<(Vec<u64>, Vec<u64>), String> {
    let mut waiting = BTreeMap::new();
    for swap in swaps {
        for &(element, before) in swap {
            if waiting.insert((element, before), *swap).is_some() {
                return Err(format!("element {element} has two moves number {before}"));
            }
        }
    }
    let (mut places, mut moved) = ((0..all as u64).collect::<Vec<_>>(), vec![0; all]);
    let mut next: Vec<usize> = (0..all).collect();
    while let Some(element) = next.pop() {
        let Some(&[one, other]) = waiting.get(&(element, moved[element])) else { continue };
        if moved[one.0] == one.1 && moved[other.0] == other.1 {
            places.swap(one.0, other.0);
            for (element, before) in [one, other] {
                moved[element] = before + 1;
                waiting.remove(&(element, before));
                next.push(element);
            }
        }
    }
    match waiting.first_key_value() {
        None => Ok((places, moved)),
        Some(((element, before), _)) => {
            Err(format!("element {element} never reaches move number {before}"))
        }
    }
}

/// Returns the result of the serial program.
fn serial(side: usize, trials: usize, seed: u64, circuit: &[[usize; WIRES]]) -> Vec<u64> {
    let mut random = Random::new(seed, 1);
    let mut places: Vec<usize> = (0..side * side).collect();
    let mut temperature = start(side);
    for _ in 0..TEMPERATURES {
        for _ in 0..trials {
            let pair = draw(&mut random, side * side);
            let longer = [[pair[0], pair[1]], [pair[1], pair[0]]].map(|[element, other]| {
                let wires = circuit[element].iter().filter(|&&wire| wire != other);
                let change = wires.map(|&wire| {
                    distance(side, places[other], places[wire])
                        - distance(side, places[element], places[wire])
                });
                change.sum::<f64>()
            });
            if accepted(longer[0] + longer[1], temperature, &mut random) {
                places.swap(pair[0], pair[1]);
            }
        }
        temperature *= COOLING;
    }
    places.into_iter().map(|place| place as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_serial_annealing_shortens_wires() {
        let circuit = circuit(16, 3);
        let length = |places: &[u64]| -> f64 {
            let ends =
                circuit.iter().enumerate().flat_map(|(from, wires)| wires.map(|to| (from, to)));
            ends.map(|(from, to)| distance(16, number(places[from]), number(places[to]))).sum()
        };
        let before = length(&(0..256).collect::<Vec<_>>());
        let after = length(&serial(16, 4000, 3, &circuit));
        assert!(after < 0.9 * before, "{after} after {before}");
    }

    #[test]
    fn swaps_are_replayed_in_order_and_a_duplicated_or_missing_one_is_detected() {
        // 1 and 2 first, then 0 and 1: 0 goes to the place of 1 at that time, place 2.
        let right = [[(0, 0), (1, 1)], [(1, 0), (2, 0)]];
        assert_eq!(replay(3, &right).unwrap(), (vec![2, 0, 1], vec![1, 2, 1]));
        assert!(replay(3, &[[(0, 0), (1, 0)], [(1, 0), (2, 0)]]).is_err());
        assert!(replay(3, &[[(0, 0), (1, 1)]]).is_err());
    }
}
