//! `water_like`: forces between water molecules, all pairs.

use super::super::random::Random;
use super::super::sync::{Spinlock, TicketLock, TreeBarrier};
use super::super::work;
use super::super::{Array, Core, Kernel, LINE_WORDS, Memory, Program, ProgramError, Scale};
use super::{Barrier, divisible, own, same_bits, same_words, threads};

/// Molecules of three atoms each in a periodic box; a pair interacts if it is closer than half of
/// the box. Each core has consecutive molecules and pairs each with the half of the others that
/// follows it. It sums the forces of its pairs in private memory, and adds them to each molecule
/// under the molecule's lock.
///
/// A force record migrates between cores, each of which reads and then writes it: migratory sharing
/// of few lines, with a lock each. All data fit into the caches. Expected: stores that another
/// cache serves, contended locks, almost no data from memory.
///
/// Forces are summed as integer multiples of 2^-40. The order therefore does not affect the sum,
/// and every lost or duplicated force is detected.
pub(super) struct WaterLike {
    /// False only in a test of the check.
    pub(super) locked: bool,
}

/// Steps; the first precedes the region of interest.
const STEPS: usize = 2;

/// Coordinates of a molecule: three atoms in three dimensions.
const NUMBERS: usize = 9;

/// Words of a record.
const RECORD: usize = 2 * LINE_WORDS;

/// Fixed-point units per unit of force or energy.
const UNIT: f64 = 1_099_511_627_776.0;

/// Length of a step, and charges of the atoms, oxygen first.
const STEP: f64 = 1e-3;
const CHARGES: [f64; 3] = [-0.8, 0.4, 0.4];

fn molecules(scale: Scale) -> usize {
    match scale {
        Scale::Tiny => 24,
        Scale::Small => 192,
        Scale::Large => 512,
    }
}

#[derive(Clone, Copy)]
struct WaterData {
    molecules: usize,
    locked: bool,
    barrier: TreeBarrier,
    /// Protects the sum of all energies.
    lock: TicketLock,
    energy: Array,
    /// Records of coordinates: x, y, z of each atom.
    places: Array,
    speeds: Array,
    /// Records of fixed-point forces, followed by the lock.
    forces: Array,
    /// A record per core and molecule.
    partial: Array,
}

impl Kernel for WaterLike {
    fn name(&self) -> &'static str {
        "water_like"
    }

    fn summary(&self) -> &'static str {
        "pairs of molecules: force records that migrate between cores under locks"
    }

    fn program(&self, cores: u32, scale: Scale, seed: u64) -> Result<Program, ProgramError> {
        let count = molecules(scale);
        divisible(self.name(), scale, cores, count, "one per molecule")?;
        let input = input(count, seed);
        let record = |numbers: &[f64; NUMBERS]| {
            let mut record = [0.0; RECORD];
            record[..NUMBERS].copy_from_slice(numbers);
            record
        };
        let places: Vec<f64> = input.iter().flat_map(record).collect();
        let mut memory = Memory::new();
        let layout = WaterData {
            molecules: count,
            locked: self.locked,
            barrier: TreeBarrier::new(&mut memory, cores),
            lock: TicketLock::new(&mut memory),
            energy: memory.zeros(STEPS * LINE_WORDS),
            places: memory.numbers(&places),
            speeds: memory.zeros(RECORD * count),
            forces: memory.zeros(RECORD * count),
            partial: memory.zeros(RECORD * count * cores as usize),
        };
        let expected = serial(input);
        let check = Box::new(move |words: &[u64]| {
            let all = |numbers: &[[f64; NUMBERS]]| -> Vec<f64> {
                numbers.iter().flat_map(record).collect()
            };
            same_bits("coordinate", &layout.places.numbers(words), &all(&expected.places))?;
            same_bits("speed", &layout.speeds.numbers(words), &all(&expected.speeds))?;
            let energy: Vec<u64> =
                layout.energy.of(words).iter().step_by(LINE_WORDS).copied().collect();
            same_words("energy", &energy, &expected.energy)
        });
        Ok(Program {
            threads: threads(cores, |core| run(core, layout)),
            memory: memory.into_words(),
            check,
        })
    }
}

async fn run(core: Core, layout: WaterData) {
    let barrier = Barrier::from(layout.barrier);
    let molecules = core.share(layout.molecules);
    for array in [&layout.places, &layout.speeds, &layout.forces] {
        own(&core, array, molecules.start * RECORD..molecules.end * RECORD).await;
    }
    barrier.wait(&core).await;
    for step in 0..STEPS {
        if step + 1 == STEPS {
            barrier.begin(&core).await;
        }
        let mut touched = vec![false; layout.molecules];
        for one in molecules.clone() {
            pairs(&core, &layout, one, &mut touched).await;
        }
        for turn in 0..layout.molecules {
            let molecule = (molecules.start + turn) % layout.molecules;
            core.compute(work::ROUND + work::BRANCH);
            if touched[molecule] {
                add_up(&core, &layout, molecule).await;
            }
        }
        barrier.wait(&core).await;
        let mut energy = 0_u64;
        for molecule in molecules.clone() {
            energy = energy.wrapping_add(move_on(&core, &layout, molecule).await);
        }
        let sum = layout.energy.at(step * LINE_WORDS);
        layout.lock.lock(&core).await;
        let before = core.load(sum).await;
        core.store(sum, before.wrapping_add(energy)).await;
        core.compute(work::OPERATION);
        layout.lock.unlock(&core).await;
        barrier.wait(&core).await;
    }
    barrier.end(&core).await;
}

/// Returns the partners of a molecule: the half of the others that follows it.
fn partners(one: usize, molecules: usize) -> impl Iterator<Item = usize> {
    let half =
        (molecules - 1) / 2 + usize::from(molecules.is_multiple_of(2) && one < molecules / 2);
    (1..=half).map(move |ahead| (one + ahead) % molecules)
}

async fn numbers(core: &Core, array: &Array, molecule: usize) -> [f64; NUMBERS] {
    let mut numbers = [0.0; NUMBERS];
    for (word, number) in numbers.iter_mut().enumerate() {
        *number = core.load_f64(array.at(molecule * RECORD + word)).await;
    }
    core.compute(work::INDEX);
    numbers
}

/// Adds the forces of a molecule's pairs to the core's private sums.
async fn pairs(core: &Core, layout: &WaterData, one: usize, touched: &mut [bool]) {
    let here = numbers(core, &layout.places, one).await;
    let side = side(layout.molecules);
    let mut sum = [0_u64; NUMBERS];
    let mut any = false;
    for other in partners(one, layout.molecules) {
        let there = numbers(core, &layout.places, other).await;
        // Three differences, each reduced to the nearest image, squared and summed.
        core.compute(3 * (5 * work::OPERATION) + 2 * work::OPERATION + work::BRANCH + work::ROUND);
        let Some(forces) = force(&here, &there, side) else { continue };
        (any, touched[other]) = (true, true);
        core.compute(9 * ATOMS + LENNARD_JONES);
        for word in 0..NUMBERS {
            let address = partial(core, layout, other, word);
            let before = core.load(address).await;
            core.store(address, before.wrapping_add(forces[1][word])).await;
            sum[word] = sum[word].wrapping_add(forces[0][word]);
            // Both are scaled, rounded and added.
            core.compute(6 * work::OPERATION);
        }
        core.compute(work::INDEX);
    }
    if any {
        touched[one] = true;
        for (word, &force) in sum.iter().enumerate() {
            let address = partial(core, layout, one, word);
            let before = core.load(address).await;
            core.store(address, before.wrapping_add(force)).await;
        }
        core.compute(NUMBERS as u64 * work::OPERATION + work::INDEX);
    }
}

/// Cost of a pair of atoms: differences, squares, a root, a quotient, and parts of six sums.
const ATOMS: u64 =
    8 * work::OPERATION + 2 * work::DIVISION + 2 * work::OPERATION + 9 * work::OPERATION;

/// Additional cost of the force between the oxygens.
const LENNARD_JONES: u64 = 8 * work::OPERATION + work::DIVISION + 6 * work::OPERATION;

fn partial(core: &Core, layout: &WaterData, molecule: usize, word: usize) -> u64 {
    layout.partial.at((core.id() as usize * layout.molecules + molecule) * RECORD + word)
}

/// Adds the core's sums of a molecule to the shared ones, under the molecule's lock.
async fn add_up(core: &Core, layout: &WaterData, molecule: usize) {
    let lock = Spinlock::at(layout.forces.at(molecule * RECORD + NUMBERS));
    if layout.locked {
        lock.lock(core).await;
    }
    for word in 0..NUMBERS {
        let (address, own) =
            (layout.forces.at(molecule * RECORD + word), partial(core, layout, molecule, word));
        let before = core.load(address).await;
        let force = core.load(own).await;
        core.store(address, before.wrapping_add(force)).await;
        core.store(own, 0).await;
        core.compute(work::OPERATION + work::ROUND);
    }
    if layout.locked {
        lock.unlock(core).await;
    }
}

/// Moves a molecule; returns its kinetic energy in fixed point.
async fn move_on(core: &Core, layout: &WaterData, molecule: usize) -> u64 {
    let mut place = numbers(core, &layout.places, molecule).await;
    let mut speed = numbers(core, &layout.speeds, molecule).await;
    let mut force = [0; NUMBERS];
    for (word, force) in force.iter_mut().enumerate() {
        let address = layout.forces.at(molecule * RECORD + word);
        *force = core.load(address).await;
        core.store(address, 0).await;
    }
    let energy = advance(&mut place, &mut speed, force);
    for word in 0..NUMBERS {
        core.store_f64(layout.places.at(molecule * RECORD + word), place[word]).await;
        core.store_f64(layout.speeds.at(molecule * RECORD + word), speed[word]).await;
    }
    core.compute(NUMBERS as u64 * (8 * work::OPERATION) + 3 * work::INDEX + work::ROUND);
    energy
}

fn advance(place: &mut [f64; NUMBERS], speed: &mut [f64; NUMBERS], force: [u64; NUMBERS]) -> u64 {
    let mut energy = 0.0;
    for ((place, speed), force) in place.iter_mut().zip(speed).zip(force) {
        *speed += STEP * from_fixed(force);
        *place += STEP * *speed;
        energy += 0.5 * *speed * *speed;
    }
    to_fixed(energy)
}

/// Converts a number to fixed point, rounded to the nearest.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "far below 2^63 units")]
fn to_fixed(number: f64) -> u64 {
    libm::rint(number * UNIT) as i64 as u64
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    reason = "rounds to the precision of f64"
)]
fn from_fixed(fixed: u64) -> f64 {
    fixed as i64 as f64 / UNIT
}

/// Returns the side of the box, with a unit cube per molecule.
#[expect(clippy::cast_precision_loss, reason = "hundreds")]
fn side(molecules: usize) -> f64 {
    libm::cbrt(molecules as f64)
}

/// Returns the forces on the atoms of two molecules by each other; `None` beyond half of the box.
fn force(here: &[f64; NUMBERS], there: &[f64; NUMBERS], side: f64) -> Option<[[u64; NUMBERS]; 2]> {
    let image = |axis: usize| {
        let apart = there[axis] - here[axis];
        side * libm::rint(apart / side)
    };
    let shift: [f64; 3] = std::array::from_fn(image);
    let apart = |one: usize, other: usize, axis: usize| {
        here[3 * one + axis] - (there[3 * other + axis] - shift[axis])
    };
    let squared = |one, other| -> f64 {
        (0..3).map(|axis| apart(one, other, axis) * apart(one, other, axis)).sum()
    };
    if squared(0, 0) > side * side / 4.0 {
        return None;
    }
    let mut sums = [[0.0; NUMBERS]; 2];
    for one in 0..3 {
        for other in 0..3 {
            let distance = squared(one, other);
            let mut push = CHARGES[one] * CHARGES[other] / (distance * libm::sqrt(distance));
            if one == 0 && other == 0 {
                // Lennard-Jones with a depth of 1/4 and its zero at 0.8.
                let sixth = 0.64 / distance * (0.64 / distance) * (0.64 / distance);
                push += 6.0 * sixth * (2.0 * sixth - 1.0) / distance;
            }
            for axis in 0..3 {
                let force = push * apart(one, other, axis);
                sums[0][3 * one + axis] += force;
                sums[1][3 * other + axis] -= force;
            }
        }
    }
    Some(sums.map(|sum| sum.map(to_fixed)))
}

/// Returns molecules near the points of a lattice, with the hydrogens near their oxygen.
#[expect(clippy::cast_precision_loss, reason = "hundreds")]
fn input(molecules: usize, seed: u64) -> Vec<[f64; NUMBERS]> {
    let mut random = Random::new(seed, 0);
    let along = (1..).find(|along| along * along * along >= molecules).unwrap_or(1);
    let spacing = side(molecules) / along as f64;
    let mut molecule = |index: usize| {
        let lattice = [index % along, index / along % along, index / along / along];
        let mut place = [0.0; NUMBERS];
        for atom in 0..3 {
            for axis in 0..3 {
                let near =
                    random.between(-0.05, 0.05) + if atom > 0 && axis == atom { 0.2 } else { 0.0 };
                place[3 * atom + axis] = (lattice[axis] as f64 + 0.5) * spacing + near;
            }
        }
        place
    };
    (0..molecules).map(&mut molecule).collect()
}

struct State {
    places: Vec<[f64; NUMBERS]>,
    speeds: Vec<[f64; NUMBERS]>,
    /// The energy after each step.
    energy: Vec<u64>,
}

fn serial(input: Vec<[f64; NUMBERS]>) -> State {
    let count = input.len();
    let mut state =
        State { places: input, speeds: vec![[0.0; NUMBERS]; count], energy: Vec::new() };
    for _ in 0..STEPS {
        let mut forces = vec![[0_u64; NUMBERS]; count];
        for one in 0..count {
            for other in partners(one, count) {
                let both = force(&state.places[one], &state.places[other], side(count));
                let [on_one, on_other] = both.unwrap_or_default();
                for word in 0..NUMBERS {
                    forces[one][word] = forces[one][word].wrapping_add(on_one[word]);
                    forces[other][word] = forces[other][word].wrapping_add(on_other[word]);
                }
            }
        }
        let mut energy = 0_u64;
        for ((place, speed), force) in state.places.iter_mut().zip(&mut state.speeds).zip(forces) {
            energy = energy.wrapping_add(advance(place, speed, force));
        }
        state.energy.push(energy);
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_occurs_once() {
        for count in [1, 2, 3, 6, 7, 24] {
            let mut pairs: Vec<_> = (0..count)
                .flat_map(|one| partners(one, count).map(move |two| (one.min(two), one.max(two))))
                .collect();
            pairs.sort_unstable();
            let all = (0..count).flat_map(|one| (one + 1..count).map(move |two| (one, two)));
            assert_eq!(pairs, all.collect::<Vec<_>>());
        }
    }

    #[test]
    fn momentum_is_conserved_and_energy_is_positive() {
        let state = serial(input(64, 3));
        for axis in 0..3 {
            let sum: f64 = state
                .speeds
                .iter()
                .map(|speed| speed[axis] + speed[axis + 3] + speed[axis + 6])
                .sum();
            assert!(sum.abs() < 1e-9, "{sum}");
        }
        assert!(state.energy.iter().all(|&energy| from_fixed(energy) > 1e-9));
    }
}
